"""Times and coordinates written as Wikidata's RDF export writes them, in compiled code.

The same as `json_values.time_term` and `point`, for the usual inputs; -1 for those that are left to it: years
of more than 15 digits, numbers with an exponent or close to a tie in rounding, and what cannot be read.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kgqa_core.kg.formats.wikidata.json_scan import MINUS, jit
from kgqa_core.kg.formats.wikidata.json_values import days_of, gregorian

ID, KIND, NUMERIC, TEXT, LANGUAGE, AMOUNT, UNIT, TIME, PRECISION, CALENDAR, LATITUDE, LONGITUDE, GLOBE = range(13)
"""Members of values."""

FIELDS = 13

PLAIN, ESCAPED, NUMBER, NULL = 1, 2, 3, 4
"""What a member of a value is; 0 when it is absent."""

_gregorian, _days_of = jit(gregorian), jit(days_of)


@jit
def _two(buffer: Any, at: int) -> int:
    a: Any = np.int64(buffer[at]) - 48
    b: Any = np.int64(buffer[at + 1]) - 48
    return 10 * a + b if 0 <= a <= 9 and 0 <= b <= 9 else -1


@jit
def _write(value: int, width: int, out: Any, to: int) -> int:
    """A whole number of at least so many digits."""
    digits, rest = 1, value // 10
    while rest:
        digits += 1
        rest //= 10
    digits = max(digits, width)
    for i in range(digits):
        out[to + digits - 1 - i] = 48 + value % 10
        value //= 10
    return to + digits


@jit
def write_time(buffer: Any, start: int, length: int, precision: int, julian: bool, out: Any, to: int) -> int:
    """Writes a time; gives the end of what was written."""
    size = length - 17
    if size < 1 or size > 16 or (buffer[start] != 43 and buffer[start] != MINUS):
        return -1
    year: Any = np.int64(0)
    seen = 0
    for i in range(start + 1, start + 1 + size):
        digit = np.int64(buffer[i]) - 48
        if not 0 <= digit <= 9:
            return -1
        year = 10 * year + digit
        seen += year > 0
    at = start + 1 + size
    month, day = _two(buffer, at + 1), _two(buffer, at + 4)
    if seen > 15 or year == 0 or month < 0 or day < 0:
        return -1
    clock = at + 7
    if (
        buffer[at] != MINUS
        or buffer[at + 3] != MINUS
        or buffer[at + 6] != 84
        or _two(buffer, clock) < 0
        or buffer[clock + 2] != 58
        or _two(buffer, clock + 3) < 0
        or buffer[clock + 5] != 58
        or _two(buffer, clock + 6) < 0
        or buffer[clock + 8] != 90
    ):
        return -1
    month, day = min(12, max(1, month)), max(1, day)
    before = buffer[start] == MINUS
    moved = _gregorian(before, year, month, day) if julian and precision >= 11 else None
    if moved is not None:
        year, month, day = moved
        before = year < 0
        year = abs(year)
    else:
        if precision <= 9:
            month, day = 1, 1
        elif precision == 10:
            day = 1
        if day > 28:
            day = min(day, _days_of(1 - year if before else year, month))
        if before and precision >= 9:
            year -= 1
            before = year != 0
    if before:
        out[to] = MINUS
        to += 1
    to = _write(year, 4, out, to)
    out[to] = MINUS
    to = _write(month, 2, out, to + 1)
    out[to] = MINUS
    to = _write(day, 2, out, to + 1)
    out[to] = 84
    for i in range(9):
        out[to + 1 + i] = buffer[clock + i]
    return to + 10


@jit
def _degrees(buffer: Any, start: int, length: int, out: Any, to: int) -> int:
    at, end = start, start + length
    negative = buffer[at] == MINUS
    if negative:
        at += 1
    value: Any = np.int64(0)
    seen, decimals, pointed = 0, 0, False
    while at < end:
        c = np.int64(buffer[at])
        at += 1
        if c == 46:
            pointed = True
            continue
        if not 48 <= c <= 57 or seen == 17:
            return -1
        value = 10 * value + c - 48
        seen += value > 0
        decimals += pointed
    while decimals > 0 and value % 10 == 0:
        value //= 10
        decimals -= 1
    if value == 0:
        if negative:
            return -1
        out[to] = 48
        return to + 1
    digits, rest = 0, value
    while rest:
        digits += 1
        rest //= 10
    if digits > 14:
        drop = digits - 14
        if drop > decimals:
            return -1
        scale = 10 if drop == 1 else 100 if drop == 2 else 1000
        tail = value % scale * (1000 // scale)
        if 490 <= tail <= 510:
            return -1
        value = value // scale + (1 if tail > 500 else 0)
        decimals -= drop
        digits = 14
        while decimals > 0 and value % 10 == 0:
            value //= 10
            decimals -= 1
            digits -= 1
    if digits - decimals < -3:
        return -1
    if negative:
        out[to] = MINUS
        to += 1
    scale = 1
    for _ in range(decimals):
        scale *= 10
    to = _write(value // scale, 1, out, to)
    if decimals:
        out[to] = 46
        to = _write(value % scale, decimals, out, to + 1)
    return to


@jit
def write_point(
    buffer: Any, longitude: int, longitude_length: int, latitude: int, latitude_length: int, out: Any, to: int
) -> int:
    """Writes a point; gives the end of what was written."""
    out[to] = 80
    out[to + 1] = 111
    out[to + 2] = 105
    out[to + 3] = 110
    out[to + 4] = 116
    out[to + 5] = 40
    to = _degrees(buffer, longitude, longitude_length, out, to + 6)
    if to < 0:
        return -1
    out[to] = 32
    to = _degrees(buffer, latitude, latitude_length, out, to + 1)
    if to < 0:
        return -1
    out[to] = 41
    return to + 1
