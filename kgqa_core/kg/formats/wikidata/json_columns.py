"""A walk's integers as frames: no text is copied and no Python object made per statement.

A column of texts is an Arrow string view; long texts stay in the buffers of the walk.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from kgqa_core.kg.formats.wikidata import json_names as n
from kgqa_core.kg.formats.wikidata.json_entity import ALIAS, DESCRIPTION, LABEL
from kgqa_core.kg.formats.wikidata.json_scan import PAD, jit, masked
from kgqa_core.kg.formats.wikidata.json_values import DATE_TIME, DECIMAL, STRING, STRINGS, WIKIBASE, WKT
from kgqa_core.kg.intrinsics import pointer

_PREDICATES = [LABEL, ALIAS, DESCRIPTION]
_DATATYPES = [STRING, *STRINGS.values(), DECIMAL, DATE_TIME, WKT, WIKIBASE + "somevalue", WIKIBASE + "novalue"]
_DETAILS = [f"{precision} {name}" for precision in range(100) for name in ("gregorian", "julian")]
_FIXED = [*_PREDICATES, *_DATATYPES, *_DETAILS]
_FIXED_TEXT = np.frombuffer("".join(_FIXED).encode() + b"\n" * PAD, np.uint8)
_FIXED_AT = np.cumsum([0, *map(len, _FIXED)])
_FIRST_DATATYPE, _FIRST_DETAIL = len(_PREDICATES), len(_PREDICATES) + len(_DATATYPES)

_BUFFER, _SIDE, _NAMES, _CONSTANTS = range(4)

_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


@jit
def _view(views: Any, i: int, array: Any, at: int, length: int, buffer: int) -> None:
    """Arrow's view of a text as two integers: in itself up to 12 bytes, else in a buffer of the column."""
    first, second = np.uint64(0), np.uint64(0)
    if length > 0:
        first = masked(array, at, length)
    if length > 12:
        second = (np.uint64(at) << _HALF) | np.uint64(buffer)
    elif length > 8:
        second = (first >> _HALF) | (masked(array, at + 8, length - 8) << _HALF)
    else:
        second = first >> _HALF
    views[i, 0] = np.uint64(length) | ((first & _LOW) << _HALF)
    views[i, 1] = second


@jit
def _object_views(starts: Any, lengths: Any, near: Any, far: Any, views: Any) -> None:
    buffer, side = pointer(near), pointer(far)
    for i in range(len(starts)):
        if starts[i] < 0:
            _view(views, i, side, -1 - starts[i], np.int64(lengths[i]), _SIDE)
        else:
            _view(views, i, buffer, starts[i], np.int64(lengths[i]), _BUFFER)


@jit
def _gathered(entities: Any, of: Any, views: Any) -> None:
    for i in range(len(of)):
        views[i, 0] = entities[of[i], 0]
        views[i, 1] = entities[of[i], 1]


@jit
def _code_views(
    codes: Any, what: int, names: Any, names_at: Any, skipped: Any, fixed: Any, fixed_at: Any, views: Any, valid: Any
) -> None:
    """Texts of codes; what: 0 for the names themselves, 1 for datatypes, 2 for keys of units."""
    text, constant = pointer(names), pointer(fixed)
    for i in range(len(codes)):
        code = codes[i]
        if what > 0 and code == -1:
            views[i, 0] = 0
            views[i, 1] = 0
            continue
        valid[i >> 3] |= np.uint8(1 << (i & 7))
        if code < 0:
            index = -1 - code if what == 0 else (_FIRST_DATATYPE if what == 1 else _FIRST_DETAIL) - 2 - code
            _view(views, i, constant, fixed_at[index], fixed_at[index + 1] - fixed_at[index], _CONSTANTS)
            continue
        at, end = np.int64(names_at[code]), np.int64(names_at[code + 1])
        middle = (at + 1 + end) // 2
        if what == 1:
            _view(views, i, text, at, middle - at, _NAMES)
        else:
            middle += skipped[code] if what == 2 else 0
            _view(views, i, text, middle, end - middle, _NAMES)


def frames(t: n.Tables) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Statements and qualifiers of a walk."""
    buffers = [pa.py_buffer(t.buffer), pa.py_buffer(t.side), pa.py_buffer(t.names), pa.py_buffer(_FIXED_TEXT)]

    def series(views: np.ndarray, valid: np.ndarray | None = None) -> pl.Series:
        bits = None if valid is None else pa.py_buffer(valid)
        parts = [bits, pa.py_buffer(views), *buffers]
        return pl.Series(pl.from_arrow(pa.Array.from_buffers(pa.string_view(), len(views), parts)))

    def texts(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        views = np.empty((len(starts), 2), np.uint64)
        _object_views(starts, lengths, t.buffer, t.side, views)
        return views

    def coded(codes: np.ndarray, what: int) -> pl.Series:
        views = np.empty((len(codes), 2), np.uint64)
        valid = np.zeros((len(codes) + 7) // 8, np.uint8)
        _code_views(codes, what, t.names, t.names_at, t.skipped, _FIXED_TEXT, _FIXED_AT, views, valid)
        return series(views, valid if what else None)

    rows, marks, entities = (int(t.count[counter]) for counter in (n.ROWS, n.QUALIFIERS, n.ENTITIES))
    subjects = np.empty((rows, 2), np.uint64)
    _gathered(texts(t.entity_start[:entities], t.entity_length[:entities]), t.entity[:rows], subjects)
    statements = pl.DataFrame(
        {
            "subject": series(subjects),
            "predicate": coded(t.predicate[:rows], 0),
            "object": series(texts(t.start[:rows], t.length[:rows])),
            "kind": pl.Series(t.kind[:rows].copy()),
            "datatype": coded(t.datatype[:rows], 1),
            "detail": coded(t.detail[:rows], 2),
            "rank": pl.Series(t.rank[:rows].copy()),
        }
    )
    qualifiers = pl.DataFrame(
        {
            "row": pl.Series(t.q_row[:marks].copy()),
            "predicate": coded(t.q_predicate[:marks], 0),
            "object": series(texts(t.q_start[:marks], t.q_length[:marks])),
            "kind": pl.Series(t.q_kind[:marks].copy()),
            "datatype": coded(t.q_datatype[:marks], 1),
            "detail": coded(t.q_detail[:marks], 2),
        }
    )
    return statements, qualifiers
