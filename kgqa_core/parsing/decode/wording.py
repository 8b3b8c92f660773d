"""A question as the decoder reads it: mentions and values masked, and what can stand in its slots.

Mentions are numbered in the order of the text and masked by `[E1]`, `[E2]`, …, numbers and dates by `[V1]`, …; the
candidates of one mention are slots of their own that share its token.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kgqa_core.datasets.masking import mask_names
from kgqa_core.logic.forms import Literal
from kgqa_core.parsing.examples import ParseExample, Topic
from kgqa_core.parsing.rng.slots import VALUES, mentions_of, values_in

MOST_MENTIONS = 6
"""Mentions that have a token of their own."""
MENTIONS = tuple(f"[E{number}]" for number in range(1, MOST_MENTIONS + 1))
LITERALS = tuple(f"[V{number}]" for number in range(1, VALUES + 1))
PLACEHOLDERS = (*MENTIONS, *LITERALS)


@dataclass(frozen=True, slots=True)
class Worded:
    """A masked text, the topics with the place of their mention, and the literals with the place of their value.

    A value that may be a number or a year is two literals.
    """

    text: str
    topics: tuple[tuple[Topic, int], ...] = ()
    literals: tuple[tuple[Literal, int], ...] = ()


def worded(example: ParseExample, known: Mapping[str, object], mentions: int, candidates: int) -> Worded:
    """How a question is read.

    known: keys of the graph's entities; other topics are left out.  mentions, candidates: of the question, and of one
    mention, at most, the surest first.
    """
    topics = [topic for topic in example.topics if topic.key in known]
    text = " ".join(example.text.split())
    own = mentions_of(text, topics, min(mentions, MOST_MENTIONS))
    masked = mask_names(text, [([words], token) for (_, words), token in zip(own, MENTIONS, strict=False)])
    values = values_in(mask_names(text, [([words], " ") for _, words in own]))
    masked = mask_names(masked, [([value.text], token) for value, token in zip(values, LITERALS, strict=False)])
    slots: dict[str, tuple[Topic, int]] = {}
    for place, (number, _) in enumerate(own):
        of_mention = sorted((t for t in topics if t.number == number), key=lambda t: (-t.rho, t.key))
        for topic in list({t.key: t for t in of_mention if t.key not in slots}.values())[:candidates]:
            slots[topic.key] = (topic, place)
    literals = [
        (literal, place)
        for place, value in enumerate(values)
        for literal in (value.number, value.time)
        if literal is not None
    ]
    return Worded(masked, tuple(slots.values()), tuple(dict(literals).items()))
