"""Score tables: built once as grids of cells, shown on the console by rich and on the page by the template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table
from rich.text import Text

from kgqa_core.report.labels import (
    KNOWLEDGE,
    METRICS,
    gain_text,
    knowledge_label,
    main_split,
    model_experiments,
    percent,
    retriever_experiments,
    retriever_label,
)
from kgqa_core.types import COMPLEXITY_TYPES

RETRIEVER_METRICS = ("hits_at_1", "hits_at_5", "recall_of_answers")
TEXT_METRICS = ("exact", "contains", "contains_substring", "hit_rra", "hit_rra_substring", "f1")
TABLE_1_METRICS = ("exact", "contains")


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
class Grid:
    """A table: the first column names the row, the others hold cells; None where nothing was measured."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell | int | None, ...]], ...]
    note: str = ""


def table_1(aggregates: Mapping[str, Any], metric: str) -> Grid:
    """Answerer × knowledge for one metric, with the improvement over no knowledge (Sen et al. 2023, Table 1)."""
    models = model_experiments(aggregates.get("scores", {}))
    columns = list(dict.fromkeys(knowledge_label(name) for names in models.values() for name in names))
    order = {label: place for place, label in enumerate(KNOWLEDGE.values())}
    columns.sort(key=lambda label: order.get(label, len(order)))
    rows = []
    for model, names in models.items():
        by_label = {knowledge_label(name): name for name in names}
        rows.append((model, tuple(_score(aggregates, by_label.get(label), metric) for label in columns)))
    note = "Percent of all questions, 95 % interval, and improvement over No knowledge."
    return Grid(f"Table 1 · {METRICS[metric]}", ("Answerer", *columns), tuple(rows), note)


def retriever_table(aggregates: Mapping[str, Any]) -> Grid:
    """Retrievers without a language model."""
    rows = tuple(
        (retriever_label(name), tuple(_score(aggregates, name, metric) for metric in RETRIEVER_METRICS))
        for name in retriever_experiments(aggregates.get("scores", {}))
    )
    return Grid("Retriever alone", ("Retriever", *(METRICS[metric] for metric in RETRIEVER_METRICS)), rows)


def all_metrics_table(aggregates: Mapping[str, Any], model: str) -> Grid:
    """Every metric of one answerer."""
    names = model_experiments(aggregates.get("scores", {})).get(model, [])
    rows = tuple(
        (METRICS[metric], tuple(_score(aggregates, name, metric) for name in names)) for metric in TEXT_METRICS
    )
    return Grid(f"All metrics · {model}", ("Metric", *map(knowledge_label, names)), rows)


def breakdown_table(aggregates: Mapping[str, Any], key: str, model: str | None, metric: str) -> Grid:
    """Scores by complexity type (`key` by_complexity; all nine types, then other groups) or by hops (by_hops).

    Columns: number of questions, Hits@1 of Rigel alone (or the first retriever), then `metric` of the answerer.
    """
    table = aggregates.get(key, {})
    alone = retriever_experiments(table)[:1]
    names = model_experiments(table).get(model or "", [])
    found = list(dict.fromkeys(group for name in (*alone, *names) for group in table[name]))
    if key == "by_complexity":
        groups = [*COMPLEXITY_TYPES, *(group for group in found if group not in COMPLEXITY_TYPES)] if found else []
        title, first = f"Table 2 · {METRICS[metric]} by complexity type", "Type"
    else:
        groups = sorted(found, key=lambda group: (len(group), group))
        title, first = f"{METRICS[metric]} by hops", "Hops"
    rows = []
    for group in groups:
        cells = [_cell(table[name].get(group, {}).get("hits_at_1")) for name in alone]
        cells += [_cell(table[name].get(group, {}).get(metric)) for name in names]
        counted = next((cell.n for cell in reversed(cells) if cell is not None), None)
        rows.append((group.replace("+", " + "), (counted, *cells)))
    columns = (first, "n", *(f"{retriever_label(name)} alone, Hits@1" for name in alone), *map(knowledge_label, names))
    return Grid(title, columns, tuple(rows))


