"""Batches of every kind become tables of integers, the same whatever the order, the batches or the memory."""

from __future__ import annotations

import random
import sys

import duckdb
import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError
from kgqa_core.kg.formats.base import ENTITY, LITERAL, QUALIFIERS, REJECTS, STATEMENTS, TEXT, StatementBatch, empty
from kgqa_core.kg.formats.ntriples import read_chunk
from kgqa_core.kg.formats.source import Chunk
from kgqa_core.kg.ingest import pack_kernels, staging
from kgqa_core.kg.ingest.intern import Interner
from kgqa_core.kg.ingest.staging import Staging
from kgqa_core.kg.sql import memory_bytes
from tests.support import kg_oracles
from tests.support.examples import examples
from tests.unit.kg.conftest import GRAPH

LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
STRING = "http://www.w3.org/2001/XMLSchema#string"


def frame(rows, schema=STATEMENTS):
    return pl.DataFrame([{**dict.fromkeys(schema), **row} for row in rows], schema=schema)


def fact(subject, predicate, thing, kind=ENTITY, datatype=None, **more):
    return {"subject": subject, "predicate": predicate, "object": thing, "kind": kind, "datatype": datatype, **more}


@pytest.fixture
def stage(tmp_path):
    """Stages batches; returns the connection and what `finish` said."""
    connections = []

    def _stage(*batches, distinct=True, memory="4GB"):
        folder = tmp_path / f"s{len(connections)}"
        folder.mkdir()
        connections.append(duckdb.connect(":memory:"))
        with Staging(connections[-1], folder, KgOptions(memory_limit=memory)) as taken:
            for batch in batches:
                taken.append("file", batch)
            return connections[-1], taken.finish(distinct=distinct)

    yield _stage
    for connection in connections:
        connection.close()


def rows(connection, query):
    return connection.execute(query).fetchall()


def spelled(connection, table="raw"):
    """Statements with their terms, in order."""
    return rows(
        connection,
        f"""SELECT s.key, p.key, o.key, datatype, detail, rank FROM {table} r JOIN terms s ON s.tid = r.subject
            JOIN terms p ON p.tid = r.predicate JOIN terms o ON o.tid = r.object JOIN tags ON tags.tag = o.tag
            ORDER BY ALL""",
    )


def ntriples(text):
    return read_chunk(Chunk(text.encode(), 1, 1.0, empty(REJECTS)))


def test_terms_are_numbered_entities_by_key_then_literals_by_key_datatype_and_detail(stage):
    connection, staged = stage(
        StatementBatch(
            frame(
                [
                    fact("b", "p", "5", LITERAL, "int", detail="Q2"),
                    fact("b", "p", "5", LITERAL, "int"),
                    fact("b", "p", "5", LITERAL, "@en"),
                    fact("b", "p", "10", LITERAL, "int", detail="Q1"),
                    fact("é", "p", "a"),
                ]
            )
        )
    )
    assert rows(connection, "SELECT tid, key, datatype, detail FROM terms JOIN tags USING (tag) ORDER BY tid") == [
        (0, "a", None, None), (1, "b", None, None), (2, "p", None, None), (3, "é", None, None),
        (4, "10", "int", "Q1"), (5, "5", "@en", None), (6, "5", "int", None), (7, "5", "int", "Q2"),
    ]  # fmt: skip
    assert rows(connection, "FROM tags WHERE tag = 0") == [(0, None, None)]
    assert (staged.statements, staged.entities, staged.literals) == (5, 4, 4)
    assert not (staged.ranked or staged.qualified or staged.named)


def test_text_is_a_literal_of_what_names_things_and_else_an_entity(stage):
    connection, _ = stage(StatementBatch(frame([fact("a", LABEL, "A", TEXT), fact("a", "starred", "A", TEXT)])))
    assert [row[1:4] for row in spelled(connection)] == [(LABEL, "A", ""), ("starred", "A", None)]


def test_ranks_names_and_qualifiers_keep_to_their_statement(stage):
    first = StatementBatch(
        frame([fact("a", "p", "b", rank=1, statement="s1"), fact("a", "p", "c", rank=-1)]),
        qualifiers=frame([{"row": 1, "predicate": "q", "object": "d", "kind": ENTITY}], QUALIFIERS),
    )
    second = StatementBatch(
        frame([fact("a", "p", "e")]),
        qualifiers=frame(
            [
                {"row": 0, "predicate": "q", "object": "7", "kind": LITERAL, "datatype": "int"},
                {"statement": "s1", "predicate": "q", "object": "f", "kind": ENTITY},
            ],
            QUALIFIERS,
        ),
        filtered={"rule": 3},
        ignored=2,
    )
    connection, staged = stage(first, second)
    assert spelled(connection) == [
        ("a", "p", "b", None, None, 1), ("a", "p", "c", None, None, -1), ("a", "p", "e", None, None, 0),
    ]  # fmt: skip
    found = rows(
        connection,
        """SELECT n, name, p.key, o.key FROM raw_qualifiers q JOIN terms p ON p.tid = q.predicate
           JOIN terms o ON o.tid = q.object ORDER BY ALL""",
    )
    assert found == [(1, None, "q", "d"), (2, None, "q", "7"), (None, "s1", "q", "f")]
    assert rows(connection, "FROM statement_names") == [(0, "s1")]
    assert rows(connection, "FROM filtered") == [("rule", 3)]
    assert (staged.ranked, staged.qualified, staged.named, staged.distinct) == (True, True, True, False)
    assert (staged.statements, staged.filtered, staged.ignored) == (3, 3, 2)


