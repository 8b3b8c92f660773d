"""Statements as integers → the tables of the store: ids in arrays, triples sorted as words, the rest in DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kgqa_core.kg.ingest import pack_kernels
from kgqa_core.kg.ingest.sorted_words import SortedWords
from kgqa_core.kg.literals import CALENDAR_SQL, NUMBER_SQL, NUMERIC, PRECISION_SQL, TEMPORAL, TIME_SQL, UNIT_SQL, XSD
from kgqa_core.kg.sql import execute_with, in_pieces, memory_bytes, number

Array = NDArray[Any]

CHUNK = 1_000_000
"""Triples that are written at once."""

IN_WORDS = 0.5
"""Share of the memory limit that triples may take while they are sorted as words of 8 bytes; more go to files."""

ENTITY_BYTES, LEAST_ENTITIES = 1_600, 50_000
"""Memory for each entity whose row is made at a time, four times what its joins need; and the fewest at a time."""


def assign_ids(connection: duckdb.DuckDBPyConnection) -> None:
    """Makes `ids(tid, id)` of entities and literals, and `relation_ids(tid, id)`: dense, in canonical order.

    A term gets an id when it ends a fact or a type statement, has a name without being a relation, or is the value
    of a qualifier.  Everything after this step goes by these two tables.
    """
    connection.execute(
        """
        CREATE TABLE relation_ids AS
        SELECT tid, (row_number() OVER (ORDER BY key) - 1)::INTEGER AS id FROM relation_terms"""
    )
    terms = number(connection, "SELECT count(*) FROM terms")
    used = np.zeros(terms, dtype=np.bool_)
    for (subjects,) in _columns(connection, "SELECT subject FROM texts"):
        used[subjects] = True
    for (relations,) in _columns(connection, "SELECT tid FROM relation_terms"):
        used[relations[relations < terms]] = False
    for query in (
        "SELECT subject, object FROM facts",
        "SELECT subject, object FROM statements WHERE role IN ('type', 'subtype')",
        "SELECT value FROM kept_qualifiers",
    ):
        for columns in _columns(connection, query):
            for column in columns:
                used[column] = True
    tids = np.flatnonzero(used).astype(np.int32)
    _insert(
        connection, "CREATE TABLE ids AS SELECT tid, id FROM batch", tid=tids, id=np.arange(len(tids), dtype=np.int32)
    )


def encode(connection: duckdb.DuckDBPyConnection, folder: Path) -> dict[str, int]:
    """Fills entities, relations, triples, names and rejects of the attached `kg` from what `meaning` left; counts.

    folder: for temporary files.
    """
    run = connection.execute
    limit = memory_bytes(str(run("SELECT current_setting('memory_limit')").fetchall()[0][0]))
    facts = number(connection, "SELECT count(*) FROM facts")
    room = int(IN_WORDS * limit)
    used = min(8 * facts, room) + 20 * number(connection, "SELECT count(*) FROM terms")
    run(f"SET memory_limit = '{max(limit - used, limit // 2)} B'")
    ids, relations = _map(connection, "ids"), _map(connection, "relation_ids")
    kinds, datatypes = _kinds(connection, len(ids))
    degrees = np.zeros(int(ids.max(initial=-1)) + 1, dtype=np.int64)
    bits = _word(relations, degrees)
    if bits <= 64:
        words = SortedWords(facts, 1 << bits, room, folder)
        pairs = _triples(connection, ids, relations, kinds, len(datatypes), degrees, words)
    else:
        pairs = _wide_triples(connection, ids, relations, kinds, len(datatypes), degrees)
    for relation, value in _columns(connection, "SELECT relation, value FROM kept_qualifiers"):
        pairs = np.union1d(pairs, relations[relation].astype(np.int64) * len(datatypes) + kinds[value])
    _insert(
        connection,
        "CREATE TABLE met AS SELECT relation, datatype FROM batch",
        relation=pairs // len(datatypes),
        datatype=np.array(datatypes, dtype=object)[pairs % len(datatypes)],
    )
    run(
        """
        INSERT INTO kg.relations
        SELECT r.id, t.key, u.datatype FROM relation_ids r JOIN relation_terms t USING (tid) LEFT JOIN (
          SELECT relation, CASE WHEN count(*) > 1 THEN 'mixed' ELSE coalesce(min(datatype::VARCHAR), 'entity')
                 END AS datatype
          FROM met GROUP BY relation) u ON u.relation = r.id
        ORDER BY r.id"""
    )
    _insert(
        connection,
        "CREATE TABLE degrees AS SELECT id, degree FROM batch WHERE degree > 0",
        id=np.arange(len(degrees), dtype=np.int32),
        degree=degrees,
    )
    del ids, relations, kinds, degrees, pairs
    run(f"SET memory_limit = '{limit} B'")
    _measure(connection)
    _entities(connection, limit)
    run("DROP TABLE measures; DROP TABLE degrees")
    names(connection)
    run("INSERT INTO kg.rejects SELECT * FROM raw_rejects ORDER BY source, line, reason, text")
    return {
        "entities": number(connection, "SELECT count(*) FROM kg.entities WHERE kind = 'entity'"),
        "literals": number(connection, "SELECT count(*) FROM kg.entities WHERE kind = 'literal'"),
        "relations": number(connection, "SELECT count(*) FROM kg.relations"),
        "triples": number(connection, "SELECT count(*) FROM kg.triples"),
    }


def _entities(connection: duckdb.DuckDBPyConnection, limit: int) -> None:
    """Fills kg.entities in order of id, a range of ids at a time: all joins at once would not fit in little memory."""
    run, rows = connection.execute, max(LEAST_ENTITIES, limit // ENTITY_BYTES)
    for first in range(0, number(connection, "SELECT coalesce(max(id), -1) + 1 FROM ids"), rows):
        ids = f"id BETWEEN {first} AND {first + rows - 1}"
        low, high = run(f"SELECT coalesce(min(tid), 0), coalesce(max(tid), -1) FROM ids WHERE {ids}").fetchall()[0]
        tids = f"tid BETWEEN {low} AND {high}"
        run(
            f"""
            INSERT INTO kg.entities
            SELECT i.id, key, CASE tag WHEN 0 THEN 'entity' ELSE 'literal' END, datatype, number, unit, time, precision,
                   calendar, coalesce(degree, 0), NULL, detail
            FROM (FROM terms WHERE {tids}) JOIN (FROM ids WHERE {ids}) i USING (tid) JOIN tags USING (tag)
            LEFT JOIN (FROM degrees WHERE {ids}) USING (id) LEFT JOIN (FROM measures WHERE {tids}) USING (tid)
            ORDER BY i.id"""
        )


def _measure(connection: duckdb.DuckDBPyConnection) -> None:
    """Makes `measures` of the literals that have a number or a time; the expressions are long, so of those alone.

    Literals without an id are among them: looking for them would cost memory that grows with the graph.
    """

    datatypes = {datatype for (datatype,) in connection.execute("SELECT DISTINCT datatype FROM tags").fetchall()}
    connection.execute(
        "CREATE TABLE measures(tid INTEGER, number DOUBLE, unit VARCHAR, time TIMESTAMP, precision INTEGER, "
        "calendar VARCHAR)"
    )
    for names, columns in (
        (NUMERIC, f"{NUMBER_SQL}, {UNIT_SQL}, NULL, NULL, NULL"),
        (TEMPORAL, f"{NUMBER_SQL}, NULL, {TIME_SQL}, {PRECISION_SQL}, {CALENDAR_SQL}"),
    ):
        types = ", ".join(f"'{XSD}{name}'" for name in names if XSD + name in datatypes)
        if types:
            connection.execute(
                f"INSERT INTO measures SELECT tid, {columns} "
                f"FROM terms JOIN (FROM tags WHERE datatype IN ({types})) USING (tag)"
            )
    connection.execute("INSERT INTO measures SELECT tid, number, unit, NULL, NULL, NULL FROM text_numbers")


def _kinds(connection: duckdb.DuckDBPyConnection, terms: int) -> tuple[Array, list[str | None]]:
    """The kind of every term: 0 of an entity, else the index of its datatype in the list that comes with it."""
    rows = connection.execute("SELECT tag, datatype FROM tags WHERE tag > 0 ORDER BY tag").fetchall()
    datatypes: list[str | None] = [None, *sorted({datatype for _, datatype in rows})]
    index = {datatype: number for number, datatype in enumerate(datatypes)}
    of_tag = np.zeros(max((tag for tag, _ in rows), default=0) + 1, dtype=np.int32)
    for tag, datatype in rows:
        of_tag[tag] = index[datatype]
    kinds = np.zeros(terms, dtype=np.int32)
    for tids, tags in _columns(connection, "SELECT tid, tag FROM terms"):
        kinds[tids] = of_tag[tags]
    return kinds, datatypes


def _triples(
    connection: duckdb.DuckDBPyConnection, ids: Array, relations: Array, kinds: Array, width: int, degrees: Array,
    words: SortedWords,
) -> Array:  # fmt: skip
    """Fills kg.triples by (head, relation, tail), and the degrees; the codes relation * width + kind of its objects."""
    middle, low = _widths(relations, degrees)
    pairs = np.zeros(0, dtype=np.int64)
    for subject, predicate, object_, rank in _columns(connection, "SELECT subject, predicate, object, rank FROM facts"):
        part, codes = np.empty(len(subject), dtype=np.uint64), np.empty(len(subject), dtype=np.int64)
        ordered = pack_kernels.encode(
            subject, predicate, object_, rank, ids, relations, kinds, width, middle, low, part, degrees, codes
        )
        words.add(part, ordered)
        pairs = np.union1d(pairs, np.unique(codes))
    first = 0
    for part in words.pieces(CHUNK):
        rows, ranks = np.empty((3, len(part)), dtype=np.int32), np.empty(len(part), dtype=np.int8)
        pack_kernels.decode(part, middle, low, rows, ranks)
        _write_triples(connection, first, rows[0], rows[1], rows[2], ranks)
        first += len(part)
    return pairs


def _wide_triples(
    connection: duckdb.DuckDBPyConnection, ids: Array, relations: Array, kinds: Array, width: int, degrees: Array
) -> Array:
    """What `_triples` does, for graphs whose triples do not fit in words of 64 bits."""
    pairs = np.zeros(0, dtype=np.int64)
    connection.execute("CREATE TABLE mapped(h INTEGER, r INTEGER, t INTEGER, k TINYINT)")
    with connection.cursor() as reader:  # a connection that writes loses the result that it is reading
        query = "SELECT subject, predicate, object, rank FROM facts"
        for subject, predicate, object_, rank in _columns(reader, query):
            head, relation, tail = ids[subject], relations[predicate], ids[object_]
            for ends in (head, tail):
                degrees += np.bincount(ends, minlength=len(degrees))
            pairs = np.union1d(pairs, np.unique(relation.astype(np.int64) * width + kinds[object_]))
            _insert(connection, "INSERT INTO mapped SELECT * FROM batch", h=head, r=relation, t=tail, k=rank)
        at = 0
        for head, relation, tail, rank in _columns(reader, "SELECT h, r, t, k FROM mapped ORDER BY h, r, t"):
            _write_triples(connection, at, head, relation, tail, rank)
            at += len(head)
    connection.execute("DROP TABLE mapped")
    return pairs


def _widths(relations: Array, degrees: Array) -> tuple[int, int]:
    """Bits of a relation's and of an entity's id."""
    return (int(relations.max(initial=-1)) + 1).bit_length(), len(degrees).bit_length()


def _word(relations: Array, degrees: Array) -> int:
    """Bits of a triple with its rank."""
    middle, low = _widths(relations, degrees)
    return middle + 2 * low + 2


def _write_triples(
    connection: duckdb.DuckDBPyConnection, first: int, head: Array, relation: Array, tail: Array, rank: Array
) -> None:
    numbers = np.arange(first, first + len(head), dtype=np.int64)
    _insert(connection, "INSERT INTO kg.triples SELECT * FROM batch", id=numbers, h=head, r=relation, t=tail, k=rank)


VISIBLE = r"[^\s\p{Z}\p{C}]"
"""A character that can be seen, as a pattern."""


def names(connection: duckdb.DuckDBPyConnection) -> None:
    """Labels, aliases and descriptions of entities, and labels of relations.

    Of several labels in one language the one of the best predicate stays, then the first in order; the others are
    aliases.  Of several descriptions in one language likewise, and the others are dropped.  A text of white space and
    invisible characters only names nothing and is left out.
    """
    run = connection.execute
    run(
        f"""
        CREATE TABLE named AS
        SELECT subject AS tid, role, key AS text,
               CASE WHEN datatype LIKE '@%' THEN datatype[2:] ELSE '' END AS lang,
               row_number() OVER (PARTITION BY subject, role, lang ORDER BY best, object) AS place
        FROM texts JOIN terms ON tid = object JOIN tags USING (tag) WHERE regexp_matches(key, '{VISIBLE}')"""
    )
    run(
        """
        INSERT INTO kg.labels
        WITH best AS (SELECT id, lang, role, text FROM named JOIN ids USING (tid) WHERE place = 1)
        SELECT id, lang, l.text, d.text
        FROM (FROM best WHERE role = 'label') l FULL JOIN (FROM best WHERE role = 'description') d USING (id, lang)
        ORDER BY id, lang"""
    )
    run(
        """
        INSERT INTO kg.aliases
        SELECT DISTINCT i.id, named.lang, text FROM named JOIN ids i USING (tid)
        LEFT JOIN kg.labels l ON l.id = i.id AND l.lang = named.lang
        WHERE (role = 'alias' OR (role = 'label' AND place > 1)) AND text IS DISTINCT FROM l.label
        ORDER BY ALL"""
    )
    run(
        """
        INSERT INTO kg.relation_labels
        SELECT r.id, lang, text FROM named JOIN relation_ids r USING (tid) WHERE role = 'label' AND place = 1
        ORDER BY r.id, lang"""
    )
    run("DROP TABLE named")


def _map(connection: duckdb.DuckDBPyConnection, table: str) -> Array:
    """The id of each tid, by a table (tid, id); -1 where there is none."""
    size = number(connection, f"SELECT greatest((SELECT count(*) FROM terms), max(tid) + 1) FROM {table}")
    result = np.full(size, -1, dtype=np.int32)
    for tids, ids in _columns(connection, f"SELECT tid, id FROM {table}"):
        result[tids] = ids
    return result


def _columns(connection: duckdb.DuckDBPyConnection, query: str) -> Iterator[list[Array]]:
    """The columns of a query's rows, in pieces."""
    for batch in connection.execute(query).to_arrow_reader(500_000):
        yield [column.to_numpy() for column in batch.columns]


def _insert(connection: duckdb.DuckDBPyConnection, statement: str, **columns: Array) -> None:
    """Runs a statement in which `batch` has these columns."""
    execute_with(connection, statement, in_pieces(pa.table(columns)))
