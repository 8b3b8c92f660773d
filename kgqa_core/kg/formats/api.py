"""What a reader of a graph format is: it turns a source into batches of statements, set-wise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from kgqa_core.config import KgOptions
from kgqa_core.kg.formats.base import StatementBatch
from kgqa_core.kg.formats.source import Source

if TYPE_CHECKING:
    from kgqa_core.kg.formats.spans import SpanBatch


class FormatReader(Protocol):
    """A graph format."""

    name: str
    """What `kg.format` calls it."""

    def sniff(self, lines: list[str], options: KgOptions) -> float:
        """Share of a source's first lines (no comments, no blank ones) that this reader understands, in [0, 1]."""

    def read(self, source: Source, options: KgOptions) -> Iterator[StatementBatch | SpanBatch]:
        """The statements of a source in pieces.  Raises KgInputError when the source cannot be read to its end."""


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
