"""A graph file read by its reader alone, and Wikidata's entities in JSON made by hand."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core.config import KgOptions
from kgqa_core.kg.formats.base import REJECTS, StatementBatch, empty
from kgqa_core.kg.formats.detect import reader_of
from kgqa_core.kg.formats.source import Chunk, Source
from kgqa_core.kg.formats.wikidata.json import read_plainly, read_quickly


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


ENTITY_IRI = "http://www.wikidata.org/entity/"


def snak(property_: str, value: Any, form: str = "string", datatype: str | None = "string") -> dict[str, Any]:
    found = {"snaktype": "value", "property": property_, "hash": "0a", "datavalue": {"value": value, "type": form}}
    return found if datatype is None else {**found, "datatype": datatype}


def claim(main: dict[str, Any], rank: str = "normal", qualifiers: Any = None, id: str = "Q1$a") -> dict[str, Any]:
    found: dict[str, Any] = {"mainsnak": main, "type": "statement", "id": id, "rank": rank}
    if qualifiers is not None:
        found |= {"qualifiers": qualifiers, "qualifiers-order": list(qualifiers)}
    return {**found, "references": [{"hash": "1", "snaks": {"P248": [main]}, "snaks-order": ["P248"]}]}


def item(key: str, **members: Any) -> dict[str, Any]:
    site = {"enwiki": {"site": "enwiki", "title": "x", "badges": [], "url": None}}
    return {"type": "item", "id": key, **members, "sitelinks": site, "lastrevid": 5}


def dump(entities: list[Any], escaped: bool = True) -> bytes:
    """An array with an entity a line; escaped: ASCII and `\\/`, as Wikidata writes it."""
    lines = [json.dumps(entity, separators=(",", ":"), ensure_ascii=escaped) for entity in entities]
    if escaped:
        lines = [line.replace("/", "\\/") for line in lines]
    return ("[\n" + ",\n".join(lines) + "\n]\n").encode()


def canonical(batch: StatementBatch) -> tuple[Any, ...]:
    """What a batch says, whatever the order of its rows."""
    statements = batch.statements.with_row_index("row").with_columns(pl.col("row").cast(pl.Int64))
    assert batch.qualifiers is not None
    of = statements.select("row", *(pl.col(name).alias(f"of {name}") for name in batch.statements.columns))
    marks = batch.qualifiers.join(of, on="row", how="left").drop("row")
    return (
        batch.statements.sort(pl.all(), nulls_last=True),
        marks.sort(pl.all(), nulls_last=True),
        batch.rejects.sort(pl.all()),
        batch.ignored,
        dict(batch.filtered),
    )


def differences(data: bytes, languages: frozenset[str] | None = None) -> list[str]:
    """Where the fast road and the plain one do not say the same, with and without copies of the bytes."""
    chunk = Chunk(data, 1, 1.0, empty(REJECTS))
    wanted = canonical(read_plainly(chunk, languages))
    found: list[str] = []
    free: deque[Any] = deque()
    for threshold in (1 << 16, 0, 0):
        batch = read_quickly(chunk, languages, free, threshold)
        for name, mine, theirs in zip(
            ("statements", "qualifiers", "rejects", "ignored", "filtered"), canonical(batch), wanted, strict=True
        ):
            same = (
                mine.schema == theirs.schema and mine.equals(theirs)
                if isinstance(mine, pl.DataFrame)
                else mine == theirs
            )
            if not same:
                found.append(f"{name}, from {threshold} bytes:\n{mine}\n{theirs}")
    return found


def both_roads(data: bytes, languages: frozenset[str] | None = None) -> StatementBatch:
    """The plain road's batch, once the fast one is seen to say the same."""
    assert not differences(data, languages)
    return read_plainly(Chunk(data, 1, 1.0, empty(REJECTS)), languages)
