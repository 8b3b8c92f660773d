"""What readers of graph formats make of a source: batches of statements, with their columns.

A reader makes no Python object per statement on its usual path.  Every statement that it reads ends up in exactly one
place: a row of `statements`, a row of `rejects`, or a count of `filtered`; comments and blank lines are `ignored`.
What is unread beyond the rejects, because a fault hides where statements begin, is estimated as `unread`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import polars as pl
from polars.expr.whenthen import Then

ENTITY, LITERAL, TEXT = 0, 1, 2
"""Kinds of object.  TEXT has no type: a label if its predicate says so, otherwise an entity."""

CONTROL = "".join(map(chr, range(1, 0x20))) + "\x7f"
"""Characters that are stripped from both ends of a key, line ends among them."""

BLANKS = " " + CONTROL
"""What is stripped from both ends of a field that is cut by a delimiter."""

TERM: dict[str, pl.DataType] = {
    "object": pl.String(),
    "kind": pl.Int8(),
    "datatype": pl.String(),
    "detail": pl.String(),
}
"""Columns that describe an object.

object: a key; an IRI stands without brackets, a blank node as `_:label`, a literal by its lexical form.
kind: ENTITY, LITERAL or TEXT.  datatype: of a literal its IRI, or `@` and its language in lower case; else null.
detail: what else identifies a literal, else null: a quantity's unit (a key); a time's precision and calendar,
`11 gregorian`.
"""

STATEMENTS: dict[str, pl.DataType] = {
    "subject": pl.String(),
    "predicate": pl.String(),
    **TERM,
    "rank": pl.Int8(),
    "statement": pl.String(),
}
"""Columns of statements; a reader without details, ranks or statement names leaves those columns out.

rank: -1 deprecated, 0 normal, 1 preferred.  statement: a name by which qualifiers elsewhere refer to it, or null.
"""

PLAIN = ("subject", "predicate", "object", "kind", "datatype")
"""The columns of statements that every reader fills."""

QUALIFIERS: dict[str, pl.DataType] = {
    "row": pl.Int64(),
    "statement": pl.String(),
    "predicate": pl.String(),
    **TERM,
}
"""Columns of qualifiers.  row: index of their statement in the same batch, or null where `statement` names it."""

REJECTS: dict[str, pl.DataType] = {"line": pl.Int64(), "reason": pl.String(), "text": pl.String()}
"""Columns of rejects; lines count from 1, text is cut at MAX_REJECT_TEXT characters."""

MAX_REJECT_TEXT = 500


def empty(schema: dict[str, pl.DataType]) -> pl.DataFrame:
    """A frame without rows."""
    return pl.DataFrame(schema=schema)


def filled(rows: pl.DataFrame, schema: dict[str, pl.DataType], names: Iterable[str] | None = None) -> pl.DataFrame:
    """The rows with the columns of a schema, or those that are named; columns that they lack are null."""
    return rows.select(
        pl.col(name).cast(schema[name]) if name in rows.columns else pl.lit(None, dtype=schema[name]).alias(name)
        for name in (schema if names is None else names)
    )


def odd_text(what: str) -> Then:
    """The reason against a `text` with characters that no key can have, else null."""
    odd = pl.col("text").str.contains("[\0\r]")
    return pl.when(odd).then(pl.lit(f"a NUL or a carriage return within the {what}"))


def divided(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows without a `reason`, and the others as REJECTS; they have `line` and `text`."""
    bad = rows.filter(pl.col("reason").is_not_null())
    rejects = bad.select("line", "reason", pl.col("text").str.slice(0, MAX_REJECT_TEXT)).cast(pl.Schema(REJECTS))
    return rows.filter(pl.col("reason").is_null()), rejects


@dataclass(frozen=True, slots=True)
class StatementBatch:
    """One piece of a source, read: statements = rows of `statements` + rows of `rejects` + the sum of `filtered`.

    ignored: comments and blank lines.  fraction: share of the source's bytes read so far, in [0, 1].
    qualifiers: as QUALIFIERS.  filtered: statements that the reader itself left out, by rule.  unread: about how many
    statements were lost together with those in `rejects`; they are in none of the others.
    """

    statements: pl.DataFrame
    rejects: pl.DataFrame = field(default_factory=lambda: empty(REJECTS))
    ignored: int = 0
    fraction: float = 0.0
    qualifiers: pl.DataFrame | None = None
    filtered: Mapping[str, int] = field(default_factory=dict)
    unread: int = 0

    @property
    def height(self) -> int:
        """Rows of `statements`."""
        return self.statements.height
