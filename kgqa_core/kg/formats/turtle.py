"""Turtle and TriG, parsed by pyoxigraph; its N-Triples then go the way of every N-Triples file.

A statement that is no Turtle is one reject with its line; a new parser goes on behind its dot, or where a string or an
IRI has no end at the next line behind one that ends with a dot, with the prefixes and the base declared so far.  What
else was lost with it counts as `unread`.  In TriG the rest of a graph is then read without the name of the graph.
A statement at which the parser only rejects an IRI or a language that N-Triples allows is read.  Relative IRIs need a
base in the file, else they are rejects; so are names whose prefix was to be declared in a statement at fault.

Blank nodes are a document's own: `_:x` becomes `_:<hash of the file's label>_x`, and the n-th blank node without a
label `_:<hash>-n` (also with a label like pyoxigraph's own names, 16 to 32 hexadecimal digits from a letter).  So files
never share blank nodes, and a file gives the same ones every time.  Names of TriG's graphs and what RDF 1.2 says about
triples become qualifiers (see `rdf_quads`).
"""

from __future__ import annotations

import itertools
import logging
import re
import sys
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import IO, Any, cast

import polars as pl
import pyoxigraph as ox

from kgqa_core.config import KgOptions
from kgqa_core.kg.formats.ahead import read_ahead
from kgqa_core.kg.formats.api import FormatSpec
from kgqa_core.kg.formats.base import ENTITY, MAX_REJECT_TEXT, REJECTS, StatementBatch
from kgqa_core.kg.formats.ntriples import read_chunk, why
from kgqa_core.kg.formats.ntriples_columns import KIND, OBJECT, SUBJECT
from kgqa_core.kg.formats.rdf_quads import pending, with_terms
from kgqa_core.kg.formats.source import Chunk, Source
from kgqa_core.kg.formats.spans import SpanBatch
from kgqa_core.kg.formats.turtle_feed import BLOCK, STATEMENT, Feed

LOG = logging.getLogger(__name__)

CHUNK = 50_000
"""Statements in one batch."""

MAX_REJECTS = 1_000
"""Rejects after which a batch ends early."""

MAX_TOKEN = 16 << 20
"""Longest token in bytes, which is the parser's own limit."""

FORMULAS = "within formulas of N3"
"""Rule of statements that N3 quotes or makes conditions of."""

LOGIC = "http://www.w3.org/2000/10/swap/log#"
"""Where the predicates are that join formulas of N3."""

DEFAULT = ox.DefaultGraph()

_UNDERSCORE = ord("_")
_WHERE = re.compile(r"^Parser error (?:at|between) .*?: ", re.DOTALL)
_UNLABELLED = re.compile(r"_:[a-f][0-9a-f]{15,31}\Z")
_LINE_END = re.compile(r"[\r\n]")
_LONG = re.compile(rb'"""|\'\'\'|\\\\[nru]')
_NO_IRI = re.compile(r'[\x00-\x20<>"{}|^`\\]')

_TERM = (
    rb'"""(?:[^"\\]++|\\.|"(?!""))*+"""|\'\'\'(?:[^\'\\]++|\\.|\'(?!\'\'))*+\'\'\'|"(?!"")(?:[^"\\\r\n]++|\\.)*+"'
    rb'|\'(?!\'\')(?:[^\'\\\r\n]++|\\.)*+\'|<[^\x00-\x20<>"{}|^`]*+>|\#[^\r\n]*+(?=[\r\n])'
)
_TOKENS = re.compile(rb"(?:" + _TERM + rb"""|[^"'<#])*+""", re.DOTALL)
_REST = re.compile(rb"(?:" + _TERM + rb"|[^.]|\.(?![\s#]|\Z))*+", re.DOTALL)
_REST_OF_TRIG = re.compile(rb"(?:" + _TERM + rb"|[^.{}]|\.(?![\s#}]|\Z))*+", re.DOTALL)
"""What of a statement stands before its dot (or brace)."""

