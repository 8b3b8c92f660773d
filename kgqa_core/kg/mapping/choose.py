"""Which files of a build are tables of one database, and the mapping that reads them: that of `kg.map`, or a guess."""

from __future__ import annotations

from collections.abc import Mapping as AnyMapping
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
from kgqa_core.kg.mapping.model import Mapping, check_columns, read_mapping
from kgqa_core.kg.mapping.read import MappedTable
from kgqa_core.kg.mapping.sample import Table, header_of, sample
from kgqa_core.kg.mapping.words import base_words, is_reference

ENDINGS = (".csv", ".tsv", ".tab", ".parquet")
"""Of the files in a folder that `kgqa kg map` looks at."""


@dataclass
class MappedTables:
    """The tables of a build, by path.  notes: what was guessed; origin: the mapping's file, if it was not."""

    mapping: Mapping | None = None
    tables: AnyMapping[Path, MappedTable] = field(default_factory=dict)
    notes: Sequence[str] = ()
    origin: str | None = None

    def complete(self, connection: duckdb.DuckDBPyConnection, meta: dict[str, Any]) -> list[str]:
        """Records the mapping in a graph's meta; what its rows show to be wrong, in words.  `kg` is its database."""
        if self.mapping is None:
            return []
        meta["tables"] = {"guessed": list(self.notes)} | self.mapping.model_dump(mode="json", exclude_defaults=True)
        notes = []
        for mapped in self.tables.values():
            if mapped.mended:
                notes.append(
                    f"{mapped.table.file}: in {mapped.mended:,} rows a delimiter before a space is read as text"
                )
            if mapped.table.link:
                continue
            start = f"{mapped.name}/"
            entities = connection.execute(
                "SELECT count(*) FROM (SELECT DISTINCT entity FROM kg.types) t JOIN kg.entities e ON e.id = t.entity "
                "WHERE starts_with(e.key, ?)", [start]
            ).fetchone()  # fmt: skip
            if mapped.table.type and entities is not None and entities[0] < mapped.rows:
                notes.append(
                    f"{mapped.table.file}: {mapped.rows:,} rows are {entities[0]:,} entities, for rows share the key "
                    f"{' + '.join(mapped.table.key)}; name more columns under `key` (kg.map)"
                )
        return notes


def mapped_tables(sources: Sequence[Source], options: KgOptions) -> MappedTables:
    """The tables among some sources.

    With `kg.map` those that it names; without it several tables whose columns nothing else says.  Raises KgInputError
    for a mapping at fault, and for one whose tables are not among the sources.
    """
    if options.map is not None:
        return _by_file(sources, options, options.map)
    if options.format != "auto" or options.columns or tables.named_columns(options):
        return MappedTables()
    candidates = [source for source in sources if _is_table(source, options)]
    if len(candidates) < 2:
        return MappedTables()
    mapping, notes = guess_of(candidates, options)
    by_file = dict(zip(mapping.tables, candidates, strict=True))
    mapped = {source.path: MappedTable(source, name, mapping) for name, source in by_file.items()}
    return MappedTables(mapping, mapped, notes)


def guess_of(sources: Sequence[Source], options: KgOptions) -> tuple[Mapping, list[str]]:
    """The mapping that is guessed for some sources, its tables in their order, and what was guessed."""
    samples: list[Table] = []
    for source in sources:
        name = PurePath(source.path.name.removesuffix("".join(s for s in source.path.suffixes if s in PACKED))).stem
        taken = {table.name for table in samples}
        while name in taken:
            name += "_"
        samples.append(sample(name, source, options, len(sources)))
    return guess(samples)


def files_in(folder: Path) -> list[Path]:
    """The tables in a folder.  Raises KgInputError where there is none."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and set(path.suffixes) & set(ENDINGS))
    if not files:
        raise KgInputError(f"{folder} holds no table ({', '.join(ENDINGS)}); name the files")
    return files


def _by_file(sources: Sequence[Source], options: KgOptions, path: str) -> MappedTables:
    mapping = read_mapping(Path(path).expanduser())
    by_name = {name: source for source in sources for name in (source.path.name, source.label)}
    lacking = [table.file for table in mapping.tables.values() if table.file not in by_name]
    if lacking:
        raise KgInputError(
            f"{path} maps {listed(lacking)}, which kg.files does not name{nearest(lacking[0], by_name)}; name the "
            "files, or take their tables out of the mapping"
        )
    headers = {name: header_of(by_name[table.file], options) for name, table in mapping.tables.items()}
    check_columns(mapping, headers, path)
    notes = [
        f"{table.file}: left out, as {path} does not list them: {listed(unread)}"
        for name, table in mapping.tables.items()
        if (unread := [column for column in headers[name] if column not in {*table.columns, *table.key, *table.name}])
    ]
    mapped = {
        by_name[table.file].path: MappedTable(by_name[table.file], name, mapping)
        for name, table in mapping.tables.items()
    }
    return MappedTables(mapping, mapped, notes, path)


def _is_table(source: Source, options: KgOptions) -> bool:
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
