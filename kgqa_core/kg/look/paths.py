"""Shortest relation paths between two entities, found by searching from both ends in SQL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kgqa_core.errors import InputError
from kgqa_core.kg.sql import number
from kgqa_core.kg.store import KgStore
from kgqa_core.types import INVERSE

MOST_STATES = 20_000
"""Most partial paths; a graph with more has its paths truncated, which is reported."""
MOST_ENTITIES = 5_000_000
"""Entities that either side of the search may reach."""


@dataclass(frozen=True, slots=True)
class PathResult:
    """Shortest paths: `[{relations, keys, count, example}]`, most frequent first; length 0 and none where none is."""

    length: int
    paths: list[dict[str, Any]]
    cut: bool


def shortest_paths(store: KgStore, start: int, end: int, *, max_hops: int = 4, limit: int = 20) -> PathResult:
    """The relation paths of fewest hops from `start` to `end`, inverse relations marked `<inv>-`.

    count: how many chains of entities follow a path; example: one of them, by name.  Literals are never walked
    through: a year joins everything.  Raises InputError when a side of the search grows beyond MOST_ENTITIES.
    """
    if start == end:
        return PathResult(0, [], False)
    run = store.connection.execute
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
    length = sum(depth.values())
    levels = _levels(store, depth["path_a"], depth["path_b"])
    return _read_paths(store, start, end, levels, length, limit)


def _expand(store: KgStore, side: str, depth: int) -> int:
    """One hop further on one side; returns the entities that are new."""
    store.connection.execute(
        f"""
        INSERT INTO {side}
        SELECT DISTINCT x.entity, {depth + 1} FROM (
          SELECT t.tail AS entity FROM triples t JOIN {side} s ON s.entity = t.head AND s.hop = {depth}
          UNION ALL SELECT t.head FROM triples t JOIN {side} s ON s.entity = t.tail AND s.hop = {depth}) x
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
            SELECT entity, {a} AS place FROM path_a JOIN path_b USING (entity)
            WHERE path_a.hop = {a} AND path_b.hop = {b}"""
    )
    for side, steps in (("path_a", range(a - 1, -1, -1)), ("path_b", range(b - 1, -1, -1))):
        for hop in steps:
            here = hop if side == "path_a" else a + b - hop
            near = here + 1 if side == "path_a" else here - 1
            run(
                f"""INSERT INTO path_on SELECT DISTINCT s.entity, {here} FROM {side} s JOIN (
                      SELECT t.head AS x, t.tail AS y FROM triples t
                      UNION ALL SELECT t.tail, t.head FROM triples t) e ON e.x = s.entity
                    JOIN path_on p ON p.entity = e.y AND p.place = {near} WHERE s.hop = {hop}"""
            )
    return [
        run(
            """SELECT u.entity, t.relation, 1, v.entity FROM path_on u JOIN triples t ON t.head = u.entity
               JOIN path_on v ON v.entity = t.tail WHERE u.place = $1 AND v.place = $1 + 1
               UNION ALL
               SELECT u.entity, t.relation, -1, v.entity FROM path_on u JOIN triples t ON t.tail = u.entity
               JOIN path_on v ON v.entity = t.head WHERE u.place = $1 AND v.place = $1 + 1
               ORDER BY 1, 2, 3, 4""",
            [hop],
        ).fetchall()
        for hop in range(a + b)
    ]


def _read_paths(
    store: KgStore, start: int, end: int, levels: list[list[tuple[int, int, int, int]]], length: int, limit: int
) -> PathResult:
    states: dict[tuple[int, tuple[tuple[int, int], ...]], tuple[int, tuple[int, ...]]] = {(start, ()): (1, (start,))}
    cut = False
    for edges in levels:
        out: dict[int, list[tuple[int, int, int]]] = {}
        for source, relation, direction, target in edges:
            out.setdefault(source, []).append((relation, direction, target))
        following: dict[tuple[int, tuple[tuple[int, int], ...]], tuple[int, tuple[int, ...]]] = {}
        for (entity, path), (count, example) in states.items():
            for relation, direction, target in out.get(entity, ()):
                key = (target, (*path, (relation, direction)))
                before = following.get(key)
                following[key] = (count, (*example, target)) if before is None else (before[0] + count, before[1])
        cut |= len(following) > MOST_STATES
        states = dict(sorted(following.items(), key=lambda item: (-item[1][0], item[0]))[:MOST_STATES])
    results = sorted(
        ((path, count, example) for (entity, path), (count, example) in states.items() if entity == end),
        key=lambda row: (-row[1], row[0]),
    )
    keys, names = store.relation_keys(), store.relation_names()
    entities = store.names({i for _, _, example in results[:limit] for i in example})

    def mark(texts: list[str], path: tuple[tuple[int, int], ...]) -> list[str]:
        return [(INVERSE if direction < 0 else "") + texts[relation] for relation, direction in path]

    return PathResult(
        length,
        [
            {
                "relations": mark(names, path),
                "keys": mark(keys, path),
                "count": count,
                "example": [entities[i] for i in example],
            }
            for path, count, example in results[:limit]
        ],
        cut or len(results) > limit,
    )
