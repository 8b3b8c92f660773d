"""Statements with qualifiers, one a line: `S,P,O[,QP,QV]*`, cut by commas or tabs, as WD50K writes them.

The object and the values of qualifiers are TEXT and keys: there are no literals.  Blank lines are ignored, and lines
that begin with `#` and hold no statement.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError
from kgqa_core.kg.formats.base import BLANKS, ENTITY, MAX_REJECT_TEXT, QUALIFIERS, REJECTS, STATEMENTS, TEXT, Batch
from kgqa_core.kg.formats.delimited import given_delimiter
from kgqa_core.kg.formats.source import Block, Source

_KEY = r"[QPL][1-9][0-9]*(?:-[FS][1-9][0-9]*)?"
_LINES = {cut: re.compile(rf" *{_KEY} *(?:{cut} *P[1-9][0-9]* *{cut}[^{cut}]+)+") for cut in (",", "\t")}


class Statements:
    """Reader of statements with qualifiers."""

    name = "statements"

    def sniff(self, lines: list[str], options: KgOptions) -> float:
        """Share of the lines that hold Wikidata's keys so; none of lines with tabs if no line has a qualifier."""
        return _best(lines, options)[1]

    def read(self, source: Source, options: KgOptions) -> Iterator[Batch]:
        """The statements of a file.  Raises KgInputError when neither commas nor tabs cut its lines."""
        delimiter = given_delimiter(options)
        if delimiter is None:
            head = source.head()
            delimiter = max((",", "\t"), key=lambda cut: sum(line.count(cut) >= 2 for line in head))
            if head and not any(line.count(delimiter) >= 2 for line in head):
                raise KgInputError(
                    f"neither commas nor tabs cut the lines of {source.path} into subject, predicate and object, for "
                    f"example {head[0][:80]!r}; name kg.delimiter, or another kg.format"
                )
        for block in source.blocks():
            yield read_block(block, delimiter)


def _best(lines: list[str], options: KgOptions) -> tuple[str, float]:
    given = given_delimiter(options)
    shares = {
        cut: sum(bool(pattern.fullmatch(line)) for line in lines) / max(1, len(lines))
        for cut, pattern in _LINES.items()
        if given in (None, cut) and (cut == "," or any(line.count(cut) > 2 for line in lines))
    }
    best = max(shares, key=lambda cut: shares[cut], default=",")
    return best, shares.get(best, 0.0)


def read_block(block: Block, delimiter: str) -> Batch:
    """The statements of some lines and their qualifiers."""
    text = pl.col("text")
    fields = pl.col("fields")
    blank = "^[ \t]*$"
    parts = block.lines.with_columns(fields=text.str.split(delimiter)).with_columns(n=fields.list.len())
    parts = parts.with_columns(
        ignored=text.str.contains(blank) | (text.str.starts_with("#") & (pl.col("n") < 3)),
        reason=pl.when(text.str.contains("[\x00\r]"))
        .then(pl.lit("a NUL or a carriage return within the line"))
        .when(pl.col("n") < 3)
        .then(pl.format("{} field(s) instead of 3 and pairs of qualifiers", "n"))
        .when(pl.col("n") % 2 == 0)
        .then(pl.format("{} fields: the last qualifier has no value", "n"))
        .when(fields.list.eval(pl.element().str.contains(blank)).list.any())
        .then(pl.lit("an empty field")),
    )
    bad = parts.filter(~pl.col("ignored") & pl.col("reason").is_not_null())
    good = parts.filter(~pl.col("ignored") & pl.col("reason").is_null()).with_row_index("row")
    trimmed = [fields.list.get(place).str.strip_chars(BLANKS) for place in range(3)]
    statements = good.select(
        subject=trimmed[0],
        predicate=trimmed[1],
        object=trimmed[2],
        kind=pl.lit(TEXT, dtype=pl.Int8),
        datatype=pl.lit(None, dtype=pl.String),
    ).select(pl.col(name).cast(STATEMENTS[name]) for name in ("subject", "predicate", "object", "kind", "datatype"))
    qualified = good.filter(pl.col("n") > 3).select("row", rest=fields.list.slice(3))
    rest = pl.col("rest")
    pairs = qualified.select("row", relation=rest.list.gather_every(2), value=rest.list.gather_every(2, 1))
    pairs = pairs.explode("relation", "value")
    qualifiers = pairs.select(
        row=pl.col("row").cast(pl.Int64),
        statement=pl.lit(None, dtype=pl.String),
        predicate=pl.col("relation").str.strip_chars(BLANKS),
        object=pl.col("value").str.strip_chars(BLANKS),
        kind=pl.lit(ENTITY, dtype=pl.Int8),
        datatype=pl.lit(None, dtype=pl.String),
        detail=pl.lit(None, dtype=pl.String),
    ).cast(pl.Schema(QUALIFIERS))
    rejects = bad.select("line", "reason", text.str.slice(0, MAX_REJECT_TEXT)).cast(pl.Schema(REJECTS))
    return Batch(
        statements,
        pl.concat([block.rejects, rejects]),
        int(parts["ignored"].sum()),
        block.fraction,
        qualifiers if qualifiers.height else None,
    )
