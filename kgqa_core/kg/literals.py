"""What a literal means: its number, or its time with precision, as DuckDB expressions of (key, datatype)."""

from __future__ import annotations

XSD = "http://www.w3.org/2001/XMLSchema#"

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
"""Datatypes with a place in time, and their precision on Wikidata's scale (9 year … 14 second)."""

_NUMBER = r"^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$"
_TIME = (
    r"^(-?\d{4,6})(?:-(\d\d)(?:-(\d\d)(?:T(\d\d):(\d\d):(\d\d(?:\.\d+)?))?)?)?"
    r"(Z|[+-]\d\d:\d\d)?$"
)


def _in(names: list[str]) -> str:
    return "(" + ", ".join(f"'{XSD}{name}'" for name in names) + ")"


def _part(group: int, default: str) -> str:
    return f"coalesce(nullif(regexp_extract(key, '{_TIME}', {group}), ''), '{default}')"


NUMBER_SQL = (
    f"CASE WHEN datatype IN {_in(NUMERIC)} AND regexp_matches(key, '{_NUMBER}') "
    "AND isfinite(try_cast(key AS DOUBLE)) THEN try_cast(key AS DOUBLE) END"
)
"""The finite value of a well-formed numeric literal, else NULL."""

_ZONE = _part(7, "Z")

TIME_SQL = (
    f"CASE WHEN datatype IN {_in(list(TEMPORAL))} AND regexp_matches(key, '{_TIME}') THEN "
    f"try(make_timestamp({_part(1, '0')}::BIGINT, {_part(2, '1')}::BIGINT, {_part(3, '1')}::BIGINT, "
    f"{_part(4, '0')}::BIGINT, {_part(5, '0')}::BIGINT, {_part(6, '0')}::DOUBLE) "
    f"- CASE WHEN {_ZONE} = 'Z' THEN INTERVAL 0 MINUTE ELSE "
    f"to_minutes((CASE WHEN {_ZONE}[1] = '-' THEN -1 ELSE 1 END "
    f"* ({_ZONE}[2:3]::INTEGER * 60 + {_ZONE}[5:6]::INTEGER))::INTEGER) END) END"
)
"""The beginning of a date, in UTC (a zone counts only where there is a time of day); NULL for no or an impossible date.

Year 0 is 1 BC, as in XSD 1.1.
"""

PRECISION_SQL = "CASE datatype " + " ".join(f"WHEN '{XSD}{name}' THEN {p}" for name, p in TEMPORAL.items()) + " END"
