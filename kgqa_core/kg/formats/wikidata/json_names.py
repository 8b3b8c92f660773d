"""Tables of a walk through Wikidata's JSON, and the codes of the names in it.

Names of properties, languages and units become codes of a table that lasts over the pieces of a file; other text
stays where it is in the buffer, or is written into `side` where it had escapes or is a computed form.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kgqa_core.kg.formats.wikidata.json_scan import PAD, jit, masked
from kgqa_core.kg.formats.wikidata.json_values import EARTH, GREGORIAN, JULIAN, STRINGS
from kgqa_core.kg.intrinsics import pointer, pointers
from kgqa_core.kg.vocabulary import WIKIDATA_ENTITY

ROWS, QUALIFIERS, SIDE, CODES, STAMP, FILTERED, IGNORED, ENTITIES, LINES, WANTED = range(10)
"""Indexes of `Tables.count`; at WANTED stands the number of languages to keep, -1 for all."""

LABEL, ALIAS, DESCRIPTION = -1, -2, -3
"""Codes of predicates that are no property."""

SEEDS = (*STRINGS, GREGORIAN, JULIAN, EARTH, "1")
"""Texts whose codes are their indexes here."""

DATATYPES = len(STRINGS)
"""Codes below this are names of datatypes."""

GREGORIAN_CODE, JULIAN_CODE, EARTH_CODE, ONE_CODE = range(DATATYPES, DATATYPES + 4)

DT_NONE, DT_STRING, DT_FIRST = -1, -2, -3
"""Codes of datatypes that are no language; DT_FIRST is that of the first of SEEDS, the next ones follow downwards."""

DT_DECIMAL, DT_TIME, DT_POINT, DT_SOME, DT_NO = range(DT_FIRST - DATATYPES, DT_FIRST - DATATYPES - 5, -1)

MAX_CODES = 1 << 15
MAX_NAME = 250
_SLOTS = 1 << 16
_NAMES = 1 << 21

_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)
_SLOT = np.uint64(_SLOTS - 1)
_PREFIX = np.frombuffer(WIKIDATA_ENTITY.encode(), np.uint8)
_SECURE = np.frombuffer(b"https://www.wikidata.org/entity/", np.uint8)


class Tables(NamedTuple):
    """What a walk reads and fills.  Starts of texts count from 0 in `buffer`, from -1 downwards in `side`.

    names: of each code, from names_at: `@`, the name in lower case, the name.  skipped: bytes of a name before its
    key.  wanted: whether the graph keeps the language, -1 when not ASCII.  stamps: of the last map with this key.
    """

    buffer: Any
    side: Any
    count: Any
    names: Any
    names_at: Any
    slots: Any
    stamps: Any
    wanted: Any
    skipped: Any
    languages: Any
    languages_at: Any
    value_start: Any
    value_length: Any
    value_kind: Any
    snak: Any
    entity_start: Any
    entity_length: Any
    entity: Any
    predicate: Any
    start: Any
    length: Any
    kind: Any
    datatype: Any
    detail: Any
    rank: Any
    q_row: Any
    q_predicate: Any
    q_start: Any
    q_length: Any
    q_kind: Any
    q_datatype: Any
    q_detail: Any


def new_tables(size: int, languages: list[str] | None) -> Tables:
    """Tables for pieces of up to `size` bytes; languages: those wanted, in lower case, all when None."""
    from kgqa_core.kg.formats.wikidata.json_forms import FIELDS

    rows, lines = size // 24 + 16, size // 8 + 16  # no text, claim or qualifier is shorter, and no entity
    encoded = [name.encode() for name in languages or ()]
    wide, narrow, small = np.int64, np.int32, np.int8
    result = Tables(
        buffer=np.frombuffer(b"\n" * PAD, np.uint8),
        side=np.empty(0, np.uint8),
        count=np.zeros(10, wide),
        names=np.empty(_NAMES, np.uint8),
        names_at=np.zeros(MAX_CODES + 1, narrow),
        slots=np.full(_SLOTS, -1, narrow),
        stamps=np.zeros(MAX_CODES, wide),
        wanted=np.zeros(MAX_CODES, small),
        skipped=np.zeros(MAX_CODES, small),
        languages=np.frombuffer(b"".join(encoded) + b"\n", np.uint8),
        languages_at=np.cumsum([0, *map(len, encoded)]),
        value_start=np.zeros(FIELDS, wide),
        value_length=np.zeros(FIELDS, wide),
        value_kind=np.zeros(FIELDS, small),
        snak=np.zeros(6, wide),
        entity_start=np.empty(lines, wide),
        entity_length=np.empty(lines, narrow),
        entity=np.empty(rows, narrow),
        predicate=np.empty(rows, narrow),
        start=np.empty(rows, wide),
        length=np.empty(rows, narrow),
        kind=np.empty(rows, small),
        datatype=np.empty(rows, narrow),
        detail=np.empty(rows, narrow),
        rank=np.empty(rows, small),
        q_row=np.empty(rows, wide),
        q_predicate=np.empty(rows, narrow),
        q_start=np.empty(rows, wide),
        q_length=np.empty(rows, narrow),
        q_kind=np.empty(rows, small),
        q_datatype=np.empty(rows, narrow),
        q_detail=np.empty(rows, narrow),
    )
    result.count[WANTED] = -1 if languages is None else len(languages)
    _seed(result, np.frombuffer("".join(SEEDS).encode() + b"\n" * PAD, np.uint8), np.cumsum([0, *map(len, SEEDS)]))
    return result


def filled(tables: Tables, data: bytes) -> Tables:
    """The tables over other lines, emptied but for their names."""
    tables.count[[ROWS, QUALIFIERS, SIDE, FILTERED, IGNORED, ENTITIES, LINES]] = 0
    return tables._replace(buffer=np.frombuffer(data, np.uint8), side=np.empty(len(data) + 256, np.uint8))


def fits(tables: Tables, size: int) -> bool:
    """Whether lines of so many bytes find room, and names too."""
    return len(tables.entity) >= size // 24 + 16 and int(tables.count[CODES]) < MAX_CODES // 2


@jit
def _seed(t: Any, seeds: Any, bounds: Any) -> None:
    p, text = pointers(t), pointer(seeds)
    for i in range(len(bounds) - 1):
        name_code(p, text, bounds[i], bounds[i + 1] - bounds[i])


@jit
def _starts(buffer: Any, at: int, length: int, prefix: Any) -> bool:
    same = length > len(prefix)
    for i in range(len(prefix) if same else 0):
        same = same and buffer[at + i] == prefix[i]
    return same


@jit
def _wanted(t: Any, at: int, length: int) -> int:
    """Whether a name in lower case is a language to keep: 1, 0; -1 when folding it is not simple."""
    for i in range(length):
        if t.names[at + i] >= 128:
            return -1
    if t.count[WANTED] < 0:
        return 1
    for language in range(t.count[WANTED]):
        first = t.languages_at[language]
        if t.languages_at[language + 1] - first == length:
            same = True
            for i in range(length):
                same = same and t.names[at + i] == t.languages[first + i]
            if same:
                return 1
    return 0


@jit
def name_code(t: Any, array: Any, start: int, length: int) -> int:
    """The code of a name; -1 when there is no room for it."""
    if length == 0 or length > MAX_NAME:
        return -1
    h = np.uint64(length)
    at = 0
    while at < length:
        h = (h ^ masked(array, start + at, length - at)) * _MIX
        h ^= h >> _SHIFT
        at += 8
    slot = np.int64(h & _SLOT)
    while True:
        code = t.slots[slot]
        if code < 0:
            break
        first = t.names_at[code] + 1 + length
        if t.names_at[code + 1] - first == length:
            at = 0
            while at < length and masked(array, start + at, length - at) == masked(t.names, first + at, length - at):
                at += 8
            if at >= length:
                return code
        slot = (slot + 1) & (_SLOTS - 1)
    code = t.count[CODES]
    first = t.names_at[code]
    if code >= MAX_CODES - 1 or first + 2 * length + 1 + PAD > _NAMES:
        return -1
    t.names[first] = 64
    for i in range(length):
        c = array[start + i]
        t.names[first + 1 + length + i] = c
        t.names[first + 1 + i] = c + 32 if 65 <= c <= 90 else c
    t.names_at[code + 1] = first + 2 * length + 1
    t.slots[slot] = code
    t.wanted[code] = _wanted(t, first + 1, length)
    at = first + 1 + length
    t.skipped[code] = 0
    if _starts(t.names, at, length, _PREFIX):
        t.skipped[code] = len(_PREFIX)
    elif _starts(t.names, at, length, _SECURE):
        t.skipped[code] = len(_SECURE)
    t.count[CODES] = code + 1
    return code


@jit
def same_text(buffer: Any, a: int, b: int, length: int) -> bool:
    """Whether two texts of this length are one."""
    at = 0
    while at < length:
        if masked(buffer, a + at, length - at) != masked(buffer, b + at, length - at):
            return False
        at += 8
    return True


@jit
def new_key(t: Any, start: int, length: int, stamp: int) -> int:
    """The code of a key, which must not have occurred under this stamp; else -1."""
    code = name_code(t, t.buffer, start, length)
    if code < 0 or t.stamps[code] == stamp:
        return -1
    t.stamps[code] = stamp
    return code


@jit
def new_stamp(t: Any) -> int:
    """A stamp for the keys of one map."""
    t.count[STAMP] += 1
    return t.count[STAMP]
