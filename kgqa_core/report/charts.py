"""Charts of the report as SVG: axes and marks, and the charts that are made of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from markupsafe import Markup

from kgqa_core.evaluation.labels import percent
from kgqa_core.report.grid import Cell

CURVE_FRAME = 340, 190, 38, 22, 10, 34
"""Width and height of a training curve, and its margins at the left, the right, the top and the bottom."""
MOST_POINTS = 400

Line = tuple[str, list[tuple[float, float]]]


def training_curves(curves: pl.DataFrame | Path | None) -> list[tuple[str, Markup]]:
    """(metric, SVG) panels of a frame with `step` or `epoch`, `split`, `metric`, `value`; empty without one."""
    if isinstance(curves, Path):
        curves = pl.read_parquet(curves, glob=False) if curves.is_file() else None
    if curves is None or curves.is_empty():
        return []
    axis = next((name for name in ("step", "epoch") if name in curves.columns), None)
    if axis is None or not {"metric", "value"} <= set(curves.columns):
        return []
    if "split" not in curves.columns:
        curves = curves.with_columns(pl.lit("train").alias("split"))
    panels = []
    for (metric,), part in curves.sort("metric", "split", axis).group_by("metric", maintain_order=True):
        lines: list[Line] = []
        for (split,), line in part.group_by("split", maintain_order=True):
            points = [(float(x), float(y)) for x, y in line.select(axis, "value").iter_rows() if _finite(x, y)]
            if points:
                lines.append((str(split), _thin(points)))
        if lines:
            panels.append((str(metric), panel(lines, axis)))
    return panels


def panel(lines: Sequence[Line], axis: str) -> Markup:
    """One chart with a line per split; x grows to the right, y is scaled to the values."""
    width, height, left, right, top, bottom = CURVE_FRAME
    xs = [x for _, points in lines for x, _ in points]
    ys = [y for _, points in lines for _, y in points]
    x_low, x_high = min(xs), max(xs)
    y_low, y_high = min(ys), max(ys)
    if y_low >= 0 and y_high <= 1 and y_high > 0.3:
        y_low, y_high = 0.0, 1.0
    elif y_low >= 0 and y_low < 0.5 * y_high:
        y_low = 0.0
    ticks = nice_ticks(y_low, y_high)
    y_low, y_high = min(y_low, ticks[0]), max(y_high, ticks[-1])
    x_span, y_span = (x_high - x_low) or 1.0, (y_high - y_low) or 1.0

    def at(x: float, y: float) -> tuple[float, float]:
        across = 0.5 if x_high == x_low else (x - x_low) / x_span
        return (
            round(left + across * (width - left - right), 1),
            round(height - bottom - (y - y_low) / y_span * (height - top - bottom), 1),
        )

    parts = []
    for tick in ticks:
        y = at(x_low, tick)[1]
        parts.append(
            Markup(
                '<path class="grid" d="M{l} {y}H{r}"/><text class="tick" x="{t}" y="{b}" text-anchor="end">{v}</text>'
            ).format(l=left, y=y, r=width - right, t=left - 7, b=y + 4, v=f"{tick:g}")
        )
    whole = all(float(x).is_integer() for x in xs)
    for tick in nice_ticks(x_low, x_high, most=5, whole=whole):
        if x_low <= tick <= x_high:
            parts.append(
                Markup('<text class="tick" x="{x}" y="{y}" text-anchor="middle">{v}</text>').format(
                    x=at(tick, y_low)[0], y=height - bottom + 16, v=f"{tick:,g}"
                )
            )
    for index, (split, points) in enumerate(lines):
        path = "L".join(f"{x} {y}" for x, y in (at(*point) for point in points))
        dots = points if len(points) <= 30 else points[-1:]
        marks = Markup("").join(
            Markup('<circle cx="{x}" cy="{y}" r="2.6"><title>{s}, {a} {px:g}: {py:.4g}</title></circle>').format(
                x=at(*point)[0], y=at(*point)[1], s=split, a=axis, px=point[0], py=point[1]
            )
            for point in dots
        )
        parts.append(
            Markup('<g class="line {c}"><path d="M{d}"/>{marks}</g>').format(
                c=line_class(split, index), d=path, marks=marks
            )
        )
    label = Markup('<text class="tick" x="{x}" y="{y}" text-anchor="end">{a}</text>').format(
        x=width - right, y=height - 5, a=axis
    )
    return Markup(
        '<svg class="chart" viewBox="0 0 {w} {h}" role="img" aria-label="training curve">{body}{label}</svg>'
    ).format(w=width, h=height, body=Markup("").join(parts), label=label)


def line_class(split: str, place: int) -> str:
    """CSS class of a split's line: the same colour in every panel."""
    return {"train": "c0", "dev": "c1", "test": "c2"}.get(split, f"c{place % 4}")


