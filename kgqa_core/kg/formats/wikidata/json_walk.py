"""The compiled reader of Wikidata's JSON: lines of usual shape are walked byte by byte into columns of integers.

Nothing is guessed: a line that holds anything unusual (a lexeme, an escape in a key, a name that occurs twice, a value
that cannot be read, a number of unusual length) is undone as a whole and left to the Python reader, which gives the
same rows for every line that this one accepts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kgqa_core.kg.formats.wikidata.json_names import (
    ALIAS,
    DESCRIPTION,
    ENTITIES,
    FILTERED,
    IGNORED,
    LABEL,
    LINES,
    QUALIFIERS,
    ROWS,
    SIDE,
    name_code,
    new_key,
    new_stamp,
    same_text,
)
from kgqa_core.kg.formats.wikidata.json_scan import (
    CLOSE,
    CLOSE_LIST,
    COMMA,
    LF,
    OPEN,
    OPEN_LIST,
    QUOTE,
    blank,
    first_item,
    first_member,
    following,
    jit,
    names,
    plain_member,
    skip,
    string,
    unescape,
    which,
)
from kgqa_core.kg.formats.wikidata.json_terms import read_snak
from kgqa_core.kg.intrinsics import pointers

_TEXT = names("language", "value")


@jit
def _text(t: Any, at: int, key: int, key_length: int, code: int, predicate: int) -> int:
    """A text, `{"language": …, "value": …}`, as a statement; key: of its map, with its code."""
    buffer = t.buffer
    at = first_member(buffer, at)
    start: Any = np.int64(-1)
    end, language, seen = start, start, 0
    while at >= 0:
        stop, value = plain_member(buffer, at)
        if value < 0:
            return -1
        part = which(buffer, at + 1, stop - at - 1, _TEXT)
        if part < 0:
            at = skip(buffer, value)
        else:
            if seen & (1 << part) or buffer[value] != QUOTE:
                return -1
            seen |= 1 << part
            stop = string(buffer, value + 1)
            if stop == -1 or (stop < 0 and part == 0):
                return -1
            at = (stop if stop >= 0 else -2 - stop) + 1
            if part == 1:
                start, end = value + 1, stop
            elif stop - value - 1 == key_length and same_text(buffer, value + 1, key, key_length):
                language = code
            else:
                language = name_code(t, buffer, value + 1, stop - value - 1)
        if at < 0:
            return -1
        at = following(buffer, at, CLOSE)
    if at == -1 or seen != 3 or language < 0 or t.wanted[language] < 0:
        return -1
    if t.wanted[language] == 0:
        t.count[FILTERED] += 1
        return -2 - at
    row = t.count[ROWS]
    if end >= 0:
        t.start[row] = start
        t.length[row] = end - start
    else:
        first = t.count[SIDE]
        t.count[SIDE] = unescape(buffer, start, -2 - end, t.side, first)
        t.start[row] = -1 - first
        t.length[row] = t.count[SIDE] - first
    t.predicate[row] = predicate
    t.kind[row] = 1
    t.datatype[row] = language
    t.detail[row] = -1
    t.rank[row] = 0
    t.count[ROWS] = row + 1
    return -2 - at


@jit
def _qualifiers(t: Any, at: int, row: int) -> int:
    buffer = t.buffer
    at = first_member(buffer, at)
    stamp = new_stamp(t)
    while at >= 0:
        key = at + 1
        end, value = plain_member(buffer, at)
        if value < 0:
            return -1
        code = new_key(t, key, end - key, stamp)
        if code < 0:
            return -1
        at = first_item(buffer, value)
        while at >= 0:
            at = read_snak(t, at, key, end - key, code)
            if at < 0:
                return -1
            n = t.count[QUALIFIERS]
            t.q_row[n] = row
            t.q_predicate[n] = t.snak[0]
            t.q_start[n] = t.snak[1]
            t.q_length[n] = t.snak[2]
            t.q_kind[n] = t.snak[3]
            t.q_datatype[n] = t.snak[4]
            t.q_detail[n] = t.snak[5]
            t.count[QUALIFIERS] = n + 1
            at = following(buffer, at, CLOSE_LIST)
        if at == -1:
            return -1
        at = following(buffer, -2 - at, CLOSE)
    return -2 - at


_CLAIM, _RANKS = names("mainsnak", "rank", "qualifiers"), names("normal", "preferred", "deprecated")


@jit
def _claim(t: Any, at: int, key: int, key_length: int, code: int) -> int:
    buffer = t.buffer
    at = first_member(buffer, at)
    seen, rank, row = 0, 0, t.count[ROWS]
    while at >= 0:
        end, value = plain_member(buffer, at)
        if value < 0:
            return -1
        part = which(buffer, at + 1, end - at - 1, _CLAIM)
        if part >= 0:
            if seen & (1 << part):
                return -1
            seen |= 1 << part
        if part == 0:
            at = read_snak(t, value, key, key_length, code)
            if at < 0:
                return -1
            t.predicate[row] = t.snak[0]
            t.start[row] = t.snak[1]
            t.length[row] = t.snak[2]
            t.kind[row] = t.snak[3]
            t.datatype[row] = t.snak[4]
            t.detail[row] = t.snak[5]
        elif part == 1:
            end = string(buffer, value + 1) if buffer[value] == QUOTE else -1
            rank = which(buffer, value + 1, end - value - 1, _RANKS)
            if rank < 0:
                return -1
            rank = rank if rank < 2 else -1
            at = end + 1
        elif part == 2:
            at = _qualifiers(t, value, row)
        else:
            at = skip(buffer, value)
        if at < 0:
            return -1
        at = following(buffer, at, CLOSE)
    if at == -1 or not seen & 1:
        return -1
    t.rank[row] = rank
    t.count[ROWS] = row + 1
    return -2 - at


@jit
def _map(t: Any, at: int, predicate: int) -> int:
    """Labels, descriptions or aliases, which have a predicate, or claims by property, which have none (0)."""
    buffer = t.buffer
    at = first_member(buffer, at)
    stamp = new_stamp(t)
    while at >= 0:
        key = at + 1
        end, value = plain_member(buffer, at)
        if value < 0:
            return -1
        code = new_key(t, key, end - key, stamp)
        if code < 0:
            return -1
        if predicate == 0 or predicate == ALIAS:
            at = first_item(buffer, value)
            while at >= 0:
                if predicate == 0:
                    at = _claim(t, at, key, end - key, code)
                else:
                    at = _text(t, at, key, end - key, code, predicate)
                if at < 0:
                    return -1
                at = following(buffer, at, CLOSE_LIST)
            at = -2 - at
        else:
            at = _text(t, value, key, end - key, code, predicate)
        if at < 0:
            return -1
        at = following(buffer, at, CLOSE)
    return -2 - at


_LABELS, _ALIASES, _DESCRIPTIONS, _CLAIMS, _STATEMENTS, _KEY, _OTHER = 1, 2, 4, 8, 16, 32, 64
_PARTS = names(
    "labels", "aliases", "descriptions", "claims", "statements", "id", "ns", "type", "title", "pageid", "modified",
    "datatype", "sitelinks", "lastrevid",
)  # fmt: skip
"""Members of an entity: those of the bits above, and others that have no meaning here."""


@jit
def _entity(t: Any, at: int) -> int:
    """An entity with members that it usually has, and no others."""
    buffer = t.buffer
    at = first_member(buffer, at)
    seen, subject, subject_length = 0, np.int64(-1), np.int64(0)
    while at >= 0:
        end, value = plain_member(buffer, at)
        number = which(buffer, at + 1, end - at - 1, _PARTS) if value >= 0 else -1
        part = 1 << min(number, 6) if number >= 0 else 0
        if part == 0 or seen & part & (_OTHER - 1):
            return -1
        seen |= part
        if part <= _DESCRIPTIONS:
            predicate = np.int64(LABEL if part == _LABELS else ALIAS if part == _ALIASES else DESCRIPTION)
            at = _map(t, value, predicate)
        elif part <= _STATEMENTS:
            at = _map(t, value, np.int64(0))
        elif part == _KEY:
            subject = value + 1
            end = string(buffer, subject) if buffer[value] == QUOTE else -1
            if end <= subject:
                return -1
            subject_length = end - subject
            at = end + 1
        else:
            at = skip(buffer, value)
        if at < 0:
            return -1
        at = following(buffer, at, CLOSE)
    if at == -1 or subject < 0:
        return -1
    n = t.count[ENTITIES]
    t.entity_start[n] = subject
    t.entity_length[n] = subject_length
    t.count[ENTITIES] = n + 1
    return -2 - at


@jit
def walk(tables: Any, size: int, left: Any) -> int:
    """Reads lines of so many bytes in all; gives the number of those left to the Python reader.

    left: of each such line its start, its end and its number among all lines.
    """
    t = pointers(tables)
    buffer = t.buffer
    start, line, result = 0, 0, 0
    while start < size:
        at = blank(buffer, start)
        if buffer[at] != OPEN:
            if buffer[at] == OPEN_LIST or buffer[at] == CLOSE_LIST:
                at = blank(buffer, at + 1)
            good = buffer[at] == LF
            if good:
                t.count[IGNORED] += 1
        else:
            rows, qualifiers, side = t.count[ROWS], t.count[QUALIFIERS], t.count[SIDE]
            filtered, entities = t.count[FILTERED], t.count[ENTITIES]
            at = _entity(t, at)
            if at >= 0:
                at = blank(buffer, at)
                if buffer[at] == COMMA:
                    at = blank(buffer, at + 1)
            good = at >= 0 and buffer[at] == LF
            if good:
                for row in range(rows, t.count[ROWS]):
                    t.entity[row] = entities
            else:
                t.count[ROWS], t.count[QUALIFIERS], t.count[SIDE] = rows, qualifiers, side
                t.count[FILTERED], t.count[ENTITIES] = filtered, entities
        if not good:
            at = start
            while buffer[at] != LF:
                at += 1
            left[result, 0] = start
            left[result, 1] = at
            left[result, 2] = line
            result += 1
        start = at + 1
        line += 1
    t.count[LINES] = line
    return result
