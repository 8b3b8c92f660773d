"""What was computed, as facts before the ones that a language model reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core.answering.symbolic.compute import read_computed
from kgqa_core.config import SymbolicOptions, split_knowledge
from kgqa_core.errors import ArtifactError, StorageError
from kgqa_core.kg.verbalise import KNOWLEDGE
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.prompts import triple_form


def add_computed(
    out: Path,
    *,
    computed: Path,
    knowledge: Path,
    name: str,
    options: SymbolicOptions,
    monitor: Monitor = QUIET,
    work: Path | None = None,
) -> dict[str, Any]:
    """Writes knowledge.parquet, the texts of `knowledge` with computed results above them, and returns counts.

    name: `retriever/format` of both.  A question for which nothing was computed keeps its text.  Raises ArtifactError.
    """
    retriever, form = split_knowledge(name)
    try:
        frame = pl.read_parquet(knowledge / "knowledge.parquet")
    except (OSError, pl.exceptions.PolarsError) as fault:
        raise ArtifactError(f"knowledge artifact {knowledge} cannot be read: {fault}; run the stage again") from fault
    results = {
        question: told(topics, answers[: options.told])
        for question, topics, answers in read_computed(computed).select("question", "topics", "answers").iter_rows()
    }
    rows = [
        (question, retriever, form, joined(results.get(question, ""), text or ""), triples or [])
        for question, text, triples in frame.sort("question").select("question", "text", "triples").iter_rows()
    ]
    try:
        pl.DataFrame(rows, schema=KNOWLEDGE, orient="row").write_parquet(out / "knowledge.parquet")
    except OSError as fault:
        raise StorageError(f"cannot write knowledge to {out}: {fault}; free space") from fault
    return {"questions": len(rows), "computed": sum(bool(results.get(row[0])) for row in rows)}


def told(topics: Sequence[str], answers: Sequence[str]) -> str:
    """A result as triple-form text, one triple for each name; empty where there is none."""
    return triple_form(("answer", "is", answer) for answer in answers)


def joined(result: str, text: str) -> str:
    """A result before the text of facts."""
    return ", ".join(filter(None, (result, text)))
