"""Where names occur in a text, how likely each is meant as a name, and which of those that overlap is preferred."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field

from kgqa_core.linking import kernels
from kgqa_core.linking.fold import Folded, fold_text
from kgqa_core.linking.mentions import Mentions
from kgqa_core.linking.prior import Seen, Writing, features, link_probability
from kgqa_core.linking.typos import near_names

LEAST = 0.25
"""Link probability below which a stretch of text is no mention: it neither votes nor is voted for."""
CLEARLY = 0.3
"""Difference of link probability by which a longer mention displaces one to its left."""
ERROR = 0.8
"""What a typing error leaves of the link probability."""


@dataclass(slots=True, eq=False)
class Spot:
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


def find_spots(text: str, turn: int, mentions: Mentions, most: int, typos: int) -> list[Spot]:
    """Every name in a text in order of its place, overlapping ones too.

    most: candidates of each.  typos: errors allowed in a name where no name was found without.
    """
    folded, writing = fold_text(text), Writing.of(text)
    strings = mentions.names
    found = kernels.spot(strings.blob, strings.offsets, folded.data, folded.begin, folded.end)
    spots = [
        _spot(text, turn, mentions, most, folded, writing, first, last, name, 0) for first, last, name in found.tolist()
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


def choose(spots: list[Spot]) -> None:
    """Marks as chosen, from the left, the longest spot that begins where the last chosen one has ended.

    One that begins later and overlaps takes its place when it is longer and more likely by CLEARLY.  A name with
    typing errors is chosen only where it touches no other.
    """
    taken: list[Spot] = []  # they lie apart, from the left
    likely = [spot for spot in spots if spot.probability >= LEAST]
    for spot in sorted(likely, key=lambda spot: (spot.errors, spot.start, -spot.end, -spot.probability, spot.name)):
        low = bisect_right(taken, spot.start, key=lambda other: other.end)
        high = bisect_left(taken, spot.end, key=lambda other: other.start)
        touched = taken[low:high]
        longer = all(spot.end - spot.start > other.end - other.start for other in touched)
        likelier = all(spot.probability > other.probability + CLEARLY for other in touched)
        if touched and (spot.errors or not (longer and likelier)):
            continue
        taken[low:high] = [spot]
    chosen = set(taken)
    for spot in spots:
        spot.chosen = spot in chosen


def _spot(
    text: str,
    turn: int,
    mentions: Mentions,
    most: int,
    folded: Folded,
    writing: Writing,
    first: int,
    last: int,
    name: int,
    errors: int,
) -> Spot:
    start, end = int(folded.first[first]), int(folded.last[last])
    seen = Seen(text[start:end], start, last - first + 1, name)
    probability = link_probability(features(seen, writing, mentions)) * ERROR**errors
    return Spot(start, end, turn, name, probability, mentions.candidates(name, most), errors)
