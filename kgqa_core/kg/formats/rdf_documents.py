"""RDF/XML and JSON-LD, parsed by pyoxigraph in pieces; relative IRIs begin with `file:///` and the file's name.

An IRI that may not be one is a reject; what is no XML or JSON stops the build, for nothing after it can be read.
Bounds: entities of XML (no external ones) stand for at most MAX_ENTITY characters each, and between two tags stand at
most MAX_REFERENCES of them and MAX_TOKEN bytes; JSON-LD is held in memory up to MAX_JSON bytes and as many levels as
Python allows a function to recurse, or half of them where a context is named by an address.  Nothing is fetched: such
a context is that of `kg.context`, or schema.org's.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, cast
from urllib.parse import quote

import msgspec
import polars as pl
import pyoxigraph as ox

from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError
from kgqa_core.input_files import read_document
from kgqa_core.kg.formats.api import FormatSpec
from kgqa_core.kg.formats.base import REJECTS, StatementBatch
from kgqa_core.kg.formats.ntriples import read_chunk, why
from kgqa_core.kg.formats.rdf_quads import pending, with_terms
from kgqa_core.kg.formats.source import HEAD, Chunk, Source, SourceStream
from kgqa_core.kg.formats.spans import SpanBatch
from kgqa_core.kg.formats.turtle import CHUNK, MAX_TOKEN, BlankNodes
from kgqa_core.kg.vocabulary import RDF

PIECE, END = 16 << 10, 4 << 10
"""Bytes of XML that are looked at at once, and those in which the end of the document is looked for."""

MAX_ENTITY, MAX_REFERENCES = 1_000, 10_000
MAX_JSON, MAX_CONTEXT, MAX_CONTEXTS = 256 << 20, 1 << 20, 64 << 20
"""Bytes of a document, of one context, and of those that are put in the place of addresses or hold at all levels."""

SCHEMA_ORG = re.compile(r"https?://(?:www\.)?schema\.org(?:/|/docs/jsonldcontext\.jsonld?|/version/.*)?\Z")
SCHEMA_ORG_CONTEXT = {
    "@vocab": "http://schema.org/",
    "schema": "http://schema.org/",
    "id": "@id",
    "type": "@type",
    **dict.fromkeys(("sameAs", "additionalType", "potentialAction", "itemListOrder"), {"@type": "@id"}),
}
"""The names of schema.org's own context, written by us: every term is `http://schema.org/` and its name."""

UNMAPPED = "the IRI of the predicate is not absolute"
WITHOUT_TERM = "keys that the context does not name"
"""Rule of what JSON-LD leaves out: its statements have the reason UNMAPPED, for a key that is no IRI."""

_UNFETCHED = "No LoadDocumentCallback has been set to load remote contexts"
_ROOT = re.compile(r"<(?:!DOCTYPE\s+)?(?:[\w.-]+:)?RDF[\s>\[]")
_END = re.compile(rb"(?:</(?:[\w.-]+:)?RDF\s*>|<(?:[\w.-]+:)?RDF\s[^>]*/>)(?:\s|<!--.*?-->|<\?.*?\?>|\0)*\Z", re.DOTALL)
_DOCTYPE = re.compile(rb"<!DOCTYPE\s[^\[>]*(\[.*?\]\s*)?>", re.DOTALL)
_ENTITY = re.compile(r"""<!ENTITY\s+([\w.:-]+)\s+("[^"]*"|'[^']*')\s*>""")
_CANONICAL = re.compile(
    rb'(?<!\\)"(?P<number>-?\d\.\d+E-?\d{1,2})"(?P<type>\^\^<http://www\.w3\.org/2001/XMLSchema#double>)'
)
_REFERENCE = re.compile(r"&([\w.:-]+);")
_PREDEFINED = ("amp", "lt", "gt", "quot", "apos")
_KEYWORD = re.compile(r'"@(?:context|graph|id|type|value|included)"\s*:')
_CONTEXT = re.compile(rb'"@context"\s*:\s*(?=[\[{])')
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_ADDRESS = re.compile(rb'"@(?:context"\s*:\s*(?:\[[^\]]*)?|import"\s*:\s*)"')


