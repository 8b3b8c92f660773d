"""Copies in another order that make forms over a large graph fast: triples by their tail, and entities by their key.

A graph's tables are sorted by id, which finds the tails of a head by looking at one block of a column, and its heads by
looking at every block.  The copies live in the memory of one open graph (about 20 bytes a triple and 16 an entity, less
what DuckDB compresses) and are gone when it is closed.
"""

from __future__ import annotations

from weakref import WeakSet

from kgqa_core.kg.store import KgStore

BY_TAIL, KEYS = "logic_triples_by_tail", "logic_entity_keys"

_indexed: WeakSet[KgStore] = WeakSet()


def index(store: KgStore) -> None:
    """Makes the copies; again, when the tables that the connection sees have changed since."""
    run = store.connection.execute
    run(
        f"CREATE OR REPLACE TEMP TABLE {BY_TAIL} AS SELECT id, head, relation, tail FROM triples "
        "ORDER BY tail, relation"
    )
    run(
        f"CREATE OR REPLACE TEMP TABLE {KEYS} AS SELECT hash(key) AS hash, id FROM entities "
        "WHERE kind = 'entity' ORDER BY hash"
    )
    _indexed.add(store)


def is_indexed(store: KgStore) -> bool:
    """Whether `index` was called for this open graph."""
    return store in _indexed