_DOT = re.compile(rb"\.(?=\s)")
_ENDS = re.compile(rb"[.;,](?=\s|\Z)")
_LINES = re.compile(rb"[.;,][ \t]*(?:\#[^\r\n]*)?(?:[\r\n]|\Z)")
_DECLARES = re.compile(rb"(?<!\S)(?:@\w*|(?i:prefix|base)(?=\s))\s*([^\s:<]*)")
_LENIENT = re.compile("Invalid IRI|.*(?:subtag|language)")
_IN_STRING = re.compile(r"escape|UTF-8|hexadecimal")


class Turtle:
    """Reader of Turtle."""

    name = "turtle"
    format = ox.RdfFormat.TURTLE

    def __init__(self, terms: Sequence[str] = (), predicates: Sequence[str] = ()) -> None:
        """A reader that removes prefixes from IRIs: `terms` of subjects and objects, `predicates` of predicates."""
        self._terms, self._predicates = terms, predicates

    def sniff(self, lines: list[str], options: KgOptions) -> float:
        """Share of the statements, of those and the faults, that a parser finds in the first lines."""
        good = faults = 0
        parser = ox.parse("\n".join(lines).encode(), format=self.format, lenient=True)
        last = (0, 0)
        while faults < 200:  # each costs the length of its line
            try:
                next(parser)
                good += 1
            except StopIteration:
                break
            except SyntaxError as fault:
                faults += 1
                last = (fault.lineno or 0, fault.end_lineno or 0)
        if faults and last[1] >= len(lines):  # the last lines are cut off
            faults -= 1
        return good / max(1, good + faults)

    def read(self, source: Source, options: KgOptions) -> Iterator[StatementBatch | SpanBatch]:
        """Statements of a file.  Raises KgInputError for damaged input."""
        reading = _Reading(source, self.format, self._terms, self._predicates)
        reading.drop_graphs = options.named_graphs == "drop"
        try:
            yield from read_ahead(reading.batches)
        finally:
            reading.feed.close()
        if reading.lost:
            LOG.warning("%s: about %s statements could not be read", source.label, f"{reading.lost:,}")


class TriG(Turtle):
    """Reader of TriG: Turtle with named graphs."""

    name = "trig"
    format = ox.RdfFormat.TRIG


class Notation3(Turtle):
    """Reader of the statements of N3; what stands within formulas and rules is counted and left out."""

    name = "n3"
    format = ox.RdfFormat.N3


