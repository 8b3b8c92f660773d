"""The patterns of a SPARQL group as a graph of nodes and steps: what forms are read from.

A type statement is a part of its node, a Wikidata statement node (`p:`, `ps:`, `pq:`) becomes one step with conditions,
and a property path becomes steps over nodes without names.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field

from rdflib import Literal as Constant
from rdflib import URIRef, Variable

from kgqa_core.kg.vocabulary import FREEBASE, RDF_TYPE, STRING, WIKIDATA, XSD
from kgqa_core.logic.forms import Class, Entity, Form, Literal, Step, TimeConstraint, Where
from kgqa_core.logic.lookup import ending
from kgqa_core.logic.measures import measure
from kgqa_core.logic.sparql_query import Call, Expression, GraphPattern, Hop, Outside, Term

MERGED = " merged"
"""The node of the constant that an ASK is about."""

_TYPE_IRIS = {RDF_TYPE, FREEBASE + "type.object.type"}
_P31, _P279 = WIKIDATA + "prop/direct/P31", WIKIDATA + "prop/direct/P279"
_CLAIM, _VALUE, _QUALIFIER = (f"{WIKIDATA}prop/{part}" for part in ("", "statement/", "qualifier/"))
_SPACES = (FREEBASE, f"{WIKIDATA}entity/", f"{WIKIDATA}prop/direct/", _VALUE, _QUALIFIER, _CLAIM)
_FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_OPS = {"=": "eq", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_LANGUAGE = {"LANG", "LANGMATCHES", "ISLITERAL"}


def key_of(iri: str) -> str:
    """The key that a graph has for an IRI: Freebase's and Wikidata's without their namespace."""
    for space in _SPACES:
        if iri.startswith(space) and re.fullmatch(r"[\w.]+", iri[len(space) :]):
            return iri[len(space) :]
    return iri


def form_of(term: Term) -> Entity | Literal:
    """The form of a constant; a date has no time zone."""
    if not isinstance(term, Constant):
        return Entity(key_of(str(term)))
    datatype = f"@{term.language}" if term.language else str(term.datatype or STRING)
    text = re.sub(r"(Z|[+-]\d\d:\d\d)$", "", term) if datatype == XSD + "date" else str(term)
    return Literal(text, datatype)


@dataclass(frozen=True, slots=True)
class Edge:
    """A step from a node to another, with conditions on its statement."""

    start: str
    step: Step
    end: str
    where: tuple[Where, ...] = ()


@dataclass(slots=True)
class Patterns:
    """Nodes by name with the conditions on each: parts of its form, comparisons of its value, times when it holds."""

    edges: list[Edge] = field(default_factory=list)
    parts: dict[str, list[Form]] = field(default_factory=lambda: defaultdict(list))
    compared: dict[str, list[tuple[str, Literal]]] = field(default_factory=lambda: defaultdict(list))
    times: dict[str, list[tuple[Step, Literal]]] = field(default_factory=lambda: defaultdict(list))
    absent: list[GraphPattern] = field(default_factory=list)

    def variables(self) -> set[str]:
        """The nodes that have a name, and the merged constant."""
        return {name for name in self.names() if not name.startswith(" ") or name == MERGED}

    def names(self) -> set[str]:
        """Every node."""
        return {edge.start for edge in self.edges} | {edge.end for edge in self.edges} | set(self.parts)


def read_patterns(group: GraphPattern, merged: Term | None = None) -> Patterns:
    """The patterns of a group.  merged: a constant that is one node wherever it stands.  Raises Outside."""
    return _PatternReader(group, merged).read()


class _PatternReader:
    def __init__(self, group: GraphPattern, merged: Term | None) -> None:
        self.group, self.merged = group, merged
        self.patterns = Patterns()
        self.fresh = 0
        self.statements = {
            str(o): (s, path[0])
            for s, path, o in group.triples
            if isinstance(o, Variable) and len(path) == 1 and _is_claim(path[0])
        }

    def read(self) -> Patterns:
        for name, terms in self.group.values.items():
            if len(terms) != 1 or isinstance(terms[0], Variable):
                raise Outside("VALUES with several terms")
            self.patterns.parts[name].append(form_of(terms[0]))
        for expression in self.group.filters:
            self.filter(expression)
        triples: dict[str, list[tuple[Hop, Term]]] = defaultdict(list)
        for subject, path, value in self.group.triples:
            if isinstance(subject, Variable) and str(subject) in self.statements:
                if len(path) > 1 or path[0].inverse:
                    raise Outside("a path from a statement")
                triples[str(subject)].append((path[0], value))
            elif not (isinstance(value, Variable) and str(value) in self.statements):
                self.triple(subject, path, value)
        for name, (subject, claim) in self.statements.items():
            self.statement(subject, claim, triples[name])
        for name, tests in list(self.patterns.times.items()):
            self.time(name, tests)
        return self.patterns

    def node(self, term: Term) -> str:
        """The name of a term's node; a constant is a node of its own wherever it stands."""
        if isinstance(term, Variable):
            return str(term)
        name = MERGED if term == self.merged else self.unnamed()
        self.patterns.parts[name] = [form_of(term)]
        return name

    def unnamed(self) -> str:
        self.fresh += 1
        return f" {self.fresh}"

    def triple(self, subject: Term, path: tuple[Hop, ...], value: Term) -> None:
        typed = [hop.iri for hop in path] == [_P31, _P279] and path[1].star and not path[0].star
        if (typed or (len(path) == 1 and path[0].iri in _TYPE_IRIS)) and isinstance(value, URIRef):
            self.patterns.parts[self.node(subject)].append(Class(key_of(str(value))))
            return
        start = self.node(subject)
        for number, hop in enumerate(path):
            if hop.star:
                raise Outside("property path", "*")
            end = self.node(value) if number == len(path) - 1 else self.unnamed()
            self.edge(start, Step(key_of(hop.iri), hop.inverse), end)
            start = end

    def edge(self, start: str, step: Step, end: str, where: tuple[Where, ...] = ()) -> None:
        self.patterns.edges.append(Edge(start, step, end, where))

    def statement(self, subject: Term, claim: Hop, triples: list[tuple[Hop, Term]]) -> None:
        """One statement node: its value is the end of a step, its qualifiers are conditions."""
        values = [value for hop, value in triples if hop.iri.startswith(_VALUE)]
        if len(values) != 1:
            raise Outside("the answer is a qualifier or a bare statement")
        where: list[Where] = []
        for hop, value in triples:
            if hop.iri.startswith(_VALUE):
                continue
            relation = key_of(hop.iri)
            if not isinstance(value, Variable):
                where.append(Where(relation, "eq", form_of(value)))
                continue
            tests = self.patterns.compared.pop(str(value), [])
            if not tests:
                raise Outside("the answer is a qualifier or a bare statement")
            where += [Where(relation, op, literal) for op, literal in tests]
        self.edge(self.node(subject), Step(key_of(claim.iri)), self.node(values[0]), tuple(where))

    # -- filters -------------------------------------------------------------------------------------------------

    def filter(self, expression: Expression) -> None:
        if not isinstance(expression, Call):
            raise Outside("a filter that is no comparison")
        name, args = expression.name, expression.args
        if name == "&&":
            for part in args:
                self.filter(part)
        elif name == "NOT EXISTS" and isinstance(args[0], GraphPattern):
            self.patterns.absent.append(args[0])
        elif name == "||" and _is_time(args):
            self.open_time(args)
        elif _only_language(expression):
            return
        elif name in _FLIPPED:
            self.comparison(name, *args)
        elif name == "CONTAINS" and len(args) == 2 and _year_of(args[0]) and isinstance(args[1], Constant):
            self.comparison("=", *args)
        else:
            raise Outside("filter", name)

    def comparison(self, op: str, left: Expression, right: Expression) -> None:
        if isinstance(left, (URIRef, Constant)):
            left, right, op = right, left, _FLIPPED[op]
        if op == "!=":
            return
        year = _year_of(left)
        variable = year or uncast(left)
        right = uncast(right)
        if not isinstance(variable, Variable) or not isinstance(right, Constant):
            raise Outside("filter on two variables or a computed value")
        literal = Literal(str(right), XSD + "gYear") if year else form_of(right)
        if not isinstance(literal, Literal):
            raise Outside("filter with an entity")
        self.patterns.compared[str(variable)].append((_OPS[op], literal))

    def open_time(self, args: tuple[Expression, ...]) -> None:
        """FILTER(NOT EXISTS {?y from ?a} || EXISTS {?y from ?b . FILTER(?b <= time)}), as WebQSP writes it."""
        group = args[1].args[0] if isinstance(args[1], Call) else None
        if not isinstance(group, GraphPattern) or len(group.triples) != 1 or len(group.filters) != 1:
            raise Outside("a time filter of another shape")
        (subject, path, value), test = group.triples[0], group.filters[0]
        if not isinstance(test, Call) or len(test.args) != 2 or not isinstance(subject, Variable) or len(path) != 1:
            raise Outside("a time filter of another shape")
        left, right = uncast(test.args[0]), uncast(test.args[1])
        if left != value or not isinstance(right, Constant) or test.name not in ("<=", ">="):
            raise Outside("a time filter of another shape")
        literal = Literal(str(right), str(right.datatype or STRING))
        self.patterns.times[str(subject)].append((Step(key_of(path[0].iri), inverse=test.name == ">="), literal))

    def time(self, name: str, tests: list[tuple[Step, Literal]]) -> None:
        """A beginning and an end become one TC; `inverse` marked the end."""
        begins = [(step.relation, literal) for step, literal in tests if not step.inverse]
        finishes = [(step.relation, literal) for step, literal in tests if step.inverse]
        if len(begins) != 1 or len(finishes) != 1 or ending(begins[0][0]) != finishes[0][0]:
            raise Outside("a time filter of another shape")
        value = _stretch(finishes[0][1].text, begins[0][1].text)
        if measure(value) is None:
            raise Outside("a time filter without a date")
        self.patterns.times[name] = [(Step(begins[0][0]), value)]