class RdfXml:
    """Reader of RDF/XML."""

    name = "rdf-xml"

    def sniff(self, lines: list[str], options: KgOptions) -> float:
        """1 where the root of an XML document is `rdf:RDF`; else 0."""
        text = "\n".join(lines)
        return float(text.lstrip().startswith("<") and RDF in text and _ROOT.search(text) is not None)

    def read(self, source: Source, options: KgOptions) -> Iterator[StatementBatch | SpanBatch]:
        """Statements of a file.  Raises KgInputError for what is no RDF/XML, and for hostile entities."""
        with source.stream() as stream:
            xml = _Xml(source, stream)
            quads = ox.parse(cast(IO[bytes], xml), format=ox.RdfFormat.RDF_XML, base_iri=base_iri(source), lenient=True)
            yield from _batches(quads, xml, source, options, "RDF/XML")


class JsonLd:
    """Reader of JSON-LD 1.0 and 1.1."""

    name = "json-ld"

    def sniff(self, lines: list[str], options: KgOptions) -> float:
        """1 where JSON has a keyword of JSON-LD as a key; else 0."""
        text = "\n".join(lines)
        return float(text.lstrip()[:1] in ("{", "[") and _KEYWORD.search(text) is not None)

    def read(self, source: Source, options: KgOptions) -> Iterator[StatementBatch | SpanBatch]:
        """Statements of a file.  Raises KgInputError for what is no JSON-LD, and for a context that is not there."""
        with source.stream() as stream:
            data = _document(source, stream)
            data = with_contexts(source, data, options) if _ADDRESS.search(data) else data
            _check_contexts(source, data)
            quads = ox.parse(data, format=ox.RdfFormat.JSON_LD, base_iri=base_iri(source), lenient=True)
            yield from _batches(quads, stream, source, options, "JSON-LD")


def base_iri(source: Source) -> str:
    """The IRI that relative ones of a file are resolved against."""
    return "file:///" + quote(source.label.lstrip("/"))


def _as_written(found: re.Match[bytes]) -> bytes:
    """A number with a fraction as JSON has it, which JSON-LD makes a double such as `1.2849E2` of."""
    return b'"%s"%s' % (repr(float(found["number"])).encode(), found["type"])


def _batches(
    quads: Iterator[ox.Quad], stream: _Xml | SourceStream, source: Source, options: KgOptions, what: str
) -> Iterator[StatementBatch | SpanBatch]:
    nodes, none = BlankNodes(source.label), pl.DataFrame(schema=REJECTS)
    while True:
        try:
            data = ox.serialize(itertools.islice(quads, CHUNK), format=ox.RdfFormat.N_QUADS) or b""
        except (SyntaxError, ValueError, MemoryError) as fault:
            line = f" at or shortly before line {stream.lines + 1:,}" if isinstance(stream, _Xml) else ""
            text = str(getattr(fault, "msg", None) or fault)
            text = text.replace(_UNFETCHED, "a context within a context is named by an address, which is not fetched")
            raise KgInputError(
                f"{source.path} is {what} with a fault{line}: {text}; mend it "
                f"(`riot --validate {source.path}` finds it), or write it again with the tool that made it"
            ) from None
        if not data:
            return
        if what == "JSON-LD":
            data = _CANONICAL.sub(_as_written, data)
        reason, lines = pending(why)
        batch = read_chunk(Chunk(data, 1, min(1.0, stream.fraction), none), quads=True, reason=reason)
        place = pl.lit(stream.lines + 1 if isinstance(stream, _Xml) else 1, dtype=pl.Int64)
        unmapped = (batch.rejects["reason"] == UNMAPPED) & (what == "JSON-LD")
        left_out = {WITHOUT_TERM: int(unmapped.sum())} if unmapped.any() else {}
        batch = replace(batch, rejects=batch.rejects.filter(~unmapped).with_columns(line=place), filtered=left_out)
        yield nodes.renamed_in(with_terms(batch, lines, options.named_graphs == "keep", nodes.name))


