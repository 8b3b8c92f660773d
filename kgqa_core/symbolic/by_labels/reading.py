"""A question as the label parser reads it: slots for mentions, types that it names, values, a place of a ranking."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

from kgqa_core.kg.vocabulary import XSD
from kgqa_core.linking.english import singulars, type_words
from kgqa_core.linking.words import usualness
from kgqa_core.logic.forms import Literal
from kgqa_core.symbolic.by_labels.candidates import LabelQuery, Slot
from kgqa_core.symbolic.by_labels.graph import LONGEST_TYPE, WORD, LabelGraph
from kgqa_core.symbolic.by_labels.phrases import NUMBER, SLOTS
from kgqa_core.symbolic.question_reader import MarkedMention, mark_mentions, place_in
from kgqa_core.types import Question

_SCALES = {
    "hundred": 1e2, "thousand": 1e3, "k": 1e3, "million": 1e6, "mio": 1e6, "mil": 1e6, "m": 1e6, "billion": 1e9,
    "bn": 1e9, "b": 1e9, "trillion": 1e12,
}  # fmt: skip
_NUMBERS = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
    "eleven": 11, "twelve": 12, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "hundred": 100, "thousand": 1000,
    "million": 1_000_000, "billion": 1_000_000_000,
}  # fmt: skip
_VALUE = re.compile(
    r"(?<![\w.])(?P<digits>\d{1,3}(?:[,' ]\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)\s*"
    rf"(?P<scale>{'|'.join(sorted(_SCALES, key=len, reverse=True))})?\b(?!st\b|nd\b|rd\b|th\b)"
    rf"|\b(?P<word>{'|'.join(_NUMBERS)})(?: (?P<word_scale>hundred|thousand|million|billion))?\b",
    re.IGNORECASE,
)
_IN_LETTERS = {str(value): word for word, value in _NUMBERS.items() if value <= 20}
_TOKEN = re.compile(r"(?<!\w)[+.@#]?\w[\w.+/:-]*")
MOST_SLOTS = 3
OTHER_WORD = 0.8
"""Confidence in a type by another usual word for it."""


def read_query(
    question: Question, keys: Mapping[int, str], names: Mapping[int, Sequence[str]], graph: LabelGraph
) -> LabelQuery:
    """A question with its mentions as slots.  keys, names: of its topic entities, by id."""
    marked, mentions = mark_mentions(question, keys, names)
    mentions = _each_once(mentions, len(marked))
    slots = []
    for number, one in enumerate(mentions):
        if number < MOST_SLOTS and one.entities:
            slots.append(Slot(SLOTS[number], one.entities))
        marked = marked.replace(one.mark, f" {SLOTS[number]} " if number < MOST_SLOTS and one.entities else " ")
    rank = place_in(marked)
    marked = corrected(marked, graph)
    if len(slots) < MOST_SLOTS:
        marked = _literal_slots(marked, slots, graph)
    masked, values = mask_values(marked, graph.label_words)
    strange = sum(
        len(word) > 2 and not usualness(word) and word not in graph.label_words and stem(word) not in graph.label_words
        for word in _LATIN.findall(masked.lower())
    )
    return LabelQuery(" ".join(masked.split()), tuple(slots), types_in(masked, graph), rank, values, strange)


def _each_once(mentions: Sequence[MarkedMention], end: int) -> list[MarkedMention]:
    """Mentions in their order, of those that overlap and mean the same the one that stands in the text.

    end: place of a mention that does not.  An entity's other mentions go.
    """
    best: dict[int, MarkedMention] = {}
    for one in sorted((m for m in mentions if m.entities), key=lambda m: (m.place == end, -m.entities[0][2])):
        best.setdefault(one.entities[0][0], one)
    kept = {one.mark for one in best.values()}
    return [one for one in mentions if one.mark in kept or not one.entities or one.place < end]


def _literal_slots(text: str, slots: list[Slot], graph: LabelGraph) -> str:
    """The text with a slot's word for a code or other short text of the graph; the slots get one more.

    A word counts that is no word of English and of no label: in capitals, or with a sign or a digit.
    """
    for found in _TOKEN.finditer(text):
        token = found[0].rstrip(".,;:?!)")
        plain = token.isalpha() and not token.isupper()
        if (
            len(token) < 2
            or token in SLOTS
            or (plain and (usualness(token.lower()) or token.lower() in graph.label_words))
        ):
            continue
        nodes = graph.texts.get(token.lower())
        if nodes and not re.fullmatch(r"\d{1,4}", token):
            word = next(word for word in SLOTS if all(word != slot.word for slot in slots))
            slots.append(Slot(word, tuple((node, graph.text_of(node), 1.0) for node in nodes[:3])))
            return f"{text[: found.start()]} {word} {text[found.start() + len(token) :]}"
    return text


def mask_values(text: str, words: Collection[str] = ()) -> tuple[str, tuple[Literal, ...]]:
    """The text with `n` for each number written in it, and these numbers; one of four digits may be a year too.

    words: of the labels of the graph; a number that is among them stays, in letters where they have it so.

    >>> " ".join(mask_values("more than 5 million people")[0].split())
    'more than n people'
    """
    values: list[Literal] = []

    def mask(found: re.Match[str]) -> str:
        written = found[0].strip().lower()
        for same in (written, _IN_LETTERS.get(written, "")):
            if same in words:
                return f" {same} "
        if found["digits"]:
            number = float(re.sub(r"[,' ]", "", found["digits"])) * _SCALES.get((found["scale"] or "").lower(), 1)
            year = re.fullmatch(r"1\d{3}|20\d{2}", found["digits"]) and not found["scale"]
        else:
            number, year = float(_NUMBERS[found["word"].lower()]), None
            number *= _SCALES.get((found["word_scale"] or "").lower(), 1)
            if number == 1:
                return found[0]
        values.append(Literal(f"{number:.10g}" if number % 1 else str(int(number)), f"{XSD}decimal"))
        if year:
            values.append(Literal(found["digits"], f"{XSD}gYear"))
        return f" {NUMBER} "

    return _VALUE.sub(mask, text), tuple(values)


def types_in(text: str, graph: LabelGraph) -> tuple[tuple[int, float], ...]:
    """Types of the graph that a text names, also in the plural or by another usual word: (place, confidence).

    In the order of the text; longer stretches count before shorter ones, a label before other words for it.
    """
    words = WORD.findall(text.lower())
    index = graph.types_by_words
    found: dict[int, tuple[int, float]] = {}
    covered: set[int] = set()
    for length in range(LONGEST_TYPE, 0, -1):
        for start in range(len(words) - length + 1):
            span = range(start, start + length)
            if covered.intersection(span):
                continue
            forms = singulars(" ".join(words[start : start + length]))
            named = [(place, 1.0) for form in forms for place in index.get(form, ())]
            if not named:
                others = [other for form in forms for other in type_words().get(form, ())]
                named = [(place, OTHER_WORD) for other in others for place in index.get(other, ())]
            if named:
                covered.update(span)
                for place, confidence in named[:2]:
                    found.setdefault(place, (start, confidence))
    order = sorted(found.items(), key=lambda one: one[1][0])
    return tuple((place, confidence) for place, (_, confidence) in order)


def corrected(text: str, graph: LabelGraph) -> str:
    """The text with its typing errors mended: words of no language, one edit away from English or from a label."""
    own = graph.label_words

    def mend(found: re.Match[str]) -> str:
        word = found[0].lower()
        if len(word) < 5 or word in own or stem(word) in own or _is_english(word):
            return found[0]
        near = [(other in own or stem(other) in own, usualness(other), other) for other in _edits(word)]
        best = max((one for one in near if one[0] or one[1]), default=None)
        return best[2] if best is not None else found[0]

    return _LATIN.sub(mend, text)


def _is_english(word: str) -> bool:
    """Whether a word, or what an ending of English is added to, is usual.

    >>> _is_english("fewest"), _is_english("populous"), _is_english("headquaters")
    (True, True, False)
    """
    if usualness(word):
        return True
    return any(
        word.endswith(ending) and any(usualness(word.removesuffix(ending) + more) for more in ("", "e"))
        for ending in _ENDINGS
        if len(word) > len(ending) + 2
    )


_ENDINGS = ("est", "er", "ed", "ing", "ly", "ness", "s", "es")
_LATIN = re.compile(r"(?<![\w'’])[A-Za-z]+(?![\w'’])")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def _edits(word: str) -> set[str]:
    """Words one letter away: left out, swapped with the next, another one, one more."""
    cuts = [(word[:n], word[n:]) for n in range(len(word) + 1)]
    found = {a + b[1:] for a, b in cuts if b} | {a + b[1] + b[0] + b[2:] for a, b in cuts if len(b) > 1}
    found |= {a + c + b[1:] for a, b in cuts if b for c in _LETTERS}
    return found | {a + c + b for a, b in cuts for c in _LETTERS}


@lru_cache(maxsize=1 << 14)
def stem(word: str) -> str:
    """A word without the ending of its plural.

    >>> stem("cities"), stem("countries"), stem("churches"), stem("glass")
    ('city', 'country', 'church', 'glass')
    """
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("ches", "shes", "xes", "sses")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3:
        return word[:-1]
    return word
