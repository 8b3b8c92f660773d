"""Delimiter-separated triples, `head|relation|tail` or TSV: three fields a line and no types.

An object is TEXT: a label where its predicate is configured as one, otherwise an entity with its text as key, so that
a year can be walked through in both directions.  Spaces around a field are stripped.  Only with the delimiter `,` do
double quotes protect a field.  A first line such as `subject,predicate,object` is a header.  A line that begins with
`#` and has not three fields is a comment.

`Statements` reads statements with qualifiers, one a line: `S,P,O[,QP,QV]*`, cut by commas or tabs, as WD50K writes
them. The object and the values of qualifiers are TEXT and keys: there are no literals.  Blank lines are ignored, and
lines that begin with `#` and hold no statement.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator

import polars as pl

from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError
from kgqa_core.kg.formats.api import FormatSpec
from kgqa_core.kg.formats.base import (
    BLANKS,
    ENTITY,
    PLAIN,
    QUALIFIERS,
    STATEMENTS,
    TEXT,
    StatementBatch,
    divided,
    filled,
    odd_text,
)
from kgqa_core.kg.formats.source import Block, Source

CANDIDATES = ("\t", "|", ";")
"""Delimiters that are looked for; a comma is common in names, so that it must be configured."""

_HEADER = (
    {"s", "subject", "head", "subj", "node1", "source"},
    {"p", "r", "predicate", "relation", "rel", "label", "pred", "property"},
    {"o", "object", "tail", "obj", "node2", "target"},
)


class Delimited:
    """Reader of delimiter-separated triples."""

    name = "delimited"

    def sniff(self, lines: list[str], options: KgOptions) -> float:
        """Share of the lines that the best delimiter cuts into three fields."""
        return best_delimiter(lines, options)[1]

    def read(self, source: Source, options: KgOptions) -> Iterator[StatementBatch]:
        """Triples of a delimited file.  Raises KgInputError when no delimiter gives three fields."""
        delimiter = given_delimiter(options)
        if delimiter is None:
            head = source.head()
            delimiter, share = best_delimiter(head, options)
            if head and not share:
                raise KgInputError(
                    f"no delimiter cuts the lines of {source.path} into three fields (tab, '|' and ';' were tried), "
                    f"for example {head[0][:80]!r}; name it, with `--set kg.delimiter=,` for example, or say with "
                    "kg.table which column is what"
                )
        for block in source.blocks():
            yield read_block(block, delimiter)


def given_delimiter(options: KgOptions) -> str | None:
    r"""The configured delimiter, `\t` written out being a tab.  Raises KgInputError when it is empty."""
    if options.delimiter is None:
        return None
    delimiter = options.delimiter.replace("\\t", "\t")
    if not delimiter or "\n" in delimiter:
        raise KgInputError(f"kg.delimiter is {options.delimiter!r}; give a character such as '|', or leave it out")
    return delimiter


def best_delimiter(lines: list[str], options: KgOptions) -> tuple[str, float]:
    """The delimiter that cuts most lines into three fields, and their share; earlier candidates win ties."""
    given = given_delimiter(options)
    candidates = CANDIDATES if given is None else (given,)
    shares = {c: sum(len(_fields(line, c)) == 3 for line in lines) / max(1, len(lines)) for c in candidates}
    best = max(candidates, key=lambda c: (shares[c], -candidates.index(c)))
    return best, shares[best]


def read_block(block: Block, delimiter: str) -> StatementBatch:
    """The triples of some lines."""
    lines = block.lines
    text = pl.col("text")
    parts = lines.with_columns(
        n=text.str.count_matches(delimiter, literal=True) + 1,
        f=text.str.splitn(delimiter, 3),
    ).unnest("f")
    if delimiter == "," and lines["text"].str.contains('"', literal=True).any():
        parts = _quoted(parts)
    parts = parts.with_columns(pl.col("field_0", "field_1", "field_2").str.strip_chars(BLANKS))
    three = pl.col("n") == 3
    full = pl.all_horizontal(pl.col("field_0", "field_1", "field_2") != "")
    header = pl.lit(False)
    if lines.height and lines["line"][0] == 1:
        header = pl.col("line") == 1
        for column, words in zip(("field_0", "field_1", "field_2"), _HEADER, strict=True):
            header = header & pl.col(column).str.to_lowercase().is_in(sorted(words))
    parts = parts.with_columns(
        ignored=(text.str.strip_chars() == "") | (~three & text.str.starts_with("#")) | (three & header),
        reason=odd_text("line")
        .when(~three)
        .then(pl.format("{} field(s) instead of 3", "n"))
        .when(~full)
        .then(pl.lit("an empty field")),
    )
    good, rejects = divided(parts.filter(~pl.col("ignored")))
    triples = good.select(subject="field_0", predicate="field_1", object="field_2", kind=pl.lit(TEXT))
    return StatementBatch(
        filled(triples, STATEMENTS, PLAIN),
        pl.concat([block.rejects, rejects]),
        int(parts["ignored"].sum()),
        block.fraction,
    )


def _fields(line: str, delimiter: str) -> list[str]:
    if delimiter == "," and '"' in line:
        return next(csv.reader([line]), [])
    return line.split(delimiter)


def _quoted(parts: pl.DataFrame) -> pl.DataFrame:
    """The rows with a double quote, cut again as CSV."""
    quoted = parts["text"].str.contains('"', literal=True)
    rows = []
    for line, text in parts.filter(quoted).select("line", "text").iter_rows():
        fields = _fields(text, ",")
        rows.append((line, text, len(fields), *[*fields, "", "", ""][:3]))
    again = pl.DataFrame(rows, schema=parts.schema, orient="row")
    return pl.concat([parts.filter(~quoted), again]).sort("line")


_KEY = r"[QPL][1-9][0-9]*(?:-[FS][1-9][0-9]*)?"
_LINES = {cut: re.compile(rf" *{_KEY} *(?:{cut} *P[1-9][0-9]* *{cut}[^{cut}]+)+") for cut in (",", "\t")}


class Statements:
    """Reader of statements with qualifiers."""

    name = "statements"

    def sniff(self, lines: list[str], options: KgOptions) -> float:
        """Share of the lines that hold Wikidata's keys so; none of lines with tabs if no line has a qualifier."""
        return _best(lines, options)[1]

    def read(self, source: Source, options: KgOptions) -> Iterator[StatementBatch]:
        """The statements of a file.  Raises KgInputError when neither commas nor tabs cut its lines."""
        delimiter = given_delimiter(options)
        if delimiter is None:
            head = source.head()
            delimiter = max((",", "\t"), key=lambda cut: sum(line.count(cut) >= 2 for line in head))
            if head and not any(line.count(delimiter) >= 2 for line in head):
                raise KgInputError(
                    f"neither commas nor tabs cut the lines of {source.path} into subject, predicate and object, for "
                    f"example {head[0][:80]!r}; `--set kg.delimiter=CHARACTER` or `--format NAME`"
                )
        for block in source.blocks():
            yield read_statements(block, delimiter)


