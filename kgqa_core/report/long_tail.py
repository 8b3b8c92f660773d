"""The long tail in a report: settings in one table, and plots in the manner of Figures 3 to 6 of Huang et al. 2024."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup

from kgqa_core.config import Experiment
from kgqa_core.evaluation.labels import (
    RETRIEVER_LABELS,
    knowledge_label,
    knowledge_order,
    model_experiments,
    retriever_experiments,
    retriever_label,
)
from kgqa_core.metrics.registry import metric_label, metric_names
from kgqa_core.report.charts import COLOURS, ChartPoint, Series, lines, spots
from kgqa_core.report.grid import Cell, Entry, Grid, make_cell, score_cell

RESPONSE_METRICS = metric_names("long_tail", "entailment")
"""Metrics of responses to questions of the long tail, in the order of the tables."""

CHARTED = ("km", "nli_overall")
"""Metrics that have plots."""

SETTINGS = {
    "-": "As given",
    "none": "None",
    "passages": "Passages",
    "triples": "Triples",
    "both": "Triples and passages",
}
"""What a response is made from, in the paper's words; other forms of knowledge keep their names."""

GROUPS = {
    "by_level": ("level", "level of popularity, I best known"),
    "by_triples": ("number of reference triples",) * 2,
}
"""Key of the aggregates → how its groups are called in a title and on an axis."""

ALWAYS = ("-", "none", "passages")
"""Settings that start from no entities."""


@dataclass(frozen=True, slots=True)
class Figure:
    """Charts of one kind, with the settings that they show.

    legend: (classes, label, number of the mark).  points: marks alone, without lines.
    """

    title: str
    panels: tuple[tuple[str, Markup], ...]
    legend: tuple[tuple[str, str, int], ...]
    points: bool = False


@dataclass(frozen=True, slots=True)
class LongTail:
    """What the page shows of the long tail."""

    settings: Grid
    retrieval: Grid
    breakdowns: tuple[Grid, ...]
    figures: tuple[Figure, ...]


def long_tail_part(aggregates: Mapping[str, Any]) -> LongTail | None:
    """Tables and plots, or None where no question is one of the long tail and no pairs were measured."""
    models = model_experiments(aggregates.get("scores", {}))
    charted = [metric for metric in CHARTED if _has(aggregates, metric)]
    levels = aggregates.get("by_level") or aggregates.get("by_triples")
    if not charted and not levels and "recall_by_k" not in aggregates:
        return None
    figures = []
    for key in GROUPS:
        for model, names in models.items():
            figures.append(_by_group(aggregates, key, names, charted, model if len(models) > 1 else ""))
    figures += [_pair_figure(aggregates), _token_figure(aggregates, models, charted)]
    breakdowns = [
        groups_table(aggregates, key, model, metric)
        for key in GROUPS
        for model in models
        for metric in RESPONSE_METRICS
    ]
    return LongTail(
        settings_table(aggregates),
        retrieval_table(aggregates),
        tuple(grid for grid in breakdowns if grid.rows),
        tuple(figure for figure in figures if figure.panels),
    )


def settings_table(aggregates: Mapping[str, Any]) -> Grid:
    """One row for each setting: what a response is made from, whose facts, from which entities, and its scores."""
    models = model_experiments(aggregates.get("scores", {}))
    metrics = [metric for metric in RESPONSE_METRICS if _has(aggregates, metric)]
    costs: Mapping[str, Any] = aggregates.get("cost", {})
    rows: list[tuple[str, tuple[Entry, ...]]] = []
    for model, names in models.items():
        for name in names:
            parsed = Experiment.parse(name)
            plain, form = parsed.retriever, parsed.format
            graph = plain not in ALWAYS
            entries: list[Entry] = [
                RETRIEVER_LABELS.get(plain, plain) if graph else None,
                parsed.topics if graph else None,
            ]
            entries += [model] if len(models) > 1 else []
            entries += [score_cell(aggregates, name, metric, gains=False) for metric in metrics]
            tokens = costs.get(name, {}).get("prompt_tokens")
            rows.append((SETTINGS.get(form, form), (*entries, None if tokens is None else round(tokens))))
    if not metrics:
        rows = []
    heads = ("Setting", "Facts of", "Entities", *(("Answerer",) if len(models) > 1 else ()))
    note = "Percent; tokens of a prompt are means by the answerer's own count. Oracle facts come from gold annotations."
    grid = Grid("Settings", (*heads, *map(metric_label, metrics), "Prompt tokens"), tuple(rows), note)
    return grid.fitted()


