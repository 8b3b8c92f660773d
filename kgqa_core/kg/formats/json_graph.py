"""A graph as one JSON document: node-link (networkx, D3, graphology, JSON Graph Format), Cytoscape, APOC's arrays.

    {"directed": false, "nodes": [{"id": "P1", "label": "Pump"}], "links": [{"source": "P1", "target": "V7"}]}
    {"elements": {"nodes": [{"data": {"id": "g1"}}], "edges": [{"data": {"source": "g1", "target": "g2"}}]}}

Edges stand under `links`, `edges`, `relationships` or `rels`; attributes flat, or under `data`, `attributes`,
`metadata` or `properties`; ends are ids, or positions in the list of nodes where no node has a number as its id and not
every end is an id.  A document is held in memory, up to MAX_DOCUMENT bytes; each of its elements is decoded by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError
from kgqa_core.kg.formats import neo4j_json
from kgqa_core.kg.formats.api import FormatSpec
from kgqa_core.kg.formats.base import StatementBatch
from kgqa_core.kg.formats.graphml import RELATION
from kgqa_core.kg.formats.property_graph import PropertyRows, Unfit, dates_of, is_word, key_of, pop_direction
from kgqa_core.kg.formats.source import Source

MAX_DOCUMENT = 512 << 20
"""Bytes of a document."""
OUTLINE = 64 << 10
"""Characters of a document by which its form is known."""

EDGES = ("links", "edges", "relationships", "rels")
ENDS = (("source", "target"), ("from", "to"), ("start", "end"), ("subject", "object"))
TYPES = ("labels", "type", "types")
RELATIONS = ("interaction", "relationship", "predicate", "rel", "name", "title")
"""Attributes that may name the relation of an edge, after those of `kg.property_graph.relations`."""

_NESTED = ("data", "attributes", "metadata", "properties")
_DRAWN = frozenset({"vx", "vy", "vz", "fx", "fy", "fz", "index", "x", "y", "z"})  # what D3 writes into nodes with `vx`
_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*+)"|[{}\[\]:,]', re.DOTALL)

Pairs = list[tuple[int, Any]]  # lines and elements


class JsonGraph:
    """Reader of graphs that are one JSON document."""

    name = "json-graph"

    def sniff(self, lines: list[str], options: KgOptions) -> float:
        """1 where a document has the members of a form that is known, else 0."""
        text = "\n".join(lines)[:OUTLINE].lstrip()
        if not text.startswith(("{", "[")):
            return 0.0
        names = outline(text)
        if not names[0]:
            apoc = {"type", "id"} <= names[1] and bool(re.match(r'\[\s*\{[^}]*"type"\s*:\s*"(node|relati)', text))
            return float(text.startswith("[") and (apoc or {"data"} == names[1] & {"data", "@context", "type"}))
        links = "links" in names[0] and not re.search(r'"links"\s*:\s*\{', text)  # a list, not the addresses of pages
        known = links or bool({"nodes", "elements"} & names[0]) or {"nodes", "edges"} <= names[1]
        return float(known and not {"@context", "@graph"} & names[0])

    def read(self, source: Source, options: KgOptions) -> Iterator[StatementBatch]:
        """The statements of a document.  Raises KgInputError for one that is no JSON, too large, or of another form."""
        way_out = "write the graph as GraphML (`networkx.write_graphml`) or as JSON lines (`apoc.export.json.all`)"
        data = source.whole(MAX_DOCUMENT, "JSON document", way_out)
        rows = PropertyRows(options.property_graph, source.found)
        try:
            reading = _DocumentReading(data, rows)
        except RecursionError:
            raise KgInputError(f"{source.path}, read as a graph in JSON, is nested too deeply; flatten it") from None
        except msgspec.DecodeError as fault:
            raise KgInputError(
                f"{source.path}, read as a graph in JSON: {fault}; it may be cut off: write or fetch it again"
            ) from None
        except Unfit as fault:
            raise KgInputError(f"{source.path} {fault}") from None
        del data
        for line, raw, add in reading.elements():
            raw = raw[-1] if isinstance(raw, tuple) else raw
            rows.take(line, lambda raw=raw: str(bytes(raw)[:2000], "utf-8", "replace"), add)  # type: ignore[misc]
            if rows.full:
                yield rows.batch(0.5)
        yield rows.finish()


class _DocumentReading:
    """One document: what its lists are, and its elements as statements."""

    def __init__(self, data: bytes, rows: PropertyRows) -> None:
        """Raises DecodeError, RecursionError, and Unfit for a document of a form that is not known."""
        self.data, self.rows, self.directed = data, rows, True
        self.ids: dict[str, int] = {}
        self.keys: list[str | None] = []
        self.unnamed = 0
        self.nodes: Pairs = []
        self.edges: Pairs = []
        self.cytoscape = False
        if data.lstrip()[:1] == b"[":
            self._mixed(self._pairs(data))
            return
        document = _members(data)
        if "elements" in document:
            self.cytoscape = True
            document = {"nodes": document["elements"]} if bytes(document["elements"])[:1] == b"[" else {
                **document, **_members(document["elements"])}  # fmt: skip
            if "edges" not in document and "nodes" in document:
                self._mixed(self._pairs(document["nodes"]))
                return
        elif "nodes" not in document and "graph" in document and bytes(document["graph"])[:1] == b"{":
            document = _members(document["graph"])
        lists = [name for name in EDGES if name in document]
        if not lists:
            raise Unfit(
                f"is JSON with nodes and no list of edges ({', '.join(map(repr, EDGES))}), its members are "
                f"{', '.join(map(repr, list(document)[:10]))}; rename the list of the edges to 'links'"
            )
        self.directed = self._is_directed(document)
        self.nodes = self._pairs(document.get("nodes", b"[]"))
        self.edges = [pair for name in lists for pair in self._pairs(document[name])]
        self.known = "nodes" in document
        if not self.edges:
            rows.found["edges"] = f"the list ({', '.join(map(repr, lists))}) is empty: there are nodes only"
        if not self.known:
            rows.found["nodes"] = "there is no list of them: the ends of edges are the nodes"

    def elements(self) -> Iterator[tuple[int, Any, Any]]:
        """The line, the JSON and the adder of each element, nodes first."""
        for line, raw in self.nodes:
            self.keys.append(None)
            yield line, raw, lambda line=line, raw=raw: self._node(line, _object(raw))
        numbers = any(key is not None and key.lstrip("-").isdigit() for key in self.keys)
        positions = bool(self.keys) and not numbers and self._ends_are_positions()
        if positions:
            self.rows.found["ends of edges"] = "positions in the list of nodes, from 0"
        for line, raw in self.edges:
            yield line, raw, lambda raw=raw: self._edge(_object(raw), positions)
        if self.unnamed:
            self.rows.found["edges that name no relation"] = f"{self.unnamed:,}; theirs is {RELATION!r}"

    def _pairs(self, raw: Any) -> Pairs:
        """The elements of a list, or of an object whose members have their keys as ids, each with its line."""
        at, line, pairs = max(self.data.find(bytes(raw)), 0), 1, []
        line += self.data.count(b"\n", 0, at)
        elements = msgspec.json.decode(raw, type=dict[str, msgspec.Raw] | list[msgspec.Raw])
        listed = elements.items() if isinstance(elements, dict) else ((None, element) for element in elements)
        for key, element in listed:
            text = bytes(element)
            begin = max(self.data.find(text, at), at)
            line += self.data.count(b"\n", at, begin)
            pairs.append((line, element if key is None else (key, element)))
            line += text.count(b"\n")
            at = begin + len(text)
        return pairs

    def _mixed(self, pairs: Pairs) -> None:
        """Nodes and edges of one list."""
        self.known = True
        for line, raw in pairs:
            try:
                value = _object(raw)
            except Unfit:
                value = {}
            edge = value.get("group") == "edges" or value.get("type") == "relationship"
            (self.edges if edge or _ends(_attributes(value)) is not None else self.nodes).append((line, raw))
        if not self.edges:
            self.rows.found["edges"] = "the list has none: there are nodes only"

    def _is_directed(self, document: Mapping[str, Any]) -> bool:
        options = _members(document["options"]) if bytes(document.get("options", b""))[:1] == b"{" else {}
        undirected = bytes(document.get("directed", b"")) == b"false"
        return not undirected and bytes(options.get("type", b"")) != b'"undirected"'

    def _node(self, line: int, value: Any) -> None:
        if not isinstance(value, dict):
            value = {"id": value}
        if value.get("type") == "node" and ("labels" in value or isinstance(value.get("properties"), dict)):
            self._know(value.get("id"), line)
            neo4j_json.add(self.rows, value)
            return
        properties = _attributes(value)
        name = "id" if "id" in properties else "key"
        self._know(properties.pop(name, len(self.keys) - 1), line)
        if "vx" in properties:
            properties = {name: thing for name, thing in properties.items() if name not in _DRAWN}
        types = []
        for name in dict.fromkeys((*self.rows.options.types, *TYPES)):
            kinds = properties.get(name)
            kinds = kinds if isinstance(kinds, list) else [kinds]
            if kinds and all(map(is_word, kinds)):
                types += kinds
                del properties[name]
        parent = properties.pop("parent", None) if self.cytoscape else None
        self.rows.node(self.keys[-1], list(dict.fromkeys(types)), properties, dates_of(properties))
        if parent is not None:
            self.rows.edge(self.keys[-1], "parent", parent, {})

    def _know(self, identity: Any, line: int) -> None:
        """Keeps the key of a node.  Raises Unfit for one that another node has."""
        key = key_of(identity)
        if key in self.ids:
            raise Unfit(f"the node of line {self.ids[key]} has the id {key[:60]!r} too")
        self.ids[key], self.keys[-1] = line, key

    def _ends_are_positions(self) -> bool:
        """Whether every end is a number within the list of nodes, and not every end an id."""
        strange = False
        for _, raw in self.edges:
            try:
                ends = _ends(_attributes(_object(raw))) or ()
            except Unfit:
                continue
            for end in ends:
                if isinstance(end, bool) or not isinstance(end, int) or not 0 <= end < len(self.keys):
                    return False
                strange = strange or str(end) not in self.ids
        return strange

    def _edge(self, value: Any, positions: bool) -> None:
        if isinstance(value, dict) and value.get("type") == "relationship" and isinstance(value.get("start"), dict):
            for end in ("start", "end"):
                self._end(neo4j_json.mapping(value, end).get("id"), False)
            neo4j_json.add(self.rows, value)
            return
        properties = _attributes(value if isinstance(value, dict) else {})
        ends = _ends(properties)
        if ends is None:
            raise Unfit("an edge without " + ", or ".join(f"{a!r} and {b!r}" for a, b in ENDS))
        names = next(pair for pair in ENDS if pair[0] in properties and pair[1] in properties)
        properties = {name: thing for name, thing in properties.items() if name not in names and name != "id"}
        given = pop_direction(properties)
        candidates = (*self.rows.options.relations, *RELATIONS)
        candidates = ("interaction", *candidates, "key") if self.cytoscape else (*candidates, "key")
        named = next((name for name in candidates if is_word(properties.get(name))), None)
        relation = RELATION if named is None else properties.pop(named)
        if not isinstance(properties.get("key"), str):
            properties.pop("key", None)  # networkx numbers parallel edges
        undirected, directed = properties.pop("undirected", None), properties.pop("directed", None)
        directed = directed if given is None else given
        one_way = directed if isinstance(directed, bool) else self.directed and undirected is not True
        source, target = (self._end(end, positions) for end in ends)
        self.rows.edge(source, relation, target, properties, dates_of(properties), directed=one_way)
        self.unnamed += named is None

    def _end(self, end: Any, positions: bool) -> str:
        if positions and isinstance(end, int):
            key = self.keys[end]
            if key is None:
                raise Unfit(f"the node at position {end} was rejected")
            return key
        key = key_of(end)
        if self.known and key not in self.ids:
            raise Unfit(f"no node has the id {key[:60]!r}, or that node was rejected")
        return key


def outline(text: str) -> tuple[set[str], set[str]]:
    """The names of members at the top of a document, and those one object deeper; the text may be cut off."""
    names: tuple[set[str], set[str]] = (set(), set())
    depth, last, array = 0, None, text.startswith("[")
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token in ("{", "["):
            depth += 1
        elif token in ("}", "]"):
            depth -= 1
        elif token == ":" and last is not None and depth in (1, 2):
            names[depth - 1 if not array else 1].add(last)
        last = match.group(1) if token.startswith('"') else None
    return names


def _members(raw: Any) -> dict[str, Any]:
    return msgspec.json.decode(raw, type=dict[str, msgspec.Raw])


def _object(raw: Any) -> Any:
    """An element, decoded; a member of an object is given its key as `id`.  Raises Unfit."""
    key, raw = raw if isinstance(raw, tuple) else (None, raw)
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError) as fault:
        raise Unfit(f"no JSON: {fault}") from None
    return {"id": key, **value} if key is not None and isinstance(value, dict) else value


def _attributes(value: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of an element; where they stand under `data`, what is beside them is how it is drawn."""
    if isinstance(value.get("data"), dict):
        return dict(value["data"])
    result = dict(value)
    for name in _NESTED:
        if isinstance(result.get(name), dict):
            result |= result.pop(name)
    return result


def _ends(properties: Mapping[str, Any]) -> Sequence[Any] | None:
    for names in ENDS:
        if names[0] in properties and names[1] in properties:
            ends = [properties[name] for name in names]
            return [end.get("id") if isinstance(end, dict) else end for end in ends]  # D3 puts the nodes there
    return None


FORMAT = FormatSpec(
    JsonGraph, "a graph as one JSON document: node-link (networkx, D3), Cytoscape, APOC's arrays", specific=True
)
