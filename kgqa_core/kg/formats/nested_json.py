"""JSON as APIs and exports give it, one document or a line each: objects as the rows of a table for each kind.

    {"customers": [{"id": 1, "name": "Ana", "address": {"city": "Leeds"}}], "orders": [{"id": 5, "customer_id": 1}]}

An object is of the kind that the member or list which holds it is called by, in the singular; where that says nothing
(`data`, `results`), by the file.  The tables are Parquet, from which a mapping is guessed as of any others (`mapping`);
their metadata hold what the nesting says (`Nesting`).  A document is held in memory, its elements are decoded one at a
time; JSON lines are read as a stream.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import msgspec
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError, nearest
from kgqa_core.kg.formats.api import FormatSpec
from kgqa_core.kg.formats.base import StatementBatch
from kgqa_core.kg.formats.json_graph import EDGES, MAX_DOCUMENT
from kgqa_core.kg.formats.members import MAX_MEMBERS, part_of
from kgqa_core.kg.formats.source import Source
from kgqa_core.kg.words import (
    GENERAL,
    IDENTIFIERS,
    NAMES,
    base_words,
    is_id,
    is_reference,
    lower_words,
    singular,
)
from kgqa_core.spool import Content

MAX_DEPTH, MAX_COLUMNS = 64, 1000
"""Levels of nesting, and members of the objects of one kind."""
ROWS = 20_000
"""Objects that wait to be packed."""
BLANK = "_:"
"""A prefix of keys that makes the rows of a table blank nodes."""
FILLED, LOCAL = 0.9, 0.1
"""Share of objects that have an id; of ids that stand for different objects, from which an id holds in a list only."""

_START = re.compile(r'\s*(?:\{\s*"(?:[^"\\]|\\.)*+"\s*:|\[\s*\{\s*["}])')
_WRAPPERS = GENERAL | frozenset("result response value hit object document entry content element payload body".split())
_PAGING = frozenset("count total page pages size limit offset next previous prev first last cursor token more status "
                    "success version generated timestamp message error errors meta metadata pagination paging link "
                    "links info date object kind type etag took".split())  # fmt: skip
"""Last words of members that say nothing of things, beside a list of them."""
_FLAT = ("attributes", "properties", "fields", "relationships", "_source")
"""Members whose own members are those of the object that has them."""
_RESOURCE = frozenset(("type", "id", "links", "meta", *_FLAT))  # of JSON:API
_OWN = ("child", "parent")
"""Members that hold objects of the kind of their owner."""
_TITLES = NAMES | {"title"}
_REFERENCE, _META = "\x1f", b"kgqa"
_DECODER = msgspec.json.Decoder(float_hook=str)


@dataclass(frozen=True)
class Nesting:
    """What nesting says of a table: prefix and column of its keys, and the tables whose keys columns are (foreign)."""

    prefix: str
    key: str | None
    foreign: dict[str, str]


def nesting_of(schema: pa.Schema) -> Nesting | None:
    """What the metadata of a table say; None for one that was not made here."""
    found = (schema.metadata or {}).get(_META)
    return None if found is None else Nesting(**json.loads(found))


class NestedJson:
    """What recognises JSON of objects."""

    name = "json"

    def sniff(self, lines: list[str], options: KgOptions) -> float:
        """1 where the lines begin as an object or a list of them does, or are JSON to their end, else 0."""
        text = "\n".join(lines)
        return float(bool(_START.match(text)) or _is_json(text))

    def read(self, source: Source, options: KgOptions) -> Iterator[StatementBatch]:
        """Raises KgInputError: such a file is read as the tables that `tables_of` gives."""
        raise KgInputError(f"{source.path} is JSON of objects; make a graph of it first: `kgqa kg build` reads it")


def tables_of(source: Source) -> Iterator[Source]:
    """The tables of a document or of JSON lines.  Raises KgInputError for one that is broken, too large or no graph."""
    reading = _ObjectReading(source)
    try:
        if len(head := source.head(2)) == 2 and _START.match(head[0]) and _is_json(head[0]):
            reading.lines()
        else:
            way_out = "write it as JSON lines, an object a line"
            reading.top(source.whole(MAX_DOCUMENT, "JSON document", way_out), reading.name, 0)
    except RecursionError:
        raise KgInputError(f"{source.path}, read as JSON, is nested too deeply; flatten it") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as fault:
        raise KgInputError(
            f"{source.path} is no JSON{reading.where}: {fault}; it may be cut off: write or fetch it again"
        ) from None
    if not any(kind.columns for kind in reading.kinds.values()):
        raise KgInputError(
            f"{source.path} is JSON that holds {reading.seen or 'nothing'}, which is no graph; we read objects with "
            'members, alone, in lists or a line each, as [{"id": 1, "name": "Ana", "city": "Leeds"}], and `nodes` with '
            f"`links` or `edges`{reading.hint}"
        )
    if reading.left_out:
        source.found["left out of the document"] = ", ".join(sorted(reading.left_out))
    yield from reading.tables()


class _Kind:
    """The objects of a kind: those that wait, with lists of texts by column, and the others as frames."""

    def __init__(self) -> None:
        self.rows: list[dict[str, list[str]]] = []
        self.frames: list[pl.DataFrame] = []
        self.height = 0
        self.columns: dict[str, str | None] = {}  # the kind of the objects that they hold, if any
        self.owned = self.listed = False

    def pack(self) -> None:
        """Makes a frame of the rows that wait."""
        texts = pa.large_list(pa.large_string())  # polars makes a series of each list, in ten times the time
        cells = {name: pa.array([row.get(name) for row in self.rows], texts) for name in self.columns}
        numbers = pa.array(range(len(self.rows)), pa.int64())  # there may be no other column
        self.frames.append(pl.DataFrame(pl.from_arrow(pa.table({**cells, _REFERENCE: numbers}))))
        self.rows = []


class _ObjectReading:
    """The objects of a source, by kind."""

    def __init__(self, source: Source) -> None:
        self.source, self.kinds, self.left_out = source, dict[str, _Kind](), set[str]()
        self.name = _kind(source.path.name.split(".")[0])
        self.seen = self.where = self.hint = ""

    def lines(self) -> None:
        """Takes in an object of each line."""
        with closing(self.source.blocks()) as blocks:
            for block in blocks:
                for line, reason, _ in block.rejects.iter_rows():
                    raise KgInputError(f"{self.source.path} line {line:,}: {reason}; mend the line or leave it out")
                for line, text in block.lines.iter_rows():
                    self.where = f" in line {line:,}"
                    if text.strip():
                        value = _DECODER.decode(text)
                        if not isinstance(value, dict):
                            raise KgInputError(f"{self.source.path} line {line:,} is JSON and no object; leave it out")
                        self.add(value, self.name, 0)

    def top(self, raw: Any, name: str, depth: int) -> None:
        """Takes in what no object owns: elements of a list, or the members of an object that only holds others."""
        self._bound(depth)
        start = _start(raw)
        if start == b"[":
            for element in msgspec.json.decode(raw, type=list[msgspec.Raw]):
                if _start(element) == b"{":
                    self.add(_DECODER.decode(element), name, depth)
                else:
                    self.top(element, name, depth + 1)
        elif start != b"{":
            what = {b'"': "text", b"t": "truth value", b"f": "truth value", b"n": "null"}.get(start, "number")
            self.seen = f"a list of {what}s" if depth else f"a single {what}"
            self.left_out.add(name)
            _DECODER.decode(raw)
        else:
            members = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
            self.seen = self.seen or f"an object with the members {', '.join(map(repr, [*members][:8])) or '(none)'}"
            hints = (nearest(each, ("nodes", *EDGES), cutoff=0.75) for each in members)
            self.hint = self.hint or next(filter(None, hints), "")
            nested = {each for each, value in members.items() if _start(value) in (b"{", b"[")}
            if any(each not in nested and not _is_paging(each) for each in members):
                self.add(members, name, depth)
            elif len(nested) == len(members) and (column := _keyed(members)):
                for key, value in members.items():
                    self.add({**_DECODER.decode(value), column: key}, name, depth)
            else:
                for each, value in members.items():
                    if each in nested and not (_is_paging(each) and _start(value) == b"{"):
                        self.top(value, name if _kind(each) in _WRAPPERS else _kind(each), depth + 1)
                    else:
                        self.left_out.add(each)

    def add(self, value: Mapping[str, Any], name: str, depth: int, owned: bool = False) -> int:
        """Takes in an object, and those in it; its number among those of its kind."""
        self._bound(depth)
        if (kind_said := _resource_kind(value)) is not None:
            name, value = kind_said, {each: part for each, part in value.items() if each != "type"}
        kind = self.kinds.setdefault(name, _Kind())
        kind.owned, kind.listed = kind.owned or owned, kind.listed or not owned
        row: dict[str, list[str]] = {}
        for member, part in _parts_of(value):
            column = member = member.strip() or "value"
            if isinstance(part, dict):
                child = _resource_kind(part) or _kind_within(name, member)
                part = f"{_REFERENCE}{self.add(part, child, depth + 1, owned=True)}"
                if (kind.columns.get(member) or child) != child:
                    column = f"{member} {child}"
                kind.columns[column] = child
            row.setdefault(column, []).append(part)
            kind.columns.setdefault(column, None)
        kind.rows.append(row)
        kind.height += 1
        if len(kind.rows) >= ROWS:
            kind.pack()
        if len(kind.columns) > MAX_COLUMNS or len(self.kinds) > MAX_MEMBERS:
            what = f"more than {MAX_COLUMNS:,} members" if len(kind.columns) > MAX_COLUMNS else f"the kind {name!r}"
            raise KgInputError(
                f"{self.source.path} has objects with {what}, after {len(self.kinds):,} kinds of objects: names of its "
                "members are data; write these as lists of objects, or the whole as triples"
            )
        return kind.height - 1

    def _bound(self, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise RecursionError

    def tables(self) -> Iterator[Source]:
        """The tables, one of each kind."""
        scope = blake2b(self.source.label.encode(), digest_size=4).hexdigest()
        frames, keys, columns, prefixes = {}, {}, {}, {}  # by kind
        called: list[tuple[str, bool, pl.DataFrame]] = []
        for number, (name, kind) in enumerate(self.kinds.items()):
            kind.pack()
            frames[name] = frame = pl.concat(kind.frames, how="diagonal")
            column, title = _identity(name, kind, frame)
            columns[name] = column
            made = pl.format(f"{scope}-{number}-{{}}", pl.int_range(kind.height))
            prefixes[name] = f"{name}/"
            if column is None:
                keys[name] = pl.select(made).to_series()
                prefixes[name] = BLANK if kind.owned else prefixes[name]
                continue
            keys[name] = frame.select(pl.coalesce(pl.col(column).list.first(), made)).to_series()
            if title is not None:
                names = pl.DataFrame({"key": keys[name], "name": frame[title].list.first()}).drop_nulls().unique()
                for other, listed, known in called:
                    both = names.join(known, on="key")
                    if not (listed and kind.listed) and both.height and (both["name"] == both["name_right"]).all():
                        prefixes[name] = prefixes[other]
                        break
                called.append((name, kind.listed, names))
        for name, kind in self.kinds.items():
            if not (kind.columns or kind.owned):
                continue
            frame, key = frames.pop(name), columns[name]
            for column, child in kind.columns.items():
                if child is not None:
                    frame = _resolved(frame, column, keys[child])
            if kind.owned:
                key = key or next(each for each in ("id", "key", "ref", "uid", "uuid", "own key") if each not in frame)
                frame = frame.with_columns(keys[name].reshape((-1, 1)).arr.to_list().alias(key))
            frame = frame.drop(_REFERENCE)
            if key is not None:
                frame = _merged(frame, key)
            rest = [each for each in frame.columns if each != key]
            single = [each for each in rest if not (frame[each].list.len() > 1).any()]
            frame = frame.with_columns(pl.col(single).list.first())
            foreign = {column: child for column, child in kind.columns.items() if child is not None}
            told = Nesting(prefixes[name], key if kind.owned else None, foreign)
            content = Content()
            pq.write_table(frame.to_arrow().replace_schema_metadata({_META: json.dumps(asdict(told))}), content.file)
            yield part_of(self.source, name.replace("/", "_"), content)


def _identity(name: str, kind: _Kind, frame: pl.DataFrame) -> tuple[str | None, str | None]:
    """The column whose values identify the objects of a kind, and where that is one of ids the column of names.

    Objects with the same value are then the same one; ids that stand for different objects hold in their list only.
    """
    values = [column for column, child in kind.columns.items() if child is None]
    ids = [each for each in values if is_reference(each, IDENTIFIERS) and base_words(each) in ([], name.split())]
    ids.sort(key=lambda column: not is_id(column))
    names = [column for column in values if lower_words(column) in {*_TITLES, name, f"{name} name"}]
    for column in [*ids, *(names if kind.owned else ())]:
        told = names[:1] if column in ids and names else [each for each in values if each != column]
        first = frame.select(pl.col(column, *told).list.first()).drop_nulls(column)
        if first.height < FILLED * frame.height or frame[column].list.len().max() != 1:
            continue
        pairs = (first.select(column, each).drop_nulls().unique() for each in told)
        several = [each.filter(each[column].is_duplicated())[column] for each in (first, *pairs)]
        differ: set[str] = set().union(*several[1:])
        if len(differ) <= LOCAL * several[0].n_unique():
            return column, names[0] if column in ids and names else None
    return None, None


def _merged(frame: pl.DataFrame, key: str) -> pl.DataFrame:
    """The frame with one row for each key, which has all values of its rows."""
    frame = frame.with_columns(pl.col(key).list.first())
    if not frame[key].is_duplicated().any():
        return frame
    merged = frame.select(key).unique(maintain_order=True)
    for column in frame.columns:
        if column != key:
            pairs = frame.select(key, column).explode(column).drop_nulls().unique(maintain_order=True)
            lists = pairs.group_by(key, maintain_order=True).agg(column)
            merged = merged.join(lists, on=key, how="left", maintain_order="left")
    return merged


def _resolved(frame: pl.DataFrame, column: str, keys: pl.Series) -> pl.DataFrame:
    """The frame with the keys of objects in a column; other values get a column of their own."""
    marks = pl.Series([f"{_REFERENCE}{number}" for number in range(len(keys))], dtype=pl.String)
    known = pl.DataFrame({column: pl.concat([marks, keys]), "key": pl.concat([keys, keys])}).unique(column)
    cells = frame.select(column).with_row_index("row").explode(column)
    cells = cells.join(known, on=column, how="left", maintain_order="left")
    rest = pl.when(pl.col("key").is_null()).then(pl.col(column)).alias(f"{column} text")
    lists = cells.select("row", pl.col("key").alias(column), rest).group_by("row", maintain_order=True)
    columns = lists.agg(pl.all().drop_nulls()).get_columns()[1:]
    return frame.with_columns(each for each in columns if each.name == column or each.list.len().max())


def _parts_of(value: Any) -> Iterator[tuple[str, Any]]:
    """The members of an object with each of their values: a text, or an object that has members."""
    for member, each in value.items():
        each = _whole(each)
        if member in _FLAT and isinstance(each, dict):
            yield from _parts_of(each)
        elif member not in ("links", "_links") or not isinstance(each, dict):
            yield from ((member, part) for part in _values(each))


def _values(value: Any) -> Iterator[Any]:
    if isinstance(value, msgspec.Raw):
        value = _DECODER.decode(value)
    if isinstance(value, dict):
        [*first] = value
        if len(value) == 1 and (first[0].startswith("$") or first[0] in ("data", "node")):  # MongoDB's, JSON:API's
            yield from _values(value[first[0]])
        elif column := _keyed(value):
            yield from ({**each, column: key} for key, each in value.items())
        elif value:
            yield value
    elif isinstance(value, list):
        for each in value:
            if isinstance(each, list):
                yield msgspec.json.encode(each).decode().replace('"', "")
            else:
                yield from _values(each)
    elif value is not None:
        yield value if isinstance(value, str) else json.dumps(value)


def _whole(value: Any) -> Any:
    """A value, decoded; of a list its elements, which are decoded one at a time."""
    if not isinstance(value, msgspec.Raw):
        return value
    if _start(value) == b"[":
        return msgspec.json.decode(value, type=list[msgspec.Raw])
    return _DECODER.decode(value)


def _keyed(members: Mapping[str, Any]) -> str | None:
    """The column for the names of members that are objects of one form, as in {"ana": {"age": 3}, "bo": {"age": 4}}."""
    objects: list[Mapping[str, Any]] = []
    for each, _ in zip(members.values(), range(50), strict=False):
        objects.append(_whole(each))
        if not isinstance(objects[-1], dict):
            return None
    every = set[str]().union(*objects)
    common = every.intersection(*objects)
    if len(members) < 2 or not common or 2 * len(common) < len(every):
        return None
    if every & {"id", "_id"}:
        return "key"
    return "id" if any(lower_words(each) in _TITLES for each in every) or all(map(str.isdigit, members)) else "name"


def _start(raw: Any) -> bytes:
    return bytes(memoryview(raw)[:64]).lstrip()[:1]


def _is_paging(member: str) -> bool:
    return not _PAGING.isdisjoint(lower_words(member).split()[-1:])


def _resource_kind(value: Mapping[str, Any]) -> str | None:
    """The kind that a resource of JSON:API says it is of."""
    said = "id" in value and _RESOURCE.issuperset(value) and value.get("type")
    return _kind(said) if isinstance(said, str) else None


@lru_cache(4096)
def _kind_within(owner: str, member: str) -> str:
    """The kind of the objects of a member: `order item` of `items`, within which `items` are of that kind too."""
    name = _kind(member)
    several = name != lower_words(member)
    if name in _OWN or (several and f" {owner}".endswith(f" {name}")):
        return owner
    return f"{owner} {name}" if several and name in _WRAPPERS else name


@lru_cache(4096)
def _kind(text: str) -> str:
    return " ".join(singular(lower_words(text).split())) or "item"


def _is_json(text: str) -> bool:
    try:
        _DECODER.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


FORMAT = FormatSpec(
    NestedJson, "JSON of objects as APIs and exports give it, or JSON lines: a table of each kind", specific=True
)
