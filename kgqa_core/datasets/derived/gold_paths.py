"""Gold relation paths of questions: as annotated, or searched in the graph where only answers are known.

Annotated paths come from the question file: written by hand, from SPARQL or from WebQSP's inferential chains.  Where a
question has none that this graph knows, the shortest paths from its topics to its answers are searched and ranked by
answer F1 (Wu et al. 2023 take the first of them; how many are used is an option here, and which is recorded).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.paths import BUDGET, answer_f1, ground, reach, relation_ids, search
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.types import Question

Origin = Literal["annotated", "searched"]

HOPS = 2
"""Longest path that is searched, unless given."""


@dataclass(frozen=True, slots=True)
class GoldPath:
    """A relation path that leads from a topic to the answers.

    relations: keys, inverses with `<inv>-`.  f1: of what the path leads to against the answers; None where the question
    has no answer in the graph (a count, yes or no).
    """

    topic: int
    relations: tuple[str, ...]
    origin: Origin
    f1: float | None


def gold_paths(
    question: Question, dkg: Dkg, *, searched: int, hops: int = HOPS, budget: int = BUDGET
) -> list[GoldPath]:
    """The gold paths of a question, distinct, the annotated ones in their order; else at most `searched` found ones.

    An annotated path with an empty key or a relation that the graph lacks is dropped (`dropped_paths` counts them).
    Where there is one path for each topic, the nth starts at the nth; else a path starts at every topic that it can be
    grounded from, or at the first where it can be at none.  Answers that are topics themselves (the larger of two) are
    not searched for.  Empty without a topic in the graph.
    """
    if not question.topic_entities:
        return []
    topics = question.topic_entities
    paired = len(question.relation_paths) == len(topics) > 1
    best: dict[tuple[int, tuple[str, ...]], GoldPath] = {}
    for number, keys in enumerate(question.relation_paths):
        ids = relation_ids(dkg, keys)
        if ids is None:
            continue
        starts = topics[number : number + 1] if paired else _starts(dkg, topics, ids, budget)
        for topic in starts:
            f1 = None
            if question.answers:
                ends, _ = reach(dkg, topic, ids, avoid=topics, budget=budget)
                f1 = round(answer_f1(ends, question.answers), 6)
            best.setdefault((topic, keys), GoldPath(topic, keys, "annotated", f1))
    answers = set(question.answers) - set(topics)
    if best or not searched or not answers:
        return list(best.values())
    names = dkg.relation_keys
    return [
        GoldPath(path.topic, tuple(names[relation] for relation in path.relations), "searched", round(path.f1, 6))
        for path in search(dkg, topics, answers, hops=hops, limit=searched, budget=budget)
    ]


def dropped_paths(question: Question, dkg: Dkg) -> int:
    """How many annotated paths of a question this graph cannot follow by name."""
    return sum(relation_ids(dkg, keys) is None for keys in question.relation_paths)


def all_gold_paths(
    questions: Sequence[Question], dkg: Dkg, *, searched: int, hops: int = HOPS, monitor: Monitor = QUIET
) -> tuple[list[list[GoldPath]], dict[str, int]]:
    """`gold_paths` of many questions, and counts: annotated, searched, without (questions), dropped (paths)."""
    results: list[list[GoldPath]] = []
    counts = {"annotated": 0, "searched": 0, "without": 0, "dropped": 0}
    for number, question in enumerate(questions):
        own = gold_paths(question, dkg, searched=searched, hops=hops)
        results.append(own)
        counts[own[0].origin if own else "without"] += 1
        counts["dropped"] += dropped_paths(question, dkg)
        if number % 200 == 0 or number + 1 == len(questions):
            monitor.progress(number + 1, len(questions), "gold paths")
    return results, counts


def _starts(dkg: Dkg, topics: Sequence[int], relations: Sequence[int], budget: int) -> list[int]:
    """The topics that a path can be grounded from, or the first of them all."""
    if len(topics) == 1:
        return list(topics)
    fit = [
        topic
        for topic in dict.fromkeys(topics)
        if ground(dkg, topic, relations, limit=1, avoid=topics, budget=budget)[0]
    ]
    return fit or list(topics[:1])
