"""Names that differ from a stretch of text by a typing error or two.

Sorted names are walked as a tree of characters, with a row of distances: ranges of names that share a beginning are the
nodes, and a node whose row holds no distance within reach is left with all its names.  Distances count insertions,
deletions, changes, and swaps of neighbours (restricted Damerau-Levenshtein), by character.  On a million names this is
3 to 70 times as fast as rapidfuzz, and the names stay memory-mapped.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgqa_core.linking.fold import Folded, is_unspaced
from kgqa_core.linking.mentions import MentionDictionary
from kgqa_core.linking.words import FUNCTION_WORDS, usualness

Array = NDArray[Any]
_jit: Any = njit(nogil=True, cache=True, error_model="numpy")


@_jit
def _width(lead_byte: int) -> int:
    """Bytes of the character that begins with this byte."""
    if lead_byte < 0x80:
        return 1
    if lead_byte < 0xE0:
        return 2
    return 3 if lead_byte < 0xF0 else 4


@_jit
def _code(blob: Array, place: int, width: int) -> Any:
    """Code point of the character at a place."""
    lead_byte = np.int64(blob[place])
    if width == 1:
        return lead_byte
    code = lead_byte & (0xFF >> (width + 1))
    for k in range(1, width):
        code = (code << 6) | (np.int64(blob[place + k]) & 0x3F)
    return code


@_jit
def _beyond(blob: Array, offsets: Array, low: int, high: int, depth: int, width: int) -> int:
    """First name after `low` whose character at `depth` is another one."""
    begin = np.int64(offsets[low]) + depth
    one, other = low + 1, high
    while one < other:
        middle = (one + other) // 2
        start, end = np.int64(offsets[middle]) + depth, np.int64(offsets[middle + 1])
        same: Any = end - start >= width
        if same:
            for k in range(width):
                if blob[start + k] != blob[begin + k]:
                    same = False
                    break
        if same:
            one = middle + 1
        else:
            other = middle
    return one


@_jit
def near(blob: Array, offsets: Array, text: Array, errors: int, most: int) -> Array:
    """(name, distance) of the names within `errors` of a text, int64 [found, 2], in their order, `most` at most.

    text: code points, int64.
    """
    size = text.shape[0]
    levels = size + errors + 2
    rows = np.zeros((levels, size + 1), dtype=np.int64)
    low, high = np.zeros(levels, dtype=np.int64), np.zeros(levels, dtype=np.int64)
    depth, code = np.zeros(levels, dtype=np.int64), np.zeros(levels, dtype=np.int64)
    result = np.empty((most, 2), dtype=np.int64)
    count = 0
    rows[0] = np.arange(size + 1)
    high[0] = offsets.shape[0] - 1
    level = 0
    while level >= 0 and count < most:
        if low[level] >= high[level]:
            level -= 1
            continue
        first = low[level]
        begin = np.int64(offsets[first])
        if np.int64(offsets[first + 1]) - begin == depth[level]:
            if level > 0 and rows[level, size] <= errors:
                result[count, 0], result[count, 1] = first, rows[level, size]
                count += 1
            low[level] += 1
            continue
        width = _width(np.int64(blob[begin + depth[level]]))
        sign = _code(blob, begin + depth[level], width)
        after = _beyond(blob, offsets, first, high[level], depth[level], width)
        low[level] = after
        if level + 1 >= levels:
            continue
        below = level + 1
        rows[below, 0] = below
        least = below
        for k in range(1, size + 1):
            cost = 0 if text[k - 1] == sign else 1
            best = min(rows[level, k] + 1, rows[below, k - 1] + 1, rows[level, k - 1] + cost)
            if k > 1 and level > 0 and text[k - 1] == code[level] and text[k - 2] == sign:
                best = min(best, rows[level - 1, k - 2] + 1)
            rows[below, k] = best
            least = min(least, best)
        if least <= errors:
            low[below], high[below] = first, after
            depth[below] = depth[level] + width
            code[below] = sign
            level = below
    return result[:count]


SHORTEST = {1: 5, 2: 9}
"""Characters that a name needs for so many errors; those of unspaced scripts count double."""
WORDS, SIGNS = 5, 12
"""Longest stretches that are looked at, in words and in characters of unspaced scripts."""
MOST_NAMES = 32
"""Most names returned for one stretch."""


def near_names(
    folded: Folded, covered: Sequence[tuple[int, int]], mentions: MentionDictionary, typos: int
) -> list[tuple[int, int, int, int]]:
    """(first atom, last atom, name, errors) of names within `typos` insertions, deletions, changes or swaps.

    Only stretches are looked at that touch no covered place (start, end of the text; in order, apart) and hold a word
    that is unknown: neither a word of grammar nor a usual one.  The nearest names of a stretch are returned, all at the
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
    results: list[tuple[int, int, int, int]] = []
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
            results += [(first, last, name, errors) for name, errors in near]
    return results


def nearest(stretch: str, mentions: MentionDictionary, typos: int) -> list[tuple[int, int]]:
    """(name, errors) of the names at the least distance from a folded text that is in 1..typos; none if it is one."""
    codes = np.array([ord(sign) for sign in stretch], dtype=np.int64)
    for errors in range(1, typos + 1):
        rows = near(mentions.names.blob, mentions.names.offsets, codes, errors, MOST_NAMES)
        if len(rows):
            least = int(rows[:, 1].min())
            return [] if least == 0 else [(name, least) for name, distance in rows.tolist() if distance == least]
    return []


def _unspaced(text: str) -> bool:
    return is_unspaced(text[0])