def without_leaked_table(aggregates: Mapping[str, Any], metric: str = "exact") -> Grid:
    """Every experiment with and without the test questions that training has seen."""
    rows = []
    scores = aggregates.get("scores", {})
    models = model_experiments(scores)
    named = [(name, "hits_at_1", f"{retriever_label(name)} alone, Hits@1") for name in retriever_experiments(scores)]
    for model, names in models.items():
        reader = f"{model}, " if len(models) > 1 else ""
        named += [(name, metric, f"{reader}{knowledge_label(name)}, {METRICS[metric]}") for name in names]
    for name, shown, label in named:
        without = [_score(aggregates, name, shown, key) for key in ("without_same_text", "without_leaked")]
        rows.append((label, (_score(aggregates, name, shown, gains=False), *without)))
    columns = ("Experiment", "All questions", "Without same text", "Without same text or topic and path")
    return Grid("With and without leaked questions", columns, tuple(rows))


def score_tables(aggregates: Mapping[str, Any]) -> list[Table]:
    """The console's tables: Table 1 (exact, contains), retriever alone, Table 2, by hops; empty ones are left out."""
    grids = [table_1(aggregates, metric) for metric in TABLE_1_METRICS]
    grids.append(retriever_table(aggregates))
    model = next(iter(model_experiments(aggregates.get("scores", {}))), None)
    grids += [breakdown_table(aggregates, key, model, "exact") for key in ("by_complexity", "by_hops")]
    wide = len(TABLE_1_METRICS) + 1  # tables with many columns leave the intervals to the report
    tables = [
        rich_table(grid, intervals=place < wide)
        for place, grid in enumerate(grids)
        if grid.rows and len(grid.columns) > 1
    ]
    notes = _notes(aggregates)
    if tables and notes:
        tables[-1].caption = notes
    return tables


def rich_table(grid: Grid, *, intervals: bool = True) -> Table:
    """A grid for the console; names are shown as they are, never read as markup."""
    table = Table(title=Text(grid.title), title_justify="left", title_style="bold", caption_justify="left")
    for place, column in enumerate(grid.columns):
        table.add_column(Text(column), justify="right" if place else "left", no_wrap=not place)
    for name, cells in grid.rows:
        if all(cell is None for cell in cells):
            continue  # the report shows a type without questions as dashes, a terminal leaves it out
        table.add_row(Text(name), *(_rich_cell(cell, intervals) for cell in cells))
    return table


def _rich_cell(cell: Cell | int | None, interval: bool) -> Text:
    if cell is None:
        return Text("–", style="dim")
    if isinstance(cell, int):
        return Text(f"{cell:,}")
    text = Text(percent(cell.value), style="bold")
    if interval:
        text.append(f" [{percent(cell.low)}, {percent(cell.high)}]", style="not bold dim")
    if cell.gained:
        text.append(f"\n{gain_text(cell.gain)}", style="not bold green" if (cell.gain or 0) >= 0 else "not bold red")
    return text


def _notes(aggregates: Mapping[str, Any]) -> str:
    unlinkable = {split: n for split, n in aggregates.get("n_unlinkable", {}).items() if n}
    notes = [f"{n} {split} question(s) cannot be linked to the graph and score 0." for split, n in unlinkable.items()]
    leaked = aggregates.get("leakage", {}).get("leaked", 0)
    if leaked:
        notes.append(f"{leaked} test question(s) were seen in training; scores without them are in the report.")
    return " ".join(notes)


def _score(
    aggregates: Mapping[str, Any], experiment: str | None, metric: str, table: str = "scores", *, gains: bool = True
) -> Cell | None:
    if experiment is None:
        return None
    by_split: Mapping[str, Any] = aggregates.get(table, {}).get(experiment, {})
    split = main_split(by_split)
    if split is None:
        return None
    gain: Mapping[str, float | None] = aggregates.get("gain_over_no_knowledge", {}).get(experiment, {})
    shown = gains and table == "scores" and metric in gain
    return _cell(by_split[split].get(metric), gain.get(metric), shown)


def _cell(given: Mapping[str, Any] | None, gain: float | None = None, gained: bool = False) -> Cell | None:
    if given is None:
        return None
    return Cell(float(given["value"]), float(given["low"]), float(given["high"]), int(given["n"]), gain, gained)


def chart_rows(aggregates: Mapping[str, Any], model: str, metric: str) -> Sequence[tuple[str, str, Cell]]:
    """(retriever, label, cell) of each knowledge of one answerer, for the bars of the headline."""
    rows = []
    for name in model_experiments(aggregates.get("scores", {})).get(model, []):
        cell = _score(aggregates, name, metric)
        if cell is not None:
            rows.append((name.split("/", 1)[0], knowledge_label(name), cell))
    return rows
