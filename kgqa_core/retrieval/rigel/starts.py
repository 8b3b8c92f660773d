"""The start of a question's walk: its topics, or the candidates of its mentions, weighted by the tagger's confidence ρ.

A question has one leg, which begins at all of its topics, unless topics are followed apart to intersect what they lead
to: then it has a leg for each mention, which begins at the candidates of that mention.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from kgqa_core.datasets.files.masking import mask_mentions, mask_topic
from kgqa_core.dkg import sets
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.follow import EntityWeights
from kgqa_core.types import Question

OTHER = "another"
"""What a leg reads in place of the mentions that it does not begin at."""
FEATURES = 2
"""Of a candidate beside ρ: its share of its mention's popularity, and its popularity."""


@dataclass(frozen=True)
class Starts:
    """The legs of some questions.

    ptr: int64 [questions + 1], legs of each question.  sets: entities of each leg, weighted by ρ.
    features: float [n, 2], of each of their entities.  topics: all topics of each question.
    words: token ids of an entity's description, by id; empty where nothing reads them.
    """

    ptr: Tensor
    sets: EntityWeights
    features: Tensor
    topics: EntityWeights
    words: Mapping[int, list[int]] = field(default_factory=dict)

    def take(self, numbers: Tensor) -> tuple[Starts, Tensor]:
        """Those of some questions, and the legs that are theirs.  numbers: int64 [m]."""
        ptr, legs = sets.places_of(self.ptr, numbers)
        _, places = sets.places_of(self.sets.ptr, legs)
        own = self.sets.take(legs), self.features[places], self.topics.take(numbers)
        return Starts(ptr, *own, self.words), legs


def mentions_of(question: Question) -> list[list[int]]:
    """Places in `topic_entities` of the candidates of each mention, in order of the first.

    Where one key means several entities nothing tells them apart, and all count as candidates of one mention.
    """
    places = range(len(question.topic_entities))
    if question.topic_mentions:
        groups: dict[int, list[int]] = {}
        for place in places:
            groups.setdefault(question.topic_mentions[place], []).append(place)
        return list(groups.values())
    if len(question.topic_keys) == len(question.topic_entities):
        own = {question.topic_entities[place]: [place] for place in reversed(places)}
        return sorted(own.values())
    return [list(places)] if question.topic_entities else []


def legs_of(question: Question, apart: bool) -> list[list[list[int]]]:
    """The mentions that each leg begins at: all in one leg, or each in its own where legs go apart."""
    mentions = mentions_of(question)
    return [[mention] for mention in mentions] if apart and len(mentions) > 1 else [mentions]


def leg_texts(question: Question, apart: bool, token: str, names: Mapping[int, Sequence[str]]) -> list[str]:
    """What is read for each leg: its own mentions replaced by `token`, those of other legs by OTHER."""
    mentions = mentions_of(question)
    if not question.topic_mentions and (not apart or len(mentions) < 2):
        return [mask_topic(question, token, names)]
    if not apart or len(mentions) < 2:
        return [mask_mentions(question, mentions, [token] * len(mentions), names)]
    return [
        mask_mentions(question, mentions, [token if other is own else OTHER for other in mentions], names)
        for own in mentions
    ]


def make_starts(questions: Sequence[Question], dkg: Dkg, apart: bool, words: Mapping[int, list[int]]) -> Starts:
    """The legs of questions.  apart: a leg for each mention."""
    counts: list[int] = []
    rows: list[dict[int, tuple[float, float, float]]] = []
    degree = _degrees(questions, dkg)
    for question in questions:
        weights = question.topic_weights or (1.0,) * len(question.topic_entities)
        legs = legs_of(question, apart)
        counts.append(len(legs))
        for mentions in legs:
            row: dict[int, tuple[float, float, float]] = {}
            for places in mentions:
                known = [1 + degree[question.topic_entities[place]] for place in places]
                for place, popularity in zip(places, known, strict=True):
                    entity = question.topic_entities[place]
                    facts = (weights[place], popularity / sum(known), math.log(popularity) / 10)
                    row[entity] = max(row.get(entity, facts), facts)
            rows.append(dict(sorted(row.items())))
    ptr = torch.zeros(len(counts) + 1, dtype=torch.int64)
    ptr[1:] = torch.tensor(counts, dtype=torch.int64).cumsum(0)
    own = EntityWeights.from_rows([{entity: facts[0] for entity, facts in row.items()} for row in rows])
    features = torch.tensor([facts[1:] for row in rows for facts in row.values()]).reshape(-1, FEATURES)
    topics = EntityWeights.one_hot([question.topic_entities for question in questions])
    return Starts(ptr, own, features, topics, words)


def _degrees(questions: Sequence[Question], dkg: Dkg) -> dict[int, int]:
    entities = sorted({entity for question in questions for entity in question.topic_entities})
    start, stop = dkg.row_bounds(entities)
    return dict(zip(entities, (stop - start).tolist(), strict=True))


def entity_descriptions(kg: Path | None, questions: Sequence[Question]) -> dict[int, str]:
    """Types and description of the topic entities, in words; empty without a graph store."""
    if kg is None:
        return {}
    from kgqa_core.kg.store import KgStore

    entities = sorted({entity for question in questions for entity in question.topic_entities})
    with KgStore.open(kg) as store:
        rows = store.connection.execute(
            "SELECT entity, type FROM types WHERE entity IN (SELECT unnest(?::INTEGER[])) ORDER BY entity, type",
            [entities],
        ).fetchall()
        types: dict[int, list[int]] = {}
        for entity, kind in rows:
            types.setdefault(entity, []).append(kind)
        names = store.names(sorted({kind for own in types.values() for kind in own}))
        descriptions = dict(
            store.connection.execute(
                f"SELECT id, arg_min(description, ({store._language_rank('lang', None)}, lang)) FROM labels "
                "WHERE description IS NOT NULL AND id IN (SELECT unnest(?::INTEGER[])) GROUP BY id",
                [entities],
            ).fetchall()
        )
        texts = {
            entity: f"{', '.join(names[kind] for kind in types.get(entity, ()))}: {descriptions.get(entity, '')}"
            for entity in entities
        }
    return {entity: text.strip(" :") for entity, text in texts.items() if text.strip(" :")}
