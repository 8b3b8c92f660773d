"""Logical forms from the SPARQL of question sets (WebQSP, LC-QuAD 2, GrailQA), where the fragment allows.

What a form cannot write raises Outside with a reason: shared variables that make a cycle, OPTIONAL, several
answers, a qualifier as the answer.  Two things are read more loosely than SPARQL means them, as the data sets' own
s-expressions do: `!=` is left out (`execute(…, without_named=True)` leaves these answers out), and so are languages of
labels.  A variable that is only there to exist is written `(ge (COUNT r) 1)`.
"""

from __future__ import annotations

from collections.abc import Sequence

from rdflib import Variable

from kgqa_core.kg.vocabulary import XSD
from kgqa_core.logic import forms
from kgqa_core.logic.forms import REDUCTIONS, Form, Step, Steps
from kgqa_core.logic.normalise import isomorphic
from kgqa_core.logic.sparql_graph import MERGED, Edge, constrained, form_of, read_patterns, uncast
from kgqa_core.logic.sparql_query import GraphPattern, Outside, Select, Term, read_sparql

ONE = forms.Literal("1", XSD + "integer")
_Rank = tuple[str, str, int, bool]
"""Variable of the value, `max` or `min`, the place from 1, and whether those before it are meant too."""


def from_sparql(text: str) -> Form:
    """The form of a SPARQL query.  Raises Outside (its `reason` is for counting), and FormError for no SPARQL."""
    return _query(read_sparql(text))


def _query(query: Select) -> Form:
    if query.ask:
        return _ask(query.group)
    computed = [one for one in query.projected if one[0]]
    if len(query.projected) != 1 + bool(query.groups) or len(computed) < len(query.projected) - 1:
        raise Outside("several answers")
    aggregate, variable, _ = (computed or query.projected)[0]
    group = query.group
    if query.groups or aggregate.lower() in REDUCTIONS:
        if query.limit is not None or group.selects:
            raise Outside("the best of several groups, or an aggregate of a subquery")
        return _Converter(group, variable, None).aggregate(aggregate.lower(), variable, query.groups)
    if group.selects and not group.triples and len(group.selects) == 1 and not group.unions:
        inner = group.selects[0]
        if len(inner.projected) != 1 or inner.projected[0][2] != variable or query.order or query.limit:
            raise Outside("a subquery")
        form = _query(inner)
    else:
        form = _Converter(group, variable, _rank(query)).form()
    return forms.Count(form) if aggregate == "COUNT" else form


def _rank(query: Select) -> _Rank | None:
    if query.limit is None:
        return None
    if query.order is None:
        raise Outside("LIMIT without ORDER BY")
    falling, expression = query.order
    variable = uncast(expression)
    if not isinstance(variable, Variable):
        raise Outside("an order by a computed value")
    if query.limit != 1 and query.offset:
        raise Outside("the best few after others")
    return str(variable), "max" if falling else "min", query.offset + query.limit, query.limit > 1


def _ask(group: GraphPattern) -> Form:
    """Yes or no: whether the first constant matches the patterns."""
    for subject, _, value in group.triples:
        for term in (subject, value):
            if not isinstance(term, Variable):
                form = _Converter(group, MERGED, None, merged=term).form()
                return forms.Holds(form, form_of(term))
    raise Outside("ASK without a constant")


