"""Shortest relation paths between two entities, searched for from both ends in the arrays of a DKG.

Breadth first (Pohl 1971): the side whose entities have fewer edges is expanded, so a hub at one end is not read where
the other end is small.  Literals are never walked through: a year joins everything.  What a server shows must come
within a budget of edges; where there is a graph's file and no arrays, `kg.look.paths` searches in SQL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgqa_core.dkg.csr import Dkg, join_ranges
from kgqa_core.kg.look.paths import RelationChains, relation_chains

IntArray = NDArray[np.int64]

MOST_EDGES = 2_000_000
"""Edges that one step of a search reads; of entities with more, those with the fewest edges come first."""
MOST_CHAINS = 100_000
"""Edges of one hop between which chains are counted, and partial paths that are followed."""


@dataclass(frozen=True, slots=True)
class PathsBetween:
    """The shortest relation paths with directed ids, most chains first, ties by ids.

    hops: their length; None where there are none within the limit.  total: how many there are, of which `paths` may
    hold fewer.  complete: every edge was read that could matter; else a path may be missing, or a shorter one.
    """

    hops: int | None
    paths: tuple[RelationChains[int], ...]
    total: int
    complete: bool


def relation_paths(
    dkg: Dkg, start: int, end: int, *, max_hops: int, limit: int, budget: int = MOST_EDGES
) -> PathsBetween:
    """The relation paths of fewest hops from `start` to `end`, at most `limit` of them.

    max_hops: longest path that is looked for.  budget: edges that a step reads.
    """
    if start == end:
        return PathsBetween(0, (), 0, True)
    sides = ([np.array([start], dtype=np.int64)], [np.array([end], dtype=np.int64)])
    complete = True
    while not len(common := np.intersect1d(sides[0][-1], sides[1][-1])):
        if len(sides[0]) + len(sides[1]) - 2 == max_hops:
            return PathsBetween(None, (), 0, complete)
        levels = min(sides, key=lambda own: (_has_literal(dkg, own[-1]), _degree(dkg, own[-1]), own is not sides[0]))
        others = sides[1] if levels is sides[0] else sides[0]
        _, _, tail, whole = _edges(dkg, levels[-1], budget)
        complete &= whole
        fresh = np.setdiff1d(tail, np.concatenate(levels))
        fresh = fresh[~dkg.is_literal(fresh) | np.isin(fresh, others[0])]
        if not len(fresh):
            return PathsBetween(None, (), 0, complete)
        levels.append(fresh)
    layers, whole = _layers(dkg, sides, common, budget)
    complete &= whole
    paths, whole = _paths(dkg, layers, budget)
    return PathsBetween(len(layers) - 1, tuple(paths[:limit]), len(paths), complete and whole)


def _layers(
    dkg: Dkg, sides: tuple[Sequence[IntArray], Sequence[IntArray]], common: IntArray, budget: int
) -> tuple[list[IntArray], bool]:
    """The entities of shortest paths by their position in them, from the level where both sides meet."""
    complete = True
    halves = []
    for levels in sides:
        half = [common]
        for level in reversed(levels[:-1]):
            source, _, _, whole = _between(dkg, level, half[-1], budget)
            complete &= whole
            half.append(np.unique(source))
        halves.append(half)
    return [*reversed(halves[0]), *halves[1][1:]], complete


def _paths(dkg: Dkg, layers: Sequence[IntArray], budget: int) -> tuple[list[RelationChains[int]], bool]:
    """Relation paths along the layers with their chains, most first."""
    complete = True
    levels = []
    for here, there in zip(layers, layers[1:], strict=False):
        source, relation, tail, whole = _between(dkg, here, there, budget)
        order = np.lexsort((tail, relation, source))[:MOST_CHAINS]
        complete &= whole and len(order) == len(source)
        levels.append(list(zip(source[order].tolist(), relation[order].tolist(), tail[order].tolist(), strict=True)))
    chains, cut = relation_chains(int(layers[0][0]), levels, MOST_CHAINS)
    return chains, complete and not cut


def _between(dkg: Dkg, here: IntArray, there: IntArray, budget: int) -> tuple[IntArray, IntArray, IntArray, bool]:
    """Directed edges (source, relation, tail) from some entities to others, read from the side that has fewer.

    No edges may lead out of a literal, so edges to one are read from the other side.
    """
    costs = [(_has_literal(dkg, entities), _degree(dkg, entities)) for entities in (there, here)]
    backwards = costs[0] < costs[1]
    first, second = (there, here) if backwards else (here, there)
    source, relation, tail, whole = _edges(dkg, first, budget)
    inside = np.isin(tail, second)
    source, relation, tail = source[inside], relation[inside], tail[inside]
    if backwards:
        flipped = np.where(relation < dkg.relations, relation + dkg.relations, relation - dkg.relations)
        return tail, flipped, source, whole
    return source, relation, tail, whole


def _has_literal(dkg: Dkg, entities: IntArray) -> bool:
    return bool(dkg.is_literal(entities).any())


def _degree(dkg: Dkg, entities: IntArray) -> int:
    starts, stops = dkg.row_bounds(entities)
    return int((stops - starts).sum())


def _edges(dkg: Dkg, entities: IntArray, budget: int) -> tuple[IntArray, IntArray, IntArray, bool]:
    """(source, relation, tail) of the edges of some entities, and whether these are all of them.

    Entities with few edges come first, so that a hub is what is cut, at an edge of its row.
    """
    starts, stops = dkg.row_bounds(entities)
    order = np.lexsort((entities, stops - starts))
    entities, starts, stops = entities[order], starts[order], stops[order]
    ends = np.cumsum(stops - starts)
    before = ends - (stops - starts)
    stops = np.minimum(stops, starts + np.maximum(budget - before, 0))
    indices = join_ranges(starts, stops)
    source = np.repeat(entities, stops - starts)
    whole = not len(ends) or len(indices) == int(ends[-1])
    return source, dkg.rel[indices].astype(np.int64), dkg.tail[indices].astype(np.int64), whole