def _stretch(first: str, last: str) -> Literal:
    """The date that begins and ends so: a year where that is what it is."""
    year = re.match(r"(-?\d{4,})-01-01", first)
    if year and last.startswith(f"{year[1]}-12-31"):
        return Literal(year[1], XSD + "gYear")
    if first[:10] != last[:10]:
        raise Outside("a time filter over a stretch of time")
    return Literal(first[:10], XSD + "date")


def constrained(form: Form, times: list[tuple[Step, Literal]]) -> Form:
    """A form with its time constraints."""
    for step, value in times:
        form = TimeConstraint(form, (step,), value)
    return form


def _is_claim(hop: Hop) -> bool:
    return hop.iri.startswith(_CLAIM) and "/" not in hop.iri[len(_CLAIM) :]


def _is_time(args: tuple[Expression, ...]) -> bool:
    names = [arg.name for arg in args if isinstance(arg, Call)]
    return names == ["NOT EXISTS", "EXISTS"]


def _only_language(expression: Expression) -> bool:
    """Whether an expression is about languages of labels only, which forms do not distinguish."""
    if not isinstance(expression, Call):
        return True
    if expression.name in ("||", "&&", "!"):
        return all(isinstance(arg, Call) and _only_language(arg) for arg in expression.args)
    if expression.name in ("=", "!="):
        return isinstance(expression.args[0], Call) and _only_language(expression.args[0])
    return expression.name in _LANGUAGE


def uncast(expression: Expression) -> Expression:
    """What is inside `xsd:dateTime(…)`, `str(…)` and the like."""
    while isinstance(expression, Call) and len(expression.args) == 1:
        if expression.name != "STR" and not expression.name.startswith(XSD):
            break
        expression = expression.args[0]
    return expression


def _year_of(expression: Expression) -> Variable | None:
    if isinstance(expression, Call) and expression.name == "YEAR" and isinstance(expression.args[0], Variable):
        return expression.args[0]
    return None
