"""Documents of a corpus: JSON lines, plain text, KILT's pages or 100-word passages; what cannot be read is rejected."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from kgqa_core.config import PassagesOptions
from kgqa_core.errors import InputError, nearest
from kgqa_core.kg.formats.source import Source
from kgqa_core.spool import regular_file

SHOWN = 200
"""Characters of a rejected line that are stored."""
_DEFAULTS = {"id": "id", "title": "title", "text": "text"}
_SECTION, _BULLET = "Section::::", "BULLET::::"
"""Marks of KILT's paragraphs: a heading, and an item of a list."""
_NUMBERED = re.compile(r"\d+\t(?=\{)")
"""Before each passage of KILT's `kilt_w100.jsonl`, whose `_id` is that of the page."""
_TABLE = re.compile(r"(?:id|\d+)\t[^\t]*\t[^\t]*")
"""A line of `kilt_w100_title.tsv` and DPR's `psgs_w100.tsv`: number, text, title."""
_BLANKS = {code: " " for code in (*range(0x20), *range(0x7F, 0xA0))}


@dataclass(frozen=True, slots=True)
class Document:
    """A text with its name.  id: as the corpus says, else `file:line`.  file, line: where it begins."""

    id: str
    title: str
    text: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class RejectedText:
    """A line, or a document that begins there, which cannot be used."""

    file: str
    line: int
    reason: str
    text: str


def find_corpus(corpus: str | None) -> list[Source]:
    """The files of a corpus: itself, or those of a folder in order of name.  Raises InputError."""
    if not corpus:
        raise InputError("passages.corpus is empty; name a file or folder of texts, or leave passages out of the run")
    path = Path(corpus).expanduser()
    regular_file(path)
    if not path.exists():
        folder = path.parent
        near = nearest(path.name, [each.name for each in folder.iterdir()], cutoff=0.4) if folder.is_dir() else ""
        raise InputError(f"passages.corpus {corpus!r} does not exist{near or '; check the path'}")
    hidden = (file for file in path.rglob("*") if file.is_file() and not file.name.startswith("."))
    files = sorted(hidden) if path.is_dir() else [path]
    if not files:
        raise InputError(f"passages.corpus {corpus!r} is a folder without files; put the texts there")
    root = path if path.is_dir() else path.parent
    return [Source(file, file.relative_to(root).as_posix()) for file in files]


def read_corpus(sources: list[Source], options: PassagesOptions) -> Iterator[Document | RejectedText]:
    """The documents of all files in their order, and what had to be rejected between them.

    A second document with an id that was there before is rejected.  Raises InputError for a file that is damaged or
    no UTF-8 at all.
    """
    seen: set[str] = set()
    for source in sources:
        form = options.format if options.format != "auto" else detect(source)
        records = _paragraphs(source) if form == "text" else _objects(source, form, options.fields)
        for each in records:
            if isinstance(each, Document):
                if each.id in seen:
                    yield RejectedText(each.file, each.line, f"id {each.id!r} was there before", each.text[:SHOWN])
                    continue
                seen.add(each.id)
            yield each


def detect(source: Source) -> str:
    """`kilt`, `tsv`, `jsonl` or `text`, by the first line that is not blank."""
    first = next(iter(source.head(1)), "").strip()
    if _NUMBERED.match(first):
        return "kilt"
    if not first.startswith("{"):
        return "tsv" if _TABLE.fullmatch(first) else "text"
    return "kilt" if '"wikipedia_title"' in first and '"text"' in first else "jsonl"


def clean(text: str) -> str:
    """A text in one line: control characters and runs of white space are single blanks."""
    return " ".join(text.translate(_BLANKS).split())


def _objects(source: Source, form: str, names: Mapping[Any, str]) -> Iterator[Document | RejectedText]:
    read = _kilt if form == "kilt" else _fields
    decode, names = (_row, {}) if form == "tsv" else (_decode, names)
    for line, text in _lines(source):
        if isinstance(text, RejectedText):
            yield text
            continue
        if not text.strip() or (form == "tsv" and text.startswith("id\t")):
            continue
        try:
            identity, title, body = read(decode(text), names)
            if not body:
                raise ValueError("the text is empty")
        except (ValueError, RecursionError) as fault:
            yield RejectedText(source.label, line, str(fault).strip() or type(fault).__name__, clean(text[:SHOWN]))
            continue
        yield Document(identity or f"{source.label}:{line}", title, body, source.label, line)


def _decode(text: str) -> dict[str, Any]:
    """The object of a line; the number before a passage of KILT is its id."""
    number = _NUMBERED.match(text)
    value = msgspec.json.decode(text[number.end() :] if number else text)
    if not isinstance(value, dict):
        raise ValueError(f"a JSON object is needed, not {type(value).__name__}")
    return {**value, "wikipedia_id": number[0].strip()} if number else value


