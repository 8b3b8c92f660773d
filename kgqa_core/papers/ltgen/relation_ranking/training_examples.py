"""What rankers learn from: entities of questions with their relations, and which of these are gold.

Examples come from the annotated questions of a data set and from relation-linking files as published for QALD-9 and
LC-QuAD 1.  A line of these is JSON with `q_id`, `source` and `target`: `Who developed Skype? [Skype | Software |
developer, genre]` and `[Skype | developer]`.  The candidates come in the order of an earlier ranking, so they are
sorted here.  Gold pairs of an entity that is not linked (`[What | elevation]`, of a later hop) are counted and are no
pairs to rank.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kgqa_core.datasets.derived.gold_paths import gold_paths
from kgqa_core.datasets.derived.splits import hold_out
from kgqa_core.dkg.csr import Dkg
from kgqa_core.errors import InputError
from kgqa_core.input_files import read_document
from kgqa_core.kg.store import KgStore
from kgqa_core.papers.ltgen.relation_ranking.retriever import candidates, directed_texts
from kgqa_core.types import INVERSE, Question

HELD_OUT = 0.1
"""Share of a relation-linking set's questions that are measured on, not learnt from."""


@dataclass(frozen=True)
class RankingExample:
    """An entity of a question with the words of its relations, all different.

    gold: indices of the relations that lead on to the answer.
    """

    question: str
    entity: str
    relations: tuple[str, ...]
    gold: tuple[int, ...]


def examples_of_questions(
    questions: Sequence[Question], dkg: Dkg, kg: Path | None, max_relations: int
) -> tuple[list[RankingExample], dict[str, int]]:
    """Examples of annotated questions; counts: questions, annotated (with a gold relation), lessons (examples), lost.

    The gold relations of a topic are the first ones of the gold paths from it, and those of its gold triples; `lost`
    counts examples that are left out because none of them is among the max_relations candidates.
    kg: the graph store, for the names of topics; their keys serve without it.
    """
    texts = directed_texts(dkg)
    counts = Counter[str](questions=len(questions), annotated=0, lessons=0, lost=0)
    names = dict[int, str]()
    if kg is not None:
        with KgStore.open(kg) as store:
            names = store.names(sorted({entity for question in questions for entity in question.topic_entities}))
    examples: list[RankingExample] = []
    for question in questions:
        gold = gold_relations(question, dkg)
        counts["annotated"] += bool(gold)
        keys = dict(zip(question.topic_entities, question.topic_keys, strict=False))
        for entity, gold_of_entity in gold.items():
            there = candidates(dkg, entity, max_relations).relation.tolist()
            example = make_example(
                question.text, names.get(entity) or keys.get(entity, ""),
                [texts[relation] for relation in there], [texts[relation] for relation in gold_of_entity & set(there)],
            )  # fmt: skip
            if example is None:
                counts["lost"] += 1
            else:
                examples.append(example)
    counts["lessons"] = len(examples)
    return examples, dict(counts)


def gold_relations(question: Question, dkg: Dkg) -> dict[int, set[int]]:
    """Directed gold relations of each topic entity that has one."""
    ids = dkg.relation_ids
    gold: dict[int, set[int]] = {}
    for path in gold_paths(question, dkg, searched=0):
        gold.setdefault(path.topic, set()).add(ids[path.relations[0]])
    topics = dict(zip(question.topic_keys, question.topic_entities, strict=False))
    for head, relation, tail in question.gold_triples:
        for key, directed in ((head, relation), (tail, INVERSE + relation)):
            if key in topics and directed in ids:
                gold.setdefault(topics[key], set()).add(ids[directed])
    return gold


def examples_of_linking(linking: LinkingSet, seed: int) -> tuple[list[RankingExample], list[RankingExample]]:
    """Examples to learn from and to measure on, of a relation-linking set: a seeded tenth of its questions."""
    held = hold_out(sorted({linked_entity.question_id for linked_entity in linking.linked}), HELD_OUT, seed)
    parts: tuple[list[RankingExample], list[RankingExample]] = [], []
    for linked_entity in linking.linked:
        example = make_example(
            linked_entity.question, linked_entity.entity, linked_entity.relations, linked_entity.gold
        )
        if example is not None:
            parts[linked_entity.question_id in held].append(example)
    return parts


def make_example(question: str, entity: str, relations: Iterable[str], gold: Iterable[str]) -> RankingExample | None:
    """An example; None where no gold relation is among the candidates."""
    distinct = tuple(dict.fromkeys(relations))
    index = {text: number for number, text in enumerate(distinct)}
    right = tuple(sorted({index[text] for text in gold if text in index}))
    return RankingExample(question, entity, distinct, right) if right else None


_BLOCK = re.compile(r"\[([^\[\]]*\|[^\[\]]*)\]")


@dataclass(frozen=True)
class LinkedEntity:
    """A question with one of its entities.

    relations: the candidates, sorted.  gold: relations of the entity that the question's query has, also those that are
    no candidates.
    """

    question_id: str
    question: str
    entity: str
    relations: tuple[str, ...]
    gold: frozenset[str]


@dataclass(frozen=True)
class LinkingSet:
    """The linked entities of a file, in its order.

    counts: questions, entities, gold (pairs of linked entities), no_candidate (of these), unlinked (gold pairs left
    out).
    """

    linked: tuple[LinkedEntity, ...]
    counts: dict[str, int]


def read_linking(path: Path) -> LinkingSet:
    """The entities of a file that have a candidate.  Raises InputError for a line that is none, by its number."""
    linked: list[LinkedEntity] = []
    counts = Counter[str](questions=0, entities=0, gold=0, no_candidate=0, unlinked=0)
    lines = read_document(path, needs="lines of JSON with q_id, source and target").splitlines()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            entities, unlinked = read_line(str(row["q_id"]), row["source"], row["target"])
        except (ValueError, KeyError, TypeError) as fault:
            raise InputError(f"{path} line {number} is no JSON with q_id, source and target ({fault!r})") from None
        counts["questions"] += 1
        counts["entities"] += len(entities)
        counts["gold"] += sum(len(entity.gold) for entity in entities)
        counts["no_candidate"] += sum(len(entity.gold - set(entity.relations)) for entity in entities)
        counts["unlinked"] += unlinked
        linked += entities
    return LinkingSet(tuple(linked), dict(counts))


def read_line(question_id: str, source: str, target: str) -> tuple[list[LinkedEntity], int]:
    """The linked entities of one question, and how many gold pairs are of none of them.

    >>> read_line("2", "Who made it? [Skype | Software | genre, developer]", "[Skype | developer] [Who | name]")[1]
    1
    """
    blocks = [_parts(block) for block in _BLOCK.findall(source)]
    first = _BLOCK.search(source)
    question = " ".join(source[: first.start() if first else len(source)].split())
    gold: dict[str, set[str]] = {}
    for parts in (_parts(block) for block in _BLOCK.findall(target)):
        if len(parts) > 1 and parts[-1]:
            gold.setdefault(parts[0], set()).add(parts[-1])
    candidates: dict[str, set[str]] = {}
    for parts in blocks:
        names = {name.strip() for name in parts[-1].split(",")} - {""}
        if len(parts) > 2 and names:
            candidates.setdefault(parts[0], set()).update(names)
    linked = [
        LinkedEntity(question_id, question, entity, tuple(sorted(names)), frozenset(gold.get(entity, ())))
        for entity, names in candidates.items()
    ]
    return linked, sum(len(names) for entity, names in gold.items() if entity not in candidates)


def _parts(block: str) -> Sequence[str]:
    return [part.strip() for part in block.split("|")]