def _best(lines: list[str], options: KgOptions) -> tuple[str, float]:
    given = given_delimiter(options)
    shares = {
        cut: sum(bool(pattern.fullmatch(line)) for line in lines) / max(1, len(lines))
        for cut, pattern in _LINES.items()
        if given in (None, cut) and (cut == "," or any(line.count(cut) > 2 for line in lines))
    }
    best = max(shares, key=lambda cut: shares[cut], default=",")
    return best, shares.get(best, 0.0)


def read_statements(block: Block, delimiter: str) -> StatementBatch:
    """The statements of some lines and their qualifiers."""
    text = pl.col("text")
    fields = pl.col("fields")
    blank = "^[ \t]*$"
    parts = block.lines.with_columns(fields=text.str.split(delimiter)).with_columns(n=fields.list.len())
    parts = parts.with_columns(
        ignored=text.str.contains(blank) | (text.str.starts_with("#") & (pl.col("n") < 3)),
        reason=odd_text("line")
        .when(pl.col("n") < 3)
        .then(pl.format("{} field(s) instead of 3 and pairs of qualifiers", "n"))
        .when(pl.col("n") % 2 == 0)
        .then(pl.format("{} fields: the last qualifier has no value", "n"))
        .when(fields.list.eval(pl.element().str.contains(blank)).list.any())
        .then(pl.lit("an empty field")),
    )
    good, rejects = divided(parts.filter(~pl.col("ignored")))
    good = good.with_row_index("row")
    subject, predicate, thing = (fields.list.get(index).str.strip_chars(BLANKS) for index in range(3))
    triples = good.select(subject=subject, predicate=predicate, object=thing, kind=pl.lit(TEXT))
    qualified = good.filter(pl.col("n") > 3).select("row", rest=fields.list.slice(3))
    rest = pl.col("rest")
    pairs = qualified.select("row", predicate=rest.list.gather_every(2), object=rest.list.gather_every(2, 1))
    pairs = pairs.explode("predicate", "object").with_columns(
        pl.col("predicate", "object").str.strip_chars(BLANKS), kind=pl.lit(ENTITY)
    )
    return StatementBatch(
        filled(triples, STATEMENTS, PLAIN),
        pl.concat([block.rejects, rejects]),
        int(parts["ignored"].sum()),
        block.fraction,
        filled(pairs, QUALIFIERS) if pairs.height else None,
    )


DELIMITED = FormatSpec(
    Delimited,
    "three fields a line, cut by tab, '|', ';' or kg.delimiter",
    endings=(".tsv", ".csv", ".psv"),
    name_suffices=True,
)


STATEMENT_LINES = FormatSpec(Statements, "S,P,O and pairs of qualifier and value, as WD50K writes them", specific=True)
