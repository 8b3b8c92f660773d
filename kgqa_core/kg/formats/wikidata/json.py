"""Wikidata's JSON: the dump (`[`, one entity a line with a comma, `]`), JSON lines, and documents over many lines.

A document over many lines is one entity, a list of them, or `{"entities": {…}}`, as Special:EntityData and the API give
it.  Statements are claims, labels, aliases and descriptions; of a lexeme also its lemmas, category and language, and
its forms and senses with their texts and claims as entities of their own.  References, sitelinks, hashes and badges
are no statements: they are neither read nor counted.  Entities and properties stand as short keys (`Q42`, `P31`),
values as Wikidata's RDF export writes them (bounds of quantities are dropped), every claim with its rank and
qualifiers.  A line that is no JSON, an entity without id, and a claim, text or qualifier that cannot be read is a
reject; the other claims of its entity stay.  The claims of a line that is no JSON count as `unread`.  The brackets of
the array are ignored lines.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from kgqa_core.config import KgOptions
from kgqa_core.kg.filters import languages_to_keep
from kgqa_core.kg.formats.api import FormatSpec
from kgqa_core.kg.formats.base import StatementBatch
from kgqa_core.kg.formats.ntriples import is_utf8
from kgqa_core.kg.formats.source import Chunk, Source, block_of
from kgqa_core.kg.formats.wikidata.json_entity import (
    LANGUAGE_RULE,
    Rows,
    Unreadable,
    claims_in,
    decode,
    read_document,
    read_line,
)

if TYPE_CHECKING:
    from kgqa_core.kg.formats.wikidata.json_names import Tables

MAX_DOCUMENT = 512 << 20
"""Most bytes of a document that spans lines."""

CHUNK = 8 << 20
"""Bytes of lines that are read at once."""

SMALL = 1 << 20
"""A file of fewer bytes is read by the Python reader, before the compiled one is loaded."""

_MEMBERS = re.compile(r'"(?:claims|lemmas|mainsnak|sitelinks)"\s*:|"(?:labels|statements|descriptions)"\s*:\s*(?:\{|$)')
_PROPERTY_GRAPH = re.compile(r'"type"\s*:\s*"(?:node|relationship)"|"(?:nodes|links|edges|elements)"\s*:\s*[\[{]')
"""Neo4j's exports and other graphs in JSON have members of these names too."""


class WikidataJson:
    """Reader of Wikidata's JSON."""

    name = "wikidata-json"

    def sniff(self, lines: list[str], options: KgOptions) -> float:
        """1 when the first lines are JSON with members that only Wikibase's entities have, else 0."""
        start = "".join(lines[:2]).lstrip()[:1]
        has_members = any(_MEMBERS.search(line) for line in lines)
        return float(start in ("[", "{") and has_members and not any(map(_PROPERTY_GRAPH.search, lines[:20])))

    def read(self, source: Source, options: KgOptions) -> Iterator[StatementBatch]:
        """The statements of a file.  Raises KgInputError for a document over many lines that is too large."""
        chosen = languages_to_keep(options)
        languages = None if chosen is None else frozenset(chosen)
        if spans_lines(source.head()):
            yield read_whole(source, languages)
            return
        waiting: deque[Future[StatementBatch]] = deque()
        free: deque[Tables] = deque()
        with ThreadPoolExecutor(options.threads, thread_name_prefix="wikidata-json") as pool:
            try:
                for chunk in source.chunks(CHUNK):
                    waiting.append(pool.submit(read_chunk, chunk, languages, free))
                    if len(waiting) > options.threads:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()


def spans_lines(lines: list[str]) -> bool:
    """Whether the JSON of these first lines is a document over many lines, not one entity a line."""
    texts = [text for text in (line.strip(" \t\r,") for line in lines) if text not in ("", "[", "]")]
    parts = sum(text[0] in '"}' or text[-1] in "{[:" for text in texts)
    return parts > len(texts) - parts


def read_whole(source: Source, languages: frozenset[str] | None) -> StatementBatch:
    """The statements of a document over many lines."""
    way_out = "put one entity on a line, with `jq -c '.entities[]'` or `jq -c '.[]'`"
    data = source.whole(MAX_DOCUMENT, "JSON document", way_out)

    def line_of(name: str) -> int:
        return data.count(b"\n", 0, max(0, data.find(f'"{name}"'.encode()))) + 1

    rows = Rows(languages)
    try:
        read_document(decode(data), line_of, rows)
    except Unreadable as fault:
        match = re.search(r"\(byte (\d+)\)", str(fault))
        line = data.count(b"\n", 0, int(match[1])) + 1 if match else 1
        rows.unread += claims_in(data)
        rows.reject(line, str(fault), data.split(b"\n")[line - 1][:2000].decode("utf-8", errors="replace"))
    statements, qualifiers, rejects = rows.frames()
    return StatementBatch(statements, rejects, rows.ignored, 1.0, qualifiers, dict(rows.filtered), rows.unread)


