"""`kgqa`: the commands, each in the module of what it is about; they call a flow or the library and show what came out.

Exit codes: 0 done, 1 failure, 2 bad input or usage, 130 Ctrl-C, 143 SIGTERM.  With `--json` the last line of stdout is
one JSON object; logs, progress and tables for people go to stderr.  Heavy libraries are imported by the command that
needs them.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from flows.cli._session import out
from flows.cli.abstention import abstain
from flows.cli.answerability import answerability_app
from flows.cli.ask import answer, ask, evaluate
from flows.cli.bridge import bridge
from flows.cli.cache import cache_app
from flows.cli.compare import compare
from flows.cli.datasets import datasets
from flows.cli.demo import demo
from flows.cli.faults import run_command
from flows.cli.feedback import feedback_app
from flows.cli.home import gc, home
from flows.cli.judge import judge
from flows.cli.kg import kg_app
from flows.cli.link import link
from flows.cli.ltgen import ltgen_app
from flows.cli.mcp import mcp
from flows.cli.predictions import predictions
from flows.cli.questions import questions_app
from flows.cli.run import forecast, refresh, report, run
from flows.cli.serve import serve
from flows.cli.subset import subset
from flows.cli.ui import ui
from flows.cli.usage import CommandApp
from kgqa_core.spool import spooling

app = CommandApp(
    name="kgqa",
    help="Answer questions from a knowledge graph that you own, and measure how far to trust the answers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
COMMANDS = (
    demo,
    run,
    ask,
    answer,
    serve,
    report,
    compare,
    refresh,
    forecast,
    evaluate,
    judge,
    link,
    mcp,
    datasets,
    ui,
    home,
    gc,
)
"""In the order of `kgqa --help`."""
for _command in COMMANDS:
    app.command()(_command)
app.add_typer(kg_app, name="kg")
app.add_typer(cache_app, name="cache")
app.add_typer(feedback_app, name="feedback")
app.add_typer(ltgen_app, name="ltgen")
app.add_typer(questions_app, name="questions")
app.add_typer(answerability_app, name="answerability")
answerability_app.command()(abstain)
questions_app.command()(predictions)
questions_app.command()(bridge)
kg_app.command()(subset)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        out.print(f"kgqa {version('kgqa')}", highlight=False)
        raise typer.Exit


@app.callback()
def kgqa(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Answer questions from a knowledge graph that you own, and measure how far to trust the answers."""
    context.with_resource(spooling())


def main() -> None:
    """Entry point where the commands are imported already; `flows.cli.start` is that of `kgqa`."""
    sys.exit(run_command(app, verbose="--verbose" in sys.argv or "-v" in sys.argv))
