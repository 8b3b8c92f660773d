"""Where names occur in a text, how likely each is meant as a name, and which of those that overlap is preferred.

Link probability: TAGME counts how often a phrase is a hyperlink where it occurs.  A graph has no hyperlinks, so the
probability is a logistic function of features of the name and of how it is written.  The weights were fitted on
training texts of six data sets, see docs/linking.md; `benchmarks/linking_prior.py` fits them again.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field

from kgqa_core.linking import kernels
from kgqa_core.linking.fold import Folded, fold_text, is_unspaced
from kgqa_core.linking.mentions import (
    ALIAS,
    CASED,
    FUNCTION,
    LABEL,
    NAMED_TYPE,
    NUMBER,
    RELATION,
    RELATION_WORDS,
    MentionDictionary,
)
from kgqa_core.linking.typos import near_names

WEIGHTS: dict[str, float] = {
    "bias": 1.19,
    "words": 1.16,
    "signs": 0.22,
    "short": -2.35,
    "function": -1.26,
    "relation": -2.51,
    "relation_words": -1.64,
    "number": -2.58,
    "type": -0.66,
    "plain": -2.04,
    "capital": -0.4,
    "initial": -1.79,
    "small": -2.3,
    "flat": 0.05,
    "alias": -0.06,
    "part": -1.84,
    "usual": -3.42,
    "usual_capital": -1.52,
    "usual_inside": -1.5,
    "within": -0.68,
    "value": -0.5,
    "degree": 0.6,
    "exact": 0.7,
    "ambiguous": -0.03,
}
"""Weights of the logits of `features`.

usual_inside and value are held by hand nearer to 0 than the fit has them (-6.17, -1.26): it learnt them from what its
data sets leave unannotated, and in a small graph they would hide a country by its usual name.
"""
SCALE = 100_000
"""Names of a graph above which `within` is counted in proportion."""
_VALUES = tuple(WEIGHTS.values())


@dataclass(frozen=True, slots=True)
class Writing:
    """How a text uses capitals.  cased: some word but the first begins with one and some word does not."""

    cased: bool

    @classmethod
    def of(cls, text: str) -> Writing:
        """That of a text."""
        words = text.split()
        return cls(any(word[:1].isupper() for word in words[1:]) and any(word[:1].islower() for word in words))


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A name at a place of a text.

    surface: the text of the mention; at: its place.  atoms: words and characters of unspaced scripts.
    """

    surface: str
    at: int
    atoms: int
    name: int


def link_probability(values: list[float]) -> float:
    """In [0, 1], of the values that `features` gives."""
    return 1 / (1 + math.exp(-sum(weight * value for weight, value in zip(_VALUES, values, strict=True))))


def features(occurrence: Occurrence, writing: Writing, mentions: MentionDictionary) -> list[float]:
    """What the link probability is made of, in the order of WEIGHTS.

    words: each word after the first, three at most; signs: the same of an unspaced script.  short: one or two letters,
    or one sign.  plain: the graph writes the name without capital.  capital: written with one inside a sentence where
    other words are not; initial: the same where the sentence begins; small: without, where the graph has one; flat: the
    same in a text without capitals.  alias, part: only an alias, only a part of a name.  usual: how usual its words
    are, 1 the most, where it is written small; usual_capital, usual_inside: the same where it is not, at the beginning
    and later.  within: logarithm of how many other names it occurs in.  value: nothing but the value of others'
    relations.  degree: logarithm of that of its most common entity.  exact: written as the label of that.  ambiguous:
    logarithm of the number of entities.
    """
    number = occurrence.name
    start, stop = int(mentions.rows[number]), int(mentions.rows[number + 1])
    name, entity = int(mentions.flags[number]), int(mentions.entity_flags[start])
    for place in range(start + 1, min(stop, start + 5)):
        entity |= int(mentions.entity_flags[place])
    first = int(mentions.entities[start])
    surface = occurrence.surface
    unspaced = sum(map(is_unspaced, surface))
    capital = any(word[0].isupper() or word[0].isdigit() for word in surface.split())
    small = not capital and not unspaced and entity & CASED > 0
    role_start, role_stop = int(mentions.role_rows[first]), int(mentions.role_rows[first + 1])
    forward = role_stop > role_start and int(mentions.roles[role_start]) < mentions.meta["relations"]
    degree = int(mentions.near_rows[first + 1]) - int(mentions.near_rows[first])
    usual = int(mentions.usual[number]) / 255
    return [
        1.0,
        float(min(max(occurrence.atoms - unspaced - 1, 0), 3)),
        float(min(max(unspaced - 2, 0), 3)),
        float(occurrence.atoms < 2 if unspaced else len(surface) < 3),
        float(name & FUNCTION > 0),
        float(name & RELATION > 0),
        float(name & RELATION_WORDS > 0 and not name & (RELATION | FUNCTION)),
        float(name & NUMBER > 0),
        float(name & NAMED_TYPE > 0),
        float(not entity & CASED),
        float(writing.cased and capital and occurrence.at > 0),
        float(writing.cased and capital and occurrence.at == 0),
        float(writing.cased and small),
        float(not writing.cased and small),
        float(not entity & LABEL and entity & ALIAS > 0),
        float(not entity & (LABEL | ALIAS)),
        0.0 if capital else usual,
        usual if capital and occurrence.at == 0 else 0.0,
        usual if capital and occurrence.at > 0 else 0.0,
        math.log1p(int(mentions.within[number]) * min(1.0, SCALE / len(mentions))),
        float(not forward),
        math.log10(max(degree, 1)),
        float(surface == mentions.labels[first]),
        math.log(stop - start),
    ]


