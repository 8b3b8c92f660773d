"""Graph files → `kg.duckdb`: every statement is a triple, a name, a repetition or a reject, and the sum is checked.

A build stops when too many lines of a source are rejected (`Tally`).
"""

from __future__ import annotations

import contextlib
import errno
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError, KgqaError, StorageError
from kgqa_core.input_files import unchanged
from kgqa_core.kg.formats.base import StatementBatch
from kgqa_core.kg.formats.detect import reader_of
from kgqa_core.kg.formats.registry import check_format
from kgqa_core.kg.formats.source import Source
from kgqa_core.kg.formats.spans import SpanBatch
from kgqa_core.kg.ingest import (
    assemble_wikidata,
    entail,
    infer,
    interpret,
    made_names,
    made_types,
    reification,
    restate,
)
from kgqa_core.kg.ingest.encode import assign_ids, encode
from kgqa_core.kg.ingest.own_names import give_names
from kgqa_core.kg.ingest.sources import find_sources
from kgqa_core.kg.ingest.staging import Staged, Staging
from kgqa_core.kg.mapping.choose import MappedTables, mapped_tables
from kgqa_core.kg.sql import memory_bytes, quoted
from kgqa_core.kg.store import FILE, READING, SCHEMA_VERSION, create_tables, write_meta
from kgqa_core.monitor import QUIET, Monitor, NoteRecorder
from kgqa_core.store.artifacts import write_json
from kgqa_core.workspace import Workspace

FLOOR = 3
"""So many rejects pass in every source where more statements are good than bad (unless the share is 0)."""

EARLY = 10_000
"""Statements after which a build may stop before the end of a source."""


class Tally:
    """Counts of one source, which raise when too much of it is rejected.

    A source may lose `share` of its statements, and never all; with a share above 0, three rejects always pass
    while the good lines outnumber them, so that one slip does not spoil a small file.  The build stops
    before the end once it has seen more rejects than the whole source may have, whose length is estimated from the
    bytes read.
    """

    def __init__(self, path: Path, format: str, share: float) -> None:
        self.path, self.format, self.share = path, format, share
        self.statements = self.rejects = self.ignored = self.unread = 0
        self.examples: list[tuple[int, str, str]] = []

    def add(self, batch: StatementBatch | SpanBatch) -> None:
        """Counts a batch: as rejected what is `unread`, as read the qualifiers that name a statement elsewhere.

        Raises KgInputError when it is clear that too much will be rejected.
        """
        self.statements += batch.height + batch.rejects.height + sum(batch.filtered.values()) + batch.unread
        qualifiers = batch.qualifiers
        if qualifiers is not None:
            self.statements += qualifiers["row"].null_count() if "row" in qualifiers.columns else qualifiers.height
        self.rejects += batch.rejects.height + batch.unread
        self.unread += batch.unread
        self.ignored += batch.ignored
        if len(self.examples) < 3:
            self.examples = (self.examples + batch.rejects.sort("line").head(3).rows())[:3]
        expected = self.statements / max(batch.fraction, 1e-9)
        if self.statements >= EARLY and self.rejects > max(self.share * expected, FLOOR):
            raise self._too_many("so far")

    def finish(self) -> None:
        """Raises KgInputError when too much was rejected."""
        good = self.statements - self.rejects
        passes = self.rejects <= self.share * self.statements
        passes |= self.share > 0 and self.rejects <= FLOOR and self.rejects < good
        if self.rejects and (not passes or not good):
            raise self._too_many("in all")

    def report(self, label: str, monitor: Monitor) -> None:
        """Notes of the source with this label what is lost or absent without being an error."""
        if self.unread:
            monitor.note(f"{label}: about {self.unread:,} statements were lost beside those in the rejects")
        if not self.statements:
            monitor.note(f"{label} holds no statement")

    def _too_many(self, when: str) -> KgInputError:
        examples = "; ".join(f"line {line}: {reason}: {text[:60]!r}" for line, reason, text in self.examples)
        if all("is not UTF-8" in reason for _, reason, _ in self.examples):
            advice = "convert the file to UTF-8, with `iconv -f latin1 -t UTF-8` if its text is of Western Europe"
        elif self.statements > self.rejects:
            advice = f"mend the lines, raise kg.max_reject_share ({self.share:g}), or set kg.format and kg.delimiter"
        else:
            advice = "check that it is what you meant to read, or set kg.format and kg.delimiter"
        return KgInputError(
            f"{self.path}, read as {self.format}: {self.rejects:,} of {self.statements:,} statements {when} are "
            f"rejected ({self.rejects / self.statements:.1%}), {examples}; {advice}"
        )


