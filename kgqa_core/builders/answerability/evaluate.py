"""Stage `answerability_scores`: parsers on a benchmark, with and without thresholds (Patidar et al. 2023, Table 3).

What a parser proposes first is its prediction; nothing falls back on another form, for that would defeat abstention.
It is believed when it passes an entity and a form threshold; below them the answer is NK.  The thresholds are tuned on
the dev questions for the best exact match, and used on dev and test.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kgqa_core.builders.answerability.records import Benchmark, read_benchmark
from kgqa_core.builders.answerability.score import Scored, by_group, gold, same_form, score
from kgqa_core.errors import InputError
from kgqa_core.metrics.answerability import METRICS, Predicted, exact_match
from kgqa_core.metrics.significance import bootstrap_interval
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.parsing.parsed_forms import ParsedForm, read_parsed
from kgqa_core.store.artifacts import write_json
from kgqa_core.types import SPLITS

Floats = NDArray[np.float64]

STEPS = 200
"""Entity thresholds that are tried at most, at equal shares of the questions."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """entity: smallest confidence in the least certain entity of a form.  form: smallest probability of the form.

    0 lets everything through.
    """

    entity: float = 0.0
    form: float = 0.0

    def hold(self, best: ParsedForm) -> bool:
        """Whether a form is believed."""
        return best.rho >= self.entity and math.exp(best.score) >= self.form


@dataclass(frozen=True, slots=True)
class Tried:
    """A question's best form.  kept, dropped: exact match when it is believed, and when the answer is NK."""

    rho: float
    probability: float
    believed: float
    dropped: float


def decide(rows: Sequence[ParsedForm], thresholds: Thresholds | None = None) -> Predicted | None:
    """What a system says of a question, from its forms, best first; only the first counts.

    Without thresholds a question without form has no prediction; with them it is below every threshold, which is NK.
    """
    if not rows:
        return None if thresholds is None else Predicted()
    best = rows[0]
    if best.form is None or (thresholds is not None and not thresholds.hold(best)):
        return Predicted()
    return Predicted(best.form, frozenset(best.answers))


def tune(tried: Sequence[Tried]) -> Thresholds:
    """The thresholds with the highest sum of exact match; of equal ones those that believe most.

    Each lies halfway between two values that were seen, or at 0.
    """
    if not tried:
        return Thresholds()
    rho = np.array([one.rho for one in tried])
    order = np.argsort([-one.probability for one in tried], kind="stable")
    probability = np.array([tried[place].probability for place in order])
    gain = np.array([tried[place].believed - tried[place].dropped for place in order])
    ends = np.append(probability[1:] != probability[:-1], True)  # a threshold cannot part what is equal
    best, found = -np.inf, Thresholds()
    for entity in _cuts(rho):
        sums = np.append(0.0, np.cumsum(np.where(rho[order] >= entity, gain, 0.0)))
        sums[1:][~ends] = -np.inf
        place = len(sums) - 1 - int(np.argmax(sums[::-1]))
        if sums[place] > best:
            best, found = float(sums[place]), Thresholds(entity, _between(probability, place))
    return found


def _cuts(values: Floats) -> list[float]:
    """0, and thresholds between neighbouring values."""
    distinct = np.unique(values)
    if len(distinct) > STEPS:
        distinct = np.unique(np.quantile(values, np.linspace(0, 1, STEPS), method="nearest"))
    return [0.0, *((distinct[1:] + distinct[:-1]) / 2).tolist()]


def _between(falling: Floats, believed: int) -> float:
    """A threshold that keeps the first `kept` of falling probabilities."""
    if believed == len(falling):
        return 0.0
    if believed == 0:
        return math.nextafter(float(falling[0]), 2.0)
    return float(falling[believed - 1] + falling[believed]) / 2


AGGREGATES, SCORES = "aggregates.json", "scores.parquet"
DEV, TEST = SPLITS[1:]

_COLUMNS: dict[str, type[pl.DataType]] = {
    "parser": pl.String, "training": pl.String, "thresholds": pl.Boolean, "split": pl.String, "question": pl.String,
    "form": pl.String, "missing": pl.Boolean, **dict.fromkeys(METRICS, pl.Float64),
}  # fmt: skip
"""Columns of scores.parquet; form: None where the answer is NK; missing: whether nothing was predicted."""


