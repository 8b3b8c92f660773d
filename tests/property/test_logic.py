"""Random forms on random graphs: SQL against an evaluator in plain Python, and the algebra of forms."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from kgqa_core.errors import FormError
from kgqa_core.logic.execute import execute
from kgqa_core.logic.forms import And, Arg, Count, Join, Minus, Nth, Or, TimeConstraint, is_value
from kgqa_core.logic.normalise import isomorphic, normalise
from kgqa_core.logic.parser import parse
from kgqa_core.logic.schema import Schema, types_of
from kgqa_core.logic.typed import typed
from tests.support import random_forms as some
from tests.support.naive_logic import Naive
from tests.support.random_graphs import ENTITIES, random_graph, store_of

HUNDREDS = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
WAIT = 600.0
"""Seconds: a busy machine is no fault of a form."""
THOUSANDS = settings(max_examples=4000, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def same_as_naive(seed, form):
    graph = random_graph(seed)
    with store_of(graph) as store:
        found = execute(form, store, seconds=WAIT)
    expected = Naive(graph).of(form)
    if is_value(form):
        assert found.value == expected and type(found.value) is type(expected)
    else:
        assert list(found.nodes) == sorted(expected)
    assert all(0 <= triple < len(graph.triples) for triple in found.proof)


def same_after_normalising(seed, form):
    naive = Naive(random_graph(seed))
    assert naive.of(normalise(form)) == naive.of(form)


def refuses_nothing_with_an_answer(seed, form):
    graph = random_graph(seed)
    with store_of(graph) as store:
        schema, types = Schema.read(store), types_of(store, ENTITIES)
    try:
        typed(form, schema, types)
    except FormError:
        assert not Naive(graph).of(form)


def proves_itself(seed, form):
    graph = random_graph(seed)
    with store_of(graph) as store:
        found = execute(form, store, seconds=WAIT)
    assert Naive(graph.only(set(found.proof))).of(form) >= set(found.nodes)


@HUNDREDS
@given(st.integers(0, 10**6), some.forms)
def test_sql_gives_what_plain_python_gives(seed, form):
    same_as_naive(seed, form)


@pytest.mark.slow
@THOUSANDS
@given(st.integers(0, 10**6), some.forms)
def test_sql_gives_what_plain_python_gives_thousands_of_times(seed, form):
    same_as_naive(seed, form)


@HUNDREDS
@given(st.integers(0, 10**6), some.forms)
def test_normalising_keeps_results(seed, form):
    same_after_normalising(seed, form)


@pytest.mark.slow
@THOUSANDS
@given(st.integers(0, 10**6), some.forms)
def test_normalising_keeps_results_thousands_of_times(seed, form):
    same_after_normalising(seed, form)


@HUNDREDS
@given(st.integers(0, 10**6), some.positive)
def test_proof_rows_alone_give_every_answer(seed, form):
    proves_itself(seed, form)


@pytest.mark.slow
@THOUSANDS
@given(st.integers(0, 10**6), some.positive)
def test_proof_rows_alone_give_every_answer_thousands_of_times(seed, form):
    proves_itself(seed, form)


@HUNDREDS
@given(st.integers(0, 10**6), some.positive)
def test_what_the_types_refuse_has_no_answer(seed, form):
    assume("(OR " not in str(form))
    refuses_nothing_with_an_answer(seed, form)


@pytest.mark.slow
@THOUSANDS
@given(st.integers(0, 10**6), some.positive)
def test_what_the_types_refuse_has_no_answer_thousands_of_times(seed, form):
    assume("(OR " not in str(form))
    refuses_nothing_with_an_answer(seed, form)


@HUNDREDS
@given(some.forms)
def test_what_is_printed_reads_back_as_the_same_tree(form):
    assert parse(str(form)) == form
    assert parse(str(normalise(form))) == normalise(form)


@HUNDREDS
@given(some.forms)
def test_a_normal_form_stays_as_it_is(form):
    assert normalise(normalise(form)) == normalise(form)


def shuffled(form, draw):
    """The same form with the parts of AND and OR in another order, one of them twice."""
    match form:
        case And(parts=parts) | Or(parts=parts):
            order = [shuffled(part, draw) for part in draw.sample(parts, len(parts))]
            return type(form)((*order, draw.choice(order)))
        case Minus(of=of, without=without):
            return Minus(shuffled(of, draw), shuffled(without, draw))
    if isinstance(form, (Join, Count, Arg, Nth, TimeConstraint)):
        return replace(form, of=shuffled(form.of, draw))
    return form


@HUNDREDS
@given(some.forms, st.randoms(use_true_random=False))
def test_isomorphism_looks_past_the_order_of_parts(form, draw):
    other = shuffled(form, draw)
    assert isomorphic(form, form)
    assert isomorphic(form, other) and isomorphic(other, form)


@HUNDREDS
@given(st.integers(0, 10**6), some.sets, some.sets, some.sets)
def test_isomorphism_is_transitive_and_isomorphic_forms_have_the_same_answers(seed, one, other, third):
    if isomorphic(one, other):
        assert isomorphic(other, one)
        assert Naive(random_graph(seed)).of(one) == Naive(random_graph(seed)).of(other)
        assert isomorphic(one, third) == isomorphic(other, third)