@dataclass(frozen=True, slots=True)
class Part:
    """Something that gives statements.  label: its name in rejects and errors; format: how it is read; size: bytes.

    checked: how much of it was rejected was judged before.
    """

    label: str
    format: str
    batches: Iterable[StatementBatch | SpanBatch]
    size: int = 1
    path: Path | None = None
    checked: bool = False
    source: Source | None = None
    """The file, where it is one; what was guessed of it is known when it has been read."""


def build(workspace: Workspace, *, options: KgOptions) -> dict[str, Any]:
    """Builds the graph of `options.files` in `workspace.out/kg.duckdb` and returns what was counted.

    The tables depend on the statements only, not on their order, the number of files or threads.  `statements` =
    `triples` + `duplicates` + `labels` + `aliases` + `descriptions` + `type_statements` + `filtered` + `rejects` -
    `qualifier_triples` - `derived`; blank lines and comments are `ignored`.  What depends on the order of reading is in
    `volatile/reading.json` beside it.  Raises KgInputError for files that cannot be read or are mostly rejected,
    StorageError when the disk is full.  A killed build leaves nothing but `workspace.work`, which the next one clears.
    """
    workspace = replace(workspace, monitor=NoteRecorder(workspace.monitor))
    sources = find_sources(options.files, options)
    check_format(options.format)
    parts, tables = parts_of(sources, options, workspace.monitor)

    def complete(connection: duckdb.DuckDBPyConnection, meta: dict[str, Any]) -> None:
        for note in tables.complete(connection, meta):
            workspace.monitor.note(note)

    return build_parts(workspace, parts, options, complete=complete)


def build_parts(
    workspace: Workspace,
    parts: Sequence[Part],
    options: KgOptions,
    *,
    adjust: Callable[[duckdb.DuckDBPyConnection], int] | None = None,
    assign: Callable[[duckdb.DuckDBPyConnection], None] = assign_ids,
    complete: Callable[[duckdb.DuckDBPyConnection, dict[str, Any]], None] | None = None,
) -> dict[str, Any]:
    """`build` from parts, with steps that an update takes over.

    adjust: may take statements out of the staged tables before their meaning is worked out, and returns how many.
    assign: gives terms and relations their ids.  complete: may change the tables and the meta of the graph at the end.
    """
    given, dropped = options, (*options.drop_relations, *options.names.hide)
    options = options.model_copy(update={"drop_relations": tuple(dict.fromkeys(dropped))})
    with whole_or_none(workspace) as (staging, path):
        path.unlink(missing_ok=True)
        config = limits(options, staging)
        if all(part.path is not None for part in parts) and sum(part.size for part in parts) < SMALL:
            config["threads"] = 1
        with resource_faults(workspace.out, options), duckdb.connect(":memory:", config=config) as connection:
            connection.execute(f"ATTACH {quoted(path)} AS kg")
            create_tables(connection, "kg")
            counts = fill_tables(connection, staging, parts, options, workspace.monitor, adjust=adjust, assign=assign)
            if not counts["triples"]:
                raise no_triples(parts, counts["statements"])
            counts = dict(sorted(counts.items()))
            own = give_names(connection, path, given, None if assign is assign_ids else workspace.monitor)
            meta = restate.record(connection, options) | graph_meta(options, counts) | own
            meta |= guesses(parts) | infer.record(connection)
            if complete is not None:
                complete(connection, meta)
            write_meta(connection, "kg", meta)
            reading = what_was_read(connection, counts) | {"files": {part.label: part.format for part in parts}}
            connection.execute("CHECKPOINT kg")
            connection.execute("DETACH kg")
        if isinstance(workspace.monitor, NoteRecorder):
            reading["notes"] = workspace.monitor.notes
        write_reading(workspace.out, reading, options)
    workspace.monitor.progress(100, 100, "% · encoding")
    workspace.monitor.note(", ".join(f"{value:,} {name}" for name, value in counts.items() if value))
    if counts["rejects"]:
        workspace.monitor.note(f"{counts['rejects']:,} statements are rejected; the graph's table `rejects` lists them")
    return counts | reasons_of(reading)


