"""Scores by road: what proposed the answers of `auto`, how often each was right, and how many questions it declined."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import polars as pl

from kgqa_core.datasets.files.answers import ROAD_SCHEMA
from kgqa_core.evaluation.aggregate import Cell
from kgqa_core.evaluation.labels import main_split
from kgqa_core.metrics.significance import bootstrap_interval
from kgqa_core.store.tables import read_frame
from kgqa_core.types import ROADS, Question

DECLINED = "declined"
"""Group of the questions that no road answered."""

SHARE, CONFIDENCE, NOT_IN_GRAPH = "share", "confidence", "not_in_graph"

Scores = Mapping[str, Mapping[str, float]]
"""question id → metric → value."""


def by_road(
    answers: Mapping[str, pl.DataFrame],
    rows: Mapping[str, Scores],
    records: Sequence[Question],
    *,
    samples: int,
    seed: int,
) -> dict[str, dict[str, dict[str, Cell]]]:
    """Experiment → road → mean of each metric, with its interval, over the questions that this road answered.

    answers: experiment → its rows; an experiment without a road is left out.  rows: experiment → its scores.
    Besides the metrics a road has `share`, of all questions of the split that tables show; `confidence`, of those
    that have one; and, where questions of the split are not in the graph, `not_in_graph`, the share of these.  The
    group `declined` has these three alone.
    """
    by_id = {record.id: record for record in records}
    results = {}
    for experiment, frame in sorted(answers.items()):
        roads = roads_of(frame)
        split = main_split({by_id[question].split for question in rows[experiment]})
        questions = [by_id[question] for question in rows[experiment] if by_id[question].split == split]
        if not roads or not questions:
            continue
        confidences = dict(frame.select("question", "confidence").drop_nulls().iter_rows())
        values = _values(questions, roads, confidences, rows[experiment])
        results[experiment] = {
            road: {
                name: bootstrap_interval(numbers, samples=samples, seed=seed).rounded()
                for name, numbers in values[road].items()
            }
            for road in sorted(values, key=road_order)
        }
    return results


def _values(
    questions: Sequence[Question], roads: Mapping[str, str], confidences: Mapping[str, float], scored: Scores
) -> dict[str, dict[str, list[float]]]:
    """Road → name → the values that are averaged."""
    groups: dict[str, list[Question]] = {}
    for question in questions:
        groups.setdefault(roads.get(question.id, DECLINED), []).append(question)
    unlinkable = any(question.unlinkable is not None for question in questions)
    results: dict[str, dict[str, list[float]]] = {}
    for road, members in groups.items():
        own = results[road] = {SHARE: [1.0] * len(members) + [0.0] * (len(questions) - len(members))}
        if known := [confidences[member.id] for member in members if member.id in confidences]:
            own[CONFIDENCE] = known
        if unlinkable:
            own[NOT_IN_GRAPH] = [float(member.unlinkable is not None) for member in members]
        for one in members if road != DECLINED else ():
            for metric, value in scored[one.id].items():
                own.setdefault(metric, []).append(value)
    return results


def roads_of(frame: pl.DataFrame) -> dict[str, str]:
    """Question → road of the questions that one answered; nothing where answers have no roads."""
    if not set(ROAD_SCHEMA) <= set(frame.columns):
        return {}
    return dict(frame.select("question", "road").drop_nulls().iter_rows())


def read_roads(answers: Iterable[Path]) -> dict[str, dict[str, str]]:
    """Experiment → question → road of `answers` artifacts.  Raises ArtifactError when one is missing or damaged."""
    results: dict[str, dict[str, str]] = {}
    for folder in answers:
        columns = ("question", "retriever", "format", "model")
        frame = read_frame(folder / "answers.parquet", columns, tuple(ROAD_SCHEMA))
        for (retriever, form, model), part in frame.group_by("retriever", "format", "model", maintain_order=True):
            if roads := roads_of(part):
                results[f"{retriever}/{form}/{model}"] = roads
    return results


def road_order(road: str) -> tuple[int, str]:
    """Sorts roads as `ROADS` has them, others by name, and last what was declined."""
    order = (*ROADS, DECLINED)
    return order.index(road) if road in order else len(ROADS), road
