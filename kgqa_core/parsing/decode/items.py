"""The schema items of a graph that can be retrieved: its relations and types, by key, with their words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kgqa_core.kg.store import KgStore
from kgqa_core.logic.schema import Schema

_BREAK = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_./\s-]+")

Near = Mapping[str, Mapping[str, tuple[bool, bool]]]
"""Entity → relation → whether the entity is a head of it, and whether it is a tail of it."""


@dataclass(frozen=True)
class Items:
    """relations, classes: keys of what has triples or entities, ascending.  words: what is read of each key."""

    relations: tuple[str, ...]
    classes: tuple[str, ...]
    words: Mapping[str, str]

    @property
    def keys(self) -> tuple[str, ...]:
        """Every item, relations first."""
        return (*self.relations, *self.classes)


def items_of(store: KgStore, schema: Schema) -> Items:
    """The items of a graph.  An item without label is read by the tail of its key."""
    relations = tuple(sorted(key for key, relation in schema.relations.items() if relation.triples))
    classes = tuple(sorted(schema.types))
    named = dict(zip(store.relation_keys(), store.relation_names(), strict=True))
    rows = store.connection.execute(
        "SELECT id, key FROM entities WHERE kind = 'entity' AND key IN (SELECT unnest($1::VARCHAR[])) ORDER BY id",
        [list(classes)],
    ).fetchall()
    names = store.names([i for i, _ in rows])
    own = {key: names[i] for i, key in rows} | {key: named[key] for key in relations}
    return Items(relations, classes, {key: in_words(own.get(key, key)) for key in (*relations, *classes)})


def in_words(label: str) -> str:
    """A label in lower-case words: `placeOfBirth`, `place_of_birth` and `people.place of birth` have equal ends.

    >>> in_words("placeOfBirth")
    'place of birth'
    """
    return " ".join(part for part in _BREAK.split(label) if part).lower() or label


def near(store: KgStore, keys: Iterable[str]) -> Near:
    """The relations that each entity has, in either direction."""
    rows = store.connection.execute(
        "WITH wanted AS (SELECT id, key FROM entities WHERE kind = 'entity' AND key IN "
        "(SELECT unnest($1::VARCHAR[]))) "
        "SELECT w.key, r.key, bool_or(t.side = 0), bool_or(t.side = 1) FROM wanted w JOIN ("
        "SELECT DISTINCT head AS id, relation, 0 AS side FROM triples WHERE head IN (SELECT id FROM wanted) "
        "UNION ALL SELECT DISTINCT tail, relation, 1 FROM triples WHERE tail IN (SELECT id FROM wanted)) t "
        "ON t.id = w.id JOIN relations r ON r.id = t.relation GROUP BY 1, 2 ORDER BY 1, 2",
        [sorted(set(keys))],
    ).fetchall()
    found: dict[str, dict[str, tuple[bool, bool]]] = {}
    for entity, relation, head, tail in rows:
        found.setdefault(entity, {})[relation] = (bool(head), bool(tail))
    return found
