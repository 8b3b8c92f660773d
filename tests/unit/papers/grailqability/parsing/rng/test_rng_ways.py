"""Paths that are tried where a schema is too large for all of them."""

from __future__ import annotations

import numpy as np
import pytest

from kgqa_core.config import RngOptions
from kgqa_core.logic.memory import MemoryGraph
from kgqa_core.papers.grailqability.parsing.examples import ParseExample, Topic
from kgqa_core.papers.grailqability.parsing.rng.enumerate import Enumerator
from kgqa_core.papers.grailqability.parsing.rng.readings import Readings
from kgqa_core.papers.grailqability.parsing.rng.ways import FACTS, Ways
from kgqa_core.papers.grailqability.parsing.word_overlap import NEAR, RelationLikeness
from tests.support.graphs import small_graph


def test_a_relation_is_like_a_question_that_has_its_words_or_words_with_the_same_beginning():
    likeness = RelationLikeness(["place of birth", "producer", "place"])
    exact = likeness.of("the place of her birth")
    assert exact.tolist() == pytest.approx([1.0, 0.0, 1.0])
    assert likeness.of("who produced it").tolist() == pytest.approx([0.0, NEAR, 0.0])
    assert 0 < likeness.of("a place")[0] < 0.5  # two relations have the word, one has `birth`


def test_likely_paths_are_those_of_the_questions_words_and_of_the_topics_facts():
    with small_graph() as store:
        ways = Ways(store, MemoryGraph(store), "schema", types=True)
        starts = ways.starts("es")
        number = {key: n for n, key in enumerate(ways.keys)}
        assert ways.paths(starts) == len(starts) + sum(len(ways.longer((way,))) for way in starts)
        likeness = np.zeros(ways.relations)
        likeness[[number["capital"], number["population"]]] = 1.0
        one, two = ways.likeliest(starts, likeness, 8, "es")
        first, paths = ways.facts("es")
    inverse = number["borders"] + ways.relations
    assert first.tolist() == [inverse]  # fr borders es, and nothing leaves es
    assert inverse * 2 * ways.relations + number["capital"] in paths
    assert one[0] == (number["capital"],) and two[0] == (number["capital"], number["population"])
    assert (inverse, number["capital"]) in two and FACTS < 1
    assert len(one) == 2 and len(one) + len(two) <= 8


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
