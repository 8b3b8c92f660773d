"""Which road answered: the table of a report, and its line on the console."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kgqa_core.config import Experiment
from kgqa_core.evaluation.labels import knowledge_label, model_experiments, percent
from kgqa_core.evaluation.roads import CONFIDENCE, DECLINED, NOT_IN_GRAPH, SHARE, road_order
from kgqa_core.metrics.registry import metric_label
from kgqa_core.report.grid import Grid, make_cell

RIGHT = "exact"
"""Metric that says how often a road was right."""

Roads = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""road → name → a cell of the aggregates."""


def road_tables(aggregates: Mapping[str, Any]) -> list[Grid]:
    """A grid for each experiment whose answers have roads, a row a road."""
    return [road_table(experiment, roads) for experiment, roads in _experiments(aggregates)]


def road_table(experiment: str, roads: Roads) -> Grid:
    """Questions that each road of an experiment answered, how many were right, and the confidence in them."""
    unlinkable = any(NOT_IN_GRAPH in own for own in roads.values())
    rows = []
    for road, own in roads.items():
        cells = [make_cell(own.get(name)) for name in (SHARE, RIGHT, CONFIDENCE)]
        rows.append((road, (_count(own, SHARE), *cells, *([_count(own, NOT_IN_GRAPH)] if unlinkable else []))))
    columns = ("Road", "n", "Share of questions", metric_label(RIGHT), "Mean confidence")
    return Grid(_title(experiment), (*columns, *(["Not in the graph"] if unlinkable else [])), tuple(rows))


def road_line(aggregates: Mapping[str, Any]) -> str:
    """`auto, Rigel facts: labels 60 (85.0 % exact); 40 declined` of the first experiment with roads."""
    for experiment, roads in _experiments(aggregates):
        answered = [
            f"{road} {_count(own, SHARE):,} ({percent(own[RIGHT]['value'])} % {RIGHT})"
            for road, own in roads.items()
            if RIGHT in own
        ]
        declined = f"; {_count(roads[DECLINED], SHARE):,} {DECLINED}" if DECLINED in roads else ""
        return f"{_title(experiment)}: {', '.join(answered)}{declined}"
    return ""


def _experiments(aggregates: Mapping[str, Any]) -> list[tuple[str, Roads]]:
    """(experiment, its roads), in the order of the tables."""
    experiments: Mapping[str, Roads] = aggregates.get("by_road", {})
    names = [name for own in model_experiments(experiments).values() for name in own]
    return [
        (name, {road: experiments[name][road] for road in sorted(experiments[name], key=road_order)}) for name in names
    ]


def _title(experiment: str) -> str:
    return f"{Experiment.parse(experiment).answerer}, {knowledge_label(experiment)}"


def _count(cells: Mapping[str, Any], name: str) -> int:
    """Number of questions that a share stands for."""
    cell = cells.get(name, {"value": 0, "n": 0})
    return round(cell["value"] * cell["n"])
