"""What a literal measures: a number in its base unit, or a stretch of time, as SQL over `entities` and in Python.

A date lasts as long as its precision says: 1952 is a year, 1952-03-11 a day, both as [lo, hi) in seconds of a calendar
whose months all have 31 days, as `kg.literals` counts them, so that later is always larger.  A number has lo = hi.
What is compared is certain: 1952-03-11 is in 1952 (`eq`) and not after it; 1952 is not in 1952-03-11.

Units of one dimension are converted, so that 180 cm and 1.8 m compare; a value in a unit that is not listed compares
with values in the same unit only.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from math import inf, isfinite
from threading import Lock
from typing import Any, NamedTuple

import duckdb
import numpy as np
from numpy.typing import NDArray

from kgqa_core.kg.literals import NUMBER, NUMBER_SQL, NUMERIC, PRECISION_SQL, TEMPORAL
from kgqa_core.kg.sql import quoted
from kgqa_core.kg.vocabulary import STRING, XSD
from kgqa_core.logic.forms import Literal

Floats = NDArray[np.float64]


class Unit(NamedTuple):
    """A unit as `factor * value + offset` of its base unit."""

    base: str
    factor: float
    offset: float = 0.0


METRE, SQUARE_METRE, CUBIC_METRE, KILOGRAM, SECOND = "Q11573", "Q25343", "Q25517", "Q11570", "Q11574"
KELVIN, METRE_PER_SECOND, WATT, BYTE = "Q11579", "Q182429", "Q25236", "Q8799"

UNITS: dict[str, Unit] = {
    "Q11573": Unit(METRE, 1.0),
    "Q174789": Unit(METRE, 0.001),  # millimetre
    "Q174728": Unit(METRE, 0.01),  # centimetre
    "Q200323": Unit(METRE, 0.1),  # decimetre
    "Q828224": Unit(METRE, 1000.0),  # kilometre
    "Q218593": Unit(METRE, 0.0254),  # inch
    "Q3710": Unit(METRE, 0.3048),  # foot
    "Q482798": Unit(METRE, 0.9144),  # yard
    "Q253276": Unit(METRE, 1609.344),  # mile
    "Q93318": Unit(METRE, 1852.0),  # nautical mile
    "Q25343": Unit(SQUARE_METRE, 1.0),
    "Q712226": Unit(SQUARE_METRE, 1e6),  # square kilometre
    "Q35852": Unit(SQUARE_METRE, 1e4),  # hectare
    "Q232291": Unit(SQUARE_METRE, 2589988.110336),  # square mile
    "Q81292": Unit(SQUARE_METRE, 4046.8564224),  # acre
    "Q857027": Unit(SQUARE_METRE, 0.09290304),  # square foot
    "Q25517": Unit(CUBIC_METRE, 1.0),
    "Q4243638": Unit(CUBIC_METRE, 1e9),  # cubic kilometre
    "Q11582": Unit(CUBIC_METRE, 0.001),  # litre
    "Q11570": Unit(KILOGRAM, 1.0),
    "Q41803": Unit(KILOGRAM, 0.001),  # gram
    "Q191118": Unit(KILOGRAM, 1000.0),  # tonne
    "Q100995": Unit(KILOGRAM, 0.45359237),  # pound
    "Q11574": Unit(SECOND, 1.0),
    "Q723733": Unit(SECOND, 0.001),  # millisecond
    "Q7727": Unit(SECOND, 60.0),  # minute
    "Q25235": Unit(SECOND, 3600.0),  # hour
    "Q573": Unit(SECOND, 86400.0),  # day
    "Q11579": Unit(KELVIN, 1.0),
    "Q25267": Unit(KELVIN, 1.0, 273.15),  # degree Celsius
    "Q42289": Unit(KELVIN, 5 / 9, 459.67 * 5 / 9),  # degree Fahrenheit
    "Q182429": Unit(METRE_PER_SECOND, 1.0),
    "Q180154": Unit(METRE_PER_SECOND, 1 / 3.6),  # kilometre per hour
    "Q211256": Unit(METRE_PER_SECOND, 0.44704),  # mile per hour
    "Q128822": Unit(METRE_PER_SECOND, 1852 / 3600),  # knot
    "Q25236": Unit(WATT, 1.0),
    "Q3320608": Unit(WATT, 1e3),  # kilowatt
    "Q6982035": Unit(WATT, 1e6),  # megawatt
    "Q8799": Unit(BYTE, 1.0),
    "Q79726": Unit(BYTE, 1e3),  # kilobyte
    "Q79735": Unit(BYTE, 1e6),  # megabyte
    "Q79738": Unit(BYTE, 1e9),  # gigabyte
}


def base_unit(unit: str | None) -> str:
    """The unit that values in this one are turned into; the unit itself where there is none, "" for bare numbers."""
    if unit is None:
        return ""
    return UNITS[unit].base if unit in UNITS else unit


Binder = Callable[[Any], str]
"""Gives a value a place among a query's parameters, and the name of that place."""

