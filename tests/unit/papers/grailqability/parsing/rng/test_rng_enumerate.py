"""Candidate forms are those that the schema allows, whatever facts are missing."""

from __future__ import annotations

import pytest

from kgqa_core.config import RngOptions
from kgqa_core.datasets.derived.form_values import values_in
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.memory import MemoryGraph
from kgqa_core.logic.normalise import normalise
from kgqa_core.logic.parser import parse
from kgqa_core.papers.grailqability.parsing.examples import ParseExample, Topic
from kgqa_core.papers.grailqability.parsing.rng.enumerate import Enumerator
from kgqa_core.papers.grailqability.parsing.rng.readings import Readings
from kgqa_core.papers.grailqability.parsing.rng.slots import View, abstract
from tests.support.graphs import small_graph
from tests.support.parsing import key, questions


@pytest.fixture(scope="module")
def store(world):
    with KgStore.open(world.kg) as opened:
        yield opened


def forms_of(store, topics, view=None, **options):
    enumerator = Enumerator(store, MemoryGraph(store), RngOptions(**options))
    starts = tuple(enumerator.starts(topic) for topic in topics)
    pool = enumerator.pool(starts, view or View("", tuple(range(len(topics)))))
    return {str(enumerator.forms.forms[number]) for number in pool.numbers}, pool.cut


def slotted(text):
    return str(normalise(parse(text.replace("E1", "<[E1]>").replace("E2", "<[E2]>"))))


def test_every_gold_form_of_the_world_is_a_candidate(store):
    readings = Readings(Enumerator(store, MemoryGraph(store), RngOptions()), RngOptions())
    assert all(reading.gold is not None and not reading.cut for reading in readings.of_all(questions()))


def test_a_candidate_never_joins_what_never_meets(store):
    found, _ = forms_of(store, [key("Arland")])
    assert slotted("(JOIN (R urn:x:capital) E1)") in found
    assert slotted("(JOIN (R urn:x:population) (JOIN (R urn:x:capital) E1))") in found
    assert slotted("(JOIN (R urn:x:population) E1)") not in found
    assert slotted("(JOIN (R urn:x:borders) (JOIN (R urn:x:capital) E1))") not in found


def test_one_topic_starts_with_what_its_type_has_or_with_its_own_facts_only():
    with small_graph() as store:
        by_schema, _ = forms_of(store, ["es"])
        by_facts, _ = forms_of(store, ["es"], starts="facts")
    capital = slotted("(JOIN (R capital) E1)")
    assert capital in by_schema and capital not in by_facts
    assert slotted("(JOIN borders E1)") in by_facts


def test_what_is_over_the_cap_is_cut_from_the_end_and_counted(store):
    whole, none = forms_of(store, [key("Arland")])
    some, cut = forms_of(store, [key("Arland")], max_forms=10)
    assert none == 0 and len(some) == 10 and some < whole and cut >= len(whole) - 10
    assert slotted("(JOIN (R urn:x:capital) E1)") in some


def test_numbers_in_the_text_are_compared_with_numbers_only(store):
    [value] = values_in("over 2000 people")
    found, _ = forms_of(store, [key("Arland")], View("", (0,), value))
    form = abstract(parse("(AND (JOIN urn:x:country a) (gt urn:x:population 2000))"), {"a": "[E1]"}, value)
    assert str(normalise(form)) in found
    assert all("population" in text for text in found)


def test_an_entity_that_is_not_in_the_graph_has_no_candidates(store):
    readings = Readings(Enumerator(store, MemoryGraph(store), RngOptions()), RngOptions())
    reading = readings.of(ParseExample("q", "what of Atlantis", topics=(Topic("urn:x:atlantis", "Atlantis"),)))
    assert len(reading.candidates.forms) == 1 and reading.gold is None
