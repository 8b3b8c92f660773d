"""The compiled search for names near a text: sorted names are walked as a tree of characters, with a row of distances.

Ranges of names that share a beginning are the nodes.  A node whose row holds no distance within reach is left with all
its names.  Distances count insertions, deletions, changes, and swaps of neighbours (restricted Damerau-Levenshtein), by
character.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[Any]
_jit: Any = njit(nogil=True, cache=True, error_model="numpy")


@_jit
def _width(lead: int) -> int:
    """Bytes of the character that begins with this byte."""
    if lead < 0x80:
        return 1
    if lead < 0xE0:
        return 2
    return 3 if lead < 0xF0 else 4


@_jit
def _code(blob: Array, place: int, width: int) -> Any:
    """Code point of the character at a place."""
    lead = np.int64(blob[place])
    if width == 1:
        return lead
    code = lead & (0xFF >> (width + 1))
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
    found = np.empty((most, 2), dtype=np.int64)
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
                found[count, 0], found[count, 1] = first, rows[level, size]
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
    return found[:count]
