"""A graph as another one with things hidden: a copy-on-write overlay, whose file holds what is hidden and no more.

The file has views with the names of the store's tables over the base graph, which is attached read-only beside it and
never written.  `KgStore.open` reads it as a graph: linking, logic, the DKG's export and `kgqa kg …` need not know.
Hidden entities and relations leave holes between the ids; triples are numbered anew without holes, as every graph's
are.  A triple goes when its head, relation or tail does, a literal when nothing states it any more, a qualifier with
its relation or value, and a statement without any of its qualifiers is one without.  Popularity is counted again.
A type that lies above a hidden one stays above those below it.

The content digest of an overlay is that of what is hidden, with the digest of the base in `meta`.  Where the base lies
is written in `volatile/base.json`; an overlay outside a home carries its base in `volatile/base`, since a home's
housekeeping knows of no folder outside.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl

from kgqa_core.errors import ArtifactError
from kgqa_core.kg.attach import BASE, BASE_NOTE, CARRIED, OVERLAY, base_of, home_of, shut_out
from kgqa_core.kg.sql import execute_with, number, quoted
from kgqa_core.kg.store import FILE, KgStore, write_meta
from kgqa_core.store.artifacts import MANIFEST, content_digest, read_manifest, write_json

_HIDDEN = {
    "hidden_entities": "id INTEGER",
    "hidden_relations": "id INTEGER",
    "hidden_triples": "id BIGINT",
    "lost_degree": "id INTEGER, degree BIGINT",
    "requalified": "triple BIGINT",
    "kept_qualifiers": "triple BIGINT, statement INTEGER, relation INTEGER, value INTEGER",
}
"""Tables of an overlay, with ids of the base.  requalified: triples some of whose qualifiers are hidden;
kept_qualifiers: what is left of those, numbered anew."""

_NODE_KEY = "(SELECT key FROM {base}.entities SEMI JOIN hidden_entities USING (id))"

_VIEWS = {
    "numbered": "SELECT t.id AS base, row_number() OVER (ORDER BY t.id) - 1 AS id, head, relation, tail, rank "
    "FROM {base}.triples t ANTI JOIN hidden_triples USING (id)",
    "triples": "SELECT id, head, relation, tail, rank FROM numbered ORDER BY id",
    "entities": "SELECT e.* REPLACE (e.popularity - coalesce(l.degree, 0) AS popularity) FROM {base}.entities e "
    "LEFT JOIN lost_degree l USING (id) ANTI JOIN hidden_entities h ON h.id = e.id",
    "labels": "SELECT * FROM {base}.labels ANTI JOIN hidden_entities USING (id)",
    "aliases": "SELECT * FROM {base}.aliases ANTI JOIN hidden_entities USING (id)",
    "relations": "SELECT * FROM {base}.relations ANTI JOIN hidden_relations USING (id)",
    "relation_labels": "SELECT * FROM {base}.relation_labels ANTI JOIN hidden_relations USING (id)",
    "qualifiers": "SELECT n.id AS triple, q.statement, q.relation, q.value FROM (SELECT * FROM {base}.qualifiers "
    "ANTI JOIN requalified USING (triple) UNION ALL SELECT * FROM kept_qualifiers) q "
    "JOIN numbered n ON n.base = q.triple",
    "types": "SELECT * FROM {base}.types t ANTI JOIN hidden_entities h ON h.id = t.entity "
    "ANTI JOIN hidden_entities g ON g.id = t.type",
    "subtypes": "SELECT * FROM {base}.subtypes t ANTI JOIN hidden_entities h ON h.id = t.type "
    "ANTI JOIN hidden_entities g ON g.id = t.super",
    "supertypes": "SELECT * FROM {base}.supertypes t ANTI JOIN hidden_entities h ON h.id = t.type "
    "ANTI JOIN hidden_entities g ON g.id = t.super",
    "bridges": "SELECT * FROM {base}.bridges b ANTI JOIN hidden_entities h ON h.id = b.entity",
    "amends": f"SELECT a.* FROM {{base}}.amends a ANTI JOIN {_NODE_KEY} s ON s.key = a.subject "
    f"ANTI JOIN {_NODE_KEY} o ON o.key = a.object "
    "ANTI JOIN (SELECT key FROM {base}.relations SEMI JOIN hidden_relations USING (id)) p ON p.key = a.predicate",
    "filtered": "SELECT * FROM {base}.filtered",
    "rejects": "SELECT * FROM {base}.rejects",
}
"""The store's tables as views; `numbered` has the base's number of each triple too."""


@dataclass(frozen=True, slots=True)
class Hidden:
    """What an overlay hides of its base, by ids of the base; what hangs on it goes too."""

    entities: tuple[int, ...] = ()
    relations: tuple[int, ...] = ()
    triples: tuple[int, ...] = ()


def write_overlay(out: Path, *, base: Path, hidden: Hidden, note: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Writes `kg.duckdb` and `volatile/base.json` into `out`, and returns the counts of the graph that is left.

    base: a graph's folder or file, no overlay itself.  note: JSON that goes into `meta.overlay`.
    Raises ArtifactError when the base is no graph, or an overlay.
    """
    with KgStore.open(base) as store:
        if "overlay" in store.meta:
            raise ArtifactError(f"{base} is an overlay already; build on the graph beneath it, {store.base}")
        file, meta = store.path, store.meta
    path = out / FILE
    path.unlink(missing_ok=True)
    with duckdb.connect(":memory:", config={"threads": 2}) as connection:
        run = connection.execute
        run(f"ATTACH {quoted(file)} AS {BASE} (READ_ONLY)")
        run(f"ATTACH {quoted(path)} AS {OVERLAY}")
        shut_out(connection)
        run(f"USE {OVERLAY}")
        for table, columns in _HIDDEN.items():
            run(f"CREATE TABLE {table}({columns})")
        _hide(connection, hidden)
        for name, sql in _VIEWS.items():
            run(f"CREATE VIEW {name} AS {sql.format(base=BASE)}")
        run("CREATE TABLE meta(key VARCHAR, value VARCHAR)")
        counts = _count(connection, meta["counts"])
        sizes = {table: number(connection, f"SELECT count(*) FROM {table}") for table in list(_HIDDEN)[:3]}
        about = {"base": {"digest": graph_digest(file), "name": meta.get("name"), "counts": meta["counts"]}}
        write_meta(connection, OVERLAY, meta | {"counts": counts, "overlay": about | sizes | dict(note or {})})
        run(f"CHECKPOINT {OVERLAY}")
    (out / BASE_NOTE).parent.mkdir(exist_ok=True)
    file, root = file.resolve(), home_of(out)
    within = root is not None and file.is_relative_to(root / "artifacts")
    write_json(out / BASE_NOTE, {"path": str(file.relative_to(root) if root is not None and within else file)})
    return counts


