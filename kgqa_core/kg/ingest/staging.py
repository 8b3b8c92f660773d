"""Statements of every format, as integers: what readers yield goes in, and tables of integers come out.

`finish` leaves in the connection: `terms(tid, key, tag)`, one row per distinct term, tid dense from 0: entities by key,
then literals by (key, datatype, detail), byte order, no detail first; `tags(tag, datatype, detail)`, 0 being
entities; `raw(n, subject, predicate, object, rank)`; `raw_qualifiers(n, name, predicate, object)`; `statement_names(n,
name)`; `raw_rejects(source, line, reason, text)`; `filtered(rule, statements)`.

Memory: terms wait in an `Interner` of bounded size; when it is full they go to disk as a sorted run, and a new
generation of ids begins.  Statements wait on disk as integers of their generation.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from kgqa_core.config import KgOptions
from kgqa_core.kg.formats.base import LITERAL, TEXT, StatementBatch
from kgqa_core.kg.formats.spans import XSD_STRING, SpanBatch
from kgqa_core.kg.ingest import intern, pack_kernels
from kgqa_core.kg.ingest.intern import Interner, SortedRun, StringColumn, write_run
from kgqa_core.kg.sql import execute_with, in_pieces, memory_bytes

Array = NDArray[Any]

CHUNK = 1_000_000
"""Statements that are put into tables at once."""

SORTED = 0.25
"""Share of the memory that statements may take to be sorted in it."""


@dataclass(frozen=True, slots=True)
class Staged:
    """What was staged: rows of `raw`, rejects, ignored lines, terms, and which of the rarer things occur at all."""

    statements: int
    rejects: int
    ignored: int
    filtered: int
    entities: int
    literals: int
    ranked: bool
    qualified: bool
    named: bool
    distinct: bool = False
    """There is a table `raw_distinct`."""
    text_predicates: frozenset[str] = frozenset()
    """Relations with objects that have no type (`TEXT`), names left out."""


class Staging:
    """Takes batches; `finish` gives their terms canonical integers, whatever the order of the batches was.

    Half of kg.memory_limit is for terms while there are some here, the rest for DuckDB.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, folder: Path, options: KgOptions) -> None:
        self.connection = connection
        self._folder = folder
        self._memory = memory_bytes(options.memory_limit)
        self._terms = Interner(self._memory // 2)
        self._tags = Interner(sys.maxsize)  # of datatypes, which are few; they stay for all generations
        self._tags.fits(1, 64)
        self._tags.column(StringColumn.of(pl.Series([XSD_STRING])))
        names = (*options.label_predicates, *options.alias_predicates, *options.description_predicates)
        self._text_predicates = sorted({name[1:-1] if name.startswith("<") else name for name in names})
        self._n = self._q = self._rejects = self._ignored = self._filtered = 0
        self._named = False
        self._untyped: set[str] = set()
        self._runs: list[SortedRun] = []
        self._ends: list[tuple[int, int]] = []  # statements and qualifiers at the end of each generation
        self._ranks: list[tuple[Array, Array]] = []  # indexes of ranks other than 0, and these
        self._files = {name: (folder / f"{name}.int32").open("wb") for name in ("statements", "qualifiers", "owners")}
        connection.execute(f"SET memory_limit = '{self._memory // 2} B'")
        connection.execute(
            """
            CREATE TABLE qualifier_names(q BIGINT, name VARCHAR);
            CREATE TABLE statement_names(n BIGINT, name VARCHAR);
            CREATE TABLE raw_rejects(source VARCHAR, line BIGINT, reason VARCHAR, text VARCHAR);
            CREATE TABLE filtered(rule VARCHAR, statements BIGINT)"""
        )

    def __enter__(self) -> Staging:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in self._files.values():
            stream.close()

    @property
    def statements(self) -> int:
        """Statements read so far, with rejects and what readers filtered."""
        return self._n + self._rejects + self._filtered

    def append(self, source: str, batch: StatementBatch | SpanBatch) -> None:
        """Stages a batch of the source with this label."""
        if isinstance(batch, SpanBatch):
            if batch.height:
                self._room(3 * batch.height, len(batch.data))
                self._tags.fits(batch.height, len(batch.data))
                first = self._n
                self._store(self._terms.rows(batch.data, batch.rows, self._tags))
                if batch.qualifiers is not None:
                    columns = _Columns(self, batch.qualifiers)
                    self._room(columns.count, columns.size)
                    self._store_qualifiers(batch.qualifiers, columns, first)
        else:
            self._append_frames(batch)
        if batch.rejects.height:
            self._insert("raw_rejects", batch.rejects.select(pl.lit(source).alias("source"), "line", "reason", "text"))
        for rule, count in sorted(batch.filtered.items()):
            self.connection.execute("INSERT INTO filtered VALUES (?, ?)", [rule, count])
            self._filtered += count
        self._rejects += batch.rejects.height
        self._ignored += batch.ignored

    def finish(self, distinct: bool = True) -> Staged:
        """Makes the tables of integers and gives the memory of the terms back.

        distinct: where nothing sets statements apart but their terms, `raw` may be a view of `raw_distinct(subject,
        predicate, object, copies)`, which is sorted.
        """
        for stream in self._files.values():
            stream.close()
        ranks = self._write_tags()
        self.connection.execute("CREATE TABLE terms(tid INTEGER, key VARCHAR, tag INTEGER)")
        plain = distinct and not (self._ranks or self._q or self._named)
        packed = None
        if self._runs:
            self._flush()
            maps, terms, entities = intern.merge(self._runs, ranks, self._sink, self._memory // 8)
        else:
            ids, entities = self._terms.order(ranks)
            maps, terms = [intern.ranks_of_ids(ids)], len(ids)
            self._ends.append((self._n, self._q))
            if plain and 8 * self._n <= self._memory // 16:
                with ThreadPoolExecutor(1) as other:
                    packing = other.submit(self._pack, maps, terms, entities)
                    intern.emit(self._terms, ids, ranks, self._sink)
                    packed = packing.result()
            else:
                intern.emit(self._terms, ids, ranks, self._sink)
        self._terms.clear()
        self._limit(8 * self._n if plain else 0)
        packed = packed or (self._pack(maps, terms, entities) if plain else None)
        if packed is not None:
            self._fill_distinct(packed)
        else:
            self._fill_raw(maps)
        self._limit(0)
        self._fill_qualifiers(maps)
        return Staged(
            self._n, self._rejects, self._ignored, self._filtered, entities, terms - entities, bool(self._ranks),
            bool(self._q), self._named, packed is not None, frozenset(self._untyped.difference(self._text_predicates)),
        )  # fmt: skip

    # -- taking in -----------------------------------------------------------------------------------------------

    def _append_frames(self, batch: StatementBatch) -> None:
        statements, qualifiers = batch.statements, batch.qualifiers
        columns = [_Columns(self, statements)] if statements.height else []
        if qualifiers is not None and qualifiers.height:
            columns.append(_Columns(self, qualifiers))
        self._room(sum(c.count for c in columns), sum(c.size for c in columns))
        first = self._n
        if statements.height:
            self._untyped.update(statements.filter(pl.col("kind") == TEXT)["predicate"].unique().to_list())
            ids = columns[0].ids()
            if "rank" in statements.columns:
                rank = statements["rank"].fill_null(0).to_numpy()
                indexes = np.flatnonzero(rank)
                if len(indexes):
                    self._ranks.append((indexes + first, rank[indexes].astype(np.int8)))
            if "statement" in statements.columns and statements["statement"].null_count() < statements.height:
                named = statements.select(n=pl.int_range(first, first + pl.len(), dtype=pl.Int64), name="statement")
                self._insert("statement_names", named.filter(pl.col("name").is_not_null()))
                self._named = True
            self._store(ids)
        if qualifiers is not None and qualifiers.height:
            self._store_qualifiers(qualifiers, columns[-1], first)

    def _store_qualifiers(self, qualifiers: pl.DataFrame, columns: _Columns, first: int) -> None:
        """Stages qualifiers.  first: number of the first statement of their batch."""
        columns.ids().tofile(self._files["qualifiers"])
        rows = qualifiers["row"].fill_null(-1) if "row" in qualifiers.columns else None
        owners = np.full(qualifiers.height, -1, dtype=np.int64)
        if rows is not None:
            owners = np.where(rows.to_numpy() < 0, -1, rows.to_numpy() + first).astype(np.int64)
        owners.tofile(self._files["owners"])
        if "statement" in qualifiers.columns and qualifiers["statement"].null_count() < qualifiers.height:
            named = qualifiers.select(q=pl.int_range(self._q, self._q + pl.len(), dtype=pl.Int64), name="statement")
            self._insert("qualifier_names", named.filter(pl.col("name").is_not_null()))
        self._q += qualifiers.height

    def _store(self, ids: Array) -> None:
        ids.tofile(self._files["statements"])
        self._n += len(ids)

    def _room(self, terms: int, size: int) -> None:
        """Makes room for the terms of a batch; a full interner is written to disk first."""
        if not self._terms.fits(terms, size):
            self._flush()
            self._terms.fits(terms, size)

    def _flush(self) -> None:
        """Ends a generation: its terms go to disk in order."""
        self._runs.append(write_run(self._terms, self._tag_ranks(), self._folder / f"run{len(self._runs)}.words"))
        self._ends.append((self._n, self._q))
        self._terms.clear()

    def tags_of(self, datatype: pl.Series, detail: pl.Series | None) -> Array:
        """The tag of each (datatype, detail), 0 where the datatype is null."""
        keys = datatype
        if detail is not None and detail.null_count() < len(detail):
            pair = pl.when(detail.is_null()).then(datatype).otherwise(datatype + "\0" + detail)
            keys = pl.select(pair).to_series()
        strings = StringColumn.of(keys)
        self._tags.fits(len(keys), len(strings.data))
        return self._tags.column(strings) + np.int32(1)

    # -- giving out ----------------------------------------------------------------------------------------------

    def _tag_ranks(self) -> Array:
        """The index of each tag among all so far, in the order of (datatype, detail)."""
        texts = self._tags.texts()
        ranks = np.zeros(len(texts) + 1, dtype=np.int64)
        for rank, tag in enumerate(sorted(range(len(texts)), key=texts.__getitem__), start=1):
            ranks[tag + 1] = rank
        return ranks

    def _write_tags(self) -> Array:
        ranks = self._tag_ranks()
        rows: list[tuple[int, str | None, str | None]] = [(0, None, None)]
        for tag, text in enumerate(self._tags.texts()):
            datatype, separator, detail = text.decode().partition("\0")
            rows.append((int(ranks[tag + 1]), datatype, detail if separator else None))
        schema = {"tag": pl.Int32, "datatype": pl.String, "detail": pl.String}
        self.connection.execute("CREATE TABLE tags(tag INTEGER, datatype VARCHAR, detail VARCHAR)")
        self._insert("tags", pl.DataFrame(sorted(rows, key=lambda row: row[0]), schema=schema, orient="row"))
        return ranks

    def _sink(self, tid: int, offsets: Array, text: Array, tags: Array) -> None:
        keys = pa.LargeStringArray.from_buffers(len(tags), pa.py_buffer(offsets), pa.py_buffer(text))
        tids = np.arange(tid, tid + len(tags), dtype=np.int32)
        self._insert("terms", pa.table({"tid": tids, "key": keys, "tag": tags}))

    def _pack(self, maps: list[Array], terms: int, entities: int) -> _Packed | None:
        """The statements as sorted words; None where they are too many for the memory or too wide for a word."""
        ends = [n for n, _ in self._ends]
        seen = np.zeros(entities, dtype=np.bool_)
        for _, ids, canonical in self._spooled("statements", 3, ends, maps):
            pack_kernels.mark(ids, 1, canonical, seen)
        predicates = np.flatnonzero(seen).astype(np.int32)
        low, middle, high = (int(size).bit_length() for size in (terms, len(predicates), entities))
        if low + middle + high > 64 or 8 * self._n > self._memory * SORTED:
            return None
        rank_of_predicate = np.zeros(entities, dtype=np.int32)
        rank_of_predicate[predicates] = np.arange(len(predicates), dtype=np.int32)
        keys = np.empty(self._n, dtype=np.uint64)
        for at, ids, canonical in self._spooled("statements", 3, ends, maps):
            pack_kernels.pack(ids, canonical, rank_of_predicate, middle, low, keys[at : at + len(ids)])
        keys.sort()
        return _Packed(keys, middle, low, predicates)

    def _fill_distinct(self, packed: _Packed) -> None:
        self.connection.execute(
            """
            CREATE TABLE raw_distinct(subject INTEGER, predicate INTEGER, object INTEGER, copies BIGINT);
            CREATE VIEW raw AS SELECT row_number() OVER () - 1 AS n, subject, predicate, object, 0::TINYINT AS rank
            FROM (SELECT subject, predicate, object, unnest(range(copies)) FROM raw_distinct)"""
        )
        keys, at = packed.keys, 0
        while at < len(keys):
            count = min(CHUNK, len(keys) - at)
            rows, copies = np.empty((3, count), dtype=np.int32), np.empty(count, dtype=np.int64)
            at, count = pack_kernels.distinct(keys, at, packed.middle, packed.low, packed.predicates, rows, copies)
            columns = dict(zip("spo", rows[:, :count], strict=True))
            self._insert("raw_distinct", pa.table({**columns, "copies": copies[:count]}))

    def _fill_raw(self, maps: list[Array]) -> None:
        self.connection.execute(
            "CREATE TABLE raw(n BIGINT, subject INTEGER, predicate INTEGER, object INTEGER, rank TINYINT)"
        )
        indexes = np.concatenate(
            [np.zeros(0, dtype=np.int64), *(rank_of_predicate for rank_of_predicate, _ in self._ranks)]
        )
        values = np.concatenate([np.zeros(0, dtype=np.int8), *(value for _, value in self._ranks)])
        for first, ids in self._mapped("statements", 3, [n for n, _ in self._ends], maps):
            rank = np.zeros(len(ids), dtype=np.int8)
            begin, stop = np.searchsorted(indexes, (first, first + len(ids)))
            rank[indexes[begin:stop] - first] = values[begin:stop]
            columns = {name: np.ascontiguousarray(ids[:, k]) for k, name in enumerate(("s", "p", "o"))}
            n = np.arange(first, first + len(ids), dtype=np.int64)
            self._insert("raw", pa.table({"n": n, **columns, "rank": rank}))

    def _fill_qualifiers(self, maps: list[Array]) -> None:
        run = self.connection.execute
        run("CREATE TABLE raw_qualifiers(n BIGINT, name VARCHAR, predicate INTEGER, object INTEGER)")
        if not self._q:
            return
        with (self._folder / "owners.int32").open("rb") as stream:
            for first, ids in self._mapped("qualifiers", 2, [q for _, q in self._ends], maps):
                owners = np.fromfile(stream, dtype=np.int64, count=len(ids))
                chunk = pa.table(
                    {
                        "q": np.arange(first, first + len(ids), dtype=np.int64),
                        "n": owners,
                        "p": np.ascontiguousarray(ids[:, 0]),
                        "o": np.ascontiguousarray(ids[:, 1]),
                    }
                )
                execute_with(
                    self.connection,
                    "INSERT INTO raw_qualifiers SELECT nullif(b.n, -1), name, p, o "
                    "FROM batch b LEFT JOIN qualifier_names q USING (q)",
                    chunk,
                )
        run("DROP TABLE qualifier_names")

    def _spooled(self, name: str, width: int, ends: list[int], maps: list[Array]) -> Iterator[tuple[int, Array, Array]]:
        """Rows of a file of ids in pieces: (number of the first, rows, canonical integers of their generation)."""
        at = 0
        with (self._folder / f"{name}.int32").open("rb") as stream:
            for end, canonical in zip(ends, maps, strict=True):
                while at < end:
                    count = min(CHUNK, end - at)
                    yield at, np.fromfile(stream, dtype=np.int32, count=count * width).reshape(-1, width), canonical
                    at += count

    def _mapped(self, name: str, width: int, ends: list[int], maps: list[Array]) -> Iterator[tuple[int, Array]]:
        """Rows of a file of ids with canonical integers for them, in pieces: (number of the first, rows)."""
        for at, ids, canonical in self._spooled(name, width, ends, maps):
            yield at, canonical[ids]

    def _limit(self, used: int) -> None:
        """Leaves DuckDB what is not in use, less a part for what it does not count."""
        self.connection.execute(f"SET memory_limit = '{(self._memory - used) * 17 // 20} B'")

    def _insert(self, table: str, rows: pl.DataFrame | pa.Table) -> None:
        pieces = rows if isinstance(rows, pl.DataFrame) else in_pieces(rows)
        execute_with(self.connection, f"INSERT INTO {table} SELECT * FROM batch", pieces)


@dataclass(frozen=True, slots=True)
class _Packed:
    """Statements as sorted words: subject, index among `predicates` in `middle` bits, object in `low` bits."""

    keys: Array
    middle: int
    low: int
    predicates: Array


class _Columns:
    """The columns of a frame of statements or qualifiers as bytes, with the tags of the objects."""

    def __init__(self, staging: Staging, frame: pl.DataFrame) -> None:
        text = (frame["kind"] == TEXT) & frame["predicate"].is_in(staging._text_predicates)
        literal = text | (frame["kind"] == LITERAL)
        datatype = frame["datatype"].fill_null("") if "datatype" in frame.columns else None
        shown = pl.select(
            pl.when(text).then(pl.lit("")).when(literal).then(pl.lit("") if datatype is None else datatype)
        ).to_series()
        detail = None
        if "detail" in frame.columns and frame["detail"].null_count() < frame.height:
            detail = pl.select(pl.when(literal & ~text).then(frame["detail"])).to_series()
        names = [name for name in ("subject", "predicate", "object") if name in frame.columns]
        self._columns = [StringColumn.of(frame[name]) for name in names]
        self._tags = staging.tags_of(shown, detail)
        self._terms = staging._terms
        self.count = frame.height * len(names)
        self.size = sum(len(column.data) for column in self._columns)

    def ids(self) -> Array:
        """Ids (rows, columns) of (subject,) predicate, object."""
        results = [self._terms.column(column) for column in self._columns[:-1]]
        return np.stack([*results, self._terms.column(self._columns[-1], self._tags)], axis=1)
