"""What was computed, as facts before the ones that a language model reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core.config import Knowledge
from kgqa_core.errors import StorageError
from kgqa_core.kg.verbalise import KNOWLEDGE
from kgqa_core.prompts import triple_form
from kgqa_core.store.tables import read_frame
from kgqa_core.symbolic.tables import read_computed
from kgqa_core.workspace import Workspace

MAX_RESULTS = 20
"""Names of a computed result that are put before the language model."""


def add_computed(workspace: Workspace, *, computed: Path, knowledge: Path, name: str) -> dict[str, Any]:
    """Writes knowledge.parquet, the texts of `knowledge` with computed results above them, and returns counts.

    name: `retriever/format` of both.  A question for which nothing was computed keeps its text.  Raises ArtifactError.
    """
    read = Knowledge.parse(name)
    retriever, form = str(read.variant), read.format
    frame = read_frame(knowledge / "knowledge.parquet")
    columns = ("question", "kind", "topics", "words", "answers")
    results = {
        question: result_text(kind, topics, words, answers[:MAX_RESULTS])
        for question, kind, topics, words, answers in read_computed(computed, columns).iter_rows()
    }
    rows = [
        (
            question,
            retriever,
            form,
            with_result(results.get(question, ""), text or ""),
            triples or [],
        )
        for question, text, triples in frame.sort("question").select("question", "text", "triples").iter_rows()
    ]
    try:
        pl.DataFrame(rows, schema=KNOWLEDGE, orient="row").write_parquet(workspace.out / "knowledge.parquet")
    except OSError as fault:
        raise StorageError(f"cannot write knowledge to {workspace.out}: {fault}; free space") from fault
    return {"questions": len(rows), "computed": sum(bool(results.get(row[0])) for row in rows)}


def result_text(kind: str, topics: Sequence[str], words: str, answers: Sequence[str]) -> str:
    """A result as triple-form text, one triple for each name; empty where there is none.

    The words of the question are the relation, for a small model copies from a triple that sounds like the question; of
    two that are compared the better one has it to the other.

    >>> result_text("count", ["Estonia"], "How many cities has", ["15"])
    '(Estonia, How many cities has, 15)'
    >>> result_text("compare", ["Chad", "Togo"], "Which is larger or", ["Chad"])
    '(Chad, Which is larger or, Togo)'
    """
    relation = words or "answer"
    if kind == "compare":
        return triple_form((one, relation, other) for one in answers for other in topics if other not in answers)
    return triple_form((topics[0] if topics else "it", relation, answer) for answer in answers)


def with_result(result: str, text: str) -> str:
    """A result before the text of facts."""
    return ", ".join(filter(None, (result, text)))
