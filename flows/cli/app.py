"""`kgqa`: the commands, each in the module of what it is about; they call a flow or the library and show what came out.

Exit codes: 0 done, 1 failure, 2 bad input or usage, 130 Ctrl-C, 143 SIGTERM.  With `--json` the last line of stdout is
one JSON object; logs, progress and tables for people go to stderr.  Heavy libraries are imported by the command that
needs them.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from flows.cli._output import out
from flows.cli.commands import CommandGroup
from flows.cli.faults import run_command
from flows.cli.usage import CommandApp
from kgqa_core.spool import spooling

app = CommandApp(
    name="kgqa",
    cls=CommandGroup,
    help="Answer questions from a knowledge graph that you own, and measure how far to trust the answers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


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
    if os.environ.get("NO_COLOR"):
        from typer import rich_utils

        rich_utils.COLOR_SYSTEM = None
    if "_KGQA_COMPLETE" in os.environ:  # a shell asks for the words that may come next
        from typer.completion import completion_init

        completion_init()
    sys.exit(run_command(app, verbose="--verbose" in sys.argv or "-v" in sys.argv))
