"""Reads back what a retriever found, from the tables of a `facts` artifact."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core.store.tables import read_frame
from kgqa_core.types import Fact, Retrieved


def read_retrieved(folder: Path, wanted: Iterable[str]) -> dict[str, Retrieved]:
    """Question id → what the artifact holds of it, but the ranked pairs.  Raises ArtifactError when it is damaged."""
    questions = pl.DataFrame({"question": list(wanted)}, schema={"question": pl.String})

    def rows(table: str, *columns: str) -> Iterator[tuple[Any, ...]]:
        frame = read_frame(folder / table).join(questions, on="question", how="semi")
        return frame.sort("question", "rank").select("question", *columns).iter_rows()

    facts: dict[str, list[Fact]] = {}
    for question, *row in rows("facts.parquet", "rank", "score", "hop", "triple", "direction", "path"):
        facts.setdefault(question, []).append(Fact(*row))
    entities: dict[str, list[tuple[int, float]]] = {}
    for question, entity, score in rows("entities.parquet", "entity", "score"):
        entities.setdefault(question, []).append((entity, score))
    paths: dict[str, list[tuple[tuple[str, ...], float]]] = {}
    if (folder / "paths.parquet").is_file():
        for question, path, score in rows("paths.parquet", "path", "score"):
            paths.setdefault(question, []).append((tuple(path), score))
    meta = read_frame(folder / "facts_meta.parquet").join(questions, on="question", how="semi")
    return {
        question: Retrieved(
            question, tuple(facts.get(question, ())), tuple(entities.get(question, ())), truncated, tuple(attention),
            tuple(paths.get(question, ())),
        )
        for question, truncated, attention in meta.select("question", "truncated", "hop_attention").iter_rows()
    }  # fmt: skip
