"""The schema of a graph, as its facts show it: which types of things have a relation, and what it leads to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from kgqa_core.kg.store import KgStore
from kgqa_core.logic.measures import TIME, base_unit, dated_sql

Key = TypeVar("Key")

UNTYPED = ""
"""The type of an entity that has none."""

TEXT = "text"
"""The dimension of a literal that is no number and no date."""


@dataclass(frozen=True, slots=True)
class RelationSchema:
    """What is observed of a relation.

    domain, range: types that its heads, and those of its tails that are entities, have (UNTYPED for one without).
    dimensions: of the tails that are literals: `time`, a unit's key, "" for bare numbers, `text`.  triples: how many.
    """

    key: str
    datatype: str
    triples: int = 0
    domain: frozenset[str] = frozenset()
    range: frozenset[str] = frozenset()
    dimensions: frozenset[str] = frozenset()

    @property
    def measured(self) -> frozenset[str]:
        """The dimensions that can be compared and ranked."""
        return self.dimensions - {TEXT}


@dataclass(frozen=True)
class Schema:
    """Relations by key, types with how many entities have them, the types above each, and qualifiers by key.

    qualifiers: dimensions of the values of each relation that qualifies a statement; `entity` for entities.
    """

    relations: Mapping[str, RelationSchema]
    types: Mapping[str, int]
    supers: Mapping[str, frozenset[str]]
    qualifiers: Mapping[str, frozenset[str]]

    @classmethod
    def read(cls, store: KgStore) -> Schema:
        """The schema of a graph: some passes over its triples, seconds for ten million."""
        run = store.connection.execute
        relations = {
            i: (key, datatype) for i, key, datatype in run("SELECT id, key, datatype FROM relations").fetchall()
        }
        counts = dict(run("SELECT relation, count(*) FROM triples GROUP BY relation").fetchall())
        both: list[dict[int, frozenset[str]]] = [
            _sets(
                run(
                    f"SELECT DISTINCT t.relation, coalesce(k.key, '{UNTYPED}') "
                    f"FROM (SELECT DISTINCT relation, {end} AS id FROM triples) t JOIN entities e USING (id) "
                    "LEFT JOIN types y ON y.entity = t.id LEFT JOIN entities k ON k.id = y.type WHERE e.kind = 'entity'"
                ).fetchall()
            )
            for end in ("head", "tail")
        ]
        domain, reached = both
        values = _dimensions(store, "SELECT DISTINCT relation, tail AS id FROM triples")
        qualifiers = _dimensions(store, "SELECT DISTINCT relation, value AS id FROM qualifiers", entities=True)
        types = run(
            "SELECT k.key, count(*) FROM types y JOIN entities k ON k.id = y.type GROUP BY k.key ORDER BY k.key"
        ).fetchall()
        above = run(
            "SELECT a.key, b.key FROM supertypes s JOIN entities a ON a.id = s.type JOIN entities b ON b.id = s.super"
        ).fetchall()
        nothing: frozenset[str] = frozenset()
        return cls(
            relations={
                key: RelationSchema(
                    key,
                    datatype or "",
                    counts.get(i, 0),
                    domain.get(i, nothing),
                    reached.get(i, nothing),
                    values.get(i, nothing),
                )
                for i, (key, datatype) in sorted(relations.items(), key=lambda one: one[1][0])
            },
            types=dict(types),
            supers=_sets(above),
            qualifiers={relations[i][0]: result for i, result in sorted(qualifiers.items()) if i in relations},
        )

    def below(self, type_key: str) -> frozenset[str]:
        """A type and every type below it."""
        return self._below.get(type_key, frozenset()) | {type_key}

    @cached_property
    def _below(self) -> dict[str, frozenset[str]]:
        return _sets([(above, one) for one, all_of in self.supers.items() for above in all_of])

    def has_type(self, type_key: str) -> bool:
        """Whether entities have this type, or one below it."""
        return type_key in self.types or type_key in self._below


def types_of(store: KgStore, keys: Iterable[str]) -> dict[str, frozenset[str]]:
    """The types of entities by key, UNTYPED for those without; what is not in the graph is left out."""
    rows = store.connection.execute(
        f"SELECT e.key, coalesce(k.key, '{UNTYPED}') FROM entities e LEFT JOIN types y ON y.entity = e.id "
        "LEFT JOIN entities k ON k.id = y.type WHERE e.kind = 'entity' AND e.key IN (SELECT unnest($1::VARCHAR[]))",
        [sorted(set(keys))],
    ).fetchall()
    return _sets(rows)


def _dimensions(store: KgStore, pairs: str, entities: bool = False) -> dict[int, frozenset[str]]:
    """Dimensions of the literals that each relation leads to."""
    rows = store.connection.execute(
        f"SELECT DISTINCT t.relation, e.kind = 'literal', {dated_sql('e')}, e.number IS NOT NULL, e.unit "
        f"FROM ({pairs}) t JOIN entities e USING (id)"
    ).fetchall()
    results = []
    for relation, literal, dated, numeric, unit in rows:
        if literal:
            results.append((relation, TIME if dated else base_unit(unit) if numeric else TEXT))
        elif entities:
            results.append((relation, "entity"))
    return _sets(results)


def _sets(rows: Iterable[tuple[Key, str]]) -> dict[Key, frozenset[str]]:
    sets: dict[Key, set[str]] = defaultdict(set)
    for key, value in rows:
        sets[key].add(value)
    return {key: frozenset(values) for key, values in sets.items()}