def fill_tables(
    connection: duckdb.DuckDBPyConnection,
    staging: Path,
    parts: Sequence[Part],
    options: KgOptions,
    monitor: Monitor = QUIET,
    *,
    adjust: Callable[[duckdb.DuckDBPyConnection], int] | None = None,
    assign: Callable[[duckdb.DuckDBPyConnection], None] = assign_ids,
    relations: frozenset[str] = frozenset(),
) -> dict[str, int]:
    """Fills the tables of `kg`, which is attached, but `meta` and `amends`; what `build` counts.

    staging: a folder for temporary files.  adjust, assign: as of `build_parts`.  relations: keys of relations that the
    options may name although no statement has them.
    """
    paths = [part.path for part in parts if part.path is not None]
    with unchanged(paths, KgInputError), Staging(connection, staging, options) as terms:
        staged, unread, types = _read(terms, parts, options, monitor)
    if any(part.format == "wikidata-rdf" for part in parts):
        staged = assemble_wikidata.assemble(connection, staged)
    staged = reification.assemble(connection, staged, monitor)
    monitor.progress(80, 100, "% · encoding")
    dropped = adjust(connection) if adjust is not None else 0
    options = infer.infer(connection, options, staged, monitor)
    for name, members in types.items():
        connection.execute("INSERT INTO inferred VALUES (?, 'type', ?, 0)", [name, len(members)])
    derived = entail.entail(connection, options, staged, monitor)
    counts = interpret.select(connection, options, staged, monitor, relations) | derived
    assign(connection)
    counts |= encode(connection, staging)
    if not options.literal:
        counts |= made_names.name_blank_nodes(connection, options)
    counts |= interpret.finish(connection, options, monitor)
    if derived:
        made_names.name_classes(connection, options)
    counts["statements"] = staged.statements + staged.rejects + staged.filtered - dropped
    counts |= {"rejects": staged.rejects, "ignored": staged.ignored} | ({"unread": unread} if unread else {})
    _check_sum(counts)
    return counts


def graph_meta(options: KgOptions, counts: Mapping[str, int]) -> dict[str, Any]:
    """What the meta of a graph has beside what `restate.record` returns."""
    return {
        "schema_version": SCHEMA_VERSION,
        "name": options.name,
        "languages": [language.casefold() for language in options.languages],
        "counts": {name: count for name, count in counts.items() if name not in READ},
    }


def guesses(parts: Sequence[Part]) -> dict[str, Any]:
    """What was guessed of the parts, by their labels, for the meta of a graph; nothing where nothing was."""
    found = {part.label: part.source.found for part in parts if part.source is not None and part.source.found}
    return {"read_as": found} if found else {}


@contextlib.contextmanager
def whole_or_none(workspace: Workspace) -> Iterator[tuple[Path, Path]]:
    """An empty folder to stage in, and the file of a graph in `workspace.out`, which is deleted where this fails."""
    out, work = workspace.out, workspace.work
    staging = _fresh(work / "kg-staging") if work is not None else Path(tempfile.mkdtemp(prefix="staging-", dir=out))
    path, whole = out / FILE, False
    try:
        yield staging, path
        whole = True
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        if not whole:
            path.unlink(missing_ok=True)


