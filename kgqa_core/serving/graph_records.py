"""What a view of a graph returns: typed records of plain data, the same for HTTP, MCP and a web page.

Keys, names and texts are those of the graph, unchanged: they may hold markup, line breaks and control characters, and
whoever shows them escapes them.  The fields of a record are its JSON's.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Kind = Literal["entity", "literal"]


@dataclass(frozen=True)
class GraphRecord:
    """A record that can be written as JSON."""

    def to_json(self) -> dict[str, Any]:
        """Fields by name; lists for tuples."""
        result: dict[str, Any] = _plain(asdict(self))
        return result


@dataclass(frozen=True)
class NodeRecord(GraphRecord):
    """An entity or a literal.

    id: in this build of the graph.  name: the best label, or the readable text of a literal, with its unit.  datatype:
    of a literal, its IRI, or `@` and a language.
    """

    id: int
    key: str
    name: str
    kind: Kind = "entity"
    unit: str | None = None
    datatype: str | None = None


@dataclass(frozen=True)
class RelationRecord(GraphRecord):
    """A relation.  inverse: followed against the direction in which its triples are stored."""

    key: str
    name: str
    inverse: bool = False


@dataclass(frozen=True)
class RelationCount(GraphRecord):
    """How many triples of an entity have a relation.  inverse: the entity is their tail."""

    key: str
    name: str
    inverse: bool
    count: int


@dataclass(frozen=True)
class SchemaRecord(GraphRecord):
    """What a graph holds: counts, and its largest relations and types as of `kg.look.stats.schema`."""

    counts: dict[str, int]
    relations: list[dict[str, Any]]
    types: list[dict[str, Any]]


@dataclass(frozen=True)
class SearchMatch(GraphRecord):
    """An entity that a text may mean.

    matched: the name that matches, often folded (lower case, without accents and punctuation), or the key.  how: `key`,
    `exact` (its label or another name of it), `prefix` (a name that begins so), `part` (in its name) or `typo`.
    degree: triples that it is head or tail of.
    """

    id: int
    key: str
    name: str
    types: tuple[str, ...]
    description: str | None
    degree: int
    matched: str
    how: Literal["key", "exact", "prefix", "part", "typo"]


@dataclass(frozen=True)
class SearchResult(GraphRecord):
    """Entities by name, the best first.  more: there may be more than these."""

    text: str
    matches: tuple[SearchMatch, ...]
    more: bool


@dataclass(frozen=True)
class QualifierRecord(GraphRecord):
    """What a statement says of itself, as its beginning."""

    relation: RelationRecord
    value: NodeRecord


@dataclass(frozen=True)
class FactRecord(GraphRecord):
    """A triple.  rank: `preferred`, `normal` or `deprecated`.

    qualifiers: one list for each statement of the triple that has any.
    """

    triple: int
    head: NodeRecord
    relation: RelationRecord
    tail: NodeRecord
    rank: str
    qualifiers: tuple[tuple[QualifierRecord, ...], ...] = ()


@dataclass(frozen=True)
class FactPage(GraphRecord):
    """Some of the facts of an entity in one direction, by relation, then by the other end.

    total: facts in this direction, of the chosen relation where one was chosen.  relations: how many facts each
    relation has, the most first; `more_relations` are left out.
    """

    total: int
    offset: int
    facts: tuple[FactRecord, ...]
    relations: tuple[RelationCount, ...]
    more_relations: int


@dataclass(frozen=True)
class EntityPage(GraphRecord):
    """What a graph says of an entity, or of a literal.

    aliases: its other names, of which there are `aliases_total`.  facts: triples that it is the head of; incoming:
    that it is the tail of.  others: further entities that have this name, the best connected first.
    """

    entity: NodeRecord
    description: str | None
    aliases: tuple[str, ...]
    aliases_total: int
    types: tuple[NodeRecord, ...]
    degree: int
    facts: FactPage
    incoming: FactPage
    others: tuple[NodeRecord, ...]


@dataclass(frozen=True)
class PictureNode(GraphRecord):
    """A node of a picture.  degree: triples that it is head or tail of, not only those shown."""

    id: int
    key: str
    name: str
    kind: Kind
    types: tuple[str, ...]
    degree: int


@dataclass(frozen=True)
class PictureEdge(GraphRecord):
    """A triple between two nodes of a picture, by their ids."""

    triple: int
    head: int
    relation: RelationRecord
    tail: int


@dataclass(frozen=True)
class NeighbourhoodRecord(GraphRecord):
    """An entity with its neighbours.

    nodes: the entity itself first.  left_out: how many triples are not shown, by relation.  rule: which are shown.
    """

    centre: int
    nodes: tuple[PictureNode, ...]
    edges: tuple[PictureEdge, ...]
    total: int
    left_out: tuple[RelationCount, ...]
    rule: str


@dataclass(frozen=True)
class PathRecord(GraphRecord):
    """A relation path between two entities.  count: chains of entities that follow it; example: one of them."""

    relations: tuple[RelationRecord, ...]
    count: int
    example: tuple[NodeRecord, ...]


@dataclass(frozen=True)
class PathsRecord(GraphRecord):
    """The shortest relation paths between two entities, most chains first.

    hops: their length; None where none has at most `max_hops`.  total: how many there are.  complete: everything was
    searched; else a path may be missing, or a shorter one.
    """

    start: NodeRecord
    end: NodeRecord
    max_hops: int
    hops: int | None
    paths: tuple[PathRecord, ...]
    total: int
    complete: bool


@dataclass(frozen=True)
class FormResult(GraphRecord):
    """What a logical form denotes.

    form: with the graph's keys for what was named by label.  value: a number, or yes or no, of the forms that give one;
    unit: the name of its unit.  answers: of a table the name of each is `name: value`.  values: of a table the value of
    each.  proof: the triples that the answers rest on.  more: there are more answers or triples.  why: what cannot be,
    where there is no answer and the types of the graph say so.
    """

    form: str
    value: bool | float | None
    unit: str | None
    answers: tuple[NodeRecord, ...]
    values: tuple[str, ...]
    proof: tuple[FactRecord, ...]
    more: bool
    why: str | None
    seconds: float


@dataclass(frozen=True)
class TypesRecord(GraphRecord):
    """Names of the types of nodes, by id."""

    types: dict[int, tuple[str, ...]]


@dataclass(frozen=True)
class TableRecord(GraphRecord):
    """Rows of a statement in SQL: values as JSON has them, others as text.  more: there are more rows."""

    columns: list[str]
    rows: list[list[Any]]
    more: bool
    seconds: float


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
