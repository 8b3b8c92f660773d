"""Score tables after Sen et al. 2023, and all of them as a terminal shows them; the page shows the same grids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from string import ascii_uppercase
from typing import Any

from rich import box
from rich.table import Table

from kgqa_core.config import Experiment
from kgqa_core.evaluation.labels import (
    gain_text,
    knowledge_label,
    knowledge_order,
    model_experiments,
    p_text,
    percent,
    retriever_experiments,
    retriever_label,
)
from kgqa_core.metrics.registry import METRICS, metric_label, metric_names, metrics_shown
from kgqa_core.report.comparison import costs_table, helpful_table, links_table
from kgqa_core.report.grid import Cell, Entry, Grid, PairedCell, make_cell, score_cell
from kgqa_core.report.long_tail import RESPONSE_METRICS, short_settings_table
from kgqa_core.report.terminal import VisibleText
from kgqa_core.retrieval.registry import RETRIEVERS
from kgqa_core.types import COMPLEXITY_TYPES

OUTPUT_METRICS = tuple(sorted(metric_names("output"), key=lambda name: METRICS[name].values != "yes_no"))
"""Metrics of what an answerer puts out: those that say right or wrong first."""

TABLE_1_METRICS = metrics_shown("table_1")
MOST_COLUMNS = 4
"""Columns of scores that a terminal shows with intervals, and kinds of knowledge that are columns; more become rows."""


def table_1(aggregates: Mapping[str, Any], metric: str) -> Grid:
    """Answerer × knowledge for one metric, with the improvement over no knowledge (Sen et al. 2023, Table 1)."""
    models = model_experiments(aggregates.get("scores", {}))
    everything = sorted((name for names in models.values() for name in names), key=knowledge_order)
    columns = list(dict.fromkeys(map(knowledge_label, everything)))
    rows = []
    for model, names in models.items():
        by_label = {knowledge_label(name): name for name in names}
        rows.append((model, tuple(score_cell(aggregates, by_label.get(label), metric) for label in columns)))
    note = "Percent of all questions, 95 % interval, and improvement over No knowledge."
    return Grid(f"Table 1 · {metric_label(metric)}", ("Answerer", *columns), tuple(rows), note)


def retriever_table(aggregates: Mapping[str, Any]) -> Grid:
    """Retrievers without a language model; metrics of paths and pairs where any of them has these."""
    scores = aggregates.get("scores", {})
    names = retriever_experiments(scores)
    known = metric_names("entities", "facts", "hops", "paths", "pairs")
    metrics = [metric for metric in known if any(score_cell(aggregates, name, metric) for name in names)]
    rows = tuple((retriever_label(name), tuple(score_cell(aggregates, name, m) for m in metrics)) for name in names)
    columns = ("Retriever", *map(metric_label, metrics))
    return Grid("Retriever alone", columns, rows, _easiness(aggregates, names))


EASY = 0.5
"""Share of questions from which a retriever that does not read them says that the set is easy."""


def _easiness(aggregates: Mapping[str, Any], names: Sequence[str]) -> str:
    """Whether retrievers that do not read the question score high all the same; nothing where there is none."""
    blind = [name for name in names if (spec := RETRIEVERS.get(Experiment.parse(name).retriever)) and spec.blind]
    high = [
        f"{retriever_label(name)} reaches {metric_label(metric)} {percent(cell.value)} %"
        for name in blind
        for metric in ("hits_at_1", "recall_of_answers")
        if (cell := score_cell(aggregates, name, metric)) is not None and cell.value >= EASY
    ]
    if high:
        return f"An easy set: {', '.join(high)} without reading the question."
    does = "does" if len(blind) == 1 else "do"
    return f"{' and '.join(map(retriever_label, blind))} {does} not read the question." if blind else ""


def all_metrics_table(aggregates: Mapping[str, Any], model: str) -> Grid:
    """Every metric of one answerer."""
    names = model_experiments(aggregates.get("scores", {})).get(model, [])
    rows = tuple(
        (metric_label(metric), tuple(score_cell(aggregates, name, metric) for name in names))
        for metric in (*OUTPUT_METRICS, *metric_names("verdict"), *RESPONSE_METRICS)
        if metric in OUTPUT_METRICS or any(score_cell(aggregates, name, metric) for name in names)
    )
    return Grid(f"All metrics · {model}", ("Metric", *map(knowledge_label, names)), rows)


def breakdown_table(
    aggregates: Mapping[str, Any], key: str, model: str | None, metric: str, *, alone: bool = True
) -> Grid:
    """Scores by complexity type (`key` by_complexity; all nine types, then other groups) or by hops (by_hops).

    Columns: number of questions, Hits@1 of Rigel alone (or the first retriever) if wanted, `metric` of the answerer.
    """
    table = aggregates.get(key, {})
    retrievers = retriever_experiments(table)[: int(alone)]
    names = model_experiments(table).get(model or "", [])
    results = list(dict.fromkeys(group for name in (*retrievers, *names) for group in table[name]))
    if key == "by_complexity":
        groups = [*COMPLEXITY_TYPES, *(group for group in results if group not in COMPLEXITY_TYPES)] if results else []
        title, first = f"Table 2 · {metric_label(metric)} by complexity type", "Type"
    else:
        groups = sorted(results, key=lambda group: (len(group), group))
        title, first = f"{metric_label(metric)} by hops", "Hops"
    rows = []
    for group in groups:
        cells = [make_cell(table[name].get(group, {}).get("hits_at_1")) for name in retrievers]
        cells += [make_cell(table[name].get(group, {}).get(metric)) for name in names]
        counted = next((cell.n for cell in reversed(cells) if cell is not None), None)
        rows.append((group.replace("+", " + "), (counted, *cells)))
    columns = (
        first,
        "n",
        *(f"{retriever_label(name)} alone, Hits@1" for name in retrievers),
        *map(knowledge_label, names),
    )
    return Grid(title, columns, tuple(rows))


def without_leaked_table(aggregates: Mapping[str, Any], metric: str = "exact") -> Grid:
    """Every experiment with and without the test questions that training has seen."""
    columns = ("Experiment", "All questions", "Without same text", "Without same text or topic and path")
    rows = _beside(aggregates, metric, ("without_same_text", "without_leaked"))
    return Grid("With and without leaked questions", columns, rows)


def with_answers_table(aggregates: Mapping[str, Any], metric: str = "hit_rra") -> Grid:
    """Every experiment with and without questions that have no gold answer, which Wu et al. 2023 leave out.

    No rows where every question has one.
    """
    rows = _beside(aggregates, metric, ("with_answers",)) if aggregates.get("with_answers") else ()
    return Grid("Without questions that have no gold answer", ("Experiment", "All questions", "With answers"), rows)


def _beside(
    aggregates: Mapping[str, Any], metric: str, tables: Sequence[str]
) -> tuple[tuple[str, tuple[Entry, ...]], ...]:
    """A row an experiment: its score over all questions, then those of other tables of the aggregates."""
    rows = []
    scores = aggregates.get("scores", {})
    models = model_experiments(scores)
    named = [(name, "hits_at_1", f"{retriever_label(name)} alone, Hits@1") for name in retriever_experiments(scores)]
    for model, names in models.items():
        reader = f"{model}, " if len(models) > 1 else ""
        named += [(name, metric, f"{reader}{knowledge_label(name)}, {metric_label(metric)}") for name in names]
    for name, shown, label in named:
        others = [score_cell(aggregates, name, shown, key) for key in tables]
        rows.append((label, (score_cell(aggregates, name, shown, gains=False), *others)))
    return tuple(rows)


def overview_table(aggregates: Mapping[str, Any], model: str) -> Grid:
    """One row for each kind of knowledge of one answerer: Exact, Contains, Hit, and tokens of a prompt."""
    metrics = ("exact", "contains", "hit_rra")
    costs = aggregates.get("cost", {})
    names = model_experiments(aggregates.get("scores", {})).get(model, [])
    rows = []
    for name in names:
        tokens = costs.get(name, {}).get("prompt_tokens")
        cells = (score_cell(aggregates, name, metric, gains=False) for metric in metrics)
        rows.append((knowledge_label(name), (*cells, None if tokens is None else round(tokens))))
    return Grid(f"Table 1 · {model}", ("Knowledge", *map(metric_label, metrics), "Tokens"), tuple(rows))


def score_tables(aggregates: Mapping[str, Any]) -> list[Table]:
    """The console's tables: Table 1, Helpful and Harmful, retriever alone, Table 2, by hops; empty ones are left out.

    Where an answerer has more than four kinds of knowledge they are rows, named by a letter in the tables below.
    """
    models = model_experiments(aggregates.get("scores", {}))
    model = next(iter(models), "")
    many = max(map(len, models.values()), default=0) > MOST_COLUMNS
    tables: list[Table] = []
    if many:
        tables += [rich_table(overview_table(aggregates, name), letters=True, plain=True) for name in models]
    else:
        tables += _tables((table_1(aggregates, metric) for metric in TABLE_1_METRICS), plain=False)
    tables += _tables((helpful_table(aggregates, name, every=False) for name in models), plain=many)
    tables += _tables([retriever_table(aggregates)], plain=many)
    tables += _tables([links_table(aggregates), costs_table(aggregates)], plain=many)
    tables += _tables((short_settings_table(aggregates, name) for name in models), plain=True, intervals=False)
    for key in ("by_complexity", "by_hops"):
        grid = breakdown_table(aggregates, key, model, "exact", alone=not many)
        if many:
            grid = replace(grid, columns=(*grid.columns[:2], *ascii_uppercase[: len(grid.columns) - 2]))
        tables += _tables([grid], plain=many, intervals=False)
    notes = _notes(aggregates)
    if tables and notes:
        tables[-1].caption = notes
    return tables


def rich_table(grid: Grid, *, intervals: bool = True, letters: bool = False, plain: bool = False) -> Table:
    """A grid for the console; names are shown as they are, never read as markup.

    letters: rows are A, B, C ….  plain: without lines between columns, which saves room.
    """
    table = Table(
        title=VisibleText(grid.title),
        title_justify="left",
        title_style="bold",
        caption_justify="left",
        box=box.SIMPLE_HEAD if plain else box.HEAVY_HEAD,
        pad_edge=not plain,
        padding=(0, 1, 0, 0) if plain else (0, 1),
    )
    if letters:
        table.add_column("")
    for index, column in enumerate(grid.columns):
        table.add_column(VisibleText(column), justify="right" if index else "left", no_wrap=not index)
    for index, (name, cells) in enumerate(grid.rows):
        if all(cell is None for cell in cells):
            continue  # the report shows a type without questions as dashes, a terminal leaves it out
        letter = [VisibleText(ascii_uppercase[index % 26], style="dim")] if letters else []
        table.add_row(*letter, VisibleText(name), *(_rich_cell(cell, intervals) for cell in cells))
    return table


def _tables(grids: Iterable[Grid], *, plain: bool, intervals: bool = True) -> list[Table]:
    """Tables of the grids that hold anything; those of many columns leave the intervals to the report."""
    return [
        rich_table(grid, intervals=intervals and len(grid.columns) - 1 <= MOST_COLUMNS, plain=plain)
        for grid in grids
        if grid.rows and len(grid.columns) > 1
    ]


def _rich_cell(cell: Entry, interval: bool) -> VisibleText:
    if cell is None:
        return VisibleText("–", style="dim", value="")
    if isinstance(cell, int):
        return VisibleText(f"{cell:,}", value=cell)
    if isinstance(cell, str):
        return VisibleText(cell)
    if isinstance(cell, PairedCell):
        text = VisibleText(f"+{cell.helpful:,}", style="green").append(f" −{cell.harmful:,}", style="red")
        return text if cell.p is None else text.append(f"  {p_text(cell.p)}", style="not bold dim")
    text = VisibleText(percent(cell.value), style="bold")
    if interval:
        text.append(f" [{percent(cell.low)}, {percent(cell.high)}]", style="not bold dim")
    if cell.gained:
        text.append(f"\n{gain_text(cell.gain)}", style="not bold green" if (cell.gain or 0) >= 0 else "not bold red")
    return text


def _notes(aggregates: Mapping[str, Any]) -> str:
    unlinkable = {split: n for split, n in aggregates.get("n_unlinkable", {}).items() if n}
    notes = [f"{n} {split} question(s) cannot be linked to the graph and score 0." for split, n in unlinkable.items()]
    easy = _easiness(aggregates, retriever_experiments(aggregates.get("scores", {})))
    notes += [easy] if easy.startswith("An easy set") else []
    leaked = aggregates.get("leakage", {}).get("leaked", 0)
    if leaked:
        notes.append(f"{leaked} test question(s) were seen in training; scores without them are in the report.")
    return " ".join(notes)


def chart_rows(aggregates: Mapping[str, Any], model: str, metric: str) -> Sequence[tuple[str, str, Cell]]:
    """(retriever, label, cell) of each knowledge of one answerer, for the bars of the headline."""
    rows = []
    for name in model_experiments(aggregates.get("scores", {})).get(model, []):
        cell = score_cell(aggregates, name, metric)
        if cell is not None:
            rows.append((Experiment.parse(name).retriever, knowledge_label(name), cell))
    return rows
