"""What a new dump adds to a graph and leaves out, without reading it into tables: the change for `kg.update.patch`.

Every statement of the old graph is put into a `StatementSet`; the statements of the dump are compared with it as they
are read.  What the set does not have came; what nobody stated went.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
from numpy.typing import NDArray

from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError
from kgqa_core.input_files import unchanged
from kgqa_core.kg.attach import shut_out
from kgqa_core.kg.build import Pace, Part, Tally
from kgqa_core.kg.formats.ahead import read_ahead
from kgqa_core.kg.formats.base import ENTITY, LITERAL, StatementBatch, empty
from kgqa_core.kg.formats.spans import SpanBatch
from kgqa_core.kg.ingest import restate
from kgqa_core.kg.names import bare_key
from kgqa_core.kg.sql import memory_bytes, number, quoted, registered
from kgqa_core.kg.store import KgStore
from kgqa_core.kg.update.patch import (
    CAME,
    WENT,
    NotPatchable,
    check_pair,
    check_reification,
    patch,
    statements_allowed,
    terms_of,
)
from kgqa_core.kg.update.patch_region import text_predicates
from kgqa_core.kg.update.statement_set import StatementSet
from kgqa_core.monitor import Monitor
from kgqa_core.store.scratch import scratch_folder
from kgqa_core.workspace import Workspace

Array = NDArray[Any]

ROWS = 500_000
"""Statements of the old graph that are hashed at once."""


def patch_from_dump(workspace: Workspace, parts: Sequence[Part], *, old: Path, options: KgOptions) -> dict[str, Any]:
    """Writes the graph of a dump, made from the graph `old`; what `delta.update` counts.

    Raises NotPatchable where the dump must be read into tables, and KgInputError as a build does.
    """
    with KgStore.open(old) as store:
        _check(store, parts, options)
        path, meta = store.path, store.meta
        amends = number(store.connection, "SELECT count(*) FROM amends")
    counted = ("triples", "labels", "aliases", "descriptions", "type_statements")
    most = amends + sum(meta["counts"].get(name, 0) for name in counted)
    if StatementSet.bytes_for(most) > memory_bytes(options.memory_limit) // 4:
        raise NotPatchable(f"kg.memory_limit ({options.memory_limit}) is too small to hold the hashes of the old graph")
    known = StatementSet(most)
    with scratch_folder(workspace.work, "kgqa-compare") as folder, duckdb.connect(":memory:", config={
        "threads": options.threads, "memory_limit": f"{memory_bytes(options.memory_limit) // 2} B",
        "temp_directory": str(folder),
    }) as connection:  # fmt: skip
        connection.execute(f"ATTACH {quoted(path)} AS kg (READ_ONLY); USE kg")
        shut_out(connection)
        workspace.monitor.progress(0, 100, "% · the old graph's statements")
        graph = _Graph(connection, known, meta)
        graph.add()
        came, repeated = _compare(parts, known, options, meta["counts"]["triples"], workspace.monitor)
        went = list(graph.unstated())
    del known, graph
    read = [*came, Part("the old graph", "graph, went", went, checked=True)]
    return patch(workspace, old=old, options=options, parts=read, repeated=repeated)


def _check(store: KgStore, parts: Sequence[Part], options: KgOptions) -> None:
    """Raises NotPatchable where equal statements do not make an equal graph."""
    if "stated" not in store.meta:
        raise NotPatchable("the old graph was built by an earlier version")
    try:
        check_pair(store, options)
    except KgInputError:
        raise NotPatchable("the old graph does not have all that its statements stated") from None
    if number(store.connection, "SELECT count(*) FROM (SELECT id FROM triples WHERE rank <> 0 LIMIT 1)"):
        raise NotPatchable("the old graph has ranks")
    if any(part.format == "wikidata-rdf" for part in parts):
        raise NotPatchable("Wikidata's RDF is put together from several statements")
    bridges = [bare_key(key) for key in options.bridges]
    sql = "SELECT count(*) FROM amends WHERE stated AND list_contains($1, predicate)"
    if number(store.connection, sql, [bridges]):
        raise NotPatchable("bridges that a filter kept from being triples are counted again")


class _Graph:
    """The statements of the graph that a connection reads, and their hashes."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, known: StatementSet, meta: Mapping[str, Any]) -> None:
        self._connection, self._known, self._meta = connection, known, meta
        self._entities = self._hash_terms(
            "entities", "CASE kind WHEN 'entity' THEN NULL ELSE datatype || coalesce(chr(0) || detail, '') END"
        )
        self._relations = self._hash_terms("relations", "NULL::VARCHAR")

    def add(self) -> None:
        """Puts all statements into the set."""
        for hashes, _ in self._facts():
            self._known.add(hashes)
        for role in restate.implied_roles(self._meta):
            for hashes, _ in self._implied(role):
                self._known.add(hashes)
        for hashes, _ in self._amends("NOT stated"):
            self._known.remove(hashes)
        for hashes, _ in self._amends("stated"):
            self._known.add(hashes)

    def unstated(self) -> Iterator[StatementBatch]:
        """The statements that are in the set and were not stated, marked as went."""
        left = self._known.left
        if left:
            rows = self._left(self._facts())
            yield from self._marked(
                restate.facts_of("(SELECT t.* FROM triples t SEMI JOIN left_over USING (id))"), rows
            )
            left -= rows.height
        for role in restate.implied_roles(self._meta) if left else ():
            yield from self._marked(
                restate.named(role, "left_over", self._meta["usual"]), self._left(self._implied(role))
            )
        if left:
            yield from self._marked("FROM left_over", self._left(self._amends("stated")))

    def _hash_terms(self, table: str, tag: str) -> Array:
        """Hashes of terms by id."""
        hashes = np.zeros((2, number(self._connection, f"SELECT max(id) + 1 FROM {table}")), dtype=np.uint64)
        for frame in _frames(self._connection, f"SELECT id, key, {tag} AS tag FROM {table}"):
            hashes[:, frame["id"].to_numpy()] = self._known.terms(frame["key"], frame["tag"])
        return hashes

    def _facts(self) -> Iterator[tuple[Array, pl.DataFrame]]:
        for frame in _frames(self._connection, "SELECT id, head, relation, tail FROM triples"):
            heads, relations, tails = (frame[name].to_numpy() for name in ("head", "relation", "tail"))
            yield self._known.of_ids(heads, relations, tails, self._entities, self._relations), frame

    def _implied(self, role: str) -> Iterator[tuple[Array, pl.DataFrame]]:
        usual = self._meta["usual"]
        predicate = self._known.terms(pl.Series([usual[role]]))
        for frame in _frames(self._connection, restate.rows_of(role, usual)):
            subjects = self._entities[:, frame["head"].to_numpy()]
            if "text" in frame.columns:
                objects = self._known.terms(frame["text"], frame["datatype"])
            else:
                objects = self._entities[:, frame["tail"].to_numpy()]
            yield self._known.of_terms(subjects, np.repeat(predicate, frame.height, axis=1), objects), frame

    def _amends(self, which: str) -> Iterator[tuple[Array, pl.DataFrame]]:
        for frame in _frames(self._connection, restate.amends_of(which)):
            yield _hash_frame(self._known, frame.with_columns(literal=pl.col("kind") == "literal")), frame

    def _left(self, pieces: Iterator[tuple[Array, pl.DataFrame]]) -> pl.DataFrame:
        frames = [frame.filter(pl.Series(self._known.unstated(hashes))) for hashes, frame in pieces]
        return pl.concat(frames) if frames else pl.DataFrame()

    def _marked(self, sql: str, left_over: pl.DataFrame) -> Iterator[StatementBatch]:
        """The statements of a query over some rows, marked as went."""
        if not left_over.height:
            return
        with registered(self._connection, left_over=left_over):
            frames = list(_frames(self._connection, sql))
        kind = pl.when(pl.col("kind") == "literal").then(LITERAL).otherwise(ENTITY).cast(pl.Int8).alias("kind")
        mark = pl.lit(WENT).alias("statement")
        for frame in frames:
            yield StatementBatch(frame.select("subject", "predicate", "object", kind, "datatype", "detail", mark))


