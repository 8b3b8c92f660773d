"""Parsers on an answerability benchmark: the columns of the paper's Table 3, by drop, and by how new a gap is."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kgqa_core.papers.grailqability.builder.statistics import TABLES, ordered
from kgqa_core.papers.grailqability.metrics import METRICS
from kgqa_core.report.grid import Grid, make_cell
from kgqa_core.report.page import make_environment, without_unseen

PARSERS = {"rng": "Rank and generate", "decode": "Retrieve and decode"}

MEANINGS = {
    "F1(L)": "answers against those of the modified or the ideal graph, the better of precision and of recall each",
    "F1(R)": "answers against those of the modified graph",
    "EM": "the form is isomorphic to the gold one, or there is none and none is given",
}
WHOLE = ("all", "A", "U")
DROPS = (
    "NK", "NA", "type drop", "relation drop", "entity drop", "fact drop", "entity drop, NK", "entity drop, NA",
)  # fmt: skip
NEW = ("iid", "partial zero-shot", "full zero-shot", "zero-shot")


def rule_of(system: Mapping[str, Any]) -> str:
    """` + T`, ` + N`, or nothing."""
    thresholds = system.get("thresholds")
    return "" if not thresholds else " + N" if "nothing" in thresholds else " + T"


def system_label(system: Mapping[str, Any]) -> str:
    """`Rank and generate, A+U + T`; T: with thresholds, N: with one on "no form"."""
    name = PARSERS.get(system["parser"], system["parser"])
    return f"{name}, {system['training']}{rule_of(system)}"


def paper_table(aggregates: Mapping[str, Any], split: str = "test") -> Grid:
    """Parser and training × metric, of all, answerable and unanswerable questions (Patidar et al. 2023, Table 3)."""
    note = (
        "Percent. T: with an entity and a form threshold tuned on dev, N: with one on “no form”. A: answerable, "
        "U: unanswerable."
    )
    return _grid(aggregates, "Table 3", WHOLE, METRICS, split, note)


def groups_table(aggregates: Mapping[str, Any], metric: str, groups: Sequence[str], split: str = "test") -> Grid:
    """Parser and training × groups of unanswerable questions, for one metric."""
    what = "by drop" if groups is DROPS else "by how new what is missing is"
    return _grid(aggregates, f"{metric} {what}", groups, (metric,), split, "")


def report_grids(aggregates: Mapping[str, Any], split: str = "test") -> list[Grid]:
    """Every table of the page: Table 3, then each metric by drop and by level."""
    more = [groups_table(aggregates, metric, groups, split) for groups in (DROPS, NEW) for metric in reversed(METRICS)]
    return [paper_table(aggregates, split), *more]


def threshold_rows(aggregates: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The thresholds of each system that has them."""
    return [
        {"system": system_label(system), **{name: f"{value:.3f}" for name, value in system["thresholds"].items()}}
        for system in aggregates["systems"]
        if system["thresholds"]
    ]


def metric_rows(aggregates: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Scores under the names that trackers have them by: `rng/A+U/T/test/zero-shot/em`."""
    names = {"F1(L)": "f1_lenient", "F1(R)": "f1_regular", "EM": "em"}
    return [
        (
            "/".join(
                (s["parser"], s["training"], rule_of(s).removeprefix(" + ") or "no T", split, group, names[metric])
            ),
            float(cell["value"]),
        )
        for s in aggregates["systems"]
        for split, groups in s["scores"].items()
        for group, cells in groups.items()
        for metric, cell in cells.items()
    ]


def write(
    out: Path, *, aggregates: Mapping[str, Any], title: str, facts: Iterable[tuple[str, str]] = (), created: str = ""
) -> Path:
    """Writes the page `report.html` into the folder and returns its path.

    aggregates: of `builder.evaluate.evaluate`.  facts: names and values for the head of the page.
    """
    tables = [(name, ordered(aggregates["statistics"], key)) for key, name in TABLES.items()]
    text = (
        make_environment("kgqa_core.papers.grailqability")
        .get_template("answerability.html.j2")
        .render(
            title=title,
            facts=list(facts),
            created=created,
            grids=[grid.fitted() for grid in report_grids(aggregates) if grid.rows],
            thresholds=threshold_rows(aggregates),
            tables=[(name, rows) for name, rows in tables if rows],
            meanings=MEANINGS.items(),
        )
    )
    path = out / "report.html"
    scratch = path.with_suffix(".tmp")
    scratch.write_text(without_unseen(text), encoding="utf-8")
    os.replace(scratch, path)
    return path


def _grid(
    aggregates: Mapping[str, Any], title: str, groups: Sequence[str], metrics: Sequence[str], split: str, note: str
) -> Grid:
    systems = aggregates["systems"]
    there = [group for group in groups if any(group in system["scores"][split] for system in systems)]
    indices = [(group, metric) for group in there for metric in metrics]
    heads = (f"{group} {metric}" if len(metrics) > 1 else group for group, metric in indices)
    rows = tuple(
        (
            system_label(system),
            tuple(make_cell(system["scores"][split].get(group, {}).get(metric)) for group, metric in indices),
        )
        for system in systems
    )
    return Grid(title, ("Parser and training", *heads), rows if indices else (), note)
