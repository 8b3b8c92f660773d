"""Tables as grids of cells, before anybody knows whether a terminal or a page will show them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from kgqa_core.evaluation.labels import main_split, p_text, percent

WIDE = 6
"""Columns of cells up to which a grid stands as it is; a wider one is transposed, or shown without intervals."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A score in [0, 1] with its interval; gain in percent, `gained` says whether a gain is to be shown at all."""

    value: float
    low: float
    high: float
    n: int
    gain: float | None = None
    gained: bool = False

    def __str__(self) -> str:
        return percent(self.value)


@dataclass(frozen=True, slots=True)
class PairedCell:
    """Questions fixed and broken, of n, against a baseline; p of McNemar's test, where it was computed."""

    helpful: int
    harmful: int
    n: int
    p: float | None = None

    def __str__(self) -> str:
        counts = f"+{self.helpful:,} −{self.harmful:,}"
        return counts if self.p is None else f"{counts}  {p_text(self.p)}"


Entry = Cell | PairedCell | int | str | None
"""What stands in a grid; None where nothing was measured."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: the first column names the row, the others hold cells.  compact: without intervals."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Entry, ...]], ...]
    note: str = ""
    compact: bool = False

    @property
    def gains(self) -> bool:
        """Whether any cell shows a gain."""
        return any(isinstance(cell, Cell) and cell.gained for _, cells in self.rows for cell in cells)

    def transposed(self, first: str) -> Grid:
        """Rows as columns; `first` heads the new first column."""
        rows = tuple(
            ("Questions" if column == "n" else column, tuple(cells[index] for _, cells in self.rows))
            for index, column in enumerate(self.columns[1:])
        )
        return replace(self, columns=(first, *(name for name, _ in self.rows)), rows=rows)

    def fitted(self, first: str | None = None) -> Grid:
        """The grid itself, or transposed where it is wide and that makes it narrower; compact where it stays wide.

        first: head of the first column should it be transposed; without one it is not.
        """
        width = len(self.columns) - 1
        grid = self.transposed(first) if first is not None and width > WIDE and len(self.rows) < width else self
        return replace(grid, compact=grid.compact or len(grid.columns) - 1 > WIDE)


def make_cell(given: Mapping[str, Any] | None, gain: float | None = None, gained: bool = False) -> Cell | None:
    """A cell of the aggregates, `{"value", "low", "high", "n"}`."""
    if given is None:
        return None
    value = float(given["value"])
    shows_gain = gained and (gain is not None or value > 0)  # nothing is no gain over nothing
    return Cell(value, float(given["low"]), float(given["high"]), int(given["n"]), gain, shows_gain)


def score_cell(
    aggregates: Mapping[str, Any], experiment: str | None, metric: str, table: str = "scores", *, gains: bool = True
) -> Cell | None:
    """An experiment's score in the split that tables show, with its gain over no knowledge where there is one."""
    if experiment is None:
        return None
    by_split: Mapping[str, Any] = aggregates.get(table, {}).get(experiment, {})
    split = main_split(by_split)
    if split is None:
        return None
    gain: Mapping[str, float | None] = aggregates.get("gain_over_no_knowledge", {}).get(experiment, {})
    shown = gains and table == "scores" and metric in gain
    return make_cell(by_split[split].get(metric), gain.get(metric), shown)
