"""Dates that are not written as ISO has them, `03/04/2021`, `3 April 2021`: whether day or month comes first."""

from __future__ import annotations

import polars as pl

_NUMBERS = [(f"%d{mark}%m{mark}%Y", f"%m{mark}%d{mark}%Y") for mark in "/-"]
_WORDS = [
    text.replace("%b", month) for text in ("%d %b %Y", "%b %d, %Y", "%d-%b-%Y", "%b %d %Y") for month in ("%b", "%B")
]
FORMATS = (*(text for pair in _NUMBERS for text in pair), "%d.%m.%Y", "%Y/%m/%d", "%Y.%m.%d", *_WORDS)
"""How dates are written, with the places of `strftime`; one with points has its day first."""
SHAPE = (
    r"^(\d{1,2}[/.-]\d{1,2}[/.-]\d{4}|\d{4}[/.]\d{1,2}[/.]\d{1,2}|\d{1,2}[ -]\p{L}{3,9}[ -]\d{4}"
    r"|\p{L}{3,9} \d{1,2},? \d{4})$"
)
"""What texts of these formats look like, as DuckDB and Polars have patterns."""


def as_dates(values: pl.Expr, format: str) -> pl.Expr:
    """Texts of a format as ISO dates; others as they are."""
    return pl.coalesce(values.str.to_date(format, strict=False).dt.to_string("iso"), values)


def date_formats(values: pl.Series) -> list[str]:
    """Every format in which all of some texts are dates, each differently; two where day and month cannot be told.

    >>> date_formats(pl.Series(["03/04/2021", "13/04/2021"])), date_formats(pl.Series(["03/04/2021", "3/5/2021"]))
    (['%d/%m/%Y'], ['%d/%m/%Y', '%m/%d/%Y'])
    >>> date_formats(pl.Series(["3 April 2021", "12 May 2020"])), date_formats(pl.Series(["1/2", "04/04/2021"]))
    (['%d %B %Y'], [])
    """
    if not len(values) or not values.str.contains(SHAPE).all():
        return []
    results: list[tuple[str, pl.Series]] = []
    for text in FORMATS:
        dates = values.str.to_date(text, strict=False)
        if not dates.null_count() and not any(dates.equals(others) for _, others in results):
            results.append((text, dates))
    return [text for text, _ in results]