class _Xml:
    """The bytes of an XML document for the parser, with the entities that it declares expanded within their bounds."""

    def __init__(self, source: Source, stream: SourceStream) -> None:
        self._source, self._stream, self._run, self._references, self._most = source, stream, 0, 0, sys.maxsize
        begin = b""
        while len(begin) < HEAD and (data := stream.read(HEAD - len(begin))):
            begin += data
        if doctype := _DOCTYPE.search(begin):
            declared = self._entities((doctype[1] or b"").decode(errors="replace"))
            entities = "".join(f'<!ENTITY {name} "{text}">' for name, text in declared.items()).encode()
            self._most = MAX_REFERENCES if declared else sys.maxsize
            lines = b"\n" * doctype[0].count(b"\n")
            begin = begin[: doctype.start()] + b"<!DOCTYPE RDF [" + entities + lines + b"]>" + begin[doctype.end() :]
        elif b"<!ENTITY" in begin:
            raise self._hostile(f"declares entities over more than {HEAD:,} bytes")
        self._begin, self._piece, self._at = begin, b"", 0
        self._end = b"" if _ROOT.search(begin.decode(errors="replace")) else None

    @property
    def fraction(self) -> float:
        """Share of the file's bytes read so far."""
        return self._stream.fraction

    @property
    def lines(self) -> int:
        """Line ends read so far."""
        return self._stream.lines

    def read(self, size: int = -1) -> bytes:
        """The next bytes.  Raises KgInputError for a text that is too long."""
        if self._at >= len(self._piece):
            self._piece, self._at = self._next(), 0
        data = self._piece[self._at : self._at + size if size >= 0 else None]
        self._at += len(data)
        return data

    def _next(self) -> bytes:
        data, self._begin = self._begin[:PIECE], self._begin[PIECE:]
        data = data or self._stream.read(PIECE)
        if self._end is not None:
            self._end = (self._end + data)[-END:]
            if not data and not _END.search(self._end):
                raise KgInputError(
                    f"{self._source.path} is RDF/XML that is cut off at line {self.lines + 1:,}: what ends it, "
                    "</rdf:RDF>, is not there; fetch it again, or write it again with the tool that made it"
                )
        at = data.rfind(b"<")
        whole = at < 0
        self._run = len(data) - at + self._run * whole
        self._references = data.count(b"&", max(at, 0)) + self._references * whole
        if self._run > MAX_TOKEN or self._references > self._most:
            raise self._hostile(f"has {MAX_TOKEN:,} bytes or {MAX_REFERENCES:,} entities in one text")
        return data

    def _entities(self, subset: str) -> dict[str, str]:
        """The entities that a document declares, without references to others."""
        if re.search(r"<!ENTITY\s+(?:%|[^\s>]+\s+(?:SYSTEM|PUBLIC)\b)", subset):
            raise self._hostile("declares an entity of another file, which is never read")
        entities: dict[str, str] = {}
        for name, text in _ENTITY.findall(subset):
            if name in entities:
                continue
            for reference in _REFERENCE.findall(text):
                if reference not in entities and reference not in _PREDEFINED:
                    raise self._hostile(
                        f"has the entity {name!r}, which refers to {reference!r}, not declared before it"
                    )
            value = _REFERENCE.sub(lambda match: entities.get(match[1], match[0]), text[1:-1])
            if len(value) > MAX_ENTITY:
                raise self._hostile(f"has the entity {name!r}, which stands for more than {MAX_ENTITY:,} characters")
            entities[name] = value.replace('"', "&quot;")
        return entities

    def _hostile(self, what: str) -> KgInputError:
        path = self._source.path
        return KgInputError(f"{path} {what}; write its entities out, with `xmllint --noent {path} > plain.rdf`")


def _document(source: Source, stream: SourceStream) -> bytes:
    """The whole file.  Raises KgInputError when it is too large or nested too deeply."""
    parts, size = [], 0
    while piece := stream.read():
        size += len(piece)
        parts.append(piece)
        if size > MAX_JSON:
            raise KgInputError(
                f"{source.path} is JSON-LD of more than {MAX_JSON:,} bytes, the most that is read as one document; "
                "write it as N-Quads, with `riot --output=nq`, or in several files"
            )
    data = b"".join(parts)
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except msgspec.DecodeError as fault:
        raise KgInputError(f"{source.path} is no JSON, although it begins like JSON-LD: {fault}; mend it") from None
    except RecursionError:
        raise _too_deep(source, sys.getrecursionlimit()) from None
    return data


