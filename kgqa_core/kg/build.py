"""Graph files → `kg.duckdb`: every statement is a triple, a name, a repetition or a reject, and the sum is checked."""

from __future__ import annotations

import errno
import glob
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any

import duckdb

from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError, KgqaError, StorageError, nearest
from kgqa_core.kg import encode
from kgqa_core.kg.formats.detect import check_format, reader_of
from kgqa_core.kg.formats.source import Source
from kgqa_core.kg.rejects import Tally
from kgqa_core.kg.store import FILE, SCHEMA_VERSION, create_tables, write_meta
from kgqa_core.monitor import QUIET, Monitor

BUNDLED = {"bundled:atlas": "datasets/atlas/data/atlas.nt.gz"}
"""Graphs in the package, by the name that `kg.files` calls them."""


@dataclass(frozen=True, slots=True)
class _Read:
    statements: int
    rejects: int
    ignored: int


def build(out: Path, *, options: KgOptions, monitor: Monitor = QUIET, work: Path | None = None) -> dict[str, Any]:
    """Builds the graph of `options.files` in `out/kg.duckdb` and returns what was counted.

    The tables depend on the statements only, not on their order, the number of files or threads.  `statements` =
    `triples` + `duplicates` + `labels` + `aliases` + `descriptions` + `type_statements` + `rejects`; blank lines and
    comments are `ignored`.  Raises KgInputError for files that cannot be read or are mostly rejected, StorageError when
    the disk is full.  A killed build leaves nothing but `work`, which the next one clears.
    """
    sources = find_sources(options.files)
    check_format(options.format)
    staging = _fresh(work / "kg-staging") if work is not None else Path(tempfile.mkdtemp(prefix="staging-", dir=out))
    path = out / FILE
    path.unlink(missing_ok=True)
    try:
        with duckdb.connect(str(staging / "staging.duckdb"), config=_limits(options, staging)) as connection:
            connection.execute(f"ATTACH '{_sql(path)}' AS kg")
            create_tables(connection, "kg")
            encode.create_raw(connection)
            read = _Read(0, 0, 0)
            for number, source in enumerate(sources):
                one = _load(connection, source, options, monitor, (number, len(sources)))
                read = _Read(read.statements + one.statements, read.rejects + one.rejects, read.ignored + one.ignored)
                if not one.statements:
                    monitor.note(f"{source.label} holds no statement")
            if not read.statements:
                names = ", ".join(str(source.path) for source in sources)
                raise KgInputError(
                    f"{names} holds no statement ({read.ignored:,} blank or comment lines); name a file with triples"
                )
            monitor.progress(0.9, 1.0, "encoding")
            counts = encode.encode(connection, options)
            counts |= {"statements": read.statements, "rejects": read.rejects, "ignored": read.ignored}
            _check_sum(counts)
            if not counts["triples"]:
                raise KgInputError(
                    f"{', '.join(s.label for s in sources)}: none of {read.statements:,} statements is a triple (only "
                    "labels, aliases or descriptions); add the file with the triples to kg.files"
                )
            counts = dict(sorted(counts.items()))
            write_meta(
                connection,
                "kg",
                {
                    "schema_version": SCHEMA_VERSION,
                    "name": options.name,
                    "languages": [language.casefold() for language in options.languages],
                    "counts": counts,
                },
            )
            connection.execute("CHECKPOINT kg")
            connection.execute("DETACH kg")
    except duckdb.OutOfMemoryException as fault:
        raise KgqaError(
            f"{options.memory_limit} of memory does not suffice for the build ({str(fault).splitlines()[0]}); "
            "raise kg.memory_limit or lower kg.threads"
        ) from None
    except (OSError, duckdb.IOException) as fault:
        raise _storage(fault, out) from fault
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    monitor.progress(1.0, 1.0, "encoding")
    monitor.note(", ".join(f"{value:,} {name}" for name, value in counts.items()))
    return counts


