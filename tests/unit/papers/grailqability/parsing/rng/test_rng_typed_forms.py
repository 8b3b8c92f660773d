"""Candidate forms with conditions on types, as GrailQA writes them."""

from __future__ import annotations

import pytest

from kgqa_core.config import RngOptions
from kgqa_core.logic.memory import MemoryGraph
from kgqa_core.papers.grailqability.parsing.examples import ParseExample, Topic
from kgqa_core.papers.grailqability.parsing.rng.enumerate import Enumerator
from kgqa_core.papers.grailqability.parsing.rng.readings import Readings, coverage
from tests.support.graphs import small_graph

QUESTIONS = (
    ("which cities are in france?", "france fr", "(AND (TYPE city) (JOIN in fr))"),
    ("what capital is in it, france?", "france fr", "(AND (TYPE capital_city) (JOIN in fr))"),
    ("how many places are in france?", "france fr", "(COUNT (AND (TYPE place) (JOIN in fr)))"),
    ("the largest city in france", "france fr", "(ARGMAX (AND (TYPE city) (JOIN in fr)) population)"),
    ("the largest city", "", "(ARGMAX (TYPE city) population)"),
    ("how many countries are there", "", "(COUNT (TYPE country))"),
    ("cities in france with more than 400 thousand people", "france fr",
     "(AND (TYPE city) (AND (JOIN in fr) (gt population 400000)))"),
    ("which city has 340000 people", "", "(AND (TYPE city) (JOIN population 340000))"),
    ("cities of a country that borders france", "france fr", "(AND (TYPE city) (JOIN in (JOIN borders fr)))"),
    ("which country borders spain and germany", "spain es,germany de",
     "(AND (TYPE country) (AND (JOIN (R borders) es) (JOIN borders de)))"),
    ("cities in what borders spain and germany", "spain es,germany de",
     "(AND (TYPE city) (JOIN in (AND (JOIN borders es) (JOIN borders de))))"),
    ("countries with a city of 340000", "", "(AND (TYPE country) (JOIN (R in) (JOIN population 340000)))"),
    ("country with the largest city bordering france", "france fr",
     "(ARGMAX (AND (TYPE country) (JOIN (R borders) fr)) (JOIN (R in) population))"),
)  # fmt: skip


def read(store, *questions, types=True, **options):
    chosen = RngOptions(**options)
    readings = Readings(Enumerator(store, MemoryGraph(store), chosen, types=types), chosen)
    examples = [
        ParseExample(
            str(number), text, known=True, form=form,
            topics=tuple(Topic(pair.split()[1], pair.split()[0], 1.0, n) for n, pair in enumerate(topics.split(","))
                         if pair),
        )
        for number, (text, topics, form) in enumerate(questions)
    ]  # fmt: skip
    return examples, readings.of_all(examples)


@pytest.mark.parametrize("question", QUESTIONS, ids=[form for *_, form in QUESTIONS])
def test_a_form_of_grailqas_kinds_is_a_candidate(question):
    with small_graph() as store:
        _, [reading] = read(store, question)
        _, [untyped] = read(store, question, types=False)
    assert reading.gold is not None and untyped.gold is None


def test_only_types_that_the_end_of_a_path_has_are_tried():
    with small_graph() as store:
        options = RngOptions()
        enumerator = Enumerator(store, MemoryGraph(store), options, types=True)
        Readings(enumerator, options).of_all(
            [ParseExample("q", "which person is in france", topics=(Topic("fr", "france"),))]
        )
        texts = {str(form) for form in enumerator.forms.forms if form is not None}
    assert "(AND (JOIN in <[E1]>) (TYPE city))" in texts
    assert not any("person" in text and "(JOIN in <[E1]>)" in text for text in texts)
    assert "(AND (JOIN borders <[E1]>) (TYPE country))" in texts
    assert "(AND (JOIN borders <[E1]>) (TYPE city))" not in texts


def test_a_type_that_is_rare_at_an_end_is_tried_where_the_question_names_it():
    with small_graph() as store:
        seldom = ("which place is in france", "france fr", "(AND (TYPE place) (JOIN in fr))")
        unnamed = ("what is in france", "france fr", "(AND (TYPE place) (JOIN in fr))")
        examples, readings = read(store, seldom, unnamed, types_tried=1)
    assert [reading.gold is not None for reading in readings] == [True, False]
    assert coverage(examples, readings)["share"] == 0.5


def test_equal_candidates_of_several_pools_have_one_number():
    with small_graph() as store:
        options = RngOptions()
        enumerator = Enumerator(store, MemoryGraph(store), options, types=True)
        readings = Readings(enumerator, options)
        one, other = (
            readings.of(ParseExample(key, f"what is in {key}", topics=(Topic(key, key),))) for key in ("fr", "es")
        )
    assert len(set(map(str, enumerator.forms.forms))) == len(enumerator.forms.forms)
    assert set(one.candidates.forms.tolist()) == set(other.candidates.forms.tolist())
