"""Dates and numbers in a text, and whether one says what another says."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from kgqa_core.rewriting.align_text import number_norm

MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_MONTH = "|".join(f"{month}|{month[:3]}\\.?" for month in MONTHS) + r"|sept\.?"
_ORDINAL = r"(?:st|nd|rd|th)?"
_DATES = (
    re.compile(r"(?<!\d)(?P<y>\d{4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})(?:T[\d:.]+(?:Z|[+-]\d\d:?\d\d)?)?(?!\d)"),
    re.compile(r"(?<!\d)(?P<y>\d{4})-(?P<m>0[1-9]|1[0-2])(?![\d-])"),
    re.compile(r"(?<!\d)(?P<y>\d{4})[/.](?P<m>\d{1,2})[/.](?P<d>\d{1,2})(?!\d)"),
    re.compile(r"(?:(?P<y>\d{4})\s*年\s*)?(?<!\d)(?P<m>\d{1,2})\s*月\s*(?P<d>\d{1,2})(?!\d)(?:\s*[日号])?"),
    re.compile(r"(?<!\d)(?P<y>\d{4})\s*年\s*(?P<m>\d{1,2})\s*月"),
    re.compile(r"(?<!\d)(?P<y>\d{4})\s*年"),
    re.compile(
        rf"\b(?P<d>\d{{1,2}}){_ORDINAL}(?:\s+of)?\s+(?P<mon>{_MONTH})(?:,?\s+(?:of\s+)?(?P<y>\d{{3,4}}))?(?![\w])", re.I
    ),
    re.compile(
        rf"\b(?P<mon>{_MONTH})\s+(?P<d>\d{{1,2}}){_ORDINAL}\b(?:,?\s+(?:of\s+)?(?P<y>\d{{4}}))?(?![\d,]\d)", re.I
    ),
    re.compile(rf"\b(?P<mon>{_MONTH}),?\s+(?:of\s+)?(?P<y>\d{{4}})\b", re.I),
)
_NUMBER = re.compile(
    r"(?P<sign>(?<![\w).\]-])[-−])?(?P<digits>\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?)"
    r"(?P<scale>\s*(?:hundred|thousand|million|billion|trillion)\b|[百千万亿])?",
    re.IGNORECASE,
)
_SCALES = {
    "hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12,
    "百": 100, "千": 1000, "万": 10**4, "亿": 10**8,
}  # fmt: skip
_DECADE = re.compile(r"\s*(?:['’]?s\b|年代)")
_HEIGHT = re.compile(r"(?<!\d)(\d)\s*(?:米|m)\s*(\d{2})(?!\d)")
WORDS = dict(
    zip(
        "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen".split(),
        map(str, range(1, 17)),
        strict=True,
    )
)
"""Numbers as English words; they can tell a triple, but are never called invented."""


@dataclass(frozen=True, slots=True)
class TextValue:
    """A date, as precise as the text says (absent parts are None), or a number by its value.

    start, end: its characters in the text.  decade: the year stands for its ten.
    """

    start: int
    end: int
    number: str | None = None
    year: int | None = None
    month: int | None = None
    day: int | None = None
    decade: bool = False

    @property
    def dated(self) -> bool:
        """Whether this is a date."""
        return self.number is None


@lru_cache(maxsize=16384)
def values(text: str) -> tuple[TextValue, ...]:
    """Dates and numbers of a text from left to right; a number inside a date is not listed on its own.

    >>> [(v.year, v.month, v.day) for v in values("22 January 1997, 1997年1月22日, January 22nd, 1997")]
    [(1997, 1, 22), (1997, 1, 22), (1997, 1, 22)]
    >>> [v.number for v in values("1,234 of 5.0 million")]
    ['1234', '5000000']
    """
    found: list[TextValue] = []
    used = [False] * len(text)
    for pattern in _DATES:
        for match in pattern.finditer(text):
            value = _date(match)
            if value is not None and not any(used[value.start : value.end]):
                found.append(value)
                used[value.start : value.end] = [True] * (value.end - value.start)
    for match in _HEIGHT.finditer(text):
        if not any(used[match.start() : match.end()]):
            found.append(TextValue(match.start(), match.end(), number_norm(f"{match[1]}.{match[2]}")))
            used[match.start() : match.end()] = [True] * (match.end() - match.start())
    for match in _NUMBER.finditer(text):
        if any(used[match.start() : match.end()]):
            continue
        number = number_norm(match["digits"])
        if match["scale"]:
            scaled = Decimal(number) * _SCALES[match["scale"].strip().lower()]
            number = number_norm(format(scaled, "f"))
        decade = bool(len(number) == 4 and number.endswith("0") and _DECADE.match(text, match.end()))
        if match["sign"] and number != "0":
            number = "-" + number
        found.append(TextValue(match.start(), match.end(), number, decade=decade))
    return tuple(sorted(found, key=lambda value: value.start))


def says(stated: TextValue, known: TextValue) -> bool:
    """Whether `known` bears out `stated`: the same, or a date that is at least as precise.

    >>> says(values("January 1997")[0], values("1997-01-22")[0]), says(values("1997-01-22")[0], values("1997")[0])
    (True, False)
    """
    if stated.decade:
        year = known.year if known.dated else _year(known)
        return year is not None and str(year)[:-1] == str(stated.number)[:-1]
    if not stated.dated and not known.dated:
        return stated.number == known.number
    if not stated.dated:
        return stated.number == str(known.year)
    parts = [
        (stated.year, known.year if known.dated else _year(known)),
        (stated.month, known.month),
        (stated.day, known.day),
    ]
    return all(own is None or own == theirs for own, theirs in parts)


def borne_out(stated: TextValue, known: Collection[TextValue]) -> bool:
    """Whether a known value bears out `stated`, or one its year and another, without a year, its month and day.

    >>> borne_out(values("2022年4月13日")[0], values("2022年度研讨会, 4月13日"))
    True
    """
    if any(says(stated, each) for each in known):
        return True
    if stated.year is None or stated.month is None:
        return False
    days = [each for each in known if each.dated and each.year is None]
    years = [each.year if each.dated else _year(each) for each in known]
    return stated.year in years and any((each.month, each.day) == (stated.month, stated.day) for each in days)


def _year(value: TextValue) -> int | None:
    number = value.number or ""
    return int(number) if number.isdigit() and len(number) <= 4 else None


def _date(match: re.Match[str]) -> TextValue | None:
    parts = match.groupdict()
    if parts.get("mon"):
        key = parts["mon"].lower().rstrip(".")[:3]
        month: int | None = next(place + 1 for place, name in enumerate(MONTHS) if name.startswith(key))
    else:
        month = int(parts["m"]) if parts.get("m") else None
    day = int(parts["d"]) if parts.get("d") else None
    year = int(parts["y"]) if parts.get("y") else None
    if (month is not None and not 1 <= month <= 12) or (day is not None and not 1 <= day <= 31):
        return None
    return TextValue(match.start(), match.end(), None, year, month, day)
