"""What is read from a question's words by rule: the order of its mentions, a place (`second`, `3rd`), a date.

Words are English and Chinese; a question in another language has mentions in order and dates in digits."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kgqa_core.datasets.files.masking import mask_mentions
from kgqa_core.kg.vocabulary import XSD
from kgqa_core.logic.forms import Literal
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

_AWAY = re.compile(
    r"\b(?:except(?: for)?|excluding|excepting|without|outside|besides|not counting|"
    r"other than|apart from|aside from|minus|not|none of)\b|n['’]t\b|除了|除去|不包括|不",
    re.IGNORECASE,
)
"""Words before what a difference excludes."""

_MARKS = re.compile(r"[?!.,;:()\"“”？！。，、；：]")

AWAY, A_PLACE = "not", "second"
"""What stands in the masked text for all such words."""

_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_MONTH = "|".join([*_MONTHS, *(month[:3] for month in _MONTHS)])
_YEAR = r"(?<![\d.,-])(?P<year>1\d{3}|20\d{2})(?![\d-]|[.,]\d|['’]?s\b)"
_DATES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?<!\d)(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})(?!\d)",
        rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<name>{_MONTH})\.?,? {_YEAR}",
        rf"\b(?P<name>{_MONTH})\.? (?P<day>\d{{1,2}})(?:st|nd|rd|th)?,? {_YEAR}",
        rf"\b(?P<name>{_MONTH})\.?,? {_YEAR}",
        r"(?P<year>\d{4})\s*年\s*(?P<month>\d{1,2})\s*月(?:\s*(?P<day>\d{1,2})\s*日)?",
        r"(?P<year>\d{4})\s*年",
        rf"\b(?:in|on|during|as of|the year|year) {_YEAR}",
        rf"\({_YEAR}\)",
    )
)
_BOUND_BEFORE = re.compile(
    r"(?:\b(?:before|after|until|till|since|from|to|by|around|between)(?: the)? ?|"
    r"\b\d{4} ?(?:and|or|[-–—]) ?|[从從自至到])$",
    re.IGNORECASE,
)
_BOUND_BEHIND = re.compile(
    r"\s*(?:年?代|[以之][前后後来來]|[前后後])|.*?(?<![\d.,])(?:1\d{3}|20\d{2})(?!\d|[.,]\d)", re.DOTALL
)
"""What makes of a date a bound, or one of several: words that mark one, or a year behind it."""


@dataclass(frozen=True, slots=True)
class TopicMention:
    """A place of the text that names a topic.  entities: (key, confidence) of each that it may mean, best first."""

    entities: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class QuestionReading:
    """A question as its operation is read from it.

    masked: the text with a token for each mention, and one word for all ordinals and for all words of exclusion, so
    that the classifier need not have met each of them.  mentions: in the order of the text, those not found in it last.
    words: the text without mentions and without marks of punctuation.
    turned: what is excluded is named first, as in `apart from X, which … Y`; None where the words do not tell.
    place: of a ranking, None where none is named.  date: of the question, None where it names none or several.
    """

    masked: str
    mentions: tuple[TopicMention, ...]
    words: str = ""
    turned: bool | None = None
    place: int | None = None
    date: Literal | None = None


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


def read_question(
    question: Question, keys: Mapping[int, str], names: Mapping[int, Sequence[str]], token: str
) -> QuestionReading:
    """A question as its operation is read from its words.

    keys, names: of its topic entities, by id.  token: stands for a mention in `masked`.
    """
    marked, results = mark_mentions(question, keys, names)
    mentions = [TopicMention(tuple((key, rho) for _, key, rho in one.entities)) for one in results if one.entities]
    bare = marked
    for one in results:
        bare = bare.replace(one.mark, token)
    turned = _turned(marked, results[0].place, results[1].place) if len(results) > 1 else None
    plain = re.sub(f"[{chr(_FIRST_MARK)}-{chr(_FIRST_MARK + len(results))}]", " ", marked)
    bare = " ".join(_PLACE.sub(f" {A_PLACE} ", _AWAY.sub(f" {AWAY} ", bare)).split())
    words = " ".join(_MARKS.sub(" ", plain).split())
    return QuestionReading(bare, tuple(mentions), words, turned, ordinal_in(plain), date_in(plain))


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


def date_in(text: str) -> Literal | None:
    """The date of a question, as precise as in the text; a bare number is a year only after a word such as `in`.

    None also where a date is a bound, as in `before 2010`, and where another year follows.

    >>> date_in("Who was mayor on 5 May 2010?").text, date_in("Who was mayor in 2010?").text, date_in("more than 2010")
    ('2010-05-05', '2010', None)
    """
    for pattern in _DATES:
        for match in pattern.finditer(text):
            if _BOUND_BEFORE.search(text[: match.start()]) or _BOUND_BEHIND.match(text[match.end() :]):
                return None
            parts = match.groupdict()
            month = parts.get("month")
            if parts.get("name"):
                month = str(next(n for n, name in enumerate(_MONTHS, 1) if name.startswith(parts["name"].lower()[:3])))
            literal = _dated(parts["year"], month, parts.get("day"))
            if literal is not None:
                return literal
    return None


def _dated(year: str, month: str | None, day: str | None) -> Literal | None:
    year = f"{int(year):04d}"
    if month is None:
        return Literal(year, f"{XSD}gYear")
    if not 1 <= int(month) <= 12 or (day is not None and not 1 <= int(day) <= 31):
        return None
    if day is None:
        return Literal(f"{year}-{int(month):02d}", f"{XSD}gYearMonth")
    return Literal(f"{year}-{int(month):02d}-{int(day):02d}", f"{XSD}date")


def _turned(text: str, first: int, second: int) -> bool | None:
    """Whether words that take something away stand before the first mention and none between the two.

    None where there are no such words before the second mention.
    """
    before, between = _AWAY.search(text[:first]), _AWAY.search(text[first + 1 : second])
    return None if before is None and between is None else between is None