def carry_base(overlay: Path, original: Path | None = None) -> Path:
    """Copies the graph under an overlay into the overlay's folder, which can then be moved alone; the copy's folder.

    original: the overlay in a home that it is a copy of.  The copy of the graph is in `volatile/`, so that the digest
    stays the same.
    Raises ArtifactError when it is no overlay, or its graph is not there.
    """
    base = base_of((original or overlay) / FILE)
    if base is None:
        raise ArtifactError(f"{overlay} is no overlay")
    carried = overlay / CARRIED
    carried.mkdir(parents=True, exist_ok=True)
    for name in (FILE, MANIFEST):
        if (source := base.with_name(name)).is_file():
            shutil.copyfile(source, carried / name)
    write_json(overlay / BASE_NOTE, {"relative": os.path.relpath(carried / FILE, overlay)})
    return carried


def graph_digest(path: Path) -> str:
    """The content digest of a graph: of its manifest, or counted now where there is none."""
    folder = path if path.is_dir() else path.parent
    if (folder / MANIFEST).is_file():
        return str(read_manifest(folder)["digest"])
    return content_digest(folder)


def _hide(connection: duckdb.DuckDBPyConnection, hidden: Hidden) -> None:
    """Fills the tables of what is hidden, and of what is hidden with it."""
    run = connection.execute
    for name, ids in (("entities", hidden.entities), ("relations", hidden.relations), ("triples", hidden.triples)):
        frame = pl.DataFrame({"id": np.unique(np.fromiter(map(int, ids), dtype=np.int64))}, schema={"id": pl.Int64})
        sql = f"INSERT INTO hidden_{name} SELECT id FROM batch SEMI JOIN {BASE}.{name} USING (id) ORDER BY id"
        execute_with(connection, sql, frame)
    run(
        f"""CREATE TEMP TABLE gone AS FROM hidden_triples
            UNION SELECT id FROM {BASE}.triples t SEMI JOIN hidden_relations h ON h.id = t.relation
            UNION SELECT id FROM {BASE}.triples t SEMI JOIN hidden_entities h ON h.id = t.head
            UNION SELECT id FROM {BASE}.triples t SEMI JOIN hidden_entities h ON h.id = t.tail"""
    )
    run("DELETE FROM hidden_triples")
    run("INSERT INTO hidden_triples SELECT id FROM gone ORDER BY id")
    run("DROP TABLE gone")
    _hide_qualifiers(connection)
    run(
        f"""INSERT INTO hidden_entities
            WITH stated AS (SELECT tail AS id FROM {BASE}.triples ANTI JOIN hidden_triples USING (id)
                            UNION SELECT value FROM {BASE}.qualifiers q ANTI JOIN requalified USING (triple)
                            ANTI JOIN hidden_triples h ON h.id = q.triple UNION SELECT value FROM kept_qualifiers),
                 before AS (SELECT tail AS id FROM {BASE}.triples SEMI JOIN hidden_triples USING (id)
                            UNION SELECT value FROM {BASE}.qualifiers)
            SELECT id FROM {BASE}.entities SEMI JOIN before USING (id) ANTI JOIN stated USING (id)
            ANTI JOIN hidden_entities USING (id) WHERE kind = 'literal' ORDER BY id"""
    )
    run(
        f"""INSERT INTO lost_degree SELECT id, count(*) FROM (
              SELECT head AS id FROM {BASE}.triples t SEMI JOIN hidden_triples h ON h.id = t.id
              UNION ALL SELECT tail FROM {BASE}.triples t SEMI JOIN hidden_triples h ON h.id = t.id)
            ANTI JOIN hidden_entities USING (id) GROUP BY id ORDER BY id"""
    )


