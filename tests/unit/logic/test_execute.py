"""Forms on a graph by hand, with the answers that a person counts."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from kgqa_core.errors import FormError, FormTimeout
from kgqa_core.logic.compile import compile_sql
from kgqa_core.logic.execute import answer_texts, execute
from kgqa_core.logic.forms import Entity, Join, Or, Step
from kgqa_core.logic.lookup import index
from kgqa_core.logic.memory import MemoryGraph
from kgqa_core.logic.parser import parse
from tests.support.graphs import XSD, Graph, small_graph, store_of


@pytest.fixture(scope="module")
def store():
    with small_graph() as graph:
        yield graph


def answers(store, text, **options):
    found = execute(parse(text), store, seconds=600, **options)
    return sorted(store.entity_keys(found.nodes).values())


def proof(store, text):
    found = execute(parse(text), store, seconds=600)
    keys, relations = {}, store.relation_keys()
    triples = store.triples(found.proof).values()
    keys = store.entity_keys({i for head, _, tail in triples for i in (head, tail)})
    return sorted((keys[head], relations[relation], keys[tail]) for head, relation, tail in triples)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("fr", ["fr"]),
        ("(JOIN (R capital) fr)", ["paris"]),
        ("(JOIN capital paris)", ["fr"]),
        ("(JOIN in (JOIN borders es))", ["lyon", "nice", "paris"]),
        ("(TYPE city)", ["berlin", "bonn", "lyon", "nice", "paris"]),
        ("(TYPE capital_city)", ["berlin", "paris"]),
        ("(AND (TYPE capital_city) (JOIN in fr))", ["paris"]),
        ("(OR (JOIN (R capital) fr) (JOIN (R capital) de))", ["berlin", "paris"]),
        ("(MINUS (JOIN in fr) (JOIN (R capital) fr))", ["lyon", "nice"]),
        ("(ARGMAX (JOIN in fr) population)", ["paris"]),
        ("(ARGMAX (TYPE city) population)", ["berlin"]),
        ("(ARGMIN (TYPE city) population)", ["bonn", "nice"]),
        ("(ARGMAX (TYPE country) (JOIN (R in) population))", ["de"]),
        ("(ARGMAX (TYPE country) (COUNT (R in)))", ["fr"]),
        ("(ARGMIN (TYPE country) (COUNT borders))", ["de"]),
        ("(NTHMAX 2 (TYPE city) population)", ["paris"]),
        ("(NTHMIN 2 (TYPE city) population)", ["lyon"]),
        ("(NTHMAX 9 (TYPE city) population)", []),
        ("(gt population 520000)", ["berlin", "paris"]),
        ("(ge population 520000^^xsd:decimal)", ["berlin", "lyon", "paris"]),
        ("(AND (JOIN in de) (lt population 1000000))", ["bonn"]),
        ("(gt (JOIN (R in) population) 3000000)", ["de"]),
        ("(ge (COUNT (R in)) 3)", ["fr"]),
        ("(JOIN population 520000)", ["lyon"]),
        ("(GREATER fr de (COUNT (R in)))", ["fr"]),
        ("(LESS paris lyon population)", ["lyon"]),
        ("(GREATER nice bonn population)", ["bonn", "nice"]),
        ("(GREATER nice fr population)", []),
        ("(FIRSTMAX 2 (TYPE city) population)", ["berlin", "paris"]),
        ("(FIRSTMIN 1 (TYPE city) population)", ["bonn", "nice"]),
        ("(FIRSTMIN 3 (TYPE city) population)", ["bonn", "lyon", "nice"]),
        ("(FIRSTMAX 9 (TYPE country) (COUNT (R in)))", ["de", "fr"]),
        ("(MAX (TYPE city) population)", ["3600000"]),
        ("(MIN (TYPE person) born)", ["1952"]),
        ("(MAX (TYPE person) height)", ["1.9"]),
        ("(MAX (JOIN in es) population)", []),
        ("(gt population lyon)", ["berlin", "paris"]),
        ("(AND (TYPE city) (lt population (JOIN in fr)))", []),
        ("(ge (COUNT (R in)) de)", ["de", "fr"]),
        ("(gt population es)", []),
        ("(AND (JOIN in de) (gt population (AVG (TYPE city) population)))", ["berlin"]),
        ("(TOPMAX (GROUP (TYPE city) in (AVG population)))", ["de"]),
        ("(TOPMIN (GROUP (TYPE city) in))", ["de"]),
    ],
)
def test_forms_denote(store, text, expected):
    assert answers(store, text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(COUNT (JOIN in fr))", 3),
        ("(COUNT (JOIN in es))", 0),
        ("(COUNT (AND (JOIN in fr) (JOIN in de)))", 0),
        ("(HOLDS (JOIN (R borders) fr) de)", True),
        ("(HOLDS (JOIN (R borders) es) de)", False),
        ("(HOLDS (TYPE city) (JOIN in es))", False),
        ("(HOLDS (GREATER paris lyon population) paris)", True),
    ],
)
def test_values(store, text, expected):
    found = execute(parse(text), store, seconds=600)
    assert found.value == expected and type(found.value) is type(expected)
    assert found.nodes == () and not found.empty


@pytest.mark.parametrize(
    ("text", "expected", "unit", "proved"),
    [
        ("(SUM (TYPE city) population)", "6900000", None, 5),
        ("(SUM (JOIN in fr) population)", "2960000", None, 6),
        ("(AVG (JOIN in fr) population)", "986666.67", None, 6),
        ("(SUM (TYPE country) (JOIN (R in) population))", "6900000", None, 10),
        ("(SUM bob height)", "1.9", "Q11573", 1),
        ("(SUM ann height)", "180", "Q174728", 1),
        ("(SUM (TYPE person) height)", "3.7", "Q11573", 3),
        ("(AVG (TYPE country) (COUNT (R in)))", "2.5", None, 5),
        ("(MAX (TYPE country) (COUNT (R in)))", "3", None, 5),
        ("(SUM (JOIN in es) population)", "0", None, 0),
        ("(SUM (AND (TYPE person) (JOIN in fr)) height)", "0", "Q11573", 0),
        ("(SUM (AND (TYPE person) (JOIN in fr)) population)", None, None, 0),
        ("(AVG (JOIN in es) population)", None, None, 0),
        ("(RANGE (OR ann bob) height)", "0.1", "Q11573", 2),
        ("(RANGE (TYPE country) (COUNT (R in)))", "1", None, 5),
        ("(SUM (TYPE person) born)", None, None, 3),
        ("(SHARE (TYPE city) (JOIN in fr))", "60", "%", 3),
        ("(SHARE (JOIN in fr) (gt population 500000))", "66.67", "%", 5),
        ("(SHARE (TYPE city) (JOIN in es))", "0", "%", 0),
        ("(SHARE (JOIN in es) (TYPE city))", None, None, 0),
    ],
)
def test_sums_averages_and_shares_are_numbers_with_a_unit_and_a_proof(store, text, expected, unit, proved):
    form = parse(text)
    for found in (execute(form, store, seconds=600), MemoryGraph(store).execute(form)):
        assert answer_texts(form, found, {}) == (() if expected is None else (expected,))
        assert found.unit == unit and found.empty == (expected is None)
    assert len(execute(form, store, seconds=600).proof) == proved


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(VALUES (JOIN in fr) population)", ["lyon: 520000.0", "nice: 340000", "paris: 2100000"]),
        ("(VALUES fr borders)", ["fr: de", "fr: es"]),
        ("(VALUES (TYPE country) (COUNT (R in)))", ["fr: 3", "de: 2"]),
        ("(GROUP (TYPE city) in)", ["fr: 3", "de: 2"]),
        ("(GROUP (TYPE city) in (SUM population))", ["de: 3940000", "fr: 2960000"]),
        ("(GROUP (TYPE city) in (MAX population))", ["de: 3600000", "fr: 2100000"]),
        ("(GROUP (TYPE country) borders (AVG (COUNT (R in))))", ["de: 3", "es: 3", "fr: 2"]),
        ("(GROUP (JOIN in es) in)", []),
    ],
)
def test_tables_have_rows_of_two_columns_the_largest_numbers_first(store, text, expected):
    form = parse(text)
    found = execute(form, store, seconds=600)
    keys = store.entity_keys(found.ids)
    assert list(answer_texts(form, found, keys)) == expected
    named = {row.key for row in found.rows}
    assert set(found.nodes) == named and found.empty == (not expected) and bool(found.proof) == bool(expected)
    assert MemoryGraph(store).execute(form).rows == found.rows


def test_the_values_of_a_node_set_are_computed_without_its_form(store):
    memory = MemoryGraph(store)
    of = parse("(JOIN in fr)")
    nodes = memory.nodes(of)
    for text in ("(SUM fr population)", "(AVG fr population)", "(MAX fr population)", "(GROUP fr in)"):
        form = parse(text)
        assert memory.aggregate(nodes, form) == memory.execute(parse(text.replace("fr", str(of))))
    assert memory.ranked(nodes, parse("(FIRSTMAX 2 fr population)")).tolist() == sorted(
        memory.know(["paris", "lyon"]).values()
    )


def test_an_aggregate_of_too_many_values_is_refused(store, monkeypatch):
    monkeypatch.setattr("kgqa_core.logic.compile.MOST_VALUES", 2)
    monkeypatch.setattr("kgqa_core.logic.execute.MOST_VALUES", 2)
    with pytest.raises(FormError, match="of more than 2 values; name fewer members"):
        execute(parse("(SUM (TYPE city) population)"), store)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(ARGMAX (TYPE person) height)", ["bob"]),
        ("(ARGMIN (TYPE person) height)", ["ann"]),
        ("(gt height 1.85[Q11573])", ["bob"]),
        ("(ge height 70.86614173228347[Q218593])", ["ann", "bob"]),
        ("(gt height 79[Q11570])", ["cid"]),
        ("(gt height 79000^^xsd:integer[Q41803])", ["cid"]),
        ("(gt height 1)", []),
        ("(JOIN height 1800[Q174789])", ["ann"]),
        ("(JOIN height 19[Q200323])", ["bob"]),
        ("(ge height 19[Q200323])", ["bob"]),
    ],
)
def test_quantities_compare_in_their_units(store, text, expected):
    assert answers(store, text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(JOIN born 1952^^xsd:gYear)", ["ann", "bob"]),
        ("(JOIN born 1952-03-11)", ["bob"]),
        ("(JOIN born 1960^^xsd:gYear)", ["cid"]),
        ("(lt born 1952^^xsd:gYear)", []),
        ("(le born 1952^^xsd:gYear)", ["ann", "bob"]),
        ("(gt born 1952-01-01)", ["bob", "cid"]),
        ("(ge born 1952-01-01)", ["ann", "bob", "cid"]),
        ("(lt born 1952-03-12)", ["bob"]),
        ("(gt born 1952^^xsd:gYear)", ["cid"]),
        ("(gt born 1952)", []),
        ("(ARGMAX (TYPE person) born)", ["cid"]),
        ("(ARGMIN (TYPE person) born)", ["ann"]),
    ],
)
def test_dates_compare_with_their_precision(store, text, expected):
    assert answers(store, text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('(JOIN name "Ann")', ["ann", "bob"]),
        ('(JOIN name "Ann"@en)', ["ann"]),
        ('(JOIN name "ann")', []),
        ('(JOIN population "340000")', []),
    ],
)
def test_text_is_found_in_any_language_unless_one_is_named(store, text, expected):
    assert answers(store, text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(JOIN office mayor (eq of paris))", ["ann", "bob"]),
        ("(JOIN office mayor (eq P580 2001^^xsd:gYear))", ["ann"]),
        ("(JOIN office mayor (gt P580 2005^^xsd:gYear))", ["bob"]),
        ("(JOIN office mayor (at P580 2005^^xsd:gYear))", ["ann"]),
        ("(JOIN office mayor (at P580 2008^^xsd:gYear))", ["ann", "bob"]),
        ("(JOIN office mayor (at P580 2008-07-01))", ["bob"]),
        ("(JOIN office mayor (at P580 1999^^xsd:gYear))", []),
        ("(JOIN office mayor (eq of lyon) (at P580 2005^^xsd:gYear))", []),
        ("(JOIN office mayor (eq of paris) (at P580 2008-07-01))", ["bob"]),
        ("(JOIN (R office) ann (eq of paris))", ["mayor"]),
    ],
)
def test_conditions_are_about_one_statement(store, text, expected):
    assert answers(store, text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(JOIN (R holder) (TC (JOIN holder (TYPE person)) term.from 2005^^xsd:gYear))", ["ann", "cid"]),
        ("(JOIN (R holder) (TC (JOIN holder (TYPE person)) term.from 2008-12-31))", ["ann", "cid"]),
        ("(JOIN (R holder) (TC (JOIN holder (TYPE person)) term.from 2020^^xsd:gYear))", ["bob", "cid"]),
        ("(TC (TYPE person) (JOIN (R holder) term.from) 2005^^xsd:gYear)", ["ann", "cid"]),
    ],
)
def test_a_time_constraint_takes_what_is_missing_as_open(store, text, expected):
    assert answers(store, text) == expected


def test_proof_is_every_triple_on_the_way_to_an_answer(store):
    assert proof(store, "(JOIN (R capital) (JOIN borders es))") == [("fr", "borders", "es"), ("fr", "capital", "paris")]
    assert proof(store, "(ARGMAX (JOIN in fr) population)") == [
        ("paris", "in", "fr"),
        ("paris", "population", "2100000"),
    ]
    assert proof(store, "(COUNT (JOIN in de))") == [("berlin", "in", "de"), ("bonn", "in", "de")]
    assert proof(store, "(GREATER paris lyon population)") == [
        ("lyon", "population", "520000.0"),
        ("paris", "population", "2100000"),
    ]
    assert proof(store, "(HOLDS (JOIN (R borders) fr) de)") == [("fr", "borders", "de")]
    assert proof(store, "(HOLDS (JOIN (R borders) es) de)") == []
    assert proof(store, "(AND (JOIN in fr) (gt population 1000000))") == [
        ("paris", "in", "fr"),
        ("paris", "population", "2100000"),
    ]


@pytest.mark.parametrize("form", ["(ARGMAX (OR a b) size)", "(GREATER a b size)"])
def test_an_equal_number_of_another_dimension_proves_nothing(form):
    literals = {2: ("2", XSD + "integer", "Q11573"), 3: ("2", XSD + "integer", "Q11570")}
    literals[4] = ("1", XSD + "integer", "Q11573")
    sizes = [(0, "size", 2), (0, "size", 3), (1, "size", 4)]
    with store_of(Graph({0: "a", 1: "b"}, literals, sizes, relations={"size": 0})) as store:
        found = execute(parse(form), store, seconds=600)
    assert found.nodes == (0,) and 0 in found.proof and 1 not in found.proof


def test_units_that_differ_in_the_last_digit_are_a_tie():
    literals = {2: ("7", XSD + "integer", "Q200323"), 3: ("0.7", XSD + "decimal", "Q11573")}
    sizes = [(0, "size", 2), (1, "size", 3)]
    with store_of(Graph({0: "a", 1: "b"}, literals, sizes, relations={"size": 0})) as store:
        for _ in range(2):
            assert execute(parse("(ARGMAX (OR a b) size)"), store, seconds=600).nodes == (0, 1)
            index(store)


def test_an_indexed_graph_answers_the_same_and_finds_again_what_it_cached(store):
    with small_graph() as indexed:
        index(indexed)
        for form in ("(JOIN in (JOIN borders es))", "(ARGMAX (TYPE city) population)", "(JOIN in (JOIN borders es))"):
            assert execute(parse(form), indexed, seconds=600) == execute(parse(form), store, seconds=600)
        with pytest.raises(FormError, match="entity 'atlantis' is not in this graph"):
            execute(parse("(JOIN in atlantis)"), indexed)
        indexed.connection.execute("CREATE TEMP VIEW entities AS SELECT * FROM memory.entities WHERE key <> 'es'")
        index(indexed)
        with pytest.raises(FormError, match="entity 'es' is not in this graph"):
            execute(parse("(JOIN in (JOIN borders es))"), indexed)


def test_a_form_finds_its_entities_where_those_cached_before_are_dropped(monkeypatch):
    monkeypatch.setattr("kgqa_core.logic.lookup._MOST", 2)
    with small_graph() as indexed:
        index(indexed)
        for form, found in (("(OR fr de)", 2), ("(OR de es)", 2), ("(OR fr de es)", 3), ("(OR fr es)", 2)):
            assert len(execute(parse(form), indexed, seconds=600).nodes) == found


def test_many_topics_are_one_table(store):
    towns = ["paris", "lyon", "nice", "berlin", "bonn"] * 200
    form = Join((Step("in", inverse=True),), Or(tuple(map(Entity, towns))))
    assert compile_sql(form, store).sql.count("MATERIALIZED") == 1
    assert sorted(store.entity_keys(execute(form, store, seconds=600).nodes).values()) == ["de", "fr"]
    assert parse(str(form)) == form


def test_a_relation_that_an_update_took_away_is_not_offered():
    with store_of(Graph({0: "a"}, {}, [], relations={"size": 0, "colour": 2})) as store:
        with pytest.raises(FormError) as caught:
            execute(parse("(JOIN sice a)"), store)
        assert "(2 relations); did you mean 'size'?" in str(caught.value)


def test_rows_are_cut_by_id_and_the_cut_is_reported(store):
    every = execute(parse("(TYPE city)"), store)
    some = execute(parse("(TYPE city)"), store, rows=2)
    assert not every.truncated and some.truncated
    assert some.nodes == every.nodes[:2]
    assert execute(parse("(COUNT (TYPE city))"), store, rows=2).value == 5
    assert execute(parse("(JOIN in fr)"), store, proof=False).proof == ()


def test_named_entities_may_be_left_out(store):
    assert answers(store, "(JOIN borders (JOIN (R borders) fr))") == ["fr"]
    assert answers(store, "(JOIN borders (JOIN (R borders) fr))", without_named=True) == []


def test_values_are_bound_and_never_pasted(store):
    nasty = "x') OR 1=1; --"
    with pytest.raises(FormError, match="not in this graph"):
        execute(parse(f"(JOIN in <{nasty}>)"), store)
    query = compile_sql(parse(f'(JOIN name "{nasty}")'), store)
    assert nasty not in query.sql and nasty in query.parameters
    assert answers(store, f'(JOIN name "{nasty}")') == []


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("(JOIN capitol fr)", "relation 'capitol' is not in this graph (14 relations); did you mean 'capital'?"),
        ("(JOIN in atlantis)", "entity 'atlantis' is not in this graph"),
        ("(TYPE river)", "type 'river' is not in this graph"),
        ("(AND fr (COUNT de))", "is a value or a table; these stand outermost"),
        ('(lt population "x")', "is neither"),
        ("(TC fr term.from 5)", "TC takes a date"),
        ("(JOIN office mayor (at P580 5))", "asks for a date"),
        ("(gt (COUNT in) 2001^^xsd:gYear)", "plain number"),
    ],
)
def test_what_does_not_fit_the_graph_is_an_error_with_its_reason(store, text, part):
    with pytest.raises(FormError) as caught:
        execute(parse(text), store)
    assert part in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        f"(OR {' '.join(f'(JOIN population {number})' for number in range(400))})",
        "(GREATER " * 95 + "fr" + " de population)" * 95,
    ],
)
def test_a_form_with_too_many_parts_for_one_query_is_refused(store, text):
    with pytest.raises(FormError, match="has too many parts for one query") as caught:
        execute(parse(text), store)
    assert len(str(caught.value)) < 300
    assert answers(store, "(JOIN capital paris)") == ["fr"]


def test_a_form_may_take_for_ever(store):
    assert len(execute(parse("(JOIN in fr)"), store, seconds=math.inf).nodes) == 3


@pytest.mark.parametrize("seconds", [0.0, 0.2])
def test_a_form_that_takes_too_long_is_interrupted_and_the_graph_stays_usable(store, seconds):
    connection = store.connection
    connection.execute("CREATE TEMP TABLE few AS SELECT * FROM main.triples")
    connection.execute(
        "CREATE TEMP VIEW triples AS SELECT * FROM few UNION ALL "
        "SELECT a.i + 1000, hash(a.i, b.i) % 20, a.i % 20, b.i % 20, 0 FROM range(200000) a(i), range(200000) b(i)"
    )
    try:
        with pytest.raises(FormTimeout, match=f"longer than {seconds:g} s"):
            execute(parse("(COUNT (ge (COUNT borders) 1))"), store, seconds=seconds)
    finally:
        connection.execute("DROP VIEW temp.triples")
        connection.execute("DROP TABLE few")
    assert answers(store, "(JOIN capital paris)") == ["fr"]


LIVES = Graph(
    entities=dict(enumerate(("ann", "bob", "cid", "dan"))),
    literals={
        10 + n: (text, XSD + kind, None)
        for n, (text, kind) in enumerate((
            ("1931-05-02", "date"), ("2006-05-01", "date"), ("1900", "gYear"), ("1980-02-01", "date"),
            ("2000-02-28", "date"), ("2000-03-01", "date"),
        ))
    },
    triples=[(0, "born", 10), (0, "died", 11), (1, "born", 12), (1, "died", 13), (2, "born", 14), (2, "died", 15),
             (3, "born", 15)],
    relations={"born": 0, "died": 1},
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected", "proved"),
    [
        ("(MAX ann (YEARS born died))", ("74",), 2),
        ("(MAX bob (YEARS born died))", ("80",), 2),
        ("(MAX cid (DAYS born died))", ("2",), 2),
        ("(MAX cid (YEARS born died))", ("0",), 2),
        ("(MAX bob (DAYS born died))", (), 0),
        ("(MAX dan (YEARS born died))", (), 0),
        ("(AVG (OR ann bob) (YEARS born died))", ("77",), 4),
        ("(VALUES (OR ann (OR bob dan)) (YEARS born died))", ("bob: 80", "ann: 74"), 4),
        ("(ARGMAX (OR ann (OR bob cid)) (YEARS born died))", ("bob",), 2),
        ("(ARGMIN (OR ann bob) (DAYS born died))", ("ann",), 2),
        ("(GREATER ann bob (YEARS born died))", ("bob",), 4),
        ("(gt (YEARS born died) 74)", ("bob",), 2),
        ("(le (DAYS born died) 2)", ("cid",), 2),
        ("(gt (YEARS born died) cid)", ("ann", "bob"), 6),
        ("(MAX ann (YEARS died born))", (), 0),
    ],
)
def test_spans_of_time_are_years_completed_or_days(text, expected, proved):
    with store_of(LIVES) as store:
        form = parse(text)
        assert parse(str(form)) == form
        found = execute(form, store, seconds=600)
        assert answer_texts(form, found, store.entity_keys(found.ids)) == expected
        assert len(found.proof) == proved and replace(MemoryGraph(store).execute(form), proof=found.proof) == found


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("(JOIN (DAYS born died) ann)", "a relation is written"),
        ("(MAX ann (JOIN born (DAYS born died)))", "a relation is written"),
        ("(MAX ann (DAYS born))", "the time between two dates is written"),
        ("(gt (YEARS born died) 1980-01-01)", "compared with a plain number"),
    ],
)
def test_a_span_of_time_stands_alone_where_a_path_measures(text, fault):
    with store_of(LIVES) as store, pytest.raises(FormError, match=fault):
        execute(parse(text), store)
