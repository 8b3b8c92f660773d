"""Cypher scripts that make a graph of literals, as `apoc.export.cypher`, Memgraph's dump and people write them.

    CREATE (mia:Person {name: 'Mia', born: 1980})-[:OWNS {since: 2011}]->(:Place {name: "Café Zwölf"});
    MATCH (a:Person {name: 'Mia'}) MERGE (b:Person {name: 'Tom'}) MERGE (a)-[:MARRIED_TO]->(b);

A script is read, never executed: a clause with anything but literals and rows of an UNWIND is a reject, and so is what
depends on it.  Constraints, indexes, `:begin` and clauses that only read are ignored.  The ids that an export gives to
nodes are their keys; other nodes are numbered, `town/1` of town.cypher.  The graph is held in memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError
from kgqa_core.kg.formats.api import FormatSpec
from kgqa_core.kg.formats.base import StatementBatch
from kgqa_core.kg.formats.property_graph import PropertyRows, Unfit
from kgqa_core.kg.formats.source import Source

MAX_SCRIPT = 128 << 20
"""Bytes of a script."""
MAX_TOKENS = 1_000_000
"""Tokens of one statement."""
MAX_ELEMENTS = 5_000_000
"""Nodes, relationships and rejects of a script."""
MAX_DEPTH = 20
"""Lists and maps within each other."""

EXPORT_LABELS = ("UNIQUE IMPORT LABEL", "__mg_vertex__")
EXPORT_IDS = ("UNIQUE IMPORT ID", "__mg_id__")
"""What the exports of APOC and Memgraph give to nodes, and remove at their end."""

_SCHEMA = frozenset("constraint index fulltext text range point lookup vector or database".split())
_MAKING = frozenset("create merge set on".split())
_WRITING = _MAKING | frozenset("delete detach load foreach call".split())
_TEMPORAL = {"date": "date", "datetime": "dateTime", "localdatetime": "dateTime", "time": "time", "localtime": "time",
             "duration": "duration"}  # fmt: skip
_TOKEN = re.compile(
    r"""(?P<space>\s++|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/|^:(?:begin|commit|rollback|param|use|auto|source)\b[^\n]*+"""
    r"""|^(?:begin|commit|rollback|schema\ await)[ \t]*;?[ \t]*$)"""
    r"""|(?P<text>'[^'\\]*+(?:\\.[^'\\]*+)*+'|"[^"\\]*+(?:\\.[^"\\]*+)*+")|(?P<name>[^\W\d]\w*+)"""
    r"""|(?P<quoted>`(?:[^`]|``)*+`)|(?P<number>\d++(?:\.\d++)?+(?:e[+-]?\d++)?+)|(?P<sign>\+=|/\*|.)""",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b", "f": "\f", "r": "\r"}
_START = re.compile(
    r"(?:\s++|//[^\n]*\n|/\*.*?\*/|:\w+[^\n]*\n|(?:begin|commit)\s*;?\s*\n)*+"
    r"(?:(?:create|merge|(?:optional\s+)?match)\s*\(\s*[\w`]*\s*[:{)]|unwind\s*\[|call\s+(?:db|apoc)\.|load\s+csv\b|"
    r"create\s+(?:\w+\s+){0,3}(?:constraint|index)\b[^;]*\b(?:for|on)\s*[(:])",
    re.IGNORECASE | re.DOTALL,
)


class Cypher:
    """Reader of Cypher scripts."""

    name = "cypher"

    def sniff(self, lines: list[str], options: KgOptions) -> float:
        """1 where the first clause is one of Cypher's, else 0."""
        return float(_START.match("\n".join(lines) + "\n") is not None)

    def read(self, source: Source, options: KgOptions) -> Iterator[StatementBatch]:
        """The statements of a script.  Raises KgInputError for one that is too large, or cut off within a string."""
        rows = PropertyRows(options.property_graph, source.found)
        way_out = "export the graph as JSON lines, with `apoc.export.json.all`"
        try:
            script = _Script(source.whole(MAX_SCRIPT, "Cypher script", way_out).decode(), rows)
            script.read()
        except UnicodeDecodeError as fault:
            raise KgInputError(f"{source.path} is a Cypher script, but no UTF-8: {fault}; write it again") from None
        except _UnreadableScript as fault:
            raise KgInputError(f"{source.path} is a Cypher script that {fault}; {way_out}") from None
        stem = source.path.name.split(".")[0]
        for element in script.nodes + script.edges:
            rows.take(element.line, lambda e=element: str(e.properties), lambda e=element: _add(rows, e, stem))  # type: ignore[misc]
            if rows.full:
                yield rows.batch(0.9)
        yield rows.finish()


