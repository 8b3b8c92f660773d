"""The part of SPARQL that question sets write, as data: rdflib parses it, names are resolved, groups sorted by pattern.

What is not of this part raises Outside with a reason.  The prefixes of `sparql_dialect` need
not be declared, and `OR` and `AND` are read as `||` and `&&`, as WebQSP writes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any

from pyparsing import ParseBaseException
from rdflib import BNode, Literal, URIRef, Variable
from rdflib.paths import InvPath, MulPath, Path, SequencePath
from rdflib.plugins.sparql.algebra import translatePath, traverse
from rdflib.plugins.sparql.parser import parseQuery
from rdflib.plugins.sparql.parserutils import CompValue

from kgqa_core.errors import FormError
from kgqa_core.logic.sparql_dialect import PREFIXES

_QUOTED_OR_WORD = re.compile(r"""("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|<[^<>\s]*>)|(?<![?$:\w])(OR|AND)\b(?!:)""")
_OPERATORS = {"ConditionalOrExpression": "||", "ConditionalAndExpression": "&&"}
_WRAPPERS = {*_OPERATORS, "RelationalExpression", "AdditiveExpression", "MultiplicativeExpression"}
_PATTERNS = {"OptionalGraphPattern": "OPTIONAL", "ServiceGraphPattern": "SERVICE", "GraphGraphPattern": "GRAPH"}
_COMPARISONS = {"=", "!=", "<", "<=", ">", ">="}


class Outside(FormError):
    """A query that no form writes; reason: a few words that are the same for queries of one kind."""

    def __init__(self, reason: str, what: str = "") -> None:
        super().__init__(f"outside the fragment that forms write: {reason}{': ' + what if what else ''}")
        self.reason = reason


Term = Variable | URIRef | Literal


@dataclass(frozen=True, slots=True)
class Hop:
    """One element of a property path; star: any number of times."""

    iri: str
    inverse: bool = False
    star: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """An expression: an operator or function (in capitals, or an IRI) and its arguments."""

    name: str
    args: tuple[Expression, ...]


@dataclass(slots=True)
class GraphPattern:
    """A group of patterns: triples, filters, and groups in it."""

    triples: list[tuple[Term, tuple[Hop, ...], Term]] = field(default_factory=list)
    filters: list[Expression] = field(default_factory=list)
    unions: list[list[GraphPattern]] = field(default_factory=list)
    minus: list[GraphPattern] = field(default_factory=list)
    values: dict[str, list[Term]] = field(default_factory=dict)
    selects: list[Select] = field(default_factory=list)


Expression = Call | GraphPattern | Term


@dataclass(slots=True)
class Select:
    """A query: projected are (aggregate or empty, variable, name)."""

    projected: list[tuple[str, str, str]]
    group: GraphPattern
    ask: bool = False
    order: tuple[bool, Expression] | None = None
    limit: int | None = None
    offset: int = 0
    groups: list[str] = field(default_factory=list)


def read_sparql(text: str) -> Select:
    """The query that a text writes.  Raises Outside, and FormError for what is no SPARQL."""
    standard = _QUOTED_OR_WORD.sub(lambda match: match[1] or {"OR": "||", "AND": "&&"}[match[2]], text)
    try:
        prologue, query = parseQuery(standard)
    except ParseBaseException as fault:
        raise FormError(f"SPARQL, character {fault.loc + 1}: {fault.msg} ({standard[fault.loc :][:20]!r})") from None
    declared = {one.prefix or "": str(one.iri) for one in prologue if one.name == "PrefixDecl"}
    if query.name not in ("SelectQuery", "AskQuery"):
        raise Outside(f"{query.name.removesuffix('Query').upper()} instead of SELECT or ASK")
    read: Select = traverse(query, visitPost=partial(_node, prefixes=PREFIXES | declared, text=text))
    return read


def _node(value: Any, prefixes: dict[str, str], text: str) -> Any:
    """What a node of rdflib's parse tree is here, given what its children are; None: the node itself."""
    if isinstance(value, BNode):
        raise Outside("a blank node")
    if not isinstance(value, CompValue):
        return None
    name = value.name
    if name == "pname":
        prefix = value.prefix or ""
        if prefix not in prefixes:
            index = text.find(f"{prefix}:") + 1
            raise FormError(f"SPARQL, character {index}: prefix {prefix!r} is not declared")
        return URIRef(prefixes[prefix] + value.localname)
    if name == "literal":
        return Literal(value.string, lang=value.lang, datatype=value.datatype, normalize=False)
    if name.startswith("Path"):
        return translatePath(value)
    if name in _WRAPPERS or name in ("Function", "UnaryNot") or name.startswith(("Builtin_", "Unary")):
        return _expression(value)
    if name == "GroupGraphPatternSub":
        return _group(value.part or ())
    if name in ("SelectQuery", "SubSelect"):
        return _select(value)
    if name == "AskQuery":
        return Select([], _as_group(value.where), ask=True)
    return None


