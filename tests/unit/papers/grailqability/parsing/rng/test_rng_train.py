"""What an example of the ranker compares: the right form and wrong ones, and "no form" where a relation is missing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from kgqa_core.config import RngOptions
from kgqa_core.papers.grailqability.parsing.rng.readings import FormCandidates
from kgqa_core.papers.grailqability.parsing.rng.train import FormInventory, RankExample, _RankerTraining
from kgqa_core.papers.grailqability.parsing.word_overlap import WordOverlap

RELATIONS = [frozenset(names) for names in ((), ("a",), ("b",), ("a", "b"), ("a", "c"), ("c",), ("b", "c"), ())]
"""Of each form: "no form", six with relations, and one that has none."""


def training(gold: int, **options: Any) -> _RankerTraining:
    candidates = FormCandidates(np.zeros(8, dtype=np.int64), np.arange(8))
    reader = SimpleNamespace(
        read_questions=lambda texts: SimpleNamespace(ids=[[1] for _ in texts]), read_forms=lambda words: None
    )
    example = RankExample(("what is it",), candidates, gold, 1.0)
    given = RngOptions(**{"missing_relation_rate": 1.0, **options})
    forms = FormInventory((), WordOverlap(()), RELATIONS)
    return _RankerTraining(cast(Any, reader), [example], [], forms, given, 3)


def test_what_uses_the_missing_relation_is_no_candidate_and_no_form_is_right() -> None:
    own = training(gold=4)
    seen = set()
    for own.epoch in range(40):
        found = own._lacking(0)
        assert found is not None and found[0] == 0
        seen.add(frozenset(found.tolist()))
    assert seen == {frozenset({0, 2, 5, 6, 7}), frozenset({0, 1, 2, 3, 7})}  # without a, without c


def test_hard_wrong_forms_come_first_as_long_as_they_are_there() -> None:
    own = training(gold=4, negatives=3)
    own.hard_negatives = [np.array([3, 5, 0])]
    for own.epoch in range(40):
        found = own._lacking(0)
        assert found is not None and len(found) == 4 == len(set(found.tolist()))
        assert found[:2].tolist() in ([0, 5], [0, 3])
        assert not {4} & set(found.tolist())


def test_a_share_of_the_examples_is_learnt_so_and_only_those_with_a_form_that_needs_relations() -> None:
    own = training(gold=4, missing_relation_rate=0.25)
    sampled = 0
    for own.epoch in range(400):
        sampled += own._lacking(0) is not None
    assert 70 < sampled < 130
    assert training(gold=0)._lacking(0) is None and training(gold=7)._lacking(0) is None
    assert training(gold=4, learn_unanswerable=False)._lacking(0) is None


def test_the_right_form_is_first_and_no_form_is_wrong_where_it_is_learnt() -> None:
    assert sorted(training(gold=4)._chosen(0).tolist()) == list(range(8))
    assert training(gold=4)._chosen(0)[0] == 4
    assert sorted(training(gold=4, learn_unanswerable=False)._chosen(0).tolist()) == list(range(1, 8))