class _UnreadableScript(Exception):
    """A script that is not read; the text follows what it is."""


class _Temporal(str):
    """A value with the last part of its datatype's IRI."""

    datatype: str


@dataclass(slots=True, eq=False)
class _CypherElement:
    """A node, or a relationship, which has ends; or a pattern of one, whose ends are not known yet."""

    line: int
    variable: str
    labels: list[str]
    properties: dict[str, Any]
    number: int = 0
    ends: tuple[_CypherElement, _CypherElement] | None = None

    @property
    def bare(self) -> bool:
        """Whether a pattern says nothing but its variable."""
        return not self.labels and not self.properties


_Pattern = tuple[list[_CypherElement], list[tuple[_CypherElement, bool]]]
"""Nodes, and the relationships between each and the next with whether they lead back."""


class _Script:
    """A script, read clause by clause.  `scope` binds variables to nodes, relationships and the row of an UNWIND."""

    def __init__(self, text: str, rows: PropertyRows) -> None:
        self.text, self.rows = text, rows
        self.nodes: list[_CypherElement] = []
        self.edges: list[_CypherElement] = []
        self.tokens: list[tuple[str, str, str, int]] = []  # of the statement: kinds, texts, words and offsets
        self.at = self.rejects = 0
        self.scope: dict[str, Any] = {}
        self.created = self.made = False  # whether the last MERGE, and whether the script, made a node
        self._mark = (0, 1)  # an offset and its line
        self._index: dict[
            str, dict[str, list[_CypherElement]]
        ] = {}  # by property and value; may hold what was changed since

    def read(self) -> None:
        """Reads all statements.  Raises _UnreadableScript."""
        tokens: list[tuple[str, str, str, int]] = []
        for match in _TOKEN.finditer(self.text + "\n;"):
            kind, token = match.lastgroup or "", match.group()
            if kind == "sign" and token in ("'", '"', "`", "/*"):
                raise _UnreadableScript(f"has {token} in line {self._line(match.start())} and no end of it")
            if kind == "sign" and token == ";":
                self.tokens, tokens = [*tokens, ("", "the end of the statement", "", match.start())], []
                self._statement()
            elif kind == "quoted":
                tokens.append(("name", token[1:-1].replace("``", "`"), "", match.start()))
            elif kind != "space":
                tokens.append((kind, token, token.lower() if kind == "name" else "", match.start()))
            if len(tokens) > MAX_TOKENS:
                raise _UnreadableScript(f"has more than {MAX_TOKENS:,} tokens without a semicolon")

    def _statement(self) -> None:
        words = {word for _, _, word, _ in self.tokens}
        removes = "remove" in words and any(token in EXPORT_LABELS for _, token, _, _ in self.tokens)
        if (removes or (not self.nodes and "delete" in words)) and not _MAKING & words:
            self.rows.ignore()
        else:
            self._run(0, {})

    def _run(self, at: int, scope: dict[str, Any]) -> None:
        """Reads the rest of a statement, for one row; what is at fault becomes a reject."""
        self.at, self.scope, lost = at, scope, ""
        while self.at < len(self.tokens) - 1:
            begin, (_, token, word, offset) = self.at, self.tokens[self.at]
            try:
                if lost and word in _MAKING:
                    raise Unfit(lost)
                self._clause(word)
            except Unfit as fault:
                self.rows.reject(self._line(offset), str(fault), self.text[offset : offset + 300].partition(";")[0])
                self.rejects += 1
                self._check_size()
                if word not in _MAKING:
                    lost = lost or f"it depends on {token[:20]!r} before it, which was not read"
                self._skip(begin + 1)

    def _clause(self, word: str) -> None:
        following = self.tokens[self.at + 1][2]
        if (word in ("create", "drop") and following in _SCHEMA) or (word == "call" and following == "db"):
            self.rows.ignore()
            self._skip(self.at + 1)
        elif word in ("match", "optional", "with", "return") and self._only_reads():
            self.rows.ignore()
            self.at = len(self.tokens)
        elif word in ("create", "merge"):
            self.at += 1
            self._make(self._patterns(), word == "merge")
        elif word == "match":
            self.at += 1
            self._match()
        elif word == "unwind" and self.at == 0:
            self.at = 1
            values = self._value()
            if not isinstance(values, list) or self.tokens[self.at][2] != "as":
                raise Unfit("UNWIND of anything but a list of literals")
            self.at += 1
            name, at = self._name(), self.at
            for value in values:
                self._run(at, {name: value})
            self.at = len(self.tokens)
        elif word == "set":
            self.at += 1
            self._set(True)
        elif word == "on" and following in ("create", "match") and self.tokens[self.at + 2][2] == "set":
            self.at += 3
            self._set(self.created == (following == "create"))
        else:
            raise Unfit(
                f"{self.tokens[self.at][1].upper()[:40]} is not read, only CREATE, MERGE, MATCH and SET of literals"
            )

    def _only_reads(self) -> bool:
        return not any(self.tokens[at][2] in _WRITING for at in range(self.at, len(self.tokens)))

    def _match(self) -> None:
        parts = []
        for nodes, relations in self._patterns():
            if relations:
                raise Unfit("a MATCH of relationships is not looked up")
            parts += nodes
        while self.tokens[self.at][2] in ("where", "and", "or", "xor"):
            if self.tokens[self.at][2] in ("or", "xor"):
                raise Unfit("a WHERE of anything but `variable.property = literal`, joined by AND")
            self.at += 1
            variable = self._name(".")
            name = self._name("=")
            for part in parts:
                if part.variable == variable:
                    part.properties[name] = self._value()
                    break
            else:
                raise Unfit(f"a WHERE of {variable[:40]!r}, which this MATCH has not")
        for part in parts:
            if not part.bare or not isinstance(self.scope.get(part.variable), _CypherElement):
                nodes = self._look_up(part)
                if not nodes and not self.made and not part.properties.keys().isdisjoint(EXPORT_IDS):
                    nodes = [self._keep(part)]  # it is in another file of the export
                if len(nodes) != 1:
                    shown = f"({':'.join(['', *part.labels])} {part.properties})"[:200]
                    raise Unfit(f"{'more than one' if nodes else 'no'} node before it in this script is {shown}")
                self.scope[part.variable] = nodes[0]

    def _look_up(self, part: _CypherElement) -> list[_CypherElement]:
        """Up to two nodes with the labels and properties of a part.  Raises Unfit where it has no properties."""
        if not part.properties:
            raise Unfit(f"{':'.join(['a node', *part.labels])[:80]} without properties is not looked up")
        buckets, nodes = [], []
        for name, value in part.properties.items():
            if name not in self._index:
                self._index[name] = {}
                for node in self.nodes:
                    self._register(node, name)
            buckets.append(self._index[name].get(repr(value), []))
        for node in min(buckets, key=len):
            fits = set(part.labels) <= set(node.labels) and part.properties.items() <= node.properties.items()
            if fits and node not in nodes:
                nodes.append(node)
                if len(nodes) == 2:
                    break
        return nodes

    def _register(self, node: _CypherElement, name: str) -> None:
        if name in node.properties:
            self._index[name].setdefault(repr(node.properties[name]), []).append(node)

    def _make(self, patterns: list[_Pattern], merge: bool) -> None:
        """Creates what patterns describe; nodes of a MERGE are looked up first.  Raises Unfit before any."""
        known: set[str] = set()
        for part in (node for nodes, _ in patterns for node in nodes):
            if (
                part.bare
                and part.variable not in known
                and not isinstance(self.scope.get(part.variable), _CypherElement)
            ):
                raise Unfit(f"the variable {part.variable[:40]!r} has no node, or that one was rejected")
            if merge and not part.bare:
                self._look_up(part)
            known.add(part.variable)
        self.created = False
        for nodes, relations in patterns:
            ends = []
            for part in nodes:
                if part.bare:
                    ends.append(self.scope[part.variable])
                    continue
                node = next(iter(self._look_up(part) if merge else ()), None)
                if node is None:
                    node = self._keep(part)
                    self.made = True
                self.scope[part.variable] = node
                ends.append(node)
            for at, (relation, back) in enumerate(relations):
                relation.ends = (ends[at + 1], ends[at]) if back else (ends[at], ends[at + 1])
                self.scope[relation.variable] = self._keep(relation)

    def _keep(self, element: _CypherElement) -> _CypherElement:
        self.created = True
        self._check_size()
        if element.ends is not None:
            self.edges.append(element)
            return element
        self.nodes.append(element)
        element.number = len(self.nodes)
        for name in self._index:
            self._register(element, name)
        return element

    def _check_size(self) -> None:
        if len(self.nodes) + len(self.edges) + self.rejects >= MAX_ELEMENTS:
            raise _UnreadableScript(f"makes more than {MAX_ELEMENTS:,} nodes and relationships")

    def _set(self, applies: bool) -> None:
        while True:
            element = self.scope.get(self._name())
            if not isinstance(element, _CypherElement):
                raise Unfit(f"{self.tokens[self.at - 1][1][:40]!r} is no node or relationship that was read")
            labels, properties = self._labels(), {}
            if not labels:
                name = self._name() if self._accept(".") else None
                self._need("+=" if name is None else "=")
                properties = self._map(self._value()) if name is None else {name: self._value()}
            if applies:
                element.labels = list(dict.fromkeys([*element.labels, *labels]))
                element.properties = {**element.properties, **properties}
                for name in self._index.keys() & properties.keys() if element.ends is None else ():
                    self._register(element, name)
            if not self._accept(","):
                return

    def _patterns(self) -> list[_Pattern]:
        patterns: list[_Pattern] = []
        while not patterns or self._accept(","):
            nodes, relations = [self._part("(", ")")], []
            while self.tokens[self.at][1] in ("-", "<"):
                back = self._accept("<")
                self._need("-")
                relation = self._part("[", "]")
                self._need("-")
                if self._accept(">") == back or len(relation.labels) != 1:
                    raise Unfit("a relationship without one type and one direction")
                relations.append((relation, back))
                nodes.append(self._part("(", ")"))
            patterns.append((nodes, relations))
        return patterns

    def _part(self, opening: str, closing: str) -> _CypherElement:
        line = self._line(self.tokens[self.at][3])
        self._need(opening)
        variable = self._name() if self.tokens[self.at][0] == "name" else ""
        labels, value = self._labels(), {} if self.tokens[self.at][1] == closing else self._value()
        self._need(closing)
        return _CypherElement(line, variable, labels, self._map(value))

    def _labels(self) -> list[str]:
        labels = []
        while self._accept(":"):
            labels.append(self._name())
        return labels

    def _value(self, depth: int = 0) -> Any:
        """A literal, or what an UNWIND's row has.  Raises Unfit for anything else."""
        if depth > MAX_DEPTH:
            raise Unfit(f"lists and maps of more than {MAX_DEPTH} levels")
        kind, token, word, _ = self.tokens[self.at]
        self.at += 1
        value: Any
        if kind == "text":
            value = _unescaped(token[1:-1])
        elif kind == "number" or (token == "-" and self.tokens[self.at][0] == "number"):
            if kind != "number":
                token, self.at = token + self.tokens[self.at][1], self.at + 1
            value = _number(token)
        elif token == "[" and kind == "sign":
            value = []
            while not self._accept("]"):
                value += [self._value(depth + 1)]
                self._need_comma("]")
        elif token == "{" and kind == "sign":
            value = {}
            while not self._accept("}"):
                name = self._name(":")
                value[name] = self._value(depth + 1)
                self._need_comma("}")
        elif word in ("true", "false", "null"):
            value = {"true": True, "false": False}.get(word)
        elif word and self._accept("("):
            value = None if self.tokens[self.at][1] == ")" else self._value(depth + 1)
            self._need(")")
            value = _called(word, value)
        elif kind == "name" and not isinstance(self.scope.get(token, self), _CypherElement | _Script):
            value = self.scope[token]
            while self._accept("."):
                name = self._name()
                value = value.get(name) if isinstance(value, dict) else None
        else:
            raise Unfit(f"{token[:40]!r} where a literal is expected")
        if self.tokens[self.at][1] in ("+", "-", "*", "/", "%", "^", "[", "("):
            raise Unfit(f"{self.tokens[self.at][1]!r} makes an expression, which is not evaluated")
        return value

    def _map(self, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise Unfit(f"{str(value)[:40]!r} is no map of properties")
        return dict(value)

    def _accept(self, sign: str) -> bool:
        matches = self.tokens[self.at][:2] == ("sign", sign)
        self.at += matches
        return matches

    def _need(self, sign: str) -> None:
        if not self._accept(sign):
            raise Unfit(f"{self.tokens[self.at][1][:40]!r} where {sign!r} is expected")

    def _need_comma(self, closing: str) -> None:
        if self.tokens[self.at][1] != closing:
            self._need(",")

    def _name(self, sign: str | None = None) -> str:
        """A name, and the sign behind it.  Raises Unfit."""
        kind, token, _, _ = self.tokens[self.at]
        if kind != "name":
            raise Unfit(f"{token[:40]!r} where a name is expected")
        self.at += 1
        if sign is not None:
            self._need(sign)
        return token

    def _skip(self, at: int) -> None:
        """Goes to the next clause that makes or finds something."""
        while at < len(self.tokens) - 1:
            clause = self.tokens[at][2] in ("create", "merge", "match", "unwind") and self.tokens[at + 1][1] != ":"
            if clause and self.tokens[at - 1][1].lower() not in (".", ":", "on"):
                break
            at += 1
        self.at = at

    def _line(self, offset: int) -> int:
        at, line = self._mark
        self._mark = offset, line + self.text.count("\n", at, offset) - self.text.count("\n", offset, at)
        return self._mark[1]


def _unescaped(text: str) -> str:
    """The text of a string.  Raises Unfit for one that is no Unicode."""
    if "\\" in text:
        text = _ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else _ESCAPES.get(match[2], match[2]), text)
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise Unfit("a string that is no Unicode") from None


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
        return float(text) if re.search(r"[.eE]", text) and "x" not in text.lower() else int(text, 0)
    except ValueError:
        raise Unfit(f"{text[:40]!r} is no number that is read") from None


def _key(node: _CypherElement, stem: str) -> Any:
    return next((node.properties[name] for name in EXPORT_IDS if name in node.properties), f"{stem}/{node.number}")


def _add(rows: PropertyRows, element: _CypherElement, stem: str) -> None:
    """The statements of a node or a relationship.  stem: before the numbers of nodes.  Raises Unfit."""
    properties = {name: value for name, value in element.properties.items() if name not in EXPORT_IDS}
    firsts = {name: value[0] if isinstance(value, list) and value else value for name, value in properties.items()}
    datatypes = {name: first.datatype for name, first in firsts.items() if isinstance(first, _Temporal)}
    if element.ends is None:
        labels = [label for label in element.labels if label not in EXPORT_LABELS]
        rows.node(_key(element, stem), labels, properties, datatypes)
    else:
        source, target = (_key(end, stem) for end in element.ends)
        rows.edge(source, element.labels[0], target, properties, datatypes)


FORMAT = FormatSpec(
    Cypher, "Cypher scripts of CREATE, MERGE and MATCH with literals", endings=(".cypher", ".cyp"), specific=True
)
