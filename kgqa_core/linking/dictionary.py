"""Builds the mention dictionary of a graph: its names, folded and sorted, with their entities, in files to be mapped.

Rows stream from the graph through DuckDB, which sorts them and spills to disk; no list of all names is in memory.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator
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
from kgqa_core.kg.names import NAME_SQL
from kgqa_core.kg.store import KgStore
from kgqa_core.linking import kernels
from kgqa_core.linking.fold import fold, is_unspaced, keys
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
from kgqa_core.linking.short_names import add_parts, add_places
from kgqa_core.linking.words import FUNCTION_WORDS, usual_words, usualness
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.store.artifacts import write_json

Array = NDArray[Any]
ROWS = 100_000
"""Rows that are in Python at a time."""
RANGE = 1_000_000
"""Ids of entities whose texts are in memory at a time."""
MEMORY = "2GB"
"""Of DuckDB, which spills to disk beyond; 1 GB does not suffice for the parts of 38 million names."""
PAIRS_MEMORY = 1 << 29
"""Bytes that pairs of ids may take while they are sorted."""
MOST_TYPES, USUAL = 20_000, 1_500
"""Names of types, and most frequent English words, that typing errors are compared with."""
COUNTED = 4_000_000
"""Names that are read to count which names occur in others."""
WEIGHT = {LABEL: 1.0, ALIAS: 0.5, VARIANT: 0.2, PART: 0.005}
"""How much a candidate's popularity counts by the way it comes by the name."""


def build(out: Path, *, kg: Path, monitor: Monitor = QUIET, work: Path | None = None) -> dict[str, Any]:
    """Writes the mention dictionary of the graph `kg` into `out` and returns counts.

    Names are labels and aliases of all languages, and the readable part of the key of an entity without a label.  The
    same graph gives the same bytes.  Raises ArtifactError when there is no graph, KgInputError when nothing in it has
    a name.
    """
    with KgStore.open(kg) as store:
        path, order, graph = store.path, store._language_rank("lang", None), store.counts()
    scratch = Path(tempfile.mkdtemp(prefix="mentions-", dir=work or out))
    try:
        with duckdb.connect(
            str(scratch / "names.duckdb"), config={"threads": 2, "memory_limit": MEMORY, "temp_directory": str(scratch)}
        ) as connection:
            attach(connection, path)
            connection.execute("SET enable_progress_bar = false")
            counts = _write_relations(out, connection, order)
            relations, relation_words = _relation_words(connection)
            counts |= _write_entities(out, connection, order)
            counts |= _stage_names(connection, monitor)
            if not counts["forms"]:
                raise KgInputError(f"no entity of the graph {path} has a name that could be found in a text")
            counts |= _write_names(out, connection, relations, relation_words, monitor)
            _write_within(out, counts["names"], monitor)
            counts |= _write_neighbours(out, connection, counts["entities"], scratch, monitor)
            counts |= _write_places(out, connection, order, counts["entities"])
            counts |= _write_words(out, relation_words)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    write_json(out / "meta.json", {"format": FORMAT, "graph": graph, **counts})
    monitor.note(f"{counts['names']:,} names of {counts['named']:,} entities, {counts['ambiguous']:,} ambiguous")
    return counts


def _stage_names(connection: duckdb.DuckDBPyConnection, monitor: Monitor) -> dict[str, int]:
    """Folds every name into the table `raw` (name, id, flags)."""
    connection.execute("CREATE TABLE raw(name VARCHAR, id INTEGER, flags UTINYINT)")
    forms = f"""
        SELECT l.label AS form, l.id, {LABEL} AS flag FROM kg.labels l SEMI JOIN nodes USING (id)
        WHERE l.label IS NOT NULL
        UNION ALL SELECT a.alias, a.id, {ALIAS} FROM kg.aliases a SEMI JOIN nodes USING (id)
        UNION ALL SELECT {NAME_SQL.format(key="e.key")}, e.id, {LABEL} FROM kg.entities e SEMI JOIN nodes USING (id)
        WHERE e.id NOT IN (SELECT id FROM kg.labels WHERE label IS NOT NULL)"""
    # Read in ranges, not as a stream: a streamed result that stands still while rows are inserted can wait for ever.
    connection.execute(f"CREATE TABLE forms AS {forms}")
    [(total,)] = connection.execute("SELECT count(*) FROM forms").fetchall()
    n_forms = unnamed = 0
    for first in range(0, total, ROWS):
        rows = "SELECT form, id, flag FROM forms WHERE rowid >= ? AND rowid < ? ORDER BY rowid"
        batch = connection.execute(rows, [first, first + ROWS]).to_arrow_table()
        names: list[str] = []
        ids: list[int] = []
        flags: list[int] = []
        columns = (batch.column(position).to_pylist() for position in range(3))
        for form, i, flag in zip(*columns, strict=True):
            result = keys(form)
            unnamed += not result
            cased = CASED if form != form.lower() or form == form.upper() else 0
            for name, whole in result:
                names.append(name)
                ids.append(i)
                flags.append((flag if whole else VARIANT) | cased)
        frame = pa.table({"name": pa.array(names, pa.string()), "id": pa.array(ids, pa.int32()),
                          "flags": pa.array(flags, pa.uint8())})  # fmt: skip
        connection.register("batch", frame)
        connection.execute("INSERT INTO raw SELECT * FROM batch")
        connection.unregister("batch")
        n_forms += len(names)
        monitor.progress(first + batch.num_rows, total, "names")
    connection.execute("DROP TABLE forms")
    return {"forms": n_forms, "unnamed": unnamed}


