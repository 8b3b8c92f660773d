"""Gives a graph that is being built the words of its owner (`kg.names`)."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import duckdb

from kgqa_core.config import KgOptions, OwnNames
from kgqa_core.errors import KgInputError, nearest
from kgqa_core.kg.sql import quoted
from kgqa_core.kg.store import FILE, KgStore, write_meta
from kgqa_core.monitor import Monitor

META = "own_names"


def give_names(
    connection: duckdb.DuckDBPyConnection, path: Path, options: KgOptions, monitor: Monitor | None
) -> dict[str, Any]:
    """Makes names of entities and types aliases; all names by key, for the graph's meta.

    monitor: is told of names of what the graph does not have; where it is None, raises KgInputError that lists them.
    """
    names, run = options.names, connection.execute
    if names == OwnNames():
        return {}
    staged = run("SELECT key FROM terms WHERE key IN (SELECT unnest($1::VARCHAR[]))", [[*names.hide]]).fetchall()
    run("USE kg")
    store = KgStore(connection, path, {"counts": {"bridges": 1}, "languages": options.languages})
    relations = [*zip(store.relation_keys(), store.relation_names(), strict=True)]
    types = {number for (number,) in run("SELECT type FROM types UNION SELECT super FROM supertypes").fetchall()}
    resolved = store.resolve([*names.entities, *names.types, *names.values])
    known: dict[str, Any] = {section: {} for section in OwnNames.model_fields if section != "hide"}
    hidden = {*names.hide} - {key for (key,) in staged} - {*options.drop_relations}
    lost, rows = [("hide", text) for text in sorted(hidden)], []
    for section in known:
        for text, words in getattr(names, section).items():
            ids = [i for i in resolved.get(text, ()) if section != "types" or i in types]
            found = [*store.entity_keys(ids).values()]
            if section == "relations":
                found = [key for key, name in relations if text.casefold() in (key.casefold(), name.casefold())]
            known[section] |= dict.fromkeys(found, words)
            rows += [(i, word) for i in ids for word in words]
            lost += [] if found or not words else [(section, text)]
    run(
        "INSERT INTO aliases SELECT DISTINCT id, '', alias FROM (SELECT unnest($1) AS id, unnest($2) AS alias) "
        "SEMI JOIN (FROM entities WHERE kind = 'entity') USING (id) ANTI JOIN aliases USING (id, alias) ORDER BY ALL",
        [[i for i, _ in rows], [word for _, word in rows]],
    )
    keys = {name: key for key, name in relations}
    near = {text: nearest(text, keys) or nearest(text, [store.suggest(text) or ""]) for _, text in lost}
    near |= {text: nearest(keys.get(text, text), keys.values()) for section, text in lost if section == "hide"}
    run("USE memory")
    if lost:
        faults = "\n".join(f"{section}: {text!r} is not in the graph{near[text]}" for section, text in lost)
        if monitor is None:
            raise KgInputError(f"names are given to what the graph does not have:\n{faults}")
        monitor.note(faults)
    return {META: known | {"hide": names.hide}}


def add_names(out: Path, old: Path, names: OwnNames, monitor: Monitor | None = None) -> dict[str, Any]:
    """Copies a built graph into the folder `out`, with names beside those that it has; its counts.

    monitor: as of `give_names`.  Raises KgInputError for names of what it does not have, for relations to hide, and
    for an overlay.
    """
    with KgStore.open(old) as store:
        path, meta, base = store.path, store.meta, store.base
    if names.hide or base:
        why = f"it is an overlay of {base}" if base else f"{names.hide[0]!r} can only be hidden where files are read"
        raise KgInputError(f"{old} is built already, and {why}; name the files of the graph in its place")
    own = OwnNames.model_validate(meta.get(META, {})).model_dump(mode="json")
    file = Path(shutil.copyfile(path, out / FILE))
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"ATTACH {quoted(file)} AS kg; CREATE TABLE terms(key VARCHAR)")
        options = KgOptions.model_validate({**meta["options"], "names": names})
        known = give_names(connection, file, options, monitor)[META]
        for section, given in own.items():
            if section != "hide":
                given |= {key: [*dict.fromkeys((*given.get(key, ()), *words))] for key, words in known[section].items()}
        connection.execute("DELETE FROM kg.meta WHERE key IN ($1, 'options')", [META])
        write_meta(connection, "kg", {META: own, "options": {**meta["options"], "names": own}})
    return dict(meta["counts"])
