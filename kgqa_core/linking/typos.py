"""Names that differ from a stretch of text by a typing error or two."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from kgqa_core.linking import fuzzy_kernels
from kgqa_core.linking.fold import Folded, is_unspaced
from kgqa_core.linking.mentions import Mentions
from kgqa_core.linking.words import FUNCTION_WORDS, usualness

SHORTEST = {1: 5, 2: 9}
"""Characters that a name needs for so many errors; those of unspaced scripts count double."""
WORDS, SIGNS = 5, 12
"""Longest stretches that are looked at, in words and in characters of unspaced scripts."""
FOUND = 32
"""Names kept of one stretch."""


def near_names(
    folded: Folded, covered: Sequence[tuple[int, int]], mentions: Mentions, typos: int
) -> list[tuple[int, int, int, int]]:
    """(first atom, last atom, name, errors) of names within `typos` insertions, deletions, changes or swaps.

    Only stretches are looked at that touch no covered place (start, end of the text; in order, apart) and hold a word
    that is unknown: neither a word of grammar nor a usual one.  The nearest names of a stretch are told, all at the
    least distance.
    """
    data = folded.data.tobytes()
    atoms = [
        data[begin:end].decode("utf-8", "surrogatepass") for begin, end in zip(folded.begin, folded.end, strict=True)
    ]
    spaced = [not _unspaced(atom) for atom in atoms]
    ends = [end for _, end in covered]
    free = []
    for first, last in zip(folded.first.tolist(), folded.last.tolist(), strict=True):
        place = bisect_right(ends, first)
        free.append(place == len(ends) or last <= covered[place][0])
    unknown = [not (atom in FUNCTION_WORDS or usualness(atom)) for atom in atoms]
    found: list[tuple[int, int, int, int]] = []
    for first in range(len(atoms)):
        for last in range(first, min(first + SIGNS, len(atoms))):
            if not free[last] or (spaced[last] and last - first >= WORDS):
                break
            stretch = data[folded.begin[first] : folded.end[last]].decode("utf-8", "surrogatepass")
            length = len(stretch) + sum(_unspaced(sign) for sign in stretch)
            allowed = max((errors for errors in range(1, typos + 1) if length >= SHORTEST[errors]), default=0)
            if not allowed or not any(unknown[first : last + 1]):
                continue
            if spaced[first] and atoms[first] in FUNCTION_WORDS or spaced[last] and atoms[last] in FUNCTION_WORDS:
                continue
            near = nearest(stretch, mentions, allowed)
            found += [(first, last, name, errors) for name, errors in near]
    return found


def nearest(stretch: str, mentions: Mentions, typos: int) -> list[tuple[int, int]]:
    """(name, errors) of the names at the least distance from a folded text that is in 1..typos; none if it is one."""
    codes = np.array([ord(sign) for sign in stretch], dtype=np.int64)
    for errors in range(1, typos + 1):
        rows = fuzzy_kernels.near(mentions.names.blob, mentions.names.offsets, codes, errors, FOUND)
        if len(rows):
            least = int(rows[:, 1].min())
            return [] if least == 0 else [(name, least) for name, distance in rows.tolist() if distance == least]
    return []


def _unspaced(text: str) -> bool:
    return is_unspaced(text[0])
