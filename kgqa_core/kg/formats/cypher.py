"""Cypher scripts that make a graph of literals: CREATE, MERGE, MATCH by properties, SET, UNWIND of literal rows.

    CREATE (mia:Person {name: 'Mia', born: 1980})-[:OWNS {since: 2011}]->(:Place {name: "Café Zwölf"});
    MATCH (a:Person {name: 'Mia'}) MERGE (b:Person {name: 'Tom'}) MERGE (a)-[:MARRIED_TO]->(b);

A script is read, never executed.  A clause with anything but literals is a reject with its line, and reading goes on
with the next clause; what makes no data (constraints, `:begin`, a MATCH that only reads) is ignored.  A node of a MERGE
is looked up by its labels and properties, also within a pattern.  The ids of `apoc.export.cypher` are keys; other nodes
are numbered, `town/1` of town.cypher.  The graph is held in memory, up to MAX_SCRIPT and MAX_ELEMENTS.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError
from kgqa_core.kg.formats.api import FormatSpec
from kgqa_core.kg.formats.base import StatementBatch
from kgqa_core.kg.formats.cypher_tokens import Tokens, unescaped
from kgqa_core.kg.formats.property_graph import PropertyRows, Unfit
from kgqa_core.kg.formats.source import Source

MAX_SCRIPT = 128 << 20
"""Characters of a script."""
MAX_ELEMENTS = 10_000_000
"""Nodes and relationships of a script."""
MAX_BOUND = 1_000_000
"""Values that the rows of a statement bind: what UNWIND and MATCH give, multiplied."""
MAX_DEPTH = 50
"""Of lists and maps within each other."""

IMPORT_LABEL, IMPORT_ID = "UNIQUE IMPORT LABEL", "UNIQUE IMPORT ID"
"""The label and the property that `apoc.export.cypher` gives to nodes and removes at its end."""

_SCHEMA = frozenset("constraint index unique fulltext text range point lookup vector or database".split())
_READING = frozenset("with return where order skip limit remove".split())
_CLAUSES = _READING | frozenset("create merge match optional set on unwind delete detach call load foreach".split())
_WRITING = frozenset("create merge set delete detach call load foreach remove".split())
_TEMPORAL = {"date": "date", "datetime": "dateTime", "localdatetime": "dateTime", "time": "time", "localtime": "time",
             "duration": "duration"}  # fmt: skip
_START = re.compile(
    r"(?:\s++|//[^\n]*\n|/\*.*?\*/|:\w+[^\n]*\n|(?:begin|commit)\s*;?\s*\n)*+"
    r"(?:(?:create|merge|(?:optional\s+)?match)\s*\(\s*[\w`]*\s*[:{)]|unwind\s*\[|call\s+(?:db|apoc)\.|"
    r"create\s+(?:\w+\s+){0,3}(?:constraint|index)\b[^;]*\b(?:for|on)\s*[(:])",
    re.IGNORECASE | re.DOTALL,
)
_TOO_LARGE = "is a Cypher script of more than {}; export the graph as JSON lines, with `apoc.export.json.all`"


class Cypher:
    """Reader of Cypher scripts."""

    name = "cypher"

    def sniff(self, lines: list[str], options: KgOptions) -> float:
        """1 where the first clause is one of Cypher's that make a graph, else 0."""
        return float(_START.match("\n".join(lines) + "\n") is not None)

    def read(self, source: Source, options: KgOptions) -> Iterator[StatementBatch]:
        """The statements of a script.  Raises KgInputError for one that is too large."""
        rows = PropertyRows(options.property_graph, source.found)
        lines: list[str] = []
        size = 0
        for block in source.blocks():
            for line, reason, text in block.rejects.iter_rows():
                rows.reject(line, reason, text)
            for line, text in block.lines.iter_rows():
                lines += [""] * (line - 1 - len(lines))
                lines.append(text)
                size += len(text) + 1
            if size > MAX_SCRIPT:
                raise KgInputError(f"{source.path} {_TOO_LARGE.format(f'{MAX_SCRIPT >> 20} MiB')}")
        script = _Script("\n".join(lines), rows)
        del lines
        try:
            script.read()
        except _TooLarge:
            limit = f"{MAX_ELEMENTS:,} nodes and relationships"
            raise KgInputError(f"{source.path} {_TOO_LARGE.format(limit)}") from None
        for line, shown, add in script.elements(source.path.name.split(".")[0]):
            rows.take(line, shown, add)
            if rows.full:
                yield rows.batch(0.9)
        yield rows.finish()