def _hash_frame(known: StatementSet, frame: pl.DataFrame) -> Array:
    """Hashes of statements with `literal`, `datatype` and `detail`."""
    both = pl.col("datatype") + "\0" + pl.col("detail")
    detailed = pl.when(pl.col("detail").is_null()).then("datatype").otherwise(both)
    tags = frame.select(tag=pl.when("literal").then(detailed))["tag"]
    return known.of_terms(
        known.terms(frame["subject"]), known.terms(frame["predicate"]), known.terms(frame["object"], tags)
    )


def _compare(
    parts: Sequence[Part], known: StatementSet, options: KgOptions, triples: int, monitor: Monitor
) -> tuple[list[Part], int]:
    """Parts with what the set does not have, and how many statements were stated again."""
    texts, most = text_predicates(options), statements_allowed(triples)
    pace = Pace([part.size for part in parts], monitor)
    came, read, new, repeated = [], 0, 0, 0
    with unchanged([part.path for part in parts if part.path is not None], KgInputError):
        for at, part in enumerate(parts):
            tally = Tally(part.path or Path(part.label), part.format, options.max_reject_share)
            batches = []
            for batch in part.batches:
                tally.add(batch)
                rest, again = _rest(batch, known, texts)
                repeated += again
                new += rest.height
                read += batch.height
                if new > most:
                    raise NotPatchable(f"more than {most:,} statements came")
                if rest.height or rest.rejects.height or rest.ignored or rest.filtered or rest.unread:
                    batches.append(rest)
                pace.show(at, batch.fraction, read, f"{part.label} as {part.format}")
            tally.finish()
            tally.report(part.label, monitor)
            came.append(Part(part.label, f"{part.format}, came", batches, checked=True))
    if not read:
        raise NotPatchable("the dump holds no statement")
    return came, repeated


