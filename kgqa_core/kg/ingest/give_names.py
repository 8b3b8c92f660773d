"""Gives a graph that is being built the words of its owner (`kg.own_names`).

Those of entities and types become aliases; `meta.own_names` has them all, for the label parser.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb

from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError, nearest
from kgqa_core.kg.names import in_words
from kgqa_core.kg.own_names import META, SECTIONS, read_names
from kgqa_core.kg.store import KgStore


def give_names(connection: duckdb.DuckDBPyConnection, path: Path, options: KgOptions) -> dict[str, Any]:
    """Adds `options.names` to the graph in `path`, whose tables are filled; what its meta holds of them.

    Raises KgInputError that lists the names of what the graph does not have.
    """
    if options.names is None:
        return {}
    names, run = read_names(options.names), connection.execute
    run("USE kg")
    store = KgStore(connection, path, {"counts": {"bridges": 1}, "languages": options.languages})
    called = [*zip(store.relation_keys(), store.relation_names(), strict=True)]
    relations = {text.casefold(): key for key, name in called for text in (in_words(name), name)}
    relations |= {key.casefold(): key for key, _ in called}
    types = {number for (number,) in run("SELECT type FROM types UNION SELECT super FROM supertypes").fetchall()}
    resolved = store.resolve([*names.entities, *names.types, *names.values])
    known: dict[str, dict[str, tuple[str, ...]]] = {section: {} for section in SECTIONS}
    rows, faults = [], []
    for section in SECTIONS:
        for text, words in getattr(names, section).items():
            ids = [i for i in resolved.get(text, ()) if section != "types" or i in types]
            own = relations.get(text.casefold()) if section == "relations" else None
            found = [own] if own else store.entity_keys(ids).values()
            known[section] |= dict.fromkeys(found, words)
            rows += [(i, word) for i in ids for word in words]
            if words and not found:
                hint = nearest(text, relations) or nearest(text, filter(None, [store.suggest(text)]))
                faults.append(f"{options.names}: {section}: {text!r} is not in the graph{hint}")
    run(
        "INSERT INTO aliases SELECT DISTINCT id, '', alias FROM (SELECT unnest($1) AS id, unnest($2) AS alias) "
        "SEMI JOIN (FROM entities WHERE kind = 'entity') USING (id) ANTI JOIN aliases USING (id, alias) ORDER BY ALL",
        [[i for i, _ in rows], [word for _, word in rows]],
    )
    run("USE memory")
    there = run("SELECT key FROM terms WHERE key IN (SELECT unnest($1::VARCHAR[]))", [[*names.hide]]).fetchall()
    for text in {*names.hide} - {key for (key,) in there} - {*options.drop_relations}:
        hint = nearest(relations.get(text.casefold(), text), [key for key, _ in called])
        faults.append(f"{options.names}: hide: {text!r} is the key of no relation{hint}")
    if faults:
        raise KgInputError("\n".join(faults))
    return {META: {**{section: some for section, some in known.items() if some}, "hide": names.hide}}
