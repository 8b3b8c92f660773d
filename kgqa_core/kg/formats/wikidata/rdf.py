"""Wikidata's RDF, truthy or full, in N-Triples or Turtle, with the keys and literals of Wikidata's JSON.

Read: statements, labels (rdfs:label, skos:prefLabel and schema:name are one), descriptions, aliases, and whatever is
not known.  Left out, and counted by rule: references, sitelinks, page metadata, declarations of properties, …
An IRI that is the value of a property and no entity is a literal: a media file, or a URL.  The values that RDF has as
blank nodes or `.well-known/genid` are `somevalue`, the class `wdno:P40` is `novalue`.
Statement nodes of a full dump come out in parts, which `kg.assemble_wikidata` puts together after staging.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import unquote

import polars as pl

from kgqa_core.config import KgOptions
from kgqa_core.kg.formats.ahead import read_ahead
from kgqa_core.kg.formats.api import FormatSpec
from kgqa_core.kg.formats.base import ENTITY, LITERAL, PLAIN, QUALIFIERS, STATEMENTS, StatementBatch, filled
from kgqa_core.kg.formats.ntriples import NTriples, read_chunk
from kgqa_core.kg.formats.ntriples_columns import PREDICATE
from kgqa_core.kg.formats.source import Chunk, Source
from kgqa_core.kg.formats.spans import SpanBatch
from kgqa_core.kg.formats.turtle import Turtle
from kgqa_core.kg.formats.wikidata.rdf_terms import (
    ANY,
    DROP,
    METADATA,
    NAME,
    NO_VALUE,
    PART,
    QUALIFIER,
    RANKED,
    RULES,
    SITELINKS,
    STATEMENT_NODES,
    TYPE,
    TYPES,
    VALUE,
    WD,
    WIKIBASE,
    looks_like_wikidata,
    predicate,
)
from kgqa_core.kg.vocabulary import ANY_URI

PAGES = "https://www.wikidata.org/wiki/Special:EntityData/"

_FILE = re.compile(r"https?://commons\.wikimedia\.org/(?:(wiki/Special:FilePath/)|data/main/)")


class WikidataRdf:
    """Reader of Wikidata's RDF."""

    name = "wikidata-rdf"

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, str]] = {}

    def sniff(self, lines: list[str], options: KgOptions) -> float:
        """The share of the syntax's reader if the lines name Wikidata; else 0."""
        if not looks_like_wikidata("\n".join(lines)):
            return 0.0
        return max(NTriples().sniff(lines, options), Turtle().sniff(lines, options))

    def read(self, source: Source, options: KgOptions) -> Iterator[StatementBatch]:
        """Statements of a file, and the parts of its statement nodes.  Raises KgInputError for damaged input."""
        head = [line for line in source.head() if not line.lstrip().startswith("#")]
        if NTriples().sniff(head, options) > 0.5:
            return read_ahead(lambda: map(self._understood, map(_cut, source.chunks())))
        return map(self._understood, Turtle(terms=(WD,)).read(source, options))

    def _understood(self, batch: StatementBatch | SpanBatch) -> StatementBatch:
        predicates = batch.strings(PREDICATE) if isinstance(batch, SpanBatch) else batch.statements["predicate"]
        named = self._classified(predicates)
        keep = named["what"] < DROP
        if isinstance(batch, SpanBatch):
            rows = replace(batch, rows=batch.rows[keep.to_numpy()]).statements
        else:
            rows = batch.statements.filter(keep)
        rows = rows.with_columns(named.filter(keep).get_columns())
        rows = pl.concat([rows.filter(pl.col("what") < TYPE), _judged(rows.filter(pl.col("what") >= TYPE))])
        dropped = pl.concat([named["what"], rows["what"]]).value_counts().filter(pl.col("what") >= DROP)
        filtered = {RULES[what - DROP]: count for what, count in dropped.sort("what").iter_rows()}
        facts = _with_values(rows.filter(pl.col("what") < DROP))
        qualifier = pl.col("what") == QUALIFIER
        return StatementBatch(
            filled(facts.filter(~qualifier), STATEMENTS, PLAIN),
            batch.rejects,
            batch.ignored,
            batch.fraction,
            filled(facts.filter(qualifier).rename({"subject": "statement"}), QUALIFIERS),
            filtered,
            batch.unread,
        )

    def _classified(self, predicates: pl.Series) -> pl.DataFrame:
        """Columns `predicate`, the short key of each, and `what` it is for: a number of `rdf_terms`."""
        iris = predicates.unique()
        for iri in iris:
            if iri not in self._known:
                self._known[iri] = predicate(iri)
        read = [self._known[iri] for iri in iris]
        names = pl.DataFrame(
            {"iri": iris, "what": [what for what, _ in read], "predicate": [key for _, key in read]},
            schema={"iri": pl.String, "what": pl.Int8, "predicate": pl.String},
        )
        rows = predicates.alias("iri").to_frame().join(names, on="iri", how="left", maintain_order="left")
        return rows.select("predicate", "what")