TIME = "time"
"""The dimension of dates; that of a number is its base unit, "" where it has none."""

_DIGITS = ".11e"
"""How a number that was converted to its base unit is rounded: to twelve digits."""

DAY, _WITH_DAY = 86_400, 11
"""Seconds of a day, and the precision of a date to the day."""
_YEAR = 372 * DAY
_WIDTHS = {9: _YEAR, 10: 31 * DAY, 11: DAY, 12: 3600, 13: 60}
_SECONDS = f"round({{e}}.number * {_YEAR})"
_WIDTH = f"(CASE {{e}}.precision {' '.join(f'WHEN {p} THEN {w}' for p, w in _WIDTHS.items())} ELSE 1 END)"
_SPAN = "pow(10, 9 - {e}.precision)"
"""Years of a precision that is rougher than a year: 8 a decade … 0 a billion years."""
_FIRST = "({e}.precision IN (6, 7))::INTEGER"
"""The year with which centuries and millennia begin: the 20th century is 1901 to 2000; a decade begins with its 0."""

_LO = (
    f"(CASE WHEN {{e}}.precision < 9 THEN (floor((floor({_SECONDS} / {_YEAR}) - {_FIRST}) / {_SPAN}) * {_SPAN} "
    f"+ {_FIRST}) * {_YEAR} ELSE floor({_SECONDS} / {_WIDTH}) * {_WIDTH} END)"
)
_LENGTH = f"(CASE WHEN {{e}}.precision < 9 THEN {_SPAN} * {_YEAR} ELSE {_WIDTH} END)"

_WELL_FORMED = re.compile(NUMBER, re.ASCII)
_reading = Lock()

UNIT_ROWS = ", ".join(
    f"({quoted(unit)}, {quoted(to.base)}, {to.factor!r}::DOUBLE, {to.offset!r}::DOUBLE)"
    for unit, to in sorted(UNITS.items())
)
"""Rows (unit, base, factor, offset) of the units that are turned into one another."""


def dated_sql(e: str) -> str:
    """Whether the literal of the row `e` of `entities` is a date."""
    return f"{e}.precision IS NOT NULL"


def lo_sql(e: str) -> str:
    """Where a date of the row `e` begins, in seconds."""
    return _LO.format(e=e)


def hi_sql(e: str) -> str:
    """Where a date of the row `e` ends, in seconds; the second after its last."""
    return f"({_LO.format(e=e)} + {_LENGTH.format(e=e)})"


