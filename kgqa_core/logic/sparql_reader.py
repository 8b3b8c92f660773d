"""Reads the part of SPARQL that question sets write; what it does not read raises Outside with a reason.

The prefixes of Wikidata's query service and of Freebase need not be declared.
"""

from __future__ import annotations

import re
from typing import NoReturn

from kgqa_core.errors import FormError
from kgqa_core.kg.vocabulary import RDF_TYPE, STRING, XSD
from kgqa_core.logic.sparql_query import (
    FREEBASE,
    WIKIDATA,
    Call,
    Expression,
    Group,
    Hop,
    Iri,
    Lit,
    Outside,
    Select,
    Term,
    Var,
)

PREFIXES = {
    "wd": WIKIDATA + "entity/",
    "wdt": WIKIDATA + "prop/direct/",
    "p": WIKIDATA + "prop/",
    "ps": WIKIDATA + "prop/statement/",
    "pq": WIKIDATA + "prop/qualifier/",
    "ns": FREEBASE,
    "xsd": XSD,
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
}

_TOKEN = re.compile(
    r"""(?P<space>\s+|\#[^\n]*)
    |(?P<iri><[^<>"{}|^`\\\s]*>)
    |(?P<var>[?$]\w+)
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<lang>@[A-Za-z][\w-]*)
    |(?P<number>[+-]?(?:\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\d+))
    |(?P<name>(?:[A-Za-z][\w-]*)?:(?:[\w](?:[\w.-]*[\w])?)?)
    |(?P<word>[A-Za-z_]\w*)
    |(?P<mark>\^\^|\|\||&&|!=|<=|>=|[{}()\[\].;,/^*+|=<>!-])""",
    re.VERBOSE,
)


def read_sparql(text: str) -> Select:
    """The query that a text writes.  Raises Outside, and FormError for what is no SPARQL."""
    reader = _Reader(text)
    query = reader.query()
    if reader.token()[1]:
        reader.fail("the query ends before this")
    return query


