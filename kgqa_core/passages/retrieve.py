"""The stages that find passages for every question and put them, alone or below triples, before a model."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core.config import PASSAGES, PassagesOptions
from kgqa_core.datasets.question import read_questions
from kgqa_core.errors import ArtifactError
from kgqa_core.kg.verbalise import KNOWLEDGE
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.passages.search import PassageSearch, query_of
from kgqa_core.types import SPLITS, SPLITS_COLLECTED

AT_ONCE = 256
"""Questions that are searched for together."""

SCHEMA = {
    "question": pl.String, "rank": pl.Int32, "passage": pl.Int64, "document": pl.String, "score": pl.Float64,
    "text": pl.String,
}  # fmt: skip
"""Columns of passages.parquet.  score: cosine, BM25, or the sum of reciprocal ranks.  text: as it is read, with its
title."""


def retrieve(
    out: Path,
    *,
    index: Path,
    questions: Path,
    options: PassagesOptions,
    training: bool = False,
    monitor: Monitor = QUIET,
    work: Path | None = None,
    cache: Path | None = None,
) -> dict[str, Any]:
    """Writes passages.parquet: the k best passages of each dev and test question, by question and rank.

    index, questions: artifact folders.  training: for training questions too, as `retrieval.training` has it for facts.
    cache: folder that keeps vectors for all runs.
    Returns questions, passages (rows) and without: questions that no passage goes with.
    Raises ArtifactError, ModelError.
    """
    splits = SPLITS if training else SPLITS_COLLECTED
    asked = [question for question in read_questions(questions) if question.split in splits]
    asked.sort(key=lambda question: question.id)
    search = PassageSearch(index, options, cache or work)
    rows: list[tuple[Any, ...]] = []
    without = 0
    for start in range(0, len(asked), AT_ONCE):
        part = asked[start : start + AT_ONCE]
        found = search.search([query_of(question, options.history) for question in part])
        passages = search.passages.get(number for ranked in found for number, _ in ranked)
        for question, ranked in zip(part, found, strict=True):
            without += not ranked
            rows += [
                (question.id, rank, number, passages[number].document, score, passages[number].told)
                for rank, (number, score) in enumerate(ranked)
            ]
        monitor.progress(start + len(part), len(asked), "questions")
    pl.DataFrame(rows, schema=SCHEMA, orient="row").write_parquet(out / "passages.parquet", compression="zstd")
    return {"questions": len(asked), "passages": len(rows), "without": without}


def write_knowledge(
    out: Path,
    *,
    questions: Path,
    passages: Path,
    triples: Path | None = None,
    retriever: str = PASSAGES,
    monitor: Monitor = QUIET,
) -> dict[str, Any]:
    """Writes knowledge.parquet, one row for every question: its passages, numbered, one a line.

    passages: a `passages` artifact.  triples: the `knowledge` artifact of a retriever's triples; its text then stands
    above the passages (format `both`).  Raises ArtifactError when one is damaged or holds another retriever's triples.
    """
    form = PASSAGES if triples is None else "both"
    told: dict[str, list[str]] = {}
    for question, text in (
        _read(passages / "passages.parquet", ["question", "rank", "text"])
        .sort("question", "rank")
        .select("question", "text")
        .iter_rows()
    ):
        told.setdefault(question, []).append(text)
    above: dict[str, tuple[str, list[int]]] = {}
    if triples is not None:
        frame = _read(triples / "knowledge.parquet", list(KNOWLEDGE))
        if there := set(frame.select("retriever", "format").unique().rows()) - {(retriever, "triples")}:
            raise ArtifactError(f"{triples} holds knowledge of {sorted(there)[0]}, not the triples of {retriever!r}")
        above = {
            question: (text, ids) for question, text, ids in frame.select("question", "text", "triples").iter_rows()
        }
    rows = []
    for question in sorted(record.id for record in read_questions(questions)):
        text, ids = above.get(question, ("", []))
        rows.append((question, retriever, form, below_text(text, told.get(question, ())), ids))
    pl.DataFrame(rows, schema=KNOWLEDGE, orient="row").write_parquet(out / "knowledge.parquet")
    monitor.progress(len(rows), len(rows), "questions")
    return {
        "questions": len(rows),
        "with_passages": len(told),
        "with_facts": sum(bool(ids) for _, _, _, _, ids in rows),
        "passages": sum(map(len, told.values())),
    }


def below_text(text: str, passages: Iterable[str]) -> str:
    """Numbered passages below a text, which may be empty, as a model reads them."""
    return "\n".join([*([text] if text else []), *numbered(passages)])


def numbered(texts: Iterable[str]) -> list[str]:
    """Passages as a model reads them.

    >>> numbered(["Paris: It is old.", "Lyon: It is too."])
    ['[1] Paris: It is old.', '[2] Lyon: It is too.']
    """
    return [f"[{place}] {text}" for place, text in enumerate(texts, start=1)]


def _read(file: Path, columns: list[str]) -> pl.DataFrame:
    try:
        return pl.read_parquet(file, columns=columns, glob=False)
    except (OSError, pl.exceptions.PolarsError) as fault:
        raise ArtifactError(f"{file} cannot be read ({fault}); run its stage again") from None
