"""`kgqa home` and `kgqa gc`: what a home holds, and what of it can go."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from flows.cli import _session as common
from flows.cli._session import HomeSession, HomeTableSession, JsonSession, err, print_json
from kgqa_core.errors import ArtifactError
from kgqa_core.report.terminal import VisibleText
from kgqa_core.store.artifacts import Home

SHOWN = 20
"""Rows of a table before it is cut."""


def home(
    session: HomeTableSession,
    verify: Annotated[
        bool, typer.Option("--verify", help="Read every file again and compare it with its artifact's manifest.")
    ] = False,
) -> None:
    """Show where the home is, what it holds and how much of the disk each kind of artifact and each run takes."""
    from kgqa_core.store.inventory import survey
    from tasks.tracking.moved import moved_from

    root = common.existing(session.home).root
    if verify:
        _verify(root, session)
        return
    facts = survey(root) | {"moved_from": moved_from(Home(root))}
    if session.as_json:
        print_json(facts)
        return
    _show(facts)


def _verify(root: Path, session: JsonSession) -> None:
    """Check the bytes of every artifact and say which are damaged; exit code 1 where any is."""
    from kgqa_core.store.artifacts import verify
    from kgqa_core.store.inventory import stored

    artifacts, damaged = stored(root), {}
    with err.status("reading every file of every artifact …") as status:
        for number, artifact in enumerate(artifacts, start=1):
            status.update(f"{artifact.id} ({number:,} of {len(artifacts):,}) …")
            try:
                verify(artifact.path, content=True)
            except ArtifactError as fault:
                damaged[artifact.id] = str(fault)
    if session.as_json:
        print_json({"home": str(root), "artifacts": len(artifacts), "damaged": damaged})
    else:
        whole = len(artifacts) - len(damaged)
        common.out.print(f"{whole:,} of {len(artifacts):,} artifacts are whole", highlight=False)
        for name, what in damaged.items():
            common.out.print(VisibleText(f"{name}: {what}"), soft_wrap=True)
    if damaged:
        raise typer.Exit(1)


def gc(
    session: HomeSession,
    keep: Annotated[int, typer.Option("--keep", min=1, help="Finished runs whose artifacts stay.")] = 5,
    older: Annotated[float, typer.Option("--older", min=0, help="Days; what is younger stays.")] = 0.0,
    yes: Annotated[bool, typer.Option("--yes", help="Remove it; without this only say what would go.")] = False,
    cache: Annotated[
        bool, typer.Option("--cache", help="Also what language models answered: it is asked, and paid, again.")
    ] = False,
) -> None:
    """Remove what no champion, recent run or run under way needs; first without --yes, to see what would go."""
    from kgqa_core.store.gc import plan, sweep

    root = common.existing(session.home).root
    if yes:
        with err.status("tidying …"):
            result = sweep(root, keep=keep, older=older, cache=cache)
    else:
        result = plan(root, keep=keep, older=older, cache=cache)
    if session.as_json:
        print_json(
            {
                "home": str(root),
                "removed": yes,
                "bytes": result.bytes,
                "items": [
                    {"what": item.what, "name": item.name, "bytes": item.bytes, "why": item.why}
                    for item in result.items
                ],
                "kept": result.kept,
                "notes": result.notes,
            }
        )
        return
    _show_plan(result, removed=yes)


def _show(facts: dict[str, Any]) -> None:
    from rich.table import Table

    out = common.out
    out.print(facts["home"], style="bold", soft_wrap=True)
    layout = f"layout {facts['layout']}" + (f", made by kgqa {facts['kgqa']}" if facts["kgqa"] else "")
    if facts["moved_from"]:
        before = (
            f"it was at {', '.join(facts['moved_from'])}; MLflow's records follow with the next command that writes"
        )
        out.print(VisibleText(before), soft_wrap=True, highlight=False)
    out.print(f"{_size(facts['bytes'])} on disk, {_size(facts['disk_free'])} free; {layout}")
    for title, key, columns in (
        ("Places", "places", None),
        ("Artifacts by kind", "kinds", ("kind", "artifacts", "damaged", "size")),
    ):
        table = Table(title=title, title_justify="left")
        if columns is None:
            for name in ("place", "what", "files", "size"):
                table.add_column(name, justify="right" if name in ("files", "size") else "left")
            for name, row in sorted(facts[key].items(), key=lambda item: -item[1]["bytes"]):
                table.add_row(name, row["what"], f"{row['files']:,}", _size(row["bytes"]))
        else:
            for name in columns:
                table.add_column(name, justify="left" if name == "kind" else "right")
            for row in facts[key]:
                damaged = str(row["damaged"] or "–")
                table.add_row(row["kind"], f"{row['artifacts']:,}", damaged, _size(row["bytes"]))
        out.print(table)
    if facts["runs"]:
        crowns = {run: name for name, ids in facts["champions"].items() for run in ids}
        table = Table(title=f"Runs ({len(facts['runs']):,}, newest first)", title_justify="left")
        for name in ("run", "status", "artifacts", "gone", "their size", "own"):
            left = name in ("run", "status")
            table.add_column(name, justify="left" if left else "right", no_wrap=name == "run")
        for row in facts["runs"][::-1][:SHOWN]:
            status = row["status"] + (", champion" if row["run_id"] in crowns else "")
            gone = str(row["gone"] or "–")
            table.add_row(row["run_id"], status, str(row["artifacts"]), gone, _size(row["bytes"]), _size(row["own"]))
        out.print(table)
    store = facts["store"]
    if store["url"] or store["unpushed"]:
        out.print(f"store  {store['url'] or 'none is set'}; {store['unpushed']:,} artifacts wait to be sent")
    for conflict in store["conflicts"]:
        out.print(VisibleText.assemble(("conflict", "red"), f"  {conflict}"), soft_wrap=True)
    for lock in facts["locks"]:
        out.print(f"lock   {lock['lock']}: {lock['owner']} since {lock['since']}")


def _show_plan(result: Any, *, removed: bool) -> None:
    from rich.table import Table

    out = common.out
    rows: dict[tuple[str, str], list[int]] = {}
    for item in result.items:
        kind = f"artifact {item.name.split('/')[0]}" if item.what == "artifact" else item.what
        rows.setdefault((kind, item.why), []).append(item.bytes)
    if rows:
        table = Table(title="Removed" if removed else "Would go", title_justify="left")
        for name in ("what", "why", "number", "size"):
            table.add_column(name, justify="right" if name in ("number", "size") else "left")
        for (kind, why), sizes in sorted(rows.items(), key=lambda row: -sum(row[1])):
            table.add_row(kind, why, f"{len(sizes):,}", _size(sum(sizes)))
        out.print(table)
    if result.kept:
        out.print("kept: " + ", ".join(f"{number:,} for {reason}" for reason, number in sorted(result.kept.items())))
    for note in result.notes:
        out.print(note)
    if removed:
        out.print(f"{len(result.items):,} things removed, {_size(result.bytes)} freed")
    elif rows:
        out.print(f"{len(result.items):,} things, {_size(result.bytes)}; say --yes to remove them")
    else:
        out.print("nothing to remove")


def _size(number: int) -> str:
    size = float(number)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:,.0f} {unit}" if unit in ("B", "kB") else f"{size:,.1f} {unit}"
        size /= 1000
    return f"{size:,.1f} TB"