def spans_sql(unit: str, rows: str) -> str:
    """Rows (id, node, dim, x) of the spans of time between two rows of `entities`, `b` and `e` (`forms.TimeSpan`).

    rows: what follows FROM, with the ids of members as `p.id`.
    """
    sure = f" AND least(b.precision, e.precision) >= {_WITH_DAY}" if unit == "days" else ""
    x = f"floor(({lo_sql('e')} - {lo_sql('b')}) / {_YEAR})"
    if unit == "days":
        months, years = f"floor(lo / {31 * DAY})", f"floor((floor(lo / {31 * DAY}) - 2) / 12)"
        days = (
            f"floor(lo / {DAY}) - 31 * {months} + 365 * {years} + floor({years} / 4) - floor({years} / 100) "
            f"+ floor({years} / 400) + floor((153 * ({months} - 2 - 12 * {years}) + 2) / 5)"
        )
        first, last = (f"list_transform([{lo_sql(row)}], lambda lo: {days})[1]" for row in "be")
        x = f"{last} - ({first})"
    dated = f"{dated_sql('b')} AND {dated_sql('e')} AND {lo_sql('e')} >= {lo_sql('b')}"
    return f"SELECT p.id, NULL AS node, '' AS dim, {x} AS x FROM {rows} WHERE {dated}{sure}"


def spans(unit: str, begin: Floats, end: Floats) -> Floats:
    """The same of where dates begin, in seconds; of days both are dates to the day."""
    return np.floor((end - begin) / _YEAR) if unit == "years" else _days(end) - _days(begin)


