"""Builds the mention dictionary of a graph: its names, folded and sorted, with their entities, in files to be mapped.

Rows stream from the graph through DuckDB, which sorts them and spills to disk; no list of all names is in memory.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from kgqa_core.errors import KgInputError
from kgqa_core.kg.attach import attach
from kgqa_core.kg.ingest.sorted_words import SortedWords
from kgqa_core.kg.names import NAME_SQL, OTHER_NAMES_SQL, relation_name
from kgqa_core.kg.store import KgStore
from kgqa_core.linking import kernels
from kgqa_core.linking.fold import fold, is_unspaced, keys
from kgqa_core.linking.growing_file import GrowingFile
from kgqa_core.linking.mentions import (
    ALIAS,
    CASED,
    FORMAT,
    FUNCTION,
    LABEL,
    NAMED_TYPE,
    NUMBER,
    PART,
    PARTIAL,
    PLACE,
    RELATION,
    RELATION_WORDS,
    TYPE,
    VARIANT,
    Strings,
    StringsWriter,
)
from kgqa_core.linking.short_names import parts_sql, place_relations, stage_parts
from kgqa_core.linking.words import FUNCTION_WORDS, usual_words, usualness
from kgqa_core.monitor import Monitor
from kgqa_core.store.artifacts import write_json
from kgqa_core.workspace import Workspace

Array = NDArray[Any]
ROWS = 100_000
"""Rows that are in Python at a time, and ids of entities whose names are folded at a time."""
RANGE = 1_000_000
"""Ids of entities whose texts are in memory at a time."""
SORTED = 6_000_000
"""Names and parts of names that are sorted at a time."""
MEMORY = "1GB"
"""Of DuckDB, which spills to disk beyond."""
PAIRS_MEMORY = 1 << 29
"""Bytes that pairs of ids may take while they are sorted."""
MOST_TYPES, USUAL = 20_000, 1_500
"""Names of types, and most frequent English words, that typing errors are compared with."""
COUNTED = 4_000_000
"""Names that are read to count which names occur in others."""
WEIGHT = {LABEL: 1.0, ALIAS: 0.5, VARIANT: 0.2, PART: 0.005}
"""How much a candidate's popularity counts by the kind of name."""


def build(workspace: Workspace, *, kg: Path) -> dict[str, Any]:
    """Writes the mention dictionary of the graph `kg` into `out` and returns counts.

    Names are labels and aliases of all languages, and the readable part of the key of an entity without a label.  The
    same graph gives the same bytes.  Raises ArtifactError when there is no graph, KgInputError when nothing in it has
    a name.
    """
    with KgStore.open(kg) as store:
        path, order, graph = store.path, store._language_rank("lang", None), store.counts()
    scratch = Path(tempfile.mkdtemp(prefix="mentions-", dir=workspace.work or workspace.out))
    try:
        with duckdb.connect(
            str(scratch / "names.duckdb"), config={"threads": 2, "memory_limit": MEMORY, "temp_directory": str(scratch)}
        ) as connection:
            attach(connection, path)
            connection.execute("SET enable_progress_bar = false")
            counts = _write_relations(workspace.out, connection, order)
            relations, relation_words = _relation_words(connection)
            nodes = _nodes(connection, scratch)
            counts |= _write_entities(workspace.out, connection, order, len(nodes.known))
            counts |= _stage_names(connection, nodes, workspace.monitor)
            if not counts["forms"]:
                raise KgInputError(f"no entity of the graph {path} has a name that could be found in a text")
            counts |= _write_names(workspace, connection, len(nodes.known), relations, relation_words)
            _write_within(workspace, counts["names"])
            counts |= _write_neighbours(workspace, connection, nodes.known, scratch)
            counts |= _write_places(workspace.out, connection, order, nodes.known)
            counts |= _write_words(workspace.out, relation_words)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    write_json(workspace.out / "meta.json", {"format": FORMAT, "graph": graph, **counts})
    workspace.monitor.note(
        f"{counts['names']:,} names of {counts['named']:,} entities, {counts['ambiguous']:,} ambiguous"
    )
    return counts