def write_reading(out: Path, reading: Mapping[str, Any], options: KgOptions) -> None:
    """Writes what `what_was_read` returned beside a graph."""
    with resource_faults(out, options):
        (out / READING).parent.mkdir(exist_ok=True)
        write_json(out / READING, reading)


@contextlib.contextmanager
def resource_faults(out: Path, options: KgOptions) -> Iterator[None]:
    """Says which memory or disk did not suffice for a graph in `out`: raises KgqaError or StorageError."""
    try:
        yield
    except duckdb.OutOfMemoryException as fault:
        raise KgqaError(
            f"{options.memory_limit} of memory does not suffice for the build ({str(fault).splitlines()[0]}); "
            "raise kg.memory_limit or lower kg.threads"
        ) from None
    except (OSError, duckdb.IOException) as fault:
        raise _storage(fault, out) from fault


def no_triples(parts: Sequence[Part], statements: int) -> KgInputError:
    """The error of a graph without triples."""
    return KgInputError(
        f"{', '.join(part.label for part in parts)}: none of {statements:,} statements is a "
        "triple (only labels, aliases or descriptions); add the file with the triples to kg.files"
    )


_QUOTED = r"""''[^'']*''|"[^"]*"|<[^>]*>|\\\S+"""

SMALL = 1 << 17
"""Bytes of files below which a second thread costs more than it brings."""

READ = ("statements", "duplicates", "ignored", "unread")
"""Counts that depend on what was read, not on the graph that it makes; `unread` only where something was lost."""


SUMMED = ("triples", "duplicates", "labels", "aliases", "descriptions", "type_statements", "filtered", "rejects")
"""Counts of what statements became; without qualifiers their sum is `statements`."""


def parts_of(
    sources: Sequence[Source], options: KgOptions, monitor: Monitor = QUIET
) -> tuple[list[Part], MappedTables]:
    """Sources with the readers that understand them, and the tables of one database among them."""
    tables = mapped_tables(sources, options)
    for note in tables.notes:
        monitor.note(note)
    return [
        part_of(source, options)
        if (table := tables.tables.get(source.path)) is None
        else Part(source.label, "mapped table", table.batches(options), source.size, source.path, source=source)
        for source in sources
    ], tables


def part_of(source: Source, options: KgOptions) -> Part:
    """A source with the reader that understands it."""
    reader = reader_of(source, options)
    return Part(source.label, reader.name, reader.read(source, options), source.size, source.path, source=source)


def _read(
    staging: Staging, parts: Sequence[Part], options: KgOptions, monitor: Monitor
) -> tuple[Staged, int, dict[str, set[str]]]:
    """Stages every part; gives about how many statements were lost beyond the rejects, and inferred types, too.

    Raises KgInputError when nothing is in the parts, or too much of one is rejected.
    """
    pace = Pace([part.size for part in parts], monitor)
    ignored = unread = 0
    frames: list[pl.DataFrame] = []
    for number, part in enumerate(parts):
        tally = Tally(part.path or Path(part.label), part.format, options.max_reject_share)
        for batch in part.batches:
            staging.append(part.label, batch)
            if staging.statements <= made_types.MAX_STATEMENTS:
                frames.append(batch.statements)
            if not part.checked:
                tally.add(batch)
            pace.show(number, batch.fraction, staging.statements, f"{part.label} as {part.format}")
            ignored += batch.ignored
            unread += batch.unread
        if part.source is not None and part.source.found:
            found = "; ".join(f"{what}: {value}" for what, value in sorted(part.source.found.items()))
            monitor.note(f"{part.label}, read as {part.format}: {found}")
        if part.checked:
            continue
        tally.finish()
        tally.report(part.label, monitor)
    if not staging.statements and not any(part.checked for part in parts):
        names = ", ".join(str(part.path or part.label) for part in parts)
        raise KgInputError(f"{names} holds no statement ({ignored:,} blank or comment lines); name a file with triples")
    few = frames if staging.statements <= made_types.MAX_STATEMENTS else ()
    if types := made_types.made_types(few, options, [part.label for part in parts]):
        staging.append("types", made_types.statements(types, options))
        parts_text = ", ".join(f"{len(members):,} of type `{name}`" for name, members in types.items())
        monitor.note(f"no types are stated, so they are inferred from names: {parts_text} (kg.infer_types)")
    return staging.finish(distinct=not any(part.format == "wikidata-rdf" for part in parts)), unread, types


