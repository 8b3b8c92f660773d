"""What rankers learn from: entities of questions with their relations, and which of these are gold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kgqa_core.datasets.gold_paths import gold_paths
from kgqa_core.datasets.splits import hold_out
from kgqa_core.dkg.csr import Dkg
from kgqa_core.kg.store import KgStore
from kgqa_core.retrieval.relation_ranking.candidates import candidates
from kgqa_core.retrieval.relation_ranking.linking_sets import LinkingSet
from kgqa_core.retrieval.relation_ranking.retriever import directed_texts
from kgqa_core.types import INVERSE, Question

HELD_OUT = 0.1
"""Share of a relation-linking set's questions that are measured on, not learnt from."""


@dataclass(frozen=True)
class Lesson:
    """An entity of a question with the words of its relations, all different.

    gold: places of the relations that lead on to the answer.
    """

    question: str
    entity: str
    relations: tuple[str, ...]
    gold: tuple[int, ...]


def of_questions(
    questions: Sequence[Question], dkg: Dkg, kg: Path | None, most_relations: int
) -> tuple[list[Lesson], dict[str, int]]:
    """Lessons of annotated questions, and counts: questions, annotated (with a gold relation), lessons, lost.

    The gold relations of a topic are the first ones of the gold paths from it, and those of its gold triples; `lost`
    counts lessons that are left out because none of them is among the most_relations candidates.
    kg: the graph store, for the names of topics; their keys serve without it.
    """
    texts = directed_texts(dkg)
    counts = Counter[str](questions=len(questions), annotated=0, lessons=0, lost=0)
    names = dict[int, str]()
    if kg is not None:
        with KgStore.open(kg) as store:
            names = store.names(sorted({entity for question in questions for entity in question.topic_entities}))
    lessons: list[Lesson] = []
    for question in questions:
        gold = gold_relations(question, dkg)
        counts["annotated"] += bool(gold)
        keys = dict(zip(question.topic_entities, question.topic_keys, strict=False))
        for entity, own in gold.items():
            there = candidates(dkg, entity, most_relations).relation.tolist()
            lesson = make_lesson(
                question.text, names.get(entity) or keys.get(entity, ""),
                [texts[relation] for relation in there], [texts[relation] for relation in own & set(there)],
            )  # fmt: skip
            if lesson is None:
                counts["lost"] += 1
            else:
                lessons.append(lesson)
    counts["lessons"] = len(lessons)
    return lessons, dict(counts)


def gold_relations(question: Question, dkg: Dkg) -> dict[int, set[int]]:
    """Directed gold relations of each topic entity that has one."""
    ids = dkg.relation_ids
    found: dict[int, set[int]] = {}
    for path in gold_paths(question, dkg, searched=0):
        found.setdefault(path.topic, set()).add(ids[path.relations[0]])
    topics = dict(zip(question.topic_keys, question.topic_entities, strict=False))
    for head, relation, tail in question.gold_triples:
        for key, directed in ((head, relation), (tail, INVERSE + relation)):
            if key in topics and directed in ids:
                found.setdefault(topics[key], set()).add(ids[directed])
    return found


def of_linking(found: LinkingSet, seed: int) -> tuple[list[Lesson], list[Lesson]]:
    """Lessons to learn from and to measure on, of a relation-linking set: a seeded tenth of its questions."""
    held = hold_out(sorted({one.question_id for one in found.linked}), HELD_OUT, seed)
    parts: tuple[list[Lesson], list[Lesson]] = [], []
    for one in found.linked:
        lesson = make_lesson(one.question, one.entity, one.relations, one.gold)
        if lesson is not None:
            parts[one.question_id in held].append(lesson)
    return parts


def make_lesson(question: str, entity: str, relations: Iterable[str], gold: Iterable[str]) -> Lesson | None:
    """A lesson; None where no gold relation is among the candidates."""
    distinct = tuple(dict.fromkeys(relations))
    place = {text: number for number, text in enumerate(distinct)}
    right = tuple(sorted({place[text] for text in gold if text in place}))
    return Lesson(question, entity, distinct, right) if right else None
