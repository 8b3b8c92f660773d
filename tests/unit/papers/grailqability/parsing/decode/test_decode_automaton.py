"""Whatever the automaton allows ends in a form that reads and types; what types and can be written is allowed."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from kgqa_core.errors import FormError
from kgqa_core.logic.forms import And, Arg, Class, Compare, Count, Entity, Greater, Holds, Join, Literal, Step
from kgqa_core.logic.normalise import isomorphic
from kgqa_core.logic.parser import parse
from kgqa_core.logic.schema import types_of
from kgqa_core.logic.typed import typed
from kgqa_core.papers.grailqability.parsing.decode.actions import END, FIXED, NK, NUMBER, Slots, read, written
from kgqa_core.papers.grailqability.parsing.decode.automaton import Automaton, Limits, walk
from kgqa_core.papers.grailqability.parsing.decode.prepare import Ground
from tests.support.graphs import small_graph
from tests.support.parsing import random_questions


@pytest.fixture(scope="module")
def store():
    with small_graph() as graph:
        yield graph


@pytest.fixture(scope="module")
def ground(store):
    return Ground.of(store)


YEAR = Literal("2008", "http://www.w3.org/2001/XMLSchema#gYear")
NUMBER_1 = Literal("1", "http://www.w3.org/2001/XMLSchema#integer")
SLOTS = Slots(
    ("fr", "de", "paris"),
    ("city",),
    (YEAR, NUMBER_1),
    ("in", "capital", "borders", "population", "term.from", "holder", "born"),
)


def automaton(store, ground, slots=SLOTS, **options):
    return Automaton(ground.kinds, slots, types_of(store, slots.topics), **options)


def test_every_walk_ends_in_time_in_a_form_that_reads_and_types():
    used: Counter[str] = Counter()
    forms = 0
    for seed in range(6):
        draw = random.Random(seed)
        for question in random_questions(seed, 8):
            machine, slots = question.automaton, question.row.slots
            for _ in range(8):
                state, line = machine.start, []
                while state.hole.what != "end":
                    allowed = machine.allowed(state)
                    assert allowed, f"a dead end after {[slots.name(action) for action in line]}"
                    operators = [action for action in allowed if action < len(FIXED)]
                    action = draw.choice(operators if operators and draw.random() < 0.5 else allowed)
                    line.append(action)
                    state = machine.after(state, action)
                assert machine.allowed(state) == (NUMBER[END],) and len(line) <= machine.limits.actions
                form = read(line, slots)
                used.update(slots.name(action) for action in line if action < len(FIXED))
                if form is not None:
                    assert parse(str(form)) == form
                    typed(form, question.ground.schema, question.types)
                    forms += 1
    assert forms > 300
    assert {"AND", "OR", "MINUS", "COUNT", "HOLDS", "ARGMAX", "NTHMIN", "GREATER", "ge", "COUNTED", "THEN"} <= set(used)


@pytest.mark.parametrize(
    "text",
    [
        "(JOIN in fr)",
        "(JOIN (R in) (JOIN (R capital) fr))",
        "(AND (JOIN borders fr) (JOIN borders de))",
        "(MINUS (JOIN borders fr) (JOIN borders de))",
        "(OR (JOIN in fr) (JOIN in de))",
        "(COUNT (JOIN in fr))",
        "(ARGMAX (JOIN in fr) population)",
        "(AND (JOIN in fr) (ARGMAX (TYPE city) population))",
        "(ARGMIN (TYPE city) (COUNT (R capital)))",
        "(NTHMAX 2 (JOIN in fr) population)",
        "(GREATER fr de (JOIN (R in) population))",
        "(LESS fr de (COUNT (R in)))",
        "(HOLDS (JOIN (R capital) fr) paris)",
        "(ge (COUNT (R in)) 1)",
        "(AND (JOIN born 2008^^xsd:gYear) (lt (JOIN (R holder) term.from) 2008^^xsd:gYear))",
        "(TC (JOIN (R holder) (JOIN holder (JOIN born 2008^^xsd:gYear))) (JOIN (R holder) term.from) 2008^^xsd:gYear)",
        None,
    ],
)
def test_forms_of_every_operator_are_written_read_and_allowed(store, ground, text):
    form = None if text is None else parse(text)
    line = written(form, SLOTS)
    assert walk(automaton(store, ground), [*line, NUMBER[END]]) is not None, [SLOTS.name(action) for action in line]
    again = read(line, SLOTS)
    assert again == form if form is None or again is None else isomorphic(again, form)


@pytest.mark.parametrize(
    "form",
    [
        Join((Step("population"),), Entity("fr")),  # nobody's population is France
        Arg("max", Join((Step("in"),), Entity("fr")), (Step("capital"),)),  # capitals are no numbers
        And((Class("city"), Join((Step("borders"),), Entity("fr")))),  # no city borders a country
        Compare("lt", (Step("population"),), YEAR),
        Greater(Entity("fr"), Entity("paris"), (Step("population"),)),  # a country has none
        Count(Entity("fr")),  # a topic alone is no form
        Entity("fr"),
    ],
)
def test_what_cannot_have_an_answer_is_not_allowed(store, ground, form):
    assert walk(automaton(store, ground), written(form, SLOTS)) is None


def test_order_that_means_nothing_is_written_in_one_way():
    one, other = parse("(AND (JOIN in fr) (JOIN in de))"), parse("(AND (JOIN in de) (JOIN in fr))")
    assert written(one, SLOTS) == written(other, SLOTS)
    sides = parse("(GREATER fr de population)"), parse("(GREATER de fr population)")
    assert written(sides[0], SLOTS) == written(sides[1], SLOTS)


def test_a_form_longer_than_the_limit_is_not_allowed(store, ground):
    line = [*written(parse("(AND (JOIN borders fr) (JOIN borders de))"), SLOTS), NUMBER[END]]
    assert walk(automaton(store, ground, limits=Limits(12)), line) is not None
    assert walk(automaton(store, ground, limits=Limits(4)), line) is None


def test_no_form_is_predicted_only_where_it_may_be_or_nothing_else_can(store, ground):
    allowed = {
        no_form: NUMBER[NK] in (machine := automaton(store, ground, no_form=no_form)).allowed(machine.start)
        for no_form in (False, True)
    }
    assert allowed == {False: False, True: True}
    bare = automaton(store, ground, Slots(relations=("population",)), no_form=False)
    assert bare.allowed(bare.start) == (NUMBER[NK],)


def test_what_is_in_no_slot_or_has_no_actions_is_refused_in_words():
    for text, message in (
        ("(JOIN area fr)", "relation 'area' is not among those that were retrieved"),
        ("(JOIN in es)", "es is neither a linked topic nor"),
        ("(JOIN (R in) paris (at P580 2008^^xsd:gYear))", "conditions on qualifiers"),
        ("(NTHMAX 12 (JOIN in fr) population)", "place 12"),
    ):
        with pytest.raises(FormError, match=message):
            written(parse(text), SLOTS)
    for actions in ([NUMBER["AND"], 30], [NUMBER["THEN"]], [30, 30], [NUMBER["HOLDS"], 30, NUMBER[NK]]):
        with pytest.raises(FormError):
            read(actions, SLOTS)


def test_a_value_that_says_the_same_serves_for_another_spelling():
    slots = Slots(literals=(Literal("5", "http://www.w3.org/2001/XMLSchema#integer"),), relations=("population",))
    assert read(written(parse("(ge population 5.0)"), slots), slots) == parse("(ge population 5)")


def test_holds_asks_of_anything(store, ground):
    form = Holds(Join((Step("capital", True),), Entity("fr")), Entity("de"))
    assert walk(automaton(store, ground), written(form, SLOTS)) is not None
