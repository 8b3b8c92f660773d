"""Words of one's own for a graph: other names of its entities, relations, types and values; relations to leave out.

A file of them is YAML, and names things by key or label:

    relations: {reports_to: [boss, manager]}
    types: {Employee: [staff member]}
    hide: [row_number]
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import duckdb
import yaml
from pydantic import BeforeValidator, ValidationError

from kgqa_core.config import KgOptions
from kgqa_core.config.base import Options
from kgqa_core.errors import KgInputError, nearest
from kgqa_core.input_files import read_document
from kgqa_core.kg.store import KgStore

META, SECTIONS = "own_names", ("entities", "relations", "types", "values")
Texts = Annotated[tuple[str, ...], BeforeValidator(lambda one: [one] if one and isinstance(one, str) else one or ())]
Names = Annotated[dict[str, Texts], BeforeValidator(lambda one: one or {})]


class OwnNames(Options):
    """Other names by key or label, and keys of relations that are left out of the graph."""

    entities: Names = {}
    relations: Names = {}
    types: Names = {}
    values: Names = {}
    hide: Texts = ()


def read_names(file: str | None) -> OwnNames:
    """The names in a file; none where there is no file.  Raises KgInputError that says what is wrong with it."""
    if file is None:
        return OwnNames()
    path, needs = Path(file).expanduser(), f"lists of names under {', '.join(OwnNames.model_fields)}: `kgqa kg words`"
    text = read_document(path, KgInputError, needs=needs)
    try:
        return OwnNames.model_validate(yaml.load(text, yaml.BaseLoader) or {})
    except ValidationError as faulty:
        place = ".".join(map(str, faulty.errors()[0]["loc"]))
        problem = f"{place}: {faulty.errors()[0]['msg']}{nearest(place, OwnNames.model_fields)}"
    except (yaml.YAMLError, RecursionError) as faulty:
        problem = f"it is not valid YAML ({' '.join(str(faulty).split())})"
    raise KgInputError(f"{path}: {problem}; it needs {needs}")


def give_names(connection: duckdb.DuckDBPyConnection, path: Path, options: KgOptions) -> dict[str, Any]:
    """Adds `options.names` to the graph in `path`, whose tables are filled; what its meta holds of them.

    Those of entities and types become aliases.  Raises KgInputError that lists names of what the graph does not have.
    """
    if options.names is None:
        return {}
    names, run = read_names(options.names), connection.execute
    staged = run("SELECT key FROM terms WHERE key IN (SELECT unnest($1::VARCHAR[]))", [[*names.hide]]).fetchall()
    run("USE kg")
    store = KgStore(connection, path, {"counts": {"bridges": 1}, "languages": options.languages})
    relations = [*zip(store.relation_keys(), store.relation_names(), strict=True)]
    types = {number for (number,) in run("SELECT type FROM types UNION SELECT super FROM supertypes").fetchall()}
    resolved = store.resolve([*names.entities, *names.types, *names.values])
    known: dict[str, dict[str, tuple[str, ...]]] = {section: {} for section in SECTIONS}
    lost = [("hide", text) for text in {*names.hide} - {key for (key,) in staged} - {*options.drop_relations}]
    rows = []
    for section in SECTIONS:
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
        faults = (f"{options.names}: {section}: {text!r} is not in the graph{near[text]}" for section, text in lost)
        raise KgInputError("\n".join(faults))
    return {META: {**{section: some for section, some in known.items() if some}, "hide": names.hide}}
