"""The facts of one entity, for people."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from kgqa_core.errors import InputError
from kgqa_core.kg.literals import NUMBER
from kgqa_core.kg.look.search import resolve_all
from kgqa_core.kg.store import KgStore
from kgqa_core.kg.verbalise import tell_apart

RANKS = {-1: "deprecated", 0: "normal", 1: "preferred"}

ROUGH = {
    0: "billion years", 1: "hundred million years", 2: "ten million years", 3: "million years",
    4: "hundred thousand years", 5: "ten thousand years", 6: "millennium", 7: "century", 8: "decade",
}  # fmt: skip
"""Precisions of dates that are rougher than a year."""

_COLUMNS = {
    "key": "key",
    "kind": "kind",
    "datatype": "datatype",
    "number": "number",
    "unit": "unit",
    "time": "time::VARCHAR",
    "precision": "precision",
    "calendar": "calendar",
    "popularity": "popularity",
    "views": "views",
}


def describe(store: KgStore, key: str, *, limit: int = 50) -> dict[str, Any]:
    """Names, types and facts of the entities or literals that `key` may mean (a key, label, alias or foreign id).

    Returns `{"key", "matches": [{id, name, names, description, descriptions, types, supertypes, bridges, facts,
    incoming, and the columns of the entity}]}`; facts are `{relation, relation_key, entity, entity_key, text, unit,
    triple, rank, qualifiers}`, at most `limit` each way, with the totals in `n_facts` and `n_incoming`.  qualifiers:
    one list of `{relation, relation_key, entity, entity_key, text, unit}` for each qualified statement of the triple; a
    fact that no file states has `derived`, the axiom that it follows from.
    Raises InputError, with the nearest name, when nothing matches.
    """
    ids = resolve_all(store, key)
    forms = store.surface_forms(ids)
    told = tell_apart(store, {i: forms[i][0] for i in ids})
    relations = zip(store.relation_names(), store.relation_keys(), strict=True)
    named = [{"relation": name, "relation_key": relation} for name, relation in relations]
    return {"key": key, "matches": [_one(store, i, forms[i], named, limit) | {"name": told[i]} for i in ids]}


def _one(store: KgStore, i: int, forms: list[str], named: list[dict[str, str]], limit: int) -> dict[str, Any]:
    run = store.connection.execute
    row = run(f"SELECT {', '.join(_COLUMNS.values())} FROM entities WHERE id = ?", [i]).fetchone()
    if row is None:
        raise InputError(f"entity {i} is not in {store.path}")
    types = [t for (t,) in run("SELECT type FROM types WHERE entity = ? ORDER BY type", [i]).fetchall()]
    above = run(
        "SELECT DISTINCT super FROM supertypes WHERE type IN (SELECT type FROM types WHERE entity = $1) "
        "AND super NOT IN (SELECT type FROM types WHERE entity = $1) ORDER BY super",
        [i],
    ).fetchall()
    descriptions = run(
        "SELECT lang, description FROM labels WHERE id = ? AND description IS NOT NULL ORDER BY lang", [i]
    ).fetchall()
    results: dict[str, Any] = {
        "id": i,
        **dict(zip(_COLUMNS, row, strict=True)),
        "name": forms[0],
        "names": forms,
        "description": store.description(i),
        "descriptions": dict(descriptions),
        "types": [name for _, name in sorted(store.names(types).items())],
        "supertypes": [name for _, name in sorted(store.names(t for (t,) in above).items())],
        "bridges": [{"relation": relation, "value": value} for relation, value in store.bridges([i]).get(i, [])],
    }
    results |= {name: value for name, value in described(store, [i])[i].items() if name in ("unit", "text")}
    for name, here, there in (("facts", "head", "tail"), ("incoming", "tail", "head")):
        total = run(f"SELECT count(*) FROM triples WHERE {here} = ?", [i]).fetchone()
        rows = run(
            f"SELECT id, relation, {there}, rank FROM triples WHERE {here} = ? ORDER BY id LIMIT ?", [i, limit]
        ).fetchall()
        qualifiers = store.qualifiers(triple for triple, *_ in rows)
        derived = store.derivations(triple for triple, *_ in rows)
        order = store.list_order(derived) if name == "facts" else {}
        rows.sort(key=lambda row: (row[1], order.get(row[2], -1)) if order else (0, 0))
        others = {other for _, _, other, _ in rows}
        others |= {value for sets in qualifiers.values() for pairs in sets for _, value in pairs}
        ends = described(store, others)
        results[name] = [
            {
                **named[relation],
                **ends[other],
                "triple": triple,
                "rank": RANKS[rank],
                **({"derived": derived[triple]} if triple in derived else {}),
                "qualifiers": [
                    [named[by] | ends[value] for by, value in pairs] for pairs in qualifiers.get(triple, [])
                ],
            }
            for triple, relation, other, rank in rows
        ]
        results[f"n_{name}"] = int(total[0]) if total else 0
    return results


def described(store: KgStore, ids: Iterable[int]) -> dict[int, dict[str, Any]]:
    """Name, key, readable text and unit of each entity or literal."""
    wanted = sorted(ids)
    names, keys = store.names(wanted), store.entity_keys(wanted)
    rows = store.connection.execute(
        "SELECT id, unit, precision, calendar FROM (SELECT unnest($1::BIGINT[]) AS id) JOIN entities USING (id) "
        "WHERE unit IS NOT NULL OR precision IS NOT NULL ORDER BY id",
        [wanted],
    ).fetchall()
    units = unit_names(store, {unit for _, unit, _, _ in rows if unit})
    values = {i: (units.get(unit), precision, calendar) for i, unit, precision, calendar in rows}
    return {
        i: {
            "entity": name,
            "entity_key": keys[i],
            "unit": values[i][0] if i in values else None,
            "text": readable(keys[i], *values[i]) if i in values else name,
        }
        for i, name in names.items()
    }


def readable(key: str, unit: str | None, precision: int | None, calendar: str | None) -> str:
    """A quantity with its unit, unless its text has it, or a date as exact as it is known.

    >>> readable("+1.96", "metre", None, None), readable("1952-03-11T00:00:00Z", None, 11, "gregorian")
    ('1.96 metre', '1952-03-11')
    >>> readable("1501-01-01T00:00:00Z", None, 7, "julian"), readable("1952-01-01T00:00:00Z", None, 9, "gregorian")
    ('1501 (century, Julian)', '1952')
    >>> readable("0.9 GW", "megawatt", None, None)
    '0.9 GW'
    """
    if precision is None and not re.fullmatch(NUMBER, key):
        return key
    if precision is None:
        return f"{key.removeprefix('+')} {unit or ''}".rstrip()
    whole = re.match(r"-?\d+(-\d\d)?(-\d\d)?", key) if precision <= 11 else None
    text = key
    if whole is not None:
        text = whole[0].rsplit("-", max(0, whole.lastindex or 0) - max(0, precision - 9))[0]
    notes = [ROUGH[precision]] if precision in ROUGH else []
    notes += ["Julian"] if calendar == "julian" else []
    return f"{text} ({', '.join(notes)})" if notes else text


def unit_names(store: KgStore, keys: set[str]) -> dict[str, str]:
    """Names of units: the entity's of that key, else the key."""
    rows = store.connection.execute(
        "SELECT key, id FROM entities WHERE kind = 'entity' AND list_contains($1, key)", [sorted(keys)]
    ).fetchall()
    names = store.names(i for _, i in rows)
    return {key: key for key in keys} | {key: names[i] for key, i in rows}
