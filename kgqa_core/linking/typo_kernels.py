"""The compiled walk through sorted names for those near a text; loaded where a question has a word that is unknown."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[Any]
FAR = 1 << 20
"""A distance beyond all reach."""
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
def near(
    blob: Array, offsets: Array, low_name: int, high_name: int, text: Array, ends: Array, errors: Array, most: int
) -> Array:
    """(end, name, distance) of the names near a beginning of a text; int64 [found, 3], in the order of names.

    low_name, high_name: the names that are looked at.  text: code points, int64.  ends: where the beginnings end,
    ascending.  errors: allowed in each of them.  most: rows at most.
    """
    size, furthest = text.shape[0], 0
    for index in range(errors.shape[0]):
        furthest = max(furthest, errors[index])
    levels = size + furthest + 2
    rows = np.zeros((levels, size + 1), dtype=np.int64)
    low, high = np.zeros(levels, dtype=np.int64), np.zeros(levels, dtype=np.int64)
    depth, code = np.zeros(levels, dtype=np.int64), np.zeros(levels, dtype=np.int64)
    result = np.empty((most, 3), dtype=np.int64)
    count = 0
    for k in range(size + 1):  # an assignment of rows costs four seconds more to compile
        rows[0, k] = k
    low[0], high[0] = low_name, high_name
    level = 0
    while level >= 0 and count < most:
        if low[level] >= high[level]:
            level -= 1
            continue
        first = low[level]
        begin = np.int64(offsets[first])
        if np.int64(offsets[first + 1]) - begin == depth[level]:
            for index in range(ends.shape[0]):
                if level == 0 or abs(ends[index] - level) > furthest or count == most:
                    continue
                distance = rows[level, ends[index]]
                if distance <= errors[index]:
                    result[count, 0], result[count, 1], result[count, 2] = ends[index], first, distance
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
        left, right = max(1, below - furthest), min(size, below + furthest)
        if left > 1:
            rows[below, left - 1] = FAR
        for k in range(left, right + 1):
            cost = 0 if text[k - 1] == sign else 1
            above = rows[level, k] if k <= level + furthest else FAR
            best = min(above + 1, rows[below, k - 1] + 1, rows[level, k - 1] + cost)
            if k > 1 and level > 0 and text[k - 1] == code[level] and text[k - 2] == sign:
                best = min(best, rows[level - 1, k - 2] + 1)
            rows[below, k] = best
            least = min(least, best)
        if least <= furthest:
            low[below], high[below] = first, after
            depth[below] = depth[level] + width
            code[below] = sign
            level = below
    return result[:count]
