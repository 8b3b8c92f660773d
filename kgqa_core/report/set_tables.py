"""The table over several question sets, as a terminal shows it and as one self-contained HTML page.

Everything comes from `evaluation.set_tables`.  Rows of Table 1 are models and what they read, columns are the sets
(Sen et al. 2023, Table 1); Table 2 divides each set by complexity type; Table 3 are worked examples; Table 4 has the
settings of sets of the long tail (Huang et al. 2024, Table 4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.table import Table

from kgqa_core.config import Experiment
from kgqa_core.evaluation.labels import (
    knowledge_label,
    knowledge_order,
    main_split,
    model_experiments,
    p_text,
    percent,
    retriever_experiments,
    retriever_label,
)
from kgqa_core.evaluation.paired import points
from kgqa_core.metrics.registry import METRICS, metric_label
from kgqa_core.report.data import Example
from kgqa_core.report.grid import Grid, score_cell
from kgqa_core.report.long_tail import LongTail, long_tail_part
from kgqa_core.report.page import KINDS, make_environment, without_unseen, write_page
from kgqa_core.report.subgraph import draw_subgraph
from kgqa_core.report.tables import TABLE_1_METRICS, breakdown_table, rich_table

TESTED = "exact"
"""The metric whose tests the terminal shows; the page has those of `TABLE_1_METRICS`, the artifact has all."""

EXAMPLES = 4
"""Worked examples that the page shows of each set; the set's own report has all."""

TEST_NOTE = (
    "Points of a hundred over the questions that both scored, with paired 95 % bootstrap intervals; p of McNemar's "
    "exact test, corrected by Holm for all tests of this metric on the set."
)


@dataclass(frozen=True)
class SetsData:
    """Everything that the page shows.

    tables: content of `tables.json`.  runs: question set → id of its run.  said: question set → what its run decided
    about the champion.  failed: question set → why it failed.  environment: versions, seed, git, digests.
    examples: question set → its worked examples.
    """

    title: str
    description: str
    tables: Mapping[str, Any]
    runs: Mapping[str, str]
    said: Mapping[str, str]
    failed: Mapping[str, str]
    environment: Mapping[str, Any]
    configuration: str
    created: str
    examples: Mapping[str, Sequence[Example]] = field(default_factory=dict)


def table_1(tables: Mapping[str, Any], metric: str, *, gains: bool = False) -> Grid:
    """Models and what they read × question sets.  gains: with the improvement over the same model without knowledge."""
    sets = tables["sets"]
    models = model_experiments({name: None for one in sets.values() for name in one["scores"]})
    rows = tuple(
        (
            f"{model} · {knowledge_label(name)}",
            tuple(score_cell(one, name, metric, gains=gains) for one in sets.values()),
        )
        for model, names in models.items()
        for name in names
    )
    return Grid(f"Table 1 · {metric_label(metric)}", ("Model and knowledge", *sets), rows)


def retrievers_table(tables: Mapping[str, Any], metric: str = "hits_at_1") -> Grid:
    """Retrievers alone × question sets: random facts say how easy a set is, gold paths what is to be had."""
    sets = tables["sets"]
    names = retriever_experiments({name for one in sets.values() for name in one["scores"]})
    rows = tuple(
        (retriever_label(name), tuple(score_cell(one, name, metric, gains=False) for one in sets.values()))
        for name in names
    )
    return Grid(f"Retriever alone · {metric_label(metric)}", ("Retriever", *sets), rows)


def table_2(tables: Mapping[str, Any], name: str, metric: str) -> Grid:
    """Complexity types of one question set × models and what they read (Sen et al. 2023, Table 2)."""
    aggregates = tables["sets"][name]
    models = model_experiments(aggregates.get("by_complexity", {}))
    rows: dict[str, list[Any]] = {}
    counted: dict[str, Any] = {}
    for model in models:
        for label, (n, *cells) in breakdown_table(aggregates, "by_complexity", model, metric, alone=False).rows:
            rows.setdefault(label, []).extend(cells)
            counted[label] = counted.get(label) or n
    heads = [f"{model} · {knowledge_label(one)}" for model, names in models.items() for one in names]
    filled = tuple((label, (counted[label], *cells)) for label, cells in rows.items() if counted[label])
    return Grid(f"Table 2 · {name} · {metric_label(metric)} by complexity type", ("Type", "n", *heads), filled)


def long_tail_sets(tables: Mapping[str, Any]) -> dict[str, LongTail]:
    """Settings, pair recall and breakdowns of each set that has questions of the long tail."""
    parts = {name: long_tail_part(one) for name, one in tables["sets"].items()}
    return {name: part for name, part in parts.items() if part is not None}


def models_table(tables: Mapping[str, Any], metric: str) -> Grid:
    """Every two models with the same knowledge against each other, on each question set."""
    rows = []
    for row in tables["models"]:
        if row["metric"] == metric:
            first, second = (Experiment.parse(row[key]).answerer for key in ("experiment", "against"))
            name = f"{row['set']} · {knowledge_label(row['experiment'])}: {first} − {second}"
            scores = f"{percent(row['after'])} − {percent(row['before'])}"
            rows.append((name, (scores, row["n"], _difference(row), f"{row['won']:,} / {row['lost']:,}", _p(row))))
    columns = ("Models", "Scores", "n", "Difference", "Won / lost", "p")
    return Grid(f"Models against each other · {metric_label(metric)}", columns, tuple(rows), TEST_NOTE)


