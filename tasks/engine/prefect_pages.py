"""What Prefect shows of a stage: a page with what it made, why it was not made again, and where to read on."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any

from kgqa_core.config import Experiment
from kgqa_core.evaluation.labels import percent
from kgqa_core.metrics.registry import METRICS
from kgqa_core.runs.changes import flatten
from kgqa_core.store.artifacts import ArtifactRef, read_manifest
from tasks.engine.run import Run, flow_name
from tasks.tracking.addresses import mlflow_page, report_page

log = logging.getLogger("kgqa")
REPORTING = ("pipeline", "table", "refresh", "evaluate")
"""Flows that end with a report; trainings that a run has called do not."""


def publish_stage_page(run: Run, title: str, ref: ArtifactRef, *, cached: bool) -> None:
    """Show a stage's page in Prefect, inside a flow or a task; a lost server is no reason to fail.

    It is sent while the run goes on, and is there when the run has ended.
    """
    tracked = next((stage.tracked for stage in reversed(run.stages) if stage.title == title), None)
    pages = (
        mlflow_page(run.home, run.tracker.experiment, run.tracker.known(run_id)) for run_id in (tracked, run.tracked)
    )
    stage, whole = pages
    links = {"this stage in MLflow": stage, "the run in MLflow": whole}
    if flow_name() in REPORTING:
        links["report of the run, once it has ended"] = report_page(whole)
    parts = stage_page(title, ref, cached=cached, links=links)
    run.in_background(show_page, artifact_key(title), parts, title)


def show_page(key: str, parts: Sequence[str], description: str) -> None:
    """Show Markdown in Prefect under a key, inside a flow; parts that are empty are left out, and a lost server too."""
    from prefect.artifacts import create_markdown_artifact
    from prefect.context import FlowRunContext, TaskRunContext

    if FlowRunContext.get() is None and TaskRunContext.get() is None:
        return
    try:
        create_markdown_artifact("\n\n".join(filter(None, parts)), key=key, description=description)
    except Exception as fault:  # it must not undo finished work
        log.debug("the page %s was not shown in Prefect: %s", key, fault)


def stage_page(
    title: str, ref: ArtifactRef, *, cached: bool, links: Mapping[str, str | None] | None = None
) -> list[str]:
    """The parts of the page as Markdown: how it came about, links, for scores their tables, the counts."""
    manifest = read_manifest(ref.folder)
    parts = [f"## {cell(title)}", why_cached(manifest) if cached else f"Made now, by run `{manifest.get('run_id')}`."]
    parts.append(link_line(links or {}))
    if ref.kind == "scores":
        parts += score_tables(json.loads((ref.folder / "aggregates.json").read_text(encoding="utf-8")))
    parts += counted(flatten(manifest["counts"]))
    parts.append(f"artifact `{ref.kind}` · digest `{ref.digest[:16]}` · written {manifest['written']}")
    return parts


def counted(counts: Mapping[str, Any]) -> list[str]:
    """Counts as a table, and the names of those that are 0 on one line below it."""
    none = [name for name, value in counts.items() if value == 0 and not isinstance(value, bool)]
    rows = [{"count": name, "value": value} for name, value in counts.items() if name not in none]
    return [table(rows), f"0: {', '.join(map(cell, none))}" if none else ""]


def link_line(links: Mapping[str, str | None]) -> str:
    """Addresses by name as one line of links; those that are not known are left out."""
    return " · ".join(f"[{name}]({address})" for name, address in links.items() if address)


def why_cached(manifest: dict[str, Any]) -> str:
    """Why a stage was not computed: what the same key already made, and when."""
    return f"cached: the same inputs, options and code made it on {manifest['written']} (run {manifest.get('run_id')})"


def score_tables(aggregates: dict[str, Any]) -> list[str]:
    """Two tables, retrievers alone and answers, each under a heading: a row an experiment and split, in percent.

    Variants of a metric that count substrings are left to the report and MLflow; a table of them all is too wide.
    """
    alone: list[dict[str, Any]] = []
    answers: list[dict[str, Any]] = []
    for experiment, splits in aggregates["scores"].items():
        kind = alone if Experiment.parse(experiment).alone else answers
        for split, metrics in splits.items():
            shown = {metric: _interval(metrics[metric]) for metric in METRICS if metric in metrics}
            shown = {metric: text for metric, text in shown.items() if not metric.endswith("_substring")}
            kind.append({"experiment": experiment, "split": split, **shown})
    tables = (("### Retrievers alone", alone), ("### Answers", answers))
    return [part for heading, rows in tables if rows for part in (heading, table(rows))]


def artifact_key(title: str) -> str:
    """A title as Prefect takes keys: `facts rigel/template` → `facts-rigel-template`."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "stage"


def cell(value: Any) -> str:
    """A value as a cell of a Markdown table: no line breaks, no markup."""
    text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    text = " ".join(text.splitlines()).replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\|\[\]`*_])", r"\\\1", text) if not isinstance(value, int | float) else text


def plain(text: str) -> str:
    """Text on one line that reads the same as Markdown and as it stands: what would be markup is left out."""
    return re.sub(r"[<>`*\\|]|(?<=\])\(", "", " ".join(text.split()))


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as a Markdown table with a column for each name that any of them has; nothing where there are no rows."""
    if not rows:
        return ""
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [f"| {' | '.join(map(cell, names))} |", "|" + "---|" * len(names)]
    return "\n".join([*lines, *(f"| {' | '.join(cell(row.get(name, '–')) for name in names)} |" for row in rows)])


def _interval(value: Mapping[str, float]) -> str:
    return f"{percent(value['value'])} [{percent(value['low'])}, {percent(value['high'])}]"