def nice_ticks(low: float, high: float, most: int = 4, whole: bool = False) -> list[float]:
    """Round numbers that enclose [low, high], about `most` steps apart; optionally whole numbers."""
    if high <= low:
        high = low + 1
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough - 1e-12)
    if whole:
        step = max(1.0, math.ceil(step))
    first = math.floor(low / step + 1e-9)
    last = math.ceil(high / step - 1e-9)
    return [round(index * step, 10) for index in range(first, last + 1)]


def _finite(x: float | None, y: float | None) -> bool:
    return x is not None and y is not None and math.isfinite(x) and math.isfinite(y)


def _thin(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    if len(points) <= MOST_POINTS:
        return points
    stride = math.ceil(len(points) / MOST_POINTS)
    sampled = points[::stride]
    return sampled if sampled[-1] == points[-1] else [*sampled, points[-1]]


WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 480, 270, 44, 14, 12, 42
"""The same of the other charts."""
COLOURS = 8
"""Colours of the page's style; a ninth series has the first one again, with a mark of another shape."""
MARKS = (
    "M-3.4 0a3.4 3.4 0 1 0 6.8 0a3.4 3.4 0 1 0-6.8 0Z",
    "M-3.1-3.1h6.2v6.2h-6.2Z",
    "M0-4.2L4 3H-4Z",
    "M0-4.4L4.4 0 0 4.4-4.4 0Z",
)
"""Shapes around the origin: disc, square, triangle, diamond."""
APART = 5.0
"""Pixels between the intervals of two series in one group."""


@dataclass(frozen=True, slots=True)
class Series:
    """A setting's scores.  cells: one for each group, None where it has no such question.

    colour: number of its colour.  dashed: starts from linked entities.  mark: number of its shape.
    """

    label: str
    cells: tuple[Cell | None, ...]
    colour: int
    dashed: bool = False
    mark: int = 0

    @property
    def style(self) -> str:
        """Its classes on the page."""
        return f"s{self.colour % COLOURS}{' dashed' if self.dashed else ''}"


@dataclass(frozen=True, slots=True)
class ChartPoint:
    """A setting's score at its cost.  x: the cost."""

    label: str
    x: float
    cell: Cell
    colour: int
    dashed: bool = False
    mark: int = 0

    @property
    def style(self) -> str:
        """Its classes on the page."""
        return f"s{self.colour % COLOURS}{' hollow' if self.dashed else ''}"


def lines(series: Sequence[Series], groups: Sequence[str], axis: str, title: str) -> Markup:
    """One chart: groups from left to right, scores in percent upwards, with their intervals."""
    low, high, ticks = _range([cell for sery in series for cell in sery.cells if cell is not None])
    step = (WIDTH - LEFT - RIGHT) / max(1, len(groups))
    apart = min(APART, 0.7 * step / max(1, len(series)))
    parts = [_rules(ticks, low, high)]
    for index, group in enumerate(groups):
        parts.append(tick_text(LEFT + (index + 0.5) * step, HEIGHT - BOTTOM + 16, group, "middle"))
    for number, one in enumerate(series):
        shift = (number - (len(series) - 1) / 2) * apart
        points = [
            (LEFT + (index + 0.5) * step + shift, cell, group)
            for index, (cell, group) in enumerate(zip(one.cells, groups, strict=True))
            if cell is not None
        ]
        path = "L".join(f"{x:.1f} {_up(cell.value, low, high):.1f}" for x, cell, _ in points)
        marks = [
            _mark(x, cell, one.mark, f"{one.label}, {axis} {group}", low, high, len(series) <= COLOURS)
            for x, cell, group in points
        ]
        parts.append(
            Markup('<g class="series {style}"><path class="run" d="M{path}"/>{marks}</g>').format(
                style=one.style, path=path, marks=Markup("").join(marks)
            )
            if points
            else Markup("")
        )
    return frame(parts, axis, title)


def spots(points: Sequence[ChartPoint], axis: str, title: str) -> Markup:
    """One chart: cost from left to right, scores in percent upwards, with their intervals."""
    low, high, ticks = _range([point.cell for point in points])
    across = nice_ticks(0, max([point.x for point in points], default=1.0) or 1.0, most=6)
    span = across[-1] - across[0]

    def at(x: float) -> float:
        return LEFT + (x - across[0]) / span * (WIDTH - LEFT - RIGHT - 10)

    parts = [_rules(ticks, low, high)]
    parts += [tick_text(at(tick), HEIGHT - BOTTOM + 16, f"{tick:,g}", "middle") for tick in across]
    for point in points:
        title = f"{point.label}, {point.x:,.0f} {axis}"
        mark = _mark(at(point.x), point.cell, point.mark, title, low, high, True, " scale(1.5)")
        parts.append(Markup('<g class="series spot {style}">{mark}</g>').format(style=point.style, mark=mark))
    return frame(parts, axis, title)


def mark(shape: int) -> Markup:
    """A small drawing of a mark, for legends."""
    return Markup(
        '<svg class="key" viewBox="-13 -7 26 14" aria-hidden="true"><path class="run" d="M-13 0H13"/>'
        '<path class="mark" d="{shape}"/></svg>'
    ).format(shape=MARKS[shape % len(MARKS)])


def _range(cells: Sequence[Cell]) -> tuple[float, float, list[float]]:
    """Lowest and highest score that the chart shows, and the ticks between; 0 is always there."""
    low = min([0.0, *(cell.low for cell in cells)])
    high = max([0.05, *(cell.high for cell in cells)])
    ticks = nice_ticks(100 * low, 100 * high, most=5)
    return ticks[0] / 100, ticks[-1] / 100, [tick / 100 for tick in ticks]


def _up(value: float, low: float, high: float) -> float:
    return HEIGHT - BOTTOM - (value - low) / (high - low) * (HEIGHT - TOP - BOTTOM)


def _rules(ticks: Sequence[float], low: float, high: float) -> Markup:
    rules = Markup("")
    for tick in ticks:
        y = _up(tick, low, high)
        rules += Markup('<path class="grid{zero}" d="M{left} {y:.1f}H{right}"/>').format(
            zero=" zero" if tick == 0 and low < 0 else "", left=LEFT, y=y, right=WIDTH - RIGHT
        )
        rules += tick_text(LEFT - 7, y + 4, f"{100 * tick:g}".replace("-", "−"), "end")
    return rules


def _mark(
    x: float, cell: Cell, shape: int, title: str, low: float, high: float, bars: bool, larger: str = ""
) -> Markup:
    y, top, bottom = (_up(value, low, high) for value in (cell.value, cell.high, cell.low))
    bar = Markup('<path class="bar-i" d="M{x:.1f} {top:.1f}V{bottom:.1f}"/>').format(x=x, top=top, bottom=bottom)
    return Markup(
        '{bar}<path class="mark" transform="translate({x:.1f} {y:.1f}){larger}" d="{shape}"><title>{title}: {value} '
        "({low} to {high}, {n:,} questions)</title></path>"
    ).format(
        bar=bar if bars else Markup(""), x=x, y=y, shape=MARKS[shape % len(MARKS)], title=title, larger=larger,
        value=percent(cell.value), low=percent(cell.low), high=percent(cell.high), n=cell.n,
    )  # fmt: skip


def tick_text(x: float, y: float, text: str, anchor: str) -> Markup:
    """A text of an axis."""
    return Markup('<text class="tick" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>').format(
        x=x, y=y, anchor=anchor, text=text
    )


def frame(parts: Sequence[Markup], axis: str, title: str, width: int = WIDTH, height: int = HEIGHT) -> Markup:
    """A chart of its parts, with the name of the axis below."""
    label = tick_text(LEFT + (width - LEFT - RIGHT) / 2, height - 6, axis, "middle")
    return Markup(
        '<svg class="chart" viewBox="0 0 {w} {h}" role="img" aria-label="{title}">{body}{label}</svg>'
    ).format(w=width, h=height, title=title, body=Markup("").join(parts), label=label)