def knowledge_tables(tables: Mapping[str, Any], metric: str) -> list[Grid]:
    """One grid for each question set and model: what it reads against what it could read instead."""
    results: dict[tuple[str, str], dict[str, dict[str, str]]] = {}
    for row in tables["knowledge"]:
        if row["metric"] == metric:
            own = results.setdefault((row["set"], Experiment.parse(row["experiment"]).answerer), {})
            cell = f"{_difference(row)}, {_p(row)}" if row["p"] is not None else _difference(row)
            own.setdefault(row["experiment"], {})[row["against"]] = cell
    grids = []
    for (name, model), rows in results.items():
        bases = sorted({base for own in rows.values() for base in own}, key=knowledge_order)
        cells = tuple((knowledge_label(one), tuple(rows[one].get(base) for base in bases)) for one in rows)
        heads = ("Knowledge", *(f"against {_lower(knowledge_label(base))}" for base in bases))
        grids.append(Grid(f"{name} · {model} · {metric_label(metric)}", heads, cells, TEST_NOTE))
    return grids


def console_tables(tables: Mapping[str, Any]) -> list[Table]:
    """What a terminal shows: Table 1 by metric, retrievers alone, settings of the long tail, the models against each
    other."""
    grids = [*(table_1(tables, metric) for metric in TABLE_1_METRICS), retrievers_table(tables)]
    for name, part in long_tail_sets(tables).items():
        grids += [replace(grid, title=f"Table 4 · {name} · {grid.title}") for grid in (part.settings, part.retrieval)]
    shown = [rich_table(grid, plain=True, intervals=len(grid.columns) <= 5) for grid in grids if grid.rows]
    tests = models_table(tables, TESTED)
    if tests.rows:  # a terminal has no room for what Table 1 says already
        rows = tuple((name, cells[2:]) for name, cells in tests.rows)
        shown.append(rich_table(replace(tests, columns=("Models", *tests.columns[3:]), rows=rows), plain=True))
    return shown


def write(out: Path, data: SetsData) -> Path:
    """Writes `report.html` into the folder `out` and returns its path."""
    return write_page(out / "report.html", render(data))


def render(data: SetsData) -> str:
    """The page as text."""
    text = make_environment().get_template("sets.html.j2").render(
        data=data,
        sets=_sets(data),
        table_1=[table_1(data.tables, metric, gains=True) for metric in TABLE_1_METRICS],
        alone=retrievers_table(data.tables),
        table_2=[
            grid.fitted("Model and knowledge")
            for name in data.tables["sets"]
            for metric in TABLE_1_METRICS
            if (grid := table_2(data.tables, name, metric)).rows
        ],
        examples=[
            (name, [(one, draw_subgraph(one.facts, one.topics, one.gold_entities)) for one in shown[:EXAMPLES]])
            for name, shown in data.examples.items()
            if shown
        ],
        table_4=[
            (f"Table 4 · {name} · {grid.title}", grid)
            for name, part in long_tail_sets(data.tables).items()
            for grid in (part.settings, part.retrieval, *part.breakdowns)
            if grid.rows
        ],
        kinds=KINDS,
        models=[grid for metric in TABLE_1_METRICS if (grid := models_table(data.tables, metric)).rows],
        knowledge=[grid for metric in TABLE_1_METRICS for grid in knowledge_tables(data.tables, metric)],
        meanings=[(METRICS[name].label, METRICS[name].explanation) for name in (*TABLE_1_METRICS, "hits_at_1")],
    )  # fmt: skip
    return without_unseen(text)


def _sets(data: SetsData) -> list[dict[str, Any]]:
    """A row for each question set: its run, how many questions it has, answered and lacks, and what was decided."""
    rows = []
    for name, run in data.runs.items():
        one = data.tables["sets"].get(name, {})
        split = main_split(one.get("n_unlinkable", {})) or "test"
        counts = {
            experiment: max((int(cell["n"]) for cell in splits.get(split, {}).values()), default=0)
            for experiment, splits in one.get("scores", {}).items()
        }
        answers = [n for experiment, n in counts.items() if Experiment.parse(experiment).answerer != "-"]
        sizes = {"n": max(counts.values(), default=0), "answered": max(answers, default=0), "split": split}
        lacking = one.get("n_unlinkable", {}).get(split, 0)
        rows.append({"name": name, "run": run, **sizes, "unlinkable": lacking, "why": data.said.get(name, "")})
    return rows


def _difference(row: Mapping[str, Any]) -> str:
    return f"{points(row['value'])} [{points(row['low'])}, {points(row['high'])}]"


def _p(row: Mapping[str, Any]) -> str | None:
    return None if row["p"] is None else p_text(row["p_holm"])


def _lower(label: str) -> str:
    return label[0].lower() + label[1:] if label[:2] != label[:2].upper() else label