def _write_names(
    out: Path,
    connection: duckdb.DuckDBPyConnection,
    relations: frozenset[str],
    relation_words: frozenset[str],
    monitor: Monitor,
) -> dict[str, int]:
    monitor.progress(0, None, "sorting names")
    weight = (
        f"CASE WHEN flags & {LABEL} > 0 THEN {WEIGHT[LABEL]} WHEN flags & {ALIAS} > 0 THEN {WEIGHT[ALIAS]} "
        f"ELSE {WEIGHT[VARIANT]} END"
    )
    add_parts(connection, WEIGHT)
    connection.execute(
        f"""
        CREATE TABLE pairs AS
        SELECT name, r.id, flags | CASE WHEN n.is_type THEN {TYPE} ELSE 0 END AS flags,
               n.popularity::DOUBLE * ({weight}) AS mass, 0.0::DOUBLE AS share
        FROM (SELECT name, id, bit_or(flags) AS flags FROM raw GROUP BY name, id) r JOIN nodes n USING (id);
        INSERT INTO pairs
        SELECT name, p.id, flags | CASE WHEN n.is_type THEN {TYPE} ELSE 0 END, mass * {WEIGHT[PART]}::DOUBLE, share
        FROM parts p JOIN nodes n USING (id) ANTI JOIN raw r ON r.name = p.name AND r.id = p.id;
        DROP TABLE raw;
        DROP TABLE parts"""
    )
    [(candidates, names)] = connection.execute("SELECT count(*), count(DISTINCT name) FROM pairs").fetchall()
    rows = _memmap(out, "candidates.rows", np.int64, names + 1)
    entities, entity_flags = (
        _memmap(out, "candidates", np.int32, candidates),
        _memmap(out, "candidates.flags", np.uint8, candidates),
    )
    commonness = _memmap(out, "commonness", np.float32, candidates)
    flags, usual = _memmap(out, "names.flags", np.uint8, names), _memmap(out, "names.usual", np.uint8, names)
    writer = StringsWriter(out, "names")
    rows[0] = number = place = 0
    ambiguous = partial = 0
    # Sorted rows are put together here: lists of a group would have to fit in DuckDB's memory all at once.
    sql = f"""SELECT name, id, flags::UTINYINT, mass, share FROM pairs
              ORDER BY name, flags & {PART} > 0, mass DESC, id"""
    for table, starts in _whole_names(connection.execute(sql).to_arrow_reader(ROWS)):
        column = table.column(0).combine_chunks().take(pa.array(starts))
        writer.add(column)
        values = [table.column(position).to_numpy() for position in (1, 2, 3, 4)]
        size, here = len(column), len(table)
        lengths = np.diff(np.append(starts, here))
        rows[number + 1 : number + size + 1] = place + np.cumsum(lengths)
        entities[place : place + here], entity_flags[place : place + here] = values[0], values[1]
        totals = np.repeat(np.add.reduceat(values[2], starts), lengths)
        only_parts = np.bitwise_and.reduceat(values[1], starts) & PART > 0
        commonness[place : place + here] = np.where(np.repeat(only_parts, lengths), values[3], values[2] / totals)
        types_or_parts = values[1] | np.where(values[1] & PART > 0, TYPE, 0).astype(np.uint8)
        named_type = np.bitwise_and.reduceat(types_or_parts, starts) & TYPE > 0
        named_type &= ~only_parts
        flags[number : number + size] = (
            np.fromiter((_name_flags(name, relations, relation_words) for name in column.to_pylist()), np.uint8, size)
            | np.where(named_type, NAMED_TYPE, 0).astype(np.uint8)
            | np.where(only_parts, PARTIAL, 0).astype(np.uint8)
        )
        usual[number : number + size] = np.fromiter((usualness(name) for name in column.to_pylist()), np.uint8, size)
        whole = np.add.reduceat(values[1] & PART == 0, starts, dtype=np.int64)
        ambiguous, partial = ambiguous + int((whole > 1).sum()), partial + int(only_parts.sum())
        number, place = number + size, place + here
        monitor.progress(number, names, "sorted names")
    writer.close()
    for array in (rows, entities, entity_flags, commonness, flags, usual):
        array.flush()
    [(named,)] = connection.execute("SELECT count(DISTINCT id) FROM pairs").fetchall()
    connection.execute("DROP TABLE pairs")
    return {
        "names": names - partial,
        "parts": partial,
        "candidates": candidates,
        "named": named,
        "ambiguous": ambiguous,
    }


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