def _row(text: str) -> dict[str, Any]:
    """The fields of a line `id, text, title` between tabs, of which a text may stand in quotes."""
    parts = [part[1:-1].replace('""', '"') if part[:1] == part[-1:] == '"' else part for part in text.split("\t")]
    if len(parts) != 3:
        raise ValueError(f"three fields between tabs are needed (id, text, title), not {len(parts)}")
    return dict(zip(("id", "text", "title"), parts, strict=True))


def _fields(value: Mapping[str, Any], names: Mapping[Any, str]) -> tuple[str, str, str]:
    """Id (empty where there is none), title and text of an object, by the names of its fields."""
    field = {**_DEFAULTS, **names}
    if missing := [name for role, name in field.items() if name not in value and (role == "text" or role in names)]:
        there = ", ".join(list(value)[:8]) or "none"
        raise ValueError(f"field {missing[0]!r} is missing (it has {there}); say its name in passages.fields")
    return (
        _name(value.get(field["id"]), field["id"]),
        clean(_text(value.get(field["title"]) or "", field["title"])),
        clean(_text(value[field["text"]], field["text"])),
    )


def _kilt(value: Mapping[str, Any], names: Mapping[Any, str]) -> tuple[str, str, str]:
    """A page of KILT, whose first paragraph is the title and whose headings and marks of list items are left out; or a
    passage, which is one text."""
    identity = _name(value.get("wikipedia_id", value.get("_id")), "wikipedia_id")
    title = clean(_text(value.get("wikipedia_title") or "", "wikipedia_title"))
    paragraphs = [text] if isinstance(text := value.get("text"), str) else text
    if not isinstance(paragraphs, list) or not all(isinstance(part, str) for part in paragraphs):
        raise ValueError("field 'text' is no list of paragraphs; set passages.format if this is not KILT")
    parts = [clean(part.removeprefix(_BULLET).lstrip("-")) for part in paragraphs if not part.startswith(_SECTION)]
    body = parts[1:] if parts and parts[0] == title else parts
    return identity, title, " ".join(part for part in body if part)


def _name(value: Any, field: str) -> str:
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(f"field {field!r} is no name but {type(value).__name__}")
    return clean(str(value))


def _text(value: Any, field: str) -> str:
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return " ".join(value)
    if not isinstance(value, str):
        raise ValueError(f"field {field!r} is no text but {type(value).__name__}")
    return value


def _paragraphs(source: Source) -> Iterator[Document | RejectedText]:
    """Documents of plain text: lines up to the next blank one."""
    begin, lines = 0, list[str]()
    for line, text in _lines(source):
        if isinstance(text, RejectedText):
            yield text
        elif cleaned := clean(text):
            begin = begin if lines else line
            lines.append(cleaned)
        elif lines:
            yield Document(f"{source.label}:{begin}", "", " ".join(lines), source.label, begin)
            lines = []
    if lines:
        yield Document(f"{source.label}:{begin}", "", " ".join(lines), source.label, begin)


def _lines(source: Source) -> Iterator[tuple[int, str | RejectedText]]:
    """Numbered lines in their order, those that are no text as rejects."""
    for block in source.blocks():
        bad = {
            line: RejectedText(source.label, line, reason, clean(text)[:SHOWN])
            for line, reason, text in block.rejects.iter_rows()
        }
        good = zip(block.lines["line"].to_list(), block.lines["text"].to_list(), strict=True)
        yield from sorted([*good, *bad.items()], key=lambda item: item[0])


REJECTS = "rejects.parquet"
REJECT_ROWS = 50_000
"""Rejects held at once."""
EXAMPLES = 3
_SCHEMA = pa.schema({"file": pa.string(), "line": pa.int64(), "reason": pa.string(), "text": pa.string()})


class RejectsWriter:
    """Appends rejects to the table of a folder, until it is closed.  count: so many so far.  first: the first few."""

    def __init__(self, folder: Path) -> None:
        self.count, self.first = 0, list[RejectedText]()
        self._rows: list[RejectedText] = []
        self._table = pq.ParquetWriter(folder / REJECTS, _SCHEMA, compression="zstd", write_statistics=False)

    def add(self, reject: RejectedText) -> None:
        """One more."""
        self.count += 1
        if len(self.first) < EXAMPLES:
            self.first.append(reject)
        self._rows.append(reject)
        if len(self._rows) == REJECT_ROWS:
            self._flush()

    def close(self) -> None:
        """Writes what is held; there are no more."""
        self._flush()
        self._table.close()

    def _flush(self) -> None:
        columns = {name: [getattr(reject, name) for reject in self._rows] for name in _SCHEMA.names}
        self._table.write_table(pa.table(columns, schema=_SCHEMA))
        self._rows = []
