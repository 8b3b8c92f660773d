"""Passages are found for every question and put before the model, alone or below triples."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from kgqa_core.config import PassagesOptions
from kgqa_core.datasets.files.question import write_questions
from kgqa_core.errors import ArtifactError
from kgqa_core.kg.verbalise import KNOWLEDGE
from kgqa_core.passages.index import build
from kgqa_core.passages.search import SCHEMA, retrieve, write_knowledge
from kgqa_core.types import Question
from kgqa_core.workspace import Workspace
from tests.support.passages import documents, write_jsonl

QUESTIONS = [
    Question(id="q2", text="Who wrote own2?", split="test"),
    Question(id="q1", text="What of own1?", split="dev"),
    Question(id="q0", text="Never own0", split="train"),
    Question(id="q3", text="And it?", split="test", dialogue=(("user", "Tell me of own3"), ("agent", "Yes."))),
]


@pytest.fixture
def found(tmp_path: Path) -> Path:
    for name in ("questions", "index", "passages"):
        (tmp_path / name).mkdir()
    write_questions(tmp_path / "questions", QUESTIONS)
    options = PassagesOptions(corpus=str(write_jsonl(tmp_path / "c", documents(6))), retriever="bm25", k=2)
    build(Workspace(tmp_path / "index"), options=options, seed=1)
    counts = retrieve(
        Workspace(tmp_path / "passages"), index=tmp_path / "index", questions=tmp_path / "questions", options=options
    )
    assert counts == {"questions": 3, "passages": 3, "without": 0}
    return tmp_path


def test_each_dev_and_test_question_gets_its_passages_by_rank(found: Path) -> None:
    frame = pl.read_parquet(found / "passages" / "passages.parquet")
    assert dict(frame.schema) == SCHEMA
    assert frame.select("question", "rank", "document").rows() == [("q1", 0, "d1"), ("q2", 0, "d2"), ("q3", 0, "d3")]
    assert frame["text"][0].startswith("Title1: own1") and frame["score"].min() > 0


def test_training_questions_get_passages_where_facts_are_collected_for_them_too(found: Path) -> None:
    (found / "trained").mkdir()
    options = PassagesOptions(retriever="bm25", k=2)
    counts = retrieve(
        Workspace(found / "trained"),
        index=found / "index",
        questions=found / "questions",
        options=options,
        training=True,
    )
    frame = pl.read_parquet(found / "trained" / "passages.parquet")
    assert counts["questions"] == 4
    assert frame.filter(pl.col("question") == "q0")["document"].to_list() == ["d0"]


def test_passages_alone_are_numbered_lines(found: Path) -> None:
    (found / "out").mkdir()
    counts = write_knowledge(Workspace(found / "out"), questions=found / "questions", passages=found / "passages")
    frame = pl.read_parquet(found / "out" / "knowledge.parquet")
    assert dict(frame.schema) == KNOWLEDGE and frame["question"].to_list() == ["q0", "q1", "q2", "q3"]
    assert set(frame["retriever"]) == set(frame["format"]) == {"passages"}
    assert frame["text"][0] == "" and frame["text"][1].startswith("[1] Title1: own1 ")
    assert counts == {"questions": 4, "with_passages": 3, "with_facts": 0, "passages": 3}


def test_both_puts_the_triples_above_the_passages(found: Path) -> None:
    knowledge = {"q0": ("(x, y, z)", [5]), "q1": ("(a, b, c)", [4]), "q2": ("", [])}
    rows = [(question, "rigel", "triples", text, ids) for question, (text, ids) in knowledge.items()]
    for name in ("triples", "out"):
        (found / name).mkdir()
    pl.DataFrame(rows, schema=KNOWLEDGE, orient="row").write_parquet(found / "triples" / "knowledge.parquet")
    given = {"questions": found / "questions", "passages": found / "passages", "triples": found / "triples"}
    write_knowledge(Workspace(found / "out"), retriever="rigel", **given)
    frame = pl.read_parquet(found / "out" / "knowledge.parquet")
    texts = dict(frame.select("question", "text").rows())
    assert set(frame["retriever"]) == {"rigel"} and set(frame["format"]) == {"both"}
    assert texts["q1"].startswith("(a, b, c)\n[1] Title1: own1")
    assert texts["q2"].startswith("[1] Title2") and texts["q0"] == "(x, y, z)"
    assert frame["triples"].to_list() == [[5], [4], [], []]
    with pytest.raises(ArtifactError, match=r"\('rigel', 'triples'\), not the triples of 'hop_path'"):
        write_knowledge(Workspace(found / "out"), retriever="hop_path", **given)


def test_a_damaged_table_is_named(found: Path) -> None:
    (found / "passages" / "passages.parquet").write_bytes(b"PAR1")
    with pytest.raises(ArtifactError, match="passages.parquet cannot be read"):
        write_knowledge(Workspace(found), questions=found / "questions", passages=found / "passages")
