"""What an operation works on: the relation paths that a retriever proposes for a question, with their weights.

Some retrievers predict paths.  Of any other the facts are walked: a fact that leaves a topic is a
path of one hop, and one that goes on from where it leads a path of two; a path weighs what its best walk weighs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from kgqa_core.kg.store import KgStore
from kgqa_core.store.tables import read_frame
from kgqa_core.types import INVERSE, Fact, Question, Retrieved

Weighted = tuple[tuple[str, ...], float]
"""A relation path as keys, inverse ones marked, and its weight, greater than 0."""

Proposed = tuple[str, float]
"""A form as text and the logarithm of the parser's probability of it."""

MOST_PATHS = 25
"""Paths of one question, the heaviest first."""


def paths_of(
    store: KgStore, questions: Sequence[Question], retrieved: Sequence[Retrieved]
) -> dict[str, list[Weighted]]:
    """Question id → its weighted paths, best first: those that its retriever predicts, or else those of its facts.

    retrieved: of each question, by one retriever.
    """
    if any(one.paths for one in retrieved):
        return {one.question: best_of(dict(reversed(one.paths))) for one in retrieved}
    ends = store.triples({fact.triple for one in retrieved for fact in one.facts})
    relations = store.relation_keys()
    return {
        question.id: paths_of_facts(one.facts, question.topic_entities, ends, relations)
        for question, one in zip(questions, retrieved, strict=True)
    }


def read_proposed(parsed: Path) -> dict[str, list[Proposed]]:
    """Question id → the forms that a parser proposes, best first, of a `parsed` artifact.

    Raises ArtifactError when the artifact is damaged.
    """
    frame = read_frame(parsed / "parsed.parquet", ["question", "rank", "form", "score"])
    results: dict[str, list[Proposed]] = defaultdict(list)
    for question, _, form, score in frame.drop_nulls("form").sort("question", "rank").iter_rows():
        results[question].append((form, score))
    return dict(results)


def paths_of_facts(
    facts: Sequence[Fact],
    topics: Iterable[int],
    ends: Mapping[int, tuple[int, int, int]],
    relations: Sequence[str],
) -> list[Weighted]:
    """The weighted paths that a question's facts walk from its topics, best first.

    ends: head, relation and tail of each fact's triple.  Facts of one reasoning path go on from each other, others from
    any fact of the hop before.
    """
    start: dict[tuple[int, int], dict[tuple[str, ...], float]] = {(-1, topic): {(): 1.0} for topic in topics}
    paths: dict[tuple[str, ...], float] = {}
    for hop in sorted({fact.hop for fact in facts}):
        reached: dict[tuple[int, int], dict[tuple[str, ...], float]] = defaultdict(dict)
        for fact in facts:
            if fact.hop != hop or fact.triple not in ends:
                continue
            head, relation, tail = ends[fact.triple]
            near, far = (head, tail) if fact.direction >= 0 else (tail, head)
            step = relations[relation] if fact.direction >= 0 else INVERSE + relations[relation]
            for path, weight in start.get((-1 if hop == 1 else fact.path, near), {}).items():
                longer, product = (*path, step), weight * max(fact.score, 1e-6)
                index = reached[fact.path, far]
                index[longer] = max(product, index.get(longer, 0.0))
                paths[longer] = max(product, paths.get(longer, 0.0))
        start = reached
    return best_of(paths)


def best_of(paths: Mapping[tuple[str, ...], float]) -> list[Weighted]:
    """The heaviest paths, ties in order of their keys; paths without weight are left out."""
    there = [(path, weight) for path, weight in paths.items() if path and weight > 0]
    return sorted(there, key=lambda pair: (-pair[1], pair[0]))[:MOST_PATHS]
