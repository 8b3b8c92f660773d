"""Which relations belong to a type: those that start or end at its entities.

A graph that was not built for it has no ontology, so it is read from the facts: a type is the domain of a relation
when nearly all entities that the relation leads from are of it, and no more special type is; likewise the range.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kgqa_core.kg.store import KgStore


@dataclass(frozen=True, slots=True)
class TypeInfo:
    """A type.  popularity: triples of its entities and those of types below it.  relations: those that belong to it."""

    id: int
    popularity: int
    relations: tuple[int, ...]


def types_of(store: KgStore, share: float) -> list[TypeInfo]:
    """Every type that has entities, by id.

    share: of the entities that a relation leads from (or to) that have to be of a type for it to be its domain (range).
    The relations that give types, and those between types, belong to none.
    """
    run = store.connection.execute
    run(
        """CREATE OR REPLACE TEMP TABLE member AS
           SELECT DISTINCT entity, type FROM types
           UNION SELECT t.entity, s.super FROM types t JOIN supertypes s ON s.type = t.type"""
    )
    try:
        popularity = dict(
            run(
                """SELECT m.type, sum(e.popularity)::BIGINT FROM member m JOIN entities e ON e.id = m.entity
                   GROUP BY m.type"""
            ).fetchall()
        )
        belongs: dict[int, set[int]] = {}
        for end in ("head", "tail"):
            for relation, type_ in _nearest(run, end, share):
                belongs.setdefault(type_, set()).add(relation)
        types = [t for (t,) in run("SELECT DISTINCT type FROM types ORDER BY type").fetchall()]
    finally:
        run("DROP TABLE member")
    return [TypeInfo(t, int(popularity.get(t, 0)), tuple(sorted(belongs.get(t, ())))) for t in types]


def _nearest(run: Any, end: str, share: float) -> list[tuple[int, int]]:
    """(relation, type): the smallest type that has so many of the ends of a relation, ties by id."""
    rows: list[tuple[int, int]] = run(
        f"""
        WITH ends AS (SELECT DISTINCT relation, {end} AS entity FROM triples),
             schematic AS (SELECT relation FROM (SELECT DISTINCT relation, tail FROM triples) t
                           LEFT JOIN (SELECT type AS id FROM types UNION SELECT super FROM supertypes) y
                           ON y.id = t.tail
                           GROUP BY relation HAVING avg((y.id IS NOT NULL)::INT) >= $1),
             sizes AS (SELECT type, count(*) AS n FROM member GROUP BY type),
             totals AS (SELECT relation, count(*) AS n FROM ends GROUP BY relation),
             fits AS (SELECT e.relation, m.type, count(*) AS n FROM ends e JOIN member m USING (entity)
                      ANTI JOIN schematic s ON s.relation = e.relation GROUP BY ALL)
        SELECT f.relation, arg_min(f.type, (s.n, f.type)) FROM fits f JOIN totals t USING (relation)
        JOIN sizes s ON s.type = f.type WHERE f.n >= $1 * t.n GROUP BY f.relation ORDER BY 1""",
        [share],
    ).fetchall()
    return rows
