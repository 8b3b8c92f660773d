"""What is read from a question's words by rule: the order of its mentions, and a place (`second`, `3rd`, 第二)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kgqa_core.datasets.files.masking import mask_mentions
from kgqa_core.types import Question

_FIRST_MARK = 0xE100
"""Code of the private character that stands for the first mention while places are looked up."""

_UNITS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
_TEENS = ("ten", "eleven", "twelf", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen")
_TENS = {20: "twent", 30: "thirt", 40: "fort", 50: "fift", 60: "sixt", 70: "sevent", 80: "eight", 90: "ninet"}
_ORDINALS = {
    **{word: place for place, word in enumerate(_UNITS, 1)},
    **{f"{word}th": place for place, word in enumerate(_TEENS, 10)},
    **{f"{word}ieth": ten for ten, word in _TENS.items()},
    **{f"{word}y {unit}": ten + place for ten, word in _TENS.items() for place, unit in enumerate(_UNITS, 1)},
}
"""Places by their word, 1 to 99."""
_HAN = "零一二三四五六七八九"
_PLACE = re.compile(
    rf"\b(?P<word>{'|'.join(_ORDINALS).replace(' ', '[ -]')})\b|\b(?P<number>\d{{1,3}})(?:st|nd|rd|th)\b"
    rf"|第(?:(?P<digits>\d{{1,3}})(?!\d)|(?P<han>[{_HAN[1:]}]?十[{_HAN[1:]}]?|[{_HAN[1:]}])(?![{_HAN}十百千万]))",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class MarkedMention:
    """A mention of a text in which a private character stands for each.

    place: of the mark in the text, its end where the mention is not found in it.  entities: (id, key, confidence) of
    each that it may mean, best first.
    """

    mark: str
    place: int
    entities: tuple[tuple[int, str, float], ...]


def mark_mentions(
    question: Question, keys: Mapping[int, str], names: Mapping[int, Sequence[str]]
) -> tuple[str, list[MarkedMention]]:
    """The text with a mark for each mention, and the mentions in its order, those not found in it last.

    keys, names: of the question's topic entities, by id; an entity without a key is left out.
    """
    groups: dict[int, list[int]] = {}
    numbers = question.topic_mentions or tuple(range(len(question.topic_entities)))
    for index, number in enumerate(numbers):
        groups.setdefault(number, []).append(index)
    own = list(groups.values())
    marks = [chr(_FIRST_MARK + number) for number in range(len(own))]
    text = mask_mentions(question, own, marks, names)
    weights = question.topic_weights or (1.0,) * len(question.topic_entities)
    mentions = []
    for mark, group in zip(marks, own, strict=True):
        topics = [(question.topic_entities[i], weights[i]) for i in group]
        known = [(entity, keys[entity], weight) for entity, weight in topics if entity in keys]
        at = text.find(mark)
        best_first = tuple(sorted(known, key=lambda one: -one[2]))
        mentions.append(MarkedMention(mark, at if at >= 0 else len(text), best_first))
    return text, sorted(mentions, key=lambda one: (one.place, one.mark))


def ordinal_in(text: str) -> int | None:
    """The position in a ranking that a text names, in words or Chinese numerals up to 99.

    >>> ordinal_in("the second largest city"), ordinal_in("the 3rd largest"), ordinal_in("largest")
    (2, 3, None)
    >>> ordinal_in("第二大城市")
    2
    """
    match = _PLACE.search(text)
    if match is None:
        return None
    if match["word"]:
        return _ORDINALS[match["word"].lower().replace("-", " ")]
    if match["han"]:
        tens, ten, unit = match["han"].rpartition("十")
        return 10 * (_HAN.index(tens or "一") if ten else 0) + _HAN.index(unit or "零")
    return int(match["number"] or match["digits"]) or None