def _cut(chunk: Chunk) -> SpanBatch:
    return read_chunk(chunk, terms=(WD,))


def _drop(rule: str) -> pl.Expr:
    return pl.lit(DROP + RULES.index(rule), dtype=pl.Int8)


def _judged(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows of types, names, ranks and pages with what each is for, which their subject or object decides."""
    thing, what = pl.col("object"), pl.col("what")
    types = thing.replace_strict(list(TYPES), list(TYPES.values()), default=ANY, return_dtype=pl.Int8)
    no_value = (what == TYPE) & thing.str.starts_with(NO_VALUE)
    page = pl.when(pl.col("subject").str.starts_with(PAGES)).then(_drop(METADATA)).otherwise(_drop(SITELINKS))
    entity = ~pl.col("subject").str.contains(":", literal=True)
    normal = thing == WIKIBASE + "NormalRank"
    return rows.with_columns(
        predicate=pl.when(no_value).then(thing.str.strip_prefix(NO_VALUE)).otherwise("predicate"),
        object=pl.when(no_value).then(pl.lit("novalue")).otherwise(thing),
        kind=pl.when(no_value).then(LITERAL).otherwise("kind").cast(pl.Int8),
        datatype=pl.when(no_value).then(pl.lit(WIKIBASE + "novalue")).otherwise("datatype"),
        what=pl.when(no_value | ((what == NAME) & entity))
        .then(ANY)
        .when(what == TYPE)
        .then(types)
        .when(what == RANKED)
        .then(pl.when(normal).then(_drop(STATEMENT_NODES)).otherwise(PART))
        .otherwise(page)
        .cast(pl.Int8),
    )


def _with_values(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with literals for what is no entity among the values of properties."""
    literal = (pl.col("kind") == ENTITY) & pl.col("what").is_in([VALUE, QUALIFIER])
    literal = literal & pl.col("object").str.contains(":", literal=True)
    values = rows.filter(literal)["object"].unique()
    if not len(values):
        return rows
    read = [_value(value) for value in values]
    new = pl.DataFrame(
        {"object": values, "text": [text for text, _ in read], "type": [datatype for _, datatype in read]},
        schema=dict.fromkeys(("object", "text", "type"), pl.String),
    )
    return (
        rows.with_columns(is_value=literal)
        .join(new, on="object", how="left", maintain_order="left")
        .with_columns(
            object=pl.when("is_value").then("text").otherwise("object"),
            datatype=pl.when("is_value").then("type").otherwise("datatype"),
            kind=pl.when("is_value").then(LITERAL).otherwise("kind").cast(pl.Int8),
        )
    )


def _value(iri: str) -> tuple[str, str]:
    """Lexical form and datatype of a property's value that is an IRI or a blank node, but no entity."""
    if iri.startswith("_:") or "/.well-known/genid/" in iri:
        return "somevalue", WIKIBASE + "somevalue"
    if match := _FILE.match(iri):
        name = unquote(iri[match.end() :])
        if match[1]:
            return name, WIKIBASE + "CommonsMedia"
        return name, WIKIBASE + ("GeoShape" if name.endswith(".map") else "TabularData")
    return iri, ANY_URI


FORMAT = FormatSpec(
    WikidataRdf, "Wikidata's RDF, truthy or full with statement nodes", specific=True, words=("truthy",)
)
