"""Values and snaks of Wikidata's JSON as terms, in compiled code.

A term is five integers in `Tables.snak`: start and length of the object's text, kind, and the codes of datatype and
detail; the first is the code of the property.  Every function gives a position, or -1 for what is left to the
Python reader.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kgqa_core.kg.formats.wikidata.json_forms import (
    AMOUNT,
    CALENDAR,
    ESCAPED,
    FIELDS,
    GLOBE,
    ID,
    KIND,
    LANGUAGE,
    LATITUDE,
    LONGITUDE,
    NULL,
    NUMBER,
    NUMERIC,
    PLAIN,
    PRECISION,
    TEXT,
    TIME,
    UNIT,
    write_point,
    write_time,
)
from kgqa_core.kg.formats.wikidata.json_names import (
    DATATYPES,
    DT_DECIMAL,
    DT_FIRST,
    DT_NO,
    DT_POINT,
    DT_SOME,
    DT_STRING,
    DT_TIME,
    EARTH_CODE,
    GREGORIAN_CODE,
    JULIAN_CODE,
    ONE_CODE,
    SIDE,
    name_code,
    same_text,
)
from kgqa_core.kg.formats.wikidata.json_scan import (
    CLOSE,
    OPEN,
    QUOTE,
    first_member,
    following,
    jit,
    names,
    number,
    plain_member,
    skip,
    string,
    unescape,
    which,
)

_MEMBERS = names(
    "id", "entity-type", "numeric-id", "text", "language", "amount", "unit", "time", "precision", "calendarmodel",
    "latitude", "longitude", "globe",
)  # fmt: skip
"""Members of values, in the order of their numbers."""


@jit
def _value(t: Any, at: int) -> int:
    """An object that is a value: notes where its members stand."""
    buffer = t.buffer
    for i in range(FIELDS):
        t.value_kind[i] = 0
    at = first_member(buffer, at)
    while at >= 0:
        end, value = plain_member(buffer, at)
        if value < 0:
            return -1
        field = which(buffer, at + 1, end - at - 1, _MEMBERS)
        if field < 0:
            at = skip(buffer, value)
            if at < 0:
                return -1
        else:
            if t.value_kind[field] != 0:
                return -1
            c = buffer[value]
            if c == QUOTE:
                stop = string(buffer, value + 1)
                if stop == -1:
                    return -1
                t.value_kind[field] = PLAIN if stop >= 0 else ESCAPED
                stop = stop if stop >= 0 else -2 - stop
                t.value_start[field] = value + 1
                t.value_length[field] = stop - value - 1
                at = stop + 1
            elif c == 45 or 48 <= c <= 57:
                at = number(buffer, value)
                if at < 0:
                    return -1
                t.value_kind[field] = NUMBER
                t.value_start[field] = value
                t.value_length[field] = at - value
            elif c == 110:
                at = skip(buffer, value)
                if at < 0:
                    return -1
                t.value_kind[field] = NULL
            else:
                return -1
        at = following(buffer, at, CLOSE)
    return -2 - at


@jit
def _value_code(t: Any, field: int) -> int:
    """The code of a text in a value, with its escapes decoded."""
    start, length = t.value_start[field], t.value_length[field]
    if t.value_kind[field] == PLAIN:
        return name_code(t, t.buffer, start, length)
    if t.value_kind[field] != ESCAPED:
        return -1
    first = t.count[SIDE]
    end = unescape(t.buffer, start, start + length, t.side, first)
    return name_code(t, t.side, first, end - first)


@jit
def _put(t: Any, start: int, length: int, kind: int, datatype: int, detail: int) -> int:
    t.snak[1] = start
    t.snak[2] = length
    t.snak[3] = kind
    t.snak[4] = datatype
    t.snak[5] = detail
    return 1


@jit
def _aside(t: Any, end: int, datatype: int, detail: int) -> int:
    """The term that was written at the end of `side`."""
    first = t.count[SIDE]
    t.count[SIDE] = end
    return _put(t, -1 - first, end - first, 1, datatype, detail)


_KINDS = names("item", "property")


@jit
def _id(t: Any) -> int:
    buffer = t.buffer
    if t.value_kind[ID] == PLAIN and t.value_length[ID] > 0:
        return _put(t, t.value_start[ID], t.value_length[ID], 0, -1, -1)
    if t.value_kind[ID] != 0 or t.value_kind[KIND] != PLAIN or t.value_kind[NUMERIC] != NUMBER:
        return -1
    start, length = t.value_start[NUMERIC], t.value_length[NUMERIC]
    for i in range(start, start + length):
        if not 48 <= buffer[i] <= 57:
            return -1
    kind = which(buffer, t.value_start[KIND], t.value_length[KIND], _KINDS)
    if kind < 0:
        return -1
    to = t.count[SIDE]
    t.side[to] = 81 - kind
    for i in range(length):
        t.side[to + 1 + i] = buffer[start + i]
    t.count[SIDE] = to + 1 + length
    return _put(t, -1 - to, 1 + length, 0, -1, -1)


@jit
def _monolingual(t: Any) -> int:
    if t.value_kind[LANGUAGE] != PLAIN:
        return -1
    language = _value_code(t, LANGUAGE)
    if language < 0 or t.wanted[language] < 0:
        return -1
    start, length = t.value_start[TEXT], t.value_length[TEXT]
    if t.value_kind[TEXT] == PLAIN:
        return _put(t, start, length, 1, language, -1)
    if t.value_kind[TEXT] == ESCAPED:
        return _aside(t, unescape(t.buffer, start, start + length, t.side, t.count[SIDE]), language, -1)
    return -1


@jit
def _quantity(t: Any) -> int:
    if t.value_kind[AMOUNT] != PLAIN or t.value_length[AMOUNT] == 0:
        return -1
    unit: Any = np.int64(-1)
    if t.value_kind[UNIT] == PLAIN or t.value_kind[UNIT] == ESCAPED:
        if t.value_length[UNIT] > 0:
            unit = _value_code(t, UNIT)
            if unit < 0:
                return -1
            unit = -1 if unit == ONE_CODE else unit
    elif t.value_kind[UNIT] == NUMBER:
        return -1
    return _put(t, t.value_start[AMOUNT], t.value_length[AMOUNT], 1, DT_DECIMAL, unit)


@jit
def _time(t: Any) -> int:
    if t.value_kind[TIME] != PLAIN or t.value_kind[PRECISION] != NUMBER:
        return -1
    calendar = _value_code(t, CALENDAR)
    precision = np.int64(0)
    start = t.value_start[PRECISION]
    if calendar != GREGORIAN_CODE and calendar != JULIAN_CODE or t.value_length[PRECISION] > 2:
        return -1
    for i in range(start, start + t.value_length[PRECISION]):
        if not 48 <= t.buffer[i] <= 57:
            return -1
        precision = 10 * precision + t.buffer[i] - 48
    julian = calendar == JULIAN_CODE
    end = write_time(t.buffer, t.value_start[TIME], t.value_length[TIME], precision, julian, t.side, t.count[SIDE])
    if end < 0:
        return -1
    return _aside(t, end, DT_TIME, -2 - (2 * precision + (1 if julian else 0)))


@jit
def _coordinate(t: Any) -> int:
    if t.value_kind[LATITUDE] != NUMBER or t.value_kind[LONGITUDE] != NUMBER or t.value_kind[GLOBE] == NUMBER:
        return -1
    end = t.count[SIDE]
    if t.value_kind[GLOBE] == PLAIN or t.value_kind[GLOBE] == ESCAPED:
        globe = _value_code(t, GLOBE) if t.value_length[GLOBE] > 0 else EARTH_CODE
        if globe < 0:
            return -1
        if globe != EARTH_CODE:
            t.side[end] = 60
            end += 1
            for i in range((t.names_at[globe] + 1 + t.names_at[globe + 1]) // 2, t.names_at[globe + 1]):
                if t.names[i] == 62:
                    return -1
                t.side[end] = t.names[i]
                end += 1
            t.side[end] = 62
            t.side[end + 1] = 32
            end += 2
    end = write_point(
        t.buffer,
        t.value_start[LONGITUDE],
        t.value_length[LONGITUDE],
        t.value_start[LATITUDE],
        t.value_length[LATITUDE],
        t.side,
        end,
    )
    return _aside(t, end, DT_POINT, -1) if end >= 0 else -1


_FORMS = names("wikibase-entityid", "time", "quantity", "monolingualtext", "globecoordinate", "string")


@jit
def _form(t: Any, form: int) -> int:
    """The term of the value that was noted, of a form of `_FORMS`."""
    if form == 0:
        return _id(t)
    if form == 1:
        return _time(t)
    if form == 2:
        return _quantity(t)
    if form == 3:
        return _monolingual(t)
    return _coordinate(t) if form == 4 else -1


_SNAK = names("snaktype", "property", "datatype", "datavalue")
_DATA = names("value", "type")
_VALUED = names("value", "somevalue", "novalue")


@jit
def _data_value(t: Any, at: int) -> Any:
    """The end of a snak's `datavalue`, whether its value is an object (1) or a string (2), and the string's bounds; the
    name of its form and its length.
    """
    buffer = t.buffer
    valued = 0
    text, text_end = np.int64(-1), np.int64(-1)
    form, form_length = np.int64(-1), np.int64(0)
    at = first_member(buffer, at)
    while at >= 0:
        end, value = plain_member(buffer, at)
        if value < 0:
            at = -1
            break
        part = which(buffer, at + 1, end - at - 1, _DATA)
        if part == 0:
            if valued:
                at = -1
            elif buffer[value] == OPEN:
                valued = 1
                at = _value(t, value)
            elif buffer[value] == QUOTE:
                valued = 2
                text = value + 1
                text_end = string(buffer, text)
                at = -1 if text_end == -1 else (text_end if text_end >= 0 else -2 - text_end) + 1
            else:
                at = -1
        elif part == 1:
            if form >= 0 or buffer[value] != QUOTE:
                at = -1
            else:
                form = value + 1
                end = string(buffer, form)
                form_length = end - form
                at = end + 1 if end >= 0 else -1
        else:
            at = skip(buffer, value)
        if at < 0:
            break
        at = following(buffer, at, CLOSE)
    return -2 - at, valued, text, text_end, form, form_length


@jit
def _unknown(t: Any, kind: int) -> None:
    """The term of a value that is unknown (1) or that there is none of (2), whose text is written aside."""
    first = t.count[SIDE]
    for i in range(9):
        t.side[first + i] = np.uint8((_VALUED[kind, 1 + i // 8] >> np.uint64(8 * (i % 8))) & np.uint64(255))
    _aside(t, first + (9 if kind == 1 else 7), DT_SOME if kind == 1 else DT_NO, -1)


@jit
def read_snak(t: Any, at: int, key: int, key_length: int, code: int) -> int:
    """A snak as a term; key: its property where it names none, with its code."""
    buffer = t.buffer
    at = first_member(buffer, at)
    # Typed from the start, so that nothing that takes them is compiled for a literal first.
    kind, seen, valued = -1, 0, 0
    datatype, datatype_length = np.int64(-1), np.int64(0)
    form, form_length = np.int64(-1), np.int64(0)
    text, text_end = np.int64(-1), np.int64(-1)
    t.snak[0] = -1
    while at >= 0:
        end, value = plain_member(buffer, at)
        if value < 0:
            return -1
        part = which(buffer, at + 1, end - at - 1, _SNAK)
        if part >= 0:
            if seen & (1 << part) or buffer[value] != (OPEN if part == 3 else QUOTE):
                return -1
            seen |= 1 << part
        if 0 <= part < 3:
            end = string(buffer, value + 1)
            if end < 0:
                return -1
            size = end - value - 1
            if part == 0:
                kind = which(buffer, value + 1, size, _VALUED)
                if kind < 0:
                    return -1
            elif part == 1:
                # Nearly always the property that the claim stands under, whose code is known.
                if size == key_length and same_text(buffer, value + 1, key, size):
                    t.snak[0] = code
                else:
                    t.snak[0] = name_code(t, buffer, value + 1, size)
            else:
                datatype, datatype_length = value + 1, size
            at = end + 1
        elif part == 3:
            at, valued, text, text_end, form, form_length = _data_value(t, value)
        else:
            at = skip(buffer, value)
        if at < 0:
            return -1
        at = following(buffer, at, CLOSE)
    if at == -1 or t.snak[0] < 0 or kind < 0:
        return -1
    if kind > 0:
        _unknown(t, kind)
        return -2 - at
    kind = which(buffer, form, form_length, _FORMS) if form >= 0 else -1
    if valued == 1:
        return -2 - at if _form(t, kind) > 0 else -1
    if valued != 2 or kind != 5:
        return -1
    dt = DT_STRING
    if datatype_length > 0:
        name = name_code(t, buffer, datatype, datatype_length)
        if name < 0:
            return -1
        if name < DATATYPES:
            dt = DT_FIRST - name
    if text_end >= 0:
        _put(t, text, text_end - text, 1, dt, -1)
    else:
        _aside(t, unescape(buffer, text, -2 - text_end, t.side, t.count[SIDE]), dt, -1)
    return -2 - at
