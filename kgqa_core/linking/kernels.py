"""The compiled walks through sorted names: for those in each name of a graph, and for those near a mistyped text."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[Any]
_jit: Any = njit(nogil=True, cache=True, error_model="numpy")
FAR = 1 << 20
"""A distance beyond all reach."""


@_jit
def _bound(blob: Array, offsets: Array, low: int, high: int, text: Array, start: int, stop: int, after: bool) -> int:
    """First name in [low, high) that is not before text[start:stop]; with `after`, that does not begin with it either.

    Names are sorted by their bytes.
    """
    size = stop - start
    while low < high:
        middle = (low + high) // 2
        begin, end = np.int64(offsets[middle]), np.int64(offsets[middle + 1])
        length: Any = min(end - begin, size)
        order = 0
        for index in range(length):
            left, other = blob[begin + index], text[start + index]
            if left != other:
                order = -1 if left < other else 1
                break
        if order == 0:
            order = -1 if end - begin < size or after else 1
        if order < 0:
            low = middle + 1
        else:
            high = middle
    return low


@_jit
def spot(blob: Array, offsets: Array, text: Array, begin: Array, end: Array) -> Array:
    """(first atom, last atom, name) of every row of atoms that is a name; int64 [found, 3].

    From each atom on, the range of names that begin with what was read narrows; the walk stops when it is empty.
    """
    names = offsets.shape[0] - 1
    atoms = begin.shape[0]
    result = np.empty((max(16, 2 * atoms), 3), dtype=np.int64)
    count = 0
    for first in range(atoms):
        low, high = 0, names
        for last in range(first, atoms):
            low = _bound(blob, offsets, low, high, text, begin[first], end[last], False)
            high = _bound(blob, offsets, low, high, text, begin[first], end[last], True)
            if low >= high:
                break
            if np.int64(offsets[low + 1]) - np.int64(offsets[low]) == end[last] - begin[first]:
                if count == result.shape[0]:
                    grown = np.empty((2 * count, 3), dtype=np.int64)
                    for row in range(count):  # a copy of slices costs four seconds more to compile
                        grown[row, 0], grown[row, 1], grown[row, 2] = result[row, 0], result[row, 1], result[row, 2]
                    result = grown
                result[count, 0], result[count, 1], result[count, 2] = first, last, low
                count += 1
    return result[:count]


@_jit
def _unspaced(code: int) -> bool:
    """Whether a code point belongs to a script without spaces; `fold.is_unspaced`, compiled."""
    return (
        0x0E00 <= code <= 0x0E4F
        or 0x0E80 <= code <= 0x0EDF
        or 0x1000 <= code <= 0x103F
        or 0x1050 <= code <= 0x109F
        or 0x1780 <= code <= 0x17D3
        or (0x2E80 <= code <= 0x2FDF)
        or 0x3005 <= code <= 0x3007
        or (0x3040 <= code <= 0x30FF and code != 0x30FB)
        or 0x31F0 <= code <= 0x31FF
        or 0x3400 <= code <= 0x4DBF
        or 0x4E00 <= code <= 0x9FFF
        or 0xF900 <= code <= 0xFAFF
        or 0x20000 <= code <= 0x323AF
    )


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
def _atoms(text: Array, begin: Array, end: Array) -> int:
    """Where the atoms of a folded name lie; how many there are."""
    count, index, size = 0, 0, text.shape[0]
    word = False
    while index < size:
        lead_byte = np.int64(text[index])
        width = _width(lead_byte)
        code = _code(text, index, width)
        if lead_byte == 0x20:
            word = False
        elif _unspaced(code):
            begin[count], end[count] = index, index + width
            count += 1
            word = False
        elif word:
            end[count - 1] = index + width
        else:
            begin[count], end[count] = index, index + width
            count += 1
            word = True
        index += width
    return count


@_jit
def count_within(blob: Array, offsets: Array, whole: Array, every: int, out: Array) -> None:
    """Adds to `out` of each name how many other names it occurs in; every so many names are read and count so often.

    whole: bool [names]; only such names are read.
    """
    names = offsets.shape[0] - 1
    longest = 1
    for name in range(0, names, every):
        longest = max(longest, offsets[name + 1] - offsets[name])
    begin, end = np.empty(longest, dtype=np.int32), np.empty(longest, dtype=np.int32)
    for name in range(0, names, every):
        if not whole[name]:
            continue
        text = blob[offsets[name] : offsets[name + 1]]
        count = _atoms(text, begin, end)
        result = spot(blob, offsets, text, begin[:count], end[:count])
        for row in range(result.shape[0]):
            if result[row, 2] != name:
                out[result[row, 2]] += every


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
