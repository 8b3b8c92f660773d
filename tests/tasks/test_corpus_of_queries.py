"""The stages from files to the corpus, for questions that have a SPARQL query which no form writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from prefect import flow

from kgqa_core.config import CorpusOptions, LlmOptions, Profile, make_profile
from kgqa_core.kg.vocabulary import FREEBASE
from kgqa_core.store.artifacts import read_manifest
from tasks.engine.run import tracked_run
from tasks.kg import build_kg, export_dkg
from tasks.questions import load_questions
from tasks.rewriting import generate_corpus

PEOPLE = 8
QUERY = (
    "SELECT DISTINCT ?x WHERE {{ ns:m.p{n} ns:person.marriage ?y . ?y ns:marriage.spouse ?x . "
    "OPTIONAL {{ ?y ns:marriage.place ?p }} }}"
)


pytestmark = pytest.mark.usefixtures("prefect_server")


@flow(name="corpus-of-queries")
def corpus_of_queries(profile: Profile) -> Any:
    with tracked_run(profile):
        kg = build_kg(profile.kg)
        dkg = export_dkg(kg, profile.dkg)
        questions = load_questions(kg, profile.questions, profile.seed)
        options = CorpusOptions(teacher="template", qa_model="builtin")
        return generate_corpus(kg, dkg, questions, options, LlmOptions(), profile.seed)


@pytest.mark.slow
def test_queries_without_a_form_are_in_the_corpus_with_their_cvts(tmp_path: Path) -> None:
    lines, rows = [], []
    for n in range(PEOPLE):
        for subject, relation, value in (
            (f"m.p{n}", "person.marriage", f"m.cvt{n}"), (f"m.cvt{n}", "marriage.spouse", f"m.s{n}"),
            (f"m.cvt{n}", "marriage.place", f"m.t{n}"),
        ):  # fmt: skip
            lines.append(f"<{FREEBASE}{subject}> <{FREEBASE}{relation}> <{FREEBASE}{value}> .\n")
        for key, name in ((f"m.p{n}", f"Person {n}"), (f"m.s{n}", f"Spouse {n}"), (f"m.t{n}", f"Town {n}")):
            lines.append(f'<{FREEBASE}{key}> <{FREEBASE}type.object.name> "{name}"@en .\n')
        rows.append(
            {
                "id": f"q{n}", "question": f"Who is married to Person {n}?", "topic_entities": [f"m.p{n}"],
                "answers": [f"m.s{n}"], "split": ("train", "dev", "test")[max(0, n - PEOPLE + 3)],
                "sparql": QUERY.format(n=n),
            }
        )  # fmt: skip
    (tmp_path / "graph.nt").write_text("".join(lines), encoding="utf-8")
    (tmp_path / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    profile = make_profile(
        {
            "kg": {"name": "couples", "files": [str(tmp_path / "graph.nt")], "format": "freebase"},
            "questions": {"name": "couples", "path": str(tmp_path / "questions.jsonl")},
        }
    )
    corpus = corpus_of_queries(profile)
    counts = read_manifest(corpus.folder)["counts"]
    assert counts["train_by_query"] == counts["graphs"] == PEOPLE - 2
    table = pl.read_parquet(corpus.folder / "corpus.parquet")
    first = table.filter(pl.col("question") == "q0").row(0, named=True)
    assert first["relation_path"] == "person.marriage & marriage.spouse & marriage.place"
    assert first["triple_text"] == (
        "(Person 0, person.marriage, CVT1) (CVT1, marriage.spouse, Spouse 0) (CVT1, marriage.place, Town 0)"
    )
    assert "Spouse 0" in first["text"]
