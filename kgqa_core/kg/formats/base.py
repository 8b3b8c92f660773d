"""What a reader of a graph format is: it turns a source into batches of statements, set-wise.

A reader makes no Python object per statement on its usual path.  Every line that it reads ends up in exactly one of
three places: a row of `statements`, a row of `rejects`, or the count `ignored` (comments and blank lines).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import polars as pl

from kgqa_core.config import KgOptions
from kgqa_core.kg.formats.source import Source

ENTITY, LITERAL, TEXT = 0, 1, 2
"""Kinds of object.  TEXT has no type: a label if its predicate says so, otherwise an entity."""

STATEMENTS: dict[str, pl.DataType] = {
    "subject": pl.String(),
    "predicate": pl.String(),
    "object": pl.String(),
    "kind": pl.Int8(),
    "datatype": pl.String(),
}
"""Columns of statements.

subject, predicate, object: keys; an IRI stands without brackets, a blank node as `_:label`, a literal by its lexical
form.  kind: ENTITY, LITERAL or TEXT.  datatype: of a literal its IRI, or `@` and its language in lower case; else null.
A format with ranks or qualifiers adds columns; absent ones mean a normal rank and none.
"""

REJECTS: dict[str, pl.DataType] = {"line": pl.Int64(), "reason": pl.String(), "text": pl.String()}
"""Columns of rejects; lines count from 1, text is cut at MAX_REJECT_TEXT characters."""

MAX_REJECT_TEXT = 500


def empty(schema: dict[str, pl.DataType]) -> pl.DataFrame:
    """A frame without rows."""
    return pl.DataFrame(schema=schema)


@dataclass(frozen=True, slots=True)
class Batch:
    """One piece of a source, read.

    ignored: comments and blank lines.  fraction: share of the source's bytes read so far, in [0, 1].
    """

    statements: pl.DataFrame
    rejects: pl.DataFrame = field(default_factory=lambda: empty(REJECTS))
    ignored: int = 0
    fraction: float = 0.0


class Reader(Protocol):
    """A graph format."""

    name: str
    """What `kg.format` calls it."""

    def sniff(self, lines: list[str], options: KgOptions) -> float:
        """Share of a source's first lines (no comments, no blank ones) that this reader understands, in [0, 1]."""
        ...

    def read(self, source: Source, options: KgOptions) -> Iterator[Batch]:
        """The statements of a source in pieces.  Raises KgInputError when the source cannot be read to its end."""
        ...
