"""Random forms on random graphs: SQL and arrays in memory against an evaluator in plain Python; the algebra of forms.

Graphs of odd seeds have free ids, every third is indexed, and keys and texts hold quotes and SQL.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from kgqa_core.errors import FormError
from kgqa_core.kg.overlay import Hidden, write_overlay
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.execute import execute
from kgqa_core.logic.forms import (
    Aggregate,
    And,
    Arg,
    Compare,
    Count,
    Entity,
    Greater,
    Holds,
    Join,
    Minus,
    Nth,
    Or,
    Share,
    Step,
    TimeConstraint,
    elements,
)
from kgqa_core.logic.lookup import index
from kgqa_core.logic.memory import MemoryGraph
from kgqa_core.logic.normalise import isomorphic, normalise
from kgqa_core.logic.parser import parse
from kgqa_core.logic.schema import Schema, types_of
from kgqa_core.logic.typed import typed
from tests.support import random_forms as some
from tests.support.graphs import ENTITIES, LINKS, Graph, file_of, random_graph, store_of
from tests.support.naive_logic import Naive

WAIT = 600.0
"""Seconds: a busy machine is no fault of a form."""

EXAMPLES = pytest.mark.parametrize("examples", [40, pytest.param(4000, marks=pytest.mark.slow)])
"""Dozens in the suite, thousands where there is time."""


def check(examples, what, *drawn):
    """Calls `what` with so many examples of what is drawn."""
    unhurried = settings(max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    unhurried(given(*drawn)(what))()


GRAPHS = 64
"""Graphs that are open at once, and most that are drawn: to make one takes longer than to ask it a form."""


def seeds(examples):
    """Seeds of graphs; one graph serves many forms."""
    return st.integers(0, min(examples // 10, GRAPHS - 1))


@dataclass
class Both:
    """One graph in a store and in plain Python."""

    graph: Graph
    store: KgStore
    naive: Naive

    @cached_property
    def memory(self):
        return MemoryGraph(self.store)

    @cached_property
    def schema(self):
        return Schema.read(self.store), types_of(self.store, ENTITIES)


def both(graph, store):
    return Both(graph, store, Naive(graph))


@lru_cache(maxsize=GRAPHS)
def opened(seed):
    graph = random_graph(seed)
    store = store_of(graph)
    if seed % 3 == 0:
        index(store)
    return both(graph, store)


def same_as_naive(one, form):
    found = execute(form, one.store, seconds=WAIT)
    expected = one.naive.of(form)
    if isinstance(form, (Count, Holds)):
        assert found.value == expected and type(found.value) is type(expected)
    elif isinstance(form, (Aggregate, Share)):
        assert aggregates_as(form, one, found, expected)
    else:
        assert list(found.nodes) == sorted(expected)
    assert all(0 <= triple < len(one.graph.triples) for triple in found.proof)
    in_memory = one.memory.execute(form)
    assert replace(in_memory, proof=found.proof) == found


def aggregates_as(form, one, found, expected):
    """Whether a number, nodes or rows are those expected; what a sum over nobody is is counted by hand elsewhere."""
    if isinstance(expected, set):
        rows = {(row.key, row.number if row.node is None else row.node) for row in found.rows}
        near = {key: pytest.approx(float(value), rel=1e-9, abs=1e-9) for key, value in expected} if found.rows else {}
        return (
            rows == expected
            or (len(rows) == len(near) and all(value == near[key] for key, value in rows))
            or (not found.rows and set(found.nodes) == expected)
        )
    if expected is None:
        return found.value is None or (form.how == "sum" and found.value == 0 and not one.naive.of(form.of))
    return found.value == pytest.approx(float(expected), rel=1e-9, abs=1e-9)


@EXAMPLES
def test_sql_gives_what_plain_python_gives(examples):
    check(examples, lambda seed, form: same_as_naive(opened(seed), form), seeds(examples), some.forms)


def cut_as_it_says(seed, form, rows):
    store = opened(seed).store
    whole, cut = (execute(form, store, seconds=WAIT, rows=most) for most in (10_000, rows))
    assert (cut.value, cut.unit) == (whole.value, whole.unit)
    assert (cut.nodes, cut.rows) == (whole.nodes[:rows], whole.rows[:rows])
    assert len(cut.proof) <= rows and set(cut.proof) <= set(whole.proof)
    assert cut.truncated or cut == whole
    assert not cut.truncated or max(len(whole.nodes), len(whole.rows)) > rows or len(whole.proof) > rows


@EXAMPLES
def test_rows_are_cut_as_it_is_said(examples):
    check(examples // 2, cut_as_it_says, seeds(examples), some.forms, st.integers(0, 5))


def overlaid(folder, seed):
    """A graph with some of its things hidden: as an overlay, and in plain Python; and the keys that are hidden."""
    draw = random.Random(seed)
    base = random_graph(seed)
    ids = {key: i for i, key in base.entities.items()}
    keys = set(draw.sample(ENTITIES, 2))
    relation, gone = draw.choice(LINKS), set(draw.sample(range(len(base.triples)), 3))
    hidden = {ids[key] for key in keys}
    (folder / "base").mkdir()
    (folder / "overlay").mkdir()
    write_overlay(
        folder / "overlay",
        base=file_of(base, folder / "base" / "kg.duckdb"),
        hidden=Hidden(tuple(hidden), (base.relations[relation],), tuple(gone)),
    )
    return both(base.without(hidden, relation, gone), KgStore.open(folder / "overlay")), keys | {relation}


def same_but_for_hidden(one, hidden, form):
    used = elements(form)
    if hidden & {*used.entities, *used.relations}:
        with pytest.raises(FormError, match="not in this graph"):
            execute(form, one.store, seconds=WAIT)
    else:
        same_as_naive(one, form)


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=[pytest.mark.slow] * (seed > 1)) for seed in range(1, 41)])
def test_an_overlay_answers_as_the_graph_without_what_it_hides(tmp_path, seed):
    one, hidden = overlaid(tmp_path, seed)
    with one.store as store:
        check(20, lambda form: same_but_for_hidden(one, hidden, form), some.forms)
        index(store)
        check(20, lambda form: same_but_for_hidden(one, hidden, form), some.forms)


def same_after_normalising(seed, form):
    naive = opened(seed).naive
    assert naive.of(normalise(form)) == naive.of(form)


@EXAMPLES
def test_normalising_keeps_results(examples):
    check(examples, same_after_normalising, seeds(examples), some.forms)


def proves_itself(seed, form):
    one = opened(seed)
    found = execute(form, one.store, seconds=WAIT)
    assert Naive(one.graph.only(set(found.proof))).of(form) >= set(found.nodes)


@EXAMPLES
def test_proof_rows_alone_give_every_answer(examples):
    check(examples, proves_itself, seeds(examples), some.positive)


def refuses_nothing_with_an_answer(seed, form):
    assume("(OR " not in str(form))
    one = opened(seed)
    try:
        typed(form, *one.schema)
    except FormError:
        assert not one.naive.of(form)


@EXAMPLES
def test_what_the_types_refuse_has_no_answer(examples):
    check(examples, refuses_nothing_with_an_answer, seeds(examples), some.positive)


def reads_back(form):
    assert parse(str(form)) == form
    assert parse(str(normalise(form))) == normalise(form)
    assert normalise(normalise(form)) == normalise(form)


@EXAMPLES
def test_what_is_printed_reads_back_as_the_same_tree_and_a_normal_form_stays_as_it_is(examples):
    check(examples, reads_back, some.forms)


def written_otherwise(form, draw):
    """The same form, written in another way: each rewriting of `normalise`, where the dice say so."""
    form = _rewritten_below(form, draw)
    if draw.random() < 0.5:
        return form
    match form:
        case And(parts=parts) if any(isinstance(part, Minus) for part in parts):
            taken = next(part for part in parts if isinstance(part, Minus))
            return Minus(And((taken.of, *[part for part in parts if part is not taken])), taken.without)
        case Minus(of=Minus(of=of, without=first), without=second):
            return Minus(of, Or((first, second)))
        case Compare(path=(first, *rest), counted=False) if rest:
            return Join((first,), replace(form, path=tuple(rest)))
        case Arg(best=best, of=of, path=path, counted=counted):
            return Nth(1, best, of, path, counted)
        case Greater(one=one, other=other):
            return replace(form, one=other, other=one)
        case Join(where=where) if where:
            return replace(form, where=(*reversed(where), where[0]))
    return form


def _rewritten_below(form, draw):
    match form:
        case And(parts=parts) | Or(parts=parts):
            order = [written_otherwise(part, draw) for part in draw.sample(parts, len(parts))]
            return type(form)((*order, draw.choice(order)))
        case Minus(of=of, without=without):
            return Minus(written_otherwise(of, draw), written_otherwise(without, draw))
        case Share(of=of, one=one):
            return Share(written_otherwise(of, draw), written_otherwise(one, draw))
        case Greater(one=one, other=other):
            return replace(form, one=written_otherwise(one, draw), other=written_otherwise(other, draw))
    if isinstance(form, (Join, Count, Arg, Nth, Aggregate, TimeConstraint)):
        return replace(form, of=written_otherwise(form.of, draw))
    return form


def equivalent(seed, form, draw):
    other = written_otherwise(form, draw)
    third = written_otherwise(other, draw)
    assert isomorphic(form, form)
    assert isomorphic(form, other) and isomorphic(other, form)
    assert isomorphic(other, third) and isomorphic(form, third)
    assert opened(seed).naive.of(form) == opened(seed).naive.of(third)


@EXAMPLES
def test_isomorphism_is_an_equivalence_that_looks_past_how_a_form_is_written(examples):
    check(examples, equivalent, seeds(examples), some.forms, st.randoms(use_true_random=False))


def equal_or_not(seed, one, other, draw):
    same = isomorphic(one, other)
    assert same == isomorphic(other, one) == isomorphic(written_otherwise(one, draw), written_otherwise(other, draw))
    assert not same or opened(seed).naive.of(one) == opened(seed).naive.of(other)


@EXAMPLES
def test_two_forms_are_isomorphic_or_not_however_they_are_written(examples):
    check(examples, equal_or_not, seeds(examples), some.sets, some.sets, st.randoms(use_true_random=False))


def test_what_the_graph_has_not_is_said_in_the_same_words():
    graph = random_graph(1)
    with store_of(graph) as store:
        memory = MemoryGraph(store)
        for form in (
            Entity("nobody"),
            Join((Step("nothing"),), Entity(ENTITIES[0])),
            Join((Step(LINKS[0]),), Entity("x")),
        ):
            with pytest.raises(FormError) as said:
                memory.execute(form)
            with pytest.raises(FormError) as wanted:
                execute(form, store)
            assert str(said.value) == str(wanted.value)
