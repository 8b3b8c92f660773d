"""`kgqa datasets`: the benchmarks of the field."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from flows.cli._session import TableSession, out, print_json


def datasets(
    session: TableSession,
    folder: Annotated[
        Path | None, typer.Option("--folder", help="Folder to look for data sets in.", show_default=False)
    ] = None,
) -> None:
    """List the benchmarks of the field: what they are, where to get them, what is found here, and which run.

    A data set runs by a shipped profile whose graph and questions are here; others are read once they are here.
    """
    from rich.table import Table

    from kgqa_core.datasets.published.registry import catalogue

    profiles = _profiles()
    rows = [{**row, "profiles": profiles.get(row["loader"], [])} for row in catalogue(folder)]
    if session.as_json:
        print_json({"datasets": rows})
        return
    table = Table(title="Known data sets", title_justify="left", show_lines=True)
    for name in ("data set", "what it is", "where to get it", "here"):
        table.add_column(name, overflow="fold")
    for row in rows:
        loader = f"\nsource={row['loader']}" if row["loader"] else "\nno loader"
        what = f"{row['about']}\n{row['questions']} questions; graph: {row['graph']}"
        table.add_row(
            f"{row['name']}{loader}", what, f"{row['where']}\n{row['licence']}", row.get("found") or "–", _runs(row)
        )
    out.print(table)


def _runs(row: dict[str, Any]) -> str:
    if not row["profiles"]:
        return "runs over a graph of yours: --kg, --questions" if row["loader"] else "is not read"
    lines = []
    for profile in row["profiles"]:
        absent = profile["absent"]
        more = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
        lines.append(f"--profile {profile['name']}" + (f" needs {absent[0]}{more}" if absent else " runs"))
    return "\n".join(lines)


def _profiles() -> dict[str, list[dict[str, Any]]]:
    """Value of `questions.source` → the shipped profiles of it, each with the files that are not here."""
    from flows.cli._session import PROFILES, profile_names
    from kgqa_core.config import make_profile, read_profile

    profiles: dict[str, list[dict[str, Any]]] = {}
    for name in profile_names():
        profile = make_profile(read_profile(PROFILES / f"{name}.yaml"))
        paths = {own.questions.source: own.questions.path for own in profile.each_set}
        files = [*profile.kg.files, *filter(None, paths.values())]
        absent = [file for file in files if not file.startswith("bundled:") and not Path(file).expanduser().exists()]
        for source in paths:
            profiles.setdefault(source, []).append({"name": name, "absent": absent})
    return profiles