def read_chunk(chunk: Chunk, languages: frozenset[str] | None, free: deque[Tables] | None = None) -> StatementBatch:
    """The statements of some lines, by whichever reader is faster."""
    if chunk.first_line == 1 and chunk.fraction >= 1 and len(chunk.data) < SMALL:
        return read_plainly(chunk, languages)
    return read_quickly(chunk, languages, free)


def read_quickly(
    chunk: Chunk, languages: frozenset[str] | None, free: deque[Tables] | None = None, threshold: int = 1 << 16
) -> StatementBatch:
    """The statements of some lines by the compiled reader, and by the Python one where that leaves a line.

    free: tables to be used again.  From `threshold` bytes on nothing is copied, and the last line is a plain one.
    """
    from kgqa_core.kg.formats.wikidata import json_names as names
    from kgqa_core.kg.formats.wikidata.json_columns import frames
    from kgqa_core.kg.formats.wikidata.json_walk import walk

    data, rejects = chunk.data, chunk.rejects
    ignored = 0
    if not is_utf8(data):
        rejects = block_of(chunk).rejects
        bad = rejects["line"].to_numpy() - chunk.first_line
        data = _blanked(data, bad)
        ignored = -len(bad)
    size, tail = len(data), b""
    if size < threshold:
        data += b"\n" * names.PAD
    else:
        size = data.rfind(b"\n", 0, size - names.PAD) + 1
        tail = data[size:]
    tables = _reusable(free)
    if tables is None or not names.fits(tables, len(data)):
        capacity = (max(len(data), CHUNK) * 5 // 4) if free is not None else len(data)
        tables = names.new_tables(capacity, None if languages is None else sorted(languages))
    tables = names.filled(tables, data)
    left = np.empty((size // 2 + 1, 3), dtype=np.int32)
    left = left[: walk(tables, size, left)]
    statements, qualifiers = frames(tables)
    count = tables.count.tolist()
    if free is not None:
        free.append(tables)
    filtered = Counter[str]()
    if count[names.FILTERED]:
        filtered[LANGUAGE_RULE] = count[names.FILTERED]
    rows = Rows(languages)
    for start, end, line in left.tolist():
        read_line(data[start:end], chunk.first_line + line, rows)
    for line, text in enumerate(tail.split(b"\n")[:-1], start=chunk.first_line + count[names.LINES]):
        read_line(text, line, rows)
    other, marks, unread = rows.frames()
    marks = marks.with_columns(pl.col("row") + statements.height)
    return StatementBatch(
        pl.concat([statements, other]),
        pl.concat([rejects, unread]),
        ignored + count[names.IGNORED] + rows.ignored,
        chunk.fraction,
        pl.concat([qualifiers, marks]),
        dict(filtered + rows.filtered),
        rows.unread,
    )


def _reusable(free: deque[Tables] | None) -> Tables | None:
    try:
        return free.popleft() if free is not None else None
    except IndexError:
        return None


def read_plainly(chunk: Chunk, languages: frozenset[str] | None) -> StatementBatch:
    """The statements of some lines by the Python reader."""
    rows = Rows(languages)
    block = block_of(chunk)
    for line, text in block.lines.iter_rows():
        read_line(text.encode(), line, rows)
    statements, qualifiers, rejects = rows.frames()
    rejects = pl.concat([block.rejects, rejects])
    return StatementBatch(
        statements, rejects, rows.ignored, chunk.fraction, qualifiers, dict(rows.filtered), rows.unread
    )


def _blanked(data: bytes, lines: np.ndarray) -> bytes:
    """The bytes with some lines blank, by their numbers."""
    ends = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == 10)
    text = bytearray(data)
    for line in lines.tolist():
        begin, end = (int(ends[line - 1]) + 1 if line else 0), int(ends[line])
        text[begin:end] = b" " * (end - begin)
    return bytes(text)


FORMAT = FormatSpec(
    WikidataJson,
    "Wikidata's JSON: the dump, JSON lines, single entities",
    specific=True,
    endings=(".json", ".jsonl", ".ndjson"),
)
