"""The mapping of tables to a graph: what `kgqa kg map` writes and `kg.map` names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, ValidationError, field_validator

from kgqa_core.config.base import Options
from kgqa_core.errors import KgInputError, nearest
from kgqa_core.input_files import read_document
from kgqa_core.kg.formats.property_graph import DATATYPES

MAX_MAP = 4 << 20
"""Bytes of a mapping file."""


class ColumnMap(Options):
    """What the values of a column are."""

    relation: str = ""
    """Relation from the row's entity to the value; the column's name when absent."""
    datatype: str = "string"
    """As in `kg.property_graph.datatypes`: `integer`, `decimal`, `date` …; `entity` where it is a thing."""
    format: str | None = None
    """How dates are written that are not ISO's, as `%d/%m/%Y`; with `datatype: date`."""
    table: str | None = None
    """Table whose key the value is (a foreign key)."""
    column: str | None = None
    """Column of that table that has the value, where it is not its key: `products.supplier` is `suppliers.name`."""
    separator: str | None = Field(default=None, min_length=1)
    """What stands between the values of a cell that has several."""
    omit: bool | str = False
    """Leaves the column out; a text says why."""


class TableMap(Options):
    """What the rows of a table are: entities, or with `link` triples."""

    file: str
    """The file, by the end of its path."""
    type: str | None = None
    """Type of the entities."""
    prefix: str | None = None
    """What their keys begin with; the table's name and `/` when absent."""
    key: tuple[str, ...] = ()
    """Columns whose values together identify a row; its line when empty."""
    name: tuple[str, ...] = ()
    """Columns whose values together, with spaces between, name the entity; its type and key when empty."""
    link: tuple[str, ...] = Field(default=(), max_length=2)
    """Two columns with foreign keys: a row is a triple from the first to the second, other columns are qualifiers."""
    relation: str = ""
    """Relation of these triples."""
    columns: dict[str, ColumnMap] = {}
    """Every column that is read; a column that is not listed is left out."""

    @field_validator("key", "name", "link", mode="before")
    @classmethod
    def _one_is_a_list(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value


class Mapping(Options):
    """The tables of a database."""

    placeholders: tuple[str, ...] = ()
    """Cells that stand for no value, such as NULL."""
    tables: dict[str, TableMap] = Field(min_length=1)
    """By name, with which the keys of their entities begin."""

    def prefix(self, table: str | None) -> str:
        """What the keys of a table's entities begin with."""
        given = self.tables[table].prefix if table in self.tables else None
        return f"{table}/" if given is None else given


def read_mapping(path: Path) -> Mapping:
    """The mapping in a file.  Raises KgInputError that lists what is no part of a mapping."""
    text = read_document(path, KgInputError, MAX_MAP, "the mapping that `kgqa kg map` writes")
    try:
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text, yaml.SafeLoader)):
            raise KgInputError(f"{path} has aliases (`*name`); write out what they stand for")
        return Mapping.model_validate(yaml.safe_load(text))
    except (yaml.YAMLError, RecursionError) as fault:
        raise KgInputError(f"{path} is not valid YAML: {fault}") from None
    except ValidationError as fault:
        raise _faulty(path, [_fault_line(error) for error in fault.errors()]) from None


def check_mapping(mapping: Mapping, headers: dict[str, list[str]], path: Path) -> None:
    """Raises KgInputError that lists every fault of the mapping in a file.  headers: of its tables."""
    faults = []
    for name, table in mapping.tables.items():
        here, header = f"tables.{name}", headers[name]
        named = [(part, column) for part in ("key", "name", "link") for column in getattr(table, part)]
        faults += [
            f"{here}.{part}: {table.file} has no column {column!r}{nearest(column, header)}"
            for part, column in [*named, *((f"columns.{column}", column) for column in table.columns)]
            if column not in header
        ]
        if table.link and (len(table.link) != 2 or not table.relation):
            faults.append(f"{here}.link: it needs two columns, and `relation` beside it")
        for column in table.link:
            if column not in table.columns or table.columns[column].table is None:
                faults.append(f"{here}.link: {column!r} has no `table` under `columns`; say whose key it is")
        for column, value in table.columns.items():
            where = f"{here}.columns.{column}"
            if value.datatype not in DATATYPES:
                kind = value.datatype
                faults.append(f"{where}.datatype: {kind!r} is no datatype{nearest(kind, DATATYPES)}")
            if value.format and (value.datatype != "date" or "%" not in value.format):
                faults.append(f"{where}.format: {value.format!r} is no '%d/%m/%Y', or `datatype` is no date")
            if value.table is not None and value.table not in mapping.tables:
                near = nearest(value.table, mapping.tables)
                faults.append(f"{where}.table: there is no table {value.table!r}{near}")
            elif value.table is not None and len(mapping.tables[value.table].key) != 1:
                faults.append(f"{where}.table: {value.table!r} has no key of one column; leave `table` out")
            if value.column is not None and value.column not in headers.get(value.table or "", ()):
                near = nearest(value.column, headers.get(value.table or "", ()))
                faults.append(f"{where}.column: {value.column!r} is no column of the table {value.table!r}{near}")
    if faults:
        raise _faulty(path, faults)


def write_mapping(mapping: Mapping, notes: list[str]) -> str:
    """A mapping as YAML.  notes: what was guessed, as comments at its beginning."""
    tree = mapping.model_dump(mode="json", exclude_defaults=True)
    text = yaml.safe_dump(tree, sort_keys=False, allow_unicode=True, default_flow_style=None, width=120)
    return "".join(f"# {note}\n" for note in notes) + text


def _fault_line(error: Any) -> str:
    where = ".".join(str(part) for part in error["loc"]) or "the file"
    if error["type"] == "extra_forbidden":
        models: dict[int, type[Options]] = {1: Mapping, 3: TableMap}
        model = models.get(len(error["loc"]), ColumnMap)
        return f"{where}: there is no such key{nearest(str(error['loc'][-1]), model.model_fields)}"
    return f"{where}: {error['msg']}, but it is {str(error['input'])[:80]!r}"


def _faulty(path: Path, faults: list[str]) -> KgInputError:
    start = f"{path} has {len(faults)} fault(s) (`kgqa kg map FILES` writes a mapping that fits):"
    return KgInputError("\n  ".join([start, *faults]))
