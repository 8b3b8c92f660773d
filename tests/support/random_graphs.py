"""Small random graphs for logical forms: in a store, and as plain Python for `naive_logic`."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from kgqa_core.kg.literals import CALENDAR_SQL, NUMBER_SQL, PRECISION_SQL, UNIT_SQL
from kgqa_core.kg.store import SCHEMA_VERSION, KgStore, create_tables, write_meta

XSD = "http://www.w3.org/2001/XMLSchema#"
ENTITIES = ["m.0a", "m.0b", "Q3", "Q4", "an entity (with a name)", "urn:x:6", "5", "film.star"]
CLASSES = ["film.film", "film.short_film", "Q5", "thing"]
SUBCLASSES = {"film.short_film": ["film.film", "thing"], "film.film": ["thing"]}
LINKS = ["film.film.actor", "P40", "has part", "R"]
NUMBERS, BEGIN, END, NAMES = "P2048", "marriage.from", "marriage.to", "title"
QUALIFIERS = ["P580", "P582", "P585", "P805"]
RELATIONS = sorted([*LINKS, NUMBERS, BEGIN, END, NAMES, *QUALIFIERS])
QUANTITIES = [
    *[(text, XSD + "integer", None) for text in ("5", "7", "2000")],
    *[("5.0", XSD + "decimal", None), ("-1.5", XSD + "double", None), ("7", XSD + "integer", "Q99")],
    *[("180", XSD + "decimal", "Q174728"), ("1.8", XSD + "decimal", "Q11573"), ("2", XSD + "decimal", "Q11573")],
    *[("1", XSD + "integer", "Q25267"), ("274.15", XSD + "decimal", "Q11579")],
]
DATES = [
    *[("2000", XSD + "gYear", None), ("2001", XSD + "gYear", None), ("2000-05", XSD + "gYearMonth", None)],
    *[("2000-05-01", XSD + "date", None), ("2000-12-31", XSD + "date", None), ("-0044-03-15", XSD + "date", None)],
    *[("2000-05-01T12:00:00Z", XSD + "dateTime", None), ("1990-01-01T00:00:00Z", XSD + "dateTime", "8gregorian")],
    *[("2000-01-01T00:00:00Z", XSD + "dateTime", "7gregorian"), ("2000-05-07T00:00:00Z", XSD + "dateTime", "10")],
]
TEXTS = [("red", XSD + "string", None), ("red", "@en", None), ("rot", "@de", None), ("x", XSD + "integer", None)]
LITERALS = [*QUANTITIES, *DATES, *TEXTS]
"""(text, datatype, detail), as the store holds them."""


@dataclass(frozen=True)
class Graph:
    """Nodes by id: keys of entities, and literals; triples (head, relation, tail) and qualifiers by keys and ids."""

    entities: dict[int, str]
    literals: dict[int, tuple[str, str, str | None]]
    triples: list[tuple[int, str, int]]
    qualifiers: list[tuple[int, int, str, int]] = field(default_factory=list)
    types: list[tuple[int, int]] = field(default_factory=list)
    supers: dict[int, set[int]] = field(default_factory=dict)

    def only(self, triples: set[int]) -> Graph:
        """The graph with these triples alone; the others lose their ends."""
        kept = [t if i in triples else (-1, "", -1) for i, t in enumerate(self.triples)]
        return Graph(self.entities, self.literals, kept, self.qualifiers, self.types, self.supers)


def random_graph(seed: int, edges: int = 30) -> Graph:
    """A graph of a dozen entities and two dozen literals."""
    draw = random.Random(seed)
    entities = dict(enumerate(sorted([*ENTITIES, *CLASSES])))
    literals = dict(enumerate(sorted(LITERALS, key=lambda one: (one[0], one[1], one[2] or "")), start=len(entities)))
    ids = {key: i for i, key in entities.items()}
    people = [ids[key] for key in ENTITIES]
    of = {tuple(value): i for i, value in literals.items()}
    triples: set[tuple[int, str, int]] = set()
    for _ in range(edges):
        relation = draw.choice([*LINKS, *LINKS, NUMBERS, BEGIN, END, NAMES])
        pool = {NUMBERS: QUANTITIES, BEGIN: DATES, END: DATES, NAMES: TEXTS}.get(relation)
        tail = of[draw.choice(pool)] if pool and draw.random() < 0.95 else draw.choice(people)
        triples.add((draw.choice(people), relation, tail))
    order = sorted(triples, key=lambda t: (t[0], RELATIONS.index(t[1]), t[2]))
    qualifiers: set[tuple[int, int, str, int]] = set()
    for triple in range(len(order)):
        for statement in range(draw.choice([0, 0, 1, 2])):
            for _ in range(draw.choice([1, 2, 2, 3])):
                relation = draw.choice(QUALIFIERS)
                value = draw.choice(people) if relation == "P805" else of[draw.choice(DATES)]
                qualifiers.add((triple, statement, relation, value))
    types = {(draw.choice(people), ids[draw.choice(CLASSES)]) for _ in range(8)}
    supers = {ids[key]: {ids[above] for above in SUBCLASSES.get(key, [])} for key in CLASSES}
    return Graph(entities, literals, order, sorted(qualifiers), sorted(types), supers)


def store_of(graph: Graph) -> KgStore:
    """The graph in a store in memory; close it."""
    connection = duckdb.connect(":memory:", config={"threads": 1})
    create_tables(connection, "memory")
    rows = [(i, key, "entity", None, None) for i, key in graph.entities.items()]
    rows += [(i, text, "literal", datatype, detail) for i, (text, datatype, detail) in graph.literals.items()]
    relation = {key: i for i, key in enumerate(RELATIONS)}
    _insert(connection, "entities(id, key, kind, datatype, detail)", rows)
    connection.execute(
        f"UPDATE entities SET number = {NUMBER_SQL}, unit = {UNIT_SQL}, precision = {PRECISION_SQL}, "
        f"calendar = {CALENDAR_SQL} WHERE kind = 'literal'"
    )
    _insert(connection, "relations(id, key)", [(i, key) for key, i in relation.items()])
    triples = [(i, head, relation[key], tail, 0) for i, (head, key, tail) in enumerate(graph.triples)]
    _insert(connection, "triples", triples)
    _insert(connection, "qualifiers", [(t, s, relation[key], value) for t, s, key, value in graph.qualifiers])
    _insert(connection, "types", graph.types)
    _insert(connection, "supertypes", [(one, above) for one, all_of in graph.supers.items() for above in all_of])
    write_meta(connection, "memory", {"schema_version": SCHEMA_VERSION, "languages": ["en", ""], "counts": {}})
    return KgStore(connection, Path("memory"))


def _insert(connection: duckdb.DuckDBPyConnection, table: str, rows: list[tuple[object, ...]]) -> None:
    if rows:
        places = ", ".join("(" + ", ".join("?" * len(row)) + ")" for row in rows)
        connection.execute(f"INSERT INTO {table} VALUES {places}", [value for row in rows for value in row])
