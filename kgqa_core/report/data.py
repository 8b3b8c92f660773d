"""What the report page is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core.report.summary import RunSummary


@dataclass(frozen=True, slots=True)
class ExampleFact:
    """A retrieved triple with names.  direction: +1 as stored, -1 followed from tail to head.  hop: from 1."""

    head: int
    relation: str
    tail: int
    head_name: str
    tail_name: str
    score: float
    hop: int
    direction: int


@dataclass(frozen=True, slots=True)
class ExampleOutput:
    """What one experiment answered, whether it contains a gold answer, and the road that it came by, if it has any."""

    experiment: str
    text: str
    correct: bool
    road: str | None = None


@dataclass(frozen=True, slots=True)
class Example:
    """One question worked through.

    kind: `fixed` (wrong without facts, right with them), `wrong` (still wrong with facts), `broken` (right without
    facts only) or `right`.  topics and gold_entities: entity ids.  gold: first names of the gold answers.
    ranked: (name, score) of the retriever's best entities.  read: (format, text) of sentences made from the facts.
    """

    question: str
    text: str
    kind: str
    complexity: str | None = None
    hops: int | None = None
    topics: frozenset[int] = frozenset()
    topic_names: tuple[str, ...] = ()
    gold_entities: frozenset[int] = frozenset()
    gold: tuple[str, ...] = ()
    facts: tuple[ExampleFact, ...] = ()
    ranked: tuple[tuple[str, float], ...] = ()
    outputs: tuple[ExampleOutput, ...] = ()
    read: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class ReportData:
    """Everything that the page shows; nothing is computed anew.

    profile: the run's configuration as plain values.  aggregates: content of `aggregates.json`.
    curves, path_curves: training of Rigel and of the path retriever, as frame or Parquet file with `step` or `epoch`,
    `split`, `metric`, `value`.  summary: what the page opens with.  corpus, rewriter: artifact folders.
    knowledge: any name → a knowledge artifact.
    stages: `{"name", "status": "cached" or "computed", "seconds", "digest"}` in order.
    notes: sentences on the run that stand first.  links: name → http(s) or relative address.  environment: versions,
    seed, git, digests; may be nested one level.  created: when the run finished, ISO 8601; now when absent.
    """

    title: str
    profile: Mapping[str, Any]
    aggregates: Mapping[str, Any]
    kg_counts: Mapping[str, Any] = field(default_factory=dict)
    dkg_counts: Mapping[str, Any] = field(default_factory=dict)
    question_counts: Mapping[str, Any] = field(default_factory=dict)
    curves: pl.DataFrame | Path | None = None
    path_curves: pl.DataFrame | Path | None = None
    corpus: Path | None = None
    rewriter: Path | None = None
    knowledge: Mapping[str, Path] = field(default_factory=dict)
    examples: Sequence[Example] = ()
    summary: RunSummary | None = None
    stages: Sequence[Mapping[str, Any]] = ()
    notes: Sequence[str] = ()
    links: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    attribution: str = ""
    created: str = ""