def _write_within(out: Path, whole: int, monitor: Monitor) -> None:
    """Counts the whole names that each name occurs in; of many, every so many are read and stand for the rest."""
    monitor.progress(0, None, "names within names")
    strings, flags = Strings.open(out, "names"), np.load(out / "names.flags.npy", mmap_mode="r", allow_pickle=False)
    within = _memmap(out, "names.within", np.int32, len(strings))
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


def _write_entities(out: Path, connection: duckdb.DuckDBPyConnection, order: str) -> dict[str, int]:
    """Keys and best labels by id, and the table `nodes` (id, popularity, is_type) of entities that are no literals."""
    connection.execute(
        """
        CREATE TABLE nodes AS
        SELECT id, 1 + coalesce(CASE WHEN (SELECT count(views) FROM kg.entities) > 0 THEN views ELSE popularity END, 0)
                   AS popularity, id IN (SELECT type FROM kg.types UNION SELECT super FROM kg.supertypes
                   UNION SELECT type FROM kg.subtypes UNION SELECT super FROM kg.subtypes) AS is_type
        FROM kg.entities WHERE kind = 'entity'"""
    )
    [(last,)] = connection.execute("SELECT coalesce(max(id), -1) FROM nodes").fetchall()
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
    for first in range(0, last + 1, RANGE):
        given = {"first": first, "end": min(first + RANGE, last + 1)}
        for batch in connection.execute(sql, given).to_arrow_reader(ROWS):
            for position, writer in enumerate(writers):
                writer.add(batch.column(position))
    sizes = {writer.close() for writer in writers}
    return {"entities": sizes.pop()}


def _write_relations(out: Path, connection: duckdb.DuckDBPyConnection, order: str) -> dict[str, int]:
    [(last,)] = connection.execute("SELECT coalesce(max(id), -1) FROM kg.relations").fetchall()
    result = connection.execute(
        f"""
        SELECT r.range, coalesce(b.label, {NAME_SQL.format(key="e.key")}, '') FROM range({last + 1}) r
        LEFT JOIN kg.relations e ON e.id = r.range
        LEFT JOIN (SELECT id, arg_min(label, ({order}, lang, label)) AS label FROM kg.relation_labels
                   WHERE label IS NOT NULL GROUP BY id) b ON b.id = r.range ORDER BY r.range"""
    ).fetchall()
    writer = StringsWriter(out, "roles.words")
    writer.add(pa.array([fold(label.replace("_", " ")) for _, label in result], pa.string()))
    writer.close()
    return {"relations": last + 1}


def _relation_words(connection: duckdb.DuckDBPyConnection) -> tuple[frozenset[str], frozenset[str]]:
    """Folded labels of all relations in all languages, and the words in them: all parts where words are not spaced."""
    labels = [
        fold(label.replace("_", " "))
        for (label,) in connection.execute(
            f"SELECT label FROM kg.relation_labels WHERE label IS NOT NULL "
            f"UNION SELECT {NAME_SQL.format(key='key')} FROM kg.relations ORDER BY 1"
        ).fetchall()
    ]
    words = {word for label in labels for word in label.split()}
    for word in [word for word in words if any(map(is_unspaced, word))]:
        words |= {word[first:last] for first in range(len(word)) for last in range(first + 1, len(word) + 1)}
    return frozenset(labels), frozenset(words)


