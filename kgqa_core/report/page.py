"""The report of a run: one self-contained HTML page that asks the network for nothing.

Names of a graph and outputs of a model are somebody else's text: the template escapes everything, control and
direction characters are removed, and the page's content security policy allows no script at all.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kgqa_core.config import Experiment
from kgqa_core.evaluation.labels import (
    HEADLINE,
    gain_text,
    knowledge_label,
    main_split,
    model_experiments,
    p_text,
    percent,
    retriever_label,
    seconds_text,
)
from kgqa_core.evaluation.nli import hub_name
from kgqa_core.metrics.registry import METRICS, metric_label
from kgqa_core.report import comparison, tables
from kgqa_core.report.abstention import abstention_part
from kgqa_core.report.charts import line_class, mark, training_curves
from kgqa_core.report.data import Example, ReportData
from kgqa_core.report.grid import Grid, score_cell
from kgqa_core.report.long_tail import long_tail_part
from kgqa_core.report.rewriting import corpus_part, faithfulness_table, rewriter_part
from kgqa_core.report.roads import road_tables
from kgqa_core.report.subgraph import draw_subgraph
from kgqa_core.report.summary import KINDS as PLAIN_KINDS
from kgqa_core.retrieval.registry import RETRIEVERS

KINDS = {
    "fixed": "Fixed by retrieval",
    "wrong": "Still wrong",
    "broken": "Broken by retrieval",
    "right": "Right with and without facts",
}
LONGEST = 600
"""Characters of an output that the page shows."""

# Controls, surrogates, and characters that turn the direction of what follows.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


GENERATED_SCORES = (
    "These scores are on questions that were generated from the graph itself, not on questions that people asked"
)
"""What a report says first where no real question was scored."""


def write(out: Path, *, data: ReportData) -> Path:
    """Writes `report.html` into the folder `out` (or to `out` itself where it ends in .html) and returns its path."""
    return write_page(out if out.suffix == ".html" else out / "report.html", render(data))


def write_page(path: Path, text: str) -> Path:
    """Puts a page into its place at once, and returns its path."""
    scratch = path.with_suffix(".tmp")
    scratch.write_text(text, encoding="utf-8")
    os.replace(scratch, path)
    return path


def render(data: ReportData) -> str:
    """The page as text."""
    return without_unseen(make_environment().get_template("page.html.j2").render(_context(data)))


def make_environment(*packages: str) -> Environment:
    """The templates of pages, with the style sheet and the filters that they use.

    packages: whose folders `templates` are searched too.
    """
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package, "templates") for package in (*packages, "kgqa_core.report")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["css"] = Markup((Path(__file__).parent / "templates" / "page.css").read_text(encoding="utf-8"))
    environment.filters.update(
        percent=percent,
        gain=gain_text,
        p=p_text,
        seconds=seconds_text,
        knowledge=knowledge_label,
        answerer=lambda experiment: Experiment.parse(experiment).answerer,
        number=_number,
        shorten=lambda text: text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text):,} characters)",
        code=_code,
    )
    return environment


def without_unseen(text: str) -> str:
    """Text without control characters and such that turn the direction of what follows."""
    return _UNSEEN.sub("", text)


def _context(data: ReportData) -> dict[str, Any]:
    aggregates = data.aggregates
    models = list(model_experiments(aggregates.get("scores", {})))
    model = models[0] if models else None
    complexity_metrics = ("exact", "contains")
    return {
        "data": data,
        "created": _created(data.created),
        "kg_name": _get(data.profile, "kg", "name"),
        "questions_name": _get(data.profile, "questions", "name"),
        "description": data.profile.get("description") or "",
        "model": model,
        "summary": data.summary,
        "plain_kinds": PLAIN_KINDS,
        "headline": _headline(data, model),
        "chart": [
            (metric_label(metric), METRICS[metric].explanation, tables.chart_rows(aggregates, model, metric))
            for metric in tables.TABLE_1_METRICS
        ]
        if model
        else [],
        "table_1": _filled(
            *(tables.table_1(aggregates, metric).fitted("Knowledge") for metric in tables.TABLE_1_METRICS)
        ),
        "all_metrics": _filled(*(tables.all_metrics_table(aggregates, name).fitted("Knowledge") for name in models)),
        "alone": _filled(
            tables.retriever_table(aggregates), comparison.links_table(aggregates), comparison.costs_table(aggregates)
        ),
        "by_complexity": _filled(
            *(
                tables.breakdown_table(aggregates, "by_complexity", model, metric).fitted("Knowledge")
                for metric in complexity_metrics
            )
        ),
        "by_hops": _filled(tables.breakdown_table(aggregates, "by_hops", model, "exact").fitted("Knowledge")),
        "roads": road_tables(aggregates),
        "long_tail": long_tail_part(aggregates),
        "abstention": abstention_part(aggregates),
        "mark": mark,
        "classifier": hub_name(_get(data.profile, "evaluation", "nli")),
        **_formats(aggregates, models),
        "corpus": corpus_part(data.corpus),
        "rewriter": rewriter_part(data.rewriter),
        "faithfulness": _filled(faithfulness_table(data.knowledge)),
        "without_leaked": _filled(tables.without_leaked_table(aggregates)),
        "with_answers": _filled(tables.with_answers_table(aggregates)),
        "unlinkable": aggregates.get("n_unlinkable", {}),
        "leakage": aggregates.get("leakage", {}),
        "curves": [
            (title, panels)
            for title, given in (("Rigel", data.curves), ("Path retriever", data.path_curves))
            if (panels := training_curves(given))
        ],
        "line_class": line_class,
        "examples": [
            (example, draw_subgraph(example.facts, example.topics, example.gold_entities)) for example in data.examples
        ],
        "kinds": KINDS,
        "kind_counts": _kind_counts(data.examples),
        "meanings": [(spec.label, spec.explanation) for name, spec in METRICS.items() if name in _measured(aggregates)],
        "total_seconds": sum(float(stage.get("seconds") or 0) for stage in data.stages),
        "longest_stage": max((float(stage.get("seconds") or 0) for stage in data.stages), default=0) or 1.0,
        "counts": [
            (title, _flat(counts))
            for title, counts in (
                ("Graph", data.kg_counts),
                ("Differentiable graph", data.dkg_counts),
                ("Questions", data.question_counts),
            )
            if counts
        ],
        "links": [(name, url) for name, url in data.links.items() if is_safe_link(url)],
        "environment": _flat(data.environment),
        "configuration": yaml.safe_dump(_plain(data.profile), sort_keys=False, allow_unicode=True, width=100),
    }


def _formats(aggregates: Mapping[str, Any], models: Sequence[str]) -> dict[str, list[Grid]]:
    """Grids that compare forms of knowledge; all empty where no two experiments can be compared."""
    names = ("formats", "format_groups", "format_groups_more", "helpful", "helpful_more", "cost")
    if not aggregates.get("comparisons"):
        return dict.fromkeys(names, [])
    keys = ("by_hops", "by_complexity")
    groups = [comparison.groups_table(aggregates, key, model) for model in models for key in keys]
    more = [comparison.helpful_table(aggregates, model, "exact") for model in models]
    more += [
        comparison.helpful_groups_table(aggregates, key, model, against)
        for model in models
        for against in ("none", "triples")
        for key in keys
    ]
    grids = (
        [comparison.formats_table(aggregates)],
        groups[:1],
        groups[1:],
        [comparison.helpful_table(aggregates, model) for model in models],
        more,
        [comparison.cost_table(aggregates, model) for model in models],
    )
    return {name: [g.fitted() for g in _filled(*part)] for name, part in zip(names, grids, strict=True)}


def _headline(data: ReportData, model: str | None) -> list[dict[str, str]]:
    """Key scores as (value, label, detail)."""
    aggregates = data.aggregates
    scores = aggregates.get("scores", {})
    names = model_experiments(scores).get(model or "", [])
    results: list[dict[str, str]] = []
    triples = next((name for first in HEADLINE for name in names if name.startswith(f"{first}/triples/")), None)
    if triples is not None and (cell := score_cell(aggregates, triples, "exact")) is not None:
        interval = f"95 % interval {percent(cell.low)} to {percent(cell.high)}"
        label = f"answered exactly with {knowledge_label(triples)}"
        results.append({"value": f"{percent(cell.value)} %", "label": label, "detail": interval})
        gains = aggregates.get("gain_over_no_knowledge", {}).get(triples, {})
        metric = next((metric for metric in ("exact", "contains") if gains.get(metric) is not None), None)
        if metric:
            detail = f"{metric_label(metric).lower()}, relative; the paper's mean is +83 %"
            results.append({"value": gain_text(gains[metric]), "label": "over no knowledge", "detail": detail})
    results += _notes_of(aggregates, names)
    alone = next((f"{first}/-/-" for first in HEADLINE if f"{first}/-/-" in scores), None)
    hits = score_cell(aggregates, alone, "hits_at_1")
    if alone is not None and hits is not None:
        recall = f"an answer among the facts: {score_cell(aggregates, alone, 'recall_of_answers')} %"
        label = f"Hits@1 of {retriever_label(alone)} alone"
        detail = "; ".join([recall, *_baselines(aggregates)])
        results.append({"value": f"{percent(hits.value)} %", "label": label, "detail": detail})
    counted = max((cell["n"] for by in scores.values() for s in by.values() for cell in s.values()), default=0)
    if counted:
        unlinkable = aggregates.get("n_unlinkable", {}).get(main_split(aggregates.get("n_unlinkable", {})) or "", 0)
        detail = f"{unlinkable:,} not in the graph, scored 0"
        answered = max((cell["n"] for name in names for s in scores[name].values() for cell in s.values()), default=0)
        if 0 < answered < counted:
            detail = f"retrieval on all, answers on {answered:,} of them; {detail}"
        results.append({"value": f"{counted:,}", "label": "questions scored", "detail": detail})
    return results


def _baselines(aggregates: Mapping[str, Any]) -> list[str]:
    """`Random 17.1 %, Oracle 80.6 %`: Hits@1 of the baselines of a run, in one part; none without any."""
    named = ((spec.label, f"{name}/-/-") for name, spec in RETRIEVERS.items() if spec.baseline)
    cells = [(label, score_cell(aggregates, name, "hits_at_1")) for label, name in named]
    parts = [f"{label} {percent(cell.value)} %" for label, cell in cells if cell is not None]
    return [", ".join(parts)] if parts else []


def _notes_of(aggregates: Mapping[str, Any], names: Sequence[str]) -> list[dict[str, str]]:
    """The rewritten knowledge of a retriever that learns, against its own triples."""
    name = next((name for first in HEADLINE for name in names if name.startswith(f"{first}/rewritten/")), None)
    cell = score_cell(aggregates, name, "hit_rra")
    if name is None or cell is None:
        return []
    against = name.replace("/rewritten/", "/triples/", 1)
    wanted = (name, against, "hit_rra")
    rows = aggregates.get("comparisons", ())
    pair = next((row for row in rows if (row["experiment"], row["baseline"], row["metric"]) == wanted), None)
    detail = (
        f"+{pair['helpful']:,} −{pair['harmful']:,} questions against its triples, {p_text(pair['p'])}" if pair else ""
    )
    return [{"value": f"{percent(cell.value)} %", "label": f"Hit with {knowledge_label(name)}", "detail": detail}]


def _filled(*grids: Grid) -> list[Grid]:
    return [grid for grid in grids if grid.rows and len(grid.columns) > 1]


def _measured(aggregates: Mapping[str, Any]) -> set[str]:
    """Metrics that any experiment has."""
    return {metric for by in aggregates.get("scores", {}).values() for cells in by.values() for metric in cells}


def _kind_counts(examples: Any) -> dict[str, int]:
    kind_counts: dict[str, int] = {}
    for example in examples:
        if isinstance(example, Example):
            kind_counts[example.kind] = kind_counts.get(example.kind, 0) + 1
    return kind_counts


def _created(text: str) -> str:
    try:
        moment = datetime.fromisoformat(text) if text else datetime.now(UTC)
    except ValueError:
        return text
    zone = moment.strftime("%Z") if moment.tzinfo else ""
    return f"{moment.day} {moment:%B %Y, %H:%M} {zone}".strip()


def _flat(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Nested mappings as (dotted name, text) rows."""
    rows: list[tuple[str, str]] = []
    for name, value in values.items():
        if isinstance(value, Mapping):
            rows += _flat(value, f"{prefix}{name} · ")
        elif isinstance(value, list | tuple):
            rows.append((prefix + str(name).replace("_", " "), ", ".join(map(str, value)) or "–"))
        elif value is not None:
            rows.append((prefix + str(name).replace("_", " "), _number(value)))
    return rows


def _number(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def _plain(value: Any) -> Any:
    """A value that YAML writes without tags."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


def _get(profile: Mapping[str, Any], section: str, name: str) -> str:
    part = profile.get(section)
    return str(part.get(name) or "") if isinstance(part, Mapping) else ""


def is_safe_link(url: str) -> bool:
    """Whether an address leads to a web page or a place beside this one, not to a script."""
    if _UNSEEN.search(url):
        return False
    try:
        scheme = urlsplit(url.strip()).scheme.lower()
    except ValueError:
        return False
    return scheme in ("http", "https") or (not scheme and ":" not in url.split("/", 1)[0])


def _code(text: str) -> Markup:
    """Text with what stands between backticks as code, and addresses as links."""
    kinds = ("{}", "<code>{}</code>", '<a href="{0}">{0}</a>')
    parts = re.split(r"`([^`]*)`|(https?://\S+)", text)
    return Markup("").join(Markup(kinds[n % 3]).format(part) for n, part in enumerate(parts) if part)
