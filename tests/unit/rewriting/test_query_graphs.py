"""Gold subgraphs of questions with SPARQL: of their form or of the query executed, with CVTs, and in the corpus."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from kgqa_core.config import CorpusOptions, KgOptions, LlmOptions
from kgqa_core.datasets.files.question import write_questions
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.export import export
from kgqa_core.kg.build import build
from kgqa_core.kg.store import KgStore
from kgqa_core.kg.vocabulary import FREEBASE
from kgqa_core.rewriting import corpus
from kgqa_core.rewriting.graphs import draw
from kgqa_core.types import Question
from kgqa_core.workspace import Workspace
from tests.unit.rewriting.test_corpus import Fake

NAMES = {"m.ann": "Ann", "m.bob": "Bob", "m.carl": "Carl", "m.paris": "Paris", "m.rome": "Rome", "m.dora": "Dora"}
TRIPLES = (
    ("m.ann", "person.marriage", "m.cvt1"), ("m.cvt1", "marriage.spouse", "m.bob"),
    ("m.cvt1", "marriage.place", "m.paris"), ("m.ann", "person.marriage", "m.cvt2"),
    ("m.cvt2", "marriage.spouse", "m.carl"), ("m.cvt2", "marriage.place", "m.rome"),
    ("m.bob", "person.friend", "m.dora"), ("m.carl", "person.friend", "m.dora"), ("m.ann", "person.friend", "m.dora"),
)  # fmt: skip
SPOUSE_AND_PLACE = (
    "SELECT DISTINCT ?x ?p WHERE { ns:m.ann ns:person.marriage ?y . ?y ns:marriage.spouse ?x . "
    "?y ns:marriage.place ?p . OPTIONAL { ?x ns:person.friend ?f } }"
)
COUNT_FRIENDS = "SELECT (COUNT(?x) AS ?n) WHERE { ?x ns:person.friend ns:m.dora . ?x ns:person.marriage ?y }"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    lines = [f"<{FREEBASE}{head}> <{FREEBASE}{relation}> <{FREEBASE}{tail}> .\n" for head, relation, tail in TRIPLES]
    lines += [f'<{FREEBASE}{key}> <{FREEBASE}type.object.name> "{name}"@en .\n' for key, name in NAMES.items()]
    (folder / "graph.nt").write_text("".join(lines), encoding="utf-8")
    for part in ("kg", "dkg", "questions"):
        (folder / part).mkdir()
    build(Workspace(folder / "kg"), options=KgOptions(files=(str(folder / "graph.nt"),), format="freebase"))
    export(Workspace(folder / "dkg"), kg=folder / "kg")
    with KgStore.open(folder / "kg") as store:
        write_questions(folder / "questions", list(questions(store)))
    return folder


def questions(store: KgStore) -> Iterator[Question]:
    ids = {key: found[0] for key, found in store.resolve(list(NAMES)).items()}

    def one(name: str, sparql: str | None, answers: tuple[str, ...], **more: object) -> Question:
        question = Question(
            name, f"Question {name}?", "train", topic_keys=("m.ann",), topic_entities=(ids["m.ann"],),
            answer_keys=answers, answers=tuple(ids[key] for key in answers if key in ids),
            answer_names=tuple((NAMES.get(key, key),) for key in answers), sparql=sparql,
        )  # fmt: skip
        return replace(question, **more)  # type: ignore[arg-type]

    yield one("executed", SPOUSE_AND_PLACE, ("m.carl",))
    yield one("count", COUNT_FRIENDS, ("1",), answer_type="number")
    yield one(
        "form", "SELECT ?x WHERE { ns:m.ann ns:person.friend ?x }", ("m.dora",),
        s_expression="(JOIN (R person.friend) m.ann)",
    )  # fmt: skip
    yield one("annotated", SPOUSE_AND_PLACE, ("m.dora",), relation_paths=(("person.friend",),), hops=1)
    yield one("searched", "SELECT ?x WHERE { SERVICE <http://example.org> { ?x ?p ?y } }", ("m.dora",))
    yield replace(one("same", SPOUSE_AND_PLACE, ("m.carl",)), split="test")


def test_questions_without_paths_have_the_subgraph_of_their_query(world: Path) -> None:
    from kgqa_core.datasets.files.question import read_questions

    with KgStore.open(world / "kg") as store:
        drawn = draw(
            store, Dkg.open(world / "dkg"), read_questions(world / "questions"), size=99, max_triples=4, seed=1
        )
    graphs = {graph.question.id: graph for graph in drawn.graphs}
    assert graphs["executed"].text == (
        "(Ann, person.marriage, CVT1) (CVT1, marriage.spouse, Carl) (CVT1, marriage.place, Rome) "
        "(Carl, person.friend, Dora)"
    ), "the solution with the gold answer comes first, and the next one does not fit"
    assert graphs["executed"].relation_path == "person.marriage & marriage.spouse & marriage.place & person.friend"
    assert graphs["count"].text == (
        "(Ann, person.friend, Dora) (Ann, person.marriage, CVT1) (Ann, person.marriage, CVT2)"
    )
    assert {name: graph.origin for name, graph in graphs.items()} == {
        "executed": "query", "count": "query", "form": "form", "annotated": "annotated", "searched": "searched",
    }  # fmt: skip
    assert drawn.counts["by_query"] == 2 and drawn.counts["by_form"] == 1
    assert drawn.counts["without_path"] == drawn.counts["unreached"] == 0


def test_the_corpus_is_written_from_executed_queries(
    world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Fake(lambda prompt, seed: prompt)
    monkeypatch.setattr(corpus, "load_model", lambda spec, llm, budget=None: reader)
    counts = corpus.generate(
        Workspace(tmp_path),
        kg=world / "kg",
        dkg=world / "dkg",
        questions=world / "questions",
        options=CorpusOptions(teacher="template", qa_model="reader", max_triples=4),
        llm=LlmOptions(),
        seed=3,
    )
    rows = {row["question"]: row for row in pl.read_parquet(tmp_path / "corpus.parquet").iter_rows(named=True)}
    assert rows["executed"]["verdict"] == "kept" and "Carl" in rows["executed"]["text"]
    assert counts["train_by_query"] == 2 and counts["train_by_form"] == 1
    assert counts["shared_with_test"] == counts["test_questions_shared"] == 1, "the test question of the same query"
