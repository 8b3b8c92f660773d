"""Nodes and relationships with properties as statements: what Neo4j's exports and GraphML have in common.

A node's labels are its types, the first of `kg.property_graph.names` that it has is its label, every other property a
literal, a list one of each element.  A relationship is a triple, its properties are qualifiers of it.  A node or
relationship at fault is a reject as a whole; a node without labels and properties states nothing.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from kgqa_core.config import PropertyGraphOptions
from kgqa_core.errors import KgInputError, nearest
from kgqa_core.kg.formats.base import (
    CONTROL,
    ENTITY,
    LITERAL,
    MAX_REJECT_TEXT,
    PLAIN,
    QUALIFIERS,
    REJECTS,
    STATEMENTS,
    StatementBatch,
    filled,
)
from kgqa_core.kg.literals import NUMBER
from kgqa_core.kg.vocabulary import LABEL, RDF_TYPE, STRING, XSD

ROWS = 100_000
"""Statements in one batch."""

ENTITY_DATATYPE = "entity"
"""What stands in the place of a datatype where a value is the key of an entity."""

DATATYPES: Mapping[str, str] = {
    **{name: "integer" for name in ("int", "long", "short", "byte", "integer")},
    **{name: "double" for name in ("float", "double")},
    **{name: "string" for name in ("string", "char", "point", "vector", "str")},
    **{name: "dateTime" for name in ("datetime", "localdatetime", "dateTime")},
    **{name: "time" for name in ("time", "localtime")},
    **{
        name: name
        for name in ("boolean", "date", "duration", "decimal", "gYear", "gYearMonth", "anyURI", "base64Binary")
    },
    "bool": "boolean",
    ENTITY_DATATYPE: ENTITY_DATATYPE,
}
"""Names of datatypes in Neo4j, GraphML and XML Schema, and the last part of the literal's datatype IRI."""

ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d")
"""A day as a string, for which JSON and GraphML have no type."""

NUMERALS: Mapping[str, str] = {"integer": r"^[+-]?[0-9]+$", "double": NUMBER, "decimal": NUMBER}
"""What values of numeric datatypes look like; `NaN` and the infinities are doubles too."""

INFINITE = {"NaN": "NaN", "Infinity": "INF", "-Infinity": "-INF", "INF": "INF", "-INF": "-INF", "inf": "INF",
            "-inf": "-INF"}  # fmt: skip
"""Doubles that are no numerals, as they may be written, and as XML Schema writes them."""

_INFINITE = INFINITE | {"nan": "NaN"}
"""Those of JSON, with Python's own."""


DIRECTIONS = {"directed": True, "undirected": False}
"""What Gephi writes as the `Type` of an edge; it is no relation."""


class Unfit(ValueError):
    """A value, a key or an element that cannot be read; the text says why."""


def datatype_of(name: str, where: str) -> str:
    """The last part of a datatype's IRI, or `entity`.  Raises KgInputError for a name that is unknown."""
    plain = name.strip().removeprefix("xsd:").removeprefix(XSD)
    datatype = DATATYPES.get(plain) or DATATYPES.get(plain.lower())
    if datatype is None:
        raise KgInputError(
            f"{where} {name!r} is no datatype{nearest(name, DATATYPES)}; known are {', '.join(DATATYPES)}"
        )
    return datatype


def declared(options: PropertyGraphOptions) -> dict[str, str]:
    """The datatypes of `kg.property_graph.datatypes`.  Raises KgInputError for one that is unknown."""
    return {name: datatype_of(kind, f"kg.property_graph.datatypes.{name}") for name, kind in options.datatypes.items()}


def term(value: Any, datatype: str | None = None) -> tuple[str, int, str | None]:
    """Object, kind and datatype of one value of JSON; datatype: what it is declared to be.  Raises Unfit."""
    if isinstance(value, bool):
        text, natural = ("true" if value else "false"), "boolean"
    elif isinstance(value, int):
        text, natural = str(value), "integer"
    elif isinstance(value, float):
        text = repr(value)
        text, natural = _INFINITE.get(text, text), "double"
    elif isinstance(value, str):
        text, natural = value, "string"
    elif isinstance(value, bytes):
        text, natural = base64.b64encode(value).decode(), "base64Binary"
    else:
        text, natural = json.dumps(value, ensure_ascii=False, sort_keys=True), "string"
    kind = datatype or natural
    if kind == ENTITY_DATATYPE:
        return key_of(text), ENTITY, None
    if "\0" in text:
        raise Unfit("a NUL in a value")
    if (numeral := NUMERALS.get(kind)) is not None and datatype is not None:
        text = text.strip()
        if not re.fullmatch(numeral, text):
            if datatype != "double" or text not in _INFINITE:
                raise Unfit(f"{text[:60]!r} is no {datatype}")
            text = _INFINITE[text]
    if datatype == "boolean":
        text = text.strip().lower()
        if text not in ("true", "false"):
            raise Unfit(f"{text[:60]!r} is no boolean")
    return text, LITERAL, XSD + kind