class _TooLarge(Exception):
    """More elements than are held."""


class _Temporal(str):
    """A value with the last part of its datatype's IRI."""

    datatype: str


@dataclass(slots=True, eq=False)
class _Node:
    line: int
    labels: dict[str, None]
    properties: dict[str, Any]
    number: int


@dataclass(slots=True, eq=False)
class _Edge:
    line: int
    source: _Node
    relation: str
    target: _Node
    properties: dict[str, Any]
    directed: bool


@dataclass(slots=True)
class _Part:
    """A node or a relationship of a pattern; `properties` may hold paths.  arrow: of a relationship."""

    line: int
    variable: str | None
    labels: list[str]
    properties: Any
    arrow: str = ""

    @property
    def bare(self) -> bool:
        """Whether it says nothing of the element but its variable."""
        return not self.labels and not self.properties


@dataclass(frozen=True, slots=True)
class _Path:
    """A property of a variable: `row.start._id`."""

    names: tuple[str, ...]


_Pattern = tuple[list[_Part], list[_Part]]
"""Nodes, and the relationships between each and the next."""


class _Script:
    """A script, read clause by clause.  A row binds variables to nodes, relationships and values."""

    def __init__(self, text: str, rows: PropertyRows) -> None:
        self.tokens, self.rows = Tokens(text), rows
        self.nodes: list[_Node] = []
        self.edges: list[_Edge] = []
        self.bindings: list[dict[str, Any]] = [{}]
        self.lost = False  # whether a clause of the statement was rejected, so that a variable may lack its node
        self.created = False  # whether the last MERGE made a node
        self._index: dict[str | None, dict[Any, list[_Node]]] = {None: {}}  # by property and value; under None by label

    def read(self) -> None:
        """Reads all statements; what is at fault becomes a reject."""
        tokens = self.tokens
        while tokens.kind:
            if tokens.accept(";"):
                self.bindings, self.lost = [{}], False
                continue
            line, begin = tokens.line, tokens.begin
            try:
                self._clause()
            except Unfit as fault:
                self.lost = True
                self.rows.reject(line, str(fault), tokens.text[begin : begin + 500].partition(";")[0])
                tokens.skip({"create", "merge", "match", "unwind"})

    def elements(self, stem: str) -> Iterator[tuple[int, Callable[[], str], Callable[[], None]]]:
        """The line, the text and the adder of nodes, then of relationships.  stem: before the numbers of nodes."""

        def key(node: _Node) -> Any:
            return node.properties.get(IMPORT_ID, f"{stem}/{node.number}")

        def add_node(node: _Node) -> None:
            labels = [label for label in node.labels if label != IMPORT_LABEL]
            properties, datatypes = _plain(node.properties)
            self.rows.node(key(node), labels, properties, datatypes)

        def add_edge(edge: _Edge) -> None:
            ends = key(edge.source), edge.relation, key(edge.target)
            self.rows.edge(*ends, *_plain(edge.properties), directed=edge.directed)

        for node in self.nodes:
            yield node.line, lambda node=node: f"({node.properties})", lambda node=node: add_node(node)  # type: ignore[misc]
        for edge in self.edges:
            yield edge.line, lambda edge=edge: f"[:{edge.relation}]", lambda edge=edge: add_edge(edge)  # type: ignore[misc]

    def _clause(self) -> None:
        tokens, word = self.tokens, self.tokens.word
        if tokens.token == ":" or word in ("begin", "commit", "rollback", "schema"):
            tokens.skip_line()
            self.rows.ignore()
            return
        schema = {"create": _SCHEMA, "call": {"db"}}.get(word)
        if word == "drop" or (schema and tokens.peek() in schema):
            self._ignore()
            return
        if word not in _CLAUSES:
            raise Unfit(f"{tokens.shown} begins no clause that is read")
        tokens.next()
        if word in ("create", "merge"):
            self._make(self._patterns(), word == "merge")
        elif word == "match":
            self._match()
        elif word == "unwind":
            self._unwind()
        elif word == "set":
            self._set()
        elif word == "on" and tokens.word in ("create", "match"):
            applies = self.created == (tokens.word == "create")
            tokens.next()
            if tokens.word != "set":
                raise Unfit("ON CREATE and ON MATCH without SET")
            tokens.next()
            self._set(applies)
        elif word == "with" or (word in _READING and word != "remove"):
            self._with(word)
        elif word != "optional":
            if word in ("foreach", "load", "call"):
                tokens.skip(set())
            raise Unfit(f"{word.upper()} is not read, only CREATE, MERGE, MATCH, SET and UNWIND of literals")

    def _ignore(self) -> None:
        """Passes over the rest of a statement, which makes no data."""
        self.tokens.skip(set())
        self.rows.ignore()

    def _with(self, word: str) -> None:
        tokens, names = self.tokens, []
        while tokens.kind and tokens.token != ";" and (tokens.word not in _CLAUSES or tokens.word in _READING):
            names.append(tokens.token)
            tokens.next()
        if not self._writes():
            self._ignore()
        elif word != "with" or not all(name in (",", "*") or name in self.bindings[0] for name in names):
            self.bindings = [{}]
            raise Unfit(f"{word.upper()} of more than variables is not read")

    def _match(self) -> None:
        patterns = self._patterns()
        conditions: dict[str, dict[str, Any]] = {}
        if self.tokens.word == "where" and self._writes():
            conditions = self._where()
        writes = self._writes()
        if not writes or (writes in ("delete", "detach") and not self.nodes):
            self._ignore()
            return
        try:
            result = self.bindings
            for nodes, relations in patterns:
                if relations:
                    raise Unfit("a MATCH of relationships is not looked up")
                for node in nodes:
                    result = self._matches(node, conditions.get(node.variable or "", {}), result)
            self.bindings = result
        except Unfit:
            for row in self.bindings:
                for node in (part for nodes, relations in patterns for part in (*nodes, *relations)):
                    row.pop(node.variable or "", None)
            raise

    def _matches(self, node: _Part, conditions: Mapping[str, Any], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The rows, each with each node that a part of a MATCH is.  Raises Unfit where none is."""
        result: list[dict[str, Any]] = []
        for row in rows:
            wanted = self._map(node.properties, row) | self._map(dict(conditions), row)
            if node.bare and not wanted and node.variable in row:
                result.append(row)
                continue
            matches = self._look_up(node.labels, wanted)
            if not matches and IMPORT_ID in wanted:  # its node is in another file
                matches = [self._keep(_Node(node.line, {}, {IMPORT_ID: wanted[IMPORT_ID]}, 0))]
            result += _extended(row, node.variable, matches, len(result))
            if not matches and len(rows) == 1:
                raise Unfit(f"no node before it in this script is ({':'.join(['', *node.labels])} {wanted})"[:300])
        if not result:
            raise Unfit("no node before it in this script is one of the rows")
        if len(result) < len(rows):
            self.rows.reject(node.line, f"no node is in this script for {len(rows) - len(result):,} rows", "MATCH")
        return result

    def _where(self) -> dict[str, dict[str, Any]]:
        """Equalities that hold together, by variable and property."""
        conditions: dict[str, dict[str, Any]] = {}
        self.tokens.next()
        while True:
            path = self._expression()
            if not isinstance(path, _Path) or len(path.names) != 2 or not self.tokens.accept("="):
                raise Unfit("a WHERE of anything but `variable.property = literal`, joined by AND")
            conditions.setdefault(path.names[0], {})[path.names[1]] = self._expression()
            if self.tokens.word != "and":
                return conditions
            self.tokens.next()

    def _unwind(self) -> None:
        values = self._expression()
        if self.tokens.word != "as":
            raise Unfit("UNWIND of anything but a list of literals")
        self.tokens.next()
        name, rows = self.tokens.name("a variable"), self.bindings
        self.bindings = [{}]
        result: list[dict[str, Any]] = []
        for row in rows:
            given = self._value(values, row)
            if not isinstance(given, list):
                raise Unfit("UNWIND of something that is no list")
            result += _extended(row, name, given, len(result))
        self.bindings = result

    def _set(self, applies: bool = True) -> None:
        tokens = self.tokens
        while True:
            variable = tokens.name("a variable")
            elements = [row.get(variable) for row in self.bindings]
            if not all(isinstance(element, _Node | _Edge) for element in elements):
                raise Unfit(f"{variable!r} is no node or relationship that was read")
            if tokens.token == ":":
                labels = self._labels()
                for node in elements if applies else ():
                    if not isinstance(node, _Node):
                        raise Unfit("a label of a relationship")
                    for label in labels:
                        if label not in node.labels:
                            self._index[None].setdefault(_hashable(label), []).append(node)
                    node.labels |= dict.fromkeys(labels)
            else:
                name = tokens.name("a property") if tokens.accept(".") else None
                add = name is not None or tokens.token == "+="
                if not (tokens.accept("=") or (name is None and tokens.accept("+="))):
                    raise Unfit(f"{tokens.shown} in SET")
                value = self._expression()
                for row, element in zip(self.bindings, elements if applies else [], strict=applies):
                    assert isinstance(element, _Node | _Edge)
                    given = {name: self._value(value, row)} if name is not None else self._map(value, row)
                    self._assign(element, {**(element.properties if add else {}), **given})
            if not tokens.accept(","):
                return

    def _assign(self, element: Any, properties: dict[str, Any]) -> None:
        """Gives a node or relationship its properties anew."""
        for name, index in self._index.items() if isinstance(element, _Node) else ():
            old, new = _hashable(element.properties.get(name or "")), _hashable(properties.get(name or ""))
            if name is not None and old != new:
                index[old].remove(element)
                index.setdefault(new, []).append(element)
        element.properties = properties

    def _make(self, patterns: list[_Pattern], merge: bool) -> None:
        """Creates what patterns describe, for each row."""
        self.created = False
        for row in self.bindings:
            for nodes, relations in patterns:
                values = [self._map(part.properties, row) for part in (*nodes, *relations)]
                for node in nodes:
                    unbound = node.variable and node.bare and not isinstance(row.get(node.variable), _Node)
                    if unbound and (self.lost or node.variable in row or merge):
                        raise Unfit(f"the variable {node.variable!r} has no node, or that one was rejected")
                ends = [self._node(node, given, row, merge) for node, given in zip(nodes, values, strict=False)]
                for at, relation in enumerate(relations):
                    source, target = ends[at : at + 2] if relation.arrow != "<" else ends[at : at + 2][::-1]
                    directed = relation.arrow != "-"
                    edge = _Edge(relation.line, source, relation.labels[0], target, values[len(nodes) + at], directed)
                    self._keep(edge)
                    if relation.variable:
                        row[relation.variable] = edge

    def _node(self, part: _Part, properties: dict[str, Any], row: dict[str, Any], merge: bool) -> _Node:
        node: Any = row.get(part.variable or "") if part.bare else None
        if node is None and merge and not part.bare:
            node = next(iter(self._look_up(part.labels, properties)), None)
        if node is None:
            node = self._keep(_Node(part.line, dict.fromkeys(part.labels), properties, len(self.nodes) + 1))
            self.created = True
        if part.variable:
            row[part.variable] = node
        assert isinstance(node, _Node)
        return node

    def _keep(self, element: Any) -> Any:
        if len(self.nodes) + len(self.edges) >= MAX_ELEMENTS:
            raise _TooLarge
        if isinstance(element, _Edge):
            self.edges.append(element)
            return element
        self.nodes.append(element)
        for name, index in self._index.items():
            for value in element.labels if name is None else (element.properties.get(name),):
                index.setdefault(_hashable(value), []).append(element)
        return element

    def _look_up(self, labels: list[str], properties: Mapping[str, Any]) -> list[_Node]:
        """The nodes with these labels and properties.  Raises Unfit where there is none of either."""
        if not labels and not properties:
            raise Unfit("a MATCH without labels and properties is of every node")
        wanted = [(None, _hashable(label)) for label in labels]
        wanted += [(name, _hashable(value)) for name, value in properties.items()]  # type: ignore[misc]
        buckets = []
        for name, value in wanted:
            if name not in self._index:
                index: dict[Any, list[_Node]] = {}
                for node in self.nodes:
                    index.setdefault(_hashable(node.properties.get(name or "")), []).append(node)
                self._index[name] = index
            buckets.append(self._index[name].get(value, []))
        fit = [(name, value) for name, value in wanted if name is not None]
        return [
            node for node in min(buckets, key=len)
            if all(label in node.labels for label in labels)
            and all(_hashable(node.properties.get(name or "")) == value for name, value in fit)
        ]  # fmt: skip

    def _writes(self) -> str:
        """The first word in the rest of the statement that changes data; an empty string where there is none."""
        return self.tokens.ahead(_WRITING, lambda word, rest: word != "remove" or IMPORT_LABEL not in rest[:60])

    def _patterns(self) -> list[_Pattern]:
        patterns = [self._pattern()]
        while self.tokens.accept(","):
            patterns.append(self._pattern())
        return patterns

    def _pattern(self) -> _Pattern:
        tokens = self.tokens
        nodes, relations = [self._part("(", ")")], []
        while tokens.token in ("-", "<"):
            left = tokens.accept("<")
            tokens.need("-")
            relation = self._part("[", "]") if tokens.token == "[" else None
            tokens.need("-")
            right = tokens.accept(">")
            if relation is None or len(relation.labels) != 1 or (left and right):
                raise Unfit("a relationship without a type, or of two directions")
            relation.arrow = "<" if left else ">" if right else "-"
            relations.append(relation)
            nodes.append(self._part("(", ")"))
        return nodes, relations

    def _part(self, opening: str, closing: str) -> _Part:
        tokens, line = self.tokens, self.tokens.line
        tokens.need(opening)
        variable = tokens.name("a variable") if tokens.kind == "name" else None
        labels = self._labels()
        properties = self._expression() if tokens.token != closing else {}
        tokens.need(closing)
        return _Part(line, variable, labels, properties)

    def _labels(self) -> list[str]:
        labels = []
        while self.tokens.accept(":") or self.tokens.accept("&"):
            labels.append(self.tokens.name("a label"))
        return labels

    def _expression(self, depth: int = 0) -> Any:
        """A literal, or a path of names that a row has.  Raises Unfit for anything else."""
        tokens, kind, token = self.tokens, self.tokens.kind, self.tokens.token
        if depth > MAX_DEPTH:
            raise Unfit(f"lists and maps of more than {MAX_DEPTH} levels")
        word = tokens.word
        tokens.next()
        result: Any
        if kind == "text":
            result = unescaped(token)
        elif kind == "number" or (token in ("-", "+") and tokens.kind == "number"):
            result = _number(token if kind == "number" else token + tokens.token)
            if kind != "number":
                tokens.next()
        elif token == "[":
            result = []
            while tokens.token != "]":
                result.append(self._expression(depth + 1))
                if not tokens.accept(","):
                    break
            tokens.need("]")
        elif token == "{":
            result = {}
            while tokens.token != "}":
                name = tokens.name("a property")
                tokens.need(":")
                result[name] = self._expression(depth + 1)
                if not tokens.accept(","):
                    break
            tokens.need("}")
        elif word in ("true", "false", "null"):
            result = {"true": True, "false": False}.get(word)
        elif kind == "name" and tokens.accept("("):
            result = None if tokens.token == ")" else self._expression(depth + 1)
            tokens.need(")")
            result = _called(token.lower(), result)
        elif kind == "name":
            names = [token]
            while tokens.accept("."):
                names.append(tokens.name("a property"))
            result = _Path(tuple(names))
        else:
            raise Unfit(f"{token[:40]!r} where a literal is expected" if kind else "the script ends within a clause")
        if tokens.token in ("+", "-", "*", "/", "%", "^", "[", "(") or tokens.word in (
            "in",
            "is",
            "starts",
            "contains",
        ):
            raise Unfit(f"{tokens.shown} makes an expression, which is not evaluated")
        return result

    def _value(self, expression: Any, row: Mapping[str, Any]) -> Any:
        """The value of an expression in a row.  Raises Unfit."""
        if isinstance(expression, _Path):
            if expression.names[0] not in row:
                raise Unfit(f"{'.'.join(expression.names)!r} is no literal, and no value of an UNWIND")
            value = row[expression.names[0]]
            for name in expression.names[1:]:
                value = value.properties if isinstance(value, _Node | _Edge) else value
                value = value.get(name) if isinstance(value, dict) else None
            return dict(value.properties) if isinstance(value, _Node | _Edge) else value
        if isinstance(expression, list):
            return [self._value(value, row) for value in expression]
        if isinstance(expression, dict):
            return {name: self._value(value, row) for name, value in expression.items()}
        return expression

    def _map(self, expression: Any, row: Mapping[str, Any]) -> dict[str, Any]:
        value = self._value(expression, row)
        if not isinstance(value, dict):
            raise Unfit(f"{str(value)[:40]!r} is no map of properties")
        return {name: thing for name, thing in value.items() if thing is not None}


def _extended(row: dict[str, Any], variable: str | None, values: list[Any], before: int) -> list[dict[str, Any]]:
    """A row for each value of a variable, the row itself where there is one.  Raises Unfit where all are too many."""
    if (before + len(values)) * (len(row) + 1) > MAX_BOUND and len(values) > 1:
        raise Unfit(f"the rows of the statement bind more than {MAX_BOUND:,} values")
    rows = [row, *(dict(row) for _ in values[1:])] if values else []
    for each, value in zip(rows, values if variable else (), strict=variable is not None):
        each[variable or ""] = value
    return rows


def _called(function: str, value: Any) -> Any:
    """A value that is written as a call: points and temporal values.  Raises Unfit."""
    if function == "point" and isinstance(value, dict):
        return value
    if function not in _TEMPORAL or not isinstance(value, str):
        raise Unfit(f"the function {function[:40]}() is not evaluated")
    result = _Temporal(value)
    result.datatype = _TEMPORAL[function]
    return result


def _number(text: str) -> int | float:
    try:
        return int(text, 0 if text.lstrip("+-")[:2].lower() in ("0x", "0o") else 10)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise Unfit(f"{text[:40]!r} is no number that is read") from None


def _plain(properties: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Properties without APOC's id, and the datatypes of those that have one."""
    kept = {name: value for name, value in properties.items() if name != IMPORT_ID}
    firsts = {name: value[0] if isinstance(value, list) and value else value for name, value in kept.items()}
    return kept, {name: first.datatype for name, first in firsts.items() if isinstance(first, _Temporal)}


def _hashable(value: Any) -> Any:
    if isinstance(value, list | dict):
        return repr(value)
    return str(value) if isinstance(value, str) else (type(value), value)


FORMAT = FormatSpec(
    Cypher, "Cypher scripts of CREATE, MERGE and MATCH with literals", endings=(".cypher", ".cyp"), specific=True
)
