"""The compiled loop that cuts N-Triples and N-Quads into terms, by bytes, with the whole grammar of 1.1.

No term goes beyond its line, and data end with a line end: no loop looks for the end of the data.  The kernels take
exactly the lines that the grammar and the readers' prose rules take (see `ntriples`); what they do not take is left as
it stood, for a slower look at the reason.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kgqa_core.kg.formats.ntriples_columns import DATATYPE, GRAPH, KIND, LINE, OBJECT, PREDICATE, SUBJECT

Array = NDArray[Any]
N: Any = np.int64
_jit: Any = njit(nogil=True, cache=True, error_model="numpy", boundscheck=False)

_IRI, _SCHEME, _ALPHA, _ALNUM, _START, _NAME, _TEXT, _HEX = 1, 2, 4, 8, 16, 32, 64, 128


def _classes() -> Array:
    table = np.zeros(256, dtype=np.uint8)
    for byte in range(256):
        c = chr(byte)
        alpha = byte < 128 and c.isalpha()
        alnum = byte < 128 and c.isalnum()
        table[byte] = (
            _IRI * (byte > 0x20 and c not in '<>"{}|^`\\')
            | _SCHEME * (alnum or c in "+.-")
            | _ALPHA * alpha
            | _ALNUM * alnum
            | _START * (alnum or c == "_")
            | _NAME * (alnum or c in "_-")
            | _TEXT * (c not in '"\\\n\r')
            | _HEX * (c in "0123456789abcdefABCDEF")
        )
    return table


CLASSES = _classes()

CONTROLS = np.arange(256, dtype=np.uint8)
"""What the letter after a backslash stands for; quotes and the backslash stand for themselves."""
for _name, _byte in zip(b"tbnrf", b"\t\b\n\r\f", strict=True):
    CONTROLS[_name] = _byte

# PN_CHARS_BASE beyond ASCII, and what PN_CHARS adds.
_BASE = np.array(
    [
        0xC0, 0xD6, 0xD8, 0xF6, 0xF8, 0x2FF, 0x370, 0x37D, 0x37F, 0x1FFF, 0x200C, 0x200D, 0x2070, 0x218F, 0x2C00,
        0x2FEF, 0x3001, 0xD7FF, 0xF900, 0xFDCF, 0xFDF0, 0xFFFD, 0x10000, 0xEFFFF,
    ],
    dtype=np.int64,
)  # fmt: skip
_MORE = np.array([0xB7, 0xB7, 0x300, 0x36F, 0x203F, 0x2040], dtype=np.int64)


@_jit
def _code_point(data: Array, i: int) -> tuple[int, int]:
    """The character at i of valid UTF-8, and its length."""
    b = N(data[i])
    if b < 0x80:
        return b, 1
    if b < 0xE0:
        return ((b & 0x1F) << 6) | (N(data[i + 1]) & 0x3F), 2
    if b < 0xF0:
        return ((b & 0xF) << 12) | ((N(data[i + 1]) & 0x3F) << 6) | (N(data[i + 2]) & 0x3F), 3
    return (
        ((b & 7) << 18) | ((N(data[i + 1]) & 0x3F) << 12) | ((N(data[i + 2]) & 0x3F) << 6) | (N(data[i + 3]) & 0x3F)
    ), 4


@_jit
def _within(point: int, ranges: Array) -> bool:
    for k in range(0, ranges.shape[0], 2):  # noqa: SIM110 - compiled
        if ranges[k] <= point <= ranges[k + 1]:
            return True
    return False


@_jit
def _escape(data: Array, i: int) -> tuple[int, int]:
    r"""The character of the escape \u or \U whose backslash is at i, and its length; length 0 if it is none."""
    digits = 4 if data[i + 1] == 117 else 8 if data[i + 1] == 85 else 0
    if digits == 0:
        return 0, 0
    point = 0
    for k in range(i + 2, i + 2 + digits):
        c = N(data[k])
        if not CLASSES[c] & _HEX:
            return 0, 0
        point = point * 16 + (c - 48 if c < 58 else (c | 32) - 87)
    if point > 0x10FFFF or 0xD800 <= point <= 0xDFFF:
        return 0, 0
    return point, 2 + digits


@_jit
def _skip(data: Array, i: int) -> int:
    while data[i] == 32 or data[i] == 9:
        i += 1
    return i


@_jit
def _iri(data: Array, i: int) -> tuple[int, bool]:
    """Where the `>` of the absolute IRI is whose first character is at i, -1 if there is none; has it escapes."""
    state = 0  # 0 at the beginning, 1 in the scheme, 2 after it
    escaped = False
    if CLASSES[data[i]] & _ALPHA:
        i += 1
        state = 1
        while CLASSES[data[i]] & _SCHEME:
            i += 1
        if data[i] == 58:
            i += 1
            state = 2
    while True:
        if state == 2:
            while CLASSES[data[i]] & _IRI:
                i += 1
        c = N(data[i])
        if c == 62:
            return (i if state == 2 else -1), escaped
        length = 1
        if c == 92:
            c, length = _escape(data, i)
            if length == 0:
                return -1, True
            escaped = True
        if c < 128 and not CLASSES[c] & _IRI:
            return -1, escaped
        if state < 2:
            if c >= 128 or not CLASSES[c] & (_SCHEME if state else _ALPHA):
                if not (state == 1 and c == 58):
                    return -1, escaped
                state = 2
            else:
                state = 1
        i += length


@_jit
def _blank(data: Array, i: int) -> int:
    """Where the blank node ends whose `_` is at i; -1 if it is none."""
    if data[i + 1] != 58:
        return -1
    i += 2
    point, length = _code_point(data, i)
    if not (CLASSES[point] & _START if point < 128 else _within(point, _BASE)):
        return -1
    i += length
    end = i  # dots at the end are not part of the label
    while True:
        b = data[i]
        if b < 128:
            if CLASSES[b] & _NAME:
                i += 1
                end = i
            elif b == 46:
                i += 1
            else:
                break
        else:
            point, length = _code_point(data, i)
            if not (_within(point, _BASE) or _within(point, _MORE)):
                break
            i += length
            end = i
    return end


@_jit
def _string(data: Array, i: int) -> tuple[int, bool]:
    """Where the closing quote of the string is whose first character is at i, -1 if there is none; has it escapes."""
    escaped = False
    while True:
        while CLASSES[data[i]] & _TEXT:
            i += 1
        c = data[i]
        if c == 34:
            return i, escaped
        if c != 92:
            return -1, escaped
        escaped = True
        n = data[i + 1]
        if n == 116 or n == 98 or n == 110 or n == 114 or n == 102 or n == 34 or n == 39 or n == 92:
            i += 2
        else:
            _, length = _escape(data, i)
            if length == 0:
                return -1, escaped
            i += length


@_jit
def _language(data: Array, i: int) -> int:
    """Where the language tag ends whose first letter is at i; -1 if it is none."""
    begin = i
    while CLASSES[data[i]] & _ALPHA:
        i += 1
    if i == begin:
        return -1
    while data[i] == 45 and CLASSES[data[i + 1]] & _ALNUM:
        i += 1
        while CLASSES[data[i]] & _ALNUM:
            i += 1
    return i


@_jit
def put_character(data: Array, at: int, point: int) -> int:
    """Writes a character, by its code point, as UTF-8; where it ends."""
    if point < 0x80:
        data[at] = point
        return at + 1
    if point < 0x800:
        data[at] = 0xC0 | (point >> 6)
        data[at + 1] = 0x80 | (point & 0x3F)
        return at + 2
    if point < 0x10000:
        data[at] = 0xE0 | (point >> 12)
        data[at + 1] = 0x80 | ((point >> 6) & 0x3F)
        data[at + 2] = 0x80 | (point & 0x3F)
        return at + 3
    data[at] = 0xF0 | (point >> 18)
    data[at + 1] = 0x80 | ((point >> 12) & 0x3F)
    data[at + 2] = 0x80 | ((point >> 6) & 0x3F)
    data[at + 3] = 0x80 | (point & 0x3F)
    return at + 4


@_jit
def _decode(data: Array, begin: int, stop: int) -> int:
    """Replaces the escapes in data[begin:stop], which are valid, by what they stand for; the new end."""
    out = begin
    i = begin
    while i < stop:
        if data[i] != 92:
            data[out] = data[i]
            out += 1
            i += 1
            continue
        n = data[i + 1]
        if n == 117 or n == 85:
            point, length = _escape(data, i)
            i += length
            out = put_character(data, out, point)
        else:
            i += 2
            data[out] = (
                9 if n == 116 else 8 if n == 98 else 10 if n == 110 else 13 if n == 114 else 12 if n == 102 else n
            )
            out += 1
    return out


@_jit
def _strip(data: Array, begin: int, length: int, prefixes: Array, ends: Array) -> int:
    """Length of the longest of the prefixes that an IRI begins with and goes beyond; 0 for none."""
    best = 0
    start = 0
    for p in range(ends.shape[0]):
        size = ends[p] - start
        if best < size < length:
            k = 0
            while k < size and data[begin + k] == prefixes[start + k]:
                k += 1
            if k == size:
                best = size
        start = ends[p]
    return best


@_jit
def _line_end(data: Array, i: int) -> int:
    while data[i] != 10 and data[i] != 13:
        i += 1
    return i


@_jit
def _statement(data: Array, i: int, quads: bool, row: Array, escapes: Array) -> int:
    """Reads the statement at i into a row; where its line ends, or -1.  escapes[k]: whether term k has some."""
    # Terms are read in place: functions that are handed the column of a term take half as long again.
    escapes[:] = False
    if data[i] == 60:
        end, escapes[0] = _iri(data, i + 1)
        if end < 0:
            return -1
        row[SUBJECT], row[SUBJECT + 1] = i + 1, end - i - 1
        i = end + 1
    elif data[i] == 95:
        end = _blank(data, i)
        if end < 0:
            return -1
        row[SUBJECT], row[SUBJECT + 1] = i, end - i
        i = end
    else:
        return -1
    i = _skip(data, i)
    if data[i] != 60:
        return -1
    end, escapes[1] = _iri(data, i + 1)
    if end < 0:
        return -1
    row[PREDICATE], row[PREDICATE + 1] = i + 1, end - i - 1
    i = _skip(data, end + 1)
    row[DATATYPE], row[DATATYPE + 1], row[KIND], row[GRAPH], row[GRAPH + 1] = 0, 0, 0, 0, 0
    if data[i] == 60:
        end, escapes[2] = _iri(data, i + 1)
        if end < 0:
            return -1
        row[OBJECT], row[OBJECT + 1] = i + 1, end - i - 1
        i = end + 1
    elif data[i] == 95:
        end = _blank(data, i)
        if end < 0:
            return -1
        row[OBJECT], row[OBJECT + 1] = i, end - i
        i = end
    elif data[i] == 34:
        end, escapes[2] = _string(data, i + 1)
        if end < 0:
            return -1
        row[OBJECT], row[OBJECT + 1], row[KIND] = i + 1, end - i - 1, 1
        i = _skip(data, end + 1)
        if data[i] == 64:
            end = _language(data, i + 1)
            if end < 0:
                return -1
            row[DATATYPE], row[DATATYPE + 1] = i, end - i
            i = end
        elif data[i] == 94 and data[i + 1] == 94:
            i = _skip(data, i + 2)
            if data[i] != 60:
                return -1
            end, escapes[3] = _iri(data, i + 1)
            if end < 0:
                return -1
            row[DATATYPE], row[DATATYPE + 1] = i + 1, end - i - 1
            i = end + 1
    else:
        return -1
    i = _skip(data, i)
    if quads and data[i] != 46:
        if data[i] == 60:
            end, escapes[4] = _iri(data, i + 1)
            if end < 0:
                return -1
            row[GRAPH], row[GRAPH + 1] = i + 1, end - i - 1
            i = end + 1
        elif data[i] == 95:
            end = _blank(data, i)
            if end < 0:
                return -1
            row[GRAPH], row[GRAPH + 1] = i, end - i
            i = end
        else:
            return -1
        i = _skip(data, i)
    if data[i] != 46:
        return -1
    i = _skip(data, i + 1)
    if data[i] == 35:
        return _line_end(data, i)
    return i if data[i] == 10 or data[i] == 13 else -1


@_jit
def line_ends(data: Array, size: int) -> int:
    r"""How many bytes of data[:size] are `\n` or `\r`."""
    count = 0
    for i in range(size):
        count += (data[i] == 10) | (data[i] == 13)
    return count


@_jit
def _lower(data: Array, begin: int, length: int) -> None:
    for k in range(begin, begin + length):
        if 65 <= data[k] <= 90:
            data[k] |= 32


@_jit
def _settle(
    data: Array, row: Array, escapes: Array, terms: Array, term_ends: Array, predicates: Array, predicate_ends: Array
) -> None:
    """Decodes, folds and shortens the terms of a row where they stand."""
    for k in range(5):
        if escapes[k]:
            column = 2 * k if k < 4 else GRAPH
            row[column + 1] = _decode(data, row[column], row[column] + row[column + 1]) - row[column]
    if row[DATATYPE + 1] and data[row[DATATYPE]] == 64:
        _lower(data, row[DATATYPE], row[DATATYPE + 1])
    # A prefix goes by moving the beginning of the span: nothing is copied.
    if term_ends.shape[0]:
        cutoff = _strip(data, row[SUBJECT], row[SUBJECT + 1], terms, term_ends)
        row[SUBJECT] += cutoff
        row[SUBJECT + 1] -= cutoff
        if row[KIND] == 0:
            cutoff = _strip(data, row[OBJECT], row[OBJECT + 1], terms, term_ends)
            row[OBJECT] += cutoff
            row[OBJECT + 1] -= cutoff
    if predicate_ends.shape[0]:
        cutoff = _strip(data, row[PREDICATE], row[PREDICATE + 1], predicates, predicate_ends)
        row[PREDICATE] += cutoff
        row[PREDICATE + 1] -= cutoff


@_jit
def cut(
    data: Array, size: int, quads: bool, terms: Array, term_ends: Array, predicates: Array, predicate_ends: Array,
    rows: Array, bad: Array,
) -> tuple[int, int, int]:  # fmt: skip
    r"""Cuts the lines in data[:size], valid UTF-8 that ends with `\n`; (rows, bad lines, blank or comment lines).

    rows: spans of the terms, escapes decoded and language tags folded where they stand, and prefixes removed: `terms`
    of subjects and objects, `predicates` of predicates (bytes on end, and where each ends).  bad: (line, begin, end) of
    lines that are no statement, untouched.  Lines count from 0 by `\n`; a lone `\r` ends a statement too.
    """
    count, bads, blanks, line, begin = 0, 0, 0, 0, 0
    escapes = np.zeros(5, dtype=np.bool_)
    while begin < size:
        i = _skip(data, begin)
        row = rows[count]
        if data[i] == 10 or data[i] == 13 or data[i] == 35:
            stop = _line_end(data, i)
            blanks += 1
        else:
            stop = _statement(data, i, quads, row, escapes)
            if stop >= 0:
                _settle(data, row, escapes, terms, term_ends, predicates, predicate_ends)
                row[LINE] = line
                count += 1
            else:
                stop = _line_end(data, begin)
                bad[bads, 0], bad[bads, 1], bad[bads, 2] = line, begin, stop
                bads += 1
        if data[stop] == 13 and data[stop + 1] == 10:
            stop += 1
        if data[stop] == 10:
            line += 1
        begin = stop + 1
    return count, bads, blanks


@_jit
def gather(data: Array, begins: Array, offsets: Array, text: Array) -> None:
    """Copies spans of the data one behind the other: span i goes to text[offsets[i]:offsets[i + 1]]."""
    for i in range(begins.shape[0]):
        at = begins[i]
        for k in range(offsets[i], offsets[i + 1]):
            text[k] = data[at]
            at += 1
