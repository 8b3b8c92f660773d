"""Proposed forms of questions: how they are run, and the table of a `parsed` artifact."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from kgqa_core.errors import ArtifactError, FormError, FormTimeout
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.execute import Result, answer_texts
from kgqa_core.logic.forms import Count, Form
from kgqa_core.logic.memory import MemoryGraph
from kgqa_core.papers.grailqability.parsing.examples import ParseExample
from kgqa_core.store.tables import read_frame

FILE = "parsed.parquet"

SCHEMA: dict[str, Any] = {
    "question": pl.String, "rank": pl.Int32, "form": pl.String, "score": pl.Float64, "rho": pl.Float64,
    "answers": pl.List(pl.String), "empty": pl.Boolean,
}  # fmt: skip
"""Columns of parsed.parquet."""


@dataclass(frozen=True, slots=True)
class ParsedForm:
    """One form that a parser proposes.

    rank: 0 is the best.  form: as text, None for "this graph has no form for it".  score: logarithm of the parser's
    probability of it among what it proposed, `None` included; at most 0.  rho: the linker's confidence in the least
    certain entity that the form names, 1 where it names none.  answers: what it finds in the graph, as
    `logic.execute.answer_texts` writes it.  empty: whether it finds nothing (a count of 0 is nothing); None where it
    was not run.
    """

    question: str
    rank: int
    form: str | None
    score: float
    rho: float = 1.0
    answers: tuple[str, ...] = ()
    empty: bool | None = None


def write_parsed(folder: Path, rows: Iterable[ParsedForm]) -> Path:
    """Writes `parsed.parquet` into `folder`, sorted by question and rank, and returns its path."""
    table = [asdict(row) for row in sorted(rows, key=lambda row: (row.question, row.rank))]
    path = folder / FILE
    pl.DataFrame(table, schema=SCHEMA, orient="row").write_parquet(path, compression="zstd")
    return path


def read_parsed(folder: Path) -> dict[str, list[ParsedForm]]:
    """The forms of each question, best first.  Raises ArtifactError."""
    path = folder / FILE
    frame = read_frame(path)
    if dict(frame.schema) != SCHEMA:
        raise ArtifactError(f"{path} has other columns than this version writes; delete its folder and run again")
    parsed: dict[str, list[ParsedForm]] = {}
    for row in frame.iter_rows(named=True):
        parsed.setdefault(row["question"], []).append(ParsedForm(**{**row, "answers": tuple(row["answers"])}))
    return parsed


Scored = tuple[Form | None, float, float]
"""A form, its log-probability and the least ρ of its entities; None is "no form"."""


def normalise_scores(forms: Sequence[Scored]) -> list[Scored]:
    """The forms with the logarithms of their shares of the probability, at most 0, best first, ties by text."""
    if not forms:
        return []
    total = float(np.logaddexp.reduce([score for _, score, _ in forms]))
    order = sorted(forms, key=lambda one: (-one[1], str(one[0])))
    return [(form, min(0.0, score - total), rho) for form, score, rho in order]


class Runner:
    """Runs forms on one open graph, each once."""

    def __init__(self, store: KgStore, graph: MemoryGraph) -> None:
        self.store, self.graph = store, graph
        self._results: dict[Form, Result | None] = {}

    def run(self, form: Form | None) -> Result | None:
        """The result of a form; None where it cannot be run."""
        if form is None:
            return None
        if form not in self._results:
            try:
                self._results[form] = self.graph.execute(form)
            except (FormError, FormTimeout):
                self._results[form] = None
        return self._results[form]

    def rows(self, ids: Sequence[str], best: Sequence[Sequence[Scored]]) -> list[list[ParsedForm]]:
        """The forms of each question, in their order, with their answers."""
        results = [[self.run(form) for form, _, _ in scored] for scored in best]
        nodes = {node for scored in results for result in scored if result is not None for node in result.nodes}
        keys = self.store.entity_keys(sorted(nodes))
        parsed = []
        for question, scored, run in zip(ids, best, results, strict=True):
            rows = []
            for index, ((form, score, rho), result) in enumerate(zip(scored, run, strict=True)):
                more: dict[str, Any] = {}
                if form is not None and result is not None:
                    more = {"answers": answer_texts(form, result, keys), "empty": finds_nothing(form, result)}
                rows.append(ParsedForm(question, index, None if form is None else str(form), score, rho, **more))
            parsed.append(rows)
        return parsed


def is_empty(form: Form, runner: Runner) -> bool:
    """Whether a form finds nothing, or cannot be run."""
    result = runner.run(form)
    return result is None or finds_nothing(form, result)


def finds_nothing(form: Form, result: Result) -> bool:
    """Whether a form finds nothing; a count of 0 is nothing."""
    return result.value == 0 if isinstance(form, Count) else result.empty


def tally(selected: Sequence[ParseExample], rows: Sequence[ParsedForm]) -> dict[str, Any]:
    """Counts that every parser's stage returns."""
    first = [row for row in rows if row.rank == 0]
    return {
        "questions": len(selected),
        "parsed": len(first),
        "no_form": sum(row.form is None for row in first),
        "empty": sum(row.empty is True for row in first),
        "not_run": sum(row.form is not None and row.empty is None for row in rows),
        "by_split": dict(sorted(Counter(example.split for example in selected).items())),
    }
