"""The part of SPARQL that question sets write, as data: SELECT and ASK over patterns, filters and subselects."""

from __future__ import annotations

from dataclasses import dataclass, field

from kgqa_core.errors import FormError

WIKIDATA = "http://www.wikidata.org/"
FREEBASE = "http://rdf.freebase.com/ns/"


class Outside(FormError):
    """A query that no form writes; reason: a few words that are the same for queries of one kind."""

    def __init__(self, reason: str, what: str = "") -> None:
        super().__init__(f"outside the fragment that forms write: {reason}{': ' + what if what else ''}")
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Var:
    """A variable."""

    name: str


@dataclass(frozen=True, slots=True)
class Iri:
    """An IRI, written out."""

    iri: str


@dataclass(frozen=True, slots=True)
class Lit:
    """A literal with its datatype, or `@` and its language."""

    text: str
    datatype: str


Term = Var | Iri | Lit


@dataclass(frozen=True, slots=True)
class Hop:
    """One element of a property path; star: any number of times."""

    iri: str
    inverse: bool = False
    star: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """An expression: an operator or function and what it is applied to."""

    name: str
    args: tuple[Expression, ...]


@dataclass(slots=True)
class Group:
    """A group of patterns: triples, filters, and groups in it."""

    triples: list[tuple[Term, tuple[Hop, ...], Term]] = field(default_factory=list)
    filters: list[Expression] = field(default_factory=list)
    unions: list[list[Group]] = field(default_factory=list)
    minus: list[Group] = field(default_factory=list)
    values: dict[str, list[Term]] = field(default_factory=dict)
    selects: list[Select] = field(default_factory=list)


Expression = Call | Group | Var | Iri | Lit


@dataclass(slots=True)
class Select:
    """A query: projected are (aggregate or empty, variable, name)."""

    projected: list[tuple[str, str, str]]
    group: Group
    ask: bool = False
    order: tuple[bool, Expression] | None = None
    limit: int | None = None
    offset: int = 0
