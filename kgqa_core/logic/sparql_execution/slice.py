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

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rdflib import Literal, Variable

from kgqa_core.kg.store import KgStore
from kgqa_core.kg.vocabulary import FREEBASE, RDFS, SKOS, STRING, WIKIDATA
from kgqa_core.logic.sparql_execution.engine import SECONDS, NotExecuted
from kgqa_core.logic.sparql_execution.graph import DIRECT, TOO_LARGE, TYPES, Edge, Slice, SlicedGraph, literal_term
from kgqa_core.logic.sparql_execution.scopes import PathStep, Scope, ScopedQuery, Term

MOST = 200_000
"""RDF triples of a slice, unless given."""

_CLAIM, _VALUE, _QUALIFIER = (f"{WIKIDATA}prop/{part}" for part in ("", "statement/", "qualifier/"))
_LABELS = {RDFS + "label", SKOS + "prefLabel", "http://schema.org/name", FREEBASE + "type.object.name"}
_ALIASES = {SKOS + "altLabel", FREEBASE + "common.topic.alias"}
_LAST = 1 << 60

Known = dict[str, set[int]]


@dataclass(frozen=True, slots=True)
class _PatternStep:
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


def slice_of(query: ScopedQuery, store: KgStore, most: int = MOST, seconds: float = SECONDS) -> Slice:
    """The part of a graph that a query can look at.

    Raises NotExecuted where it is larger than `most`, and FormTimeout.
    """
    graph = SlicedGraph(store, most, seconds)
    for term in query.scope.constants():  # nodes are called by the query's own IRIs
        graph.constant(term)
    graph.slice.missing.clear()
    _Slicer(graph).query(query)
    return graph.slice