@dataclass(frozen=True, slots=True)
class _Nodes:
    """Entities that are no literals, by id.

    known: bool, whether the id is one.  popularity: int64, from 1.  is_type: bool, whether others are of this type.
    """

    known: Array
    popularity: Array
    is_type: Array


def _nodes(connection: duckdb.DuckDBPyConnection, scratch: Path) -> _Nodes:
    [(size,)] = connection.execute("SELECT coalesce(max(id), -1) + 1 FROM kg.entities WHERE kind = 'entity'").fetchall()
    nodes = _Nodes(
        np.zeros(size, dtype=bool), _memmap(scratch, "popularity", np.int64, size), np.zeros(size, dtype=bool)
    )
    [(counted,)] = connection.execute("SELECT count(views) > 0 FROM kg.entities").fetchall()
    popularity = "views" if counted else "popularity"
    sql = f"SELECT id, 1 + coalesce({popularity}, 0)::BIGINT FROM kg.entities WHERE kind = 'entity'"
    for ids, numbers in _columns(connection, sql):
        nodes.known[ids], nodes.popularity[ids] = True, numbers
    types = """SELECT type FROM kg.types UNION SELECT super FROM kg.supertypes
               UNION SELECT type FROM kg.subtypes UNION SELECT super FROM kg.subtypes"""
    for (ids,) in _columns(connection, types):
        nodes.is_type[ids[_known(nodes.known, ids)]] = True
    return nodes


def _stage_names(connection: duckdb.DuckDBPyConnection, nodes: _Nodes, monitor: Monitor) -> dict[str, int]:
    """Folds every name into the table `raw` (name, id, flags, popularity); each pair of name and id is there once."""
    connection.execute("CREATE TABLE raw(name VARCHAR, id INTEGER, flags UTINYINT, popularity BIGINT)")
    here = "id >= $first AND id < $end"
    forms = f"""
        SELECT label AS form, id, {LABEL} AS flag FROM kg.labels WHERE label IS NOT NULL AND {here}
        UNION ALL SELECT alias, id, {ALIAS} FROM kg.aliases WHERE {here}
        UNION ALL SELECT form, id, CASE WHEN form = name THEN {LABEL} ELSE {ALIAS} END FROM (
          SELECT id, name, unnest(list_distinct(list_append(others, name))) AS form FROM (
            SELECT id, {NAME_SQL.format(key="key")} AS name, {OTHER_NAMES_SQL.format(key="key")} AS others
            FROM kg.entities
            WHERE {here} AND id NOT IN (SELECT id FROM kg.labels WHERE label IS NOT NULL AND {here})))"""
    n_forms = unnamed = 0
    last = len(nodes.known)
    for first in range(0, last, ROWS):
        # The whole result of a range, not a stream: one that stands still while rows are inserted can wait for ever.
        given = {"first": first, "end": min(first + ROWS, last)}
        read = connection.execute(forms, given).to_arrow_table()
        tables = []
        for batch in read.filter(nodes.known[read.column(1)]).to_batches(ROWS):
            folded, empty = _folded(batch)
            tables.append(folded)
            unnamed += empty
        if tables:
            frame = pa.concat_tables(tables)
            ids = frame.column("id").to_numpy()
            frame = frame.append_column("popularity", pa.array(nodes.popularity[ids]))
            frame = frame.append_column("type", pa.array(np.where(nodes.is_type[ids], TYPE, 0).astype(np.uint8)))
            connection.register("batch", frame)
            connection.execute(
                "INSERT INTO raw SELECT name, id, bit_or(flags | type), any_value(popularity) "
                "FROM batch GROUP BY name, id"
            )
            connection.unregister("batch")
            n_forms += len(frame)
        monitor.progress(given["end"], last, "entities named")
    return {"forms": n_forms, "unnamed": unnamed}


