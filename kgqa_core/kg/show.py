"""What the graph says of one entity, for people."""

from __future__ import annotations

from typing import Any

from kgqa_core.errors import InputError
from kgqa_core.kg.store import KgStore


def describe(store: KgStore, key: str, *, limit: int = 50) -> dict[str, Any]:
    """Names, types and facts of the entities or literals that `key` may mean (a key, label or alias).

    Returns `{"key", "matches": [{id, key, kind, name, names, descriptions, datatype, number, time, popularity,
    types, facts, incoming}]}`; facts are `{relation, relation_key, entity, entity_key, triple}`, at most `limit`
    each way, with the totals in `n_facts` and `n_incoming`.  Raises InputError, with the nearest name, when
    nothing matches.
    """
    ids = store.resolve([key])[key]
    if not ids:
        near = store.suggest(key)
        hint = f"did you mean {near!r}?" if near else "give a key, label or alias as it is written in the graph"
        raise InputError(
            f"{key!r} is not in graph {store.meta.get('name', '')!r} ({store.counts()['entities']:,} entities); {hint}"
        )
    forms = store.surface_forms(ids)
    return {"key": key, "matches": [_one(store, i, forms[i], limit) for i in ids]}


def _one(store: KgStore, i: int, forms: list[str], limit: int) -> dict[str, Any]:
    run = store.connection.execute
    row = run(
        "SELECT key, kind, datatype, number, time::VARCHAR, popularity FROM entities WHERE id = ?", [i]
    ).fetchone()
    if row is None:
        raise InputError(f"entity {i} is not in {store.path}")
    types = [t for (t,) in run("SELECT type FROM types WHERE entity = ? ORDER BY type", [i]).fetchall()]
    descriptions = run(
        "SELECT lang, description FROM labels WHERE id = ? AND description IS NOT NULL ORDER BY lang", [i]
    ).fetchall()
    found: dict[str, Any] = {
        "id": i,
        **dict(zip(("key", "kind", "datatype", "number", "time", "popularity"), row, strict=True)),
        "name": forms[0],
        "names": forms,
        "descriptions": dict(descriptions),
        "types": [name for _, name in sorted(store.names(types).items())],
    }
    for name, here, there in (("facts", "head", "tail"), ("incoming", "tail", "head")):
        total = run(f"SELECT count(*) FROM triples WHERE {here} = ?", [i]).fetchone()
        rows = run(
            f"SELECT id, relation, {there} FROM triples WHERE {here} = ? ORDER BY id LIMIT ?", [i, limit]
        ).fetchall()
        others = {other for _, _, other in rows}
        names, keys = store.names(others), store.entity_keys(others)
        relations = dict(enumerate(zip(store.relation_names(), store.relation_keys(), strict=True))) if rows else {}
        found[name] = [
            {
                "relation": relations[relation][0],
                "relation_key": relations[relation][1],
                "entity": names[other],
                "entity_key": keys[other],
                "triple": triple,
            }
            for triple, relation, other in rows
        ]
        found[f"n_{name}"] = int(total[0]) if total else 0
    return found
