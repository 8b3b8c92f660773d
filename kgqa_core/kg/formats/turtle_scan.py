"""A compiled scanner of Turtle and TriG: it knows where tokens and statements begin and end, not what they mean.

`scan` is resumable: its state carries over from one piece of a file to the next.  It is used where the parser met a
fault: to find the beginning of the statement at fault, and its end.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[Any]
_jit: Any = njit(nogil=True, cache=True, error_model="numpy", boundscheck=False)

MODE, QUOTE, DEPTH, START, TOKEN, DOT, OPENED, CLOSED, FIELDS = range(9)
"""Fields of the state.

MODE: one of the modes below; QUOTE: the quote of the string; DEPTH: open braces of TriG.  In the file: START of the
statement, TOKEN that is open, DOT that may end the statement, the last string from OPENED to CLOSED.
"""

PLAIN, NAME, NAME_DOT, NUMBER, NUMBER_DOT, POINT, TAG, COMMENT, IRI, ESCAPE = range(10)
QUOTE1, QUOTE2, SHORT, SHORT_ESCAPE, LONG, LONG1, LONG2, LONG_ESCAPE, BROKEN = range(10, 19)
"""Modes.  NAME_DOT, NUMBER_DOT, POINT: after a dot that ends the statement unless it belongs to what follows.  QUOTE1,
QUOTE2: after one or two quotes.  BROKEN: a string or an IRI that cannot be one, at TOKEN."""

PENDING = (NAME_DOT, NUMBER_DOT, POINT)
INSIDE = (COMMENT, IRI, QUOTE1, SHORT, SHORT_ESCAPE, LONG, LONG1, LONG2, LONG_ESCAPE, BROKEN)
IN_LONG = (LONG, LONG1, LONG2, LONG_ESCAPE)

_NAMES, _DIGITS, _NOT_IRI = 1, 2, 4


def _classes() -> Array:
    table = np.zeros(256, dtype=np.uint8)
    for byte in range(256):
        c = chr(byte)
        table[byte] = (
            _NAMES * (byte >= 128 or c.isalnum() or c in "_-:%")
            | _DIGITS * (byte < 128 and c.isdigit())
            | _NOT_IRI * (byte <= 32 or c in '<"{}|^`')
        )
    return table


CLASSES = _classes()


def new_state(start: int = 0, depth: int = 0) -> Array:
    """The state at the beginning of a statement."""
    state = np.zeros(FIELDS, dtype=np.int64)
    state[START], state[DEPTH], state[OPENED], state[CLOSED] = start, depth, -1, -1
    return state


@_jit
def scan(data: Array, base: int, at: int, stop: int, state: Array, graphs: bool, find: bool) -> int:
    r"""Scans data[at:stop], whose first byte is byte `base` of the file, and keeps `state`; an index of data, or -1.

    find: ends behind the first statement that ends, and gives that position in the file; quotes and brackets without a
    partner count as any other character.  Otherwise it stops at such a one, BROKEN, and gives -1 always.
    """
    mode, quote = state[MODE], state[QUOTE]
    result = -1
    # Every mode either takes bytes or changes the mode without taking one, so that the same byte is looked at again in
    # the next mode; a mode that needs the next byte to decide (a dot, a second quote) waits for it, across pieces too.
    i = at
    while i < stop:
        c = data[i]
        kind = CLASSES[c]
        if mode == PLAIN:
            if c == 46:
                state[DOT] = base + i
                mode = POINT
            elif c == 60 or c == 34 or c == 39 or c == 35 or c == 64 or c == 92 or kind & _NAMES or c == 43:
                state[TOKEN] = base + i
                if c == 60:
                    mode = IRI
                elif c == 34 or c == 39:
                    quote = c
                    mode = QUOTE1
                elif c == 35:
                    mode = COMMENT
                elif c == 64:
                    mode = TAG
                elif c == 92:
                    mode = ESCAPE
                elif kind & _DIGITS or c == 43 or c == 45:
                    mode = NUMBER
                else:
                    mode = NAME
            elif graphs and c == 123:
                state[DEPTH] = 1 if find else state[DEPTH] + 1
                state[START] = base + i + 1
                if find:
                    result = base + i + 1
                    break
            elif graphs and c == 125 and state[DEPTH] > 0:
                state[DEPTH] -= 1
                state[START] = base + i + 1
                if find:
                    result = base + i + 1
                    break
            i += 1
        elif mode == COMMENT:
            while i < stop and data[i] != 10 and data[i] != 13:
                i += 1
            if i < stop:
                mode = PLAIN
        elif mode == NAME:
            while i < stop and CLASSES[data[i]] & _NAMES:
                i += 1
            if i < stop:
                if data[i] == 46:
                    state[DOT] = base + i
                    mode = NAME_DOT
                    i += 1
                elif data[i] == 92:
                    mode = ESCAPE
                    i += 1
                else:
                    mode = PLAIN
        elif mode == NUMBER:
            if kind & _DIGITS or c == 69 or c == 101 or c == 43 or c == 45:
                i += 1
            elif c == 46:
                state[DOT] = base + i
                mode = NUMBER_DOT
                i += 1
            else:
                mode = NAME if kind & _NAMES else PLAIN
        elif mode in (NAME_DOT, NUMBER_DOT, POINT):
            # `ex:a.b` and `1.5` go on after their dot; behind a term that cannot go on it ends the statement.
            if mode == NAME_DOT and c == 46:
                i += 1
            elif mode == NAME_DOT and (kind & _NAMES or c == 92):
                mode = NAME
            elif mode != NAME_DOT and (kind & _DIGITS or (mode == NUMBER_DOT and (c == 69 or c == 101))):
                mode = NUMBER
            else:
                mode = PLAIN
                state[START] = state[DOT] + 1
                if find:
                    result = state[DOT] + 1
                    break
        elif mode == TAG:
            if kind & _NAMES and c != 58 and c != 37:
                i += 1
            else:
                mode = PLAIN
        elif mode == ESCAPE:
            mode = NAME
            i += 1
        elif mode == IRI:
            while i < stop and data[i] != 62 and not CLASSES[data[i]] & _NOT_IRI:
                i += 1
            if i < stop:
                if data[i] == 62:
                    mode = PLAIN
                    i += 1
                elif data[i] == 60 and state[TOKEN] == base + i - 1:
                    mode = PLAIN  # `<<` of RDF 1.2
                    i += 1
                elif not find:
                    mode = BROKEN
                    break
                else:  # a broken IRI: on behind its `>` if that is near, else behind its `<`
                    k = i
                    while k < stop and data[k] != 62 and data[k] != 60 and data[k] != 34 and data[k] != 10:
                        k += 1
                    i = k + 1 if k < stop and data[k] == 62 else max(state[TOKEN] - base + 1, 0)
                    mode = PLAIN
        elif mode == QUOTE1:
            if c == quote:
                mode = QUOTE2
                i += 1
            else:
                mode = SHORT
        elif mode == QUOTE2:
            if c == quote:
                mode = LONG
                i += 1
            else:
                mode = PLAIN
                state[OPENED], state[CLOSED] = state[TOKEN], base + i
        elif mode == SHORT:
            while i < stop and data[i] != quote and data[i] != 92 and data[i] != 10 and data[i] != 13:
                i += 1
            if i < stop:
                if data[i] == quote:
                    mode = PLAIN
                    i += 1
                    state[OPENED], state[CLOSED] = state[TOKEN], base + i
                elif data[i] == 92:
                    mode = SHORT_ESCAPE
                    i += 1
                elif not find:
                    mode = BROKEN
                    break
                else:  # a quote without a partner on its line counts as any other character: on behind it
                    i = max(state[TOKEN] - base + 1, 0)
                    mode = PLAIN
        elif mode == SHORT_ESCAPE:
            mode = SHORT
            if c != 10 and c != 13:
                i += 1
        elif mode == LONG:
            while i < stop and data[i] != quote and data[i] != 92:
                i += 1
            if i < stop:
                mode = LONG1 if data[i] == quote else LONG_ESCAPE
                i += 1
        elif mode == LONG_ESCAPE:
            mode = LONG
            i += 1
        elif mode == LONG1:
            if c == quote:
                mode = LONG2
                i += 1
            else:
                mode = LONG
        elif mode == LONG2:
            if c == quote:
                mode = PLAIN
                i += 1
                state[OPENED], state[CLOSED] = state[TOKEN], base + i
            else:
                mode = LONG
        else:  # BROKEN
            break
    state[MODE], state[QUOTE] = mode, quote
    return result
