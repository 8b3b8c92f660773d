"""Paths that are tried where a schema is too large for all of them."""

from __future__ import annotations

import pytest

from kgqa_core.config import RngOptions
from kgqa_core.logic.memory import MemoryGraph
from kgqa_core.papers.grailqability.parsing.examples import ParseExample, Topic
from kgqa_core.papers.grailqability.parsing.rng.enumerate import Enumerator
from kgqa_core.papers.grailqability.parsing.rng.readings import Readings
from kgqa_core.papers.grailqability.parsing.rng.slots import View
from kgqa_core.papers.grailqability.parsing.word_overlap import NEAR, RelationLikeness
from tests.support.graphs import small_graph


def test_a_relation_is_like_a_question_that_has_its_words_or_words_with_the_same_beginning():
    likeness = RelationLikeness(["place of birth", "producer", "place"])
    exact = likeness.of("the place of her birth")
    assert exact.tolist() == pytest.approx([1.0, 0.0, 1.0])
    assert likeness.of("who produced it").tolist() == pytest.approx([0.0, NEAR, 0.0])
    assert 0 < likeness.of("a place")[0] < 0.5  # two relations have the word, one has `birth`


def test_likely_paths_are_those_of_the_questions_words_and_of_the_topics_facts():
    options = RngOptions(max_paths=10, likely_paths=10)
    with small_graph() as store:
        enumerator = Enumerator(store, MemoryGraph(store), options)
        starts = (enumerator.starts("es"),)
        assert enumerator.wide(starts[0])
        pools = {
            text: [
                str(enumerator.forms.forms[n]) for n in enumerator.pool(starts, View(text, (0,)), keys=("es",)).numbers
            ]
            for text in ("population of the capital of it", "rivers of it")
        }
    said, other = pools.values()
    assert "(JOIN (R population) (JOIN (R capital) <[E1]>))" in said
    assert said.index("(JOIN (R capital) <[E1]>)") < said.index("(JOIN (R borders) <[E1]>)")
    assert "(JOIN borders <[E1]>)" in other  # fr borders es, and nothing leaves es
    assert other.index("(JOIN borders <[E1]>)") < other.index("(JOIN (R capital) <[E1]>)")


def test_a_large_schema_is_cut_to_likely_paths_and_still_has_the_form_that_the_words_say():
    question = ParseExample(
        "q", "population of the capital of it", known=True, topics=(Topic("fr", "it"),),
        form="(JOIN (R population) (JOIN (R capital) fr))",
    )  # fmt: skip
    sizes = []
    for paths in (10, 400):
        options = RngOptions(max_paths=paths, likely_paths=10)
        with small_graph() as store:
            reading = Readings(Enumerator(store, MemoryGraph(store), options), options).of(question)
        assert reading.gold is not None
        sizes.append(len(reading.candidates.forms))
    assert sizes[0] < sizes[1]
