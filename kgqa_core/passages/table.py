"""Passages: cut from documents, numbered from 0, in tables of so many rows that any one fits into memory.

A passage is so many words that never cross documents (Karpukhin et al. 2020; KILT).  A word is what stands between
blanks.  Scripts without blanks (Han, kana, Thai, Lao, Burmese, Khmer) are counted by characters, two to a word, for a
Chinese word has one or two; signs that close or open a phrase and marks on a letter stay with their character.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from kgqa_core.errors import ArtifactError
from kgqa_core.store.tables import read_frame

UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Characters of scripts without blanks between words, as the inside of a class of a regular expression."""
LONGEST_WORD = 100
"""Characters; what is longer is no word and is cut."""
_MARKS = (
    "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ecd\u102b-\u103e\u17b4-\u17d3\u3099\u309a"
    "\ufe00-\ufe0f"
)
_OPEN, _CLOSE = "「『（【《〈〔“‘(", "、。，．！？；：」』）】》〉〕”’…—,.!?;:)"
_UNIT = re.compile(
    rf"[{re.escape(_OPEN)}]*(?P<unspaced>[{UNSPACED}])[{_MARKS}{re.escape(_CLOSE)}]*|[^\s{UNSPACED}]{{1,{LONGEST_WORD}}}"
)


def chunk(text: str, words: int) -> list[str]:
    """The passages of a text in one line, `words` words each but for the last.

    >>> chunk("one two three four five", 2)
    ['one two', 'three four', 'five']
    >>> chunk("北京是中国的首都。它很大。", 3)
    ['北京是中国的', '首都。它很大。']
    """
    pieces: list[str] = []
    begin = end = room = 0
    for unit in _UNIT.finditer(text):
        weight = 1 if unit["unspaced"] else 2
        if room < weight:
            if end > begin:
                pieces.append(text[begin:end])
            begin, room = unit.start(), 2 * words
        end, room = unit.end(), room - weight
    if end > begin:
        pieces.append(text[begin:end])
    return pieces


ROWS = 100_000
"""Passages of one table."""
FOLDER = "passages"
SCHEMA = {"document": pl.String, "title": pl.String, "text": pl.String}
"""Columns of a table; a passage's number is its position."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a document, with the document's id and title (empty where it has none)."""

    document: str
    title: str
    text: str

    @property
    def titled_text(self) -> str:
        """The text that is indexed and read: after its title, unless it begins with that."""
        if not self.title or self.text.startswith(self.title):
            return self.text
        return f"{self.title}: {self.text}"


class PassageWriter:
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
                yield [Passage(*row).titled_text for row in part.iter_rows()]

    def get(self, numbers: Iterable[int]) -> dict[int, Passage]:
        """Some passages by number."""
        wanted: dict[int, list[int]] = {}
        for number in sorted(set(numbers)):
            wanted.setdefault(number // ROWS, []).append(number)
        passages: dict[int, Passage] = {}
        for table, own in wanted.items():
            rows = self._read(table)[[number % ROWS for number in own]].rows()
            passages.update((number, Passage(*row)) for number, row in zip(own, rows, strict=True))
        return passages

    def _read(self, number: int) -> pl.DataFrame:
        file = self.folder / f"{number:05}.parquet"
        table = read_frame(file, list(SCHEMA))
        if table.height != min(ROWS, self.count - number * ROWS):
            raise ArtifactError(f"{file} has {table.height:,} passages, not as many as its index; build it again")
        return table


def distinct(texts: Sequence[str]) -> tuple[list[str], list[int]]:
    """The different texts, and for each text the index of its like among them."""
    index_of: dict[str, int] = {}
    which = [index_of.setdefault(text, len(index_of)) for text in texts]
    return list(index_of), which


RankedPassages = list[tuple[int, float]]
"""(passage, score), best first, ties by passage."""
