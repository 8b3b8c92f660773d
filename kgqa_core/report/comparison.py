"""Tables of the report that compare experiments: answers, formats and their cost, and linked against gold topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kgqa_core.config import Experiment
from kgqa_core.evaluation.labels import (
    LINKS,
    group_order,
    knowledge_label,
    knowledge_order,
    model_experiments,
    p_text,
    percent,
    retriever_label,
)
from kgqa_core.metrics.registry import metric_label, metric_names
from kgqa_core.report.grid import Entry, Grid, PairedCell, make_cell, score_cell

UNFINISHED = {"length": "cut off", "refusal": "refused", "empty": "empty", "error": "failed"}
"""Ends of an answer that are worth a word."""


def formats_table(aggregates: Mapping[str, Any], metric: str = "hit_rra") -> Grid:
    """Retriever and format × answerer (Wu et al. 2023, Table 1)."""
    models = model_experiments(aggregates.get("scores", {}))
    parsed = [Experiment.parse(name) for names in models.values() for name in names]
    rows = []
    for name in sorted({str(replace(one, answerer="-")) for one in parsed}, key=knowledge_order):
        experiments = (str(replace(Experiment.parse(name), answerer=model)) for model in models)
        cells = tuple(score_cell(aggregates, experiment, metric, gains=False) for experiment in experiments)
        rows.append((knowledge_label(name), cells))
    return Grid(f"Forms of knowledge · {metric_label(metric)}", ("Knowledge", *models), tuple(rows))


def groups_table(aggregates: Mapping[str, Any], key: str, model: str, metric: str = "hit_rra") -> Grid:
    """Forms of knowledge × hops (`key` by_hops) or complexity types (by_complexity) (Wu et al. 2023, Table 2)."""
    table = aggregates.get(key, {})
    names = model_experiments(table).get(model, [])
    groups = sorted({group for name in names for group in table[name]}, key=group_order)
    rows = tuple(
        (knowledge_label(name), tuple(make_cell(table[name].get(group, {}).get(metric)) for group in groups))
        for name in names
    )
    heads = (f"{group} hop{'s' if group != '1' else ''}" for group in groups) if key == "by_hops" else groups
    title = "by hops" if key == "by_hops" else "by complexity type"
    return Grid(
        f"{metric_label(metric)} {title} · {model}", ("Knowledge", *(head.replace("+", " + ") for head in heads)), rows
    )


def helpful_table(aggregates: Mapping[str, Any], model: str, metric: str = "hit_rra", *, every: bool = True) -> Grid:
    """Questions that each form of knowledge fixes and breaks (Wu et al. 2023, Table 3), with McNemar's p.

    Columns are the baselines: no knowledge and the triples of each retriever; where not `every`, no knowledge and the
    triples of the row's own retriever.
    """
    results = _comparisons(aggregates, model, metric)
    names = [name for name in model_experiments(aggregates.get("scores", {})).get(model, []) if name in results]
    none = f"none/none/{model}"
    bases = sorted({base for name in names for base in results[name]}, key=knowledge_order)
    columns = [(knowledge_label(base), {name: base for name in names}) for base in bases]
    if not every:
        own = {name: str(replace(Experiment.parse(name), format="triples")) for name in names}
        columns = [(knowledge_label(none), dict.fromkeys(names, none)), ("Its own triples", own)]
        columns = [
            (label, against) for label, against in columns if any(against[name] in results[name] for name in names)
        ]
    rows = tuple(
        (
            knowledge_label(name),
            tuple(_pair(results[name].get(against[name])) for _, against in columns),
        )
        for name in names
    )
    note = (
        "Columns are the baselines: questions fixed (+) and broken (−) against each, and p of McNemar's exact test, "
        "not corrected for the number of comparisons."
    )
    heads = tuple(f"against {label[0].lower()}{label[1:]}" if not every else label for label, _ in columns)
    return Grid(f"Helpful and harmful · {metric_label(metric)} · {model}", ("Knowledge", *heads), rows, note)


def helpful_groups_table(aggregates: Mapping[str, Any], key: str, model: str, against: str) -> Grid:
    """Questions fixed and broken by group (`key` by_hops or by_complexity) against `none` or the `triples` of the same
    retriever."""
    results = _comparisons(aggregates, model, "hit_rra")
    names = [name for name in model_experiments(aggregates.get("scores", {})).get(model, []) if name in results]
    picked = {}
    for name in names:
        own = str(replace(Experiment.parse(name), format="triples"))
        base = f"none/none/{model}" if against == "none" else own
        if base in results[name]:
            picked[name] = results[name][base][key]
    groups = sorted({group for parts in picked.values() for group in parts}, key=group_order)
    rows = tuple(
        (knowledge_label(name), tuple(_pair(parts.get(group)) for group in groups)) for name, parts in picked.items()
    )
    heads = (f"{group} hop{'s' if group != '1' else ''}" for group in groups) if key == "by_hops" else groups
    title = "Against no knowledge" if against == "none" else "Against the retriever's triples"
    return Grid(f"{title} · {model}", ("Knowledge", *(head.replace("+", " + ") for head in heads)), rows)


def cost_table(aggregates: Mapping[str, Any], model: str, metric: str = "hit_rra") -> Grid:
    """Length of the knowledge and tokens of the prompt beside accuracy; columns that nobody measured are left out."""
    costs: Mapping[str, Any] = aggregates.get("cost", {})
    names = [name for name in model_experiments(aggregates.get("scores", {})).get(model, []) if name in costs]
    columns: dict[str, list[Entry]] = {
        "Words": [_number(costs[name].get("words")) for name in names],
        "Characters": [_number(costs[name].get("characters")) for name in names],
        "Without knowledge": [
            None if name.startswith("none/") else costs[name].get("without_knowledge") for name in names
        ],
        "Prompt tokens": [_number(costs[name].get("prompt_tokens")) for name in names],
        "Answer tokens": [_number(costs[name].get("completion_tokens")) for name in names],
        "Cost of 1,000": [_money(costs[name].get("cost_per_1000")) for name in names],
        "Unfinished": [_unfinished(costs[name].get("finish")) for name in names],
        metric_label(metric): [score_cell(aggregates, name, metric, gains=False) for name in names],
        metric_label("exact"): [score_cell(aggregates, name, "exact", gains=False) for name in names],
    }
    shown = {head: cells for head, cells in columns.items() if any(cell is not None for cell in cells)}
    rows = tuple(
        (knowledge_label(name), tuple(cells[index] for cells in shown.values())) for index, name in enumerate(names)
    )
    return Grid(f"Length and cost · {model}", ("Knowledge", *shown), rows, compact=True)


def _comparisons(aggregates: Mapping[str, Any], model: str, metric: str) -> dict[str, dict[str, Mapping[str, Any]]]:
    """Experiment of a model → baseline → comparison."""
    rows: Sequence[Mapping[str, Any]] = aggregates.get("comparisons", ())
    comparisons: dict[str, dict[str, Mapping[str, Any]]] = {}
    for row in rows:
        if row["metric"] == metric and Experiment.parse(row["experiment"]).answerer == model:
            comparisons.setdefault(row["experiment"], {})[row["baseline"]] = row
    return comparisons


def _pair(row: Mapping[str, Any] | None) -> PairedCell | None:
    return None if row is None else PairedCell(int(row["helpful"]), int(row["harmful"]), int(row["n"]), row.get("p"))


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:,.0f}" if value >= 100 or not value else f"{value:,.1f}"


def _money(value: float | None) -> str | None:
    return None if value is None else f"{value:,.2f}" if value >= 1 else f"{value:.2g}"


def _unfinished(finish: Mapping[str, int] | None) -> str | None:
    if finish is None:
        return None
    return ", ".join(f"{finish[name]:,} {word}" for name, word in UNFINISHED.items() if finish.get(name)) or "none"


def links_table(aggregates: Mapping[str, Any]) -> Grid:
    """Precision, recall and F1 of the linked topics, and recall among the first five candidates."""
    metrics = metric_names("links", "link_candidates")
    cells = tuple(score_cell(aggregates, LINKS, metric, gains=False) for metric in metrics)
    rows = (("Linked topics", cells),) if any(cells) else ()
    note = "Against the gold topics, mean over the questions that have gold topics in the graph."
    return Grid("Linked topics", ("Topics", *map(metric_label, metrics)), rows, note)


def costs_table(aggregates: Mapping[str, Any]) -> Grid:
    """What each experiment loses when it starts from linked topics instead of gold ones, in points."""
    sorted_rows = sorted(
        aggregates.get("linking", ()),
        key=lambda row: (Experiment.parse(row["experiment"]).format != "-", knowledge_order(row["experiment"])),
    )
    rows = []
    for row in sorted_rows:
        alone = Experiment.parse(row["against"]).alone
        name = f"{retriever_label(row['against'])} alone" if alone else knowledge_label(row["against"])
        lost = f"{_points(row['loss'])} [{_points(row['low'])}, {_points(row['high'])}]"
        counts = f"{row['only_gold']:,} / {row['only_linked']:,}"
        counts = counts if row["p"] is None else f"{counts}, {p_text(row['p'])}"
        scores = (percent(row["gold"]), percent(row["linked"]))
        rows.append((f"{name}, {metric_label(row['metric'])}", (*scores, lost, counts)))
    columns = ("Experiment", "Gold", "Linked", "Loss", "Won by gold / linked")
    note = "Loss: gold less linked topics over the same questions, in points with the paired 95 % interval."
    return Grid("What linking costs", columns, tuple(rows), note)


def _points(value: float) -> str:
    """0.012 → `1.2`, −0.004 → `−0.4`."""
    text = f"{100 * value:.1f}"
    return ("0.0" if text == "-0.0" else text).replace("-", "−")
