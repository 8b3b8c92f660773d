"""Tables of linked topics: how well they were found, and what it costs to start from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kgqa_core.config import Experiment
from kgqa_core.evaluation.labels import (
    LINKS,
    METRICS,
    knowledge_label,
    knowledge_place,
    p_text,
    percent,
    retriever_label,
)
from kgqa_core.metrics.links import LINK_METRICS
from kgqa_core.report.grid import Grid, score_cell


def links_table(aggregates: Mapping[str, Any]) -> Grid:
    """Precision, recall and F1 of the linked topics, and recall among the first five candidates."""
    cells = tuple(score_cell(aggregates, LINKS, metric, gains=False) for metric in LINK_METRICS)
    rows = (("Linked topics", cells),) if any(cells) else ()
    note = "Against the gold topics, mean over the questions that have gold topics in the graph."
    return Grid("Linked topics", ("Topics", *(METRICS[metric] for metric in LINK_METRICS)), rows, note)


def costs_table(aggregates: Mapping[str, Any]) -> Grid:
    """What each experiment loses when it starts from linked topics instead of gold ones, in points."""
    told = sorted(
        aggregates.get("linking", ()),
        key=lambda row: (Experiment.parse(row["experiment"]).format != "-", knowledge_place(row["experiment"])),
    )
    rows = []
    for row in told:
        alone = Experiment.parse(row["against"]).alone
        name = f"{retriever_label(row['against'])} alone" if alone else knowledge_label(row["against"])
        lost = f"{_points(row['loss'])} [{_points(row['low'])}, {_points(row['high'])}]"
        counts = f"{row['only_gold']:,} / {row['only_linked']:,}"
        counts = counts if row["p"] is None else f"{counts}, {p_text(row['p'])}"
        scores = (percent(row["gold"]), percent(row["linked"]))
        rows.append((f"{name}, {METRICS.get(row['metric'], row['metric'])}", (*scores, lost, counts)))
    columns = ("Experiment", "Gold", "Linked", "Loss", "Won by gold / linked")
    note = "Loss: gold less linked topics over the same questions, in points with the paired 95 % interval."
    return Grid("What linking costs", columns, tuple(rows), note)


def _points(value: float) -> str:
    """0.012 → `1.2`, −0.004 → `−0.4`."""
    text = f"{100 * value:.1f}"
    return ("0.0" if text == "-0.0" else text).replace("-", "−")
