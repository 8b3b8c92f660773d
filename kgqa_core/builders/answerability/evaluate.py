"""Stage `answerability_scores`: parsers on a benchmark, with and without thresholds, as the paper's Table 3.

What a parser proposes first is its prediction; nothing falls back on another form, for that would defeat abstention.
The thresholds are tuned on the dev questions and used on dev and test.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core.builders.answerability.records import Benchmark, read_benchmark
from kgqa_core.builders.answerability.score import Scored, by_group, gold, same_form, score
from kgqa_core.builders.answerability.thresholds import Thresholds, Tried, decide, tune
from kgqa_core.errors import InputError
from kgqa_core.metrics.answerability import METRICS, Predicted, exact_match
from kgqa_core.metrics.significance import bootstrap_interval
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.parsing.parsed import Parsed, read_parsed
from kgqa_core.store.artifacts import write_json
from kgqa_core.types import SPLITS

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
            predicted = {one.id: decide(forms.get(one.id, ()), thresholds) for one in made.asked}
            given = {question: one for question, one in predicted.items() if one is not None}
            system: dict[str, Any] = {"parser": parser, "training": training, "thresholds": None, "scores": {}}
            if thresholds is not None:
                system["thresholds"] = {key: round(value, 6) for key, value in asdict(thresholds).items()}
            for split in (DEV, TEST):
                scored = score(made, given, split)
                system["scores"][split] = {group: _cells(mine, seed) for group, mine in by_group(scored).items()}
                told = (parser, training, thresholds is not None, split)
                rows += [(*told, *_row(one, given.get(one.asked.id))) for one in scored]
            systems.append(system)
        monitor.progress(number, len(parsed), "parsers")
    pl.DataFrame(rows, schema=_COLUMNS, orient="row").write_parquet(out / SCORES, compression="zstd")
    write_json(out / AGGREGATES, {"systems": systems, "statistics": made.statistics})
    return {"systems": len(systems), "questions": sum(one.split == TEST for one in made.asked), **_headline(systems)}


def tune_on(benchmark: Benchmark, parsed: Mapping[str, Sequence[Parsed]], split: str = DEV) -> Thresholds:
    """The thresholds with the best exact match over all questions of a split."""
    tried = []
    for asked, ideal in zip(benchmark.asked, benchmark.ideal, strict=True):
        rows = parsed.get(asked.id, ())
        if asked.split == split and rows and rows[0].form is not None:
            wanted = gold(asked, ideal)
            kept, dropped = (exact_match(wanted, decide(rows), same_form), exact_match(wanted, Predicted(), same_form))
            tried.append(Tried(rows[0].rho, math.exp(rows[0].score), kept, dropped))
    return tune(tried)


def _check(name: str, forms: Mapping[str, Sequence[Parsed]], benchmark: Benchmark) -> None:
    known = {one.id for one in benchmark.asked}
    other = sorted(set(forms) - known)
    if other:
        raise InputError(f"{name} parsed {len(other)} questions that are not in {benchmark.folder}, as {other[0]!r}")
    if not any(one.split == TEST and one.id in forms for one in benchmark.asked):
        raise InputError(f"{name} parsed no test question of {benchmark.folder}; parse dev and test")


def _cells(scored: Sequence[Scored], seed: int) -> dict[str, Any]:
    return {
        metric: bootstrap_interval([one.values[metric] for one in scored], seed=seed).rounded() for metric in METRICS
    }


def _row(scored: Scored, predicted: Predicted | None) -> tuple[Any, ...]:
    form = None if predicted is None else predicted.form
    return scored.asked.id, form, predicted is None, *(scored.values[metric] for metric in METRICS)


def _headline(systems: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Exact match on test of what can and cannot be answered, with thresholds, by system."""
    return {
        f"{system['parser']}/{system['training']}/{group}": system["scores"][TEST][group]["EM"]["value"]
        for system in systems
        for group in ("A", "U")
        if system["thresholds"] is not None and group in system["scores"][TEST]
    }
