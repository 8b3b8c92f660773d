"""What becomes of staged statements: roles, ranks, qualifiers, types; and the sum that is checked."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from kgqa_core.config import KgOptions
from kgqa_core.kg.ingest import interpret
from kgqa_core.kg.store import KgStore, create_tables
from tests.support.staged import EN, LABEL, STRING, graph, stage

TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"


@pytest.fixture
def make(tmp_path: Path):
    """Builds a graph from tuples; returns the open store and the counts."""
    stores = []

    def _make(*args, options=None, **kwargs):
        path = tmp_path / f"{len(stores)}.duckdb"
        counts = graph(path, options or KgOptions(), *args, **kwargs)
        stores.append(KgStore.open(path))
        return stores[-1], counts

    yield _make
    for store in stores:
        store.close()


def facts(store):
    """Triples by key, with their rank."""
    return store.connection.execute(
        "SELECT h.key, r.key, t.key, t3.rank FROM triples t3 JOIN entities h ON h.id = head "
        "JOIN relations r ON r.id = relation JOIN entities t ON t.id = tail ORDER BY ALL"
    ).fetchall()


def qualifiers(store):
    """Qualifiers by key: head, statement, relation, value."""
    return store.connection.execute(
        "SELECT h.key, t.key, q.statement, r.key, v.key FROM qualifiers q JOIN triples x ON x.id = q.triple "
        "JOIN entities h ON h.id = head JOIN entities t ON t.id = tail "
        "JOIN relations r ON r.id = q.relation JOIN entities v ON v.id = q.value ORDER BY ALL"
    ).fetchall()


def filtered(store):
    return dict(store.connection.execute("FROM filtered").fetchall())


def check_sum(counts, statements):
    parts = ("duplicates", "labels", "aliases", "descriptions", "type_statements", "filtered", "triples")
    assert sum(counts[part] for part in parts) - counts["qualifier_triples"] == statements


def test_a_name_needs_text_and_a_type_an_entity(make):
    store, counts = make([
        ("a", LABEL, ("A", EN)), ("a", LABEL, "b"), ("a", TYPE, "c"), ("a", TYPE, ("c", STRING)), ("a", "r", "b"),
        ("a", "r", "b"),
    ])  # fmt: skip
    assert facts(store) == [
        ("a", TYPE, "c", 0), ("a", TYPE, "c", 0), ("a", LABEL, "b", 0), ("a", "r", "b", 0),
    ]  # fmt: skip
    assert counts["labels"] == 1 and counts["duplicates"] == 1 and counts["types"] == 1
    check_sum(counts, 6)


def test_types_that_are_no_triples_are_counted(make):
    store, counts = make([("a", TYPE, "c"), ("a", "r", "b")], options=KgOptions(types_as_triples=False))
    assert facts(store) == [("a", "r", "b", 0)] and counts["type_statements"] == 1
    assert store.connection.execute("SELECT count(*) FROM types").fetchone() == (1,)
    check_sum(counts, 2)


RANKED = [
    ("a", "mayor", "now", 1), ("a", "mayor", "before", 0), ("a", "mayor", "never", -1), ("a", "in", "x", 0),
    ("a", "in", "y", -1), ("b", "mayor", "old", 0), ("b", "mayor", "older", 0), ("a", "in", "x", -1),
]  # fmt: skip


@pytest.mark.parametrize(
    ("ranks", "stay", "rules"),
    [
        ("truthy", {"now": 1, "x": 0, "old": 0, "older": 0}, {"rank: deprecated": 3, "rank: not preferred": 1}),
        ("normal", {"now": 1, "before": 0, "x": 0, "old": 0, "older": 0}, {"rank: deprecated": 3}),
        ("all", {"now": 1, "before": 0, "never": -1, "x": 0, "y": -1, "old": 0, "older": 0}, {}),
    ],
)
def test_ranks_decide_what_stays_and_the_rest_is_counted(make, ranks, stay, rules):
    store, counts = make(RANKED, options=KgOptions(ranks=ranks))
    assert {tail: rank for _, _, tail, rank in facts(store)} == stay
    assert filtered(store) == rules
    assert counts["duplicates"] == (1 if ranks == "all" else 0)
    check_sum(counts, len(RANKED))


QUALIFIED = [
    ("a", "held", "mayor"), ("a", "held", "mayor"), ("a", "held", "mayor"), ("a", "held", "judge"),
    ("a", "held", "mayor"), ("a", "held", "mayor"),
]  # fmt: skip
SETS = [
    (0, "start", ("2003", STRING)), (0, "end", ("2005", STRING)), (1, "start", ("1999", STRING)),
    (2, "end", ("2005", STRING)), (2, "start", ("2003", STRING)), (2, "start", ("2003", STRING)),
    (3, "start", ("2003", STRING)), (5, "end", ("2005", STRING)),
]  # fmt: skip


def test_distinct_sets_of_qualifiers_are_numbered_within_their_triple(make):
    store, counts = make(QUALIFIED, SETS)
    assert qualifiers(store) == [
        ("a", "judge", 0, "start", "2003"),
        ("a", "mayor", 0, "end", "2005"),
        ("a", "mayor", 1, "end", "2005"),
        ("a", "mayor", 1, "start", "2003"),
        ("a", "mayor", 2, "start", "1999"),
    ]
    assert counts["qualifiers"] == 5 and counts["duplicates"] == 4
    assert store.relation_keys() == ["end", "held", "start"]
    check_sum(counts, 6)


def test_the_order_of_statements_and_qualifiers_does_not_matter(make):
    one, _ = make(QUALIFIED, SETS)
    order = [4, 2, 0, 5, 3, 1]
    two, _ = make([QUALIFIED[i] for i in order], [(order.index(n), p, v) for n, p, v in reversed(SETS)])
    assert qualifiers(one) == qualifiers(two) and facts(one) == facts(two)


def test_qualifiers_find_their_statement_by_name(make):
    store, counts = make(QUALIFIED[:4], [("s", "start", "x"), ("nobody", "start", "x"), (3, "end", "y")], [(0, "s")])
    assert qualifiers(store) == [("a", "judge", 0, "end", "y"), ("a", "mayor", 0, "start", "x")]
    assert filtered(store) == {"qualifier without statement": 1}
    check_sum(counts, 4)


def test_qualifiers_go_with_their_statement(make):
    statements = [("a", "r", "b", -1), ("a", LABEL, ("A", EN)), ("a", "r", "c"), ("a", "odd", "d")]
    store, counts = make(
        statements,
        [(0, "q", "x"), (1, "q", "x"), (2, "q", "x"), (2, "odd", "z"), (3, "q", "x"), (2, "r", "w")],
        options=KgOptions(drop_relations=("odd",), relations=("r",)),
    )
    assert qualifiers(store) == [("a", "c", 0, "q", "x"), ("a", "c", 0, "r", "w")]
    assert filtered(store) == {
        "rank: deprecated": 1, "relation: dropped": 1, "qualifier of a statement left out": 2,
        "qualifier of a name or type": 1, "qualifier, relation: dropped": 1,
    }  # fmt: skip
    assert store.resolve(["z"]) == {"z": []}
    check_sum(counts, 4)


def test_qualifiers_that_are_not_wanted_are_counted(make):
    store, counts = make(QUALIFIED, SETS, options=KgOptions(qualifiers="none"))
    assert qualifiers(store) == [] and filtered(store) == {"qualifiers: not wanted": 8}
    assert store.relation_keys() == ["held"]
    check_sum(counts, 6)


def test_qualifiers_become_triples_with_relations_named_after_both(make):
    statements = [*QUALIFIED, ("held", LABEL, ("position held", EN)), ("start", LABEL, ("start time", EN)),
                  ("a", "held/start", ("1999", STRING))]  # fmt: skip
    store, counts = make(statements, SETS, options=KgOptions(qualifiers="triples"))
    assert facts(store) == [
        ("a", "held", "judge", 0), ("a", "held", "mayor", 0), ("a", "held/end", "2005", 0),
        ("a", "held/start", "1999", 0), ("a", "held/start", "2003", 0),
    ]  # fmt: skip
    assert counts["qualifier_triples"] == 2 and counts["qualifiers"] == 5
    assert dict(zip(store.relation_keys(), store.relation_names(), strict=True)) == {
        "end": "end", "held": "position held", "held/end": "held / end", "held/start": "position held / start time",
        "start": "start time",
    }  # fmt: skip
    check_sum(counts, 9)


def test_supertypes_are_closed_over_cycles_and_types_in_use(make):
    sub = "http://www.w3.org/2000/01/rdf-schema#subClassOf"
    store, counts = make([
        ("x", TYPE, "a"), ("a", sub, "b"), ("b", sub, "c"), ("c", sub, "a"), ("c", sub, "d"), ("u", sub, "d"),
        ("y", TYPE, "u"),
    ])  # fmt: skip
    keys = store.entity_keys(range(20))
    found = store.connection.execute("FROM supertypes").fetchall()
    assert [(keys[a], keys[b]) for a, b in found] == [("a", "b"), ("a", "c"), ("a", "d"), ("u", "d")]
    assert counts["supertypes"] == 4


def test_the_closure_of_types_is_the_same_in_pieces():
    with duckdb.connect(":memory:") as connection:
        connection.execute("ATTACH ':memory:' AS kg")
        create_tables(connection, "kg")
        connection.execute("INSERT INTO kg.types SELECT 1000 + i, i FROM range(50) t(i)")
        connection.execute("INSERT INTO kg.subtypes SELECT i, (i * 7 + 3) % 60 FROM range(60) t(i)")
        found = []
        for chunk in (7, 5000):
            interpret.close_types(connection, chunk)
            found.append(connection.execute("FROM kg.supertypes ORDER BY ALL").fetchall())
            connection.execute("DELETE FROM kg.supertypes")
        assert found[0] == found[1] and len(found[0]) > 100


def test_a_chain_of_types_takes_a_bounded_number_of_rows_for_each(make):
    sub = "http://www.w3.org/2000/01/rdf-schema#subClassOf"
    chain = [(f"t{number:04}", sub, f"t{number + 1:04}") for number in range(4_000)]
    store, counts = make([*chain, *((f"e{number}", TYPE, f"t{number:04}") for number in range(4_000))])
    levels = interpret.CLOSURE_LEVELS
    assert counts["supertypes"] == 4_000 * levels - sum(range(levels)) < 500_000
    assert counts["types_deeper"] == 4_000 - levels
    keys = dict(store.connection.execute("SELECT key, id FROM entities").fetchall())
    above = store.connection.execute("SELECT super FROM supertypes WHERE type = $1", [keys["t0007"]]).fetchall()
    assert {key for (key,) in above} == {keys[f"t{7 + level:04}"] for level in range(1, levels + 1)}


@pytest.mark.parametrize("levels", [1, 2, 100])
def test_levels_of_supertypes_are_the_nearest_ones(levels):
    with duckdb.connect(":memory:") as connection:
        connection.execute("ATTACH ':memory:' AS kg")
        create_tables(connection, "kg")
        connection.execute("INSERT INTO kg.types VALUES (100, 0), (101, 5)")
        pairs = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 3), (5, 0), (4, 0)]
        connection.executemany("INSERT INTO kg.subtypes VALUES (?, ?)", pairs)
        deeper = interpret.close_types(connection, levels=levels)
        near, expected = {start: {start} for start in (0, 5)}, set()
        for start, reached in near.items():
            for _ in range(levels):
                reached |= {above for below, above in pairs if below in reached}
            expected |= {(start, above) for above in reached - {start}}
        assert set(connection.execute("FROM kg.supertypes").fetchall()) == expected
        assert deeper == {1: 2, 2: 1, 100: 0}[levels]


def test_nothing_is_copied_where_nothing_can_be_left_out():
    with duckdb.connect(":memory:") as connection:
        staged = stage(connection, [("a", "r", "b")])
        interpret.select(connection, KgOptions(), staged)
        tables = connection.execute(
            "SELECT table_name FROM duckdb_tables() WHERE table_name LIKE '%judged%'"
        ).fetchall()
        assert tables == []


@pytest.mark.parametrize("ranked", [False, True])
def test_many_statements_are_told_apart_as_grouping_does(ranked):
    with duckdb.connect(":memory:", config={"threads": 4, "preserve_insertion_order": True}) as connection:
        staged = stage(connection, [("a", "r", "b", int(ranked))])
        run = connection.execute
        run("DELETE FROM raw")
        run(
            f"INSERT INTO raw SELECT i, hash(i, 1) % 30000, hash(i, 2) % 20, hash(i, 3) % 3, hash(i, 4) % {1 + ranked} "
            "FROM range(600000) t(i)"
        )
        counts = interpret.select(connection, KgOptions(ranks="all"), staged)
        wanted = run("SELECT subject, predicate, object, max(rank) FROM raw GROUP BY ALL ORDER BY ALL").fetchall()
        found = run("SELECT subject, predicate, object, rank FROM statements ORDER BY ALL").fetchall()
        assert found == wanted and counts["duplicates"] == 600_000 - len(wanted) > 10_000
