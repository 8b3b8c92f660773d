"""Ranked entities, triples, relation paths and entity-relation pairs against gold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa_core.metrics.normalise import count_words
from kgqa_core.metrics.retrieval import (
    gold_pairs,
    hit,
    hop_accuracy,
    invert,
    recall_at,
    triple_pairs,
)
from kgqa_core.types import INVERSE, Question


def test_hits_look_at_the_first_and_the_first_five() -> None:
    assert hit([7, 3], {7}, 1) == 1.0
    assert hit([3, 7], {7}, 1) == 0.0
    assert hit([1, 2, 3, 4, 7], {7}, 5) == 1.0
    assert hit([1, 2, 3, 4, 5, 7], {7}, 5) == 0.0


@pytest.mark.parametrize("k", [1, 5, None])
def test_without_gold_or_without_candidates_nothing_is_hit(k: int | None) -> None:
    assert hit([1, 2], frozenset(), k) == 0.0
    assert hit([], {1}, k) == 0.0


def test_recall_of_answers_wants_one_gold_entity_among_the_facts() -> None:
    assert hit({1, 2, 9}, {9, 10}) == 1.0
    assert hit({1, 2}, {9, 10}) == 0.0


DIRECTOR, ACTOR = ("directed_by",), (f"{INVERSE}starred_actors", "directed_by")


def test_the_first_path_decides_hops_and_path_at_1() -> None:
    assert (hop_accuracy([DIRECTOR, ACTOR], {1}), hop_accuracy([DIRECTOR, ACTOR], {2})) == (1.0, 0.0)
    assert (hit([DIRECTOR, ACTOR], {ACTOR}, 1), hit([DIRECTOR, ACTOR], {ACTOR}, 5)) == (0.0, 1.0)
    assert hit([ACTOR], {DIRECTOR, ACTOR}, 1) == 1.0


def test_direction_and_order_belong_to_a_path() -> None:
    assert hit([("starred_actors", "directed_by"), ACTOR[::-1]], {ACTOR}, 5) == 0.0


def test_only_the_first_five_count_and_none_is_wrong() -> None:
    others = [(str(number),) for number in range(5)]
    assert (hit([*others, ACTOR], {ACTOR}, 5), hit([*others[:4], ACTOR], {ACTOR}, 5)) == (0.0, 1.0)
    assert (hop_accuracy([], {1}), hit([], {ACTOR}, 1), hit([ACTOR], frozenset(), 5)) == (0.0, 0.0, 0.0)


def test_words_are_counted_in_every_script() -> None:
    assert [count_words(text) for text in ("", " \n", "one  two\nthree", "(Paris, is, big)", "北京 is 大")] == [
        0,
        0,
        3,
        3,
        4,
    ]


ANN, OSLO, BO = 1, 2, 3
KEYS = {"Ann": [ANN], "Oslo": [OSLO], "Bo": [BO]}


def question(*triples: tuple[str, str, str], topics: tuple[int, ...] = (), paths: tuple = ()) -> Question:
    return Question("q", "?", topic_entities=topics, gold_triples=triples, relation_paths=paths)


def test_a_pair_starts_at_the_topic_whichever_end_of_the_triple_it_is() -> None:
    born = ("Ann", "born_in", "Oslo")
    assert gold_pairs(question(born, topics=(ANN,)), KEYS) == [{(ANN, "born_in")}]
    assert gold_pairs(question(born, topics=(OSLO,)), KEYS) == [{(OSLO, "<inv>-born_in")}]
    assert gold_pairs(question(born, topics=(ANN, OSLO)), KEYS) == [{(ANN, "born_in")}]
    assert gold_pairs(question(born, topics=(BO,)), KEYS) == [{(ANN, "born_in")}]


def test_triples_of_one_pair_count_once() -> None:
    spoken = [("Ann", "speaks", "Oslo"), ("Ann", "speaks", "Bo"), ("Ann", "born_in", "Oslo")]
    assert gold_pairs(question(*spoken, topics=(ANN,)), KEYS) == [{(ANN, "speaks")}, {(ANN, "born_in")}]


def test_a_pair_of_an_entity_that_is_not_in_the_graph_is_never_found() -> None:
    wanted = gold_pairs(question(("Cy", "born_in", "Oslo"), ("Ann", "born_in", "Nowhere")), KEYS)
    assert wanted == [frozenset(), {(ANN, "born_in")}]
    assert recall_at(None, [None, 1]) == 0.5


def test_first_steps_of_the_paths_stand_in_for_gold_triples() -> None:
    paths = (("works_for", "based_in"), ("works_for",), ("<inv>-knows", "speaks"), ())
    wanted = gold_pairs(question(topics=(ANN, BO), paths=paths), {})
    assert wanted == [{(ANN, "works_for"), (BO, "works_for")}, {(ANN, "<inv>-knows"), (BO, "<inv>-knows")}]
    assert gold_pairs(question(topics=(ANN,)), {}) == []


def test_a_triple_holds_the_pair_of_either_end() -> None:
    assert triple_pairs(ANN, "born_in", OSLO) == ((ANN, "born_in"), (OSLO, "<inv>-born_in"))
    assert invert(invert("born_in")) == "born_in"


def test_recall_of_nothing_wanted_is_zero() -> None:
    assert recall_at(None, []) == recall_at(3, []) == 0.0


@given(st.lists(st.none() | st.integers(1, 9), max_size=6), st.integers(1, 9))
def test_recall_grows_with_k_up_to_the_whole(ranks: list[int | None], k: int) -> None:
    assert 0 <= recall_at(k, ranks) <= recall_at(k + 1, ranks) <= recall_at(None, ranks) <= 1