class _Converter:
    """One group as a form that is about one of its nodes."""

    def __init__(self, group: GraphPattern, root: str, rank: _Rank | None, merged: Term | None = None) -> None:
        self.group, self.root, self.rank = group, root, rank
        self.patterns = read_patterns(group, merged)
        if merged is not None:
            self.patterns.parts[root] = []
        self.seen: set[str] = set()

    def form(self) -> Form:
        """Raises Outside where the patterns are no tree, or have no condition on the root."""
        self.subquery()
        for branches in self.group.unions:
            name = self.shared(branches)
            united = forms.Or(tuple(_Converter(branch, name, None).form() for branch in branches))
            self.patterns.parts[name].append(united)
        subtracted = [(self.shared([less]), less) for less in (*self.group.minus, *self.patterns.absent)]
        if self.root not in self.patterns.names():
            raise Outside("the answer is in no pattern")
        ranked = self.remove_ranked()
        form = self.at(self.root, None, ranked, subtracted)
        if form is None:
            raise Outside("no condition on the answer")
        if not self.patterns.names() <= self.seen:
            raise Outside("patterns that are not joined")
        return form

    def aggregate(self, how: str, variable: str, groups: Sequence[str]) -> Form:
        """What is computed of a variable, where it and that of the groups are values of the node beside them."""
        ends = [*groups, *([] if how == "count" else [variable])]
        nodes = {self.far(edge, end) for end in ends for edge in self.patterns.edges if end in (edge.start, edge.end)}
        self.root = variable if how == "count" else min(nodes - set(ends), default="")
        ways = [self.path_between(self.root, end, frozenset({self.root})) or [] for end in ends]
        more = [
            end for end in ends if self.has_conditions(end) or self.patterns.compared.get(end) or self.degree(end) > 1
        ]
        if more or {len(way) for way in ways} != {1}:
            raise Outside("an aggregate of values that are not beside what has them")
        for way in ways:
            self.patterns.edges.remove(way[0][0])
        self.seen |= set(ends)
        steps = [(self.step(*way[0]),) for way in ways]
        return forms.Aggregate(how, self.form(), *(((), *steps) if how == "count" else steps[::-1]))

    def subquery(self) -> None:
        """A `{SELECT (MAX(?y) AS ?x) …}` over the same patterns makes ?x the value that is ranked."""
        if not self.group.selects:
            return
        if len(self.group.selects) > 1 or self.rank is not None:
            raise Outside("a subquery")
        inner = self.group.selects[0]
        aggregate, variable, name = inner.projected[0] if len(inner.projected) == 1 else ("", "", "")
        if aggregate not in ("MAX", "MIN"):
            raise Outside("a subquery")
        self.rank = name, aggregate.lower(), 1, False
        outer = GraphPattern(list(self.group.triples), self.group.filters, values=self.group.values)
        outer_form = _Converter(outer, self.root, self.rank).form()
        names = {
            str(term) for triple in inner.group.triples for term in (triple[0], triple[2]) if isinstance(term, Variable)
        }
        for root in sorted(names - {variable}):
            try:
                other = _Converter(inner.group, root, (variable, self.rank[1], 1, False)).form()
            except Outside:
                continue
            if isomorphic(outer_form, other):
                return
        raise Outside("a superlative over another set")

    def shared(self, branches: Sequence[GraphPattern]) -> str:
        """The one node that groups have in common with the patterns around them, or the root."""
        around = self.patterns.variables() | {self.root}
        common: set[str] | None = None
        for branch in branches:
            names = read_patterns(branch).variables() & around
            common = names if common is None else common & names
        if not common or len(common) > 1:
            raise Outside("UNION or MINUS that shares no variable, or several")
        return next(iter(common))

    def remove_ranked(self) -> tuple[str, Steps, _Rank] | None:
        """Removes the value that is ranked from the patterns: the node that ranks, and the path to the value.

        The root ranks, along the whole path, where no node on it has other conditions; otherwise the last node
        of the path does, where the others have none but a type.
        """
        if self.rank is None:
            return None
        way = self.path_between(self.root, self.rank[0], frozenset({self.root}))
        if not way:
            raise Outside("an order by what is not joined, or by the answer itself")
        if self.degree(self.rank[0]) != 1 or self.patterns.parts.get(self.rank[0]):
            raise Outside("an order by a value that has other conditions")
        nodes = [self.root, *(self.far(edge, at) for edge, at in way)]
        middle = nodes[1:-1]
        free = [self.degree(node) == 2 and not self.has_conditions(node) for node in middle]
        last = way[-1][0]
        if all(free):
            for edge, _ in way:
                self.patterns.edges.remove(edge)
            self.seen |= {*middle, self.rank[0]}
            return self.root, tuple(self.step(edge, at) for edge, at in way), self.rank
        if self.degree(self.root) > 1 or self.has_conditions(self.root) or not all(free[:-1]):
            raise Outside("a superlative with conditions on both ends of its path")
        self.patterns.edges.remove(last)
        self.seen.add(self.rank[0])
        return nodes[-2], (self.step(*way[-1]),), self.rank

    def has_conditions(self, name: str) -> bool:
        """Whether a node has conditions besides its type and its steps."""
        parts = [part for part in self.patterns.parts.get(name, ()) if not isinstance(part, forms.Class)]
        return bool(parts) or bool(self.patterns.times.get(name))

    def degree(self, name: str) -> int:
        return sum((edge.start == name) + (edge.end == name) for edge in self.patterns.edges)

    def path_between(self, start: str, goal: str, visited: frozenset[str]) -> list[tuple[Edge, str]] | None:
        """The edges from a node to another, each with the node that it is left from."""
        for edge in self.patterns.edges:
            if start not in (edge.start, edge.end) or self.far(edge, start) in visited:
                continue
            other = self.far(edge, start)
            rest = [] if other == goal else self.path_between(other, goal, visited | {other})
            if rest is not None:
                return [(edge, start), *rest]
        return None

    @staticmethod
    def far(edge: Edge, near: str) -> str:
        return edge.end if edge.start == near else edge.start

    @staticmethod
    def step(edge: Edge, near: str) -> Step:
        return edge.step if edge.start == near else Step(edge.step.relation, not edge.step.inverse)

    def at(
        self,
        name: str,
        came: Edge | None,
        ranked: tuple[str, Steps, _Rank] | None,
        subtracted: list[tuple[str, GraphPattern]],
    ) -> Form | None:
        """The conditions on a node, but for the edge that led to it; None where there are none."""
        if name in self.seen:
            raise Outside("variables in a cycle")
        self.seen.add(name)
        types = [part for part in self.patterns.parts.get(name, ()) if isinstance(part, forms.Class)]
        parts = [part for part in self.patterns.parts.get(name, ()) if not isinstance(part, forms.Class)]
        for edge in self.patterns.edges:
            if edge is not came and name in (edge.start, edge.end):
                other = self.far(edge, name)
                inner = self.at(other, edge, ranked, subtracted)
                parts.append(self.join(self.step(edge, name), edge, inner, self.patterns.compared.get(other, [])))
        if came is None and self.patterns.compared.get(name):
            raise Outside("a filter on the answer")
        if came is None or not parts or any(isinstance(part, forms.Entity) for part in parts):
            parts = types + parts
        if not parts:
            return None
        form = parts[0] if len(parts) == 1 else forms.And(tuple(parts))
        form = constrained(form, self.patterns.times.get(name, []))
        for at, group in subtracted:
            if at == name:
                form = forms.Minus(form, _Converter(group, name, None).form())
        if ranked is not None and ranked[0] == name:
            _, path, (_, best, index, first) = ranked
            form = forms.Arg(best, form, path) if index == 1 else forms.Nth(index, best, form, path, first=first)
        return form

    @staticmethod
    def join(step: Step, edge: Edge, inner: Form | None, compared: list[tuple[str, forms.Literal]]) -> Form:
        if inner is not None:
            if compared:
                raise Outside("a filter on a value that has other conditions")
            return forms.Join((step,), inner, edge.where)
        if edge.where:
            raise Outside("a filter on a qualified value")
        if not compared:
            return forms.Compare("ge", (step,), ONE, counted=True)
        if len(compared) > 1:
            raise Outside("several filters on one value")
        op, literal = compared[0]
        return forms.Join((step,), literal) if op == "eq" else forms.Compare(op, (step,), literal)
