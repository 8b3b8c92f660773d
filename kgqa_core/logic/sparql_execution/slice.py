"""The part of a graph that a query can look at: its patterns followed from its constants, as RDF for an engine.

A pattern is followed from an end that is known; what it leads to limits its other end.  Every triple that can be in a
solution is in the slice: patterns that are joined limit each other, branches of a UNION do not, and what stands in
OPTIONAL, MINUS or EXISTS limits nothing outside and is limited by what is bound before it.  So a query costs what its
constants touch, whatever the graph's size: one look-up in DuckDB a pattern (out of heads by their place, into tails by
a scan of the relation's column).

Statement nodes of Wikidata (`p:`, `ps:`, `pq:`) are made of triples and qualifiers, names (`rdfs:label` and the like)
of the tables of labels.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from rdflib import Literal, URIRef, Variable

from kgqa_core.kg.store import KgStore
from kgqa_core.kg.vocabulary import FREEBASE, RDF_TYPE, RDFS, SKOS, STRING, WIKIDATA
from kgqa_core.logic.sparql_execution.engine import NotExecuted
from kgqa_core.logic.sparql_execution.scopes import PathStep, PlainTerm, Scope, ScopedQuery, Term
from kgqa_core.logic.sparql_graph import key_of

MOST = 200_000
"""RDF triples of a slice, unless given."""

TOO_LARGE = "its patterns touch too many triples"

_CLAIM, _VALUE, _QUALIFIER = (f"{WIKIDATA}prop/{part}" for part in ("", "statement/", "qualifier/"))
_ENTITY, _DIRECT = f"{WIKIDATA}entity/", f"{WIKIDATA}prop/direct/"
_LABELS = {RDFS + "label", SKOS + "prefLabel", "http://schema.org/name", FREEBASE + "type.object.name"}
_ALIASES = {SKOS + "altLabel", FREEBASE + "common.topic.alias"}
_TYPES = {RDF_TYPE, FREEBASE + "type.object.type", _DIRECT + "P31"}
_TABLES = {iri: ("types", "entity", "type") for iri in _TYPES} | {
    iri: ("subtypes", "type", "super") for iri in (RDFS + "subClassOf", _DIRECT + "P279")
}
_LAST = 1 << 60
_ILLEGAL = re.compile(r'[\x00-\x20<>"{}|^`\\]')

Known = dict[str, set[int]]
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


@dataclass(frozen=True, slots=True)
class _Follow:
    """A step of a path from a term to another."""

    start: Term
    step: PathStep
    end: Term


@dataclass(slots=True)
class _Statement:
    """A statement node: its subject, relation and value, and its qualifiers, as far as patterns name them."""

    variable: str
    claims: list[tuple[str, Term]] = field(default_factory=list)
    values: list[tuple[str, Term]] = field(default_factory=list)
    qualifiers: list[tuple[str, Term]] = field(default_factory=list)


def slice_of(query: ScopedQuery, store: KgStore, most: int = MOST) -> Slice:
    """The part of a graph that a query can look at.  Raises NotExecuted where it is larger than `most`."""
    slicer = _Slicer(store, most)
    for term in query.scope.constants():  # nodes are called by the query's own IRIs
        slicer.constant(term)
    slicer.slice.missing.clear()
    slicer.query(query)
    return slicer.slice


class _Slicer:
    def __init__(self, store: KgStore, most: int) -> None:
        self.store, self.most = store, most
        self.slice = Slice()
        self.fresh = 0
        self.terms: dict[int, str] = {}
        self.constants: dict[PlainTerm, set[int]] = {}
        self.relations: dict[str, int | None] = {}
        self.keys: list[str] | None = None
        self.space = ""

    # -- scopes --------------------------------------------------------------------------------------------------

    def query(self, query: ScopedQuery) -> Known:
        """What is known of the columns of a query, alone."""
        inner = self.scope(query.scope, {})
        if query.every:
            return inner
        return {
            one.name: inner[one.variable]
            for one in query.columns
            if one.variable in inner and one.function in ("", "MAX", "MIN", "SAMPLE")
        }

    def scope(self, scope: Scope, outer: Known) -> Known:
        """What is known of the variables of a group, given what is known around it."""
        known = dict(outer)
        for name, terms in scope.values.items():
            _limit(known, name, set().union(*(self.constant(term) for term in terms)))
        for name, iri in scope.equal.items():
            _limit(known, name, self.constant(iri))
        for query in scope.queries:
            for name, ids in self.query(query).items():
                _limit(known, name, ids)
        waiting = self.items(scope)
        unions = list(scope.unions)
        while waiting or unions:
            costs = [self.cost(item, known) for item in waiting]
            best = min(range(len(waiting)), key=costs.__getitem__) if waiting else -1
            if unions and (best < 0 or costs[best] >= _LAST):
                self.union(unions.pop(0), known)
                continue
            item = waiting.pop(best)
            if isinstance(item, _Statement):
                self.statement(item, known)
            else:
                self.follow(item, known)
        for group, bound in (*scope.optionals, *scope.tested):
            self.scope(group, {name: ids for name, ids in known.items() if name in bound})
        return known

    def union(self, branches: Sequence[Scope], known: Known) -> None:
        found = [self.scope(branch, known) for branch in branches]
        for name in set.intersection(*(set(one) for one in found)):
            known[name] = set().union(*(one[name] for one in found))

    def items(self, scope: Scope) -> list[_Follow | _Statement]:
        """The patterns as single steps and statement nodes."""
        steps: list[_Follow] = []
        for pattern in scope.triples:
            start = pattern.subject
            for number, step in enumerate(pattern.path):
                last = number == len(pattern.path) - 1
                end: Term = pattern.object if last else self.unnamed()
                steps.append(_Follow(start, step, end))
                start = end
        statements: dict[str, _Statement] = {}
        rest: list[_Follow | _Statement] = []
        for one in steps:
            iri, inverse = one.step.relations[0] if len(one.step.relations) == 1 else ("", False)
            kind, key = _statement_key(iri)
            node, other = (one.end, one.start) if (kind == "claims") != inverse else (one.start, one.end)
            if not kind:
                rest.append(one)
            elif kind == "nodes" or one.step.repeat or not isinstance(node, Variable):
                raise NotExecuted("a value node of Wikidata, or a statement that is named")
            else:
                statement = statements.setdefault(str(node), _Statement(str(node)))
                getattr(statement, kind).append((key, other))
        return [*rest, *statements.values()]

    def unnamed(self) -> Variable:
        self.fresh += 1
        return Variable(f" step{self.fresh}")

    def cost(self, item: _Follow | _Statement, known: Known) -> int:
        """How many nodes an item is followed from; types and repeated steps come after others, and scans last."""
        if isinstance(item, _Statement):
            ends = [term for _, term in (*item.claims, *item.values, *item.qualifiers)]
        else:
            ends = [item.start] if self.names(item.step) else [item.start, item.end]
        sizes = [len(ids) for ids in (self.ids(end, known) for end in ends) if ids is not None]
        if not sizes:
            named = isinstance(item, _Follow) and isinstance(item.end, Literal) and self.names(item.step)
            return 0 if named else _LAST
        late = isinstance(item, _Follow) and (
            bool(item.step.repeat) or any(iri in _TYPES for iri, _ in item.step.relations)
        )
        backward = isinstance(item, _Follow) and bool(item.step.repeat) and self.ids(item.start, known) is None
        return min(sizes) + (_LAST >> 1 if backward else _LAST >> 2 if late else 0)

    # -- patterns ------------------------------------------------------------------------------------------------

    def ids(self, term: Term, known: Known) -> set[int] | None:
        """The nodes that a term can be; None where nothing limits it."""
        return known.get(str(term)) if isinstance(term, Variable) else self.constant(term)

    def follow(self, item: _Follow, known: Known) -> None:
        start, end = self.ids(item.start, known), self.ids(item.end, known)
        if self.names(item.step):
            self.label(item, start, known)
            return
        if item.step.repeat:
            self.closure(item, start, end, known)
            return
        starts, ends = set[int](), set[int]()
        if not item.step.relations:
            for edge in self.edges(None, start, end):
                self.add_edge(edge, self.iri_of(edge[2]))
                starts.add(edge[1])
                ends.add(edge[3])
        for iri, inverse in item.step.relations:
            heads, tails = (end, start) if inverse else (start, end)
            for edge in self.edges_of(iri, heads, tails):
                self.add_edge(edge, iri)
                starts.add(edge[3] if inverse else edge[1])
                ends.add(edge[1] if inverse else edge[3])
        _limit_term(known, item.start, starts)
        _limit_term(known, item.end, ends)

    def closure(self, item: _Follow, start: set[int] | None, end: set[int] | None, known: Known) -> None:
        """A repeated step from its start, or else from its end; where neither is known, every edge of its relations."""
        backward = start is None
        seen = end if backward else start
        reached, front = set(seen or ()), seen
        while front is None or front:
            found: set[int] = set()
            for iri, inverse in item.step.relations:
                out = backward == inverse
                for edge in self.edges_of(iri, front if out else None, None if out else front):
                    self.add_edge(edge, iri)
                    found.add(edge[3] if out else edge[1])
            if front is None or item.step.repeat == "?":
                reached |= found
                break
            front = found - reached
            reached |= found
        if seen is not None:
            _limit_term(known, item.start if backward else item.end, reached)

    def statement(self, item: _Statement, known: Known) -> None:
        relations = {key for key, _ in (*item.claims, *item.values)}
        if len(relations) != 1:
            raise NotExecuted("a statement of several relations, or of none")
        key = relations.pop()
        relation = self.relation(_DIRECT + key)
        heads, tails = self.joined(item.claims, known), self.joined(item.values, known)
        edges: list[Edge] = []
        if relation is not None and heads is None and tails is None:
            edges = self.qualified(relation, item, known)
        elif relation is not None:
            edges = self.edges(relation, heads, tails)
        qualifiers = self.store.qualifiers(edge[0] for edge in edges) if edges else {}
        named = {self.relation(_DIRECT + name): name for name, _ in item.qualifiers}
        values: dict[str, set[int]] = {name: set() for name, _ in item.qualifiers}
        kept: list[Edge] = []
        for edge in edges:
            for number, pairs in enumerate(qualifiers.get(edge[0], []) or [[]]):
                if not set(named) <= {own for own, _ in pairs}:
                    continue
                node = f"<urn:kgqa:statement:{edge[0]}-{number}>"
                self.add((self.term(edge[1]), f"<{_CLAIM}{key}>", node), edge[0])
                self.add((node, f"<{_VALUE}{key}>", self.term(edge[3])), edge[0])
                kept.append(edge)
                for own, value in pairs:
                    if own in named:
                        self.add((node, f"<{_QUALIFIER}{named[own]}>", self.term(value)), None)
                        values[named[own]].add(value)
        for _, term in item.claims:
            _limit_term(known, term, {edge[1] for edge in kept})
        for _, term in item.values:
            _limit_term(known, term, {edge[3] for edge in kept})
        for name, term in item.qualifiers:
            _limit_term(known, term, values[name])

    def joined(self, ends: Sequence[tuple[str, Term]], known: Known) -> set[int] | None:
        sets = [ids for ids in (self.ids(term, known) for _, term in ends) if ids is not None]
        return set.intersection(*sets) if sets else None

    def qualified(self, relation: int, item: _Statement, known: Known) -> list[Edge]:
        """The triples of a relation that have one of the known qualifiers; all of them where none is known."""
        for name, term in item.qualifiers:
            ids, own = self.ids(term, known), self.relation(_DIRECT + name)
            if ids is not None:
                rows = self.store.connection.execute(
                    "SELECT DISTINCT t.id, t.head, t.relation, t.tail "
                    "FROM qualifiers q JOIN triples t ON q.triple = t.id "
                    f"WHERE t.relation = $1 AND q.relation = $2 AND q.value IN (SELECT unnest($3::BIGINT[])) "
                    f"ORDER BY t.id LIMIT {self.most + 1}",
                    [relation, own, sorted(ids)],
                ).fetchall()
                return self.bounded(rows)
        return self.edges(relation, None, None)

    # -- the store -----------------------------------------------------------------------------------------------

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
            place = f"${len(parameters)}"
            tests.append(
                f"{column} = {place}" if isinstance(value, int) else f"{column} IN (SELECT unnest({place}::BIGINT[]))"
            )
        where = f"WHERE {' AND '.join(tests)}" if tests else ""
        sql = f"SELECT id, head, relation, tail FROM triples {where} ORDER BY id LIMIT {self.most + 1}"
        return self.bounded(self.store.connection.execute(sql, parameters).fetchall())

    def bounded(self, rows: list[Any]) -> list[Any]:
        if len(rows) > self.most:
            raise NotExecuted(TOO_LARGE)
        self.name(node for row in rows for node in (row[1], row[3]))
        return rows

    def names(self, step: PathStep) -> bool:
        """Whether a step leads to the name of an entity, in a graph that keeps names apart."""
        if len(step.relations) != 1 or step.repeat:
            return False
        iri = step.relations[0][0]
        return iri in _LABELS | _ALIASES and self.relation(iri, count=False) is None

    def label(self, item: _Follow, ids: set[int] | None, known: Known) -> None:
        iri, inverse = item.step.relations[0]
        if inverse:
            raise NotExecuted("a path from a name")
        table, column = ("aliases", "alias") if iri in _ALIASES else ("labels", "label")
        wanted: Any = sorted(ids) if ids is not None else None
        test = "id IN (SELECT unnest($1::BIGINT[]))"
        if wanted is None and isinstance(item.end, Literal):
            wanted, test = str(item.end), f"{column} = $1"
        if wanted is None:
            raise NotExecuted(TOO_LARGE)
        rows = self.store.connection.execute(
            f"SELECT id, {column}, lang FROM {table} WHERE {test} AND {column} IS NOT NULL ORDER BY ALL "
            f"LIMIT {self.most + 1}",
            [wanted],
        ).fetchall()
        if len(rows) > self.most:
            raise NotExecuted(TOO_LARGE)
        self.name(row[0] for row in rows)
        for node, text, language in rows:
            self.add((self.term(node), f"<{iri}>", literal_term(text, f"@{language}" if language else STRING)), None)
        _limit_term(known, item.start, {row[0] for row in rows})

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
        return _iri(self.keys[relation], _DIRECT if self.space == _ENTITY else self.space)

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
                    self.space = self.space or next((one for one in (_ENTITY, FREEBASE) if iri.startswith(one)), "")
            else:
                rows = self.store.connection.execute(
                    "SELECT id FROM entities WHERE key = $1 AND kind = 'literal'", [str(term)]
                ).fetchall()
            self.constants[term] = {row[0] for row in rows}
        if not self.constants[term] and str(term) not in self.slice.missing:
            self.slice.missing.append(str(term))
        return self.constants[term]

    # -- terms ---------------------------------------------------------------------------------------------------

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
        if node not in self.terms:
            self.name([node])
        return self.terms[node]

    def add_edge(self, edge: Edge, iri: str) -> None:
        self.add((self.terms[edge[1]], f"<{iri}>", self.terms[edge[3]]), edge[0] if edge[0] >= 0 else None)

    def add(self, triple: tuple[str, str, str], number: int | None) -> None:
        self.slice.triples.setdefault(triple, number)
        if len(self.slice.triples) > self.most:
            raise NotExecuted(TOO_LARGE)


def _limit(known: Known, name: str, ids: set[int]) -> None:
    known[name] = known[name] & ids if name in known else set(ids)


def _limit_term(known: Known, term: Term, ids: set[int]) -> None:
    if isinstance(term, Variable):
        _limit(known, str(term), ids)


def _statement_key(iri: str) -> tuple[str, str]:
    """(field of `_Statement`, key) of a relation of statement nodes; empty for others, `nodes` for value nodes."""
    for kind, space in (("qualifiers", _QUALIFIER), ("values", _VALUE), ("claims", _CLAIM)):
        if iri.startswith(space) and not iri.startswith(_DIRECT):
            key = iri[len(space) :]
            return ("nodes", key) if "/" in key else (kind, key)
    return "", ""


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
