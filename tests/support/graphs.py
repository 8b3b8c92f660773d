"""Graphs in a store in memory: a small one by hand, and random ones that are plain Python too, for `naive_logic`."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
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
    """The graph by hand in a store in memory; close it."""
    return store_of(graph_by_hand(), relation_datatype="mixed")


def graph_by_hand() -> Graph:
    """TRIPLES with their qualifiers and TYPES."""
    values = [tail for _, _, tail, _ in TRIPLES] + [value for *_, said in TRIPLES for _, value in said]
    entities = {head for head, *_ in TRIPLES} | {key for pair in [*TYPES, *SUPERS] for key in pair}
    entities |= {value for value in values if isinstance(value, str)}
    literals = sorted({value for value in values if not isinstance(value, str)})
    relations = sorted({key for _, key, _, said in TRIPLES for key in (key, *(name for name, _ in said))})
    ids: dict[Value, int] = {key: i for i, key in enumerate([*sorted(entities), *literals])}
    order = sorted((ids[h], relations.index(r), ids[t], said) for h, r, t, said in TRIPLES)
    return Graph(
        entities={ids[key]: key for key in entities},
        literals={
            ids[value]: (value[0], kind if kind.startswith("@") else XSD + kind, detail[0] if detail else None)
            for value in literals
            for _, kind, *detail in [value]
        },
        triples=[(head, relations[relation], tail) for head, relation, tail, _ in order],
        qualifiers=[(n, 0, key, ids[value]) for n, (*_, said) in enumerate(order) for key, value in said],
        types=[(ids[one], ids[kind]) for one, kind in TYPES],
        supers={ids[one]: {ids[above] for below, above in SUPERS if below == one} for one, _ in SUPERS},
        relations={key: i for i, key in enumerate(relations)},
    )


ENTITIES = ["m.0a", "m.0b", "Q3", "Q4", "an entity (with a name)", "urn:x:6", "5", "film.star", "$1", "x') OR 1=1; --"]
CLASSES = ["film.film", "film.short_film", "Q5", "thing"]
SUBCLASSES = {"film.short_film": ["film.film", "thing"], "film.film": ["thing"]}
LINKS = ["film.film.actor", "P40", "it's; DROP TABLE triples", "R"]
NUMBERS, BEGIN, END, NAMES = "P2048", "marriage.from", "marriage.to", "title"
QUALIFIERS = ["P580", "P582", "P585", "P805"]
RELATIONS = sorted([*LINKS, NUMBERS, BEGIN, END, NAMES, *QUALIFIERS])
QUANTITIES = [
    *[(text, XSD + "integer", None) for text in ("5", "7", "2000")],
    *[("5.0", XSD + "decimal", None), ("-1.5", XSD + "double", None), ("7", XSD + "integer", "Q99")],
    *[("180", XSD + "decimal", "Q174728"), ("1.8", XSD + "decimal", "Q11573"), ("2", XSD + "decimal", "Q11573")],
    *[("7", XSD + "integer", "Q200323"), ("0.7", XSD + "decimal", "Q11573")],
    *[("1", XSD + "integer", "Q25267"), ("274.15", XSD + "decimal", "Q11579")],
]
DATES = [
    *[("2000", XSD + "gYear", None), ("2001", XSD + "gYear", None), ("2000-05", XSD + "gYearMonth", None)],
    *[("2000-05-01", XSD + "date", None), ("2000-12-31", XSD + "date", None), ("-0044-03-15", XSD + "date", None)],
    *[("2000-05-01T12:00:00Z", XSD + "dateTime", None), ("1990-01-01T00:00:00Z", XSD + "dateTime", "8gregorian")],
    *[("2000-01-01T00:00:00Z", XSD + "dateTime", "7gregorian"), ("2000-05-07T00:00:00Z", XSD + "dateTime", "10")],
]
TEXTS = [("red", XSD + "string", None), ("red", "@en", None), ("ro't", "@de", None), ("x", XSD + "integer", None)]
LITERALS = [*QUANTITIES, *DATES, *TEXTS]
"""(text, datatype, detail), as the store holds them."""


@dataclass(frozen=True)
class Graph:
    """Nodes by id: keys of entities, and literals; triples (head, relation, tail) and qualifiers by keys and ids.

    relations: the id of each key.
    """

    entities: dict[int, str]
    literals: dict[int, tuple[str, str, str | None]]
    triples: list[tuple[int, str, int]]
    qualifiers: list[tuple[int, int, str, int]] = field(default_factory=list)
    types: list[tuple[int, int]] = field(default_factory=list)
    supers: dict[int, set[int]] = field(default_factory=dict)
    relations: dict[str, int] = field(default_factory=lambda: {key: i for i, key in enumerate(RELATIONS)})

    def only(self, triples: set[int]) -> Graph:
        """The graph with these triples alone; the others lose their ends."""
        kept = [t if i in triples else (-1, "", -1) for i, t in enumerate(self.triples)]
        return replace(self, triples=kept)

    def without(self, entities: set[int], relation: str, triples: set[int]) -> Graph:
        """The graph after an overlay hid these; what hangs on them goes too, and triples are numbered anew."""
        hidden = {self.relations[relation]}
        kept = [
            i
            for i, (head, key, tail) in enumerate(self.triples)
            if i not in triples and key != relation and not {head, tail} & entities
        ]
        number = {i: n for n, i in enumerate(kept)}
        qualifiers = [
            (number[t], statement, key, value)
            for t, statement, key, value in self.qualifiers
            if t in number and key != relation and value not in entities
        ]
        left = [self.triples[i] for i in kept]
        stated = {tail for _, _, tail in left} | {value for *_, value in qualifiers}
        once = {tail for *_, tail in self.triples} | {value for *_, value in self.qualifiers}
        return Graph(
            entities={i: key for i, key in self.entities.items() if i not in entities},
            literals={i: value for i, value in self.literals.items() if i in stated or i not in once},
            triples=left,
            qualifiers=qualifiers,
            types=[(one, kind) for one, kind in self.types if not {one, kind} & entities],
            supers={i: above - entities for i, above in self.supers.items() if i not in entities},
            relations={key: i for key, i in self.relations.items() if i not in hidden},
        )


def random_graph(seed: int, edges: int = 30) -> Graph:
    """A graph of a dozen entities and two dozen literals; of an odd seed one with free ids, as updates leave them."""
    draw = random.Random(seed)
    keys, values = sorted([*ENTITIES, *CLASSES]), sorted(LITERALS, key=lambda one: (one[0], one[1], one[2] or ""))
    size = len(keys) + len(values)
    places = sorted(draw.sample(range(2 * size), size)) if seed % 2 else list(range(size))
    entities, literals = dict(zip(places, keys, strict=False)), dict(zip(places[len(keys) :], values, strict=True))
    free = 3 if seed % 2 else 1
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
    relations = {key: free * i for i, key in enumerate(RELATIONS)}
    return Graph(entities, literals, order, sorted(qualifiers), sorted(types), supers, relations)


def store_of(graph: Graph, relation_datatype: str | None = None) -> KgStore:
    """The graph in a store in memory; close it."""
    connection = duckdb.connect(":memory:", config={"threads": 1})
    fill(connection, graph)
    connection.execute("UPDATE relations SET datatype = ?", [relation_datatype])
    return KgStore(connection, Path("memory"))


def file_of(graph: Graph, path: Path) -> Path:
    """The graph in a file."""
    with duckdb.connect(str(path), config={"threads": 1}) as connection:
        fill(connection, graph)
    return path


def fill(connection: duckdb.DuckDBPyConnection, graph: Graph) -> None:
    """Writes the graph's tables into the database that a connection uses."""
    [(database,)] = connection.execute("SELECT current_database()").fetchall()
    create_tables(connection, database)
    rows = [(i, key, "entity", None, None) for i, key in graph.entities.items()]
    rows += [(i, text, "literal", datatype, detail) for i, (text, datatype, detail) in graph.literals.items()]
    _insert(connection, "entities(id, key, kind, datatype, detail)", rows)
    connection.execute(
        f"UPDATE entities SET number = {NUMBER_SQL}, unit = {UNIT_SQL}, precision = {PRECISION_SQL}, "
        f"calendar = {CALENDAR_SQL} WHERE kind = 'literal'"
    )
    relation = graph.relations
    _insert(connection, "relations(id, key)", [(i, key) for key, i in relation.items()])
    triples = [(i, head, relation[key], tail, 0) for i, (head, key, tail) in enumerate(graph.triples)]
    _insert(connection, "triples", triples)
    _insert(connection, "qualifiers", [(t, s, relation[key], value) for t, s, key, value in graph.qualifiers])
    _insert(connection, "types", graph.types)
    _insert(connection, "supertypes", [(one, above) for one, all_of in graph.supers.items() for above in all_of])
    write_meta(connection, database, {"schema_version": SCHEMA_VERSION, "languages": ["en", ""], "counts": {}})


def _insert(connection: duckdb.DuckDBPyConnection, table: str, rows: list[tuple[object, ...]]) -> None:
    if rows:
        places = ", ".join("(" + ", ".join("?" * len(row)) + ")" for row in rows)
        connection.execute(f"INSERT INTO {table} VALUES {places}", [value for row in rows for value in row])
