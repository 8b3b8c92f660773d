"""A question that is asked alone: the topics and earlier turns that it comes with, and its topics as a reply tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kgqa_core.errors import InputError
from kgqa_core.kg.store import KgStore
from kgqa_core.types import ROLES, Question


def with_topics(asked: Question, topics: Sequence[str], store: KgStore) -> Question:
    """The question about every entity that these keys or labels mean.  Raises InputError for one that means none."""
    resolved = store.resolve([*topics, *(topic.strip() for topic in topics)])
    found: dict[int, str] = {}
    for topic in topics:
        ids = resolved[topic] or resolved[topic.strip()]
        if not ids:
            near = store.suggest(topic)
            hint = f" (did you mean {near!r}?)" if near else ""
            raise InputError(f"topic entity {topic!r} is not in this graph{hint}; `kgqa kg show` looks entities up")
        for entity in ids:
            found[entity] = topic
    return replace(asked, topic_entities=tuple(found), topic_keys=tuple(found.values()))


def topics_told(question: Question, names: Mapping[int, str], store: KgStore) -> list[dict[str, Any]]:
    """Key and name of each topic; with the words that it was found by and how surely, where it was found."""
    if not question.topic_weights:
        given = zip(question.topic_entities, question.topic_keys, strict=True)
        return [{"key": key, "name": names[entity]} for entity, key in given]
    keys = store.entity_keys(question.topic_entities)
    linked = zip(question.topic_entities, question.topic_keys, question.topic_weights, strict=True)
    return [
        {"key": keys[entity], "name": names[entity], "mention": words, "rho": round(rho, 4)}
        for entity, words, rho in linked
    ]


def turns(dialogue: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Earlier turns, each by `user` or `agent`.  Raises InputError for another role."""
    for role, _ in dialogue:
        if role not in ROLES:
            raise InputError(f"a turn of the dialogue is by {role!r}; the roles are {' and '.join(ROLES)}")
    return tuple((role, said) for role, said in dialogue)
