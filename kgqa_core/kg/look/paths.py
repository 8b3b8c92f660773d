"""Shortest relation paths between two entities, found by searching from both ends in SQL.

In SQL, since `kgqa kg path` has a graph's file and nothing else: no arrays are exported, and memory is DuckDB's.  The
server, which holds the arrays and must answer in milliseconds, searches in these (`dkg.shortest`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from kgqa_core.errors import InputError
from kgqa_core.kg.names import bare_key
from kgqa_core.kg.sql import number
from kgqa_core.kg.store import KgStore
from kgqa_core.types import INVERSE

MOST_STATES = 20_000
"""Most partial paths; a graph with more has its paths truncated, which is reported."""
MOST_ENTITIES = 5_000_000
"""Entities that either side of the search may reach."""


@dataclass(frozen=True, slots=True)
class PathResult:
    """Shortest paths: `[{relations, keys, count, example, example_keys}]`, most frequent first; length 0 and none where
    none is."""

    length: int
    paths: list[dict[str, Any]]
    cut: bool


def shortest_paths(store: KgStore, start: int, end: int, *, max_hops: int = 4, limit: int = 20) -> PathResult:
    """The relation paths of fewest hops from `start` to `end`, inverse relations marked `<inv>-`.

    count: how many chains of entities follow a path; example: one of them, by name.  Literals are never walked
    through: a year joins everything.  So does a type: relations to types are walked only where one is all that joins
    the two, or nothing else does.  Raises InputError when a side of the search grows beyond MOST_ENTITIES.
    """
    if start == end:
        return PathResult(0, [], False)
    options = store.meta.get("options", {})
    typing = {bare_key(key) for key in (*options.get("type_predicates", ()), *options.get("subtype_predicates", ()))}
    avoided = [i for i, key in enumerate(store.relation_keys()) if key in typing]
    direct = "(head = $1 AND tail = $2) OR (head = $2 AND tail = $1)"
    if avoided and not number(store.connection, f"SELECT count(*) FROM triples WHERE {direct}", [start, end]):
        result = _shortest(store, start, end, f"WHERE relation NOT IN {(*avoided, -1)}", max_hops, limit)
        if result.paths:
            return result
    return _shortest(store, start, end, "", max_hops, limit)


def _shortest(store: KgStore, start: int, end: int, where: str, max_hops: int, limit: int) -> PathResult:
    run = store.connection.execute
    run(f"CREATE OR REPLACE TEMP VIEW path_edges AS SELECT head, relation, tail FROM triples {where}")
    for side, entity in (("path_a", start), ("path_b", end)):
        run(f"CREATE OR REPLACE TEMP TABLE {side} AS SELECT {int(entity)}::INTEGER AS entity, 0 AS hop")
    depth = {"path_a": 0, "path_b": 0}
    size = {"path_a": 1, "path_b": 1}
    while not number(store.connection, "SELECT count(*) FROM path_a JOIN path_b USING (entity)"):
        if sum(depth.values()) == max_hops:
            return PathResult(0, [], False)
        side = min(depth, key=lambda name: (size[name], name))
        new = _expand(store, side, depth[side])
        if not new:
            return PathResult(0, [], False)
        depth[side] += 1
        size[side] = new
    return _read_paths(store, start, end, _levels(store, depth["path_a"], depth["path_b"]), limit)


def _expand(store: KgStore, side: str, depth: int) -> int:
    """One hop further on one side; returns the entities that are new."""
    store.connection.execute(
        f"""
        INSERT INTO {side}
        SELECT DISTINCT x.entity, {depth + 1} FROM (
          SELECT t.tail AS entity FROM path_edges t JOIN {side} s ON s.entity = t.head AND s.hop = {depth}
          UNION ALL SELECT t.head FROM path_edges t JOIN {side} s ON s.entity = t.tail AND s.hop = {depth}) x
        JOIN entities e ON e.id = x.entity
        WHERE (e.kind = 'entity' OR x.entity IN (SELECT entity FROM {"path_b" if side == "path_a" else "path_a"}
                                                 WHERE hop = 0))
          AND x.entity NOT IN (SELECT entity FROM {side})"""
    )
    new = number(store.connection, f"SELECT count(*) FROM {side} WHERE hop = {depth + 1}")
    if number(store.connection, f"SELECT count(*) FROM {side}") > MOST_ENTITIES:
        raise InputError(
            f"more than {MOST_ENTITIES:,} entities lie within {depth + 1} hops of one end; lower --max-hops"
        )
    return new


def _levels(store: KgStore, a: int, b: int) -> list[list[tuple[int, int, int, int]]]:
    """The edges of shortest paths by hop: (from, relation, direction, to)."""
    run = store.connection.execute
    run(
        f"""CREATE OR REPLACE TEMP TABLE path_on AS
            SELECT entity, {a} AS step FROM path_a JOIN path_b USING (entity)
            WHERE path_a.hop = {a} AND path_b.hop = {b}"""
    )
    for side, steps in (("path_a", range(a - 1, -1, -1)), ("path_b", range(b - 1, -1, -1))):
        for hop in steps:
            here = hop if side == "path_a" else a + b - hop
            near = here + 1 if side == "path_a" else here - 1
            run(
                f"""INSERT INTO path_on SELECT DISTINCT s.entity, {here} FROM {side} s JOIN (
                      SELECT t.head AS x, t.tail AS y FROM path_edges t
                      UNION ALL SELECT t.tail, t.head FROM path_edges t) e ON e.x = s.entity
                    JOIN path_on p ON p.entity = e.y AND p.step = {near} WHERE s.hop = {hop}"""
            )
    return [
        run(
            """SELECT u.entity, t.relation, 1, v.entity FROM path_on u JOIN path_edges t ON t.head = u.entity
               JOIN path_on v ON v.entity = t.tail WHERE u.step = $1 AND v.step = $1 + 1
               UNION ALL
               SELECT u.entity, t.relation, -1, v.entity FROM path_on u JOIN path_edges t ON t.tail = u.entity
               JOIN path_on v ON v.entity = t.head WHERE u.step = $1 AND v.step = $1 + 1
               ORDER BY 1, 2, 3, 4""",
            [hop],
        ).fetchall()
        for hop in range(a + b)
    ]


def _read_paths(
    store: KgStore, start: int, end: int, levels: list[list[tuple[int, int, int, int]]], limit: int
) -> PathResult:
    edges = [[(source, (relation, direction), target) for source, relation, direction, target in level]
             for level in levels]  # fmt: skip
    chains, cut = relation_chains(start, edges, MOST_STATES)
    chains = [chain for chain in chains if chain.example[-1] == end]
    keys, names = store.relation_keys(), store.relation_names()
    shown = {entity for chain in chains[:limit] for entity in chain.example}
    entities, entity_keys = store.names(shown), store.entity_keys(shown)

    def mark(texts: list[str], path: Sequence[tuple[int, int]]) -> list[str]:
        return [(INVERSE if direction < 0 else "") + texts[relation] for relation, direction in path]

    paths = [
        {
            "relations": mark(names, chain.relations),
            "keys": mark(keys, chain.relations),
            "count": chain.count,
            "example": [entities[entity] for entity in chain.example],
            "example_keys": [entity_keys[entity] for entity in chain.example],
        }
        for chain in chains[:limit]
    ]
    return PathResult(len(levels), paths, cut or len(chains) > limit)


Label = TypeVar("Label")
"""What stands for a directed relation: its number, or the relation and its direction."""


@dataclass(frozen=True, slots=True)
class RelationChains(Generic[Label]):
    """Chains of entities that follow a relation path.  count: how many; example: the first of them."""

    relations: tuple[Label, ...]
    count: int
    example: tuple[int, ...]


def relation_chains(
    start: int, levels: Iterable[Iterable[tuple[int, Label, int]]], max_states: int
) -> tuple[list[RelationChains[Label]], bool]:
    """Relation paths from `start` along levels of edges (source, directed relation, target), most chains first.

    max_states: partial paths that are followed, those with most chains; returns too whether there were more.
    """
    states: dict[tuple[int, tuple[Label, ...]], tuple[int, tuple[int, ...]]] = {(start, ()): (1, (start,))}
    cut = False
    for edges in levels:
        leaving: dict[int, list[tuple[Label, int]]] = {}
        for source, relation, target in edges:
            leaving.setdefault(source, []).append((relation, target))
        following: dict[tuple[int, tuple[Label, ...]], tuple[int, tuple[int, ...]]] = {}
        for state, counted in states.items():
            for relation, target in leaving.get(state[0], ()):
                key = (target, (*state[1], relation))
                before, first = following.get(key, (0, (*counted[1], target)))
                following[key] = (before + counted[0], first)
        cut |= len(following) > max_states
        states = dict(sorted(following.items(), key=lambda item: (-item[1][0], item[0]))[:max_states])
    chains = [RelationChains(state[1], *counted) for state, counted in states.items()]
    return sorted(chains, key=lambda chain: (-chain.count, chain.relations)), cut