def _expression(value: CompValue) -> Expression:
    name, first = value.name, value.expr
    if name in _OPERATORS and value.other:
        return Call(_OPERATORS[name], (first, *value.other))
    if name == "RelationalExpression" and value.op in _COMPARISONS:
        return Call(value.op, (first, value.other))
    if name == "UnaryNot":
        return Call("!", (first,))
    if name == "Function":
        return Call(str(value.iri), tuple(first or ()))
    if name in ("Builtin_EXISTS", "Builtin_NOTEXISTS"):
        return Call(name.removeprefix("Builtin_").replace("NOTE", "NOT E"), (_as_group(value.graph),))
    if name.startswith("Builtin_"):
        return Call(name.removeprefix("Builtin_").upper(), tuple(value.values()))
    if name in ("UnaryMinus", "UnaryPlus") and isinstance(first, Literal):
        return Literal(f"-{first}" if name == "UnaryMinus" else str(first), datatype=first.datatype)
    if value.op or value.other or name.startswith("Unary"):
        raise Outside("arithmetic or IN in a filter", str(value.op or name))
    unwrapped: Expression = first
    return unwrapped


def _select(value: CompValue) -> Select:
    if not value.projection:
        raise Outside("SELECT *")
    query = Select([_projection(one) for one in value.projection], _as_group(value.where))
    if value.groupby:
        query.groups = [str(one) for one in value.groupby.condition if isinstance(one, Variable)]
        if value.having or len(query.groups) != 1 or len(value.groupby.condition) != 1:
            raise Outside("GROUP BY with HAVING, or by several things")
    if value.orderby:
        conditions = value.orderby.condition
        if len(conditions) > 1:
            raise Outside("several things to order by")
        one = conditions[0]
        query.order = (one.order == "DESC", one.expr) if isinstance(one, CompValue) else (False, one)
    if value.limitoffset:
        bounds = value.limitoffset
        query.limit = None if bounds.limit is None else int(bounds.limit)
        query.offset = int(bounds.offset or 0)
    return query


def _projection(value: CompValue) -> tuple[str, str, str]:
    if value.var is not None:
        return "", str(value.var), str(value.var)
    expression, name = value.expr, str(value.evar)
    if isinstance(expression, Variable):
        return "", str(expression), name
    aggregate = getattr(expression, "name", "").removeprefix("Aggregate_").upper()
    if aggregate not in ("COUNT", "MAX", "MIN", "SUM", "AVG"):
        raise Outside("the selected expression", aggregate)
    if aggregate in ("SUM", "AVG") and expression.distinct:
        raise Outside("a sum of distinct values")
    if not isinstance(expression.vars, Variable):
        raise Outside("an aggregate of more than a variable")
    return aggregate, str(expression.vars), name


def _as_group(value: GraphPattern | Select) -> GraphPattern:
    return GraphPattern(selects=[value]) if isinstance(value, Select) else value


def _group(parts: Sequence[Any]) -> GraphPattern:
    group = GraphPattern()
    for part in parts:
        if part.name in _PATTERNS or part.name == "Bind":
            raise Outside(_PATTERNS.get(part.name, "BIND"))
        if part.name == "TriplesBlock":
            flat = list(chain.from_iterable(part.triples))
            group.triples += [(flat[k], tuple(_hops(flat[k + 1])), flat[k + 2]) for k in range(0, len(flat), 3)]
        elif part.name == "Filter":
            group.filters.append(part.expr)
        elif part.name == "MinusGraphPattern":
            group.minus.append(_as_group(part.graph))
        elif part.name == "InlineData":
            if len(part.var) != 1:
                raise Outside("VALUES with several variables")
            group.values[str(part.var[0])] = list(part.value or ())
        elif len(part.graph) > 1:
            group.unions.append([_as_group(branch) for branch in part.graph])
        else:
            _merge(group, part.graph[0])
    return group


def _hops(path: Term | Path) -> Iterator[Hop]:
    """The elements of a property path in order."""
    if isinstance(path, Variable):
        raise Outside("a variable relation")
    if isinstance(path, URIRef):
        yield Hop(str(path))
    elif isinstance(path, SequencePath):
        for part in path.args:
            yield from _hops(part)
    elif isinstance(path, InvPath) and isinstance(path.arg, (URIRef, MulPath)):
        for hop in _hops(path.arg):
            yield Hop(hop.iri, not hop.inverse, hop.star)
    elif isinstance(path, MulPath) and path.mod == "*" and isinstance(path.path, URIRef):
        yield Hop(str(path.path), star=True)
    else:
        raise Outside("property path", str(path))


def _merge(into: GraphPattern, other: GraphPattern | Select) -> None:
    """Brackets around patterns change nothing."""
    if isinstance(other, Select):
        into.selects.append(other)
        return
    into.triples += other.triples
    into.filters += other.filters
    into.unions += other.unions
    into.minus += other.minus
    into.values.update(other.values)
    into.selects += other.selects