def _write_neighbours(
    out: Path, connection: duckdb.DuckDBPyConnection, entities: int, scratch: Path, monitor: Monitor
) -> dict[str, int]:
    """Neighbours of each entity both ways, itself among them, and its relations both ways; literals are left out."""
    [(relations,)] = connection.execute("SELECT coalesce(max(id), -1) + 1 FROM kg.relations").fetchall()
    [(triples,)] = connection.execute("SELECT count(*) FROM kg.triples").fetchall()
    [(types,)] = connection.execute("SELECT count(*) FROM kg.types").fetchall()
    node = np.zeros(entities, dtype=bool)
    for (ids,) in _columns(connection, "SELECT id FROM nodes"):
        node[ids] = True
    near = _Pairs(out, "near", node, entities, 2 * triples + int(node.sum()), scratch)
    near.add(*[np.flatnonzero(node)] * 2)
    roles = _Pairs(out, "roles", node, 2 * relations, 2 * triples, scratch)
    done = 0
    for head, relation, tail in _columns(connection, "SELECT head, relation, tail FROM kg.triples"):
        known = _known(node, head) & _known(node, tail)
        near.add(head[known], tail[known])
        near.add(tail[known], head[known])
        roles.add(head, relation)
        roles.add(tail, relation.astype(np.int64) + relations)
        done += len(head)
        monitor.progress(done, triples, "triples read for neighbours")
    kinds = _Pairs(out, "types", node, entities, types, scratch)
    for entity, kind in _columns(connection, "SELECT entity, type FROM kg.types"):
        kinds.add(entity[kind < entities], kind[kind < entities])
    monitor.progress(0, None, "sorting neighbours")
    kinds.write()
    return {"neighbours": near.write(), "roles": roles.write()}


def _columns(connection: duckdb.DuckDBPyConnection, sql: str) -> Iterator[list[Array]]:
    """The columns of a result of numbers, some rows at a time."""
    for batch in connection.execute(sql).to_arrow_reader(RANGE):
        yield [np.asarray(column) for column in batch.columns]


def _known(node: Array, ids: Array) -> Array:
    """Whether each id is a node; node: bool by id, ids may lie beyond it."""
    found: Array = (ids < len(node)) & np.take(node, ids, mode="clip")
    return found


class _Pairs:
    """Distinct values of each entity, ascending: `NAME.rows.npy` and `NAME.npy`.

    node: whether an id is one whose values are wanted; others are left out.  below: a bound of the values.
    most: how many pairs there may be.
    """

    def __init__(self, out: Path, name: str, node: Array, below: int, most: int, scratch: Path) -> None:
        self._out, self._name, self._node, self._below = out, name, node, max(1, below)
        folder = scratch / name
        folder.mkdir()
        self._file = folder / "values"
        self._words = SortedWords(most, len(node) * self._below + 1, PAIRS_MEMORY, folder)

    def add(self, one: Array, two: Array) -> None:
        """Takes pairs of an id and a value, in any order and any number of times."""
        known = _known(self._node, one)
        self._words.add(one[known].astype(np.uint64) * np.uint64(self._below) + two[known].astype(np.uint64))

    def write(self) -> int:
        """Writes the files and returns how many pairs there are."""
        rows = _memmap(self._out, f"{self._name}.rows", np.int64, len(self._node) + 1)
        degree = np.zeros(len(self._node) + 1, dtype=np.int64)
        last = None
        with self._file.open("wb") as stream:
            for words in self._words.pieces(RANGE):
                new = np.ones(len(words), dtype=bool)
                new[1:] = words[1:] != words[:-1]
                new[0] = last is None or words[0] != last
                last = words[-1]
                one, two = np.divmod(words[new], np.uint64(self._below))
                two.astype(np.int32).tofile(stream)
                first, count = np.unique(one.astype(np.int64), return_counts=True)
                degree[first + 1] += count
        rows[:] = np.cumsum(degree)
        size = int(rows[-1])
        values = _memmap(self._out, self._name, np.int32, size)
        with self._file.open("rb") as stream:
            for start in range(0, size, RANGE):
                values[start : start + RANGE] = np.fromfile(stream, np.int32, min(RANGE, size - start))
        self._file.unlink()
        for array in (rows, values):
            array.flush()
        return size


def _write_places(out: Path, connection: duckdb.DuckDBPyConnection, order: str, entities: int) -> dict[str, int]:
    add_places(connection, order)
    flags = _memmap(out, "entities.flags", np.uint8, entities)
    flags[:] = 0
    for batch in connection.execute("SELECT id FROM places").to_arrow_reader(ROWS):
        flags[np.asarray(batch.column(0))] = PLACE
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
