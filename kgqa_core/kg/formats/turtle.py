"""Turtle and TriG, parsed by pyoxigraph; its N-Triples then go the way of every N-Triples file.

A statement that is no Turtle is one reject with its line; reading goes on after the next line that ends a statement,
with the prefixes and the base declared so far.  A statement at which the parser only minds an IRI or a language that
N-Triples allows is kept.  Relative IRIs need a base in the file, else they are rejects.

Blank nodes are a document's own: `_:x` becomes `_:<hash of the file's label>_x`, and the n-th blank node without a
label `_:<hash>-n` (also with a label like pyoxigraph's own names, 16 to 32 hexadecimal digits from a letter).  So files
never share blank nodes, and a file gives the same ones every time.  Labels of TriG's graphs are dropped, and their
number is logged.
"""

from __future__ import annotations

import itertools
import logging
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import IO, Any, cast

import polars as pl
import pyoxigraph as ox

from kgqa_core.config import KgOptions
from kgqa_core.kg.formats.ahead import read_ahead
from kgqa_core.kg.formats.base import ENTITY, REJECTS, Batch
from kgqa_core.kg.formats.ntriples import read_chunk
from kgqa_core.kg.formats.ntriples_kernels import KIND, OBJECT, SUBJECT
from kgqa_core.kg.formats.source import Chunk, Source
from kgqa_core.kg.formats.spans import SpanBatch
from kgqa_core.kg.formats.turtle_feed import Feed

LOG = logging.getLogger(__name__)

CHUNK = 50_000
"""Statements in one batch."""

MAX_REJECTS = 1_000
"""Rejects after which a batch ends early."""

_UNDERSCORE = ord("_")
_WHERE = re.compile(r"^Parser error (?:at|between) .*?: ", re.DOTALL)
_UNLABELLED = re.compile(r"_:[a-f][0-9a-f]{15,31}\Z")
_LINE_END = re.compile(r"[\r\n]")
_LONG = re.compile(rb'"""|\'\'\'|\\\\[nru]')
_NO_IRI = re.compile(r'[\x00-\x20<>"{}|^`\\]')


class Turtle:
    """Reader of Turtle."""

    name = "turtle"
    format = ox.RdfFormat.TURTLE

    def __init__(self, terms: Sequence[str] = (), predicates: Sequence[str] = ()) -> None:
        """A reader that takes these prefixes off IRIs: `terms` of subjects and objects, `predicates` of predicates."""
        self._terms, self._predicates = terms, predicates

    def sniff(self, lines: list[str], options: KgOptions) -> float:
        """Share of the statements, of those and the faults, that a parser finds in the first lines."""
        good = faults = 0
        parser = ox.parse("\n".join(lines).encode(), format=self.format, lenient=True)
        last = (0, 0)
        while True:
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

    def read(self, source: Source, options: KgOptions) -> Iterator[Batch | SpanBatch]:
        """Statements of a file.  Raises KgInputError for damaged input."""
        reading = _Reading(source, self.format, self._terms, self._predicates)
        try:
            yield from read_ahead(reading.batches)
        finally:
            reading.feed.close()
        if reading.graphs:
            LOG.info(
                "%s: statements of %s named graphs are read as one graph", source.label, f"{len(reading.graphs):,}"
            )


class TriG(Turtle):
    """Reader of TriG: Turtle with named graphs."""

    name = "trig"
    format = ox.RdfFormat.TRIG


