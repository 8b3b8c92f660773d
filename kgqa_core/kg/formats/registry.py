"""The graph formats that are read.  A new one is a module with a reader and its `FormatSpec`, and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from kgqa_core.errors import KgInputError, nearest
from kgqa_core.kg.formats import (
    columns,
    cypher,
    delimited,
    freebase,
    graphml,
    json_graph,
    kgtk,
    names,
    neo4j_csv,
    neo4j_json,
    nested_json,
    ntriples,
    rdf_documents,
    tables,
    triple_tables,
    turtle,
    webqsp,
)
from kgqa_core.kg.formats.api import FormatSpec
from kgqa_core.kg.formats.wikidata import json as wikidata_json
from kgqa_core.kg.formats.wikidata import rdf as wikidata_rdf

FORMATS: Mapping[str, FormatSpec] = {
    spec.name: spec
    for spec in (
        columns.FORMAT,
        tables.FORMAT,
        neo4j_csv.FORMAT,
        neo4j_json.FORMAT,
        graphml.FORMAT,
        json_graph.FORMAT,
        cypher.FORMAT,
        wikidata_json.FORMAT,
        kgtk.FORMAT,
        wikidata_rdf.FORMAT,
        freebase.FORMAT,
        webqsp.FORMAT,
        rdf_documents.RDF_XML,
        rdf_documents.JSON_LD,
        ntriples.NTRIPLES,
        ntriples.NQUADS,
        turtle.TURTLE,
        turtle.TRIG,
        turtle.N3,
        delimited.STATEMENT_LINES,
        triple_tables.FORMAT,
        delimited.DELIMITED,
        names.FORMAT,
        nested_json.FORMAT,
    )
}
"""Every format by name; of formats that understand a file equally well the earlier one reads it."""


def check_format(name: str) -> None:
    """Raises KgInputError when no format has this name and it is not `auto`."""
    if name != "auto" and name not in FORMATS:
        known = ["auto", *FORMATS]
        raise KgInputError(f"kg.format {name!r} is unknown{nearest(name, known)}; known are {', '.join(known)}")
