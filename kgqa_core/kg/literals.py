"""What a literal means: its number and unit, or its time with precision and calendar, as DuckDB expressions.

Each is an expression of the columns (key, datatype, detail), NULL where it does not apply.  Coordinates stay text.
"""

from __future__ import annotations

from kgqa_core.kg.vocabulary import XSD

NUMERIC = [
    "integer",
    "decimal",
    "float",
    "double",
    "int",
    "long",
    "short",
    "byte",
    "nonNegativeInteger",
    "positiveInteger",
    "nonPositiveInteger",
    "negativeInteger",
    "unsignedInt",
    "unsignedLong",
    "unsignedShort",
    "unsignedByte",
]
TEMPORAL = {"gYear": 9, "gYearMonth": 10, "date": 11, "dateTime": 14, "dateTimeStamp": 14}
"""Datatypes with a place in time, and their precision on Wikidata's scale (9 year … 14 second) where none is given."""

FAR = 290_000
"""Years beyond this, before and after year 0, do not fit a TIMESTAMP; their `number` sorts them."""

NUMBER = r"^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$"
"""A well-formed number."""

_TIME = (
    r"^(-?\d{4,18})(?:-(\d\d)(?:-(\d\d)(?:T(\d\d):(\d\d):(\d\d(?:\.\d+)?))?)?)?"
    r"(Z|[+-]\d\d:\d\d)?$"
)


def _in(names: list[str]) -> str:
    return "(" + ", ".join(f"'{XSD}{name}'" for name in names) + ")"


_IS_NUMERIC = f"datatype IN {_in(NUMERIC)}"
_IS_TIME = f"datatype IN {_in(list(TEMPORAL))}"


def _dated(expression: str) -> str:
    """An expression of the parts of a date, `p.year` …, read once; NULL for what is no date."""
    names = ["year", "month", "day", "hour", "minute", "second", "zone"]
    for name, default in zip(names, "0110000", strict=True):
        kind = "DOUBLE" if name == "second" else "BIGINT"
        if name != "zone":
            expression = expression.replace(f"p.{name}", f"coalesce(try_cast(p.{name} AS {kind}), {default})")
    zone = "(CASE WHEN length(p.zone) < 6 THEN 0 ELSE (CASE WHEN p.zone[1] = '-' THEN -1 ELSE 1 END * "
    zone += "(p.zone[2:3]::INTEGER * 60 + p.zone[5:6]::INTEGER)) END)"
    expression = expression.replace("p.offset", zone)
    parts = f"regexp_extract(key, '{_TIME}', {names})"
    value = f"CASE WHEN p.year <> '' THEN {expression} END"
    return f"CASE WHEN {_IS_TIME} THEN list_transform([{parts}], lambda p: {value})[1] END"


_STAMP = "try(make_timestamp(p.year, p.month, p.day, p.hour, p.minute, p.second) - to_minutes(p.offset::INTEGER))"

TIME_SQL = _dated(_STAMP)
"""The beginning of a date, in UTC (a zone counts only where there is a time of day); NULL for no or an impossible date,
or one that is too far away for a TIMESTAMP.

Year 0 is 1 BC, as in XSD 1.1.
"""

_YEARS = (
    "CASE WHEN p.month BETWEEN 1 AND 12 AND p.day BETWEEN 1 AND 31 AND p.hour < 25 AND p.minute < 60 "
    f"AND p.second < 61 AND (abs(p.year) > {FAR} OR detail LIKE '%julian' OR {_STAMP} IS NOT NULL) THEN "
    "p.year + (p.month - 1) / 12 "
    "+ ((p.day - 1) * 1440 + p.hour * 60 + p.minute + p.second / 60 - p.offset) / 535680 END"
)

_DATE_NUMBER = _dated(_YEARS)

NUMBER_SQL = (
    f"CASE WHEN {_IS_NUMERIC} AND regexp_matches(key, '{NUMBER}') "
    f"AND isfinite(try_cast(key AS DOUBLE)) THEN try_cast(key AS DOUBLE) ELSE {_DATE_NUMBER} END"
)
"""The finite value of a well-formed numeric literal; of a date its year, as a decimal, which sorts however far it is.

A decimal year counts months of 31 days, so that later is always larger: 1999-07-01 is 1999.5, and the year -13798000000
has a number though no TIMESTAMP.  A Julian date is not converted; 29 February 1700 has a number, and no time.
"""

_IS_DATE = f"({_DATE_NUMBER}) IS NOT NULL"

PRECISION_SQL = (
    f"CASE WHEN {_IS_DATE} THEN coalesce(try_cast(nullif(regexp_extract(detail, '^[0-9]+'), '') AS INTEGER), "
    "CASE datatype " + " ".join(f"WHEN '{XSD}{name}' THEN {p}" for name, p in TEMPORAL.items()) + " END) END"
)
"""0 a billion years, 6 a millennium, 7 a century, 8 a decade, 9 a year, 10 a month, 11 a day, 14 a second."""

CALENDAR_SQL = (
    f"CASE WHEN {_IS_DATE} THEN coalesce(nullif(regexp_extract(detail, '(gregorian|julian)$', 1), ''), 'gregorian') END"
)
"""`gregorian` or `julian`."""

UNIT_SQL = f"CASE WHEN {_IS_NUMERIC} THEN detail END"
"""The key of a quantity's unit."""