def _folded(batch: pa.RecordBatch) -> tuple[pa.Table, int]:
    """Names (name, id, flags) of forms (form, id, flag), and how many forms have none."""
    names: list[str] = []
    ids: list[int] = []
    flags: list[int] = []
    unnamed = 0
    for form, i, flag in zip(*(column.to_pylist() for column in batch.columns), strict=True):
        result = keys(form)
        unnamed += not result
        cased = CASED if form != form.lower() or form == form.upper() else 0
        for name, whole in result:
            names.append(name)
            ids.append(i)
            flags.append((flag if whole else VARIANT) | cased)
    columns = {
        "name": pa.array(names, pa.string()),
        "id": pa.array(ids, pa.int32()),
        "flags": pa.array(flags, pa.uint8()),
    }
    return pa.table(columns), unnamed


def _write_names(
    workspace: Workspace,
    connection: duckdb.DuckDBPyConnection,
    entities: int,
    relations: frozenset[str],
    relation_words: frozenset[str],
) -> dict[str, int]:
    workspace.monitor.progress(0, None, "parts of names")
    stage_parts(connection)
    files = {
        name: GrowingFile(workspace.out / f"{name}.npy", dtype)
        for name, dtype in (
            ("candidates.rows", np.int64), ("candidates", np.int32), ("candidates.flags", np.uint8),
            ("commonness", np.float32), ("names.flags", np.uint8), ("names.usual", np.uint8),
        )
    }  # fmt: skip
    writer = StringsWriter(workspace.out, "names")
    files["candidates.rows"].add(np.zeros(1, np.int64))
    named = np.zeros(entities, dtype=bool)
    index = ambiguous = partial = 0
    # Sorted rows are put together here: lists of a group would have to fit in DuckDB's memory all at once.
    for table, starts in _whole_names(_sorted_names(connection, workspace.monitor)):
        column = table.column(0).combine_chunks().take(pa.array(starts))
        writer.add(column)
        ids, kind, mass, share = (table.column(position).to_numpy() for position in (1, 2, 3, 4))
        size, here = len(column), len(table)
        lengths = np.diff(np.append(starts, here))
        files["candidates.rows"].add(index + np.cumsum(lengths))
        files["candidates"].add(ids)
        files["candidates.flags"].add(kind)
        named[ids] = True
        totals = np.repeat(np.add.reduceat(mass, starts), lengths)
        only_parts = np.bitwise_and.reduceat(kind, starts) & PART > 0
        files["commonness"].add(np.where(np.repeat(only_parts, lengths), share, mass / totals))
        types_or_parts = kind | np.where(kind & PART > 0, TYPE, 0).astype(np.uint8)
        named_type = np.bitwise_and.reduceat(types_or_parts, starts) & TYPE > 0
        named_type &= ~only_parts
        names = column.to_pylist()
        files["names.flags"].add(
            np.fromiter((_name_flags(name, relations, relation_words) for name in names), np.uint8, size)
            | np.where(named_type, NAMED_TYPE, 0).astype(np.uint8)
            | np.where(only_parts, PARTIAL, 0).astype(np.uint8)
        )
        files["names.usual"].add(np.fromiter(map(usualness, names), np.uint8, size))
        whole = np.add.reduceat(kind & PART == 0, starts, dtype=np.int64)
        ambiguous, partial = ambiguous + int((whole > 1).sum()), partial + int(only_parts.sum())
        index += here
    sizes = {name: file.close() for name, file in files.items()}
    connection.execute("DROP TABLE raw; DROP TABLE short")
    return {
        "names": writer.close() - partial,
        "parts": partial,
        "candidates": sizes["candidates"],
        "named": int(np.count_nonzero(named)),
        "ambiguous": ambiguous,
    }


