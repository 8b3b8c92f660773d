"""N-Triples 1.1: one statement a line, `<s> <p> <o> .`, cut by a compiled loop over the bytes.

Only rejected lines are looked at again, for the reason, by the regular expressions here; they are the grammar once
more.  Beyond the grammar: IRIs must be absolute, as the specification says in prose; language tags are folded to lower
case.  A colon in the label of a blank node is refused, as the W3C's tests have it (the text of 1.1 allows one). Blank
nodes of equal label are one node in all files of a graph, as if the files were one.

N-Quads 1.1 are N-Triples with the name of a graph at the end, a qualifier of the statement (`kg.named_graphs`). The
same statement in two graphs is one triple and one duplicate.  Triples that are terms of others (RDF 1.2, RDF-star) are
read in both (see `rdf_quads`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import polars as pl
import pyarrow as pa

from kgqa_core.config import KgOptions
from kgqa_core.kg.formats.ahead import read_ahead
from kgqa_core.kg.formats.api import FormatSpec
from kgqa_core.kg.formats.base import MAX_REJECT_TEXT, REJECTS, StatementBatch, empty
from kgqa_core.kg.formats.ntriples_columns import COLUMNS
from kgqa_core.kg.formats.rdf_quads import pending, with_terms
from kgqa_core.kg.formats.source import Chunk, Source, readable
from kgqa_core.kg.formats.spans import SPARE, SpanBatch

_HEX4, _HEX8 = r"\\u[0-9A-Fa-f]{4}", r"\\U[0-9A-Fa-f]{8}"
_IRI_BODY = rf'(?:[^\x00-\x20<>"{{}}|^`\\]|{_HEX4}|{_HEX8})*'
_BASE = (
    r"A-Za-z\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u02FF\u0370-\u037D\u037F-\u1FFF\u200C-\u200D"
    r"\u2070-\u218F\u2C00-\u2FEF\u3001-\uD7FF\uF900-\uFDCF\uFDF0-\uFFFD\U00010000-\U000EFFFF"
)
_PN_U = rf"{_BASE}_"
_PN = rf"{_PN_U}\-0-9\u00B7\u0300-\u036F\u203F-\u2040"
BLANK_NODE = rf"_:[{_PN_U}0-9](?:[{_PN}.]*[{_PN}])?"
_STRING = rf"(?:[^\x22\\\n\r]|\\[tbnrf\x22'\\]|{_HEX4}|{_HEX8})*"
LANGUAGE_TAG = r"[A-Za-z]+(?:-[A-Za-z0-9]+)*"
_W = r"[ \t]*"

STATEMENT = re.compile(
    rf"^{_W}(?:<(?P<si>{_IRI_BODY})>|(?P<sb>{BLANK_NODE})){_W}<(?P<p>{_IRI_BODY})>{_W}"
    rf'(?:<(?P<oi>{_IRI_BODY})>|(?P<ob>{BLANK_NODE})|"(?P<ol>{_STRING})"'
    rf"(?:{_W}@(?P<lang>{LANGUAGE_TAG})|{_W}\^\^{_W}<(?P<dt>{_IRI_BODY})>)?)"
    rf"{_W}\.{_W}(?:#.*)?$"
)
"""A statement, up to what only its decoded IRIs show."""

_ECHARS = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))")
_IRI_FORBIDDEN = re.compile(r'[\x00-\x20<>"{}|^`\\]')
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
_NONE = np.zeros(0, dtype=np.uint8), np.zeros(0, dtype=np.int64)


class NTriples:
    """Reader of N-Triples."""

    name = "ntriples"

    def sniff(self, lines: list[str], options: KgOptions) -> float:
        """Share of the lines that are statements."""
        return sum(bool(STATEMENT.match(line)) for line in lines) / max(1, len(lines))

    def read(self, source: Source, options: KgOptions) -> Iterator[StatementBatch | SpanBatch]:
        """Statements of an N-Triples file, cut ahead on a thread."""
        return read_ahead(lambda: map(_read_triples, source.chunks()))


def _read_triples(chunk: Chunk) -> StatementBatch | SpanBatch:
    reason, lines = pending(why)
    return with_terms(read_chunk(chunk, reason=reason), lines)


def read_chunk(
    chunk: Chunk,
    terms: Sequence[str] = (),
    predicates: Sequence[str] = (),
    quads: bool = False,
    reason: Callable[[str], str] | None = None,
) -> SpanBatch:
    """The statements of some lines; a line with lone carriage returns is several lines, as in the grammar.

    terms: prefixes removed from IRIs that are subjects or objects; predicates: likewise of predicates.  quads: a
    fourth term, an IRI or a blank node, may name the graph.  reason: why a line is no statement.
    """
    from kgqa_core.kg.formats import ntriples_kernels as kernels  # numba takes 0.4 s to import

    data, rejects, invalid = chunk.data, chunk.rejects, 0
    if data and not is_utf8(data):
        data, rejects, invalid = readable(chunk)
    size = len(data)
    buffer = np.empty(size + SPARE, dtype=np.uint8)
    buffer[:size] = np.frombuffer(data, dtype=np.uint8)
    buffer[size:] = 0
    lines = kernels.line_ends(buffer, size) + 1
    rows = np.empty((lines, COLUMNS), dtype=np.int32)
    bad = np.empty((lines, 3), dtype=np.int64)
    count, bads, blanks = kernels.cut(buffer, size, quads, *_packed(terms), *_packed(predicates), rows, bad)
    if bads:
        texts = [data[begin:stop].decode() for _, begin, stop in bad[:bads].tolist()]
        why_ = reason or why
        more = {
            "line": bad[:bads, 0] + chunk.first_line,
            "reason": [why_(text) for text in texts],
            "text": [text[:MAX_REJECT_TEXT] for text in texts],
        }
        rejects = pl.concat([rejects, pl.DataFrame(more, schema=REJECTS)])
    return SpanBatch(buffer, rows[:count], chunk.first_line, rejects, blanks - invalid, chunk.fraction)


def is_utf8(data: bytes) -> bool:
    """Whether bytes are UTF-8; nothing is copied and no lock held."""
    if data.isascii():
        return True
    offsets = np.array([0, len(data)], dtype=np.int64)
    try:
        pa.LargeStringArray.from_buffers(1, pa.py_buffer(offsets), pa.py_buffer(data)).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _packed(prefixes: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Prefixes end to end as bytes, and where each ends."""
    if not prefixes:
        return _NONE
    encoded = [prefix.encode() for prefix in prefixes]
    return np.frombuffer(b"".join(encoded), dtype=np.uint8).copy(), np.cumsum([len(e) for e in encoded])


