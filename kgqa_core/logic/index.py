"""Copies in another order that make forms over a large graph fast: triples by relation, entities by key, and measures.

A graph's triples are sorted by head, so the tails of one head are found by looking at one block of a column, and its
heads, or the tails of many heads, by looking at every block.  A step of a form names its relation; in the copies a
relation's triples stand together, once by head and once by tail.  The copies live in the memory of one open graph
(about 40 bytes a triple, 16 and its key an entity, 24 a number or date) and are gone when it is closed.  Ids that were
found by key are kept with them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from kgqa_core.kg.store import KgStore
from kgqa_core.logic.measures import measured_sql

BY_HEAD, BY_TAIL = "logic_triples_by_head", "logic_triples_by_tail"
KEYS, MEASURES = "logic_entity_keys", "logic_measures"

_MOST = 100_000
"""Entities whose ids are kept; after that they are forgotten and kept again."""


@dataclass(slots=True)
class Known:
    """Ids of one indexed graph by key: all relations, and the entities that were looked for."""

    relations: dict[str, int]
    entities: dict[str, int] = field(default_factory=dict)

    def keep(self, entities: dict[str, int]) -> None:
        """Takes ids that were found."""
        if len(self.entities) + len(entities) > _MOST:
            self.entities.clear()
        self.entities.update(entities)


_known: WeakKeyDictionary[KgStore, Known] = WeakKeyDictionary()


def index(store: KgStore) -> None:
    """Makes the copies; again, when the tables that the connection sees have changed since.

    The connection has one thread from then on.
    """
    run = store.connection.execute
    for table, end in ((BY_HEAD, "head"), (BY_TAIL, "tail")):
        run(
            f"CREATE OR REPLACE TEMP TABLE {table} AS SELECT id, head, relation, tail FROM triples "
            f"ORDER BY relation, {end}, id"
        )
    run(
        f"CREATE OR REPLACE TEMP TABLE {KEYS} AS SELECT hash(key) AS hash, key, id FROM entities "
        "WHERE kind = 'entity' ORDER BY hash"
    )
    every = "(SELECT id, id AS node FROM entities WHERE kind = 'literal')"
    run(f"CREATE OR REPLACE TEMP TABLE {MEASURES} AS SELECT node, dim, x FROM ({measured_sql(every)}) ORDER BY node")
    run("SET threads = 1")  # to share out a query of a millisecond takes longer than to run it
    _known[store] = Known(dict(run("SELECT key, id FROM relations").fetchall()))


def is_indexed(store: KgStore) -> bool:
    """Whether `index` was called for this open graph."""
    return store in _known


def known(store: KgStore) -> Known | None:
    """What `index` keeps beside the copies; None for a graph that was not indexed."""
    return _known.get(store)
