"""Ids of the keys that a form uses, and which relation ends what another begins."""

from __future__ import annotations

import re

from kgqa_core.errors import FormError, nearest
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.forms import Elements
from kgqa_core.logic.index import BY_TAIL, KEYS, is_indexed

_ENDINGS: tuple[tuple[str, str], ...] = (
    ("from_date", "to_date"),
    ("start_date", "end_date"),
    ("start time", "end time"),
    ("start_time", "end_time"),
    ("startTime", "endTime"),
    ("startDate", "endDate"),
    ("start", "end"),
    ("begin", "end"),
    ("from", "to"),
    ("since", "until"),
    ("P580", "P582"),
    ("P571", "P576"),
)
"""Endings of keys: the relation of a beginning and the relation of its end."""


def ending(relation: str) -> str | None:
    """The key of the relation that ends what this one begins: `…from` and `…to`, P580 and P582; None for others."""
    for begin, end in _ENDINGS:
        found = re.search(rf"(^|[^A-Za-z0-9]){re.escape(begin)}$", relation)
        if found:
            return relation[: len(relation) - len(begin)] + end
    return None


class Ids:
    """Ids in one graph of what a form uses.  by_tail: the table of triples to find heads in."""

    def __init__(self, store: KgStore, used: Elements) -> None:
        ends = {end for relation in used.relations if (end := ending(relation)) is not None}
        relations, entities = sorted({*used.relations, *ends}), sorted({*used.entities, *used.classes})
        sql = f"SELECT 'relation', key, id FROM relations WHERE key IN ({_places(len(relations), 0)})"
        if entities:
            places = _places(len(entities), len(relations))
            near = ""
            if is_indexed(store):
                hashes = ", ".join(f"hash({place})" for place in places.split(", "))
                near = f" AND id IN (SELECT id FROM {KEYS} WHERE hash IN ({hashes}))"
            sql += (
                f" UNION ALL SELECT 'entity', key, id FROM entities WHERE kind = 'entity' AND key IN ({places}){near}"
            )
        rows = store.connection.execute(sql, relations + entities).fetchall()
        self.by_tail = BY_TAIL if is_indexed(store) else "triples"
        self._store = store
        self._relations = {key: i for kind, key, i in rows if kind == "relation"}
        self._entities = {key: i for kind, key, i in rows if kind == "entity"}

    def relation(self, key: str) -> int:
        """Raises FormError for a relation that the graph has not."""
        if key not in self._relations:
            known = self._store.relation_keys()
            raise FormError(f"relation {key!r} is not in this graph ({len(known):,} relations){nearest(key, known)}")
        return self._relations[key]

    def ending(self, relation: str) -> int | None:
        """The relation that ends what this one begins, where the graph has it."""
        return self._relations.get(ending(relation) or "")

    def entity(self, key: str) -> int:
        """Raises FormError for an entity that the graph has not."""
        if key not in self._entities:
            raise FormError(f"entity {key!r} is not in this graph; `kgqa kg search` finds what is, by name")
        return self._entities[key]

    def type(self, key: str) -> int:
        """Raises FormError for a class that is no entity of the graph; one without members denotes nothing."""
        if key not in self._entities:
            raise FormError(f"type {key!r} is not in this graph; `kgqa kg stats` shows the types there are")
        return self._entities[key]


def _places(number: int, first: int) -> str:
    """`$3::VARCHAR, $4::VARCHAR`: places of parameters after the first ones; NULL for none."""
    return ", ".join(f"${first + i + 1}::VARCHAR" for i in range(number)) or "NULL"