def evaluate(
    out: Path,
    *,
    benchmark: Path,
    parsed: Mapping[str, Path],
    seed: int,
    monitor: Monitor = QUIET,
    work: Path | None = None,
) -> dict[str, Any]:
    """Writes aggregates.json and scores.parquet, and returns counts.

    parsed: `parser/training` → what that parser says of the dev and test questions.  A score is a mean with its 95 %
    bootstrap interval.  Raises InputError for a parser that parsed questions of another benchmark, and ArtifactError.
    """
    made = read_benchmark(benchmark)
    systems: list[dict[str, Any]] = []
    rows: list[tuple[Any, ...]] = []
    for number, (name, folder) in enumerate(parsed.items(), start=1):
        parser, _, training = name.partition("/")
        forms = read_parsed(folder)
        _check(name, forms, made)
        for thresholds in (None, tune_on(made, forms)):
            predicted = {one.id: decide(forms.get(one.id, ()), thresholds) for one in made.questions}
            given = {question: one for question, one in predicted.items() if one is not None}
            system: dict[str, Any] = {"parser": parser, "training": training, "thresholds": None, "scores": {}}
            if thresholds is not None:
                system["thresholds"] = {key: round(value, 6) for key, value in asdict(thresholds).items()}
            for split in (DEV, TEST):
                scored = score(made, given, split)
                system["scores"][split] = {group: _cells(members, seed) for group, members in by_group(scored).items()}
                row_key = (parser, training, thresholds is not None, split)
                rows += [(*row_key, *_row(one, given.get(one.question.id))) for one in scored]
            systems.append(system)
        monitor.progress(number, len(parsed), "parsers")
    pl.DataFrame(rows, schema=_COLUMNS, orient="row").write_parquet(out / SCORES, compression="zstd")
    write_json(out / AGGREGATES, {"systems": systems, "statistics": made.statistics})
    return {
        "systems": len(systems),
        "questions": sum(one.split == TEST for one in made.questions),
        **_headline(systems),
    }


def tune_on(benchmark: Benchmark, parsed: Mapping[str, Sequence[ParsedForm]], split: str = DEV) -> Thresholds:
    """The thresholds with the best exact match over all questions of a split."""
    tried = []
    for question, ideal in zip(benchmark.questions, benchmark.ideal, strict=True):
        rows = parsed.get(question.id, ())
        if question.split == split and rows and rows[0].form is not None:
            wanted = gold(question, ideal)
            believed, dropped = (
                exact_match(wanted, decide(rows), same_form),
                exact_match(wanted, Predicted(), same_form),
            )
            tried.append(Tried(rows[0].rho, math.exp(rows[0].score), believed, dropped))
    return tune(tried)


def _check(name: str, forms: Mapping[str, Sequence[ParsedForm]], benchmark: Benchmark) -> None:
    known = {one.id for one in benchmark.questions}
    other = sorted(set(forms) - known)
    if other:
        raise InputError(f"{name} parsed {len(other)} questions that are not in {benchmark.folder}, as {other[0]!r}")
    if not any(one.split == TEST and one.id in forms for one in benchmark.questions):
        raise InputError(f"{name} parsed no test question of {benchmark.folder}; parse dev and test")


def _cells(scored: Sequence[Scored], seed: int) -> dict[str, Any]:
    return {
        metric: bootstrap_interval([one.values[metric] for one in scored], seed=seed).rounded() for metric in METRICS
    }


def _row(scored: Scored, predicted: Predicted | None) -> tuple[Any, ...]:
    form = None if predicted is None else predicted.form
    return scored.question.id, form, predicted is None, *(scored.values[metric] for metric in METRICS)


def _headline(systems: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Exact match on test of what can and cannot be answered, with thresholds, by system."""
    return {
        f"{system['parser']}/{system['training']}/{group}": system["scores"][TEST][group]["EM"]["value"]
        for system in systems
        for group in ("A", "U")
        if system["thresholds"] is not None and group in system["scores"][TEST]
    }