class _Reading:
    """One pass over a file."""

    def __init__(self, source: Source, form: ox.RdfFormat, terms: Sequence[str], predicates: Sequence[str]) -> None:
        self.feed = Feed(source)
        self.feed.on_read = self._mark
        self.graphs: set[object] = set()
        self._form, self._terms, self._predicates = form, terms, predicates
        self._rejects: list[tuple[int, str, str]] = []
        self._count = 0
        self._marks: list[tuple[int, int]] = [(0, 1)]  # statements parsed before, line reached then
        self._nodes = BlankNodes(source.label)
        self._parser: ox.QuadParser | None = None

    def batches(self) -> Iterator[Batch | SpanBatch]:
        """The statements in pieces."""
        self._parser = self._new()
        while self._parser is not None:
            first = self._count
            data = ox.serialize(self._piece(), format=ox.RdfFormat.N_TRIPLES) or b""
            rejects = pl.DataFrame(self._rejects, schema=REJECTS, orient="row")
            self._rejects.clear()
            chunk = Chunk(data, 1, self.feed.fraction, rejects.clear())
            batch = read_chunk(chunk, self._terms, self._predicates)
            rejects = pl.concat([rejects, self._placed(batch.rejects, first)])
            if _has_blank_nodes(batch):
                yield Batch(self._nodes.renamed(batch.statements), rejects, fraction=self.feed.fraction)
            elif batch.height or rejects.height:
                yield replace(batch, rejects=rejects)
            del self._marks[: bisect_right(self._marks, (self._count, 0)) - 1]

    def _new(self) -> ox.QuadParser:
        return ox.parse(cast(IO[bytes], self.feed), format=self._form)

    def _piece(self) -> Iterator[Any]:
        """The next statements, as many as make a batch; what is none goes to the rejects."""
        stop = self._count + CHUNK
        while self._count < stop and len(self._rejects) < MAX_REJECTS and (parser := self._parser) is not None:
            quads = itertools.islice(parser, stop - self._count)
            try:
                if self._form == ox.RdfFormat.TURTLE:
                    for quad in quads:
                        self._count += 1
                        yield quad
                else:
                    yield from self._triples(quads)
                if self._count < stop:
                    self._parser = None
            except SyntaxError as fault:
                self._parser, mended = self._after(parser, fault)
                self._count += len(mended)
                yield from mended

    def _triples(self, quads: Iterable[ox.Quad]) -> Iterator[ox.Triple]:
        default = ox.DefaultGraph()
        for quad in quads:
            self._count += 1
            if quad.graph_name != default:
                self.graphs.add(quad.graph_name)
            yield quad.triple

    def _after(self, parser: ox.QuadParser, fault: SyntaxError) -> tuple[ox.QuadParser | None, list[ox.Triple]]:
        """A parser for what follows a fault, None at the end of the file; and what is left of the statement at fault.

        Where nothing is left the statement is a reject.
        """
        prologue = _prologue(parser)
        skipped = self.feed.skip(fault.lineno or 1, prologue)
        new = None if skipped.after is None else self._new()
        if fault.lineno == fault.end_lineno and (mended := _leniently(prologue + skipped.statement, self._form)):
            return new, mended
        reason = _WHERE.sub("", str(fault.msg)).replace(
            "Unexpected end of file", "a literal or an IRI that does not end"
        )
        if skipped.after is None:
            reason += "; nothing after it could be read"
        elif skipped.after > skipped.line + 1:
            reason += f"; skipped to line {skipped.after}"
        self._rejects.append((skipped.line, reason, skipped.text))
        return new, []

    def _mark(self, line: int) -> None:
        self._marks.append((self._count, line))

    def _placed(self, rejects: pl.DataFrame, first: int) -> pl.DataFrame:
        """Rejects of the N-Triples, with the line of the file that the parser had reached."""
        if not rejects.height:
            return rejects
        counts = [count for count, _ in self._marks]
        lines = [self._marks[bisect_right(counts, first + line - 1) - 1][1] for line in rejects["line"]]
        return rejects.with_columns(
            line=pl.Series(lines, dtype=pl.Int64), reason=pl.col("reason") + " (at or shortly before this line)"
        )


def _leniently(statement: bytes, form: ox.RdfFormat) -> list[ox.Triple]:
    """What a lenient parser reads of a statement beyond what a strict one reads before its first fault.

    A lenient parser knows IRIs beyond RFC 3987 and languages beyond BCP 47, but lets line ends into IRIs and strings;
    nothing of such a statement is given, nor of one with blank nodes that have no label.
    """
    known = 0
    try:
        for _ in ox.parse(statement, format=form):
            known += 1
    except SyntaxError:
        pass
    try:
        triples = [quad.triple for quad in ox.parse(statement, format=form, lenient=True)]
    except SyntaxError:
        return []
    whole = all(_is_whole(triple, _LONG.search(statement) is not None) for triple in triples)
    return triples[known:] if whole else []


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
                if node is not None and node not in self._numbers and _UNLABELLED.match(node):
                    self._numbers[node] = f"_:{self._scope}-{len(self._numbers)}"
        seen = pl.concat([nodes["subject"], nodes["object"]]).drop_nulls().unique()
        new = pl.Series([self._numbers.get(node) or f"_:{self._scope}_{node[2:]}" for node in seen], dtype=pl.String)
        return statements.with_columns(
            subject=pl.when(subject).then(pl.col("subject").replace(seen, new)).otherwise("subject"),
            object=pl.when(thing).then(pl.col("object").replace(seen, new)).otherwise("object"),
        )


def _prologue(parser: ox.QuadParser) -> bytes:
    """Declarations, on one line, of what a parser knows."""
    base = f"@base <{_escaped(parser.base_iri)}> . " if parser.base_iri else ""
    known = " ".join(f"@prefix {name}: <{_escaped(iri)}> ." for name, iri in parser.prefixes.items())
    return (base + known + "\n").encode()


def _escaped(iri: str) -> str:
    return _NO_IRI.sub(lambda match: f"\\u{ord(match[0]):04X}", iri)
