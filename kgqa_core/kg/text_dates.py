"""Dates that are not written as ISO has them, `03/04/2021`, `3 April 2021`: whether day or month comes first."""

from __future__ import annotations

import polars as pl

FORMATS = (
    "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%d.%m.%Y", "%Y/%m/%d", "%Y.%m.%d", "%d %b %Y", "%d %B %Y",
    "%b %d, %Y", "%B %d, %Y", "%b %d %Y", "%B %d %Y", "%d-%b-%Y",
)  # fmt: skip
SHAPE = (
    r"^(\d{1,2}[/.-]\d{1,2}[/.-]\d{4}|\d{4}[/.]\d{1,2}[/.]\d{1,2}|\d{1,2}[ -][^\x00-@]{3,9}[ -]\d{4}"
    r"|[^\x00-@]{3,9} \d{1,2},? \d{4})$"
)
"""What dates of these formats, and few other texts, look like, as a pattern of DuckDB and Polars; with `\\p{L}` for the
letters of a month DuckDB takes 20 ms to compile it."""


def date_formats(values: pl.Series) -> list[str]:
    """Every format in which all of some texts are dates, each differently; two where day and month cannot be told.

    >>> date_formats(pl.Series(["03/04/2021", "13/04/2021"])), date_formats(pl.Series(["03/04/2021", "3/5/2021"]))
    (['%d/%m/%Y'], ['%d/%m/%Y', '%m/%d/%Y'])
    """
    values = values.drop_nulls()
    if not len(values) or not values.str.contains(SHAPE).all():
        return []
    dates = {text: values.str.to_date(text, strict=False) for text in FORMATS}
    return list({tuple(own): text for text, own in reversed(dates.items()) if not own.null_count()}.values())[::-1]