def key_of(value: Any) -> str:
    """A key.  Raises Unfit for one that is empty, or is none."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise Unfit(f"{json.dumps(value)[:60]} is no key")
    key = str(value).strip(" " + CONTROL)
    if not key:
        raise Unfit("an empty key")
    if "\0" in key or "\r" in key:
        raise Unfit("a NUL or a carriage return within a key")
    return key


def dates_of(properties: Mapping[str, Any]) -> dict[str, str]:
    """The datatype of each property that is a day in a string."""
    return {name: "date" for name, value in properties.items() if isinstance(value, str) and ISO_DATE.fullmatch(value)}


def pop_direction(properties: dict[str, Any]) -> bool | None:
    """Whether an edge is directed by its property `type`, which is taken out; None where that is no direction."""
    for name in ("type", "Type"):
        if (directed := DIRECTIONS.get(str(properties.get(name)).lower())) is not None:
            del properties[name]
            return directed
    return None


class PropertyRows:
    """Collects nodes and relationships, and gives them out as batches."""

    def __init__(self, options: PropertyGraphOptions, found: dict[str, str] | None = None) -> None:
        """found: where to say what was guessed, as of `Source`."""
        self.options, self.found = options, {} if found is None else found
        self.datatypes = declared(options)
        self._statements: list[tuple[str, str, str, int, str | None]] = []
        self._qualifiers: list[tuple[int, str, str, int, str | None]] = []
        self._rejects: list[tuple[int, str, str]] = []
        self._ignored = 0
        self._undirected = 0
        self._keys: dict[str, str] = {}  # of nodes by their ids, where a property is the key

    @property
    def full(self) -> bool:
        """Whether a batch should be given out."""
        return len(self._statements) + len(self._rejects) >= ROWS

    def take(self, line: int, text: Callable[[], str], add: Callable[[], None]) -> None:
        """Adds an element whole with `add`, or rejects it.  line, text: where and what it is."""
        statements, qualifiers = len(self._statements), len(self._qualifiers)
        try:
            add()
        except Unfit as fault:
            del self._statements[statements:], self._qualifiers[qualifiers:]
            self.reject(line, str(fault), text())

    def reject(self, line: int, reason: str, text: str) -> None:
        """Lists an element that cannot be read."""
        self._rejects.append((line, reason, text.encode("utf-8", "replace").decode()[:MAX_REJECT_TEXT]))

    def ignore(self) -> None:
        """Counts something that is no statement."""
        self._ignored += 1

    def finish(self) -> StatementBatch:
        """The last batch."""
        if self._undirected:
            self.found["undirected edges"] = f"{self._undirected:,}, each of them a triple in either direction"
        return self.batch(1.0)

    def node(
        self, identity: Any, types: Sequence[Any], properties: Mapping[str, Any], datatypes: Mapping[str, str] = {}
    ) -> None:
        """The statements of a node.  datatypes: what its source declares.  Raises Unfit."""
        key = self._key(identity, properties)
        add = self._statements.append
        for type_key in types:
            add((key, RDF_TYPE, key_of(type_key), ENTITY, None))
        label = next((name for name in self.options.names if is_word(properties.get(name))), None)
        for name, thing, kind, datatype in self._terms(properties, datatypes, (self.options.key, label)):
            add((key, name, thing, kind, datatype))
        if label is not None:
            add((key, LABEL, term(properties[label], "string")[0], LITERAL, STRING))

    def edge(
        self,
        source: Any,
        relation: Any,
        target: Any,
        properties: Mapping[str, Any],
        datatypes: Mapping[str, str] = {},
        *,
        directed: bool = True,
    ) -> None:
        """The triple of a relationship and its qualifiers, in both directions unless it is directed.  Raises Unfit."""
        first, name, second = self._end(source), key_of(relation), self._end(target)
        qualifiers = list(self._terms(properties, datatypes, ()))
        ends = [(first, second)] if directed or first == second else [(first, second), (second, first)]
        for subject, thing in ends:
            row = len(self._statements)
            self._statements.append((subject, name, thing, ENTITY, None))
            self._qualifiers += [(row, *qualifier) for qualifier in qualifiers]
        self._undirected += not directed

    def batch(self, fraction: float) -> StatementBatch:
        """What was collected since the last batch."""
        statements = pl.DataFrame(self._statements, schema={name: STATEMENTS[name] for name in PLAIN}, orient="row")
        qualifiers = None
        if self._qualifiers:
            schema = {name: QUALIFIERS[name] for name in ("row", "predicate", "object", "kind", "datatype")}
            qualifiers = filled(pl.DataFrame(self._qualifiers, schema=schema, orient="row"), QUALIFIERS)
        rejects = pl.DataFrame(self._rejects, schema=REJECTS, orient="row")
        result = StatementBatch(statements, rejects, self._ignored, fraction, qualifiers)
        self._statements, self._qualifiers, self._rejects, self._ignored = [], [], [], 0
        return result

    def _key(self, identity: Any, properties: Mapping[str, Any]) -> str:
        key = key_of(identity)
        if self.options.key is None:
            return key
        if properties.get(self.options.key) is None:
            raise Unfit(f"the node has no property {self.options.key!r} (kg.property_graph.key)")
        self._keys[key] = key_of(properties[self.options.key])
        return self._keys[key]

    def _end(self, identity: Any) -> str:
        key = key_of(identity)
        if self.options.key is None:
            return key
        if key not in self._keys:
            raise Unfit(f"no node before it has the id {key[:60]!r}, or that node was rejected")
        return self._keys[key]

    def _terms(
        self, properties: Mapping[str, Any], datatypes: Mapping[str, str], without: Sequence[str | None]
    ) -> Iterator[tuple[str, str, int, str | None]]:
        for name, value in properties.items():
            if name in without or value is None:
                continue
            key, datatype = key_of(name), self.datatypes.get(name) or datatypes.get(name)
            for element in value if isinstance(value, list | tuple) else (value,):
                if element is not None:
                    yield (key, *term(element, datatype))


def is_word(value: Any) -> bool:
    """Whether a value is a text that is not blank."""
    return isinstance(value, str) and bool(value.strip())
