"""A graph file read by its reader alone, without a build."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core.config import KgOptions
from kgqa_core.kg.formats.detect import reader_of
from kgqa_core.kg.formats.source import Source


@dataclass
class Read:
    """Everything that a reader gave, counted as base.Batch has it."""

    format: str
    statements: pl.DataFrame
    qualifiers: pl.DataFrame
    rejects: list[tuple[int, str, str]]
    ignored: int = 0
    filtered: dict[str, int] = field(default_factory=dict)
    unread: int = 0

    @property
    def total(self) -> int:
        """Statements read."""
        return self.statements.height + len(self.rejects) + sum(self.filtered.values())

    def triples(self) -> list[tuple[str, str, str]]:
        return self.statements.select("subject", "predicate", "object").rows()

    def rows(self, *columns: str) -> list[tuple[Any, ...]]:
        return self.statements.select(*columns).rows()


def read(path: Path, **options: Any) -> Read:
    """Reads a file by the reader that detection finds; rows of qualifiers count over the whole file."""
    given = KgOptions(**options)
    source = Source(path, path.name)
    reader = reader_of(source, given)
    found = Read(reader.name, pl.DataFrame(), pl.DataFrame(), [])
    statements, qualifiers, rejects = [], [], []
    before = 0
    for batch in reader.read(source, given):
        statements.append(batch.statements)
        rejects += batch.rejects.rows()
        found.ignored += batch.ignored
        found.unread += batch.unread
        for rule, count in batch.filtered.items():
            found.filtered[rule] = found.filtered.get(rule, 0) + count
        if batch.qualifiers is not None:
            qualifiers.append(batch.qualifiers.with_columns(pl.col("row") + before))
        before += batch.statements.height
    found.rejects = sorted(rejects)
    found.statements = pl.concat(statements, how="diagonal") if statements else pl.DataFrame()
    found.qualifiers = pl.concat(qualifiers) if qualifiers else pl.DataFrame()
    return found


def read_text(tmp_path: Path, text: str | bytes, name: str, **options: Any) -> Read:
    """Writes a file and reads it."""
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read(path, **options)
