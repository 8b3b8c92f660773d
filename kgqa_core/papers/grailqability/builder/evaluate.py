"""Stage `answerability_scores`: parsers on a benchmark, with and without thresholds (Patidar et al. 2023, Table 3).

What a parser proposes first is its prediction; nothing falls back on another form, for that would defeat abstention.
It is believed when it passes an entity and a form threshold; below them the answer is NK.  The thresholds are tuned on
the dev questions for the best exact match, and used on dev and test.

A parser that was trained on unanswerable questions too proposes "no form" itself.  Its third row, N, is ours: "no form"
is believed from a probability on, and below it the best form stands.  The probability is the one that is right of most
unanswerable dev questions while the answerable ones keep an exact match whose 95 % interval lies above LEAST_EXACT.
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

from kgqa_core.errors import InputError
from kgqa_core.metrics.significance import bootstrap_interval
from kgqa_core.papers.grailqability.builder.records import Benchmark, read_benchmark
from kgqa_core.papers.grailqability.builder.score import (
    Evaluator,
    Scored,
    by_group,
    gold,
    same_form,
    score,
)
from kgqa_core.papers.grailqability.metrics import METRICS, Predicted, SameForm, exact_match
from kgqa_core.papers.grailqability.parsing.parsed_forms import ParsedForm, read_parsed
from kgqa_core.store.artifacts import write_json
from kgqa_core.types import SPLITS
from kgqa_core.workspace import Workspace

Floats = NDArray[np.float64]

Z95 = 1.96
"""Standard errors of half a 95 % interval."""
LEAST_EXACT = 0.8
"""Exact match of answerable dev questions, as the lower end of its 95 % interval, that the row N keeps."""
STEPS = 200
"""Entity thresholds that are tried at most, at equal shares of the questions."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """entity: smallest confidence in the least certain entity of a form.  form: smallest probability of the form.

    0 lets everything through.  nothing: smallest probability of "no form" from which it is believed; below it the best
    form stands.  None believes what is first.
    """

    entity: float = 0.0
    form: float = 0.0
    nothing: float | None = None

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
    if thresholds is not None and thresholds.nothing is not None:
        proposed = next((row for row in rows if row.form is not None), None)
        if proposed is None or nothing_share(rows) >= thresholds.nothing:
            return Predicted()
        return Predicted(proposed.form, frozenset(proposed.answers))
    if best.form is None or (thresholds is not None and not thresholds.hold(best)):
        return Predicted()
    return Predicted(best.form, frozenset(best.answers))


def nothing_share(rows: Sequence[ParsedForm]) -> float:
    """Probability of "no form" among what is proposed, in [0, 1]."""
    if not rows:
        return 1.0
    top = max(row.score for row in rows)
    shares = [math.exp(row.score - top) for row in rows]
    return sum(share for share, row in zip(shares, rows, strict=True) if row.form is None) / sum(shares)


@dataclass(frozen=True, slots=True)
class Doubted:
    """A question.  nothing: probability of "no form" among its proposals.  believed: exact match of the best form, and
    dropped: of NK.  answerable: whether the graph holds the answer.
    """

    nothing: float
    believed: float
    dropped: float
    answerable: bool


def tune_nothing(doubted: Sequence[Doubted], min_exact: float = LEAST_EXACT) -> float:
    """The probability from which "no form" is believed: that with the best exact match of unanswerable questions among
    those that leave the answerable ones at least `min_exact`, or else with the best of the answerable ones.

    At least: with the lower end of the 95 % interval (normal approximation), since other questions are to have it too.

    It lies halfway between two that were seen; of equal ones the largest, which believes most forms.
    """
    values = np.unique([question.nothing for question in doubted])
    cuts = [2.0, *((values[1:] + values[:-1]) / 2)[::-1].tolist()]
    known = [question for question in doubted if question.answerable]
    lost = [question for question in doubted if not question.answerable]
    best, threshold = (-1, -np.inf), 2.0
    for cut in cuts:
        exact = _mean_exact(known, cut)
        low = exact - Z95 * math.sqrt(exact * (1 - exact) / max(1, len(known)))
        rank = (1, _mean_exact(lost, cut)) if low >= min_exact else (0, exact)
        if rank > best:
            best, threshold = rank, cut
    return threshold


def _mean_exact(doubted: Sequence[Doubted], cut: float) -> float:
    if not doubted:
        return 1.0
    return sum(question.dropped if question.nothing >= cut else question.believed for question in doubted) / len(
        doubted
    )


def tune(tried: Sequence[Tried]) -> Thresholds:
    """The thresholds with the highest sum of exact match; of equal ones those that believe most.

    Each lies halfway between two values that were seen, or at 0.
    """
    if not tried:
        return Thresholds()
    rho = np.array([trial.rho for trial in tried])
    order = np.argsort([-trial.probability for trial in tried], kind="stable")
    probability = np.array([tried[index].probability for index in order])
    gain = np.array([tried[index].believed - tried[index].dropped for index in order])
    ends = np.append(probability[1:] != probability[:-1], True)  # a threshold cannot part what is equal
    best, thresholds = -np.inf, Thresholds()
    for entity in _cuts(rho):
        sums = np.append(0.0, np.cumsum(np.where(rho[order] >= entity, gain, 0.0)))
        sums[1:][~ends] = -np.inf
        index = len(sums) - 1 - int(np.argmax(sums[::-1]))
        if sums[index] > best:
            best, thresholds = float(sums[index]), Thresholds(entity, _between(probability, index))
    return thresholds


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


AGGREGATES, SCORES, PREDICTIONS = "aggregates.json", "scores.parquet", "predictions"
DEV, TEST = SPLITS[1:]

_COLUMNS: dict[str, type[pl.DataType]] = {
    "parser": pl.String, "training": pl.String, "thresholds": pl.Boolean, "rule": pl.String, "split": pl.String,
    "question": pl.String,
    "form": pl.String, "missing": pl.Boolean, **dict.fromkeys(METRICS, pl.Float64),
}  # fmt: skip
"""Columns of scores.parquet.  rule: `T` with thresholds, `N`, or None.  form: None where the answer is NK.  missing:
whether nothing was predicted."""


def evaluate(
    workspace: Workspace, *, benchmark: Path, parsed: Mapping[str, Path], seed: int, by: Evaluator | None = None
) -> dict[str, Any]:
    """Writes aggregates.json, scores.parquet and predictions/, and returns counts.

    parsed: `parser/training` → what that parser says of the dev and test questions.  by: as of `score`.  A score is a
    mean with its 95 % bootstrap interval.  Test predictions are written as the published evaluation reads them.
    Raises InputError for a parser that parsed questions of another benchmark, and ArtifactError.
    """
    made, by = read_benchmark(benchmark), by or Evaluator(same_form)
    systems: list[dict[str, Any]] = []
    rows: list[tuple[Any, ...]] = []
    for number, (name, folder) in enumerate(parsed.items(), start=1):
        parser, _, training = name.partition("/")
        forms = read_parsed(folder)
        _check(name, forms, made)
        ruled: list[tuple[str | None, Thresholds | None]] = [(None, None), ("T", tune_on(made, forms, by.same))]
        if (least := nothing_on(made, forms, by.same)) is not None:
            ruled.append(("N", least))
        for rule, thresholds in ruled:
            predicted = {question.id: decide(forms.get(question.id, ()), thresholds) for question in made.questions}
            predictions = {question: prediction for question, prediction in predicted.items() if prediction is not None}
            system: dict[str, Any] = {"parser": parser, "training": training, "thresholds": None, "scores": {}}
            if thresholds is not None:
                used = ("nothing",) if rule == "N" else ("entity", "form")
                system["thresholds"] = {key: round(asdict(thresholds)[key], 6) for key in used}
            for split in (DEV, TEST):
                scored = score(made, predictions, split, by)
                system["scores"][split] = {group: _cells(members, seed) for group, members in by_group(scored).items()}
                row_key = (parser, training, rule == "T", rule, split)
                rows += [(*row_key, *_row(answer, predictions.get(answer.question.id))) for answer in scored]
            systems.append(system)
            _write_predictions(workspace.out, "-".join((parser, training, *filter(None, (rule,)))), scored, predictions)
        workspace.monitor.progress(number, len(parsed), "parsers")
    pl.DataFrame(rows, schema=_COLUMNS, orient="row").write_parquet(workspace.out / SCORES, compression="zstd")
    write_json(workspace.out / AGGREGATES, {"systems": systems, "statistics": made.statistics})
    return {
        "systems": len(systems),
        "questions": sum(question.split == TEST for question in made.questions),
        **_headline(systems),
    }


def _write_predictions(out: Path, name: str, scored: Sequence[Scored], predictions: Mapping[str, Predicted]) -> None:
    """Writes predictions/NAME.json: `{qid: {"logical_form": …, "answer": […]}}` of the questions that were scored."""
    given = {
        answer.question.id: predictions[answer.question.id] for answer in scored if answer.question.id in predictions
    }
    (out / PREDICTIONS).mkdir(exist_ok=True)
    document = {key: {"logical_form": one.form or "", "answer": sorted(one.answers)} for key, one in given.items()}
    write_json(out / PREDICTIONS / f"{name}.json", document)


def tune_on(benchmark: Benchmark, parsed: Mapping[str, Sequence[ParsedForm]], same: SameForm) -> Thresholds:
    """The thresholds with the best exact match over all dev questions."""
    tried = []
    for question, ideal in zip(benchmark.questions, benchmark.ideal, strict=True):
        rows = parsed.get(question.id, ())
        if question.split == DEV and rows and rows[0].form is not None:
            wanted = gold(question, ideal)
            believed, dropped = (
                exact_match(wanted, decide(rows), same),
                exact_match(wanted, Predicted(), same),
            )
            tried.append(Tried(rows[0].rho, math.exp(rows[0].score), believed, dropped))
    return tune(tried)


def nothing_on(benchmark: Benchmark, parsed: Mapping[str, Sequence[ParsedForm]], same: SameForm) -> Thresholds | None:
    """The threshold on "no form" of a parser, tuned on dev; None where the parser never proposes that."""
    doubted, some = [], False
    for question, ideal in zip(benchmark.questions, benchmark.ideal, strict=True):
        if question.split != DEV:
            continue
        rows = parsed.get(question.id, ())
        some = some or any(row.form is None for row in rows)
        wanted, best = gold(question, ideal), next((row for row in rows if row.form is not None), None)
        dropped = exact_match(wanted, Predicted(), same)
        believed = dropped if best is None else exact_match(wanted, Predicted(best.form, frozenset()), same)
        share = 1.0 if best is None else nothing_share(rows)
        doubted.append(Doubted(share, believed, dropped, question.answerable))
    return Thresholds(nothing=tune_nothing(doubted)) if some else None


def _check(name: str, forms: Mapping[str, Sequence[ParsedForm]], benchmark: Benchmark) -> None:
    known = {question.id for question in benchmark.questions}
    other = sorted(set(forms) - known)
    if other:
        raise InputError(f"{name} parsed {len(other)} questions that are not in {benchmark.folder}, as {other[0]!r}")
    if not any(question.split == TEST and question.id in forms for question in benchmark.questions):
        raise InputError(f"{name} parsed no test question of {benchmark.folder}; parse dev and test")


def _cells(scored: Sequence[Scored], seed: int) -> dict[str, Any]:
    return {
        metric: bootstrap_interval([answer.values[metric] for answer in scored], seed=seed).rounded()
        for metric in METRICS
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
        if "form" in (system["thresholds"] or ()) and group in system["scores"][TEST]
    }