class Pace:
    """Tells a monitor the bytes read, the statements a second and the time left; reading is 80 % of the way."""

    def __init__(self, sizes: Sequence[int], monitor: Monitor) -> None:
        self._sizes, self._monitor, self._start = sizes, monitor, time.monotonic()

    def show(self, number: int, fraction: float, statements: int, what: str) -> None:
        """Part `number` has been read to `fraction`; `statements` in all so far."""
        total = max(1, sum(self._sizes))
        done = sum(self._sizes[:number]) + fraction * self._sizes[number]
        seconds = max(time.monotonic() - self._start, 1e-6)
        left = seconds * (total / 0.8 / max(done, 1) - 1)
        self._monitor.progress(
            80 * done / total,
            100,
            f"% · {done / 1e6:,.1f} of {total / 1e6:,.1f} MB, {what}, {statements / seconds:,.0f} statements/s, "
            f"about {left:,.0f} s left",
        )


def what_was_read(connection: duckdb.DuckDBPyConnection, counts: Mapping[str, int]) -> dict[str, Any]:
    """What goes into READING: counts of the reading, rejects by reason and statements left out by rule."""
    return {name: counts[name] for name in READ if name in counts} | _reasons(connection)


def _reasons(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Rejects by reason (what is quoted or a number left out) and statements left out by rule."""
    rejects = connection.execute(
        rf"""
        SELECT regexp_replace(regexp_replace(reason, '0x[0-9a-f]+|[0-9][0-9,]*', 'N', 'g'),
                              '{_QUOTED}', '…', 'g') AS kind, count(*)
        FROM raw_rejects GROUP BY kind ORDER BY count(*) DESC, kind LIMIT 50"""
    ).fetchall()
    rules = connection.execute("SELECT rule, statements FROM kg.filtered ORDER BY rule").fetchall()
    return {"rejects_by_reason": dict(rejects), "filtered_by_rule": dict(rules)}


def reasons_of(reading: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of `what_was_read` that a build counts beside its numbers."""
    return {name: reading[name] for name in ("rejects_by_reason", "filtered_by_rule") if reading[name]}


def _check_sum(counts: dict[str, int]) -> None:
    total = sum(counts[part] for part in SUMMED) - counts["qualifier_triples"] - counts.get("derived", 0)
    if total != counts["statements"]:
        parts = (*SUMMED, "qualifier_triples", *(("derived",) if "derived" in counts else ()))
        parts_text = ", ".join(f"{counts[part]:,} {part}" for part in parts)
        raise KgqaError(
            f"{counts['statements']:,} statements were read, but {total:,} stored ({parts_text}): please report it"
        )


def _fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def limits(options: KgOptions, staging: Path) -> dict[str, str | bool | int | float | list[str]]:
    """The settings of a connection that builds a graph."""
    return {
        "threads": options.threads,
        "memory_limit": f"{memory_bytes(options.memory_limit)} B",
        "temp_directory": str(staging / "spill"),
        "enable_external_access": True,
    }


def _storage(fault: Exception, out: Path) -> KgqaError:
    text = str(fault).splitlines()[0] if str(fault) else type(fault).__name__
    full = (isinstance(fault, OSError) and fault.errno == errno.ENOSPC) or "no space" in str(fault).lower()
    if full:
        return StorageError(f"there is no space left for the graph in {out}; free some, or name another home")
    return StorageError(f"the graph cannot be written to {out}: {text}; check the folder, or name another home")
