"""Ids of the keys that a form uses, the index that makes forms over a large graph fast, and relations that end others.

The index is copies of triples by relation, of entities by key, and of measures.  A graph's triples are sorted by head,
so the tails of one head are found by looking at one block of a column, and its heads, or the tails of many heads, by
looking at every block.  A step of a form names its relation; in the copies a relation's triples stand together, once by
head and once by tail.  The copies live in the memory of one open graph (about 40 bytes a triple, 16 and its key an
entity, 24 a number or date) and are gone when it is closed.  Ids that were found by key are cached with them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from kgqa_core.errors import FormError, nearest
from kgqa_core.kg.store import REMOVED, KgStore
from kgqa_core.logic.forms import Elements, Form, Join, TimeConstraint, children
from kgqa_core.logic.measures import measured_sql

BY_HEAD, BY_TAIL = "memory.logic_triples_by_head", "memory.logic_triples_by_tail"
KEYS, MEASURES = "memory.logic_entity_keys", "memory.logic_measures"

_MOST = 100_000
"""Entities whose ids are cached at once."""


@dataclass(slots=True)
class _IndexedIds:
    """Ids of one indexed graph by key: all relations, and the entities that were looked up."""

    relations: dict[str, int]
    entities: dict[str, int] = field(default_factory=dict)

    def add(self, entities: dict[str, int]) -> None:
        """Caches ids that were found."""
        if len(self.entities) + len(entities) > _MOST:
            self.entities = {}  # who reads the old ones goes on
        self.entities.update(entities)


_indexed: WeakKeyDictionary[KgStore, _IndexedIds] = WeakKeyDictionary()


def index(store: KgStore) -> None:
    """Makes the copies; again, when the tables that the connection sees have changed since.

    Each connection has one thread from then on.
    """
    run = store.connection.execute
    for table, end in ((BY_HEAD, "head"), (BY_TAIL, "tail")):
        run(
            f"CREATE OR REPLACE TABLE {table} AS SELECT id, head, relation, tail FROM triples "
            f"ORDER BY relation, {end}, id"
        )
    run(
        f"CREATE OR REPLACE TABLE {KEYS} AS SELECT hash(key) AS hash, key, id FROM entities "
        "WHERE kind = 'entity' ORDER BY hash"
    )
    every = "(SELECT id, id AS node FROM entities WHERE kind = 'literal')"
    run(f"CREATE OR REPLACE TABLE {MEASURES} AS SELECT node, dim, x FROM ({measured_sql(every)}) ORDER BY node")
    run("SET threads = 1")  # to share out a query of a millisecond takes longer than to run it
    _indexed[store] = _IndexedIds(dict(run("SELECT key, id FROM relations").fetchall()))


def is_indexed(store: KgStore) -> bool:
    """Whether `index` was called for this open graph."""
    return store in _indexed


_ENDINGS: tuple[tuple[str, str], ...] = (
    ("from_date", "to_date"),
    ("start_date", "end_date"),
    ("start time", "end time"),
    ("start_time", "end_time"),
    ("startTime", "endTime"),
    ("start year", "end year"),
    ("start_year", "end_year"),
    ("startYear", "endYear"),
    ("validFrom", "validTo"),
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
    return _other(relation, _ENDINGS)


def begins(relation: str) -> str | None:
    """The key of the relation that begins what this one ends; None for others."""
    return _other(relation, [(end, begin) for begin, end in _ENDINGS])


def _other(relation: str, pairs: Sequence[tuple[str, str]]) -> str | None:
    for own, other in pairs:
        if re.search(rf"(^|[^A-Za-z0-9]){re.escape(own)}$", relation):
            return relation[: len(relation) - len(own)] + other
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
        cached = _indexed.get(store)
        self._store = store
        by_end = {"head": BY_HEAD, "tail": BY_TAIL}
        self.triples = dict.fromkeys(by_end, "triples") if cached is None else by_end
        self.measures = None if cached is None else MEASURES
        relations, entities = used.relations, sorted({*used.entities, *used.classes})
        if cached is None:
            ends = {end for relation in relations if (end := ending(relation)) is not None}
            self._relations = self._find("SELECT key, id FROM relations WHERE key IN ({})", sorted({*relations, *ends}))
            self._entities = self._find("SELECT key, id FROM entities WHERE kind = 'entity' AND key IN ({})", entities)
            return
        self._relations, known = cached.relations, cached.entities
        self._entities = {key: known[key] for key in entities if key in known}
        if missing := [key for key in entities if key not in known]:
            hashed = f"SELECT key, id FROM {KEYS} WHERE hash IN ({{hashes}}) AND key IN ({{}})"
            result = self._find(hashed, missing)
            cached.add(result)
            self._entities |= result

    def _find(self, sql: str, keys: Sequence[str]) -> dict[str, int]:
        """Rows (key, id) of a query with places for these keys."""
        if not keys:
            return {}
        placeholders = [f"${number + 1}" for number in range(len(keys))]
        text = sql.format(", ".join(placeholders), hashes=", ".join(f"hash({position})" for position in placeholders))
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