def find_sources(names: Sequence[str]) -> list[Source]:
    """The files that `kg.files` names, patterns expanded.  Raises KgInputError."""
    if not names:
        raise KgInputError("kg.files is empty; name a graph file, or bundled:atlas")
    paths: list[Path] = []
    for name in names:
        if name.startswith("bundled:"):
            if name not in BUNDLED:
                raise KgInputError(f"there is no graph {name!r} in the package{nearest(name, BUNDLED)}")
            paths.append(Path(str(package_files("kgqa_core"))) / BUNDLED[name])
        elif glob.has_magic(name) and not Path(name).exists():
            found = sorted(Path(match) for match in glob.glob(name, recursive=True) if Path(match).is_file())
            if not found:
                raise KgInputError(f"no file matches {name!r}; check the pattern, or name the files")
            paths += found
        else:
            paths.append(Path(name).expanduser())
    seen: set[Path] = set()
    for path in paths:
        _check(path)
        if path.resolve() in seen:
            raise KgInputError(f"{path} is named twice in kg.files; name it once")
        seen.add(path.resolve())
    return [Source(path, label) for path, label in zip(paths, _labels(paths), strict=True)]


def _check(path: Path) -> None:
    if path.is_dir():
        inside = sorted(p.name for p in path.iterdir() if p.is_file())
        hint = f"name the files in it, {path / inside[0]} for example" if inside else "it holds no file"
        raise KgInputError(f"{path} is a directory, not a graph file; {hint}")
    if not path.exists():
        folder = path.parent
        if not folder.is_dir():
            raise KgInputError(f"there is no graph file {path}: the folder {folder} does not exist; check the path")
        near = nearest(path.name, [p.name for p in folder.iterdir()], cutoff=0.4)
        raise KgInputError(f"there is no graph file {path}{near or f'; check the name: {folder} holds none like it'}")
    try:
        with path.open("rb") as stream:
            if not stream.read(1):
                raise KgInputError(f"{path} is empty; name a file with triples")
    except OSError as fault:
        raise KgInputError(f"{path} cannot be read: {fault.strerror}; check its permissions") from None


def _labels(paths: Sequence[Path]) -> list[str]:
    """The shortest ends of the paths that tell them apart: no folder of this machine, where the names differ."""
    depth = 1
    while True:
        labels = ["/".join(path.parts[-depth:]) for path in paths]
        if len(set(labels)) == len(labels) or depth >= max(len(path.parts) for path in paths):
            return labels
        depth += 1


def _load(
    connection: duckdb.DuckDBPyConnection, source: Source, options: KgOptions, monitor: Monitor, place: tuple[int, int]
) -> _Read:
    """Reads one source into the staging tables."""
    reader = reader_of(source, options)
    tally = Tally(source, reader.name, options.max_reject_share)
    for batch in reader.read(source, options):
        encode.append(connection, source.label, batch)
        tally.add(batch)
        number, total = place
        monitor.progress(0.9 * (number + batch.fraction) / total, 1.0, f"{source.label} as {reader.name}")
    tally.finish()
    return _Read(tally.statements, tally.rejects, tally.ignored)


def _check_sum(counts: dict[str, int]) -> None:
    parts = ("triples", "duplicates", "labels", "aliases", "descriptions", "type_statements", "rejects")
    total = sum(counts[part] for part in parts)
    if total != counts["statements"]:
        said = ", ".join(f"{counts[part]:,} {part}" for part in parts)
        raise KgqaError(
            f"{counts['statements']:,} statements were read, but {total:,} stored ({said}): please report it"
        )


def _fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def _limits(options: KgOptions, staging: Path) -> dict[str, str | bool | int | float | list[str]]:
    return {
        "threads": options.threads,
        "memory_limit": options.memory_limit,
        "temp_directory": str(staging / "spill"),
        "enable_external_access": True,
    }


def _sql(path: Path) -> str:
    return str(path).replace("'", "''")


def _storage(fault: Exception, out: Path) -> KgqaError:
    text = str(fault).splitlines()[0] if str(fault) else type(fault).__name__
    full = (isinstance(fault, OSError) and fault.errno == errno.ENOSPC) or "no space" in str(fault).lower()
    if full:
        return StorageError(f"there is no space left for the graph in {out}; free some, or name another home")
    return StorageError(f"the graph cannot be written to {out}: {text}; check the folder, or name another home")
