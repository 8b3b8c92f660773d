"""What makes runs different: options, data, code, scores with intervals, questions won and lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from kgqa_core.config import Experiment
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.errors import ArtifactError, InputError, KgqaError, nearest
from kgqa_core.evaluation.labels import knowledge_order, retriever_experiments
from kgqa_core.evaluation.paired import difference, pair, read_scored
from kgqa_core.metrics.registry import metric_order
from kgqa_core.runs import changes
from kgqa_core.runs.answers import gold_names, outputs
from kgqa_core.runs.records import Record, artifact_folder

SHOWN_METRICS = ("exact", "hits_at_1")
"""Metrics that questions are won and lost by, when nobody says by which."""


def compare_runs(
    records: Sequence[Record], *, experiment: str | None = None, metric: str | None = None, level: float = 0.95
) -> dict[str, Any]:
    """Everything that differs between the first run and each other one, as plain values.

    experiment, metric: by which questions are won and lost; chosen when absent.
    Keys: `runs, configuration, data, code, trained, scores, only, questions, notes`.  A run whose artifacts are gone
    is named in `notes` and has no scores.  Raises InputError for an experiment or metric that no run has.
    """
    notes: list[str] = []
    scored = [_scored(record, notes) for record in records]
    first = scored[0]
    named = experiment_pairs(first, scored[1:])
    _check(experiment, metric, scored)
    return {
        "runs": [_run_row(record) for record in records],
        "configuration": changes.configuration(records),
        "data": changes.data(records),
        "code": changes.code(records),
        "trained": changes.trained(records),
        "level": level,
        "scores": _scores(first, scored[1:], named, level, records[0]),
        "only": _only(records, scored, named),
        "questions": [
            value
            for index, other in enumerate(scored[1:], start=1)
            if (value := _won_and_lost(records, index, first, other, named[index - 1], experiment, metric, notes))
        ],
        "notes": notes,
    }


def experiment_pairs(first: pl.DataFrame | None, others: Sequence[pl.DataFrame | None]) -> list[dict[str, str]]:
    """For each other run: experiment of the first run → the one it is compared with.

    The same name; or the same retriever and format, where each run has a single answerer.
    """
    first_names = _experiments(first)
    results = []
    for other in others:
        theirs = _experiments(other)
        pairs = {name: name for name in first_names if name in theirs}
        models = [{Experiment.parse(name).answerer for name in names} - {"-"} for names in (first_names, theirs)]
        if len(models[0]) == len(models[1]) == 1:
            by_knowledge = {replace(Experiment.parse(name), answerer="-"): name for name in theirs}
            read = {name: replace(Experiment.parse(name), answerer="-") for name in first_names if name not in pairs}
            pairs |= {name: by_knowledge[knowledge] for name, knowledge in read.items() if knowledge in by_knowledge}
        results.append({name: pairs[name] for name in first_names if name in pairs})
    return results


def _scored(record: Record, notes: list[str]) -> pl.DataFrame | None:
    try:
        return read_scored(artifact_folder(record, "scores"), artifact_folder(record, "questions"))
    except ArtifactError as fault:
        notes.append(f"scores of run {record['run_id']} ({record.get('status', 'unknown')}) are not there: {fault}")
        return None


def _experiments(frame: pl.DataFrame | None) -> list[str]:
    if frame is None:
        return []
    names = frame["experiment"].unique().to_list()
    alone = retriever_experiments(names)
    return [*alone, *sorted((name for name in names if name not in alone), key=knowledge_order)]


def _run_row(record: Record) -> dict[str, Any]:
    profile = record.get("profile") or {}
    return {
        "run_id": record["run_id"],
        "status": record.get("status", "unknown"),
        "profile": profile.get("name", ""),
        "kg": (profile.get("kg") or {}).get("name", ""),
        "questions": (profile.get("questions") or {}).get("name", ""),
        "commit": changes.commit(record),
        "report": record.get("report"),
        "mlflow_run_id": record.get("mlflow_run_id"),
    }


def _scores(
    first: pl.DataFrame | None,
    others: Sequence[pl.DataFrame | None],
    named: Sequence[Mapping[str, str]],
    level: float,
    record: Record,
) -> list[dict[str, Any]]:
    """Rows `{"experiment", "metric", "others"}`; others: a difference and its experiment for each run, or None."""
    if first is None:
        return []
    seed = int((record.get("profile") or {}).get("seed", 0))
    rows = []
    for experiment in _experiments(first):
        metrics = first.filter(pl.col("experiment") == experiment)["metric"].unique().to_list()
        for metric in sorted(metrics, key=metric_order):
            results: list[dict[str, Any] | None] = []
            for other, pairs in zip(others, named, strict=True):
                if other is None or experiment not in pairs:
                    results.append(None)
                    continue
                shared = pair(first, other, (experiment, pairs[experiment]), metric)
                if not shared.height:
                    results.append(None)
                    continue
                split = shared["split"][0]
                measured = difference(shared, seed=seed, level=level).rounded()
                results.append({**measured, "experiment": pairs[experiment], "split": split})
            if any(results):
                rows.append({"experiment": experiment, "metric": metric, "others": results})
    return rows


def _only(
    records: Sequence[Record], scored: Sequence[pl.DataFrame | None], named: Sequence[Mapping[str, str]]
) -> dict[str, list[str]]:
    """Run id → its experiments that nothing is compared with."""
    first = [name for name in _experiments(scored[0]) if not any(name in pairs for pairs in named)]
    results = {str(records[0]["run_id"]): first}
    for record, frame, pairs in zip(records[1:], scored[1:], named, strict=True):
        results[str(record["run_id"])] = [name for name in _experiments(frame) if name not in pairs.values()]
    return {run: names for run, names in results.items() if names}


def _check(experiment: str | None, metric: str | None, scored: Sequence[pl.DataFrame | None]) -> None:
    for word, value, column in (("experiment", experiment, "experiment"), ("metric", metric, "metric")):
        known = sorted({name for frame in scored if frame is not None for name in frame[column].unique().to_list()})
        if value is not None and value not in known:
            raise InputError(f"no {word} {value!r} in these runs; there are {', '.join(known)}{nearest(value, known)}")


def _won_and_lost(
    records: Sequence[Record],
    place: int,
    first: pl.DataFrame | None,
    other: pl.DataFrame | None,
    named: Mapping[str, str],
    experiment: str | None,
    metric: str | None,
    notes: list[str],
) -> dict[str, Any] | None:
    """Questions whose score rose and fell between the first run and another, with both answers and the gold ones."""
    if first is None or other is None:
        return None
    candidates = _candidates(first, named, experiment, metric)
    changed = (
        candidate
        for candidate in candidates
        if _changes(pair(first, other, (candidate[0], named[candidate[0]]), candidate[1]))
    )
    chosen = next(changed, candidates[0] if candidates else None)
    if chosen is None:
        notes.append(f"runs {records[0]['run_id']} and {records[place]['run_id']} share no experiment to list by")
        return None
    name, by = chosen
    pairs = pair(first, other, (name, named[name]), by)
    outputs_of_runs = [
        _outputs(record, one, notes) for record, one in ((records[0], name), (records[place], named[name]))
    ]
    questions_by_id = {
        question.id: question for question in read_questions(artifact_folder(records[place], "questions"))
    }

    def row(question: str, before: float, after: float) -> dict[str, Any]:
        one = questions_by_id[question]
        return {
            "id": question, "text": one.text, "gold": gold_names(one), "before": before, "after": after,
            "answer_before": outputs_of_runs[0].get(question), "answer_after": outputs_of_runs[1].get(question),
        }  # fmt: skip

    def rows(which: pl.Expr) -> list[dict[str, Any]]:
        return [row(*cells) for cells in pairs.filter(which).select("question", "before", "after").iter_rows()]

    return {
        "run_id": records[place]["run_id"],
        "experiment": name,
        "against": named[name],
        "metric": by,
        "n": pairs.height,
        "won": rows(pl.col("after") > pl.col("before")),
        "lost": rows(pl.col("after") < pl.col("before")),
    }


def _changes(pairs: pl.DataFrame) -> bool:
    return pairs.filter(pl.col("before") != pl.col("after")).height > 0


def _candidates(
    first: pl.DataFrame, named: Mapping[str, str], experiment: str | None, metric: str | None
) -> list[tuple[str, str]]:
    """(experiment, metric) to list questions by, best first: models that read facts, then retrievers alone."""
    candidates = []
    known = [name for name in named if experiment in (None, name)]
    parsed = {name: Experiment.parse(name) for name in known}
    reads = [name for name, one in parsed.items() if one.answerer != "-" and one.retriever != "none"]
    for name in sorted(reads, key=lambda read: (parsed[read].retriever == "random", knowledge_order(read))) + known:
        has = set(first.filter(pl.col("experiment") == name)["metric"].unique().to_list())
        by = next((one for one in ((metric,) if metric else SHOWN_METRICS) if one in has), None)
        if by is not None:
            candidates.append((name, by))
    return candidates


def _outputs(record: Record, experiment: str, notes: list[str]) -> dict[str, str]:
    try:
        return outputs(record, experiment)
    except (KgqaError, OSError) as fault:
        notes.append(f"answers of run {record['run_id']} are not there: {fault}")
        return {}
