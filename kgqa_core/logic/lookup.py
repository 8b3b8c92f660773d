"""Ids of the keys that a form uses, and which relation ends what another begins."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kgqa_core.errors import FormError, nearest
from kgqa_core.kg.store import REMOVED, KgStore
from kgqa_core.logic import index
from kgqa_core.logic.forms import Elements, Form, Join, TimeConstraint, children

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


def endings(form: Form) -> frozenset[str]:
    """Keys of the relations that a form reads without naming them: those that end what its conditions on time begin."""
    begun = [step.relation for step in form.path[-1:]] if isinstance(form, TimeConstraint) else []
    begun += [where.relation for where in form.where if where.op == "at"] if isinstance(form, Join) else []
    own = {end for relation in begun if (end := ending(relation)) is not None}
    return frozenset(own.union(*(endings(child) for child in children(form))))


class Ids:
    """Ids in one graph of what a form uses.

    triples: the table of triples in which to look by their `head` or `tail`.  measures: that of numbers and dates, of
    an indexed graph.
    """

    def __init__(self, store: KgStore, used: Elements) -> None:
        known = index.known(store)
        self._store = store
        by_end = {"head": index.BY_HEAD, "tail": index.BY_TAIL}
        self.triples = dict.fromkeys(by_end, "triples") if known is None else by_end
        self.measures = None if known is None else index.MEASURES
        relations, entities = used.relations, sorted({*used.entities, *used.classes})
        if known is None:
            ends = {end for relation in relations if (end := ending(relation)) is not None}
            self._relations = self._find("SELECT key, id FROM relations WHERE key IN ({})", sorted({*relations, *ends}))
            self._entities = self._find("SELECT key, id FROM entities WHERE kind = 'entity' AND key IN ({})", entities)
            return
        self._relations = known.relations
        self._entities = {key: known.entities[key] for key in entities if key in known.entities}
        if missing := [key for key in entities if key not in known.entities]:
            hashed = f"SELECT key, id FROM {index.KEYS} WHERE hash IN ({{hashes}}) AND key IN ({{}})"
            found = self._find(hashed, missing)
            known.keep(found)
            self._entities |= found

    def _find(self, sql: str, keys: Sequence[str]) -> dict[str, int]:
        """Rows (key, id) of a query with places for these keys."""
        if not keys:
            return {}
        places = [f"${number + 1}" for number in range(len(keys))]
        text = sql.format(", ".join(places), hashes=", ".join(f"hash({place})" for place in places))
        return dict(self._store.connection.execute(text, list(keys)).fetchall())

    def relation(self, key: str) -> int:
        """Raises FormError for a relation that the graph has not."""
        if key not in self._relations:
            known = [name for name in self._store.relation_keys() if not name.startswith(REMOVED)]
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
