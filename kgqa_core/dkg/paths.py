"""Relation paths in the graph: grounded as chains of entities, followed as sets, and searched between two ends.

One rule holds everywhere: a chain never comes back to the topic that it starts from, and does not go on from any other
entity to `avoid` (the question's other topics), though it may end there.  MetaQA's gold answers leave the topic out at
every hop, and a path back through it adds nothing to the first hop.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgqa_core.dkg.csr import Dkg, join_ranges
from kgqa_core.dkg.lookup_kernels import first_index

IntArray = NDArray[np.int64]
_jit: Any = njit(nogil=True, cache=True, error_model="numpy")

BUDGET = 50_000
"""Edges that are looked at for one topic and path, or for one topic in a search."""


@dataclass(frozen=True, slots=True)
class ReasoningPath:
    """A relation path grounded in the graph: one chain of triples.

    relations: directed ids.  edges: the DKG's edge of each hop.  entities: the topic, then where each hop leads.
    """

    topic: int
    relations: tuple[int, ...]
    edges: tuple[int, ...]
    entities: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PathMatch:
    """A relation path that leads from a topic to answers.  f1: of what it leads to against all answers."""

    topic: int
    relations: tuple[int, ...]
    f1: float
    hops: int


def relation_ids(dkg: Dkg, keys: Sequence[str]) -> tuple[int, ...] | None:
    """Directed ids of the relation keys of a path; None when there are none or one is not in the graph."""
    known = dkg.relation_ids
    ids = tuple(known[key] for key in keys if key in known)
    return ids if ids and len(ids) == len(keys) else None


def ground(
    dkg: Dkg, topic: int, relations: Sequence[int], *, limit: int, avoid: Collection[int] = (), budget: int = BUDGET
) -> tuple[list[ReasoningPath], int]:
    """The first `limit` chains of a relation path, in order of their entities' ids, and how many edges were cut.

    Chains are compared hop by hop.  An edge counts as cut when `budget` edges had been looked at before it and fewer
    than `limit` chains were found.
    """
    wanted = tuple(int(relation) for relation in relations)
    inner = {int(topic), *(int(entity) for entity in avoid)}
    results: list[ReasoningPath] = []
    if not wanted or limit < 1:
        return results, 0
    # One open run of edges a hop; the last is the deepest.
    runs = [_run(dkg, int(topic), wanted[0])]
    edges: list[int] = []
    entities = [int(topic)]
    looked = 0
    while runs and len(results) < limit:
        index, stop = runs[-1]
        if index >= stop:
            runs.pop()
            if edges:
                edges.pop()
                entities.pop()
            continue
        if looked >= budget:
            return results, sum(end - start for start, end in runs)
        runs[-1] = index + 1, stop
        looked += 1
        target = int(dkg.tail[index])
        if target == entities[0]:
            continue
        if len(runs) == len(wanted):
            results.append(ReasoningPath(entities[0], wanted, (*edges, index), (*entities, target)))
        elif target not in inner:
            edges.append(index)
            entities.append(target)
            runs.append(_run(dkg, target, wanted[len(runs)]))
    return results, 0


def reach(
    dkg: Dkg, topic: int, relations: Sequence[int], *, avoid: Collection[int] = (), budget: int = BUDGET
) -> tuple[IntArray, int]:
    """The entities at the ends of a relation path, ascending, and how many edges were cut at `budget` a hop."""
    ends, _, cut = spread(dkg, topic, relations, avoid=avoid, budget=budget)
    return ends, cut


def spread(
    dkg: Dkg, topic: int, relations: Sequence[int], *, avoid: Collection[int] = (), budget: int = BUDGET
) -> tuple[IntArray, IntArray, int]:
    """The entities at the ends of a relation path, ascending, the number of chains to each, and the edges cut.

    Of a hop of more than `budget` edges those out of the smaller ids are followed.
    """
    inner = np.array(sorted({int(topic), *(int(entity) for entity in avoid)}), dtype=np.int64)
    frontier, chains = np.array([topic], dtype=np.int64), np.ones(1, dtype=np.int64)
    if not relations:
        return frontier[:0], chains[:0], 0
    cut = 0
    for hop, relation in enumerate(relations):
        if hop:
            stay = ~np.isin(frontier, inner)
            frontier, chains = frontier[stay], chains[stay]
        starts, stops = _runs(dkg.rows, dkg.rel, dkg.tail, frontier, int(relation))
        edges, chain_counts = join_ranges(starts, stops)[:budget], np.repeat(chains, stops - starts)[:budget]
        cut += max(0, int((stops - starts).sum()) - budget)
        frontier, index = np.unique(dkg.tail[edges].astype(np.int64), return_inverse=True)
        chains = np.bincount(index, weights=chain_counts, minlength=len(frontier)).astype(np.int64)
        stay = frontier != topic
        frontier, chains = frontier[stay], chains[stay]
    return frontier, chains, cut


def answer_f1(ends: IntArray, answers: Collection[int]) -> float:
    """F1 of the entities that a path leads to (distinct) against the answers: in [0, 1], 0 when either is empty."""
    gold = np.array(sorted(set(answers)), dtype=np.int64)
    hits = int(np.isin(ends, gold).sum())
    return 2 * hits / (len(ends) + len(gold)) if hits else 0.0


def search(
    dkg: Dkg, topics: Sequence[int], answers: Collection[int], *, hops: int, limit: int, budget: int = BUDGET
) -> list[PathMatch]:
    """The shortest relation paths from topics to answers, at most `limit`, the best answer F1 first.

    A path counts when no shorter one leads from its topic to one of the answers that it reaches.  Ties: fewer hops,
    then the order of `topics`, then relation ids.  After `budget` edges of a topic, sets of entities not yet
    expanded stay so (the largest first); the topic's own edges are always read.
    """
    gold = np.array(sorted({int(answer) for answer in answers}), dtype=np.int64)
    results: list[tuple[float, int, int, tuple[int, ...], int]] = []
    for index, topic in enumerate(dict.fromkeys(int(topic) for topic in topics)):
        paths = _from_one(dkg, topic, {int(other) for other in topics}, gold, hops, budget)
        results += [(-f1, len(relations), index, relations, topic) for relations, f1 in paths]
    return [PathMatch(topic, relations, -f1, count) for f1, count, _, relations, topic in sorted(results)[:limit]]


def distance(
    dkg: Dkg, topics: Sequence[int], answers: Collection[int], *, hops: int, budget: int = BUDGET
) -> int | None:
    """Fewest hops from any topic to an answer that is no topic itself.

    None where there is none within `hops`, or before `budget` edges are read; the topics' own edges are always read.
    """
    gold = np.array(sorted({int(answer) for answer in answers} - {int(topic) for topic in topics}), dtype=np.int64)
    frontier = np.array(sorted({int(topic) for topic in topics}), dtype=np.int64)
    reached, edges_read = frontier, 0
    for hop in range(1, hops + 1):
        starts, stops = dkg.row_bounds(frontier)
        edges_read += int((stops - starts).sum())
        if not len(gold) or (hop > 1 and edges_read > budget):
            return None
        frontier = np.setdiff1d(dkg.tail[join_ranges(starts, stops)].astype(np.int64), reached)
        if np.isin(gold, frontier).any():
            return hop
        reached = np.union1d(reached, frontier)
    return None


def _from_one(
    dkg: Dkg, topic: int, topics: set[int], gold: IntArray, hops: int, budget: int
) -> list[tuple[tuple[int, ...], float]]:
    """Paths from one topic to answers that it reaches by no shorter path, each with its F1."""
    results: list[tuple[tuple[int, ...], float]] = []
    inner = np.array(sorted(topics), dtype=np.int64)
    open_answers = gold[gold != topic]
    prefixes: list[tuple[tuple[int, ...], IntArray]] = [((), np.array([topic], dtype=np.int64))]
    edges_read = 0
    for hop in range(1, hops + 1):
        nearest: list[IntArray] = []
        further: list[tuple[tuple[int, ...], IntArray]] = []
        for prefix, frontier in sorted(prefixes, key=lambda item: (len(item[1]), item[0])):
            starts, stops = dkg.row_bounds(frontier)
            degree = int((stops - starts).sum())
            if hop > 1 and edges_read + degree > budget:
                break
            edges_read += degree
            edges = join_ranges(starts, stops)
            relation, tail = dkg.rel[edges].astype(np.int64), dkg.tail[edges].astype(np.int64)
            useful = np.isin(relation, relation[np.isin(tail, open_answers)]) if hop == hops else tail != topic
            for number, ends in _grouped(relation[useful], tail[useful]):
                ends = ends[ends != topic]
                hit = np.isin(ends, open_answers)
                if hit.any():
                    nearest.append(ends[hit])
                    results.append(((*prefix, number), 2 * int(np.isin(ends, gold).sum()) / (len(ends) + len(gold))))
                further.append(((*prefix, number), ends[~np.isin(ends, inner)]))
        prefixes = further
        open_answers = open_answers[~np.isin(open_answers, np.concatenate(nearest))] if nearest else open_answers
        if not len(open_answers):
            break
    return results


def _run(dkg: Dkg, entity: int, relation: int) -> tuple[int, int]:
    """Where the edges of one relation out of an entity start and stop."""
    if entity + 1 >= len(dkg.rows):
        return 0, 0
    start, stop = int(dkg.rows[entity]), int(dkg.rows[entity + 1])
    first = int(first_index(dkg.rel, dkg.tail, start, stop, relation, -1))
    return first, int(first_index(dkg.rel, dkg.tail, first, stop, relation + 1, -1))


@_jit
def _runs(
    rows: NDArray[Any], rel: NDArray[Any], tail: NDArray[Any], entities: IntArray, relation: int
) -> tuple[IntArray, IntArray]:
    """`_run` of many entities."""
    starts = np.zeros(entities.shape[0], dtype=np.int64)
    stops = np.zeros(entities.shape[0], dtype=np.int64)
    for index in range(entities.shape[0]):
        entity = entities[index]
        if entity + 1 < rows.shape[0]:
            stop = np.int64(rows[entity + 1])
            starts[index] = first_index(rel, tail, np.int64(rows[entity]), stop, relation, -1)
            stops[index] = first_index(rel, tail, starts[index], stop, relation + 1, -1)
    return starts, stops


def _grouped(relation: IntArray, tail: IntArray) -> list[tuple[int, IntArray]]:
    """Distinct tails of each relation, both ascending."""
    order = np.lexsort((tail, relation))
    relation, tail = relation[order], tail[order]
    if not len(relation):
        return []
    fresh = np.ones(len(relation), dtype=bool)
    fresh[1:] = (relation[1:] != relation[:-1]) | (tail[1:] != tail[:-1])
    relation, tail = relation[fresh], tail[fresh]
    names, first = np.unique(relation, return_index=True)
    return list(zip(names.tolist(), np.split(tail, first[1:]), strict=True))