def _too_deep(source: Source, levels: int) -> KgInputError:
    return KgInputError(
        f"{source.path} is JSON-LD with more than {levels:,} levels of nesting; give nodes an "
        "@id and write them beside each other, with `jsonld flatten`"
    )


def _check_contexts(source: Source, data: bytes) -> None:
    """Raises KgInputError where contexts would need much memory: each level has all terms of those around it."""
    decoder, sizes = json.JSONDecoder(), [0]
    for found in _CONTEXT.finditer(data):
        for most in (4 << 10, MAX_CONTEXT):
            with contextlib.suppress(ValueError):
                sizes.append(decoder.raw_decode(data[found.end() : found.end() + most].decode(errors="ignore"))[1])
                break
        else:
            raise KgInputError(f"{source.path} has a context of JSON-LD of more than {MAX_CONTEXT:,} bytes; shorten it")
    if sum(sizes) * sys.getrecursionlimit() <= MAX_CONTEXTS:
        return
    level = deepest = 0
    for sign in re.finditer(rb"[\[{]+|[\]}]+", _STRING.sub(b"", data)):
        level += len(sign[0]) if sign[0][:1] in b"[{" else -len(sign[0])
        deepest = max(deepest, level)
    if deepest * min(sum(sizes), deepest * max(sizes)) > MAX_CONTEXTS:
        raise KgInputError(
            f"{source.path} has contexts of JSON-LD of {sum(sizes):,} bytes over {deepest:,} levels; give nodes an "
            "@id and write them beside each other, with `jsonld flatten`"
        )


def with_contexts(source: Source, data: bytes, options: KgOptions) -> bytes:
    """The document with contexts in the place of their addresses.  Raises KgInputError for one that is not there."""
    document = msgspec.json.decode(data)
    files = {address: _context_file(Path(name).expanduser()) for address, name in options.context.items()}
    room = MAX_CONTEXTS

    def context(address: Any) -> Any:
        nonlocal room
        if not isinstance(address, str):
            return None
        if address in files:
            value = files[address]
        elif "" in files:
            value = files[""]
        elif SCHEMA_ORG.match(address):
            value = SCHEMA_ORG_CONTEXT
        else:
            raise KgInputError(
                f"{source.path} is JSON-LD whose context is {address!r}, which is not fetched; save it, with "
                f"`curl -L -H 'Accept: application/ld+json' -o context.jsonld {address}`, and name it: "
                "`--context context.jsonld`"
            )
        room -= len(msgspec.json.encode(value))
        if room < 0:
            raise KgInputError(
                f"{source.path} names contexts by address so often that they take more than {MAX_CONTEXTS:,} bytes; "
                "name the context once, for the whole document"
            )
        return value

    def walk(value: Any) -> Any:
        if isinstance(value, list):
            return [walk(item) for item in value]
        if isinstance(value, dict):
            return {key: contexts(item) if key == "@context" else walk(item) for key, item in value.items()}
        return value

    def contexts(value: Any) -> Any:
        if isinstance(value, list):
            return list(itertools.chain.from_iterable(_listed(contexts(item)) for item in value))
        imported = context(value["@import"]) if isinstance(value, dict) and "@import" in value else None
        if isinstance(imported, Mapping):
            return imported | walk({key: item for key, item in value.items() if key != "@import"})
        return context(value) if isinstance(value, str) else walk(value)

    try:
        return msgspec.json.encode(walk(document))
    except RecursionError:
        raise _too_deep(source, sys.getrecursionlimit() // 2) from None


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _context_file(path: Path) -> Any:
    """The context that a file holds."""
    try:
        value = msgspec.json.decode(read_document(path, KgInputError, needs="a context of JSON-LD"))
    except msgspec.DecodeError as fault:
        raise KgInputError(f"{path}, the context of kg.context, is no JSON: {fault}") from None
    if not isinstance(value, Mapping):
        raise KgInputError(f"{path}, the context of kg.context, is no JSON object; it needs one with @context")
    return value.get("@context", value)


RDF_XML = FormatSpec(RdfXml, "RDF/XML, as of ontologies (.owl)", endings=(".rdf", ".owl", ".rdfs"), specific=True)

JSON_LD = FormatSpec(
    JsonLd, "JSON-LD; contexts inline, of kg.context or schema.org's", endings=(".jsonld",), specific=True
)
