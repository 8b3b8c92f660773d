"""What Prefect shows of a stage: a page with what it made, why it was not made again, and where to read on."""

from __future__ import annotations

import json
import logging
import re
from typing import TYPE_CHECKING, Any

from kgqa_core.artifacts import ArtifactRef, read_manifest
from kgqa_core.benchmarks.changes import flatten
from tasks.addresses import mlflow_page

if TYPE_CHECKING:
    from tasks.run import Run

log = logging.getLogger("kgqa")


def publish_story(run: Run, title: str, ref: ArtifactRef, *, found: bool) -> None:
    """Show a stage's story in Prefect, when it runs as a task there; a lost server is no reason to fail."""
    from prefect.artifacts import create_markdown_artifact
    from prefect.context import TaskRunContext

    if TaskRunContext.get() is None:
        return
    tracked = next((stage.tracked for stage in reversed(run.stages) if stage.title == title), None)
    link = mlflow_page(run.home, run.tracker.experiment, run.tracker.known(tracked))
    try:
        text = story(title, ref, found=found, link=link)
        create_markdown_artifact(text, key=artifact_key(title), description=title)
    except Exception as fault:
        log.debug("the page of %s was not stored: %s", title, fault)


def story(title: str, ref: ArtifactRef, *, found: bool, link: str | None = None) -> str:
    """The page as Markdown: how it came about, the counts, for scores the table of formats, links."""
    manifest = read_manifest(ref.folder)
    counts = "\n".join(f"| {cell(name)} | {cell(value)} |" for name, value in flatten(manifest["counts"]).items())
    parts = [f"## {cell(title)}", why_found(manifest) if found else f"Made now, by run `{manifest.get('run_id')}`."]
    parts.append(f"| count | value |\n|---|---|\n{counts}")
    if ref.kind == "scores":
        aggregates = json.loads((ref.folder / "aggregates.json").read_text(encoding="utf-8"))
        parts.append(_markdown(score_rows(aggregates)))
    parts.append(f"artifact `{ref.kind}` · digest `{ref.digest[:16]}` · written {manifest['written']}")
    if link:
        parts.append(f"[This stage in MLflow]({link})")
    return "\n\n".join(part for part in parts if part)


def why_found(manifest: dict[str, Any]) -> str:
    """Why a stage was not computed: what the same key already made, and when."""
    return f"cached: the same inputs, options and code made it on {manifest['written']} (run {manifest.get('run_id')})"


def score_rows(aggregates: dict[str, Any]) -> list[dict[str, str]]:
    """One row an experiment and split: each metric with its interval."""
    return [
        {
            "experiment": experiment,
            "split": split,
            **{
                metric: f"{value['value']:.3f} [{value['low']:.3f}, {value['high']:.3f}]"
                for metric, value in metrics.items()
            },
        }
        for experiment, splits in aggregates["scores"].items()
        for split, metrics in splits.items()
    ]


def artifact_key(title: str) -> str:
    """A title as Prefect takes keys: `facts rigel/template` → `facts-rigel-template`."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "stage"


def cell(value: Any) -> str:
    """A value as a cell of a Markdown table: no line breaks, no markup."""
    text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    text = " ".join(text.splitlines()).replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\|\[\]`*_])", r"\\\1", text) if not isinstance(value, int | float) else text


def _markdown(rows: list[dict[str, str]]) -> str:
    if not rows:
        return ""
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [f"| {' | '.join(map(cell, names))} |", "|" + "---|" * len(names)]
    return "\n".join([*lines, *(f"| {' | '.join(cell(row.get(name, '–')) for name in names)} |" for row in rows)])
