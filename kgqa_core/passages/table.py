"""Passages on disk: numbered from 0, in tables of so many rows that any one fits into memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from kgqa_core.errors import ArtifactError

ROWS = 100_000
"""Passages of one table."""
FOLDER = "passages"

SCHEMA = {"document": pl.String, "title": pl.String, "text": pl.String}
"""Columns of a table; a passage's number is its place."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a document, with the document's id and title (empty where it has none)."""

    document: str
    title: str
    text: str

    @property
    def told(self) -> str:
        """How it is indexed and read: under its title, unless it begins with that."""
        if not self.title or self.text.startswith(self.title):
            return self.text
        return f"{self.title}: {self.text}"


class Writer:
    """Appends passages to the tables of a folder.  count: passages so far."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.count = folder / FOLDER, 0
        self._rows: list[tuple[str, str, str]] = []
        self.folder.mkdir()

    def add(self, passage: Passage) -> None:
        """One more."""
        self._rows.append((passage.document, passage.title, passage.text))
        self.count += 1
        if len(self._rows) == ROWS:
            self.flush()

    def flush(self) -> None:
        """Writes what is held."""
        if self._rows:
            number = (self.count - 1) // ROWS
            table = pl.DataFrame(self._rows, schema=SCHEMA, orient="row")
            table.write_parquet(self.folder / f"{number:05}.parquet", compression="zstd", statistics=False)
            self._rows = []


class Passages:
    """The passages of an index.  Raises ArtifactError when a table is missing or damaged."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder, self.count = folder / FOLDER, count

    def blocks(self, size: int) -> Iterator[list[str]]:
        """All passages as they are indexed, in their order, at most `size` at a time."""
        for number in range(-(-self.count // ROWS)):
            table = self._read(number)
            for part in table.iter_slices(size):
                yield [Passage(*row).told for row in part.iter_rows()]

    def get(self, numbers: Iterable[int]) -> dict[int, Passage]:
        """Some passages by number."""
        wanted: dict[int, list[int]] = {}
        for number in sorted(set(numbers)):
            wanted.setdefault(number // ROWS, []).append(number)
        found: dict[int, Passage] = {}
        for table, own in wanted.items():
            rows = self._read(table)[[number % ROWS for number in own]].rows()
            found.update((number, Passage(*row)) for number, row in zip(own, rows, strict=True))
        return found

    def _read(self, number: int) -> pl.DataFrame:
        file = self.folder / f"{number:05}.parquet"
        try:
            table = pl.read_parquet(file, columns=list(SCHEMA), glob=False)
        except (OSError, pl.exceptions.PolarsError) as fault:
            raise ArtifactError(f"{file} cannot be read ({fault}); build the passage index again") from None
        if table.height != min(ROWS, self.count - number * ROWS):
            raise ArtifactError(f"{file} has {table.height:,} passages, not as many as its index; build it again")
        return table


def distinct(texts: Sequence[str]) -> tuple[list[str], list[int]]:
    """The different texts, and for each text the place of its like among them."""
    places: dict[str, int] = {}
    which = [places.setdefault(text, len(places)) for text in texts]
    return list(places), which
