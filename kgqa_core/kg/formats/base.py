"""What a reader of a graph format is: it turns a source into batches of statements, set-wise.

A reader makes no Python object per statement on its usual path.  Every statement that it reads ends up in exactly one
place: a row of `statements`, a row of `rejects`, or a count of `filtered`; comments and blank lines are `ignored`.
What is unread beyond the rejects, because a fault hides where statements begin, is estimated as `unread`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import polars as pl

from kgqa_core.config import KgOptions
from kgqa_core.kg.formats.source import Source

if TYPE_CHECKING:
    from kgqa_core.kg.formats.spans import SpanBatch

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
"""Columns of qualifiers.  row: place of their statement in the same batch, or null where `statement` names it."""

REJECTS: dict[str, pl.DataType] = {"line": pl.Int64(), "reason": pl.String(), "text": pl.String()}
"""Columns of rejects; lines count from 1, text is cut at MAX_REJECT_TEXT characters."""

MAX_REJECT_TEXT = 500


def empty(schema: dict[str, pl.DataType]) -> pl.DataFrame:
    """A frame without rows."""
    return pl.DataFrame(schema=schema)


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


class FormatReader(Protocol):
    """A graph format."""

    name: str
    """What `kg.format` calls it."""

    def sniff(self, lines: list[str], options: KgOptions) -> float:
        """Share of a source's first lines (no comments, no blank ones) that this reader understands, in [0, 1]."""
        ...

    def read(self, source: Source, options: KgOptions) -> Iterator[StatementBatch | SpanBatch]:
        """The statements of a source in pieces.  Raises KgInputError when the source cannot be read to its end."""
        ...


@dataclass(frozen=True, slots=True)
class FormatSpec:
    """A graph format of the registry: its reader, and how a file is recognised besides what `FormatReader.sniff` says.

    reader: the class, made without arguments.  label: one line for `kgqa kg formats`.  endings: of file names, those
    of compression aside.  words: in file names, between dots, hyphens and underscores; a word says more than an ending.
    specific: the reader knows more of a file than its syntax; where it understands most of a file, it reads it.
    name_suffices: the name of a file alone may choose it, for each bad line is a reject that says what it lacks.
    ending_decides: what is no statement of the format is a bad line, not another syntax.
    """

    reader: Callable[[], FormatReader]
    label: str
    endings: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    specific: bool = False
    name_suffices: bool = False
    ending_decides: bool = False

    @property
    def name(self) -> str:
        """What `kg.format` calls it."""
        return self.reader().name
