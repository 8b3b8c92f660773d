"""What a question uses of the graph: relations, entities and facts; and which relations belong to a type.

A graph that was not built for it has no ontology, so it is read from the facts: a type is the domain of a relation
when nearly all entities that the relation leads from are of it, and no more special type is; likewise the range.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgqa_core.kg.store import KgStore
from kgqa_core.papers.grailqability.builder.graph_with_drops import NONE, GraphWithDrops, Ints
from kgqa_core.papers.grailqability.builder.ideal import Ideal


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


Weights = NDArray[np.float64]


class ElementIndex:
    """Element → the questions that use it, ascending, and question → its elements."""

    def __init__(self, elements: Ints, questions: Ints, size: int) -> None:
        order = np.lexsort((questions, elements))
        self._elements, self._questions = elements[order], questions[order]
        self.size = size
        counts = np.bincount(self._questions)
        self._shares = 1.0 / counts[self._questions] if len(counts) else np.empty(0)

    @classmethod
    def of(cls, uses: Iterable[Iterable[int]], size: int) -> ElementIndex:
        """From the elements of each question, in the order of the questions."""
        lists = [np.unique(np.fromiter(used, dtype=np.int64)) for used in uses]
        indices = np.repeat(np.arange(len(lists)), [len(used) for used in lists])
        return cls(np.concatenate(lists) if lists else NONE, indices.astype(np.int64), size)

    def questions(self, elements: Sequence[int] | Ints) -> Ints:
        """Questions that use any of the elements, ascending and once."""
        wanted = np.asarray(elements, dtype=np.int64)
        if len(wanted) > len(self._elements) // 8:
            return np.unique(self._questions[np.isin(self._elements, wanted)])
        starts = np.searchsorted(self._elements, wanted, "left")
        stops = np.searchsorted(self._elements, wanted, "right")
        runs = [self._questions[start:stop] for start, stop in zip(starts, stops, strict=True) if start < stop]
        return np.unique(np.concatenate(runs)) if runs else NONE

    def spread(self, answerable: NDArray[np.bool_], *, even: bool) -> Weights:
        """[size]: how many answerable questions use each element; even: each question shares 1 out among its own."""
        left = answerable[self._questions]
        weights = np.where(left, self._shares, 0.0) if even else left.astype(np.float64)
        return np.bincount(self._elements, weights=weights, minlength=self.size).astype(np.float64)


class ElementIndexes:
    """The indexes of a question set over a graph.

    relations, names: what forms name; names are entities and classes.  facts: triples on the ways to answers, entities:
    those at their ends, literals apart.
    """

    def __init__(self, ideals: Sequence[Ideal], graph: GraphWithDrops) -> None:
        self.ideals = ideals
        self.relations = ElementIndex.of((ideal.relations for ideal in ideals), graph.relations)
        self.names = ElementIndex.of((ideal.names for ideal in ideals), graph.entities)
        self.facts = ElementIndex.of((ideal.support for ideal in ideals), len(graph.head))
        self.entities = ElementIndex.of((_ends(ideal, graph) for ideal in ideals), graph.entities)


def _ends(ideal: Ideal, graph: GraphWithDrops) -> Ints:
    """Entities on the ways to the answers that the form does not name."""
    ends = np.unique(np.concatenate((graph.head[ideal.support], graph.tail[ideal.support])))
    return np.setdiff1d(ends[~graph.literal[ends]], np.asarray(ideal.names, dtype=np.int64))
