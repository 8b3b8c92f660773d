"""Lexical forms of Wikidata's values as its RDF export writes them, so that JSON and RDF make the same literals.

Source: Wikibase's DateTimeValueCleaner, JulianDateTimeValueCleaner and GlobeCoordinateRdfBuilder, whose behaviour (not
code) is followed here, and the twins of JSON and RDF that Wikidata serves.
"""

from __future__ import annotations

import re

from kgqa_core.kg.vocabulary import ANY_URI, STRING, WIKIBASE, XSD
from kgqa_core.kg.vocabulary import WIKIDATA_ENTITY as ENTITY_IRI

DATE_TIME = XSD + "dateTime"
DECIMAL = XSD + "decimal"
WKT = "http://www.opengis.net/ont/geosparql#wktLiteral"

STRINGS = {
    "external-id": WIKIBASE + "ExternalId",
    "commonsMedia": WIKIBASE + "CommonsMedia",
    "localMedia": WIKIBASE + "LocalMedia",
    "url": ANY_URI,
    "math": "http://www.w3.org/1998/Math/MathML",
    "geo-shape": WIKIBASE + "GeoShape",
    "tabular-data": WIKIBASE + "TabularData",
    "musical-notation": WIKIBASE + "MusicalNotation",
    "edtf": "http://id.loc.gov/datatypes/edtf/EDTF",
}
"""Datatypes of values that JSON writes as strings, by the datatype of their property; others are plain strings."""

GREGORIAN = ENTITY_IRI + "Q1985727"
JULIAN = ENTITY_IRI + "Q1985786"
EARTH = ENTITY_IRI + "Q2"
CALENDARS = {GREGORIAN: "gregorian", JULIAN: "julian"}

YEAR, MONTH, DAY = 9, 10, 11
"""Precisions of times, as Wikidata counts them."""

_TIME = re.compile(r"([+-])([0-9]{1,16})-([0-9]{2})-([0-9]{2})T([0-9]{2}:[0-9]{2}:[0-9]{2}Z)")
_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class Unreadable(ValueError):
    """A part of an entity that is no statement; its text is the reason."""


def time_term(text: str, precision: int, calendar: str) -> tuple[str, str, str | None]:
    """Lexical form, datatype and detail of a time.

    A time that has no form as xsd:dateTime (year 0, a foreign calendar) stays a string as it is written.  Raises
    Unreadable for text that is no time.
    """
    match = _TIME.fullmatch(text)
    if match is None:
        raise Unreadable(f"{text[:40]!r} is not a time")
    sign, digits, clock = match[1], match[2].lstrip("0"), match[5]
    month, day = min(12, max(1, int(match[3]))), max(1, int(match[4]))
    known = CALENDARS.get(calendar)
    if not digits or (known is None and precision >= DAY):
        return text, STRING, None
    detail = f"{precision} {known}" if known else str(precision)
    before = sign == "-"
    if known == "julian" and precision >= DAY and (moved := gregorian(before, int(digits), month, day)):
        year, month, day = moved
        return f"{'-' * (year < 0)}{abs(year):04d}-{month:02d}-{day:02d}T{clock}", DATE_TIME, detail
    if precision <= YEAR:
        month = day = 1
    elif precision == MONTH:
        day = 1
    if day > 28:
        day = min(day, days_of(1 - int(digits) if before else int(digits), month))
    if before and precision >= YEAR:  # XSD 1.1 has a year 0, which Wikidata's JSON has not
        digits = f"{float(digits) - 1:.0f}"
        before = digits != "0"
    return f"{'-' * before}{digits.rjust(4, '0')}-{month:02d}-{day:02d}T{clock}", DATE_TIME, detail


def days_of(year: int, month: int) -> int:
    """Days of a month; years count through 0.  Compiled too, as `gregorian` is."""
    leap = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return _DAYS[month - 1] + leap


def gregorian(before: bool, year: int, month: int, day: int) -> tuple[int, int, int] | None:
    """A Julian date as Gregorian, its year counted through 0; None outside the years that Wikibase converts."""
    if (year > 4713 if before else year > 1465072) or day > 31 or (before and (year, month, day) == (4713, 1, 1)):
        return None
    shifted = (4801 - year if before else year + 4800) - (month <= 2)
    number = shifted * 1461 // 4 + ((month + 9) % 12 * 153 + 2) // 5 + day - 32083
    rest = (number + 32045) * 4 - 1
    century, rest = divmod(rest, 146097)
    years, rest = divmod(rest // 4 * 4 + 3, 1461)
    months, rest = divmod(rest // 4 * 5 + 2, 153)
    return century * 100 + years - 4800 + (months >= 10), months + 3 - 12 * (months >= 10), rest // 5 + 1


def point(longitude: object, latitude: object, globe: object = None) -> str:
    """A coordinate as WKT, with its globe in front unless that is the Earth.  Raises Unreadable."""
    text = f"Point({degrees(longitude)} {degrees(latitude)})"
    if globe is None or globe == EARTH or globe == "":
        return text
    if not isinstance(globe, str):
        raise Unreadable("the globe of a coordinate is not a string")
    return f"<{globe.replace('>', '%3E')}> {text}"


def degrees(value: object) -> str:
    """A number with at most 14 digits, as PHP writes it.  Raises Unreadable."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unreadable("a coordinate without latitude and longitude")
    try:
        mantissa, _, exponent = f"{float(value):.13e}".partition("e")
    except OverflowError:
        raise Unreadable("a coordinate out of range") from None
    sign = "-" if mantissa.startswith("-") else ""
    digits = mantissa.lstrip("-").replace(".", "").rstrip("0") or "0"
    power = int(exponent)
    if not -4 <= power < 14:
        return f"{sign}{digits[0]}.{digits[1:] or '0'}E{power:+d}"
    if power < 0:
        return f"{sign}0.{'0' * (-power - 1)}{digits}"
    whole = digits[: power + 1].ljust(power + 1, "0")
    return sign + whole + (f".{digits[power + 1 :]}" if len(digits) > power + 1 else "")


def unit_key(unit: object) -> str | None:
    """The key of a quantity's unit; None for a bare number.  Raises Unreadable."""
    if unit is None or unit == "1" or unit == "":
        return None
    if not isinstance(unit, str):
        raise Unreadable("the unit of a quantity is not a string")
    return entity_key(unit)


def entity_key(iri: str) -> str:
    """The short key of an entity's IRI; other text as it is."""
    for prefix in (ENTITY_IRI, "https://www.wikidata.org/entity/"):
        if iri.startswith(prefix) and len(iri) > len(prefix):
            return iri[len(prefix) :]
    return iri
