"""Questions and forms with slots in place of names and numbers."""

from __future__ import annotations

import pytest

from kgqa_core.datasets.derived.form_values import values_in
from kgqa_core.logic.parser import parse
from kgqa_core.papers.grailqability.parsing.examples import Topic
from kgqa_core.papers.grailqability.parsing.rng.ranker import in_words
from kgqa_core.papers.grailqability.parsing.rng.slots import abstract, filled, mentions_of, views_of

FORMS = (
    "(JOIN (R r) a)",
    "(AND (JOIN r a) (JOIN s b))",
    "(MINUS (JOIN r a) (OR (JOIN s b) (JOIN s a)))",
    "(COUNT (JOIN (R r) (JOIN s a)))",
    "(GREATER a b (COUNT r))",
    "(NTHMIN 3 (JOIN r a) s)",
    "(HOLDS (JOIN r a) b)",
    "(TC (JOIN r a) s 2010^^xsd:gYear)",
)


@pytest.mark.parametrize("text", FORMS)
def test_filling_slots_undoes_making_them(text):
    form = parse(text)
    slots = abstract(form, {"a": "[E1]", "b": "[E2]"})
    assert "a" not in str(slots).split() and filled(slots, ("a", "b")) == form


def test_a_number_of_the_text_is_a_slot_of_its_own_kind():
    number, year = values_in("more than 1,500 people in 1999")
    assert (number.text, number.number.text, number.time) == ("1,500", "1500", None)
    assert year.time is not None and year.time.datatype.endswith("gYear")
    form = parse("(AND (JOIN r a) (gt s 1500))")
    slots = abstract(form, {"a": "[E1]"}, number)
    assert "1500" not in str(slots) and filled(slots, ("a",), number) == form
    dated = parse("(lt s 1999^^xsd:gYear)")
    assert filled(abstract(dated, {}, year), (), year) == dated


def test_views_name_no_mention_each_one_and_each_two():
    topics = [Topic("k2", "Rome", 0.9, 1), Topic("k1", "Oslo", 0.5, 0), Topic("k3", "Oslo", 0.3, 0)]
    mentions = mentions_of("Is Oslo colder than Rome?", topics, 4)
    assert mentions == [(0, "Oslo"), (1, "Rome")]
    texts = {view.mentions: view.text for view in views_of("Is Oslo colder than Rome?", mentions)}
    assert texts == {
        (): "Is Oslo colder than Rome?",
        (0,): "Is [E1] colder than Rome?",
        (1,): "Is Oslo colder than [E1]?",
        (0, 1): "Is [E1] colder than [E2]?",
    }
    assert mentions_of("Is Oslo colder than Rome?", topics, 1) == [(1, "Rome")]


def test_words_tell_forms_apart():
    forms = [
        parse(text) for text in (*FORMS, "(ARGMAX (JOIN r a) s)", "(ARGMIN (JOIN r a) s)", "(LESS a b r)", "(lt r 5)")
    ]
    words = [in_words(form, {"r": "reaches"}) for form in forms]
    assert len(set(words)) == len(words) and words[0] == "reaches of a"


def test_a_part_of_a_mention_of_the_same_entity_is_no_mention_of_its_own():
    topics = [
        Topic("Q1", "Boutros", 0.21, 0), Topic("Q1", "Boutros Boutros-Ghali", 0.49, 1), Topic("Q1", "Boutros", 0.21, 2),
        Topic("Q1", "Ghali", 0.2, 3), Topic("Q2", "Egypt", 0.1, 4),
    ]  # fmt: skip
    text = "Is Boutros Boutros-Ghali of Egypt?"
    assert mentions_of(text, topics, 4) == [(1, "Boutros Boutros-Ghali"), (4, "Egypt")]
    other = [Topic("Q3", "American football team", 0.4, 0), Topic("Q4", "American", 0.4, 1)]
    assert len(mentions_of("an American football team", other, 4)) == 2  # another entity


def test_an_entity_that_is_named_twice_is_one_mention():
    topics = [Topic("Q1", "Rome", 0.5, 0), Topic("Q1", "Rome", 0.5, 1)]
    assert mentions_of("Rome or Rome?", topics, 4) == [(0, "Rome")]