def _hide_qualifiers(connection: duckdb.DuckDBPyConnection) -> None:
    """Takes hidden relations and values out of qualifiers; sets that become equal are one, as in every graph."""
    run = connection.execute
    run(
        f"""INSERT INTO requalified
            WITH touched AS (SELECT triple FROM {BASE}.qualifiers q SEMI JOIN hidden_relations h ON h.id = q.relation
                             UNION SELECT triple FROM {BASE}.qualifiers q SEMI JOIN hidden_entities h ON h.id = q.value)
            SELECT triple FROM touched ANTI JOIN hidden_triples h ON h.id = triple ORDER BY triple"""
    )
    run(
        f"""INSERT INTO kept_qualifiers
            WITH left_over AS (SELECT q.* FROM {BASE}.qualifiers q SEMI JOIN requalified USING (triple)
                               ANTI JOIN hidden_relations h ON h.id = q.relation
                               ANTI JOIN hidden_entities e ON e.id = q.value),
                 sets AS (SELECT triple, statement, list((relation, value) ORDER BY relation, value) AS pairs
                          FROM left_over GROUP BY ALL),
                 remaining AS (SELECT triple, pairs, row_number() OVER (PARTITION BY triple ORDER BY min(statement)) - 1
                          AS statement FROM sets GROUP BY triple, pairs),
                 flat AS (SELECT triple, statement, unnest(pairs) AS pair FROM remaining)
            SELECT triple, statement, pair[1], pair[2] FROM flat ORDER BY ALL"""
    )


def _count(connection: duckdb.DuckDBPyConnection, before: Mapping[str, int]) -> dict[str, int]:
    """The base's counts, less what is hidden of each."""
    counts = dict(before)
    for name, rows in _COUNTED.items():
        there, left = (
            sum(number(connection, f"SELECT count({what}) FROM {prefix}{table} {where}") for table, what, where in rows)
            for prefix in (f"{BASE}.", f"{OVERLAY}.")
        )
        counts[name] = left if name in _DISTINCT else counts.get(name, there) - (there - left)
    return counts


_DISTINCT = ("types",)
_COUNTED = {
    "entities": [("entities", "*", "WHERE kind = 'entity'")],
    "literals": [("entities", "*", "WHERE kind = 'literal'")],
    "relations": [("relations", "*", "")],
    "triples": [("triples", "*", "")],
    "labels": [("labels", "label", ""), ("relation_labels", "label", "")],
    "aliases": [("aliases", "*", "")],
    "descriptions": [("labels", "description", "")],
    "qualifiers": [("qualifiers", "*", "")],
    "types": [("types", "DISTINCT type", "")],
    "supertypes": [("supertypes", "*", "")],
    "bridges": [("bridges", "*", "")],
}
"""Count of a build to the rows that it counts: table, what of it, condition."""