def _sorted_names(connection: duckdb.DuckDBPyConnection, monitor: Monitor) -> Iterator[pa.RecordBatch]:
    """Rows (name, id, flags, mass, share) by name, those by a part of it last, the heaviest first.

    A range of names at a time, so that what is sorted fits into DuckDB's memory.
    """
    weight = (
        f"CASE WHEN flags & {LABEL} > 0 THEN {WEIGHT[LABEL]} WHEN flags & {ALIAS} > 0 THEN {WEIGHT[ALIAS]} "
        f"ELSE {WEIGHT[VARIANT]} END"
    )
    bounds = _bounds(connection)
    for number, (low, high) in enumerate(zip(bounds, [*bounds[1:], None], strict=True)):
        where = "name >= $low" + (" AND name < $high" if high is not None else "")
        sql = f"""
            WITH whole AS MATERIALIZED (SELECT * FROM raw WHERE {where})
            SELECT * FROM (
              SELECT name, id, flags, popularity::DOUBLE * ({weight}) AS mass, 0.0::DOUBLE AS share FROM whole
              UNION ALL
              SELECT name, p.id, flags::UTINYINT, mass * {WEIGHT[PART]}::DOUBLE, share
              FROM ({parts_sql(where, WEIGHT)}) p ANTI JOIN whole r USING (name, id))
            ORDER BY name, flags & {PART} > 0, mass DESC, id"""
        given = {"low": low} | ({"high": high} if high is not None else {})
        yield from connection.execute(sql, given).to_arrow_reader(ROWS)
        monitor.progress(number + 1, len(bounds), "ranges of names sorted")


