"""Small graphs whose names are chosen for what they do to a mention dictionary."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from kgqa_core.config import LinkingOptions
from kgqa_core.kg.store import SCHEMA_VERSION, create_tables, write_meta
from kgqa_core.linking.dictionary import build
from kgqa_core.linking.tagger import Tagger, open_tagger
from kgqa_core.workspace import Workspace

Maker = Callable[..., Tagger]
"""Makes a tagger from entities, triples and options."""


def write_graph(
    path: Path,
    entities: Mapping[str, Sequence[tuple[str, str]]],
    triples: Sequence[tuple[str, str, str]] = (),
    *,
    types: Sequence[tuple[str, str]] = (),
    views: Mapping[str, int] | None = None,
    descriptions: Mapping[str, str] | None = None,
) -> dict[str, int]:
    """Writes a graph of entities (key → labels and aliases, each as (language, name); the first is the label).

    The id of an entity is its place; returned by key.
    """
    ids = {key: number for number, key in enumerate(entities)}
    relations = {key: number for number, key in enumerate(sorted({relation for _, relation, _ in triples}))}
    degree = dict.fromkeys(ids, 0)
    for head, _, tail in triples:
        degree[head] += 1
        degree[tail] += 1
    path.parent.mkdir(parents=True, exist_ok=True)
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"ATTACH '{path}' AS kg")
        create_tables(connection, "kg")

        def insert(table: str, columns: str, rows: Sequence[tuple[Any, ...]]) -> None:
            if rows:
                names = columns.split(", ")
                connection.register("rows", pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))))
                connection.execute(f"INSERT INTO kg.{table}({columns}) SELECT {columns} FROM rows")
                connection.unregister("rows")

        insert(
            "entities",
            "id, key, kind, popularity, views",
            [(i, key, "entity", degree[key], (views or {}).get(key)) for key, i in ids.items()],
        )
        texts = descriptions or {}
        insert(
            "labels",
            "id, lang, label, description",
            [(ids[key], names[0][0], names[0][1], texts.get(key)) for key, names in entities.items() if names],
        )
        insert(
            "aliases", "id, lang, alias", [(ids[k], lang, name) for k, n in entities.items() for lang, name in n[1:]]
        )
        insert("relations", "id, key, datatype", [(i, key, "entity") for key, i in relations.items()])
        rows = sorted((ids[head], relations[relation], ids[tail]) for head, relation, tail in triples)
        insert("triples", "id, head, relation, tail, rank", [(n, *row, 0) for n, row in enumerate(rows)])
        insert("types", "entity, type", [(ids[entity], ids[kind]) for entity, kind in types])
        counts = {"entities": len(ids), "triples": len(rows), "relations": len(relations)}
        write_meta(connection, "kg", {"schema_version": SCHEMA_VERSION, "languages": ["en", ""], "counts": counts})
    return ids


@pytest.fixture(scope="session")
def tagger(tmp_path_factory: pytest.TempPathFactory) -> Maker:
    """Makes the tagger of a graph, in a folder of its own each time; a graph is written once and copied."""
    made: dict[str, Path] = {}

    def make(
        entities: Mapping[str, Sequence[tuple[str, str]]],
        triples: Sequence[tuple[str, str, str]] = (),
        *,
        types: Sequence[tuple[str, str]] = (),
        views: Mapping[str, int] | None = None,
        descriptions: Mapping[str, str] | None = None,
        **options: Any,
    ) -> Tagger:
        graph = repr((entities, triples, types, views, descriptions))
        if graph not in made:
            made[graph] = folder = tmp_path_factory.mktemp("graph")
            write_graph(folder / "kg.duckdb", entities, triples, types=types, views=views, descriptions=descriptions)
            (folder / "mentions").mkdir()
            build(Workspace(folder / "mentions"), kg=folder)
        folder = shutil.copytree(made[graph], tmp_path_factory.mktemp("tagger") / "graph")
        return open_tagger(folder / "mentions", folder, LinkingOptions(**options))

    return make


def named(*names: str) -> list[tuple[str, str]]:
    """A label and aliases in English."""
    return [("en", name) for name in names]