def short_settings_table(aggregates: Mapping[str, Any], model: str) -> Grid:
    """The settings of one answerer, for a terminal: `Triples, KAPING linked` is one column."""
    grid = settings_table({**aggregates, "scores": _of_model(aggregates.get("scores", {}), model)})
    rows = []
    for name, (facts, entities, *cells) in grid.rows:
        entries = f"{name}, {facts}" if facts else name
        rows.append((f"{entries} linked" if entities == "linked" else entries, tuple(cells)))
    return Grid(f"Settings · {model}", ("Setting", *grid.columns[3:-1], "Tokens"), tuple(rows), compact=True)


def retrieval_table(aggregates: Mapping[str, Any]) -> Grid:
    """Pair recall of each retriever, in all and by level."""
    names = [name for name in retriever_experiments(aggregates.get("scores", {})) if _pair_cell(aggregates, name)]
    groups = _groups(aggregates, "by_level", names)
    table = aggregates.get("by_level", {})
    rows = tuple(
        (
            retriever_label(name),
            (
                _pair_cell(aggregates, name),
                *(make_cell(table.get(name, {}).get(group, {}).get("pair_recall")) for group in groups),
            ),
        )
        for name in names
    )
    note = "Share of the entity-relation pairs of the reference triples that are among a question's facts."
    columns = ("Retriever", "All", *(f"Level {group}" for group in groups))
    return Grid("Recall of entity-relation pairs", columns, rows, note)


def groups_table(aggregates: Mapping[str, Any], key: str, model: str, metric: str) -> Grid:
    """Settings × groups of questions (`key` by_level or by_triples), for one answerer and metric."""
    table = aggregates.get(key, {})
    names = [name for name in model_experiments(table).get(model, []) if _group_cells(table[name], metric)]
    groups = _groups(aggregates, key, names)
    rows = tuple(
        (knowledge_label(name), tuple(make_cell(table[name].get(group, {}).get(metric)) for group in groups))
        for name in names
    )
    many = len(model_experiments(aggregates.get("scores", {}))) > 1
    title = f"{metric_label(metric)} by {GROUPS[key][0]}{f' · {model}' if many else ''}"
    head = "Level {}" if key == "by_level" else "{}"
    return Grid(title, ("Knowledge", *(head.format(group) for group in groups)), rows)


def _by_group(
    aggregates: Mapping[str, Any], key: str, names: Sequence[str], metrics: Iterable[str], model: str
) -> Figure:
    """Each metric over the groups of questions, a line for each setting of one answerer."""
    table = aggregates.get(key, {})
    named, axis = GROUPS[key]
    panels = []
    for metric in metrics:
        own = [name for name in names if _group_cells(table.get(name, {}), metric)]
        groups = _groups(aggregates, key, own)
        series = [
            Series(
                knowledge_label(name),
                tuple(make_cell(table[name].get(group, {}).get(metric)) for group in groups),
                *_look(name, names),
            )
            for name in own
        ]
        if series:
            title = f"{metric_label(metric)} by {named}"
            panels.append((title, lines(series, groups, axis, title)))
    title = f"By {named}{f' · {model}' if model else ''}"
    return Figure(title, tuple(panels), _legend([(name, knowledge_label(name)) for name in names], names))


def _pair_figure(aggregates: Mapping[str, Any]) -> Figure:
    """Pair recall of the retrievers by level, and by the number of pairs read."""
    names = [name for name in retriever_experiments(aggregates.get("scores", {})) if _pair_cell(aggregates, name)]
    panels = []
    named = metric_label("pair_recall")
    for key, metric, axis, title in (
        ("by_level", "pair_recall", GROUPS["by_level"][1], f"{named} by level"),
        ("recall_by_k", None, "entity-relation pairs read, in the order of the facts", f"{named} by pairs read"),
    ):
        table = aggregates.get(key, {})
        groups = _groups(aggregates, key, names)
        series = []
        for name in names:
            results = [table.get(name, {}).get(group) for group in groups]
            cells = tuple(make_cell(cell if metric is None else (cell or {}).get(metric)) for cell in results)
            series.append(Series(retriever_label(name), cells, *_look(name, names)))
        series = [sery for sery in series if any(sery.cells)]
        if series:
            panels.append((title, lines(series, groups, axis, title)))
    legend = _legend([(name, retriever_label(name)) for name in names], names)
    return Figure("What retrieval finds", tuple(panels), legend)


