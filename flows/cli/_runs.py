"""A finished run as commands show it: on a terminal, and as the JSON object of `--json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import RenderableType

from flows.cli import _session as session
from flows.cli._session import err
from kgqa_core.report.terminal import VisibleText


def summarise(record: dict[str, Any]) -> dict[str, Any]:
    """A run's record as `--json` prints it."""
    return {
        "home": record["home"],
        "run_id": record["run_id"],
        "report": record["report"],
        "mlflow_run_id": record["mlflow_run_id"],
        "stages": _stages(record["stages"]),
        "decisions": record.get("decisions") or {},
        "champion": record.get("champion"),
        "scores": record["aggregates"]["scores"],
        **{key: record[key] for key in ("sets", "failed_sets") if key in record},
        **{key: record["aggregates"][key] for key in ("tables",) if key in record["aggregates"]},
    }


def _stages(stages: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Status and seconds of each stage, as it was when it was first needed."""
    from kgqa_core.report.console import stage_names

    rows: dict[str, dict[str, Any]] = {}
    for name, stage in zip(stage_names(stages), stages, strict=True):
        rows.setdefault(name, {"status": stage["status"], "seconds": stage["seconds"]})
    return rows


def show(record: dict[str, Any], *, seconds: float | None = None, to_stderr: bool = False) -> None:
    """Print a run: its stages, its scores, and links to it."""
    from kgqa_core.report.console import stage_table
    from kgqa_core.report.tables import score_tables

    console = err if to_stderr else session.out
    console.print(stage_table(record["stages"], seconds))
    for name in ("scored_on", "label_parser"):
        if note := (record.get("decisions") or {}).get(name):
            console.print(VisibleText.assemble(("Note", "bold"), f"         {note}"), soft_wrap=True, highlight=False)
    if tables := record["aggregates"].get("tables"):
        from kgqa_core.report.set_tables import console_tables

        for part in (*console_tables(tables), *set_lines(record)):
            console.print(part, soft_wrap=isinstance(part, VisibleText))
    for table in score_tables(record["aggregates"]):
        console.print(table)
    for line in run_lines(record):
        console.print(line, soft_wrap=True, highlight=False)


def run_lines(record: dict[str, Any]) -> list[RenderableType]:
    """Which road answered how often, the champion, and links to the run."""
    from flows.cli.servers import links
    from kgqa_core.report.roads import road_line

    lines = {"Answered by": road_line(record["aggregates"])}
    if record.get("champion"):
        lines["Champion"] = record["champion"]["why"].removeprefix("champion ")
    lines |= links(record)
    return [VisibleText.assemble((f"{name:<12}", "bold"), f" {text}") for name, text in lines.items() if text]


def set_lines(record: Mapping[str, Any]) -> list[RenderableType]:
    """A line for each question set of a run of several: its run and what was decided, or why it failed."""
    decisions = record.get("decisions") or {}
    lines = [
        VisibleText.assemble((name, "bold"), f"  run {run}; {decisions.get(name, '')}")
        for name, run in record["sets"].items()
    ]
    failed = record["failed_sets"].items()
    return [*lines, *(VisibleText.assemble((name, "bold red"), f"  failed: {why}") for name, why in failed)]
