"""The first pass: a dump as edges of integers, 20 bytes each, and what says which entities a qualifier or a unit names.

Every statement between two entities whose relation is wanted, or a type, is an edge `(subject, object, relation)`,
in the order of the file.  What is written does not depend on the questions, so that other questions over the same dump
begin with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from kgqa_core.kg.build import Tally
from kgqa_core.kg.formats.base import ENTITY
from kgqa_core.kg.subset.codes import Array, CodeSet, distinct, key_codes
from kgqa_core.kg.subset.read import DumpFile, StatementColumns
from kgqa_core.kg.subset.roles import ATTRIBUTE, DROP, EDGE, INSTANCES, NAME, TYPE, Relations
from kgqa_core.monitor import Monitor

EDGE_COLUMNS = {"subject": np.uint64, "object": np.uint64, "relation": np.uint32}
MENTION_COLUMNS = {"head": np.uint64, "tail": np.uint64, "relation": np.uint32, "by": np.uint32, "value": np.uint64}
"""What a statement names besides its ends: a qualifier's value, or the unit of a quantity.

tail: 0 for a literal.  by: the qualifier's relation, or the statement's own for a unit.
"""
BRIDGE_COLUMNS = {"foreign": np.uint64, "entity": np.uint64}

BLOCK = 1 << 22
"""Edges that are looked at together."""


class _Table:
    """StatementColumns written one behind the other, a file each."""

    def __init__(self, folder: Path, name: str, columns: dict[str, Any], stack: ExitStack) -> None:
        self._columns = {
            column: (stack.enter_context((folder / f"{name}.{column}").open("wb")), kind)
            for column, kind in columns.items()
        }
        self.rows = 0

    def append(self, **parts: Array) -> None:
        for column, (stream, kind) in self._columns.items():
            stream.write(np.ascontiguousarray(parts[column].astype(kind, copy=False)).data)
        self.rows += len(next(iter(parts.values())))


def _mapped(folder: Path, name: str, columns: dict[str, Any]) -> dict[str, Array]:
    """Columns as arrays on the disk."""
    arrays = {}
    for column, kind in columns.items():
        path = folder / f"{name}.{column}"
        empty = path.stat().st_size == 0
        arrays[column] = np.zeros(0, dtype=kind) if empty else np.memmap(path, dtype=kind, mode="r")
    return arrays


def _blocks(folder: Path, name: str, columns: dict[str, Any]) -> Iterator[list[Array]]:
    """Some rows at a time of columns on the disk, in the order of `columns`; 32-bit ones as int64, to index by them."""
    arrays = list(_mapped(folder, name, columns).values())
    for begin in range(0, len(arrays[0]), BLOCK):
        parts = (np.asarray(array[begin : begin + BLOCK]) for array in arrays)
        yield [part.astype(np.int64) if part.itemsize == 4 else part for part in parts]


def write_edges(file: DumpFile, folder: Path, monitor: Monitor) -> dict[str, Any]:
    """Writes the edges of a file to a folder and returns its counts, with the relations by number.

    Raises KgInputError when the file is damaged, or when too much of it is rejected.
    """
    relations = file.relations()
    tally = Tally(file.source.path, file.format, file.options.max_reject_share)
    counts = dict.fromkeys(("statements", "names", "types", "edges", "literals", "left_out"), 0)
    rejects: list[dict[str, Any]] = []
    with ExitStack() as stack:
        edges = _Table(folder, "edges", EDGE_COLUMNS, stack)
        mentions = _Table(folder, "mentions", MENTION_COLUMNS, stack)
        bridges = _Table(folder, "bridges", BRIDGE_COLUMNS, stack)
        for columns in file.columns(relations):
            tally.add(columns.batch)
            _append_edges(columns, relations, edges, counts)
            _append_mentions(columns, relations, mentions)
            foreign, entity = file.bridges(columns, relations)
            bridges.append(foreign=foreign, entity=entity)
            rejects += columns.batch.rejects.head(max(0, 20 - len(rejects))).to_dicts()
            monitor.progress(
                round(100 * columns.batch.fraction, 1), 100, f"% · edges of {file.source.label}, {edges.rows:,} so far"
            )
    tally.finish()
    return {
        **counts,
        "format": file.format,
        "rejects": tally.rejects,
        "ignored": tally.ignored,
        "examples_of_rejects": rejects,
        "relations": relations.keys,
        "roles": relations.roles,
        "allowed": relations.allowed,
    }


def _append_edges(columns: StatementColumns, relations: Relations, edges: _Table, counts: dict[str, int]) -> None:
    roles = np.array(relations.roles, dtype=np.int8)[columns.relation]
    allowed = np.array(relations.allowed, dtype=np.bool_)[columns.relation]
    between = columns.stated & (columns.object != 0)
    types = between & np.isin(roles, (TYPE, INSTANCES))
    others = between & (roles == EDGE) & allowed
    rows = types | others
    edges.append(subject=columns.subject[rows], object=columns.object[rows], relation=columns.relation[rows])
    counts["statements"] += len(roles)
    counts["names"] += int((roles == NAME).sum())
    counts["types"] += int(types.sum())
    counts["edges"] += int(others.sum())
    counts["literals"] += int((columns.stated & (columns.object == 0) & np.isin(roles, (EDGE, ATTRIBUTE))).sum())
    counts["left_out"] += int((~columns.stated | (roles == DROP) | (between & (roles == EDGE) & ~allowed)).sum())


def _append_mentions(columns: StatementColumns, relations: Relations, mentions: _Table) -> None:
    batch = columns.batch
    if "detail" not in getattr(batch, "statements", pl.DataFrame()).columns:
        return
    units = batch.statements["detail"]
    rows = np.flatnonzero(units.str.contains("^Q[0-9]+$").fill_null(False).to_numpy() & columns.stated)
    if len(rows):
        _mention(columns, mentions, rows, columns.relation[rows], key_codes(units.gather(rows)))
    qualifiers = batch.qualifiers
    if qualifiers is None or not qualifiers.height:
        return
    qualifiers = qualifiers.filter(pl.col("row").is_not_null())
    rows = qualifiers["row"].to_numpy()
    predicates = qualifiers["predicate"]
    by = relations.numbers(key_codes(predicates), lambda row: str(predicates[row]))
    values = key_codes(qualifiers["object"])
    values[qualifiers["kind"].to_numpy() != ENTITY] = 0
    stated = columns.stated[rows]
    _mention(columns, mentions, rows[stated], by[stated], values[stated])


def _mention(columns: StatementColumns, mentions: _Table, rows: Array, by: Array, values: Array) -> None:
    mentions.append(
        head=columns.subject[rows],
        tail=columns.object[rows],
        relation=columns.relation[rows],
        by=by,
        value=values,
    )


@dataclass(frozen=True, slots=True)
class EdgeBlock:
    """Some edges.  relation: numbers in the whole dump.  allowed: which are followed."""

    subject: Array
    object: Array
    relation: Array
    allowed: Array


class EdgeFiles:
    """The edges of all files of a dump.

    keys: relations by number.  types: whether a number is a type relation.
    """

    def __init__(self, parts: Sequence[tuple[Path, dict[str, Any]]]) -> None:
        self.keys: list[str] = []
        self._parts: list[tuple[Path, Array, Array, Array]] = []
        numbers: dict[str, int] = {}
        for folder, counts in parts:
            renumbered = [numbers.setdefault(key, len(numbers)) for key in counts["relations"]]
            roles = np.array(counts["roles"], dtype=np.int8)
            allowed = np.array(counts["allowed"], dtype=np.bool_)
            followed = allowed & np.isin(roles, (EDGE, TYPE, INSTANCES))
            self._parts.append(
                (folder, np.array(renumbered, dtype=np.int64), followed, np.isin(roles, (TYPE, INSTANCES)))
            )
        self.keys = list(numbers)
        self.numbers = numbers

    def __len__(self) -> int:
        return sum((folder / "edges.relation").stat().st_size // 4 for folder, *_ in self._parts)

    def blocks(self) -> Iterator[EdgeBlock]:
        """The edges that may be followed or kept, some at a time."""
        for folder, numbers, followed, _ in self._parts:
            for subject, thing, relation in _blocks(folder, "edges", EDGE_COLUMNS):
                yield EdgeBlock(subject, thing, numbers[relation], followed[relation])

    def types_of(self, entities: CodeSet) -> Array:
        """The codes of the types of some entities."""
        type_codes = []
        for folder, _, _, types in self._parts:
            for subject, thing, relation in _blocks(folder, "edges", EDGE_COLUMNS):
                rows = types[relation]
                type_codes.append(np.unique(thing[rows][entities.has(subject[rows])]))
        return distinct(type_codes)

    def mentions(self) -> Iterator[tuple[EdgeBlock, Array, Array, Array]]:
        """Statements, which of them are types, and what they name besides their ends: by a relation, an entity or 0."""
        for folder, numbers, followed, types in self._parts:
            for head, tail, relation, by, value in _blocks(folder, "mentions", MENTION_COLUMNS):
                block = EdgeBlock(head, tail, numbers[relation], followed[relation])
                yield block, types[relation], numbers[by], value

    def bridged(self, foreign: Array) -> dict[int, list[int]]:
        """Codes of the entities that have each of some ids in other graphs."""
        entities: dict[int, list[int]] = {}
        if not len(foreign):
            return entities
        wanted = CodeSet(distinct([foreign]))
        for folder, *_ in self._parts:
            columns = _mapped(folder, "bridges", BRIDGE_COLUMNS)
            rows = np.flatnonzero(wanted.has(np.asarray(columns["foreign"])))
            for value, entity in zip(columns["foreign"][rows].tolist(), columns["entity"][rows].tolist(), strict=True):
                if entity not in entities.setdefault(value, []):
                    entities[value].append(entity)
        return entities
