"""The triple patterns of a SPARQL query with the scopes that they stand in: what a slice of the graph is made by.

Unlike `logic.sparql_query`, which reads what forms can write, this reads every query: filters and modifiers are left to
the engine, and only what names triples is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any

from pyparsing import ParseBaseException
from rdflib import BNode, Literal, URIRef, Variable
from rdflib.paths import AlternativePath, InvPath, MulPath, Path, SequencePath
from rdflib.plugins.sparql.algebra import translatePath, traverse
from rdflib.plugins.sparql.parser import parseQuery
from rdflib.plugins.sparql.parserutils import CompValue

from kgqa_core.errors import FormError
from kgqa_core.logic.sparql_dialect import PREFIXES
from kgqa_core.logic.sparql_execution.engine import NotExecuted

Term = Variable | URIRef | Literal
PlainTerm = URIRef | Literal


@dataclass(frozen=True, slots=True)
class PathStep:
    """One element of a property path: one of several relations, each perhaps inverse; repeat: empty, `*`, `+` or `?`.

    Without relations it is a variable relation.
    """

    relations: tuple[tuple[str, bool], ...]
    repeat: str = ""


@dataclass(frozen=True, slots=True)
class TriplePattern:
    """A triple pattern; blank nodes are variables whose names no query writes."""

    subject: Term
    path: tuple[PathStep, ...]
    object: Term


@dataclass(slots=True)
class Scope:
    """A group: its patterns, and the groups in it.

    optionals, tested (MINUS, EXISTS and NOT EXISTS): each with the variables that are bound before it, for only what
    is known of these limits it.  bound: variables that every solution binds.  equal: variables that a filter makes
    equal to an entity.
    """

    triples: list[TriplePattern] = field(default_factory=list)
    values: dict[str, list[PlainTerm]] = field(default_factory=dict)
    equal: dict[str, URIRef] = field(default_factory=dict)
    unions: list[list[Scope]] = field(default_factory=list)
    optionals: list[tuple[Scope, frozenset[str]]] = field(default_factory=list)
    tested: list[tuple[Scope, frozenset[str]]] = field(default_factory=list)
    queries: list[ScopedQuery] = field(default_factory=list)
    bound: set[str] = field(default_factory=set)

    def shown(self) -> Iterator[TriplePattern]:
        """The patterns that can be part of a solution: without those of MINUS, EXISTS and inner queries."""
        yield from self.triples
        for inner in (*chain.from_iterable(self.unions), *(scope for scope, _ in self.optionals)):
            yield from inner.shown()

    def constants(self) -> Iterator[PlainTerm]:
        """The entities and literals of all patterns, inner ones too, each as often as it stands there."""
        for pattern in self.triples:
            yield from (term for term in (pattern.subject, pattern.object) if not isinstance(term, Variable))
        yield from chain.from_iterable(self.values.values())
        yield from self.equal.values()
        for inner in chain.from_iterable(self.unions):
            yield from inner.constants()
        for inner, _ in (*self.optionals, *self.tested):
            yield from inner.constants()
        for query in self.queries:
            yield from query.scope.constants()


@dataclass(frozen=True, slots=True)
class Projection:
    """A column: its name, its variable (empty for other expressions), and the aggregate or function around it."""

    name: str
    variable: str
    function: str = ""


@dataclass(slots=True)
class ScopedQuery:
    """A query or an inner one.  columns: empty for `*` and ASK."""

    scope: Scope
    columns: tuple[Projection, ...] = ()
    ask: bool = False
    every: bool = False


def read_scopes(text: str) -> ScopedQuery:
    """The patterns of a query in standard SPARQL.  Raises NotExecuted, and FormError for what is no SPARQL."""
    try:
        prologue, query = parseQuery(text)
    except ParseBaseException as fault:
        raise FormError(f"SPARQL, character {fault.loc + 1}: {fault.msg} ({text[fault.loc :][:20]!r})") from None
    declared = {one.prefix or "": str(one.iri) for one in prologue if one.name == "PrefixDecl"}
    if query.name not in ("SelectQuery", "AskQuery"):
        raise NotExecuted(f"{query.name.removesuffix('Query').upper()} instead of SELECT or ASK")
    resolved = traverse(query, visitPost=partial(_resolve, prefixes=PREFIXES | declared))
    return _query(resolved)


def _resolve(value: Any, prefixes: Mapping[str, str]) -> Any:
    """Names, literals and paths as rdflib's terms; None: the node itself."""
    if isinstance(value, BNode):
        return Variable(f" {value}")
    if not isinstance(value, CompValue):
        return None
    if value.name == "pname":
        prefix = value.prefix or ""
        if prefix not in prefixes:
            raise FormError(f"SPARQL: prefix {prefix!r} is not declared")
        return URIRef(prefixes[prefix] + value.localname)
    if value.name == "literal":
        return Literal(value.string, lang=value.lang, datatype=value.datatype, normalize=False)
    if value.name.startswith("Path"):
        return translatePath(value)
    return None


def _query(value: CompValue) -> ScopedQuery:
    columns = tuple(_projection(one) for one in value.projection or ())
    return ScopedQuery(
        _group(value.where), columns, ask=value.name == "AskQuery", every=not columns and value.name != "AskQuery"
    )