class _Reader:
    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, str, int]] = []
        at = 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                raise FormError(f"SPARQL, character {at + 1}: {text[at : at + 20]!r} is not SPARQL")
            if found.lastgroup != "space":
                self.tokens.append((str(found.lastgroup), found[0], at))
            at = found.end()
        self.tokens.append(("end", "", len(text)))
        self.place = 0
        self.prefixes = dict(PREFIXES)

    def fail(self, problem: str) -> NoReturn:
        kind, text, at = self.tokens[self.place]
        raise FormError(f"SPARQL, character {at + 1}: {problem} ({text!r})")

    def token(self) -> tuple[str, str]:
        return self.tokens[self.place][:2]

    def is_next(self, *texts: str) -> bool:
        kind, text = self.token()
        return text.upper() in texts and kind in ("word", "mark")

    def take(self, *texts: str) -> bool:
        if self.is_next(*texts):
            self.place += 1
            return True
        return False

    def need(self, text: str) -> None:
        if not self.take(text):
            self.fail(f"{text!r} is missing before this")

    def next(self) -> tuple[str, str]:
        found = self.token()
        self.place += 1
        return found

    # -- queries and groups --------------------------------------------------------------------------------------

    def query(self) -> Select:
        while self.take("PREFIX"):
            _, name = self.next()
            kind, iri = self.next()
            if kind != "iri" or not name.endswith(":"):
                self.fail("a prefix is written PREFIX name: <iri>, before this")
            self.prefixes[name[:-1]] = iri[1:-1]
        if self.take("ASK"):
            self.take("WHERE")
            return Select([], self.group(), ask=True)
        if not self.take("SELECT"):
            raise Outside(f"{self.token()[1].upper() or 'an empty text'} instead of SELECT or ASK")
        return self.select()

    def select(self) -> Select:
        self.take("DISTINCT", "REDUCED")
        projected = []
        while not self.is_next("WHERE", "{"):
            projected.append(self.projection())
        self.take("WHERE")
        query = Select(projected, self.group())
        if self.take("GROUP"):
            raise Outside("GROUP BY")
        if self.take("ORDER"):
            self.need("BY")
            falling = self.take("DESC")
            if not falling:
                self.take("ASC")
            query.order = falling, self.primary()
            if not self.is_next("LIMIT", "OFFSET", "}") and self.token()[0] != "end":
                raise Outside("several things to order by")
        while self.is_next("LIMIT", "OFFSET"):
            _, word = self.next()
            kind, number = self.next()
            if kind != "number" or not number.isdigit():
                self.fail("a whole number is missing before this")
            if word.upper() == "LIMIT":
                query.limit = int(number)
            else:
                query.offset = int(number)
        return query

    def projection(self) -> tuple[str, str, str]:
        kind, text = self.next()
        if kind == "var":
            return "", text[1:], text[1:]
        if text == "*":
            raise Outside("SELECT *")
        if text.upper() in ("COUNT", "MAX", "MIN"):
            return self.aggregate(text.upper())
        if text != "(":
            raise Outside("what is selected", text)
        kind, text = self.next()
        if kind == "var":
            found = ("", text[1:], text[1:])
        elif text.upper() in ("COUNT", "MAX", "MIN"):
            found = self.aggregate(text.upper())
        else:
            raise Outside("what is selected", text)
        if self.take("AS"):
            found = (*found[:2], self.next()[1][1:])
        self.need(")")
        return found

    def aggregate(self, name: str) -> tuple[str, str, str]:
        self.need("(")
        self.take("DISTINCT")
        kind, text = self.next()
        if kind != "var":
            raise Outside("an aggregate of more than a variable")
        self.need(")")
        return name, text[1:], text[1:]

    def group(self) -> Group:
        self.need("{")
        group = Group()
        while not self.take("}"):
            self.element(group)
        return group

    def element(self, group: Group) -> None:
        if self.take("."):
            return
        if self.take("FILTER"):
            group.filters.append(self.primary())
        elif self.take("VALUES"):
            _, name = self.next()
            self.need("{")
            terms = []
            while not self.take("}"):
                terms.append(self.term())
            group.values[name[1:]] = terms
        elif self.take("MINUS"):
            group.minus.append(self.group())
        elif self.is_next("OPTIONAL", "BIND", "SERVICE", "GRAPH"):
            raise Outside(self.token()[1].upper())
        elif self.take("SELECT"):
            group.selects.append(self.select())
        elif self.is_next("{"):
            branches = [self.group()]
            while self.take("UNION"):
                branches.append(self.group())
            if len(branches) > 1:
                group.unions.append(branches)
            else:
                _merge(group, branches[0])
        else:
            self.statements(group)

    def statements(self, group: Group) -> None:
        subject = self.term()
        while True:
            path = self.path()
            while True:
                group.triples.append((subject, path, self.term()))
                if not self.take(","):
                    break
            if not self.take(";"):
                return
            if self.is_next(".", "}"):
                return

    # -- terms, paths, expressions -------------------------------------------------------------------------------

    def path(self) -> tuple[Hop, ...]:
        hops = [self.hop()]
        while self.take("/"):
            hops.append(self.hop())
        if self.is_next("|", "(", "+"):
            raise Outside("property path", self.token()[1])
        return tuple(hops)

    def hop(self) -> Hop:
        inverse = self.take("^")
        if self.is_next("(", "!"):
            raise Outside("property path", self.token()[1])
        if self.take("A"):
            iri = RDF_TYPE
        else:
            term = self.term()
            if isinstance(term, Var):
                raise Outside("a variable relation")
            if isinstance(term, Lit):
                self.fail("a relation is missing before this")
            iri = term.iri
        return Hop(iri, inverse, self.take("*"))

    def term(self) -> Term:
        kind, text = self.next()
        if kind == "var":
            return Var(text[1:])
        if kind == "iri":
            return Iri(text[1:-1])
        if kind == "name":
            return Iri(self.expanded(text))
        if kind == "number":
            return Lit(text, XSD + ("integer" if re.fullmatch(r"[+-]?\d+", text) else "decimal"))
        if kind == "word" and text.lower() in ("true", "false"):
            return Lit(text.lower(), XSD + "boolean")
        if text == "[":
            raise Outside("a blank node")
        if kind != "string":
            self.place -= 1
            self.fail("a term is missing before this")
        body = re.sub(r"\\(.)", lambda found: {"n": "\n", "t": "\t", "r": "\r"}.get(found[1], found[1]), text[1:-1])
        if self.token()[0] == "lang":
            return Lit(body, self.next()[1].lower())
        if self.take("^^"):
            datatype = self.term()
            return Lit(body, datatype.iri if isinstance(datatype, Iri) else STRING)
        return Lit(body, STRING)

    def expanded(self, name: str) -> str:
        prefix, local = name.split(":", 1)
        if prefix not in self.prefixes:
            self.fail(f"prefix {prefix!r} is not declared; before this")
        return self.prefixes[prefix] + local

    def expression(self) -> Expression:
        parts = [self.conjunction()]
        while self.take("||", "OR"):
            parts.append(self.conjunction())
        return parts[0] if len(parts) == 1 else Call("||", tuple(parts))

    def conjunction(self) -> Expression:
        parts = [self.comparison()]
        while self.take("&&", "AND"):
            parts.append(self.comparison())
        return parts[0] if len(parts) == 1 else Call("&&", tuple(parts))

    def comparison(self) -> Expression:
        left = self.primary()
        if self.is_next("=", "!=", "<", "<=", ">", ">="):
            return Call(self.next()[1], (left, self.primary()))
        if self.is_next("+", "-", "*", "/", "IN", "NOT") or self.token()[1][:1] in ("+", "-"):
            raise Outside("arithmetic or IN in a filter", self.token()[1])
        return left

    def primary(self) -> Expression:
        if self.take("!"):
            return Call("!", (self.primary(),))
        if self.take("("):
            found = self.expression()
            self.need(")")
            return found
        if self.take("EXISTS"):
            return Call("EXISTS", (self.group(),))
        if self.take("NOT"):
            self.need("EXISTS")
            return Call("NOT EXISTS", (self.group(),))
        kind, text = self.token()
        if kind in ("word", "name") and self.tokens[self.place + 1][1] == "(":
            name = text.upper() if kind == "word" else self.expanded(text)
            self.place += 2
            args: list[Expression] = []
            while not self.take(")"):
                args.append(self.expression())
                self.take(",")
            return Call(name, tuple(args))
        return self.term()


def _merge(into: Group, other: Group) -> None:
    """Brackets around patterns change nothing."""
    into.triples += other.triples
    into.filters += other.filters
    into.unions += other.unions
    into.minus += other.minus
    into.values.update(other.values)
    into.selects += other.selects
