"""Did retrieval find what a response needs?  Recall of entity-relation pairs after Huang et al. 2024 (PAPERS §3).

A pair is an entity and a relation that leads away from it, an inverse one with the prefix `<inv>-`.  A triple holds two
pairs, that of its head and, inverted, that of its tail: whoever reads the triple reads both, whichever way retrieval
followed it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from kgqa_core.types import INVERSE, Question

Pair = tuple[int, str]
"""(entity id, relation key)."""

Wanted = frozenset[Pair]
"""Pairs of which one suffices; empty where the graph has none."""


def gold_pairs(question: Question, entities: Mapping[str, Collection[int]]) -> list[Wanted]:
    """The pairs that a question needs, each once; empty when it is not annotated.

    They are those of `gold_triples`: the pair of the triple's topic entity, that of its head when both or neither end
    is a topic.  Where there are no gold triples, they are the first steps of the annotated relation paths, from
    whichever topic has them.
    entities: key → ids, of the ends of the gold triples; a pair of an end that has none can never be found.
    """
    topics = set(question.topic_entities)
    wanted: dict[tuple[str, str], Wanted] = {}
    for head, relation, tail in question.gold_triples:
        inverse = topics.intersection(entities.get(tail, ())) and not topics.intersection(entities.get(head, ()))
        key, step = (tail, invert(relation)) if inverse else (head, relation)
        wanted[key, step] = frozenset((entity, step) for entity in entities.get(key, ()))
    if not question.gold_triples:
        for step in dict.fromkeys(path[0] for path in question.relation_paths if path):
            wanted["", step] = frozenset((topic, step) for topic in topics)
    return list(wanted.values())


def triple_pairs(head: int, relation: str, tail: int) -> tuple[Pair, Pair]:
    """The two pairs that a triple holds, that of its head first.

    >>> triple_pairs(1, "capital", 2)
    ((1, 'capital'), (2, '<inv>-capital'))
    """
    return (head, relation), (tail, invert(relation))


def invert(relation: str) -> str:
    """The same relation the other way round."""
    return relation.removeprefix(INVERSE) if relation.startswith(INVERSE) else INVERSE + relation


def pair_recall(found: Collection[Pair], wanted: Sequence[Wanted]) -> float:
    """Share of the wanted pairs that were found.  Range [0, 1], higher is better; 0 when nothing is wanted."""
    hits = sum(any(pair in found for pair in pairs) for pairs in wanted)
    return hits / len(wanted) if wanted else 0.0


def recall_at(k: int | None, ranks: Sequence[int | None]) -> float:
    """Share of ranks that are at most k; of all that there are when k is None.

    >>> recall_at(2, [1, 3, None, 2])
    0.5
    """
    hits = sum(rank is not None and (k is None or rank <= k) for rank in ranks)
    return hits / len(ranks) if ranks else 0.0


PAIR_METRICS = ("pair_recall",)
"""Metrics of what retrieval found, by pairs."""
