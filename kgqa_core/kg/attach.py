"""How a graph's file is attached to a DuckDB connection: alone, or as an overlay with its base beside it."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb

from kgqa_core.errors import ArtifactError
from kgqa_core.kg.sql import quoted
from kgqa_core.store.digest import VOLATILE

BASE, OVERLAY = "kg_base", "kg_overlay"
"""Names under which an overlay's views look for the graph beneath, and under which the overlay itself is attached."""

BASE_NOTE = f"{VOLATILE}/base.json"
"""Where the base of an overlay lies, beside its file: `path`, which begins with `artifacts` where both are of one home,
or `relative` to the overlay's folder, or both."""

CARRIED = f"{VOLATILE}/base"
"""Folder of an overlay with a copy of its base."""

COPIED = ("triples", "qualifiers")
"""Tables of an overlay whose rows are numbered anew: they are copied into memory, for quick look-ups."""


def attach(connection: duckdb.DuckDBPyConnection, file: Path) -> None:
    """Attaches a graph's file read-only as `kg`, and shuts every other file out before anything of it is read.

    An overlay is attached as `kg_overlay` beside its base; `kg` is then a database in memory with copies of COPIED and
    views of the other tables.  Raises ArtifactError when the base of an overlay is not there, or is another graph;
    duckdb.Error for other files.
    """
    run = connection.execute
    base = base_of(file)
    if base is None:
        run(f"ATTACH {quoted(file)} AS kg (READ_ONLY)")
        shut_out(connection)
        return
    run(f"ATTACH {quoted(base)} AS {BASE} (READ_ONLY)")
    run(f"ATTACH {quoted(file)} AS {OVERLAY} (READ_ONLY)")
    shut_out(connection)
    _check_base(connection, file, base)
    run("ATTACH ':memory:' AS kg")
    names = run("SELECT table_name FROM duckdb_tables() WHERE database_name = ? ORDER BY table_name", [BASE]).fetchall()
    for (name,) in names:
        kind, order = ("TABLE", " ORDER BY ALL") if name in COPIED else ("VIEW", "")
        run(f"CREATE {kind} kg.{name} AS FROM {OVERLAY}.{name}{order}")


def shut_out(connection: duckdb.DuckDBPyConnection, *but: Path) -> None:
    """No file can be reached any more but those attached, the connection's spill folder and what is below `but`.

    A graph's file may have a view in the place of a table, which reads whatever files DuckDB lets it.
    """
    if but:
        connection.execute(f"SET allowed_directories = [{', '.join(quoted(folder) for folder in but)}]")
    connection.execute("SET enable_external_access = false")


def base_of(file: Path) -> Path | None:
    """The file of the graph under an overlay, where its note says; None for a graph that is none.

    Raises ArtifactError when the note cannot be read or the file is not there.
    """
    note = file.parent / BASE_NOTE
    if not note.is_file():
        return None
    try:
        record = json.loads(note.read_text(encoding="utf-8"))
        seen_from_here = [file.parent / record["relative"]] if "relative" in record else []
        named = [Path(record["path"])] if "path" in record else []
        candidates = [*seen_from_here, *(_in_home_of(file, path) for path in named), *named]
        first = [*seen_from_here, *named][0]
    except (OSError, ValueError, LookupError, TypeError) as fault:
        raise ArtifactError(f"{note} cannot be read ({fault}); build the overlay again") from None
    result = next((path for path in candidates if path.is_file()), None)
    if result is None:
        raise ArtifactError(
            f"the graph under the overlay {file.parent} is not at {first} any more; put it there, "
            f"or write its new path into {note}"
        )
    return result.resolve()


def _in_home_of(overlay: Path, base: Path) -> Path:
    """Where an artifact of another home, or of this one before it was moved, lies in the home of an overlay."""
    home = home_of(overlay)
    return base if home is None else home.joinpath("artifacts", *base.parts[-3:])


def home_of(path: Path) -> Path | None:
    """The home that an artifact lies in or is made in; None where it is in none."""
    return next((parent for parent in path.resolve().parents if (parent / "artifacts").is_dir()), None)


def _check_base(connection: duckdb.DuckDBPyConnection, file: Path, base: Path) -> None:
    """Whether the base counts what it counted when the overlay was written."""
    [(text,)] = connection.execute(f"SELECT value FROM {OVERLAY}.meta WHERE key = 'overlay'").fetchall()
    [(counts,)] = connection.execute(f"SELECT value FROM {BASE}.meta WHERE key = 'counts'").fetchall()
    if json.loads(counts) != json.loads(text)["base"]["counts"]:
        raise ArtifactError(f"{base} is not the graph that the overlay {file.parent} was made over; build it again")
