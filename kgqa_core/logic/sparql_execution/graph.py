"""A graph as the engine of SPARQL sees it: terms of its nodes, and the triples that were taken into a slice of it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from rdflib import URIRef

from kgqa_core.errors import FormTimeout
from kgqa_core.kg.store import KgStore
from kgqa_core.kg.vocabulary import FREEBASE, RDF_TYPE, RDFS, STRING, WIKIDATA
from kgqa_core.logic.sparql_execution.engine import NotExecuted
from kgqa_core.logic.sparql_execution.scopes import PlainTerm
from kgqa_core.logic.sparql_graph import key_of

TOO_LARGE = "its patterns touch too many triples"
ENTITY, DIRECT = f"{WIKIDATA}entity/", f"{WIKIDATA}prop/direct/"
TYPES = {RDF_TYPE, FREEBASE + "type.object.type", DIRECT + "P31"}
"""Relations from an entity to its types."""

_TABLES = {iri: ("types", "entity", "type") for iri in TYPES} | {
    iri: ("subtypes", "type", "super") for iri in (RDFS + "subClassOf", DIRECT + "P279")
}
_ILLEGAL = re.compile(r'[\x00-\x20<>"{}|^`\\]')

Edge = tuple[int, int, int, int]
"""Triple id, head, relation, tail."""


@dataclass(slots=True)
class Slice:
    """RDF triples by their terms with the triple id of each (None for names and qualifiers), and what terms stand for.

    nodes: node id by term.  missing: constants and relations of the query that the graph does not have.
    """

    triples: dict[tuple[str, str, str], int | None] = field(default_factory=dict)
    nodes: dict[str, int] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The triples as N-Triples."""
        return "".join(f"{subject} {relation} {value} .\n" for subject, relation, value in self.triples)

    def literals(self) -> list[str]:
        """The literals of nodes that have a datatype."""
        return [term for term in self.nodes if term.startswith('"') and "^^" in term]