def _token_figure(aggregates: Mapping[str, Any], models: Mapping[str, Sequence[str]], metrics: Iterable[str]) -> Figure:
    """Tokens of a prompt against each metric; where there are several answerers each has a shape."""
    costs: Mapping[str, Any] = aggregates.get("cost", {})
    names = list(dict.fromkeys(_setting(name) for own in models.values() for name in own))
    panels = []
    for metric in metrics:
        points = []
        for index, (model, own) in enumerate(models.items()):
            for name in own:
                tokens = costs.get(name, {}).get("prompt_tokens")
                cell = score_cell(aggregates, name, metric, gains=False)
                if tokens is not None and cell is not None:
                    colour, dashed, mark = _look(_setting(name), names)
                    label = knowledge_label(name) + (f", {model}" if len(models) > 1 else "")
                    shape = index if len(models) > 1 else mark
                    points.append(ChartPoint(label, float(tokens), cell, colour, dashed, shape))
        if points:
            title = f"{metric_label(metric)} against tokens of the prompt"
            panels.append((title, spots(points, "tokens of the prompt", title)))
    legend = list(_legend([(name, knowledge_label(name)) for name in names], names, spot=True))
    if len(models) > 1:
        legend = [(style, label, 0) for style, label, _ in legend]
        legend += [("plain", model, index) for index, model in enumerate(models)]
    return Figure("What a response costs", tuple(panels), tuple(legend), points=True)


def _look(name: str, names: Sequence[str]) -> tuple[int, bool, int]:
    """Colour, dashed, and mark of an experiment among those of a figure: linked has the colour of gold.

    The first colour is that of no knowledge.
    """
    known = list(dict.fromkeys(_gold(other) for other in ("none/none/-", *sorted(names, key=knowledge_order))))
    index = known.index(_gold(name))
    return index % COLOURS, Experiment.parse(name).linked, index // COLOURS


def _of_model(scores: Mapping[str, Any], model: str) -> dict[str, Any]:
    return {name: score for name, score in scores.items() if Experiment.parse(name).answerer == model}


def _gold(name: str) -> tuple[str, str]:
    parsed = Experiment.parse(name)
    return parsed.retriever, parsed.format


def _setting(name: str) -> str:
    return str(replace(Experiment.parse(name), answerer="-"))


def _legend(
    labelled: Iterable[tuple[str, str]], names: Sequence[str], *, spot: bool = False
) -> tuple[tuple[str, str, int], ...]:
    results = []
    for name, label in labelled:
        colour, dashed, mark = _look(name, names)
        style = f"s{colour}{(' hollow' if spot else ' dashed') if dashed else ''}"
        results.append((style, label, mark))
    return tuple(results)


def _groups(aggregates: Mapping[str, Any], key: str, names: Iterable[str]) -> list[str]:
    """Groups that any of the experiments has: levels by name, numbers by size, `>3` last."""
    table = aggregates.get(key, {})
    groups = {group for name in names for group in table.get(name, {})}
    return sorted(groups, key=lambda group: (int(group) if group.isdecimal() else 10**9, group))


def _group_cells(groups: Mapping[str, Any], metric: str) -> list[Any]:
    return [cells[metric] for cells in groups.values() if metric in cells]


def _pair_cell(aggregates: Mapping[str, Any], name: str) -> Cell | None:
    return score_cell(aggregates, name, "pair_recall", gains=False)


def _has(aggregates: Mapping[str, Any], metric: str) -> bool:
    scores = aggregates.get("scores", {})
    return any(score_cell(aggregates, name, metric) for names in model_experiments(scores).values() for name in names)
