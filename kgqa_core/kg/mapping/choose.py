"""Which files of a build are tables of one database, and the mapping that reads them: that of `kg.map`, or a guess."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

import duckdb

from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError, nearest
from kgqa_core.kg.formats import tables
from kgqa_core.kg.formats.csv_rows import cut, likely_delimiter, listed
from kgqa_core.kg.formats.delimited import DELIMITED
from kgqa_core.kg.formats.detect import PACKED, reader_of
from kgqa_core.kg.formats.names import FORMAT as NAMES
from kgqa_core.kg.formats.source import Source
from kgqa_core.kg.mapping.guess import guess
from kgqa_core.kg.mapping.model import Mapping, check_mapping, read_mapping
from kgqa_core.kg.mapping.read import MappedTable
from kgqa_core.kg.mapping.sample import Table, header_of, sample
from kgqa_core.kg.mapping.words import base_words, is_reference


@dataclass
class MappedTables:
    """The tables of a build, by path.  notes: what was guessed of them, or left out; given: by `kg.map`."""

    mapping: Mapping | None = None
    tables: dict[Path, MappedTable] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    given: bool = False

    def complete(self, connection: duckdb.DuckDBPyConnection, meta: dict[str, Any]) -> list[str]:
        """Records the mapping in a graph's meta; what reading showed, in words.  `kg` is the graph's database."""
        if self.mapping is None:
            return []
        given = {"given": True} if self.given else {}
        meta["tables"] = {"notes": self.notes} | given | self.mapping.model_dump(mode="json", exclude_defaults=True)
        notes = []
        for mapped in self.tables.values():
            table = mapped.table
            if mapped.mended:
                notes.append(f"{table.file}: in {mapped.mended:,} rows a delimiter before a space is read as text")
            typed = (
                "SELECT count(*) FROM (SELECT DISTINCT entity FROM kg.types) t JOIN kg.entities e ON e.id = t.entity"
            )
            (entities,) = connection.execute(f"{typed} WHERE starts_with(e.key, ?)", [f"{mapped.name}/"]).fetchall()[0]
            if table.type and not table.link and entities < mapped.rows:
                notes.append(
                    f"{table.file}: {mapped.rows:,} rows are {entities:,} entities, for rows share the key "
                    f"{' + '.join(table.key)}; name more columns under `key` (kg.map)"
                )
        return notes


def mapped_tables(sources: Sequence[Source], options: KgOptions) -> MappedTables:
    """The tables among some sources.

    With `kg.map` those that it names; without it several tables whose columns nothing else says.  Raises KgInputError
    for a mapping at fault, and for one whose tables are not among the sources.
    """
    if options.map is not None:
        return _by_file(sources, options, Path(options.map).expanduser())
    if options.format != "auto" or options.columns or tables.named_columns(options):
        return MappedTables()
    candidates = [source for source in sources if is_table(source, options)]
    if len(candidates) < 2:
        return MappedTables()
    mapping, notes = guess_of(candidates, options)
    named = zip(candidates, mapping.tables, strict=True)
    advice = "the tables are read by this guess; `kgqa kg map FILES > map.yaml` writes it down, to be edited"
    return MappedTables(mapping, {s.path: MappedTable(s, name, mapping) for s, name in named}, [*notes, advice])


def guess_of(sources: Sequence[Source], options: KgOptions) -> tuple[Mapping, list[str]]:
    """The mapping that is guessed for some sources, its tables in their order, and what was guessed, in words."""
    samples: dict[str, Table] = {}
    for source in sources:
        name = PurePath(source.path.name.removesuffix("".join(s for s in source.path.suffixes if s in PACKED))).stem
        while name in samples:
            name += "_"
        samples[name] = sample(name, source, options, len(sources))
    return guess(list(samples.values()))


def _by_file(sources: Sequence[Source], options: KgOptions, path: Path) -> MappedTables:
    mapping = read_mapping(path)
    by_name = {name: source for source in sources for name in (source.path.name, source.label)}
    files = [table.file for table in mapping.tables.values()]
    if lacking := [file for file in files if file not in by_name or files.count(file) > 1]:
        raise KgInputError(
            f"{path} maps {listed(lacking)}, which kg.files does not name, or two tables read"
            f"{nearest(lacking[0], by_name)}; name each file once, or take its table out of the mapping"
        )
    headers = {name: header_of(by_name[table.file], options) for name, table in mapping.tables.items()}
    check_mapping(mapping, headers, path)
    notes = [
        f"{table.file}: left out, as {path.name} does not list them: {listed(unread)}"
        for name, table in mapping.tables.items()
        if (unread := [column for column in headers[name] if column not in {*table.columns, *table.key, *table.name}])
    ]
    named = [(by_name[table.file], name) for name, table in mapping.tables.items()]
    return MappedTables(mapping, {s.path: MappedTable(s, name, mapping) for s, name in named}, notes, given=True)


def is_table(source: Source, options: KgOptions) -> bool:
    """Whether a source is a table with a header that no reader understands by itself."""
    if source.is_parquet:
        return True
    head = source.head(20)
    if len(head) < 2:
        return False
    delimiter = likely_delimiter(head[0], (), options)
    header = cut(head[0], delimiter)
    plain = all(len(name) <= 64 and not set(name) & set('<>{}[]":/@') for name in header)
    numeric = any(name.replace(".", "").isdigit() for name in header)
    if len(header) < 2 or not plain or numeric or len(cut(head[1], delimiter)) < len(header) / 2:
        return False
    try:
        reader = reader_of(source, options)
    except KgInputError:
        return True
    keyed = is_reference(header[0]) and base_words(header[0]) != base_words(header[-1])
    return reader.name in (DELIMITED.name, NAMES.name) and keyed
