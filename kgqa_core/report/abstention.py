"""Knowing when not to answer, in a report: risk against coverage, reliability, and the reasons that were given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup
from rich.table import Table

from kgqa_core.evaluation.labels import percent
from kgqa_core.report.charts import BOTTOM, LEFT, RIGHT, TOP, frame, tick_text
from kgqa_core.report.grid import Grid
from kgqa_core.report.terminal import titled_table

WIDTH, HEIGHT = 420, 300
TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)
LARGEST, SMALLEST = 9.0, 2.0
"""Radius of a reliability mark that stands for all questions, and of one for hardly any."""

GROUPS = {"why": "What is missing", "drop": "Dropped", "level": "New to the system"}
RISKS = {"answerable": "not in the graph", "answer": "not in the graph or answered wrongly"}
"""Key of a risk-coverage curve → what counts as an error."""


@dataclass(frozen=True, slots=True)
class Abstention:
    """What the page shows.  legend: (classes, label) of the risk-coverage plot."""

    scores: Grid
    groups: Grid
    reasons: Grid
    risk: Markup
    reliability: Markup
    legend: tuple[tuple[str, str], ...]


def abstention_part(aggregates: Mapping[str, Any]) -> Abstention | None:
    """Tables and plots, or None where abstention was not measured."""
    results = aggregates.get("abstention")
    if not results:
        return None
    return Abstention(
        scores_grid(results),
        groups_grid(results),
        reasons_grid(results),
        risk_plot(results["curves"]),
        reliability_plot(results["reliability"]),
        tuple((f"s{index}", text) for index, text in enumerate(RISKS.values())),
    )


def scores_grid(found: Mapping[str, Any]) -> Grid:
    """One row a number."""
    rows = [
        ("AUROC, answerable against unanswerable", _area(found["auroc"], found["auroc_interval"])),
        ("Calibration error (ECE)", percent(found["ece"])),
        ("Area under risk-coverage", f"{found['area']:.3f} (best order {found['best_area']:.3f})"),
        ("Decided rightly whether to answer", percent(found["accuracy"])),
        ("Answered, of what the graph answers", _share(found["answered_of_answerable"])),
        ("Not answered, of what it does not", _share(found["declined_of_unanswerable"])),
        ("Wrong answers, of those given", _share(found["risk"])),
        ("Wrong answers, were all given", _share(found["risk_without"])),
        ("Wrong reasons", _share(found["wrong_reasons"])),
        ("Wrong reasons, by what was dropped", _share(found["wrong_reasons_by_drop"])),
    ]
    n = found["n"]
    note = f"{n['answerable']:,} answerable and {n['unanswerable']:,} unanswerable test questions."
    return Grid("Knowing when not to answer", ("", "Score"), tuple((name, (text,)) for name, text in rows), note)


def groups_grid(found: Mapping[str, Any]) -> Grid:
    """AUROC of each group of unanswerable questions against all answerable ones."""
    rows = tuple(
        (f"{title}: {name}", (f"{own['auroc']:.3f}", int(own["n"])))
        for key, title in GROUPS.items()
        for name, own in found["auroc_by"].get(key, {}).items()
    )
    return Grid("Against the answerable", ("Unanswerable", "AUROC", "n"), rows)


def reasons_grid(found: Mapping[str, Any]) -> Grid:
    """What is missing × the reason that was given, of unanswerable questions that were not answered."""
    table: Mapping[str, Mapping[str, int]] = found["reasons"]
    rows = tuple((f"{why}", tuple(own.values())) for why, own in table.items())
    return Grid(
        "Reasons",
        ("Missing, predicted:", *next(iter(table.values()))),
        rows,
        "Questions that the graph does not answer, and were not.",
    )


def terminal_tables(found: Mapping[str, Any]) -> list[Table]:
    """The three grids for a terminal."""
    return [
        titled_table(
            grid.title,
            grid.columns,
            ((name, *("–" if cell is None else str(cell) for cell in cells)) for name, cells in grid.rows),
            right=grid.columns[1:],
        )
        for grid in (scores_grid(found), groups_grid(found), reasons_grid(found))
    ]


def risk_plot(curves: Mapping[str, Sequence[Mapping[str, float]]]) -> Markup:
    """Share of wrong answers against the share of questions that are answered, the surest first."""
    parts = [_axes()]
    for index, (key, text) in enumerate(RISKS.items()):
        points = [(point["coverage"], point["risk"]) for point in curves.get(key, ())]
        if points:
            path = "L".join(f"{_x(x):.1f} {_y(y):.1f}" for x, y in points)
            parts.append(
                Markup('<g class="series s{n}"><path class="run" d="M{path}"><title>{text}</title></path></g>').format(
                    n=index, path=path, text=text
                )
            )
    return frame(parts, "answered, percent", "Errors in percent against coverage", WIDTH, HEIGHT)


def reliability_plot(bins: Sequence[Mapping[str, float]]) -> Markup:
    """How often the graph holds the answer against the confidence that it does; larger marks are more questions."""
    total = sum(bin["n"] for bin in bins) or 1
    parts = [
        _axes(),
        Markup('<path class="grid zero" d="M{a} {b}L{c} {d}"/>').format(a=_x(0), b=_y(0), c=_x(1), d=_y(1)),
    ]
    for bin in bins:
        radius = SMALLEST + (LARGEST - SMALLEST) * (bin["n"] / total) ** 0.5
        parts.append(
            Markup(
                '<g class="series s0"><circle class="mark" cx="{x:.1f}" cy="{y:.1f}" r="{r:.1f}"><title>confidence '
                "{mean}: {share} of {n:,}</title></circle></g>"
            ).format(
                x=_x(bin["mean"]), y=_y(bin["share"]), r=radius, mean=percent(bin["mean"]),
                share=percent(bin["share"]), n=int(bin["n"]),
            )
        )  # fmt: skip
    title = "Share that the graph answers in percent against confidence"
    return frame(parts, "confidence, percent", title, WIDTH, HEIGHT)


def _x(value: float) -> float:
    return LEFT + value * (WIDTH - LEFT - RIGHT)


def _y(value: float) -> float:
    return HEIGHT - BOTTOM - value * (HEIGHT - TOP - BOTTOM)


def _axes() -> Markup:
    axes = Markup("")
    for tick in TICKS:
        axes += Markup('<path class="grid" d="M{l} {y:.1f}H{r}"/>').format(l=LEFT, y=_y(tick), r=WIDTH - RIGHT)
        axes += tick_text(LEFT - 7, _y(tick) + 4, f"{100 * tick:g}", "end")
        axes += tick_text(_x(tick), HEIGHT - BOTTOM + 16, f"{100 * tick:g}", "middle")
    return axes


def _area(value: float | None, interval: Sequence[float] | None) -> str:
    if value is None:
        return "–"
    return f"{value:.3f}" if interval is None else f"{value:.3f} [{interval[0]:.3f}, {interval[1]:.3f}]"


def _share(value: float | None) -> str:
    return "–" if value is None else percent(value)
