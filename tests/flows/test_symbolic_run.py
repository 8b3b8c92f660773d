"""`--answerer symbolic`: a run computes, is scored like any other, and `ask` and `answer` go on from it."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from tests.support.command import kgqa
from tests.support.toy import write_graph, write_questions

pytestmark = pytest.mark.slow

QUICK = (
    "retrieval.retrievers=[hop_path]", "answering.knowledge=[none, hop_path, hop_path/template]",
    "hop_path.encoder=scratch", "hop_path.epochs=6", "hop_path.scratch_width=64", "operator.epochs=6",
    "operator.scratch_width=32", "evaluation.bootstrap=100",
)  # fmt: skip


def test_a_run_without_a_model_computes_its_answers(tmp_path: Path) -> None:
    triples = write_graph(tmp_path / "register.tsv", 3000)
    write_questions(tmp_path / "asked.jsonl", triples, 240)
    home = ("--home", tmp_path / "home", "--json")
    made = kgqa(
        "run", "--kg", tmp_path / "register.tsv", "--questions", tmp_path / "asked.jsonl", "--answerer", "symbolic",
        *home, *[word for setting in QUICK for word in ("--set", setting)],
    )  # fmt: skip
    assert made.code == 0, made.err[-4000:]
    experiments = [name for name in made.json["scores"] if not name.endswith("/-/-")]
    assert experiments == ["hop_path/triples/symbolic"]
    assert made.json["scores"]["hop_path/triples/symbolic"]["test"]["exact"]["value"] > 0.5
    record = json.loads((tmp_path / "home" / "runs" / made.json["run_id"] / "run.json").read_text(encoding="utf-8"))
    folders = {stage["name"]: Path(stage["artifact"]["path"]) for stage in record["stages"]}
    answers = pl.read_parquet(folders["answers/hop_path"] / "answers.parquet")
    proof = pl.read_parquet(folders["answers/hop_path"] / "proof.parquet")
    assert set(proof["question"]) == set(answers.filter(~pl.col("abstained"))["question"])

    person, _, town = next(triple for triple in triples if triple[1] == "lives_in")
    asked = kgqa("ask", f"Where does {person} live?", "--topic", person, *home)
    assert asked.code == 0, asked.err[-4000:]
    assert asked.json["computed"] == town and asked.json["proof"] == [f"({person}, lives_in, {town})"]

    rows = [{"id": "one", "question": f"Where does {person} live?", "topic_entities": [person]}]
    (tmp_path / "new.jsonl").write_text(json.dumps(rows[0]) + "\n", encoding="utf-8")
    told = kgqa("answer", "--questions", tmp_path / "new.jsonl", "--out", tmp_path / "told.jsonl", *home)
    assert told.code == 0, told.err[-4000:]
    assert json.loads((tmp_path / "told.jsonl").read_text(encoding="utf-8"))["answer"] == town


def test_nothing_to_compute_from_is_said_at_once(tmp_path: Path) -> None:
    refused = kgqa(
        "run", "--profile", "atlas", "--answerer", "symbolic", "--set", "answering.knowledge=[none]",
        "--home", tmp_path, served=False,
    )  # fmt: skip
    assert refused.code == 2 and "computes from a retriever's facts" in refused.err