def test_qualifiers_may_come_without_the_column_that_they_do_not_need(stage):
    by_row = frame([{"row": 0, "predicate": "q", "object": "d", "kind": ENTITY}], QUALIFIERS).drop("statement")
    by_name = frame([{"statement": "s", "predicate": "q", "object": "d", "kind": ENTITY}], QUALIFIERS).drop("row")
    connection, _ = stage(StatementBatch(frame([fact("a", "p", "b", statement="s")]), qualifiers=by_row))
    assert rows(connection, "SELECT n, name FROM raw_qualifiers") == [(0, None)]
    connection, _ = stage(
        StatementBatch(frame([fact("a", "p", "b", statement="s")])), StatementBatch(frame([]), qualifiers=by_name)
    )
    assert rows(connection, "SELECT n, name FROM raw_qualifiers") == [(None, "s")]


def test_spans_and_frames_of_the_same_statements_give_the_same_tables(stage):
    spans = ntriples(GRAPH)
    one, said = stage(spans)
    two, also = stage(StatementBatch(spans.statements, ignored=spans.ignored))
    assert said == also
    for table in ("terms", "tags", "raw", "raw_distinct"):
        assert rows(one, f"FROM {table} ORDER BY ALL") == rows(two, f"FROM {table} ORDER BY ALL")


def test_repetitions_are_counted_in_the_sorted_table_and_come_back_in_raw(stage):
    text = "<x:b> <x:p> <x:a> .\n<x:a> <x:p> <x:b> .\n" * 3 + "<x:a> <x:o> <x:b> .\n"
    connection, staged = stage(ntriples(text))
    assert staged.distinct
    # x:a 0, x:b 1, x:o 2, x:p 3
    assert rows(connection, "FROM raw_distinct") == [(0, 2, 1, 1), (0, 3, 1, 3), (1, 3, 0, 3)]
    assert rows(connection, "SELECT count(DISTINCT n), count(*) FROM raw") == [(7, 7)]
    plain, staged = stage(ntriples(text), distinct=False)
    assert not staged.distinct and spelled(plain) == spelled(connection)


@pytest.mark.parametrize("distinct", [True, False])
def test_little_memory_and_small_batches_change_nothing(stage, monkeypatch, distinct):
    lines = [f'<x:{i % 71}> <x:p{i % 7}> "{i % 53}"@en .' for i in range(600)]
    lines += [f"<x:{i}> <x:p> <x:é{i}> ." for i in range(300)]
    random.Random(5).shuffle(lines)
    whole, said = stage(ntriples("\n".join(lines) + "\n"), distinct=distinct)
    monkeypatch.setattr(staging, "CHUNK", 37)
    written = []
    monkeypatch.setattr(staging, "write_run", lambda *a: written.append(a[2]) or real(*a))
    pieces = [ntriples("\n".join(lines[i : i + 50]) + "\n") for i in range(0, len(lines), 50)]
    monkeypatch.setattr(staging, "Interner", lambda budget: Interner(budget if budget == sys.maxsize else 20_000))
    small, also = stage(*pieces, distinct=distinct)
    assert len(written) > 2 and said == also
    for table in ("terms", "tags", "raw_distinct" if distinct else "raw"):
        assert rows(whole, f"FROM {table} ORDER BY ALL") == rows(small, f"FROM {table} ORDER BY ALL")


real = staging.write_run


def test_statements_too_many_for_the_memory_are_not_sorted_in_it(stage, monkeypatch):
    monkeypatch.setattr(staging, "SORTED", 1e-9)
    text = "".join(f"<x:{i}> <x:p> <x:{i % 9}> .\n" for i in range(5000))
    connection, staged = stage(ntriples(text))
    assert not staged.distinct and staged.statements == 5000
    assert rows(connection, "SELECT count(*), count(DISTINCT n), min(n), max(n) FROM raw") == [(5000, 5000, 0, 4999)]


