"""N-Quads 1.1: N-Triples with the label of a graph at the end, which is dropped; the graphs are counted and logged.

The same statement in two graphs is one triple and one duplicate.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator

from kgqa_core.config import KgOptions
from kgqa_core.kg.formats.ahead import read_ahead
from kgqa_core.kg.formats.base import REJECTS, empty
from kgqa_core.kg.formats.ntriples import read_chunk, why
from kgqa_core.kg.formats.source import Chunk, Source
from kgqa_core.kg.formats.spans import SpanBatch

LOG = logging.getLogger(__name__)

MAX_GRAPHS = 1_000_000
"""Graphs that are told apart; beyond, only that there are more is known."""

_W = r"[ \t]*"
_IRI, _BLANK = "<[^<>]*>", r'_:[^\x00-\x20<>"#]*[^\x00-\x20<>"#.]'
_LITERAL = rf'"(?:[^"\\\r\n]|\\.)*"(?:{_W}@[A-Za-z0-9-]+|{_W}\^\^{_W}{_IRI})?'
_QUAD = re.compile(
    rf"^({_W}(?:{_IRI}|{_BLANK}){_W}{_IRI}{_W}(?:{_IRI}|{_BLANK}|{_LITERAL}))"
    rf"{_W}({_IRI}|{_BLANK})({_W}\.{_W}(?:#.*)?)$"
)
"""What has the shape of a triple, a graph and a dot."""


class NQuads:
    """Reader of N-Quads."""

    name = "nquads"

    def sniff(self, lines: list[str], options: KgOptions) -> float:
        """Share of the lines that are statements, with or without a graph."""
        return sum(_is_statement(line, quads=True) for line in lines) / max(1, len(lines))

    def read(self, source: Source, options: KgOptions) -> Iterator[SpanBatch]:
        """Statements of an N-Quads file."""
        graphs: set[str] = set()
        for batch in read_ahead(lambda: map(_read, source.chunks())):
            if len(graphs) <= MAX_GRAPHS:
                graphs.update(batch.graphs.unique())
            yield batch
        graphs.discard("")
        if graphs:
            many = "more than " if len(graphs) > MAX_GRAPHS else ""
            LOG.info("%s: %s%s named graphs are read as one graph", source.label, many, f"{len(graphs):,}")


def _read(chunk: Chunk) -> SpanBatch:
    return read_chunk(chunk, quads=True, reason=lambda line: _fault(line) or why(line))


def _is_statement(line: str, quads: bool = False) -> bool:
    data = line.encode(errors="replace") + b"\n"
    return read_chunk(Chunk(data, 1, 0.0, empty(REJECTS)), quads=quads, reason=lambda _: "").height == 1


def _fault(line: str) -> str | None:
    """Why a line with four terms is no statement; None where it is one, '' where it has not the shape of one."""
    match = _QUAD.match(line)
    if match is None:
        return ""
    triple, graph, rest = match.groups()
    if not _is_statement(triple + rest):
        return why(triple + rest)
    if not _is_statement(f"<a:a> <a:a> {graph} ."):
        reason = why(f"<a:a> <a:a> {graph} .")
        return reason.replace("of the object", "of the graph").replace("the object is", "the graph is")
    return None
