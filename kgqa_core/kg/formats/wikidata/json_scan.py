"""JSON over bytes for compiled code: strings, numbers and whole values, checked as strictly as a JSON parser does.

Positions count from a `pointer` to bytes that end with at least 16 line feeds, so that nothing is read past the end; a
line feed is no white space here: a value ends on its line.  Every function gives a position, or -1 where the text is
no JSON or of a shape that is left to the Python reader (numbers of great length, deep nesting).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgqa_core.kg.formats.ntriples_kernels import put_character
from kgqa_core.kg.intrinsics import lowest_bit, word

jit: Any = njit(nogil=True, cache=True, error_model="numpy")

PAD = 16
"""Line feeds at the end of a buffer."""

QUOTE, BACKSLASH, COMMA, COLON, MINUS, LF = 34, 92, 44, 58, 45, 10
OPEN, CLOSE, OPEN_LIST, CLOSE_LIST = 123, 125, 91, 93

_ONES = np.uint64(0x0101010101010101)
_HIGH = np.uint64(0x8080808080808080)
_QUOTES = np.uint64(0x2222222222222222)
_BACKSLASHES = np.uint64(0x5C5C5C5C5C5C5C5C)
_SPACES = np.uint64(0x2020202020202020)
_FULL = np.uint64(0xFFFFFFFFFFFFFFFF)
_EIGHT = np.uint64(8)
_BITS = np.uint64(64)

_SIMPLE = np.zeros(256, np.uint8)
for _name, _meaning in zip(b'"\\/bfnrt', b'"\\/\b\f\n\r\t', strict=True):
    _SIMPLE[_name] = _meaning

_HEX = np.full(256, -1, np.int32)
for _hex in (b"0123456789abcdef", b"0123456789ABCDEF"):
    for _value, _name in enumerate(_hex):
        _HEX[_name] = _value


def constant(text: str, at: int = 0) -> np.uint64:
    """Eight bytes of a text as `masked` gives them."""
    return np.uint64(int.from_bytes(text.encode()[at : at + 8], "little"))


@jit
def masked(buffer: Any, start: int, length: int) -> Any:
    """The first eight bytes of a text, or all of them followed by zeros; length is at least 1."""
    result = word(buffer, start)
    if length >= 8:
        return result
    return result & (_FULL >> (_BITS - _EIGHT * np.uint64(length)))


def names(*texts: str) -> NDArray[np.uint64]:
    """Texts of at most 24 bytes as `which` looks for them: [texts, 4], the length and three times eight bytes."""
    return np.array([(len(text), *(constant(text, at) for at in (0, 8, 16))) for text in texts], dtype=np.uint64)


@jit
def which(buffer: Any, start: int, length: int, texts: Any) -> int:
    """The row of `names` that a text equals; -1 for another."""
    if length < 1:
        return -1
    size, first = np.uint64(length), masked(buffer, start, length)
    for i in range(texts.shape[0]):
        if texts[i, 0] == size and texts[i, 1] == first:
            at = 8
            while at < length and masked(buffer, start + at, length - at) == texts[i, 1 + at // 8]:
                at += 8
            if at >= length:
                return i
    return -1


@jit
def blank(buffer: Any, at: int) -> int:
    """The next position that is no white space."""
    c = buffer[at]
    while c == 32 or c == 9 or c == 13:
        at += 1
        c = buffer[at]
    return at


@jit
def _hex4(buffer: Any, at: int) -> int:
    a, b, c, d = _HEX[buffer[at]], _HEX[buffer[at + 1]], _HEX[buffer[at + 2]], _HEX[buffer[at + 3]]
    if (a | b | c | d) < 0:
        return -1
    return (a << 12) | (b << 8) | (c << 4) | d


@jit
def string(buffer: Any, at: int) -> int:
    """The closing quote of a string whose text begins here; -2 minus it if there are escapes; -1 if it is bad."""
    escaped = False
    while True:
        w = word(buffer, at)
        a = w ^ _QUOTES
        b = w ^ _BACKSLASHES
        hit = (((a - _ONES) & ~a) | ((b - _ONES) & ~b) | ((w - _SPACES) & ~w)) & _HIGH
        if hit == 0:
            at += 8
            continue
        bits: Any = np.int64(lowest_bit(hit))
        at += bits >> 3
        c = buffer[at]
        if c == QUOTE:
            return -2 - at if escaped else at
        if c != BACKSLASH:
            return -1
        escaped = True
        if buffer[at + 1] != 117:
            if _SIMPLE[buffer[at + 1]] == 0:
                return -1
            at += 2
            continue
        code = _hex4(buffer, at + 2)
        if code < 0:
            return -1
        at += 6
        if 0xD800 <= code < 0xE000:
            if code >= 0xDC00 or buffer[at] != BACKSLASH or buffer[at + 1] != 117:
                return -1
            low = _hex4(buffer, at + 2)
            if low < 0xDC00 or low >= 0xE000:
                return -1
            at += 6


@jit
def unescape(buffer: Any, start: int, end: int, out: Any, to: int) -> int:
    """Writes the text of a string that `string` found good, decoded, into `out` from `to`; gives its end there."""
    at = start
    while at < end:
        c = buffer[at]
        if c != BACKSLASH:
            out[to] = c
            to += 1
            at += 1
            continue
        if buffer[at + 1] != 117:
            out[to] = _SIMPLE[buffer[at + 1]]
            to += 1
            at += 2
            continue
        code = _hex4(buffer, at + 2)
        at += 6
        if 0xD800 <= code < 0xDC00:
            code = 0x10000 + ((code - 0xD800) << 10) + (_hex4(buffer, at + 2) - 0xDC00)
            at += 6
        to = put_character(out, to, code)
    return to


@jit
def _digits(buffer: Any, at: int) -> int:
    while 48 <= buffer[at] <= 57:
        at += 1
    return at


@jit
def number(buffer: Any, at: int) -> int:
    """The end of a number that begins here; -1 also for one longer than 40 bytes or with an exponent over 99."""
    start = at
    if buffer[at] == MINUS:
        at += 1
    first = at
    at = _digits(buffer, at)
    if at == first or (buffer[first] == 48 and at > first + 1):
        return -1
    if buffer[at] == 46:
        first = at + 1
        at = _digits(buffer, first)
        if at == first:
            return -1
    if buffer[at] == 101 or buffer[at] == 69:
        at += 1
        if buffer[at] == 43 or buffer[at] == MINUS:
            at += 1
        first = at
        at = _digits(buffer, at)
        if at == first or at > first + 2:
            return -1
    return at if at - start <= 40 else -1


@jit
def _plain(buffer: Any, at: int) -> int:
    """The end of a string, number or name that begins here."""
    c = buffer[at]
    if c == QUOTE:
        end = string(buffer, at + 1)
        if end == -1:
            return -1
        return (end if end >= 0 else -2 - end) + 1
    if c == MINUS or 48 <= c <= 57:
        return number(buffer, at)
    if c == 116 and buffer[at + 1] == 114 and buffer[at + 2] == 117 and buffer[at + 3] == 101:
        return at + 4
    if c == 110 and buffer[at + 1] == 117 and buffer[at + 2] == 108 and buffer[at + 3] == 108:
        return at + 4
    if c == 102 and buffer[at + 1] == 97 and buffer[at + 2] == 108 and buffer[at + 3] == 115 and buffer[at + 4] == 101:
        return at + 5
    return -1


@jit
def after_name(buffer: Any, end: int) -> int:
    """The value of a member whose name `string` ended there; -1 also after -1."""
    if end == -1:
        return -1
    at = blank(buffer, (end if end >= 0 else -2 - end) + 1)
    if buffer[at] != COLON:
        return -1
    return blank(buffer, at + 1)


@jit
def plain_member(buffer: Any, at: int) -> Any:
    """The closing quote of the name of a member that begins here, and its value; -1 for both if it has escapes."""
    end = string(buffer, at + 1) if buffer[at] == QUOTE else -1
    return (end, after_name(buffer, end)) if end >= 0 else (-1, -1)


@jit
def first_member(buffer: Any, at: int) -> int:
    """Where the first member of an object begins; -2 minus its end if it is empty, as is `[]` for it; else -1."""
    if buffer[at] != OPEN:
        at = first_item(buffer, at)
        return at if at < 0 else -1
    at = blank(buffer, at + 1)
    return at if buffer[at] != CLOSE else -2 - (at + 1)


@jit
def first_item(buffer: Any, at: int) -> int:
    """Where the first item of a list begins; -2 minus its end if it is empty; else -1."""
    if buffer[at] != OPEN_LIST:
        return -1
    at = blank(buffer, at + 1)
    return at if buffer[at] != CLOSE_LIST else -2 - (at + 1)


@jit
def following(buffer: Any, at: int, close: int) -> int:
    """After a member or an item: where the next begins; -2 minus the end when it was the last; else -1.

    So a loop over members goes on while this is not negative, and `-2 - at` is the end, or -1, behind it.
    """
    at = blank(buffer, at)
    c = buffer[at]
    if c == COMMA:
        return blank(buffer, at + 1)
    if c == close:
        return -2 - (at + 1)
    return -1


@jit
def member(buffer: Any, at: int) -> int:
    """The value of a member whose name begins here, with its quote."""
    if buffer[at] != QUOTE:
        return -1
    return after_name(buffer, string(buffer, at + 1))


@jit
def skip(buffer: Any, at: int) -> int:
    """The end of a value that begins here."""
    depth = 0
    lists = np.uint64(0)  # the lowest bit tells whether the innermost open value is a list
    unit = np.uint64(1)
    while True:
        c = buffer[at]
        if c == OPEN or c == OPEN_LIST:  # noqa: SIM109
            listed = c == OPEN_LIST
            at = blank(buffer, at + 1)
            if buffer[at] != (CLOSE_LIST if listed else CLOSE):
                if depth == 60:
                    return -1
                depth += 1
                lists = (lists << unit) | (unit if listed else np.uint64(0))
                if not listed:
                    at = member(buffer, at)
                    if at < 0:
                        return -1
                continue
            at += 1
        else:
            at = _plain(buffer, at)
            if at < 0:
                return -1
        while True:  # after a value
            if depth == 0:
                return at
            at = blank(buffer, at)
            c = buffer[at]
            listed = (lists & unit) == unit
            if c == COMMA:
                at = blank(buffer, at + 1)
                if not listed:
                    at = member(buffer, at)
                    if at < 0:
                        return -1
                break
            if c != (CLOSE_LIST if listed else CLOSE):
                return -1
            at += 1
            depth -= 1
            lists = lists >> unit