class _Slicer:
    def __init__(self, graph: SlicedGraph) -> None:
        self.graph = graph
        self.fresh = 0

    # -- scopes --------------------------------------------------------------------------------------------------

    def query(self, query: ScopedQuery) -> Known:
        """What is known of the columns of a query, alone."""
        inner = self.scope(query.scope, {})
        if query.every:
            return inner
        return {
            column.name: inner[column.variable]
            for column in query.columns
            if column.variable in inner and column.function in ("", "MAX", "MIN", "SAMPLE")
        }

    def scope(self, scope: Scope, outer: Known) -> Known:
        """What is known of the variables of a group, given what is known around it."""
        known = dict(outer)
        for name, terms in scope.values.items():
            _limit(known, name, set().union(*(self.graph.constant(term) for term in terms)))
        for name, iri in scope.equal.items():
            _limit(known, name, self.graph.constant(iri))
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
        results = [self.scope(branch, known) for branch in branches]
        for name in set.intersection(*(set(one) for one in results)):
            known[name] = set().union(*(one[name] for one in results))

    def items(self, scope: Scope) -> list[_PatternStep | _Statement]:
        """The patterns as single steps and statement nodes."""
        steps: list[_PatternStep] = []
        for pattern in scope.triples:
            start = pattern.subject
            for number, step in enumerate(pattern.path):
                last = number == len(pattern.path) - 1
                end: Term = pattern.object if last else self.unnamed()
                steps.append(_PatternStep(start, step, end))
                start = end
        statements: dict[str, _Statement] = {}
        rest: list[_PatternStep | _Statement] = []
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

    def cost(self, item: _PatternStep | _Statement, known: Known) -> int:
        """How many nodes an item is followed from; types and repeated steps come after others, and scans last."""
        if isinstance(item, _Statement):
            ends = [term for _, term in (*item.claims, *item.values, *item.qualifiers)]
        else:
            ends = [item.start] if self.names(item.step) else [item.start, item.end]
        sizes = [len(ids) for ids in (self.ids(end, known) for end in ends) if ids is not None]
        if not sizes:
            named = isinstance(item, _PatternStep) and isinstance(item.end, Literal) and self.names(item.step)
            return 0 if named else _LAST
        late = isinstance(item, _PatternStep) and (
            bool(item.step.repeat) or any(iri in TYPES for iri, _ in item.step.relations)
        )
        backward = isinstance(item, _PatternStep) and bool(item.step.repeat) and self.ids(item.start, known) is None
        return min(sizes) + (_LAST >> 1 if backward else _LAST >> 2 if late else 0)

    # -- patterns ------------------------------------------------------------------------------------------------

    def ids(self, term: Term, known: Known) -> set[int] | None:
        """The nodes that a term can be; None where nothing limits it."""
        return known.get(str(term)) if isinstance(term, Variable) else self.graph.constant(term)

    def follow(self, item: _PatternStep, known: Known) -> None:
        start, end = self.ids(item.start, known), self.ids(item.end, known)
        if self.names(item.step):
            self.label(item, start, known)
            return
        if item.step.repeat:
            self.closure(item, start, end, known)
            return
        starts, ends = set[int](), set[int]()
        if not item.step.relations:
            for edge in self.graph.edges(None, start, end):
                self.graph.add_edge(edge, self.graph.iri_of(edge[2]))
                starts.add(edge[1])
                ends.add(edge[3])
        for iri, inverse in item.step.relations:
            heads, tails = (end, start) if inverse else (start, end)
            for edge in self.graph.edges_of(iri, heads, tails):
                self.graph.add_edge(edge, iri)
                starts.add(edge[3] if inverse else edge[1])
                ends.add(edge[1] if inverse else edge[3])
        _limit_term(known, item.start, starts)
        _limit_term(known, item.end, ends)

    def closure(self, item: _PatternStep, start: set[int] | None, end: set[int] | None, known: Known) -> None:
        """A repeated step from its start, or else from its end; where neither is known, every edge of its relations."""
        backward = start is None
        seen = end if backward else start
        reached, front = set(seen or ()), seen
        while front is None or front:
            results: set[int] = set()
            for iri, inverse in item.step.relations:
                out = backward == inverse
                for edge in self.graph.edges_of(iri, front if out else None, None if out else front):
                    self.graph.add_edge(edge, iri)
                    results.add(edge[3] if out else edge[1])
            if front is None or item.step.repeat == "?":
                reached |= results
                break
            front = results - reached
            reached |= results
        if seen is not None:
            _limit_term(known, item.start if backward else item.end, reached)

    def statement(self, item: _Statement, known: Known) -> None:
        relations = {key for key, _ in (*item.claims, *item.values)}
        if len(relations) != 1:
            raise NotExecuted("a statement of several relations, or of none")
        key = relations.pop()
        relation = self.graph.relation(DIRECT + key)
        heads, tails = self.joined(item.claims, known), self.joined(item.values, known)
        edges: list[Edge] = []
        if relation is not None and heads is None and tails is None:
            edges = self.qualified(relation, item, known)
        elif relation is not None:
            edges = self.graph.edges(relation, heads, tails)
        qualifiers = self.graph.store.qualifiers(edge[0] for edge in edges) if edges else {}
        named = {self.graph.relation(DIRECT + name): name for name, _ in item.qualifiers}
        values: dict[str, set[int]] = {name: set() for name, _ in item.qualifiers}
        kept: list[Edge] = []
        for edge in edges:
            for number, pairs in enumerate(qualifiers.get(edge[0], []) or [[]]):
                if not set(named) <= {own for own, _ in pairs}:
                    continue
                node = f"<urn:kgqa:statement:{edge[0]}-{number}>"
                self.graph.add((self.graph.term(edge[1]), f"<{_CLAIM}{key}>", node), edge[0])
                self.graph.add((node, f"<{_VALUE}{key}>", self.graph.term(edge[3])), edge[0])
                kept.append(edge)
                for own, value in pairs:
                    if own in named:
                        self.graph.add((node, f"<{_QUALIFIER}{named[own]}>", self.graph.term(value)), None)
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
            ids, own = self.ids(term, known), self.graph.relation(DIRECT + name)
            if ids is not None:
                rows = self.graph.store.connection.execute(
                    "SELECT DISTINCT t.id, t.head, t.relation, t.tail "
                    "FROM qualifiers q JOIN triples t ON q.triple = t.id "
                    f"WHERE t.relation = $1 AND q.relation = $2 AND q.value IN (SELECT unnest($3::BIGINT[])) "
                    f"ORDER BY t.id LIMIT {self.graph.most + 1}",
                    [relation, own, sorted(ids)],
                ).fetchall()
                return self.graph.bounded(rows)
        return self.graph.edges(relation, None, None)

    def names(self, step: PathStep) -> bool:
        """Whether a step leads to the name of an entity, in a graph that keeps names apart."""
        if len(step.relations) != 1 or step.repeat:
            return False
        iri = step.relations[0][0]
        return iri in _LABELS | _ALIASES and self.graph.relation(iri, count=False) is None

    def label(self, item: _PatternStep, ids: set[int] | None, known: Known) -> None:
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
        rows = self.graph.store.connection.execute(
            f"SELECT id, {column}, lang FROM {table} WHERE {test} AND {column} IS NOT NULL ORDER BY ALL "
            f"LIMIT {self.graph.most + 1}",
            [wanted],
        ).fetchall()
        if len(rows) > self.graph.most:
            raise NotExecuted(TOO_LARGE)
        self.graph.name(row[0] for row in rows)
        for node, text, language in rows:
            self.graph.add(
                (self.graph.term(node), f"<{iri}>", literal_term(text, f"@{language}" if language else STRING)), None
            )
        _limit_term(known, item.start, {row[0] for row in rows})


def _limit(known: Known, name: str, ids: set[int]) -> None:
    known[name] = known[name] & ids if name in known else set(ids)


def _limit_term(known: Known, term: Term, ids: set[int]) -> None:
    if isinstance(term, Variable):
        _limit(known, str(term), ids)


def _statement_key(iri: str) -> tuple[str, str]:
    """(field of `_Statement`, key) of a relation of statement nodes; empty for others, `nodes` for value nodes."""
    for kind, space in (("qualifiers", _QUALIFIER), ("values", _VALUE), ("claims", _CLAIM)):
        if iri.startswith(space) and not iri.startswith(DIRECT):
            key = iri[len(space) :]
            return ("nodes", key) if "/" in key else (kind, key)
    return "", ""
