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
    constant,
    first_member,
    following,
    jit,
    masked,
    number,
    plain_member,
    skip,
    string,
    unescape,
)
from kgqa_core.kg.intrinsics import word

_K_ID, _K_LANGUAGE = constant("id"), constant("language")
_K_VALUE = constant("value")
_K_TYPE, _K_TIME, _K_TEXT, _K_UNIT = constant("type"), constant("time"), constant("text"), constant("unit")
_K_AMOUNT, _K_GLOBE, _K_LATITUDE = constant("amount"), constant("globe"), constant("latitude")
_K_LONGITUD, _K_PRECISIO, _K_CALENDAR = constant("longitude"), constant("precision"), constant("calendarmodel")
_K_ENTITY_T, _K_NUMERIC = constant("entity-type"), constant("numeric-id")
_K_ENTITY_TYPE_2, _K_NUMERIC_2, _K_MODEL = constant("ype"), constant("id"), constant("rmodel")


@jit
def _field(buffer: Any, key: int, length: int) -> int:
    """Which member of a value a name is; -1 for another."""
    w = masked(buffer, key, length)
    if length == 2:
        return ID if w == _K_ID else -1
    if length == 4:
        if w == _K_TIME:
            return TIME
        if w == _K_TEXT:
            return TEXT
        return UNIT if w == _K_UNIT else -1
    if length == 5:
        return GLOBE if w == _K_GLOBE else -1
    if length == 6:
        return AMOUNT if w == _K_AMOUNT else -1
    if length == 8:
        if w == _K_LANGUAGE:
            return LANGUAGE
        return LATITUDE if w == _K_LATITUDE else -1
    if length == 9:
        last = buffer[key + 8]
        if w == _K_LONGITUD and last == 101:
            return LONGITUDE
        return PRECISION if w == _K_PRECISIO and last == 110 else -1
    if length == 10:
        return NUMERIC if w == _K_NUMERIC and masked(buffer, key + 8, 2) == _K_NUMERIC_2 else -1
    if length == 11:
        return KIND if w == _K_ENTITY_T and masked(buffer, key + 8, 3) == _K_ENTITY_TYPE_2 else -1
    if length == 13:
        return CALENDAR if w == _K_CALENDAR and masked(buffer, key + 7, 6) == _K_MODEL else -1
    return -1


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
        field = _field(buffer, at + 1, end - at - 1) if end > at + 1 else -1
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
    size = t.value_length[KIND]
    w = masked(buffer, t.value_start[KIND], size) if size else np.uint64(0)
    to = t.count[SIDE]
    if size == 4 and w == _V_ITEM:
        t.side[to] = 81
    elif size == 8 and w == _V_PROPERTY:
        t.side[to] = 80
    else:
        return -1
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


_V_ITEM, _V_PROPERTY, _V_STRING, _V_QUANTITY = map(constant, ("item", "property", "string", "quantity"))
_V_WIKIBASE, _V_ENTITYID = constant("wikibase"), constant("entityid")
_V_MONOLING, _V_TEXT, _V_GLOBECOO, _V_RDINATE = map(constant, ("monoling", "ualtext", "globecoo", "rdinate"))


@jit
def _form(t: Any, key: int, length: int) -> int:
    """The term of the value that was noted, whose form has this name."""
    if length < 4:
        return -1
    w = masked(t.buffer, key, length)
    if length == 17:
        if w == _V_WIKIBASE and t.buffer[key + 8] == 45 and word(t.buffer, key + 9) == _V_ENTITYID:
            return _id(t)
    elif length == 4:
        if w == _K_TIME:
            return _time(t)
    elif length == 8:
        if w == _V_QUANTITY:
            return _quantity(t)
    elif length == 15:
        if w == _V_MONOLING and masked(t.buffer, key + 8, 7) == _V_TEXT:
            return _monolingual(t)
        if w == _V_GLOBECOO and masked(t.buffer, key + 8, 7) == _V_RDINATE:
            return _coordinate(t)
    return -1


_V_VALUE, _V_SOMEVALU, _V_NOVALUE = constant("value"), constant("somevalue"), constant("novalue")
_K_SNAKTYPE, _K_PROPERTY, _K_DATATYPE = constant("snaktype"), constant("property"), constant("datatype")
_K_DATAVALU = constant("datavalue")


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
        length = end - at - 1
        w = masked(buffer, at + 1, length) if length else np.uint64(0)
        if length == 5 and w == _K_VALUE:
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
        elif length == 4 and w == _K_TYPE:
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
    w = _V_SOMEVALU if kind == 1 else _V_NOVALUE
    for i in range(8):
        t.side[first + i] = np.uint8((w >> np.uint64(8 * i)) & np.uint64(255))
    t.side[first + 8] = 101
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
        length = end - at - 1
        w = masked(buffer, at + 1, length) if length else np.uint64(0)
        if length == 8 and (w == _K_SNAKTYPE or w == _K_PROPERTY or w == _K_DATATYPE):  # noqa: SIM109
            bit = 1 if w == _K_SNAKTYPE else 2 if w == _K_PROPERTY else 4
            if seen & bit or buffer[value] != QUOTE:
                return -1
            seen |= bit
            end = string(buffer, value + 1)
            if end < 0:
                return -1
            size = end - value - 1
            if bit == 1:
                # Names longer than a word are told by their first eight bytes and the rest.
                v = masked(buffer, value + 1, size) if size else np.uint64(0)
                if size == 5 and v == _V_VALUE:
                    kind = 0
                elif size == 9 and v == _V_SOMEVALU and buffer[value + 9] == 101:
                    kind = 1
                elif size == 7 and v == _V_NOVALUE:
                    kind = 2
                else:
                    return -1
            elif bit == 2:
                # Nearly always the property that the claim stands under, whose code is known.
                if size == key_length and same_text(buffer, value + 1, key, size):
                    t.snak[0] = code
                else:
                    t.snak[0] = name_code(t, buffer, value + 1, size)
            else:
                datatype, datatype_length = value + 1, size
            at = end + 1
        elif length == 9 and w == _K_DATAVALU and buffer[at + 9] == 101:
            if seen & 8 or buffer[value] != OPEN:
                return -1
            seen |= 8
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
    if form < 0:
        return -1
    if valued == 1:
        return -2 - at if _form(t, form, form_length) > 0 else -1
    if valued != 2 or form_length != 6 or masked(buffer, form, 6) != _V_STRING:
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
