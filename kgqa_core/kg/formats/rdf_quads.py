"""What RDF says beyond triples: the graph of a quad, and triples that are terms of other triples (RDF 1.2, RDF-star).

The name of a graph is a qualifier of its statement, with the relation GRAPH_RELATION; a blank node names none.  What
reifies a triple, `R rdf:reifies <<( s p o )>>`, is a statement whose object is a literal of the triple's terms
(TRIPLE); `kgqa_core.kg.ingest.reification` makes qualifiers of the statements about R.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import blake2b

import numpy as np
import polars as pl
import pyoxigraph as ox

from kgqa_core.kg.formats.base import (
    ENTITY,
    LITERAL,
    MAX_REJECT_TEXT,
    PLAIN,
    QUALIFIERS,
    REJECTS,
    STATEMENTS,
    StatementBatch,
    filled,
)
from kgqa_core.kg.formats.ntriples_columns import GRAPH
from kgqa_core.kg.formats.spans import SpanBatch

GRAPH_RELATION = "graph"
"""Relation of the qualifier that says which graph states a triple."""

REIFIES = "http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies"

TRIPLE = "urn:kgqa:triple"
"""Datatype of a literal that stands for a triple: subject, predicate, datatype of the object (empty: an entity) and
object, cut by single spaces, which only the object may hold."""

QUOTED = "<<"
"""How a triple that is a term begins."""

_DIRECTION = re.compile(r'"[ \t]*@[A-Za-z0-9-]+--(?:ltr|rtl)\b')
"""The base direction of a text, which is not kept."""

PENDING = "a triple as a term"
"""Reason of a line that holds a triple as a term or a base direction, until it is read."""

Row = tuple[str, str, str, int, str | None]


def pending(reason: Callable[[str], str]) -> tuple[Callable[[str], str], list[str]]:
    """A function for the reasons of bad lines that puts those with a triple as a term aside, and their list."""
    lines: list[str] = []

    def why(text: str) -> str:
        if QUOTED not in text and not _DIRECTION.search(text):
            return reason(text)
        lines.append(text)
        return PENDING

    return why, lines


def with_graphs(batch: SpanBatch) -> SpanBatch:
    """The batch with the names of its graphs as qualifiers."""
    named = np.flatnonzero(batch.rows[:, GRAPH + 1])
    named = named[batch.data[batch.rows[named, GRAPH]] != ord("_")]
    if not len(named):
        return batch
    graphs = replace(batch, rows=batch.rows[named]).graphs
    return replace(batch, qualifiers=_graphs(pl.DataFrame({"row": named, "object": graphs})))


def _graphs(rows: pl.DataFrame) -> pl.DataFrame:
    return filled(rows.with_columns(predicate=pl.lit(GRAPH_RELATION), kind=pl.lit(ENTITY)), QUALIFIERS)


def with_terms(
    batch: SpanBatch, lines: list[str], graphs: bool = False, name: Callable[[str], str] = lambda node: node
) -> StatementBatch | SpanBatch:
    """The batch with the statements of the lines that `pending` put aside.

    graphs: names of graphs become qualifiers, in all of the batch.  name: what a blank node is called.
    """
    if graphs:
        batch = with_graphs(batch)
    if not lines:
        return batch
    waiting = batch.rejects["reason"] == PENDING
    rows: list[Row] = []
    named: list[tuple[int, str]] = []
    rejects: list[tuple[int, str, str]] = []
    for number, line in zip(batch.rejects.filter(waiting)["line"], lines, strict=True):
        try:
            read = list(_rows(line, name))
            named += [(batch.height + len(rows) + k, graph) for k, (_, graph) in enumerate(read) if graph and graphs]
            rows += [row for row, _ in read]
        except SyntaxError as fault:
            reason = f"no statement{' with a triple as a term' * (QUOTED in line)}: {fault.msg}"
            rejects.append((number, reason, line[:MAX_REJECT_TEXT]))
    qualifiers = [] if batch.qualifiers is None else [batch.qualifiers]
    if named:
        qualifiers.append(_graphs(pl.DataFrame(named, schema={"row": pl.Int64, "object": pl.String}, orient="row")))
    added = pl.DataFrame(rows, schema={name: STATEMENTS[name] for name in PLAIN}, orient="row")
    return StatementBatch(
        pl.concat([batch.statements, added]),
        pl.concat([batch.rejects.filter(~waiting), pl.DataFrame(rejects, schema=REJECTS, orient="row")]),
        batch.ignored,
        batch.fraction,
        pl.concat(qualifiers) if qualifiers else None,
        batch.filtered,
        batch.unread,
    )


def _rows(line: str, name: Callable[[str], str]) -> Iterator[tuple[Row, str | None]]:
    """The statements of a line, with the IRI of their graph.  Raises SyntaxError.

    name: renames the blank nodes within a triple that is a term; the others are renamed with the batch.
    """
    names: dict[str, str] = {}
    try:
        quads = list(ox.parse(line, format=ox.RdfFormat.N_QUADS))
    except SyntaxError:
        if not line.lstrip().startswith(QUOTED):
            raise
        quads = list(ox.parse(line, format=ox.RdfFormat.TURTLE))  # `<< s p o >> p o`, of RDF-star
        scope = blake2b(line.encode(), digest_size=8).hexdigest()
        nodes = [quad.subject for quad in quads if isinstance(quad.subject, ox.BlankNode)]
        names = {f"_:{node.value}": f"_:r{scope}" for node in nodes if f"_:{node.value}" not in line}
    for quad in quads:
        subject = _term(quad.subject)[0]
        subject, thing = names.get(subject, subject), quad.object
        graph = quad.graph_name.value if isinstance(quad.graph_name, ox.NamedNode) else None
        if not isinstance(thing, ox.Triple):
            yield (subject, quad.predicate.value, *_term(thing)), graph
        elif quad.predicate.value == REIFIES:
            ends = [
                (name(key) if kind == ENTITY and key.startswith("_:") else key, datatype or "")
                for key, kind, datatype in map(_term, (thing.subject, thing.object))
            ]
            text = " ".join((ends[0][0], thing.predicate.value, ends[1][1], ends[1][0]))
            yield (subject, REIFIES, text, LITERAL, TRIPLE), graph
        else:
            raise SyntaxError(f"a triple is the value of {quad.predicate}, and not what rdf:reifies names")


def _term(term: object) -> tuple[str, int, str | None]:
    """Key or lexical form, kind and datatype of a term.  Raises SyntaxError for a triple."""
    if isinstance(term, ox.NamedNode):
        return term.value, ENTITY, None
    if isinstance(term, ox.BlankNode):
        return f"_:{term.value}", ENTITY, None
    if isinstance(term, ox.Literal):
        return term.value, LITERAL, f"@{term.language.lower()}" if term.language else term.datatype.value
    raise SyntaxError("a triple within a triple is not read")
