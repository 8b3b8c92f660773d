"""Turtle and TriG, parsed by pyoxigraph; its N-Triples then go the way of every N-Triples file.

A statement that is no Turtle is one reject with its line; reading goes on at the next statement, on the same line too,
with the prefixes and the base declared so far (see `turtle_recover`).  What else was lost with it counts as `unread`.
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
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import IO, TYPE_CHECKING, Any, cast

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

if TYPE_CHECKING:
    from kgqa_core.kg.formats.turtle_recover import Skipped

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

    def read(self, source: Source, options: KgOptions) -> Iterator[StatementBatch | SpanBatch]:
        """Statements of a file.  Raises KgInputError for damaged input."""
        reading = _Reading(source, self.format, self._terms, self._predicates)
        reading.drop_graphs = options.named_graphs == "drop"
        try:
            yield from read_ahead(reading.batches)
        finally:
            reading.feed.close()
        if reading.lost[1]:
            LOG.warning(
                "%s: %s bytes could not be read, about %s statements", source.label, *(f"{n:,}" for n in reading.lost)
            )


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
        from kgqa_core.kg.formats.turtle_feed import Feed  # numba takes 0.4 s to import
        from kgqa_core.kg.formats.turtle_recover import Recovery

        self.feed = Feed(source, form == ox.RdfFormat.TRIG)
        self.feed.on_read = self._mark
        self.drop_graphs = False
        self._form, self._terms, self._predicates = form, terms, predicates
        self.lost = (0, 0)  # bytes, statements
        self._rejects: list[tuple[int, str, str]] = []
        self._unread = self._formulas = 0
        self._count = 0
        self._marks: list[tuple[int, int]] = [(0, 1)]  # statements parsed before, line reached then
        self._nodes = BlankNodes(source.label)
        self._parser: ox.QuadParser | None = None
        self._known: dict[str | None, str] = {}
        self._recovery = Recovery(self.feed, form == ox.RdfFormat.TRIG, self._whole)

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
        """Makes a parser for what follows a fault, none at the end of the file; what is left of the statement at fault.

        Where nothing is left the statement is a reject.
        """
        self._known = {None: parser.base_iri} if parser.base_iri else {}
        self._known.update(parser.prefixes)
        if isinstance(fault, SyntaxError):
            skipped = self._recovery.after(self.feed.locate(fault.lineno or 1, fault.offset or 1))
            mended = self._mended(skipped) if fault.lineno == fault.end_lineno else []
        elif "buffer" in str(fault):
            skipped, mended = self._recovery.after(None), []
        else:
            raise fault
        for name in skipped.prefixes:
            self._known.pop(name, None)
        self._parser = None
        if skipped.after is not None:
            self.feed.restart(skipped.after, _prologue(self._known, skipped.open), skipped.open)
            self._parser = self._new()
        if not mended and skipped.lost:
            text = skipped.text.decode(errors="replace")[:MAX_REJECT_TEXT]
            self._rejects.append((skipped.line, _reason(fault, skipped), text))
            self._unread += skipped.lost - 1
            self.lost = self.lost[0] + skipped.size, self.lost[1] + skipped.lost
        return mended

    def _mended(self, skipped: Skipped) -> list[ox.Quad]:
        if skipped.statement is None:
            return []
        return _leniently(_prologue(self._known, 0) + _closed(skipped.statement, skipped.depth), self._form)

    def _whole(self, statement: bytes, depth: int, after: int) -> bool:
        """Whether a parser reads all of a statement, and something is in it; open braces before and after it."""
        text = b"{ " * depth + statement + b" }" * after
        parser = ox.parse(_prologue(self._known, 0) + text, format=self._form)
        try:
            something = sum(1 for _ in parser) > 0
        except SyntaxError:
            return False
        return something or parser.base_iri != self._known.get(None) or len(parser.prefixes) + 1 > len(self._known)

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


def _leniently(statement: bytes, form: ox.RdfFormat) -> list[ox.Quad]:
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
        quads = list(ox.parse(statement, format=form, lenient=True))
    except SyntaxError:
        return []
    whole = all(_is_whole(quad.triple, _LONG.search(statement) is not None) for quad in quads)
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


def _prologue(known: Mapping[str | None, str], depth: int) -> bytes:
    """Declarations of prefixes and, under None, the base, on one line; in TriG then open braces."""
    base = f"@base <{_escaped(known[None])}> . " if None in known else ""
    prefixes = " ".join(f"@prefix {name}: <{_escaped(iri)}> ." for name, iri in known.items() if name is not None)
    return (base + prefixes + " {" * depth + "\n").encode()


def _closed(statement: bytes, depth: int) -> bytes:
    """A statement of TriG with the braces around it."""
    if not depth:
        return statement
    return b"{ " + statement + (b"" if statement.rstrip().endswith(b"}") else b" }")


def _reason(fault: SyntaxError | MemoryError, skipped: Skipped) -> str:
    if isinstance(fault, MemoryError):
        reason = f"a literal, an IRI or a comment longer than {MAX_TOKEN:,} bytes"
    else:
        reason = _WHERE.sub("", str(fault.msg))
        reason = reason.replace("Unexpected end of file", "a literal or an IRI that does not end")
    more = f", about {skipped.lost:,} statements" if skipped.lost > 1 else ""
    if skipped.after is None:
        return f"{reason}; nothing after it could be read" + (f" ({skipped.size:,} bytes{more})" if more else "")
    if skipped.to_line > skipped.line:
        return f"{reason}; skipped to line {skipped.to_line} ({skipped.size:,} bytes{more})"
    return reason


def _escaped(iri: str) -> str:
    return _NO_IRI.sub(lambda match: f"\\u{ord(match[0]):04X}", iri)


TURTLE = FormatSpec(Turtle, "Turtle, also of RDF 1.2: prefixes, lists, annotations", endings=(".ttl",))


TRIG = FormatSpec(TriG, "TriG, also of RDF 1.2: Turtle with named graphs", endings=(".trig",))


N3 = FormatSpec(Notation3, "N3: its statements, without rules and formulas", endings=(".n3",))
