"""What was computed of a question, and the two tables of a `computed` artifact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core.logic.forms import Form
from kgqa_core.store.tables import read_frame
from kgqa_core.types import NameSuggestion, OfferedReading

COMPUTED, PROOF = "computed.parquet", "proof.parquet"

SCHEMA: dict[str, Any] = {
    "question": pl.String, "kind": pl.String, "form": pl.String, "answers": pl.List(pl.String),
    "keys": pl.List(pl.String), "weight": pl.Float64, "truncated": pl.Boolean, "tried": pl.Int32,
    "topics": pl.List(pl.String), "words": pl.String, "confidence": pl.Float64, "min_confidence": pl.Float64,
    "road": pl.String, "reason": pl.String, "missing": pl.String,
}  # fmt: skip
"""Columns of computed.parquet: `ComputedAnswer` without its proof; `form` is None where nothing was found."""
PROOF_SCHEMA: dict[str, Any] = {"question": pl.String, "rank": pl.Int32, "triple": pl.Int64, "text": pl.String}
"""Columns of proof.parquet: the triples that the answer of a question rests on, in order of id, and as text."""


@dataclass(frozen=True, slots=True)
class ComputedAnswer:
    """What was computed for a question.

    kind: of the operation, one of KINDS; form: None where no form found anything.  answers: names of entities and
    literals in order of id, a number, or `yes` or `no`.  keys: of these.  weight: of the form.  proof: triples that the
    answer rests on; for a `no` those of what there is instead.  tried: forms that were run.  topics: names, by mention.
    words: the question without them.  Of the answerer `auto` also confidence: that the best answer, given or not, is
    right, None where that was not learnt or there is none; min_confidence: below which it declines; road: what proposed
    the form, one of `types.ROADS`; reason, as of `Answer`, and missing, in words, where it declines; reject:
    why nothing was computed, where it took too long.  unnamed: blank nodes without a name that are left out.
    suggestions: what words that were not read may mean.  readings: as of `Answer`.  chooser: which plan
    `symbolic.chooser` chose, or why none.  understood: what a question that refers back to another was read as.
    """

    question: str
    kind: str
    form: Form | None = None
    answers: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    weight: float = 0.0
    proof: tuple[int, ...] = ()
    truncated: bool = False
    tried: int = 0
    topics: tuple[str, ...] = ()
    words: str = ""
    confidence: float | None = None
    min_confidence: float | None = None
    road: str | None = None
    reason: str | None = None
    missing: str | None = None
    reject: str | None = None
    unnamed: int = 0
    suggestions: tuple[NameSuggestion, ...] = ()
    readings: tuple[OfferedReading, ...] = ()
    chooser: str | None = None
    understood: str | None = None


def read_computed(computed: Path, columns: Sequence[str]) -> pl.DataFrame:
    """Columns of computed.parquet of an artifact, in order of question, which is one.  Raises ArtifactError."""
    return read_frame(computed / COMPUTED, columns).sort("question")
