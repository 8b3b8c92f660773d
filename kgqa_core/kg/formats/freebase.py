"""Freebase's RDF dump: N-Triples with tabs (or Turtle, before 2013), with keys as Freebase writes them.

`<http://rdf.freebase.com/ns/m.02mjmr>` is `m.02mjmr`, a relation `people.person.place_of_birth`; other IRIs stay whole.
`type.object.name` is rdfs:label, `common.topic.alias` skos:altLabel, `common.topic.description` schema:description,
`type.object.type` rdf:type, and `type.type.instance`, its inverse, is inverted: what the dump says twice is counted
as duplicates.  Keys in other data sets (`type.object.key`, `key/wikipedia.en`) are relations like others, their
`$0028` decoded; `kg.drop_relations` leaves them out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from kgqa_core.config import KgOptions
from kgqa_core.kg.formats.ahead import read_ahead
from kgqa_core.kg.formats.api import FormatSpec
from kgqa_core.kg.formats.base import ENTITY, LITERAL, StatementBatch
from kgqa_core.kg.formats.ntriples import NTriples, read_chunk
from kgqa_core.kg.formats.source import Chunk, Source
from kgqa_core.kg.formats.spans import SpanBatch
from kgqa_core.kg.formats.turtle import Turtle
from kgqa_core.kg.vocabulary import ALIAS, DESCRIPTION, FREEBASE, LABEL, RDF_TYPE

KEY = "http://rdf.freebase.com/key/"
INSTANCE = "type.type.instance"
KEY_RELATION = "type.object.key"

PREDICATES = {
    "type.object.name": LABEL,
    "common.topic.alias": ALIAS,
    "common.topic.description": DESCRIPTION,
    "type.object.type": RDF_TYPE,
}
"""Relations that have a name of their own everywhere."""

_ESCAPES = re.compile(r"(?:\$[0-9A-F]{4})+")


class Freebase:
    """Reader of Freebase's RDF dump."""

    name = "freebase"

    def sniff(self, lines: list[str], options: KgOptions) -> float:
        """The share of the syntax's reader if most lines name Freebase; else 0."""
        if not lines:
            return 0.0
        if sum(f"<{FREEBASE}" in line for line in lines) > len(lines) / 2:
            return NTriples().sniff(lines, options)
        return (
            Turtle().sniff(lines, options)
            if any(FREEBASE in line for line in lines if "prefix" in line.lower())
            else 0.0
        )

    def read(self, source: Source, options: KgOptions) -> Iterator[StatementBatch]:
        """Statements of a file.  Raises KgInputError for damaged input."""
        head = [line for line in source.head() if not line.lstrip().startswith("#")]
        if NTriples().sniff(head, options) > 0.5:
            return read_ahead(lambda: map(_understood, map(_read, source.chunks())))
        return map(_understood, Turtle(terms=(FREEBASE,), predicates=(FREEBASE,)).read(source, options))


def _read(chunk: Chunk) -> SpanBatch:
    return read_chunk(chunk, terms=(FREEBASE,), predicates=(FREEBASE,))


def _understood(batch: StatementBatch | SpanBatch) -> StatementBatch:
    statements = _with_keys(batch.statements)
    return StatementBatch(statements, batch.rejects, batch.ignored, batch.fraction, unread=batch.unread)


def _with_keys(statements: pl.DataFrame) -> pl.DataFrame:
    """The statements, their prefixes off, with the predicates of everywhere and keys decoded."""
    thing, entity = pl.col("object"), pl.col("kind") == ENTITY
    turned = (pl.col("predicate") == INSTANCE) & entity
    key = pl.col("predicate").str.starts_with(KEY)
    rows = statements.with_columns(
        subject=pl.when(turned).then("object").otherwise("subject"),
        predicate=pl.when(turned)
        .then(pl.lit(RDF_TYPE))
        .when(key)
        .then(pl.concat_str(pl.lit("key/"), pl.col("predicate").str.strip_prefix(KEY)))
        .otherwise(pl.col("predicate").replace(PREDICATES)),
        object=pl.when(turned).then("subject").otherwise("object"),
    )
    coded = (pl.col("kind") == LITERAL) & thing.str.contains("$", literal=True)
    coded = coded & (pl.col("predicate").str.starts_with("key/") | (pl.col("predicate") == KEY_RELATION))
    values = rows.filter(coded)["object"].unique()
    if not len(values):
        return rows
    decoded = pl.Series([unescape(value) for value in values], dtype=pl.String)
    return rows.with_columns(object=pl.when(coded).then(thing.replace(values, decoded)).otherwise(thing))


def unescape(key: str) -> str:
    """A key of Freebase with its `$0028` decoded (units of UTF-16); what is no character stays as it is."""

    def characters(match: re.Match[str]) -> str:
        units = bytes.fromhex(match[0].replace("$", ""))
        try:
            return units.decode("utf-16-be")
        except UnicodeDecodeError:
            return match[0]

    return _ESCAPES.sub(characters, key)


FORMAT = FormatSpec(Freebase, "Freebase's RDF dump", specific=True, words=("freebase",))
