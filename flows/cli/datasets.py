"""`kgqa datasets`: the benchmarks of the field."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.cli._session import JsonSession, out, print_json


def datasets(
    session: JsonSession,
    folder: Annotated[
        Path | None, typer.Option("--folder", help="Folder to look for data sets in.", show_default=False)
    ] = None,
) -> None:
    """List the benchmarks of the field: what they are, where to get them, their licence, what is found here."""
    from rich.table import Table

    from kgqa_core.datasets.registry import catalogue

    rows = catalogue(folder)
    if session.as_json:
        print_json({"datasets": rows})
        return
    table = Table(title="Known data sets", title_justify="left", show_lines=True)
    for name in ("data set", "what it is", "where to get it", "found"):
        table.add_column(name, overflow="fold")
    for row in rows:
        loader = f"\nsource={row['loader']}" if row["loader"] else ""
        what = f"{row['about']}\n{row['questions']} questions; graph: {row['graph']}"
        table.add_row(f"{row['name']}{loader}", what, f"{row['where']}\n{row['licence']}", row.get("found") or "–")
    out.print(table)
