"""Neo4j's export as JSON lines, one node or relationship each: `apoc.export.json.all` with its usual settings.

    {"type": "node", "id": "0", "labels": ["Person"], "properties": {"name": "Ada"}}
    {"type": "relationship", "id": "0", "label": "KNOWS", "properties": {}, "start": {"id": "0"}, "end": {"id": "1"}}

JSON has no dates: APOC writes them as text.  A further field `datatypes` names the datatypes of properties; what is
fetched from a server has it (`kg.remote.bolt`), for others there is `kg.property_graph.datatypes`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from kgqa_core.config import KgOptions
from kgqa_core.kg.formats.api import FormatSpec
from kgqa_core.kg.formats.base import StatementBatch
from kgqa_core.kg.formats.property_graph import DATATYPES, PropertyRows, Unfit
from kgqa_core.kg.formats.source import Source

_DECODER = msgspec.json.Decoder()


class Neo4jJson:
    """Reader of APOC's JSON lines."""

    name = "neo4j-json"

    def sniff(self, lines: list[str], options: KgOptions) -> float:
        """1 where most lines are a node or a relationship, else 0."""
        return float(sum(map(_is_element, lines)) * 2 > len(lines))

    def read(self, source: Source, options: KgOptions) -> Iterator[StatementBatch]:
        """The statements of an export."""
        rows = PropertyRows(options.property_graph)
        for block in source.blocks():
            for line, reason, text in block.rejects.iter_rows():
                rows.reject(line, reason, text)
            for line, text in block.lines.iter_rows():
                if text.strip():
                    rows.take(line, lambda text=text: text, lambda text=text: _add_line(rows, text))  # type: ignore[misc]
                else:
                    rows.ignore()
                if rows.full:
                    yield rows.batch(block.fraction)
            yield rows.batch(block.fraction)


def _is_element(line: str) -> bool:
    try:
        value = _DECODER.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return False
    return isinstance(value, dict) and value.get("type") in ("node", "relationship") and "id" in value


def _add_line(rows: PropertyRows, text: str) -> None:
    try:
        value = _DECODER.decode(text)
    except (msgspec.DecodeError, RecursionError) as fault:
        raise Unfit(f"no JSON: {fault}") from None
    if not isinstance(value, dict):
        raise Unfit("no JSON object")
    add(rows, value)


def add(rows: PropertyRows, value: Mapping[str, Any]) -> None:
    """Adds a node or a relationship of APOC.  Raises Unfit."""
    properties = mapping(value, "properties")
    datatypes = mapping(value, "datatypes")
    if not all(isinstance(kind, str) and kind in DATATYPES for kind in datatypes.values()):
        raise Unfit("'datatypes' names one that is unknown")
    kinds = {name: DATATYPES[kind] for name, kind in datatypes.items()}
    if value.get("type") == "node":
        labels = value.get("labels") or []
        if not isinstance(labels, list):
            raise Unfit("'labels' is no list")
        rows.node(value.get("id"), labels, properties, kinds)
    elif value.get("type") == "relationship":
        ends = [mapping(value, name).get("id") for name in ("start", "end")]
        rows.edge(ends[0], value.get("label"), ends[1], properties, kinds)
    else:
        raise Unfit("'type' is neither node nor relationship")


def mapping(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A member that is an object, empty where it is absent.  Raises Unfit for another."""
    member = value.get(name) or {}
    if not isinstance(member, dict):
        raise Unfit(f"{name!r} is no object")
    return member


FORMAT = FormatSpec(
    Neo4jJson,
    "Neo4j's apoc.export.json.all: a node or relationship a line",
    specific=True,
)