def _projection(value: CompValue) -> Projection:
    if value.var is not None:
        return Projection(str(value.var), str(value.var))
    expression, name = value.expr, str(value.evar)
    if isinstance(expression, Variable):
        return Projection(name, str(expression))
    kind = str(getattr(expression, "name", "")).rpartition("_")[2].upper()
    inner = getattr(expression, "vars", None)
    return Projection(name, str(inner) if isinstance(inner, Variable) else "", kind or "expression")


def _group(value: Any) -> Scope:
    scope = Scope()
    if value.name == "SubSelect":
        query = _query(value)
        scope.queries.append(query)
        plain = {
            column.name for column in query.columns if not column.function and column.variable in query.scope.bound
        }
        scope.bound = set(query.scope.bound) if query.every else plain
        return scope
    exists: list[Scope] = []
    for part in value.part or ():
        if part.name == "TriplesBlock":
            flat = list(chain.from_iterable(part.triples))
            scope.triples += [_pattern(*flat[k : k + 3]) for k in range(0, len(flat), 3)]
            scope.bound |= {str(term) for term in flat if isinstance(term, Variable)}
        elif part.name == "OptionalGraphPattern":
            scope.optionals.append((_group(part.graph), frozenset(scope.bound)))
        elif part.name == "MinusGraphPattern":
            scope.tested.append((_group(part.graph), frozenset(scope.bound)))
        elif part.name == "Filter":
            exists += _exists(part.expr)
            _filter(scope, part.expr)
        elif part.name == "Bind":
            scope.tested += [(inner, frozenset(scope.bound)) for inner in _exists(part.expr)]
        elif part.name == "InlineData":
            _values(scope, part)
        elif part.name == "GroupOrUnionGraphPattern":
            branches = [_group(branch) for branch in part.graph]
            scope.unions.append(branches)
            scope.bound |= set.intersection(*(branch.bound for branch in branches))
        else:
            raise NotExecuted(part.name.removesuffix("GraphPattern").upper())
    scope.tested += [(inner, frozenset(scope.bound)) for inner in exists]
    return scope


def _values(scope: Scope, part: CompValue) -> None:
    if len(part.var) == 1:
        terms = [term for term in part.value or () if isinstance(term, URIRef | Literal)]
        if len(terms) == len(part.value or ()):
            scope.values[str(part.var[0])] = terms
            scope.bound.add(str(part.var[0]))


def _filter(scope: Scope, expression: Any) -> None:
    while isinstance(expression, CompValue) and not expression.op and not expression.other and expression.expr:
        if expression.name.startswith(("Builtin", "Function", "Unary")):
            return
        expression = expression.expr
    if getattr(expression, "name", "") == "RelationalExpression" and expression.op == "=":
        ends = [_bare(expression.expr), _bare(expression.other)]
        names = [end for end in ends if isinstance(end, Variable)]
        others = [end for end in ends if isinstance(end, URIRef)]
        if len(names) == len(others) == 1:
            scope.equal[str(names[0])] = others[0]


def _bare(value: Any) -> Any:
    """What is inside expressions of one operand."""
    while isinstance(value, CompValue) and not value.op and not value.other and value.name.endswith("Expression"):
        value = value.expr
    return value


def _exists(value: Any) -> Iterator[Scope]:
    """The groups of EXISTS and NOT EXISTS in an expression."""
    if isinstance(value, CompValue):
        if value.name in ("Builtin_EXISTS", "Builtin_NOTEXISTS"):
            yield _group(value.graph)
            return
        for inner in value.values():
            yield from _exists(inner)
    elif isinstance(value, list | tuple) or type(value).__name__ in ("plist", "ParseResults"):
        for inner in value:
            yield from _exists(inner)


def _pattern(subject: Term, path: Any, value: Term) -> TriplePattern:
    return TriplePattern(subject, tuple(_steps(path)), value)


def _steps(path: URIRef | Variable | Path) -> Iterator[PathStep]:
    if isinstance(path, Variable):
        yield PathStep(())
    elif isinstance(path, SequencePath):
        for part in path.args:
            yield from _steps(part)
    elif isinstance(path, InvPath) and isinstance(path.arg, SequencePath):
        for step in reversed(list(_steps(path.arg))):
            yield PathStep(tuple((iri, not inverse) for iri, inverse in step.relations), step.repeat)
    elif isinstance(path, MulPath):
        inner = list(_steps(path.path))
        if len(inner) != 1 or inner[0].repeat:
            raise NotExecuted("a repeated path of several steps")
        yield PathStep(inner[0].relations, str(path.mod))
    else:
        yield PathStep(tuple(_relations(path)))


def _relations(path: Any) -> Sequence[tuple[str, bool]]:
    if isinstance(path, URIRef):
        return [(str(path), False)]
    if isinstance(path, InvPath):
        return [(iri, not inverse) for iri, inverse in _relations(path.arg)]
    if isinstance(path, AlternativePath):
        return [one for part in path.args for one in _relations(part)]
    raise NotExecuted("property path", re.sub(r"<[^>]*>", "…", str(path))[:80])
