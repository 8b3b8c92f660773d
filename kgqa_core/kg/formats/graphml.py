"""GraphML 1.0, as networkx, igraph, Gephi, yEd and Neo4j's `apoc.export.graphml.all` write it, and Cytoscape's XGMML.

An edge is one triple from source to target; one that is undirected, or of an undirected graph, is one in either
direction.  The attributes `labels` of nodes and `label` of edges are Neo4j's.  Values have the types of their keys,
keys may have defaults.  Of yEd's drawings the texts of labels are read: the first is the name of a node or the relation
of an edge, others are its `text`.  Hyperedges are rejects; ports are left out; nodes of nested graphs are nodes too.

Expat reads it as a stream, so that rejects know their line.  A declaration of an entity is refused before it could be
expanded, and nothing outside the file is ever read.  XML that is not well-formed stops the reading, with its line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError
from kgqa_core.kg.formats.api import FormatSpec
from kgqa_core.kg.formats.base import StatementBatch
from kgqa_core.kg.formats.property_graph import DATATYPES, ISO_DATE, PropertyRows, Unfit, pop_direction
from kgqa_core.kg.formats.source import MAX_LINE, Source

FEED = 1 << 20
"""Bytes that are parsed at once."""
RELATION = "edge"
"""The relation of an edge that names none."""
INTERACTION = "interaction"
"""The attribute of edges by which Cytoscape names the relation."""
XGMML = "http://www.cs.rpi.edu/XGMML"
CYTOSCAPE = "http://www.cytoscape.org"

_LABELS = ("NodeLabel", "EdgeLabel", "Label.Text")
"""Elements of yEd that hold the text of a label."""
_FLAGS = {"false": False, "0": False, "true": True, "1": True}
_XGMML_TYPES = {"real": "double", "integer": "integer", "boolean": "string"}


@dataclass(frozen=True, slots=True)
class _Declared:
    """A declared property.  domain: of what, `node`, `edge` or `all`; default: its value where none is given."""

    name: str
    datatype: str
    domain: str
    default: str | None = None


@dataclass(slots=True)
class _Element:
    """A node or an edge that is open: where it begins, its attributes, and its data by key."""

    kind: str
    line: int
    attributes: dict[str, str]
    data: dict[str, str] = field(default_factory=dict)
    labels: list[str] = field(default_factory=list)
    attached: dict[str, list[tuple[str, str]]] = field(default_factory=dict)  # of XGMML: values and datatypes by name
    fault: str | None = None


class GraphMl:
    """Reader of GraphML."""

    name = "graphml"

    def sniff(self, lines: list[str], options: KgOptions) -> float:
        """1 where the first lines are XML with an element `graphml`, or one of XGMML, else 0."""
        text = "\n".join(lines).lstrip()
        return float(text.startswith("<") and ("<graphml" in text or ("<graph" in text and "xgmml" in text.lower())))

    def read(self, source: Source, options: KgOptions) -> Iterator[StatementBatch]:
        """The statements of a file.  Raises KgInputError for one that is not well-formed, or declares entities."""
        rows = PropertyRows(options.property_graph, source.found)
        reading = _GraphMlReading(rows, options)
        with source.stream() as stream:
            try:
                while data := stream.read(FEED):
                    reading.parser.Parse(data, False)
                    if rows.full:
                        yield rows.batch(stream.fraction)
                reading.parser.Parse(b"", True)
            except expat.ExpatError as fault:
                raise KgInputError(
                    f"{source.path} is no well-formed XML ({expat.ErrorString(fault.code)}) at line {fault.lineno}; it "
                    "may be cut off: write or fetch it again"
                ) from None
            except _Refused as fault:
                raise KgInputError(f"{source.path} {fault}") from None
        yield rows.finish()


class _Refused(Exception):
    """A document that is not read; the text follows a file's name."""


