"""The topics of a question as an answer names them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kgqa_core.answering.reply import AnswerTopic
from kgqa_core.kg.store import KgStore
from kgqa_core.kg.verbalise import tell_apart
from kgqa_core.types import Question


def answer_topics(store: KgStore, question: Question, names: Mapping[int, str]) -> tuple[AnswerTopic, ...]:
    """Key and name of each topic; with the words that it was linked by and how surely, where it was linked.

    names: of the question's topic entities.
    """
    names = tell_apart(store, {entity: names[entity] for entity in question.topic_entities})
    keys = store.entity_keys(question.topic_entities)
    if not question.topic_weights:
        given: Sequence[str] = question.topic_keys
        if len(given) != len(question.topic_entities):  # one key of a file may mean several entities
            given = [keys[entity] for entity in question.topic_entities]
        pairs = zip(question.topic_entities, given, strict=True)
        return tuple(AnswerTopic(key, names[entity]) for entity, key in pairs)
    rows = zip(question.topic_entities, question.topic_keys, question.topic_weights, strict=True)
    return tuple(AnswerTopic(keys[entity], names[entity], words, round(rho, 4)) for entity, words, rho in rows)
