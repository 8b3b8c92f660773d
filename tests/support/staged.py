"""Staged statements and a graph encoded from them, made by hand: what `kg.ingest.interpret` works between."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from kgqa_core.config import KgOptions
from kgqa_core.kg.ingest import interpret
from kgqa_core.kg.store import SCHEMA_VERSION, create_tables, write_meta
from kgqa_core.monitor import QUIET, Monitor

Term = str | tuple[str, str] | tuple[str, str, str | None]
"""An entity's key, or a literal: (text, datatype[, detail])."""

EN = "@en"
STRING = "http://www.w3.org/2001/XMLSchema#string"
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"


@dataclass(frozen=True)
class Staged:
    """What the staging knows of its statements."""

    ranked: bool
    qualified: bool
    named: bool
    distinct: bool = False


def stage(
    connection: duckdb.DuckDBPyConnection,
    statements: Sequence[tuple[Any, ...]],
    qualifiers: Iterable[tuple[int | str, str, Term]] = (),
    names: Iterable[tuple[int, str]] = (),
    filtered: Iterable[tuple[str, int]] = (),
) -> Staged:
    """Interns statements (subject, predicate, object[, rank]) and qualifiers (place or name, predicate, value)."""
    qualifiers = list(qualifiers)
    triples = [(*s[:3], s[3] if len(s) > 3 else 0) for s in statements]
    terms: set[Term] = {t for s in triples for t in s[:3]} | {t for q in qualifiers for t in q[1:]}
    entities = sorted((t for t in terms if isinstance(t, str)), key=str.encode)
    literals = sorted({_literal(t) for t in terms if not isinstance(t, str)}, key=lambda t: (t[0], t[1], t[2] or ""))
    kinds = sorted({t[1:] for t in literals}, key=lambda k: (k[0], k[1] or ""))
    tids: dict[Any, int] = {t: i for i, t in enumerate([*entities, *literals])}
    tid = {t: tids[t if isinstance(t, str) else _literal(t)] for t in terms}
    run = connection.execute
    run("CREATE TABLE terms(tid INTEGER, key VARCHAR, tag INTEGER)")
    run("CREATE TABLE tags(tag INTEGER, datatype VARCHAR, detail VARCHAR)")
    run("CREATE TABLE raw(n BIGINT, subject INTEGER, predicate INTEGER, object INTEGER, rank TINYINT)")
    run("CREATE TABLE raw_qualifiers(n BIGINT, name VARCHAR, predicate INTEGER, object INTEGER)")
    run("CREATE TABLE statement_names(n BIGINT, name VARCHAR)")
    run("CREATE TABLE filtered(rule VARCHAR, statements BIGINT)")
    tagged = [(t, 0) for t in entities] + [(t[0], kinds.index(t[1:]) + 1) for t in literals]
    _insert(run, "terms", [(i, *one) for i, one in enumerate(tagged)])
    _insert(run, "tags", [(0, None, None), *((i, *kind) for i, kind in enumerate(kinds, start=1))])
    _insert(run, "raw", [(n, tid[s], tid[p], tid[o], rank) for n, (s, p, o, rank) in enumerate(triples)])
    _insert(
        run,
        "raw_qualifiers",
        [(*((n, None) if isinstance(n, int) else (None, n)), tid[p], tid[v]) for n, p, v in qualifiers],
    )
    _insert(run, "statement_names", list(names))
    _insert(run, "filtered", list(filtered))
    return Staged(any(s[3] for s in triples), bool(qualifiers), any(isinstance(q[0], str) for q in qualifiers))


def graph(path: Path, options: KgOptions, *args: Any, monitor: Monitor = QUIET, **kwargs: Any) -> dict[str, int]:
    """Stages, selects, encodes (as simply as can be) and finishes a graph in a file; the counts of the meaning."""
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"ATTACH '{path}' AS kg")
        create_tables(connection, "kg")
        staged = stage(connection, *args, **kwargs)
        counts = interpret.select(connection, options, staged, monitor)
        encode(connection, counts)
        counts |= interpret.finish(connection, options, monitor)
        meta = {"schema_version": SCHEMA_VERSION, "name": options.name, "counts": counts}
        write_meta(connection, "kg", meta | {"languages": [lang.casefold() for lang in options.languages]})
        connection.execute("DETACH kg")
    return counts


def encode(connection: duckdb.DuckDBPyConnection, counts: dict[str, int]) -> None:
    """The plainest encoding: ids of the surviving terms in order."""
    run = connection.execute
    run("""CREATE TABLE ids AS SELECT tid, row_number() OVER (ORDER BY tid) - 1 AS id FROM (
             SELECT subject AS tid FROM facts UNION SELECT object FROM facts
             UNION SELECT subject FROM statements WHERE role IN ('type', 'subtype')
             UNION SELECT object FROM statements WHERE role IN ('type', 'subtype')
             UNION SELECT value FROM kept_qualifiers
             UNION SELECT subject FROM texts WHERE subject NOT IN (SELECT tid FROM relation_terms))""")
    run("CREATE TABLE relation_ids AS SELECT tid, row_number() OVER (ORDER BY key) - 1 AS id FROM relation_terms")
    run(
        "INSERT INTO kg.relations SELECT id, key, 'mixed' FROM relation_terms JOIN relation_ids USING (tid) ORDER BY id"
    )
    run("""INSERT INTO kg.triples SELECT row_number() OVER (ORDER BY s.id, p.id, o.id) - 1, s.id, p.id, o.id, f.rank
           FROM facts f JOIN ids s ON s.tid = f.subject JOIN relation_ids p ON p.tid = f.predicate
           JOIN ids o ON o.tid = f.object""")
    run("""INSERT INTO kg.entities(id, key, kind, datatype, unit, popularity)
           SELECT id, key, CASE tag WHEN 0 THEN 'entity' ELSE 'literal' END, datatype, detail,
                  (SELECT count(*) FROM kg.triples WHERE head = ids.id OR tail = ids.id)
           FROM ids JOIN terms USING (tid) LEFT JOIN tags USING (tag) ORDER BY id""")
    names = """(SELECT t.subject AS tid, role, key, CASE WHEN datatype LIKE '@%' THEN datatype[2:] ELSE '' END AS lang
               FROM texts t JOIN terms ON terms.tid = t.object JOIN tags USING (tag))"""
    run(f"""INSERT INTO kg.labels SELECT id, lang, min(key) FILTER (role = 'label'),
              min(key) FILTER (role = 'description') FROM {names} JOIN ids USING (tid)
              WHERE role IN ('label', 'description') GROUP BY id, lang""")
    run(f"INSERT INTO kg.aliases SELECT id, lang, key FROM {names} JOIN ids USING (tid) WHERE role = 'alias'")
    run(f"""INSERT INTO kg.relation_labels SELECT id, lang, min(key) FROM {names} JOIN relation_ids USING (tid)
            WHERE role = 'label' GROUP BY id, lang""")
    for name, sql in {
        "triples": "SELECT count(*) FROM kg.triples",
        "entities": "SELECT count(*) FROM kg.entities WHERE kind = 'entity'",
    }.items():
        counts[name] = run(sql).fetchone()[0]  # type: ignore[index]


def _literal(term: Term) -> tuple[str, str, str | None]:
    return (term[0], term[1], term[2] if len(term) > 2 else None)


def _insert(run: Any, table: str, rows: list[tuple[Any, ...]]) -> None:
    if rows:
        marks = ", ".join("(" + ", ".join("?" * len(row)) + ")" for row in rows)
        run(f"INSERT INTO {table} VALUES {marks}", [value for row in rows for value in row])
