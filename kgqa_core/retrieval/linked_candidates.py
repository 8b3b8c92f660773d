"""Questions whose topics are the candidates of the mentions that a tagger linked, with the tagger's confidence ρ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from kgqa_core.store.tables import read_frame
from kgqa_core.types import Linked, Question

CANDIDATES = 3
"""Entities of a mention that the answerer `auto` weighs against each other."""
LINKS = "links.parquet"
"""Table of a tagger's candidates beside the questions that it linked."""


def with_linked_candidates(questions: Sequence[Question], folder: Path, candidates: int) -> list[Question]:
    """Questions whose topics are the best candidates of each mention that a tagger linked, with their ρ.

    folder: of linked questions, with `links.parquet`.  A mention counts where its best candidate is a topic.
    Questions stay as they are where the folder has no such table, or the table has none of their mentions.
    Raises ArtifactError when the table lacks columns.
    """
    path = folder / LINKS
    if not path.is_file():
        return list(questions)
    wanted = ["question", "turn", "start", "end", "mention", "entity", "rho", "rank"]
    frame = read_frame(path, wanted)
    links: dict[str, dict[tuple[int, int, int], Linked]] = {}
    for question, turn, start, end, text, entity, rho, _ in frame.sort("question", *wanted[1:4], "rank").rows():
        linked = links.setdefault(question, {}).setdefault((turn, start, end), (text, []))
        linked[1].append((entity, rho))
    return [with_candidates(own, list(links.get(own.id, {}).values()), candidates) for own in questions]


def with_candidates(question: Question, mentions: Sequence[Linked], candidates: int) -> Question:
    """The question with the best candidates of its mentions as topics, whose keys are the mentions."""
    topics = set(question.topic_entities)
    linked = [(text, own[:candidates]) for text, own in mentions if own and own[0][0] in topics]
    linked = [one for one in linked if not any(_is_part(one, other) for other in linked)]
    rows = [(text, entity, rho, number) for number, (text, own) in enumerate(linked) for entity, rho in own]
    if not rows:
        return question
    keys, entities, rhos, numbers = zip(*rows, strict=True)
    weights = tuple(min(1.0, max(0.0, rho)) for rho in rhos)
    return replace(question, topic_keys=keys, topic_entities=entities, topic_weights=weights, topic_mentions=numbers)


def _is_part(one: Linked, other: Linked) -> bool:
    """Whether a mention is a part of another one of the same entity, as *Nord* in *Hutte Nord*."""
    return one[1][0][0] == other[1][0][0] and len(one[0]) < len(other[0]) and one[0] in other[0]
