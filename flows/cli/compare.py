"""`kgqa compare`: what makes runs different, and which questions that won and lost."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from flows.cli import _session as common
from flows.cli._options import ForceOption
from flows.cli._session import HomeTableSession, err, print_json
from kgqa_core.errors import InputError


def compare(
    session: HomeTableSession,
    runs: Annotated[
        list[str],
        typer.Argument(
            help="Run ids or unambiguous beginnings of them, `newest`, `champion` or `champion:SYSTEM`, and RUN:SET "
            "of a run of several question sets; first the run that the others are compared with.",
            show_default=False,
        ),
    ],
    html: Annotated[
        Path | None, typer.Option("--html", help="Write the whole comparison as a page.", show_default=False)
    ] = None,
    experiment: Annotated[
        str | None,
        typer.Option("--experiment", help="List questions by it, e.g. rigel/triples/builtin.", show_default=False),
    ] = None,
    metric: Annotated[
        str | None, typer.Option("--metric", help="List questions by it, e.g. exact.", show_default=False)
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=0, help="Questions of each list on the terminal.")] = 10,
    level: Annotated[float, typer.Option("--level", min=0.5, max=0.999, help="Level of the intervals.")] = 0.95,
    force: ForceOption = False,
) -> None:
    """Say what changed between runs: options, data, code, scores with intervals, questions won and lost."""
    chosen = session.look()
    from kgqa_core.report.runs import run_tables, write
    from kgqa_core.runs.diff import compare_runs
    from kgqa_core.runs.records import choose_run
    from kgqa_core.store.outputs import claim_file
    from tasks.tracking.addresses import compare_page

    records = [choose_run(chosen.root, word) for word in runs]
    ids = [record["run_id"] for record in records]
    if len(ids) < 2:
        raise InputError(f"give at least two runs to compare; {runs[0]!r} is one ({ids[0]})")
    twice = sorted({run_id for run_id in ids if ids.count(run_id) > 1})
    if twice:
        raise InputError(f"run {twice[0]} is given twice ({' '.join(runs)}); give different runs")
    page = claim_file(html, force=force) if html is not None else None
    with err.status("comparing …"):
        comparison = compare_runs(records, experiment=experiment, metric=metric, level=level)
    if page is not None:
        with page.writing() as path:
            write(path, comparison, time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()))
    if session.as_json:
        print_json({**comparison, "html": str(html) if html else None})
        return
    for part in run_tables(comparison, limit):
        common.out.print(part)
    in_mlflow = [(one.get("mlflow_experiment_id"), one.get("mlflow_run_id")) for one in records]
    if (address := compare_page(chosen, in_mlflow)) is not None:
        common.out.print(f"MLflow       {address}", soft_wrap=True)
    if html is not None:
        common.out.print(f"Page         {html.resolve().as_uri()}", soft_wrap=True)