class _Reading:
    """One pass over a file."""

    def __init__(self, source: Source, form: ox.RdfFormat, terms: Sequence[str], predicates: Sequence[str]) -> None:
        self.feed = Feed(source)
        self.feed.on_read = self._mark
        self.drop_graphs = False
        self._form, self._terms, self._predicates = form, terms, predicates
        self.lost = 0
        self._rejects: list[tuple[int, str, str]] = []
        self._unread = self._formulas = 0
        self._count = 0
        self._marks: list[tuple[int, int]] = [(0, 1)]  # statements parsed before, line reached then
        self._nodes = BlankNodes(source.label)
        self._parser: ox.QuadParser | None = None

    def batches(self) -> Iterator[StatementBatch | SpanBatch]:
        """The statements in pieces."""
        self._parser = self._new()
        while self._parser is not None:
            first = self._count
            quads = self._form == ox.RdfFormat.TRIG
            flat = ox.RdfFormat.N_QUADS if quads else ox.RdfFormat.N_TRIPLES
            data = ox.serialize(self._piece(), format=flat) or b""
            rejects = pl.DataFrame(self._rejects, schema=REJECTS, orient="row")
            self._rejects.clear()
            chunk = Chunk(data, 1, self.feed.fraction, rejects.clear())
            reason, lines = pending(why)
            cut = read_chunk(chunk, self._terms, self._predicates, quads, reason)
            batch = with_terms(cut, lines, not self.drop_graphs, self._nodes.name)
            batch = replace(batch, rejects=pl.concat([rejects, self._on_lines(batch.rejects, first)]))
            batch = replace(batch, unread=self._unread, filtered={FORMULAS: self._formulas} if self._formulas else {})
            self._unread = self._formulas = 0
            if batch.height or batch.rejects.height or batch.filtered:
                yield self._nodes.renamed_in(batch)
            del self._marks[: bisect_right(self._marks, (self._count, 0)) - 1]

    def _new(self) -> ox.QuadParser:
        return ox.parse(cast(IO[bytes], self.feed), format=self._form)

    def _piece(self) -> Iterator[Any]:
        """The next statements, as many as make a batch; what is none goes to the rejects."""
        stop = self._count + CHUNK
        while self._count < stop and len(self._rejects) < MAX_REJECTS and (parser := self._parser) is not None:
            quads = itertools.islice(parser, stop - self._count)
            try:
                for quad in quads:
                    self._count += 1
                    if self._form == ox.RdfFormat.N3 and (
                        quad.graph_name != DEFAULT or quad.predicate.value.startswith(LOGIC)
                    ):
                        self._formulas += 1
                    else:
                        yield quad
                if self._count < stop:
                    self._parser = None
            except (SyntaxError, MemoryError) as fault:
                mended = self._after(parser, fault)
                self._count += len(mended)
                yield from mended

    def _after(self, parser: ox.QuadParser, fault: SyntaxError | MemoryError) -> list[ox.Quad]:
        """Makes a parser for what follows a fault; what a lenient one reads of the statement, else it is a reject."""
        feed, message = self.feed, _WHERE.sub("", str(fault.msg if isinstance(fault, SyntaxError) else fault))
        first = max(feed.first, feed.origin, feed.position - MAX_TOKEN)
        if isinstance(fault, SyntaxError):
            position = feed.locate(fault.lineno or 1, fault.offset or 1)
            within = fault.lineno == fault.end_lineno and not message.startswith("Line jumps")
        elif "buffer" in message:  # it holds the token, and little before it
            message = f"a literal, an IRI or a comment longer than {MAX_TOKEN:,} bytes"
            position, within = first + _length(_TOKENS, feed.window(first, MAX_TOKEN)), False
        else:
            raise fault
        before = feed.window(max(first, position - 1_000), min(position - first, 1_000))
        position -= 0 if feed.window(position, 1) else len(before) - len(before.rstrip())
        if (
            within and before[-3:] in (b'"""', b"'''") and not _IN_STRING.search(message)
        ):  # the quotes of two strings, of which one lacks its other quotes
            opened = feed.window(first, position - 3 - first).rfind(before[-3:])
            position, within = (first + opened, False) if opened >= 0 else (position, within)
        line, begin, ahead = feed.line(position), feed.line_begin(position), feed.window(position, BLOCK)
        text = b"".join(feed.window(begin, 2_000).splitlines()[:1]).decode(errors="replace")[:MAX_REJECT_TEXT]
        known: dict[str | None, str] = {None: parser.base_iri} if parser.base_iri else {}
        known.update(parser.prefixes)
        if (declared := _declared(before, ahead[:1_000])) is not None:
            known = {name: iri for name, iri in known.items() if (name or "") != declared}
        rest, start = _REST_OF_TRIG if self._form == ox.RdfFormat.TRIG else _REST, position
        if _IN_STRING.search(message):
            start = feed.statement_before(position)
        statement, end = feed.window(start, position - start + BLOCK), -1
        while (end := _length(rest, statement, end + 1)) < position - start:
            pass
        size = end + 1 + start - position
        after: int | None = position + size
        mended: list[ox.Quad] = []
        if within and size <= len(ahead):
            lost = 1 + len(re.findall(rb"[;,]\s", ahead[:size]))
            if _LENIENT.match(message):
                start = feed.statement_before(position)
                mended = _leniently(_prologue(known), feed.window(start, position + size - start), self._form, message)
        else:
            tries = ((STATEMENT, MAX_TOKEN), (_DOT, MAX_TOKEN), (STATEMENT, sys.maxsize))
            after = next(
                (
                    found
                    for tried, most in tries
                    if (found := feed.find(tried, max(first, begin) if tried is STATEMENT else position, most))
                ),
                None,
            )
            size = (feed.last if after is None else after) - position
            lines = len((_ENDS if after is None else _LINES).findall(ahead[:size]))
            lost = max(1, lines * max(1, size // max(1, len(ahead))))
        closing = feed.origin and (ahead[:1] == b"}" or (ahead[:1] == b"." and not before.strip()))
        self._parser = None
        if after is not None:
            feed.restart(after, _prologue(known))
            self._parser = self._new()
        if not mended and not closing:  # what closes a statement or a graph at fault, of which there is a reject
            self._rejects.append((line, _reason(message, line, after and feed.line(after), size, lost), text))
            self._unread += lost - 1
            self.lost += lost
        return mended

    def _mark(self, line: int) -> None:
        self._marks.append((self._count, line))

    def _on_lines(self, rejects: pl.DataFrame, first: int) -> pl.DataFrame:
        """Rejects of the N-Triples, with the line of the file that the parser had reached."""
        if not rejects.height:
            return rejects
        counts = [count for count, _ in self._marks]
        lines = [self._marks[bisect_right(counts, first + line - 1) - 1][1] for line in rejects["line"]]
        return rejects.with_columns(
            line=pl.Series(lines, dtype=pl.Int64), reason=pl.col("reason") + " (at or shortly before this line)"
        )


def _leniently(prologue: bytes, text: bytes, form: ox.RdfFormat, message: str) -> list[ox.Quad]:
    """What a lenient parser reads of a text beyond what a strict one reads before its first fault, of this message.

    A lenient parser knows IRIs beyond RFC 3987 and languages beyond BCP 47, but lets line ends into IRIs and strings;
    nothing of such a text is given, nor of one with blank nodes that have no label.
    """
    known = 0
    try:
        for _ in ox.parse(prologue + text, format=form):
            known += 1
        return []
    except SyntaxError as fault:
        if _WHERE.sub("", str(fault.msg)) != message:
            return []
    try:
        quads = list(ox.parse(prologue + text, format=form, lenient=True))
    except SyntaxError:
        return []
    whole = all(_is_whole(quad.triple, _LONG.search(text) is not None) for quad in quads)
    return quads[known:] if whole else []


def _is_whole(triple: ox.Triple, long: bool) -> bool:
    """No line ends where there can be none (`long`: strings may have some), and no blank node without label."""
    thing = triple.object
    iris = [term.value for term in triple if isinstance(term, ox.NamedNode)]
    if isinstance(thing, ox.Literal):
        iris.append(thing.datatype.value)
        if not long and _LINE_END.search(thing.value):
            return False
    nodes = (f"_:{term.value}" for term in (triple.subject, thing) if isinstance(term, ox.BlankNode))
    return not any(_LINE_END.search(iri) for iri in iris) and not any(_UNLABELLED.match(node) for node in nodes)


def _has_blank_nodes(batch: SpanBatch) -> bool:
    rows, data = batch.rows, batch.data
    thing = (data[rows[:, OBJECT]] == _UNDERSCORE) & (rows[:, KIND] == ENTITY)
    return bool(((data[rows[:, SUBJECT]] == _UNDERSCORE) | thing).any())


class BlankNodes:
    """Names for the blank nodes of one file, which no other file has.  label: the file's."""

    def __init__(self, label: str) -> None:
        self._scope = blake2b(label.encode(), digest_size=4).hexdigest()
        self._numbers: dict[str, str] = {}

    def renamed_in(self, batch: StatementBatch | SpanBatch) -> StatementBatch | SpanBatch:
        """The batch with its blank nodes renamed, where it has any."""
        if isinstance(batch, StatementBatch):
            return replace(batch, statements=self.renamed(batch.statements))
        if not _has_blank_nodes(batch):
            return batch
        return StatementBatch(
            self.renamed(batch.statements), batch.rejects, batch.ignored, batch.fraction, batch.qualifiers,
            batch.filtered, batch.unread,
        )  # fmt: skip

    def name(self, node: str) -> str:
        """The name of a blank node."""
        if _UNLABELLED.match(node):
            return self._numbers.setdefault(node, f"_:{self._scope}-{len(self._numbers)}")
        return f"_:{self._scope}_{node[2:]}"

    def renamed(self, statements: pl.DataFrame) -> pl.DataFrame:
        """The statements with the blank nodes of subjects and objects renamed."""
        subject, thing = pl.col("subject").str.starts_with("_:"), pl.col("object").str.starts_with("_:")
        thing = thing & (pl.col("kind") == ENTITY)
        rows = statements.lazy().select(
            pl.when(subject).then("subject"), pl.when(thing).then("object"), pl.int_range(pl.len()).alias("row")
        )
        nodes = rows.filter(pl.any_horizontal(pl.col("subject", "object").is_not_null())).collect()
        if not nodes.height:
            return statements
        for pair in nodes.select("subject", "object").iter_rows():
            for node in pair:
                if node is not None:
                    self.name(node)
        seen = pl.concat([nodes["subject"], nodes["object"]]).drop_nulls().unique()
        new = pl.Series([self.name(node) for node in seen], dtype=pl.String)
        return statements.with_columns(
            subject=pl.when(subject).then(pl.col("subject").replace(seen, new)).otherwise("subject"),
            object=pl.when(thing).then(pl.col("object").replace(seen, new)).otherwise("object"),
        )


def _prologue(known: Mapping[str | None, str]) -> bytes:
    """Declarations of prefixes and, under None, the base, on one line."""
    base = f"@base <{_escaped(known[None])}> . " if None in known else ""
    prefixes = " ".join(f"@prefix {name}: <{_escaped(iri)}> ." for name, iri in known.items() if name is not None)
    return (base + prefixes + "\n").encode()


def _length(pattern: re.Pattern[bytes], text: bytes, at: int = 0) -> int:
    """Where a pattern ends that matches in a text."""
    match = pattern.match(text, at)
    return match.end() if match else at


def _declared(before: bytes, ahead: bytes) -> str | None:
    """The prefix that a statement at fault declares in vain, empty for the base too; None where it declares none."""
    for match in _DECLARES.finditer(before + ahead):
        if match.start() <= len(before) and not before[match.end() :].strip(b": \t\r\n"):
            return match[1].decode(errors="replace")
    return None


def _reason(message: str, line: int, to_line: int | None, size: int, lost: int) -> str:
    """The reason of a reject, with what is skipped."""
    message = message.replace("Unexpected end of file", "a literal or an IRI that does not end")
    more = f"({size:,} bytes{f', about {lost:,} statements' if lost > 1 else ''})"
    if to_line is None:
        return f"{message}; nothing after it could be read {more if size > 0 else ''}".rstrip()
    return f"{message}; skipped to line {to_line} {more}" if to_line > line else message


def _escaped(iri: str) -> str:
    return _NO_IRI.sub(lambda match: f"\\u{ord(match[0]):04X}", iri)


TURTLE = FormatSpec(Turtle, "Turtle, also of RDF 1.2: prefixes, lists, annotations", endings=(".ttl",))


TRIG = FormatSpec(TriG, "TriG, also of RDF 1.2: Turtle with named graphs", endings=(".trig",))


N3 = FormatSpec(Notation3, "N3: its statements, without rules and formulas", endings=(".n3",))