class _GraphMlReading:
    """One pass over a document."""

    def __init__(self, rows: PropertyRows, options: KgOptions) -> None:
        self.rows, self.options = rows, options.property_graph
        self.keys: dict[str, _Declared] = {}
        self.open: list[_Element] = []
        self.parser: Any = expat.ParserCreate(namespace_separator=" ")
        self.parser.buffer_text = True
        self.parser.EntityDeclHandler = self._entity
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self._depth = 0
        self._text: list[str] | None = None
        self._size = 0
        self._data_key: str | None = None
        self._declaring: dict[str, str] | None = None
        self._inner = 0  # elements within the data that are open
        self._labels = 0  # labels of yEd that are open
        self._lists: list[str] = []  # names of XGMML's attributes that are open
        self._xgmml = False
        self._directed = [True]  # of the graphs that are open

    def _entity(self, name: str, *_: Any) -> None:
        raise _Refused(f"declares the entity {name!r}, which GraphML does not need; remove the declaration")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(" ")[2]
        self._depth += 1
        if self._depth == 1 and name == "graph" and (tag.startswith(f"{XGMML} ") or "directed" in attributes):
            self._xgmml = True
        elif self._depth == 1 and name != "graphml":
            raise _Refused(f"is XML, but no GraphML: its element is {name[:60]!r}; convert it")
        if self._data_key is not None:
            self._drawn(tag, name, attributes)
        elif name == "graph":
            self._directed.append(attributes.get("edgedefault") != "undirected" and attributes.get("directed") != "0")
        elif name == "att" and self._xgmml:
            self._attribute(attributes)
        elif name in ("node", "edge"):
            self.open.append(_Element(name, self.parser.CurrentLineNumber, attributes))
        elif name == "hyperedge":
            self.rows.reject(self.parser.CurrentLineNumber, "a hyperedge is no triple", "<hyperedge …>")
            self.open.append(_Element(name, self.parser.CurrentLineNumber, attributes))
        elif name == "key":
            self._declaring = dict(attributes)
        elif name == "data":
            self._data_key, self._text, self._size = attributes.get("key", ""), [], 0
        elif name == "default" and self._declaring is not None:
            self._text, self._size = [], 0

    def _drawn(self, tag: str, name: str, attributes: dict[str, str]) -> None:
        """Begins an element within data; of those of yEd only the labels are read."""
        self._inner += 1
        if name in _LABELS:
            self._labels, self._text, self._size = self._labels + 1, [], 0
        elif self.open and name == "Label" and "Text" in attributes:
            self.open[-1].labels.append(attributes["Text"])
        elif not self._labels and "yworks.com" in tag:
            self._text = None

    def _drawn_end(self, name: str) -> None:
        self._inner -= 1
        if name in _LABELS:
            if self.open and self._text is not None and (text := " ".join("".join(self._text).split())):
                self.open[-1].labels.append(text)
            self._labels, self._text = self._labels - 1, None

    def _attribute(self, attributes: dict[str, str]) -> None:
        """Begins an attribute of XGMML, or a value of one that is a list."""
        name = self._lists[-1] if self._lists and self._lists[-1] else attributes.get("name", "")
        self._lists.append(name if attributes.get("type") == "list" else "")
        value = attributes.get("value", "")
        if self.open and name and value.strip() and attributes.get("type") != "list":
            datatype = _XGMML_TYPES.get(attributes.get("type", ""), "string")
            self.open[-1].attached.setdefault(name, []).append((value, datatype))

    def _characters(self, text: str) -> None:
        if self._text is not None:
            self._size += len(text)
            if self._size > MAX_LINE:
                if self._size - len(text) <= MAX_LINE and self.open:
                    self.open[-1].fault = f"a value of more than {MAX_LINE:,} characters"
                return
            self._text.append(text)

    def _end(self, tag: str) -> None:
        name = tag.rpartition(" ")[2]
        self._depth -= 1
        if self._data_key is not None and self._inner:
            self._drawn_end(name)
        elif name == "data":
            if self.open and self._text is not None:
                self._datum(self.open[-1], "".join(self._text))
            self._text = self._data_key = None
        elif name == "graph":
            self._directed.pop()
        elif name == "att" and self._lists:
            self._lists.pop()
        elif name == "default" and self._declaring is not None and self._text is not None:
            self._declaring["default"], self._text = "".join(self._text), None
        elif name == "key" and self._declaring is not None:
            self._declare(self._declaring)
            self._declaring = None
        elif name in ("node", "edge", "hyperedge") and self.open:
            element = self.open.pop()
            if element.kind != "hyperedge":
                self.rows.take(element.line, lambda: _shown(element), self._adder(element, self._directed[-1]))

    def _declare(self, attributes: dict[str, str]) -> None:
        identity, kind = attributes.get("id"), attributes.get("attr.type", "string")
        if identity is not None:
            datatype = DATATYPES.get(kind.lower(), "string")
            name = attributes.get("attr.name") or identity
            self.keys[identity] = _Declared(name, datatype, attributes.get("for", "all"), attributes.get("default"))

    def _datum(self, element: _Element, text: str) -> None:
        if self._data_key in self.keys:
            element.data[self._data_key] = text
        elif element.fault is None:
            element.fault = f"its data have the key {self._data_key!r}, which is not declared"

    def _adder(self, element: _Element, directed: bool) -> Callable[[], None]:
        return lambda: self._add(element, directed)

    def _add(self, element: _Element, directed: bool) -> None:
        if element.fault is not None:
            raise Unfit(element.fault)
        properties: dict[str, Any] = {}
        datatypes: dict[str, str] = {}
        for identity, key in self.keys.items():
            value = element.data.get(identity, key.default if key.domain in (element.kind, "all") else None)
            if value is not None and value.strip():
                properties[key.name] = value if key.datatype == "string" else value.strip()
                date = key.datatype == "string" and ISO_DATE.fullmatch(value)  # for which GraphML has no name
                datatypes[key.name] = "date" if date else key.datatype
        for name, values in element.attached.items():
            properties[name] = values[0][0] if len(values) == 1 else [value for value, _ in values]
            datatypes[name] = values[0][1]
        attributes = element.attributes
        if element.labels:
            properties["label"], *more = dict.fromkeys(element.labels)
            if more and "yfiles.foldertype" not in attributes:  # a group has a second label, for when it is closed
                properties["text"] = [properties["text"], *more] if "text" in properties else more
        if element.kind == "node":
            if self._xgmml and "label" in attributes:
                properties.setdefault("label", attributes["label"])
            texts = [attributes.get("labels", "")]
            texts += [str(properties.pop(name)) for name in self.options.types if name in properties]
            types = dict.fromkeys(part.strip() for text in texts for part in text.split(":") if part.strip())
            self.rows.node(attributes.get("id"), list(types), properties, datatypes)
            return
        relation = attributes.get("label")
        if self._xgmml and INTERACTION in properties:
            relation = None  # the label repeats the ends: `a (activates) b`
        given = pop_direction(properties)
        directed = directed if given is None else given
        candidates = (*self.options.relations, INTERACTION, "Edge Label")
        named = next((name for name in candidates if isinstance(properties.get(name), str)), None)
        if named is not None and relation in (None, properties[named]):
            relation = str(properties.pop(named))
        directed = _FLAGS.get(attributes.get("directed", attributes.get(f"{CYTOSCAPE} directed", "")), directed)
        ends = attributes.get("source"), relation or RELATION, attributes.get("target")
        self.rows.edge(*ends, properties, datatypes, directed=directed)


def _shown(element: _Element) -> str:
    attributes = " ".join(f'{name}="{value}"' for name, value in element.attributes.items())
    return f"<{element.kind} {attributes}>"


FORMAT = FormatSpec(GraphMl, "GraphML 1.0, also of yEd, and XGMML", endings=(".graphml", ".xgmml"), specific=True)