def _bounds(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """First names of ranges of about SORTED names and parts each, ascending; the first is empty."""
    [(total,)] = connection.execute("SELECT (SELECT count(*) FROM raw) + (SELECT count(*) FROM short)").fetchall()
    every = max(1, SORTED // 1000)
    sample = connection.execute(
        "SELECT name FROM raw WHERE rowid % $1 = 0 UNION ALL SELECT name FROM short WHERE rowid % $1 = 0 ORDER BY name",
        [every],
    ).fetchall()
    ranges = -(-total // SORTED)
    return ["", *sorted({sample[index * len(sample) // ranges][0] for index in range(1, ranges)} - {""})]


def _whole_names(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[pa.Table, Array]]:
    """Sorted rows in tables that no name is cut by, and where in them each name begins."""
    carried: pa.Table | None = None
    for batch in batches:
        read = pa.Table.from_batches([batch])
        table = read if carried is None else pa.concat_tables([carried, read])
        names = table.column(0).combine_chunks()
        other = pc.not_equal(names[1:], names[:-1]).to_numpy(zero_copy_only=False)
        starts = np.concatenate([[0], 1 + np.flatnonzero(other)])
        carried = table.slice(int(starts[-1]))
        if len(starts) > 1:
            yield table.slice(0, int(starts[-1])), starts[:-1]
    if carried is not None and len(carried):
        yield carried, np.zeros(1, dtype=np.int64)


def _write_within(workspace: Workspace, whole: int) -> None:
    """Counts the whole names that each name occurs in; of many, every so many are read and stand for the rest."""
    workspace.monitor.progress(0, None, "names within names")
    strings = Strings.open(workspace.out, "names")
    flags = np.load(workspace.out / "names.flags.npy", mmap_mode="r", allow_pickle=False)
    within = _memmap(workspace.out, "names.within", np.int32, len(strings))
    within[:] = 0
    kernels.count_within(strings.blob, strings.offsets, flags & PARTIAL == 0, -(-whole // COUNTED), within)
    within.flush()


def _name_flags(name: str, relations: frozenset[str], words: frozenset[str]) -> int:
    parts = name.split()
    return (
        (FUNCTION if all(part in FUNCTION_WORDS for part in parts) else 0)
        | (RELATION if name in relations else 0)
        | (RELATION_WORDS if all(part in words or part in FUNCTION_WORDS for part in parts) else 0)
        | (NUMBER if name.replace(" ", "").isnumeric() else 0)
    )


def _write_entities(out: Path, connection: duckdb.DuckDBPyConnection, order: str, entities: int) -> dict[str, int]:
    """Keys, best labels and descriptions by id."""
    best = f"""
        SELECT id, arg_min(label, ({order}, lang, label)) FILTER (WHERE label IS NOT NULL) AS label,
               arg_min(description, ({order}, lang, description)) FILTER (WHERE description IS NOT NULL) AS description
        FROM kg.labels WHERE id >= $first AND id < $end GROUP BY id"""
    sql = f"""
        SELECT coalesce(e.key, ''), coalesce(b.label, {NAME_SQL.format(key="e.key")}, ''), coalesce(b.description, '')
        FROM range($first, $end) r
        LEFT JOIN (SELECT id, key FROM kg.entities WHERE kind = 'entity' AND id >= $first AND id < $end) e
               ON e.id = r.range
        LEFT JOIN ({best}) b ON b.id = r.range ORDER BY r.range"""
    writers = [StringsWriter(out, name) for name in ("keys", "labels", "descriptions")]
    for first in range(0, entities, RANGE):
        given = {"first": first, "end": min(first + RANGE, entities)}
        for batch in connection.execute(sql, given).to_arrow_reader(ROWS):
            for position, writer in enumerate(writers):
                writer.add(batch.column(position))
    sizes = {writer.close() for writer in writers}
    return {"entities": sizes.pop()}


def _write_relations(out: Path, connection: duckdb.DuckDBPyConnection, order: str) -> dict[str, int]:
    [(last,)] = connection.execute("SELECT coalesce(max(id), -1) FROM kg.relations").fetchall()
    result = connection.execute(
        f"""
        SELECT b.label, coalesce(e.key, '') FROM range({last + 1}) r
        LEFT JOIN kg.relations e ON e.id = r.range
        LEFT JOIN (SELECT id, arg_min(label, ({order}, lang, label)) AS label FROM kg.relation_labels
                   WHERE label IS NOT NULL GROUP BY id) b ON b.id = r.range ORDER BY r.range"""
    ).fetchall()
    writer = StringsWriter(out, "roles.words")
    writer.add(pa.array([fold(_spaced(label, key)) for label, key in result], pa.string()))
    writer.close()
    return {"relations": last + 1}


def _relation_words(connection: duckdb.DuckDBPyConnection) -> tuple[frozenset[str], frozenset[str]]:
    """Folded labels of all relations in all languages, and the words in them: all parts where words are not spaced."""
    labels = [
        fold(_spaced(label, key))
        for label, key in connection.execute(
            "SELECT label, '' FROM kg.relation_labels WHERE label IS NOT NULL "
            "UNION SELECT NULL, key FROM kg.relations ORDER BY ALL"
        ).fetchall()
    ]
    words = {word for label in labels for word in label.split()}
    for word in [word for word in words if any(map(is_unspaced, word))]:
        words |= {word[first:last] for first in range(len(word)) for last in range(first + 1, len(word) + 1)}
    return frozenset(labels), frozenset(words)


def _spaced(label: str | None, key: str) -> str:
    """The label of a relation, or the name that its key gives, without underscores."""
    return (relation_name(key) if label is None else label).replace("_", " ")


def _write_neighbours(
    workspace: Workspace, connection: duckdb.DuckDBPyConnection, node: Array, scratch: Path
) -> dict[str, int]:
    """Neighbours of each entity in both directions and itself, and its relations likewise; without literals."""
    [(relations,)] = connection.execute("SELECT coalesce(max(id), -1) + 1 FROM kg.relations").fetchall()
    [(triples,)] = connection.execute("SELECT count(*) FROM kg.triples").fetchall()
    [(types,)] = connection.execute("SELECT count(*) FROM kg.types").fetchall()
    entities = len(node)
    near = _Pairs(workspace.out, "near", node, entities, 2 * triples + int(node.sum()), scratch)
    near.add(*[np.flatnonzero(node)] * 2)
    roles = _Pairs(workspace.out, "roles", node, 2 * relations, 2 * triples, scratch)
    done = 0
    for head, relation, tail in _columns(connection, "SELECT head, relation, tail FROM kg.triples"):
        known = _known(node, head) & _known(node, tail)
        near.add(head[known], tail[known])
        near.add(tail[known], head[known])
        roles.add(head, relation)
        roles.add(tail, relation.astype(np.int64) + relations)
        done += len(head)
        workspace.monitor.progress(done, triples, "triples read for neighbours")
    kinds = _Pairs(workspace.out, "types", node, entities, types, scratch)
    for entity, kind in _columns(connection, "SELECT entity, type FROM kg.types"):
        kinds.add(entity[kind < entities], kind[kind < entities])
    workspace.monitor.progress(0, None, "sorting neighbours")
    kinds.write()
    return {"neighbours": near.write(), "roles": roles.write()}


def _columns(connection: duckdb.DuckDBPyConnection, sql: str) -> Iterator[list[Array]]:
    """The columns of a result of numbers, some rows at a time."""
    for batch in connection.execute(sql).to_arrow_reader(RANGE):
        yield [np.asarray(column) for column in batch.columns]


def _known(node: Array, ids: Array) -> Array:
    """Whether each id is a node; node: bool by id, ids may lie beyond it."""
    known: Array = (ids < len(node)) & np.take(node, ids, mode="clip")
    return known


class _Pairs:
    """Distinct values of each entity, ascending: `NAME.rows.npy` and `NAME.npy`.

    node: whether an id is one whose values are wanted; others are left out.  below: a bound of the values.
    most: how many pairs there may be.
    """

    def __init__(self, out: Path, name: str, node: Array, below: int, most: int, scratch: Path) -> None:
        self._out, self._name, self._node, self._below = out, name, node, max(1, below)
        folder = scratch / name
        folder.mkdir()
        self._words = SortedWords(most, len(node) * self._below + 1, PAIRS_MEMORY, folder)

    def add(self, first: Array, second: Array) -> None:
        """Takes pairs of an id and a value, in any order and any number of times."""
        known = _known(self._node, first)
        self._words.add(first[known].astype(np.uint64) * np.uint64(self._below) + second[known].astype(np.uint64))

    def write(self) -> int:
        """Writes the files and returns how many pairs there are."""
        rows = _memmap(self._out, f"{self._name}.rows", np.int64, len(self._node) + 1)
        degree = np.zeros(len(self._node) + 1, dtype=np.int64)
        values = GrowingFile(self._out / f"{self._name}.npy", np.int32)
        last = None
        for words in self._words.pieces(RANGE):
            new = np.ones(len(words), dtype=bool)
            new[1:] = words[1:] != words[:-1]
            new[0] = last is None or words[0] != last
            last = words[-1]
            one, second = np.divmod(words[new], np.uint64(self._below))
            values.add(second)
            first, count = np.unique(one.astype(np.int64), return_counts=True)
            degree[first + 1] += count
        rows[:] = np.cumsum(degree)
        rows.flush()
        return values.close()


def _write_places(out: Path, connection: duckdb.DuckDBPyConnection, order: str, node: Array) -> dict[str, int]:
    """Marks the values of relations with a word of place in their labels."""
    flags = _memmap(out, "entities.flags", np.uint8, len(node))
    flags[:] = 0
    if relations := place_relations(connection, order):
        listed = ", ".join(map(str, relations))
        for (ids,) in _columns(connection, f"SELECT tail FROM kg.triples WHERE relation IN ({listed})"):
            flags[ids[_known(node, ids)]] = PLACE
    flags.flush()
    return {"places": int(np.count_nonzero(flags))}


def _write_words(out: Path, relation_words: frozenset[str]) -> dict[str, int]:
    """Sorted words that are not corrected into a name: of grammar, relations and types, and usual English ones.

    Usual words that are names are left out, for `farnce` is no error for `farce` in a graph of countries.
    """
    names = Strings.open(out, "names")
    flags = np.load(out / "names.flags.npy", mmap_mode="r", allow_pickle=False)
    types = np.flatnonzero(flags & NAMED_TYPE)[:MOST_TYPES]
    words = {word for number in types.tolist() for word in names[number].split()} | set(relation_words)
    words |= {f"{word}s" for word in words} | {f"{word[:-1]}ies" for word in words if word.endswith("y")}
    words |= set(usual_words(USUAL))

    def names_something(word: str) -> bool:
        number = names.find(word)
        return number >= 0 and not flags[number] & (PARTIAL | NAMED_TYPE | RELATION | RELATION_WORDS)

    words = {word for word in words if not names_something(word)}
    words |= FUNCTION_WORDS
    writer = StringsWriter(out, "words")
    writer.add(pa.array(sorted((word for word in words if word), key=str.encode), pa.string()))
    return {"words": writer.close()}


def _memmap(out: Path, name: str, dtype: Any, size: int) -> np.memmap[Any, Any]:
    path = out / f"{name}.npy"
    return open_memmap(path, mode="w+", dtype=dtype, shape=(size,))