LEAST = 0.25
"""Link probability below which a stretch of text is no mention: it neither votes nor is voted for."""
CLEARLY = 0.3
"""Difference of link probability by which a longer mention displaces one to its left."""
ERROR = 0.8
"""What a typing error leaves of the link probability."""


@dataclass(slots=True, eq=False)
class SpottedName:
    """A name in a text.

    start, end: place in the text of its turn.  turn: 0 for the text itself, 1 for the one before it.  name: its number.
    probability: that it is meant as a name.  candidates: (entity, commonness), the most common first.  errors: typing
    errors.  chosen: it is likely enough, and longer than what it overlaps.
    """

    start: int
    end: int
    turn: int
    name: int
    probability: float
    candidates: list[tuple[int, float]] = field(default_factory=list)
    errors: int = 0
    chosen: bool = False


def find_spots(text: str, turn: int, mentions: MentionDictionary, most: int, typos: int) -> list[SpottedName]:
    """Every name in a text in order of its place, overlapping ones too.

    most: candidates of each.  typos: errors allowed in a name where no name was found without.
    """
    folded, writing = fold_text(text), Writing.of(text)
    strings = mentions.names
    result = kernels.spot(strings.blob, strings.offsets, folded.data, folded.begin, folded.end)
    spots = [
        _spot(text, turn, mentions, most, folded, writing, first, last, name, 0)
        for first, last, name in result.tolist()
    ]
    choose(spots)
    if typos:
        covered = [(spot.start, spot.end) for spot in spots if spot.chosen]
        spots += [
            _spot(text, turn, mentions, most, folded, writing, first, last, name, errors)
            for first, last, name, errors in near_names(folded, covered, mentions, typos)
        ]
        spots.sort(key=lambda spot: (spot.start, spot.end, spot.errors, spot.name))
        choose(spots)
    return spots


def choose(spots: list[SpottedName]) -> None:
    """Marks as chosen, from the left, the longest spot that begins where the last chosen one has ended.

    One that begins later and overlaps takes its place when it is longer and more likely by CLEARLY.  A name with
    typing errors is chosen only where it touches no other.
    """
    apart: list[SpottedName] = []  # they lie apart, from the left
    likely = [spot for spot in spots if spot.probability >= LEAST]
    for spot in sorted(likely, key=lambda spot: (spot.errors, spot.start, -spot.end, -spot.probability, spot.name)):
        low = bisect_right(apart, spot.start, key=lambda other: other.end)
        high = bisect_left(apart, spot.end, key=lambda other: other.start)
        touched = apart[low:high]
        longer = all(spot.end - spot.start > other.end - other.start for other in touched)
        likelier = all(spot.probability > other.probability + CLEARLY for other in touched)
        if touched and (spot.errors or not (longer and likelier)):
            continue
        apart[low:high] = [spot]
    chosen = set(apart)
    for spot in spots:
        spot.chosen = spot in chosen


def _spot(
    text: str,
    turn: int,
    mentions: MentionDictionary,
    most: int,
    folded: Folded,
    writing: Writing,
    first: int,
    last: int,
    name: int,
    errors: int,
) -> SpottedName:
    start, end = int(folded.first[first]), int(folded.last[last])
    occurrence = Occurrence(text[start:end], start, last - first + 1, name)
    probability = link_probability(features(occurrence, writing, mentions)) * ERROR**errors
    return SpottedName(start, end, turn, name, probability, mentions.candidates(name, most), errors)
