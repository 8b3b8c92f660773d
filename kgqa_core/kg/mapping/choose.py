"""Which files of a build are tables of one database, and the mapping that reads them: that of `kg.map`, or a guess."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any

import duckdb

from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError, nearest
from kgqa_core.kg.formats import tables
from kgqa_core.kg.formats.csv_rows import DELIMITERS, cut, likely_delimiter, listed
from kgqa_core.kg.formats.delimited import DELIMITED
from kgqa_core.kg.formats.detect import PACKED, reader_of
from kgqa_core.kg.formats.names import FORMAT as NAMES
from kgqa_core.kg.formats.nested_json import FORMAT, nesting_of
from kgqa_core.kg.formats.source import Source
from kgqa_core.kg.formats.tables import parquet_schema
from kgqa_core.kg.formats.triple_tables import FORMAT as TRIPLES
from kgqa_core.kg.formats.triple_tables import roles_of
from kgqa_core.kg.mapping.guess import guess
from kgqa_core.kg.mapping.model import Mapping, check_mapping, read_mapping
from kgqa_core.kg.mapping.read import MappedTable
from kgqa_core.kg.mapping.sample import Table, header_of, sample
from kgqa_core.kg.words import base_words, is_reference

JOINED, FEW = 0.2, 3
"""Share of a table's keys that files of triples about its rows name; rows whose datatypes show that a header is one."""
_COLUMNS = frozenset(
    "id name title key code date year age email price cost salary amount country city address phone status team "
    "department category role position company type manager boss owner born start end number".split()
)
"""What columns of tables are called, by the last word."""


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
            prefix = mapped.mapping.prefix(mapped.name)
            (entities,) = connection.execute(f"{typed} WHERE starts_with(e.key, ?)", [prefix]).fetchall()[0]
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
    if options.format not in ("auto", FORMAT.name) or options.columns or tables.named_columns(options):
        return MappedTables()
    candidates = tables_among(sources, options)
    if not candidates:
        return MappedTables()
    mapping, notes = guess_of(candidates, options, sources)
    named = zip(candidates, mapping.tables, strict=True)
    files = Path(options.files[0]).name if len(options.files) == 1 else "FILES"
    alone = candidates[0] if len(candidates) == 1 else None
    advice = f"to change it: `kgqa kg map {files} > map.yaml`, edit that, add `--map map.yaml`"
    if alone and not alone.is_parquet and len(header := header_of(alone, options)) == 3:
        delimiter = likely_delimiter(alone.head(1)[0], header, options)
        advice += f"; were it triples: `--set kg.format=delimited --set kg.delimiter='{delimiter}'`"
    notes[-1] += f"; {advice}"
    return MappedTables(mapping, _tables(named, mapping), notes)


def tables_among(sources: Sequence[Source], options: KgOptions) -> list[Source]:
    """The sources that are tables; a file that may be one of names too is one alone or beside other tables only."""
    kinds = [is_table(source, options, len(sources) == 1) for source in sources]
    several = len(sources) == 1 or len(kinds) - kinds.count(False) > 1
    return [source for source, kind in zip(sources, kinds, strict=True) if kind or (several and kind is None)]


def guess_of(candidates: Sequence[Source], options: KgOptions, sources: Sequence[Source]) -> tuple[Mapping, list[str]]:
    """The mapping that is guessed for some of the sources, its tables in their order, and what was guessed, in words.

    The others may be triples about the rows of a table.
    """
    samples: dict[str, Table] = {}
    called: dict[tuple[Path, str], str] = {}
    for source in candidates:
        name = PurePath(source.path.name.removesuffix("".join(s for s in source.path.suffixes if s in PACKED))).stem
        own = source.path.parent, name
        while name in samples:
            name += "_"
        called[own] = name
        samples[name] = sample(name, source, options, len(candidates))
    for (folder, _), name in called.items():
        foreign = {column: called[folder, table] for column, table in samples[name].foreign.items()}
        samples[name] = replace(samples[name], foreign=foreign)
    mapping, notes = guess(list(samples.values()))
    others = [source for source in sources if source not in candidates and not source.is_parquet]
    cells = {cell for s in others for line in s.head() for delimiter in DELIMITERS for cell in cut(line, delimiter)}
    for name, table in mapping.tables.items() if len(samples) == 1 else ():
        keys = set(samples[name].frame[table.key[0]].drop_nulls()) if len(table.key) == 1 else set()
        if keys and (table.key == table.name or len(keys & cells) >= JOINED * len(keys)):
            mapping.tables[name] = table.model_copy(update={"prefix": ""})
    return mapping, notes


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
    return MappedTables(mapping, _tables(named, mapping), notes, given=True)


def _tables(named: Iterable[tuple[Source, str]], mapping: Mapping) -> dict[Path, MappedTable]:
    sources = {name: source for source, name in named}
    return {source.path: MappedTable(sources, name, mapping) for name, source in sources.items()}


def is_table(source: Source, options: KgOptions, alone: bool) -> bool | None:
    """Whether a source, perhaps alone, is a table whose first line names its columns; None: it may be a file of names.

    Three columns may be triples: that is for tables alone which have columns of usual names or datatypes; where triples
    are not usually cut so, also those whose first line is written otherwise, or which name rows of their own.
    """
    if source.is_parquet:
        nested = nesting_of(parquet_schema(source)) is not None
        return nested or roles_of(header_of(source, options), [])[0] is None
    head = source.head()
    if len(head) < 2:
        return False
    delimiter = likely_delimiter(head[0], (), options)
    header, rows = cut(head[0], delimiter), [cut(line, delimiter) for line in head[1:]]
    plain = all(len(name) <= 64 and not set(name) & set('<>{}":@') for name in header)
    numeric = any(name.replace(".", "").isdigit() for name in header)
    if len(header) < 2 or not plain or numeric or len(rows[0]) < len(header) / 2:
        return False
    try:
        reader = reader_of(source, options).name
    except KgInputError:
        reader = ""
    known = sum(is_reference(name) or not _COLUMNS.isdisjoint(base_words(name)[-1:]) for name in header)
    if reader == NAMES.name:
        keyed = is_reference(header[0]) and base_words(header[0]) != base_words(header[-1])
        return None if keyed or (alone and known) else False
    columns = [[row[at] for row in rows if len(row) == len(header)] for at in range(len(header))]
    if reader not in ("", DELIMITED.name, TRIPLES.name) or any(map(list.__contains__, columns, header)):
        return False
    typed = len(rows) >= FEW and any(all(re.match(r"[+-]?[\d$€£]", value) for value in values) for values in columns)
    lower = all(header[at][:1].islower() and not any(value[:1].islower() for value in columns[at]) for at in (0, -1))
    few = any(len({*values}) <= len(values) / 2 for values in columns[1:])
    if len(header) != 3:
        cells = reader == DELIMITED.name and len(rows) >= FEW and all(len(row) == len(header) for row in rows)
        return (not reader or cells) and bool(known or typed or lower or few)  # with `;` within the cells of a column
    first, middle = {*columns[0]}, {*columns[1]}
    unique = len(first) == len(columns[0])
    relations = len(middle) <= len(columns[1]) / 2 and all(value[:1].islower() for value in middle)
    known = known > 1 or is_reference(header[0]) or header[0].lower() in ("name", "title")
    if roles_of(header, rows)[0] is not None or known or typed or relations or (reader and delimiter in "\t|"):
        return roles_of(header, rows)[0] is None and (known or typed) and (unique or not relations)
    return lower or (unique and (len(middle) <= len(columns[1]) / 2 or len(middle & first) >= len(middle) / 2))