def _days(lo: Floats) -> Floats:
    """Days up to a date of the Gregorian calendar; the year begins in March, so that a leap day is its last."""
    months, day = np.divmod(lo // DAY, 31)
    years, month = np.divmod(months - 2, 12)
    return 365 * years + years // 4 - years // 100 + years // 400 + (153 * month + 2) // 5 + day


def rounded_sql(x: str) -> str:
    """A converted number without the last digits, which depend on the unit that it was written in: 7 dm is 0.7 m."""
    return f"format('{{:{_DIGITS}}}', {x})::DOUBLE"


def measured_sql(pairs: str, measures: str | None = None) -> str:
    """Rows (id, node, dim, x) of the nodes of `pairs(id, node)` that are numbers or dates.

    dim: the dimension.  x: the number in its base unit, or where the date begins.  measures: a table (node, dim, x) of
    the whole graph, where there is one.
    """
    if measures is not None:
        return f"SELECT p.id, p.node, m.dim, m.x FROM {pairs} p JOIN {measures} m USING (node)"
    converted = rounded_sql('e.number * u.factor + u."offset"')
    return (
        "SELECT p.id, p.node, "
        f"CASE WHEN {dated_sql('e')} THEN '{TIME}' ELSE coalesce(u.base, e.unit, '') END AS dim, "
        f"CASE WHEN {dated_sql('e')} THEN {lo_sql('e')} WHEN u.unit IS NULL THEN e.number "
        f"ELSE {converted} END AS x "
        f"FROM {pairs} p JOIN entities e ON e.id = p.node "
        f'LEFT JOIN (VALUES {UNIT_ROWS}) u(unit, base, factor, "offset") ON u.unit = e.unit '
        "WHERE e.number IS NOT NULL"
    )


@dataclass(frozen=True, slots=True)
class Measure:
    """A number or a date of a form: its dimension, and [lo, hi); a number has lo = hi."""

    dim: str
    lo: float
    hi: float


@lru_cache(maxsize=65_536)
def measure(literal: Literal) -> Measure | None:
    """What a form's literal measures by the rules of `kg.literals`; None for text, and for what is malformed."""
    name = literal.datatype.removeprefix(XSD)
    if name == literal.datatype or name not in (*TEMPORAL, *NUMERIC):
        return None
    if name in TEMPORAL:
        return _stretch(literal)
    number = float(literal.text) if _WELL_FORMED.fullmatch(literal.text) else inf
    if not isfinite(number):
        return None
    unit = UNITS.get(literal.unit or "")
    x = number if unit is None else float(f"{number * unit.factor + unit.offset:{_DIGITS}}")
    return Measure(base_unit(literal.unit), x, x) if isfinite(x) else None


def in_other_unit(literal: Literal, unit: tuple[str, float]) -> Literal | None:
    """A number with a unit as one without, in another unit (key, factor to it); None where the two measure unlike
    things."""
    own, other = measure(literal), UNITS.get(unit[0])
    if own is None or (other is None and literal.unit != unit[0]) or (other is not None and own.dim != other.base):
        return None
    x = own.lo if other is None else (own.lo - other.offset) / other.factor
    return replace(literal, text=f"{x / unit[1]:.12g}", unit=None)


def _stretch(date: Literal) -> Measure | None:
    """When a date begins and ends, as DuckDB reads it."""
    with _reading:
        reader = _reader()
        reader.execute("UPDATE literal SET key = $1, datatype = $2, detail = $3", [date.text, date.datatype, date.unit])
        row = reader.execute("EXECUTE stretch").fetchone()
    return None if row is None or row[0] is None else Measure(TIME, float(row[0]), float(row[1]))


@cache
def _reader() -> duckdb.DuckDBPyConnection:
    """A database of the row `literal`, and the statement that reads its date, planned once."""
    connection = duckdb.connect(":memory:", config={"threads": 1})
    connection.execute("CREATE TABLE literal(key VARCHAR, datatype VARCHAR, detail VARCHAR)")
    connection.execute("INSERT INTO literal VALUES ('', '', NULL)")
    connection.execute(
        f"PREPARE stretch AS SELECT {lo_sql('e')}, {hi_sql('e')} FROM "
        f"(SELECT {NUMBER_SQL} AS number, {PRECISION_SQL} AS precision FROM literal) e"
    )
    return connection


def equal_sql(literal: Literal, bind: Binder, e: str = "e") -> str:
    """Whether the row `e` of `entities` is a form's literal: a number by its value, a date in it, a text to the letter.

    A string without language is found in any language, and in any datatype that is no number and no date.  A string
    that is read as a number is found by its letters too.
    """
    result = measure(literal)
    if result is not None:
        return compared_sql("eq", literal, bind, e)
    text = f"{e}.kind = 'literal' AND {e}.key = {bind(literal.text)} AND "
    if literal.datatype == STRING:
        return f"{text}({e}.number IS NULL OR {e}.datatype = {quoted(STRING)})"
    return f"{text}{e}.datatype = {bind(literal.datatype)}"


def compared_sql(op: str, literal: Literal, bind: Binder, e: str = "e") -> str:
    """Whether the row `e` of `entities` compares so with a form's number or date; op: eq, lt, le, gt or ge.

    Raises ValueError for a literal that is neither.
    """
    result = measure(literal)
    if result is None:
        raise ValueError(f"{literal} is no number and no date")
    if result.dim == TIME:
        tests = []
        if op in ("eq", "ge", "gt"):
            tests.append(f"{lo_sql(e)} >= {bind(result.hi if op == 'gt' else result.lo)}")
        if op in ("eq", "le", "lt"):
            tests.append(f"{hi_sql(e)} <= {bind(result.lo if op == 'lt' else result.hi)}")
        return f"({dated_sql(e)} AND {' AND '.join(tests)})"
    value, same = f"{e}.number", f"{e}.unit IS NULL"
    if literal.unit in UNITS:
        units = {unit: to for unit, to in sorted(UNITS.items()) if to.base == result.dim}
        cases = " ".join(
            f"WHEN {quoted(unit)} THEN {e}.number * {to.factor!r}::DOUBLE + {to.offset!r}::DOUBLE"
            for unit, to in units.items()
        )
        value, same = rounded_sql(f"(CASE {e}.unit {cases} END)"), f"{e}.unit IN ({', '.join(map(quoted, units))})"
    elif literal.unit is not None:
        same = f"{e}.unit = {bind(literal.unit)}"
    sign = {"eq": "=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}[op]
    return f"({e}.number IS NOT NULL AND {e}.precision IS NULL AND {same} AND {value} {sign} {bind(result.lo)})"