def unescape(text: str, iri: bool = False) -> str:
    """A value with its escapes decoded.  Raises ValueError with the reason."""

    def character(match: re.Match[str]) -> str:
        code = match[1] or match[2]
        if code is None:
            return _ECHARS[match[3]]
        point = int(code, 16)
        if point > 0x10FFFF or 0xD800 <= point <= 0xDFFF:
            raise ValueError(f"the escape {match[0]} is not a character")
        return chr(point)

    decoded = _ESCAPE.sub(character, text)
    if iri and (hit := _IRI_FORBIDDEN.search(decoded)):
        raise ValueError(f"an escape puts {hit[0]!r} into an IRI, where it may not stand")
    return decoded


_STEPS: tuple[tuple[str, str, str], ...] = (
    ("subject", rf"<{_IRI_BODY}>|{BLANK_NODE}", "the subject is neither an IRI in <> nor a blank node"),
    ("predicate", rf"<{_IRI_BODY}>", "the predicate is not an IRI in <>"),
    (
        "object",
        rf'<{_IRI_BODY}>|{BLANK_NODE}|"{_STRING}"',
        "the object is neither an IRI, nor a blank node, nor a literal",
    ),
)


_COMPILED = [(name, re.compile(pattern), reason) for name, pattern, reason in _STEPS]
_SUFFIX = re.compile(rf"{_W}(?:@{LANGUAGE_TAG}|\^\^{_W}(<{_IRI_BODY}>))")
_SUFFIX_SIGN = re.compile(r"[ \t]*(@|\^\^?)")
_ANY_ESCAPE = re.compile(r"\\(?:u.{0,4}|U.{0,8}|.?)", re.DOTALL)
_IRI_ESCAPE = re.compile(rf"{_HEX4}|{_HEX8}")
_GOOD_ESCAPE = re.compile(rf"\\[tbnrf\"'\\]|{_HEX4}|{_HEX8}")


