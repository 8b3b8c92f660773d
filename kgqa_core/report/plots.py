"""Training curves as inline SVG, one small panel per metric."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import polars as pl
from markupsafe import Markup

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 340, 190, 38, 22, 10, 34
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
            round(LEFT + across * (WIDTH - LEFT - RIGHT), 1),
            round(HEIGHT - BOTTOM - (y - y_low) / y_span * (HEIGHT - TOP - BOTTOM), 1),
        )

    parts = []
    for tick in ticks:
        y = at(x_low, tick)[1]
        parts.append(
            Markup(
                '<path class="grid" d="M{l} {y}H{r}"/><text class="tick" x="{t}" y="{b}" text-anchor="end">{v}</text>'
            ).format(l=LEFT, y=y, r=WIDTH - RIGHT, t=LEFT - 7, b=y + 4, v=f"{tick:g}")
        )
    whole = all(float(x).is_integer() for x in xs)
    for tick in nice_ticks(x_low, x_high, most=5, whole=whole):
        if x_low <= tick <= x_high:
            parts.append(
                Markup('<text class="tick" x="{x}" y="{y}" text-anchor="middle">{v}</text>').format(
                    x=at(tick, y_low)[0], y=HEIGHT - BOTTOM + 16, v=f"{tick:,g}"
                )
            )
    for place, (split, points) in enumerate(lines):
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
                c=line_class(split, place), d=path, marks=marks
            )
        )
    label = Markup('<text class="tick" x="{x}" y="{y}" text-anchor="end">{a}</text>').format(
        x=WIDTH - RIGHT, y=HEIGHT - 5, a=axis
    )
    return Markup(
        '<svg class="chart" viewBox="0 0 {w} {h}" role="img" aria-label="training curve">{body}{label}</svg>'
    ).format(w=WIDTH, h=HEIGHT, body=Markup("").join(parts), label=label)


def line_class(split: str, place: int) -> str:
    """CSS class of a split's line: the same colour in every panel."""
    return {"train": "c0", "dev": "c1", "test": "c2"}.get(split, f"c{place % 4}")


def nice_ticks(low: float, high: float, most: int = 4, whole: bool = False) -> list[float]:
    """Round numbers that enclose [low, high], about `most` steps apart; whole numbers when asked."""
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
    kept = points[::stride]
    return kept if kept[-1] == points[-1] else [*kept, points[-1]]
