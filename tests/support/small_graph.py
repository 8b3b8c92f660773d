"""A small graph about towns, people and offices, by hand: for logical forms with answers that can be counted."""

from __future__ import annotations

from pathlib import Path

import duckdb

from kgqa_core.kg.literals import CALENDAR_SQL, NUMBER_SQL, PRECISION_SQL, UNIT_SQL
from kgqa_core.kg.store import SCHEMA_VERSION, KgStore, create_tables, write_meta

XSD = "http://www.w3.org/2001/XMLSchema#"

Value = str | tuple[str, str] | tuple[str, str, str]
"""An entity's key, or (text, local name of the datatype, or `@` and a language[, detail])."""

TRIPLES: list[tuple[str, str, Value, list[tuple[str, Value]]]] = [
    ("fr", "capital", "paris", []),
    ("de", "capital", "berlin", []),
    ("paris", "in", "fr", []),
    ("lyon", "in", "fr", []),
    ("nice", "in", "fr", []),
    ("berlin", "in", "de", []),
    ("bonn", "in", "de", []),
    ("fr", "borders", "de", []),
    ("de", "borders", "fr", []),
    ("fr", "borders", "es", []),
    ("paris", "population", ("2100000", "integer"), []),
    ("lyon", "population", ("520000.0", "double"), []),
    ("nice", "population", ("340000", "integer"), []),
    ("berlin", "population", ("3600000", "integer"), []),
    ("bonn", "population", ("340000", "integer"), []),
    ("ann", "height", ("180", "decimal", "Q174728"), []),
    ("bob", "height", ("1.9", "decimal", "Q11573"), []),
    ("cid", "height", ("80", "decimal", "Q11570"), []),
    ("ann", "born", ("1952", "gYear"), []),
    ("bob", "born", ("1952-03-11", "date"), []),
    ("cid", "born", ("1960-01-01T00:00:00Z", "dateTime", "9gregorian"), []),
    ("ann", "name", ("Ann", "@en"), []),
    ("bob", "name", ("Ann", "string"), []),
    ("ann", "office", "mayor", [("P580", ("2001", "gYear")), ("P582", ("2008-06-01", "date")), ("of", "paris")]),
    ("bob", "office", "mayor", [("P580", ("2008-06-01", "date")), ("of", "paris")]),
    ("cid", "office", "mayor", [("of", "lyon")]),
    ("t1", "holder", "ann", []),
    ("t1", "term.from", ("2001", "gYear"), []),
    ("t1", "term.to", ("2008", "gYear"), []),
    ("t2", "holder", "bob", []),
    ("t2", "term.from", ("2009", "gYear"), []),
    ("t3", "holder", "cid", []),
]
TYPES = [
    *[(town, "city") for town in ("lyon", "nice", "bonn")],
    *[(town, "capital_city") for town in ("paris", "berlin")],
    *[(country, "country") for country in ("fr", "de", "es")],
    *[(person, "person") for person in ("ann", "bob", "cid")],
]
SUPERS = [("capital_city", "city"), ("capital_city", "place"), ("city", "place"), ("country", "place")]


def small_graph() -> KgStore:
    """The graph in memory; close it."""
    connection = duckdb.connect(":memory:", config={"threads": 1})
    create_tables(connection, "memory")
    literals: set[Value] = set()
    entities: set[str] = {key for pair in [*TYPES, *SUPERS] for key in pair}
    relations: set[str] = set()
    for head, relation, tail, qualifiers in TRIPLES:
        entities.add(head)
        relations |= {relation, *[key for key, _ in qualifiers]}
        for value in (tail, *[value for _, value in qualifiers]):
            (entities if isinstance(value, str) else literals).add(value)  # type: ignore[arg-type]
    ids: dict[Value, int] = {key: i for i, key in enumerate([*sorted(entities), *sorted(literals)])}
    relation_ids = {key: i for i, key in enumerate(sorted(relations))}
    run = connection.execute
    for value, i in ids.items():
        if isinstance(value, str):
            run("INSERT INTO entities(id, key, kind) VALUES (?, ?, 'entity')", [i, value])
        else:
            datatype = value[1] if value[1].startswith("@") else XSD + value[1]
            detail = value[2] if len(value) > 2 else None
            run(
                "INSERT INTO entities(id, key, kind, datatype, detail) VALUES (?, ?, 'literal', ?, ?)",
                [i, value[0], datatype, detail],
            )
    run(
        f"UPDATE entities SET number = {NUMBER_SQL}, unit = {UNIT_SQL}, precision = {PRECISION_SQL}, "
        f"calendar = {CALENDAR_SQL} WHERE kind = 'literal'"
    )
    for key, i in relation_ids.items():
        run("INSERT INTO relations(id, key, datatype) VALUES (?, ?, 'mixed')", [i, key])
    order = sorted((ids[h], relation_ids[r], ids[t], q) for h, r, t, q in TRIPLES)
    for triple, (head, relation, tail, qualifiers) in enumerate(order):
        run("INSERT INTO triples VALUES (?, ?, ?, ?, 0)", [triple, head, relation, tail])
        for key, value in qualifiers:
            run("INSERT INTO qualifiers VALUES (?, 0, ?, ?)", [triple, relation_ids[key], ids[value]])
    for table, pairs in (("types", TYPES), ("supertypes", SUPERS)):
        for one, other in pairs:
            run(f"INSERT INTO {table} VALUES (?, ?)", [ids[one], ids[other]])
    write_meta(connection, "memory", {"schema_version": SCHEMA_VERSION, "languages": ["en", ""], "counts": {}})
    return KgStore(connection, Path("memory"))
