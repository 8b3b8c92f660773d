from __future__ import annotations

import pytest

from kgqa_core.errors import FormError
from kgqa_core.logic.parser import parse
from kgqa_core.logic.schema import Schema, types_of
from kgqa_core.logic.typed import typed
from tests.support.graphs import small_graph


@pytest.fixture(scope="module")
def store():
    with small_graph() as graph:
        yield graph


@pytest.fixture(scope="module")
def schema(store):
    return Schema.read(store)


def test_the_schema_is_what_the_facts_show(schema):
    capital = schema.relations["capital"]
    assert (capital.domain, capital.range, capital.triples) == ({"country"}, {"capital_city"}, 2)
    assert schema.relations["height"].dimensions == {"Q11573", "Q11570"}
    assert schema.relations["born"].dimensions == {"time"}
    assert schema.relations["name"].dimensions == {"text"} and not schema.relations["name"].measured
    assert schema.relations["holder"].domain == {""}
    assert schema.below("place") == {"place", "city", "capital_city", "country"}
    assert schema.types["capital_city"] == 2 and "place" not in schema.types and schema.has_type("place")
    assert schema.qualifiers == {"P580": {"time"}, "P582": {"time"}, "of": {"entity"}}


@pytest.mark.parametrize(
    ("text", "kind", "types", "dimensions"),
    [
        ("(JOIN (R capital) fr)", "entities", ("capital_city",), ()),
        ("(JOIN in fr)", "entities", ("capital_city", "city"), ()),
        ("(AND (TYPE capital_city) (JOIN in fr))", "entities", ("capital_city", "city"), ()),
        ("(JOIN (R population) paris)", "literals", (), ("",)),
        ("(COUNT (JOIN in fr))", "number", None, None),
        ("(HOLDS (JOIN in fr) paris)", "yes/no", None, None),
        ("(SUM (JOIN in fr) population)", "number", None, None),
        ("(MAX (TYPE person) born)", "literals", (), ("time",)),
        ("(SHARE (TYPE city) (JOIN in fr))", "number", None, None),
        ("(GROUP (TYPE city) in (SUM population))", "table", None, None),
        ("(FIRSTMAX 3 (TYPE person) height)", "entities", ("person",), ()),
        ("(ARGMAX (TYPE person) height)", "entities", ("person",), ()),
        ("(TYPE place)", "entities", ("capital_city", "city", "country", "place"), None),
        ("(TC (TYPE person) (JOIN (R holder) term.from) 2005^^xsd:gYear)", "entities", ("person",), None),
    ],
)
def test_types_are_inferred(store, schema, text, kind, types, dimensions):
    found = typed(parse(text), schema, types_of(store, ["fr", "paris"]))
    assert (found.kind, found.types, found.dimensions) == (kind, types, dimensions)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("(JOIN capitol fr)", "relation 'capitol' is not in this graph (14 relations); did you mean 'capital'?"),
        ("(TYPE citty)", "nothing has the type 'citty' in this graph (4 types); did you mean 'city'?"),
        ("(JOIN capital fr)", "capital leads to capital_city, and in (JOIN capital fr) it is to lead to country"),
        ("(AND (TYPE person) (JOIN in fr))", "person and (JOIN in fr) is capital_city, city; nothing is both"),
        ("(ARGMAX (TYPE country) capital)", "values of capital are capital_city; only numbers and dates compare"),
        ("(ARGMAX (TYPE country) population)", "population is of capital_city, city, but applied to country"),
        ("(SUM (TYPE country) capital)", "values of capital are capital_city; only numbers and dates compare"),
        ("(AVG (TYPE person) born)", "values of born are dates, which are not added"),
        ("(GROUP (TYPE city) borders)", "borders is of country, but applied to"),
        ("(gt population 2001^^xsd:gYear)", "is a date, and values of population are a bare number"),
        ("(gt height 5)", "is a bare number, and values of height are a number in Q11570, a number in Q11573"),
        ("(JOIN office mayor (eq place paris))", "no statement has the qualifier 'place'"),
        ("(JOIN office mayor (eq of 5))", "values of the qualifier of are entities"),
        ("(TC (TYPE person) born 5)", "TC takes a date"),
        ('(gt population "x")', "no number and no date"),
        ("(AND fr (COUNT de))", "is a value or a table; these stand outermost"),
    ],
)
def test_what_cannot_be_is_refused_in_words(store, schema, text, part):
    with pytest.raises(FormError) as caught:
        typed(parse(text), schema, types_of(store, ["fr", "paris"]))
    assert part in str(caught.value)


def test_types_of_names_untyped_entities_and_leaves_out_unknown_ones(store):
    assert types_of(store, ["fr", "t1", "atlantis"]) == {"fr": {"country"}, "t1": {""}}
