"""LTGen-QA: one question for each of some entity-relation pairs of an entity, read and checked (Huang et al. 2024)."""

from __future__ import annotations

from collections.abc import Sequence

from kgqa_core.metrics.normalise import tokens
from kgqa_core.papers.ltgen.parse import Citable, NameMatcher, read_qa
from kgqa_core.papers.ltgen.records import (
    BenchmarkItem,
    EntityRelationPair,
    RejectedItem,
    ReplyItems,
    Subject,
    shuffled,
)

NO_PAIR = "no pair"
UNKNOWN_PAIR = "pair is not in the prompt"
REPEATED = "pair has a question already"
NO_QUESTION = "no question"
CUT = "cut off"
GIVEN_AWAY = "answer is in the question"
UNNAMED = "subject is not named"
TOO_SHORT = "no sentence"
DUPLICATE = "duplicate"


def pairs_to_ask(subject: Subject, mentions: NameMatcher, seed: int) -> list[EntityRelationPair]:
    """The pairs that may get a question, in seeded order, those with the entity as subject first.

    Left out are pairs whose answer is in the name of their subject, since a question that names it gives it away, and a
    second pair of the same names.
    """
    seen: set[tuple[str, ...]] = set()
    chosen = []
    for pair in subject.pairs:
        words = tuple(word for name in pair.names for word in tokens(name))
        if not words or words in seen:
            continue
        if any(mentions.any(triple.tail.forms, pair.head.name) for triple in pair.triples):
            continue
        seen.add(words)
        chosen.append(pair)
    forward = [pair for pair in chosen if pair.forward]
    backward = [pair for pair in chosen if not pair.forward]
    key = f"pairs/{seed}/{subject.end.key}"
    return shuffled(forward, key) + shuffled(backward, f"{key}/backward")


def read_batch(
    subject: Subject,
    pairs: Sequence[EntityRelationPair],
    first: int,
    text: str,
    mentions: NameMatcher,
    *,
    truncated: bool = False,
) -> ReplyItems:
    """The questions in a completion that are good, and the rest with reasons.

    pairs: those of the prompt.  first: number of the first pair among all of the entity.
    """
    citable = Citable(pair.names for pair in pairs)
    items: dict[int, BenchmarkItem] = {}
    rejects = []
    for number, field in enumerate(read_qa(text, truncated=truncated), start=1):
        reason, detail, index = _check(field.pair, field.question, field.cut, citable, pairs, items, mentions)
        if reason is not None:
            rejects.append(RejectedItem(subject, "question", reason, number, field.question or field.pair, detail))
            continue
        pair = pairs[index]
        answers = tuple({triple.tail.id: triple.tail for triple in pair.triples}.values())
        items[index] = BenchmarkItem(subject, first + index, field.question, pair.triples, (pair.head,), answers)
    return ReplyItems(tuple(items[index] for index in sorted(items)), tuple(rejects))


def _check(
    pair_text: str, question: str, cut: bool, citable: Citable, pairs: Sequence[EntityRelationPair],
    done: dict[int, BenchmarkItem],
    mentions: NameMatcher,
) -> tuple[str | None, str, int]:  # fmt: skip
    """Why a question is no good, what exactly, and the index of its pair."""
    if cut:
        return CUT, pair_text, -1
    if not pair_text.strip():
        return NO_PAIR, "", -1
    cited = citable.read(pair_text)
    if len(cited.indices) != 1 or cited.foreign:
        return UNKNOWN_PAIR, pair_text, -1
    index = cited.indices[0]
    pair = pairs[index]
    if index in done:
        return REPEATED, pair_text, index
    if not question.strip():
        return NO_QUESTION, pair_text, index
    if len(tokens(question)) < 2:
        return TOO_SHORT, pair_text, index
    if not mentions.part(pair.head.forms, question):
        return UNNAMED, pair.head.name, index
    for triple in pair.triples:
        if mentions.any(triple.tail.forms, question):
            return GIVEN_AWAY, triple.tail.name, index
    return None, "", index