class SlicedGraph:
    """An open graph and the slice of it that is being made.  most: RDF triples of the slice.  seconds: after which no
    further look-up begins."""

    def __init__(self, store: KgStore, most: int, seconds: float) -> None:
        self.store, self.most, self.seconds = store, most, seconds
        self.end = time.monotonic() + seconds
        self.slice = Slice()
        self.terms: dict[int, str] = {}
        self.constants: dict[PlainTerm, set[int]] = {}
        self.relations: dict[str, int | None] = {}
        self.keys: list[str] | None = None
        self.space = ""

    def edges_of(self, iri: str, heads: set[int] | None, tails: set[int] | None) -> list[Edge]:
        """Triples of a relation by its IRI; types of a graph that has them in tables only have the triple id -1."""
        relation = self.relation(iri, count=iri not in _TABLES)
        if relation is not None:
            return self.edges(relation, heads, tails)
        if iri not in _TABLES:
            return []
        table, first, second = _TABLES[iri]
        tests, parameters = ["true"], list[Any]()
        for column, ids in ((first, heads), (second, tails)):
            if ids is not None:
                parameters.append(sorted(ids))
                tests.append(f"{column} IN (SELECT unnest(${len(parameters)}::BIGINT[]))")
        sql = f"SELECT -1, {first}, -1, {second} FROM {table} WHERE {' AND '.join(tests)} ORDER BY ALL"
        return self.bounded(self.store.connection.execute(f"{sql} LIMIT {self.most + 1}", parameters).fetchall())

    def edges(self, relation: int | None, heads: set[int] | None, tails: set[int] | None) -> list[Edge]:
        """Triples of a relation (or of all) out of some heads and into some tails, in order of id."""
        if heads == set() or tails == set():
            return []
        tests, parameters = [], list[Any]()
        for column, value in (("relation", relation), ("head", heads), ("tail", tails)):
            if value is None:
                continue
            parameters.append(value if isinstance(value, int) else sorted(value))
            placeholder = f"${len(parameters)}"
            tests.append(
                f"{column} = {placeholder}"
                if isinstance(value, int)
                else f"{column} IN (SELECT unnest({placeholder}::BIGINT[]))"
            )
        where = f"WHERE {' AND '.join(tests)}" if tests else ""
        sql = f"SELECT id, head, relation, tail FROM triples {where} ORDER BY id LIMIT {self.most + 1}"
        return self.bounded(self.store.connection.execute(sql, parameters).fetchall())

    def bounded(self, rows: list[Any]) -> list[Any]:
        """Rows of edges whose ends have terms now.  Raises NotExecuted where there are more than a slice may have, and
        FormTimeout."""
        if len(rows) > self.most:
            raise NotExecuted(TOO_LARGE)
        if time.monotonic() > self.end:
            raise FormTimeout(f"the query's part of the graph took longer than {self.seconds:g} s")
        self.name(node for row in rows for node in (row[1], row[3]))
        return rows

    def relation(self, iri: str, *, count: bool = True) -> int | None:
        """The id of a relation; None, and noted, where the graph does not have it."""
        if iri not in self.relations:
            row = self.store.connection.execute(
                "SELECT id FROM relations WHERE key IN ($1, $2) ORDER BY key = $1 DESC LIMIT 1", [key_of(iri), iri]
            ).fetchone()
            self.relations[iri] = None if row is None else int(row[0])
        if self.relations[iri] is None and count and iri not in self.slice.missing:
            self.slice.missing.append(iri)
        return self.relations[iri]

    def iri_of(self, relation: int) -> str:
        """The IRI of a relation that the query does not name."""
        if self.keys is None:
            self.keys = self.store.relation_keys()
        return _iri(self.keys[relation], DIRECT if self.space == ENTITY else self.space)

    def constant(self, term: PlainTerm) -> set[int]:
        """The node of a constant, or the nodes of a literal's text whatever their datatypes; none is noted."""
        if term not in self.constants:
            if isinstance(term, URIRef):
                iri = str(term)
                rows = self.store.connection.execute(
                    "SELECT id FROM entities WHERE key IN ($1, $2) AND kind = 'entity' ORDER BY key = $1 DESC LIMIT 1",
                    [key_of(iri), iri],
                ).fetchall()
                for (node,) in rows:
                    self.terms[node] = f"<{iri}>"
                    self.slice.nodes[f"<{iri}>"] = node
                    self.space = self.space or next((one for one in (ENTITY, FREEBASE) if iri.startswith(one)), "")
            else:
                rows = self.store.connection.execute(
                    "SELECT id FROM entities WHERE key = $1 AND kind = 'literal'", [str(term)]
                ).fetchall()
            self.constants[term] = {row[0] for row in rows}
        if not self.constants[term] and str(term) not in self.slice.missing:
            self.slice.missing.append(str(term))
        return self.constants[term]

    def name(self, nodes: Iterable[int]) -> None:
        """Makes terms of nodes that have none."""
        fresh = sorted({node for node in nodes if node not in self.terms})
        if not fresh:
            return
        rows = self.store.connection.execute(
            "SELECT id, key, kind, datatype FROM entities WHERE id IN (SELECT unnest($1::BIGINT[])) ORDER BY id",
            [fresh],
        ).fetchall()
        for node, key, kind, datatype in rows:
            term = f"<{_iri(key, self.space)}>" if kind == "entity" else literal_term(key, datatype or STRING)
            self.terms[node] = term
            self.slice.nodes.setdefault(term, node)

    def term(self, node: int) -> str:
        """The term of a node."""
        if node not in self.terms:
            self.name([node])
        return self.terms[node]

    def add_edge(self, edge: Edge, iri: str) -> None:
        """Takes an edge into the slice, its relation called as the query does."""
        self.add((self.terms[edge[1]], f"<{iri}>", self.terms[edge[3]]), edge[0] if edge[0] >= 0 else None)

    def add(self, triple: tuple[str, str, str], number: int | None) -> None:
        """Takes an RDF triple into the slice; number: its triple id.  Raises NotExecuted where there are too many."""
        self.slice.triples.setdefault(triple, number)
        if len(self.slice.triples) > self.most:
            raise NotExecuted(TOO_LARGE)


def _iri(key: str, space: str) -> str:
    """The IRI of a key in a namespace; a key that is an IRI is its own."""
    whole = key if "://" in key or key.startswith("urn:") else (space or "urn:kgqa:key:") + key
    return _ILLEGAL.sub(lambda match: quote(match[0]), whole)


def literal_term(text: str, datatype: str) -> str:
    """A literal as N-Triples writes it; datatype: an IRI, or `@` and a language.

    >>> literal_term('a "b"', "@en")
    '"a \\\\"b\\\\""@en'
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    if datatype.startswith("@"):
        return f'"{escaped}"{datatype}'
    return f'"{escaped}"' if datatype == STRING else f'"{escaped}"^^<{datatype}>'
