"""`kgqa cache`: the completions that a home has paid for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flows.cli import _session as common
from flows.cli._options import ForceOption, HomeOption
from flows.cli._session import HomeSession, HomeTableSession, print_json
from flows.cli.usage import CommandApp

if TYPE_CHECKING:
    from kgqa_core.llm.cache import ResponseCache

cache_app = CommandApp(no_args_is_help=True, help="Completions of language models that this home keeps.")


@cache_app.command()
def stats(
    session: HomeTableSession,
) -> None:
    """How many completions the cache holds, of which models, and how many were rejected."""
    from rich.table import Table

    counts = _open(session.home).stats()
    if session.as_json:
        print_json(counts)
        return
    table = Table(title="Completions in the cache", title_justify="left")
    for name in ("model", "endpoint"):
        table.add_column(name)
    for name in ("completions", "rejected"):
        table.add_column(name, justify="right")
    for row in counts["models"]:
        name = row["backend"] + (f":{row['model']}" if row["model"] else "")
        table.add_row(name, row["endpoint"] or "–", f"{row['entries']:,}", f"{row['spent']:,}")
    common.out.print(table)
    tokens = f"{counts['prompt_tokens']:,} prompt and {counts['completion_tokens']:,} completion tokens"
    odd = f", {counts['repaired']:,} odd replies repaired" if counts["repaired"] else ""
    common.out.print(f"{tokens}{odd}, {counts['bytes'] / 2**20:,.1f} MB on disk")


@cache_app.command()
def export(
    out: Annotated[Path, typer.Option("--out", help="File to write, one JSON object a completion.")],
    force: ForceOption = False,
    home: HomeOption = None,
) -> None:
    """Write every completion with its prompt as JSON lines."""
    from kgqa_core.store.outputs import claim_file

    cache = _open(home)
    with claim_file(out, force=force).writing() as path:
        number = cache.export(path)
    common.out.print(f"{number:,} completions in {out}", markup=False)


@cache_app.command()
def clear(
    model: Annotated[
        str | None, typer.Option("--model", help="Only this model's, by its id.", show_default=False)
    ] = None,
    rejected: Annotated[bool, typer.Option("--rejected", help="Only those that a check rejected.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    home: HomeOption = None,
) -> None:
    """Remove completions; they are requested, and paid, again when they are needed."""
    cache = _open(home)
    if not yes:
        typer.confirm("Completions that are forgotten must be paid again. Forget them?", abort=True)
    common.out.print(f"{cache.clear(model=model, spent_only=rejected):,} completions forgotten")


def _open(home: Path | None) -> ResponseCache:
    from kgqa_core.llm.cache import open_cache

    return open_cache(HomeSession(home).look().cache)