def _rest(batch: StatementBatch | SpanBatch, known: StatementSet, texts: Sequence[str]) -> tuple[StatementBatch, int]:
    """A batch without the statements that the set has, marked as came; how many of those were stated again."""
    if batch.qualifiers is not None and batch.qualifiers.height:
        raise NotPatchable("the dump has qualifiers")
    frame = empty({})
    again = 0
    if batch.height:
        if isinstance(batch, SpanBatch):
            there, again = known.state(known.of_spans(batch))
            frame = SpanBatch(batch.data, np.ascontiguousarray(batch.rows[~there])).statements
        else:
            frame = batch.statements
            if "rank" in frame.columns and (frame["rank"].fill_null(0) != 0).any():
                raise NotPatchable("the dump has ranks")
            if "statement" in frame.columns and frame["statement"].null_count() < frame.height:
                raise NotPatchable("the dump names its statements")
            there, again = known.state(_hash_frame(known, terms_of(frame, texts)))
            frame = frame.filter(pl.Series(~there))
        check_reification(frame)
        frame = frame.with_columns(pl.lit(CAME).alias("statement"))
    rest = StatementBatch(frame, batch.rejects, batch.ignored, batch.fraction, None, batch.filtered, batch.unread)
    return rest, again


def _frames(connection: duckdb.DuckDBPyConnection, sql: str) -> Iterator[pl.DataFrame]:
    """The rows of a query in pieces, read ahead."""

    def batches() -> Iterator[Any]:
        yield from connection.execute(sql).to_arrow_reader(ROWS)

    with closing(read_ahead(batches)) as pieces:
        for batch in pieces:
            frame = pl.from_arrow(batch)
            if isinstance(frame, pl.DataFrame) and frame.height:
                yield frame