@pytest.mark.parametrize("spans", [True, False])
def test_thousands_of_datatypes_are_no_trouble(stage, spans):
    batch = ntriples("".join(f'<x:{i}> <x:p> "v"^^<http://types/with/long/names/{i}> .\n' for i in range(30_000)))
    connection, staged = stage(batch if spans else StatementBatch(batch.statements))
    assert staged.literals == 30_000
    found = rows(connection, "SELECT count(DISTINCT datatype), count(*) FROM terms JOIN tags USING (tag) WHERE tag > 0")
    assert found == [(30_000, 30_000)]


def test_rejects_keep_their_source(stage):
    connection, staged = stage(ntriples("bad\n<x:a> <x:p> <x:b> .\n"))
    assert rows(connection, "SELECT source, line, text FROM raw_rejects") == [("file", 1, "bad")]
    assert (staged.rejects, staged.statements) == (1, 1)


@pytest.mark.parametrize(("text", "size"), [("4GB", 4 * 10**9), ("1.5 GiB", 3 << 29), ("512mb", 512 * 10**6)])
def test_sizes_of_memory_are_understood(text, size):
    assert memory_bytes(text) == size


@pytest.mark.parametrize("text", ["", "lots", "4 XB", "-1GB", "0GB"])
def test_a_size_that_is_none_is_refused_by_name(text):
    with pytest.raises(KgInputError, match="kg.memory_limit"):
        memory_bytes(text)


def test_packed_triples_come_back_sorted_and_counted():
    ids = np.array([[2, 1, 0], [0, 1, 2], [2, 1, 0]], dtype=np.int32)
    canonical, place = np.array([5, 6, 7], dtype=np.int32), np.array([0] * 6 + [0, 0], dtype=np.int32)
    keys = np.empty(3, dtype=np.uint64)
    pack_kernels.pack(ids, canonical, place, 1, 3, keys)
    keys.sort()
    out, copies = np.empty((3, 3), dtype=np.int32), np.empty(3, dtype=np.int64)
    done, count = pack_kernels.distinct(keys, 0, 1, 3, np.array([6], dtype=np.int32), out, copies)
    assert (done, count) == (3, 2)
    assert out[:, :2].T.tolist() == [[5, 6, 7], [7, 6, 5]] and copies[:2].tolist() == [1, 2]


keys = st.text(st.sampled_from("abé/\0 Q1"), min_size=1, max_size=4)
things = st.fixed_dictionaries(
    {
        "predicate": keys | st.just(LABEL),
        "object": keys,
        "kind": st.sampled_from([ENTITY, LITERAL, TEXT]),
        "datatype": st.sampled_from(["", "@en", "int", "decimal"]),
        "detail": st.sampled_from([None, None, "", "Q1", "11 julian"]),
    }
)
facts = st.builds(
    lambda thing, subject, rank: {**thing, "subject": subject, "rank": rank},
    things,
    keys,
    st.sampled_from([0, 0, 1, -1]),
)


@st.composite
def batches(draw):
    """A batch with and without qualifiers."""
    some = draw(st.lists(facts, min_size=1, max_size=12))
    qualifiers = draw(st.lists(st.tuples(st.integers(0, len(some) - 1), things), max_size=6))
    rows = [{**thing, "row": row} for row, thing in qualifiers]
    return StatementBatch(frame(some), qualifiers=frame(rows, QUALIFIERS) if rows else None)


@examples(25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(batches(), min_size=1, max_size=4), st.booleans(), st.sampled_from([200, 1 << 20]))
def test_tables_are_those_that_plain_joins_over_strings_make(tmp_path_factory, given_, plain, budget):
    if plain:
        given_ = [StatementBatch(batch.statements.with_columns(rank=pl.lit(0, dtype=pl.Int8))) for batch in given_]
    folder = tmp_path_factory.mktemp("staging")
    with pytest.MonkeyPatch.context() as patch, duckdb.connect(":memory:") as ours, duckdb.connect(":memory:") as sql:
        patch.setattr(staging, "Interner", lambda size: Interner(size if size == sys.maxsize else budget))
        with Staging(ours, folder, KgOptions()) as taken:
            for batch in given_:
                taken.append("file", batch)
            taken.finish()
        options = KgOptions()
        names = (*options.label_predicates, *options.alias_predicates, *options.description_predicates)
        kg_oracles.stage(sql, given_, names)
        for query in (
            "SELECT tid, key, datatype, detail FROM terms JOIN tags USING (tag) ORDER BY ALL",
            "SELECT subject, predicate, object, rank FROM raw ORDER BY ALL",
            "SELECT n, name, predicate, object FROM raw_qualifiers ORDER BY ALL",
        ):
            assert rows(ours, query) == rows(sql, query)
        if not plain and any(batch.qualifiers is not None for batch in given_):
            assert rows(ours, "FROM raw ORDER BY n") == rows(sql, "FROM raw ORDER BY n")