def why(line: str) -> str:
    """Why a line is no statement, in a few words: the first thing that is wrong with it."""
    rest = line.lstrip(" \t")
    for name, pattern, reason in _COMPILED:
        match = pattern.match(rest)
        if match is None:
            return f"the {name} is missing" if rest.strip(" \t.") == "" else _closer(rest, name) or reason
        if fault := _fault(match[0], name):
            return fault
        rest = rest[match.end() :].lstrip(" \t")
        if name == "object" and match[0].startswith('"'):
            suffix = _SUFFIX.match(rest)
            if suffix is None and (sign := _SUFFIX_SIGN.match(rest)):
                return "bad language tag" if sign[1] == "@" else "bad datatype"
            if suffix is not None:
                if suffix[1] is not None and (fault := _fault(suffix[1], "datatype")):
                    return fault
                rest = rest[suffix.end() :].lstrip(" \t")
    if not rest.startswith("."):
        return "no final '.'" if not rest or rest.startswith("#") else f"{rest[:20]!r} where the final '.' is due"
    return "text after the final '.'"


def _fault(term: str, name: str) -> str | None:
    """What is wrong with a term that looks like one, once its escapes are decoded."""
    if term.startswith("_:"):
        return None
    iri = term.startswith("<")
    try:
        value = unescape(term[1:-1], iri)
    except ValueError as fault:
        return str(fault)
    if iri and not _ABSOLUTE.match(value):
        return "bad datatype" if name == "datatype" else f"the IRI of the {name} is not absolute"
    return None


def _closer(rest: str, name: str) -> str | None:
    """A closer reason for a term that begins like one but is none."""
    if rest.startswith("<"):
        body, closed, _ = rest[1:].partition(">")
        if not closed:
            return f"the IRI of the {name} has no '>'"
        if bad := _bad_escape(body, _IRI_ESCAPE):
            return f"bad escape {bad} in the IRI of the {name}"
        if match := _IRI_FORBIDDEN.search(body.replace("\\", "")):
            return f"{match[0]!r} in the IRI of the {name}"
    if rest.startswith('"') and name == "object":
        if bad := _bad_escape(rest, _GOOD_ESCAPE):
            return f"bad escape {bad} in the literal"
        return "unterminated literal"
    return None


def _bad_escape(text: str, good: re.Pattern[str]) -> str | None:
    """The first escape that is none."""
    return next((m[0] for m in _ANY_ESCAPE.finditer(text) if not good.fullmatch(m[0])), None)


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
        return min(1.0, _statements("\n".join(lines), quads=True) / max(1, len(lines)))

    def read(self, source: Source, options: KgOptions) -> Iterator[StatementBatch | SpanBatch]:
        """Statements of an N-Quads file."""
        keep = options.named_graphs == "keep"
        return read_ahead(lambda: (_read_quads(chunk, keep) for chunk in source.chunks()))


def _read_quads(chunk: Chunk, keep: bool) -> StatementBatch | SpanBatch:
    reason, lines = pending(lambda line: _quad_fault(line) or why(line))
    batch = read_chunk(chunk, quads=True, reason=reason)
    return with_terms(batch, lines, keep)


def _statements(text: str, quads: bool = False) -> int:
    data = text.encode(errors="replace") + b"\n"
    return read_chunk(Chunk(data, 1, 0.0, empty(REJECTS)), quads=quads, reason=lambda _: "").height


def _quad_fault(line: str) -> str | None:
    """Why a line with four terms is no statement; None where it is one, '' where it has not the shape of one."""
    match = _QUAD.match(line)
    if match is None:
        return ""
    triple, graph, rest = match.groups()
    if not _statements(triple + rest):
        return why(triple + rest)
    if not _statements(f"<a:a> <a:a> {graph} ."):
        reason = why(f"<a:a> <a:a> {graph} .")
        return reason.replace("of the object", "of the graph").replace("the object is", "the graph is")
    return None


NTRIPLES = FormatSpec(
    NTriples, "N-Triples 1.1: one statement a line", endings=(".nt",), name_suffices=True, ending_decides=True
)


NQUADS = FormatSpec(
    NQuads, "N-Quads 1.1: N-Triples with named graphs", endings=(".nq",), name_suffices=True, ending_decides=True
)
