"""The hops of a retriever come from its training questions."""

from __future__ import annotations

import pytest

from kgqa_core.dkg.csr import Dkg
from kgqa_core.errors import ConfigError
from kgqa_core.retrieval.hops import check_hops, choose_hops, needed_hops
from kgqa_core.types import Question


@pytest.fixture(scope="module")
def chain() -> Dkg:
    """0 → 1 → 2 → 3 → 4 by one relation, and 5 apart."""
    return Dkg.from_triples([0, 1, 2, 3], [0] * 4, [1, 2, 3, 4], 6, 1)


def question(number: int, answer: int, *path: str, split: str = "train") -> Question:
    paths = (path,) if path else ()
    return Question(f"q{number}", "?", split=split, topic_entities=(0,), answers=(answer,), relation_paths=paths)


def test_annotated_paths_count_and_the_distance_where_there_are_none(chain: Dkg) -> None:
    key = chain.relation_keys[0]
    asked = [
        question(0, 1, key, key, key),  # longer than the way to its answer
        question(1, 4),
        question(2, 2, "unknown relation"),
        question(3, 5),  # no way
        question(4, 3, split="test"),
        Question("q5", "?", split="train", answers=(1,)),
    ]
    assert needed_hops(asked, chain) == [2, 3, 4]


@pytest.mark.parametrize(
    ("lengths", "hops"), [([], 2), ([1, 1], 2), ([1, 2, 3], 3), ([1] * 99 + [4], 2), ([1] * 97 + [3] * 3, 3), ([7], 4)]
)
def test_hops_cover_nearly_all_questions_within_two_and_four(lengths: list[int], hops: int) -> None:
    assert choose_hops(lengths) == hops


def test_a_limit_below_every_question_is_refused_and_below_some_is_a_warning() -> None:
    limits = [("rigel.hops", 3), ("hop_path.max_hops", 2), ("unset", None)]
    assert check_hops([1, 2], limits) == [] == check_hops([], limits)
    [warning] = check_hops([1, 3], limits)
    assert "1 of 2" in warning and "hop_path.max_hops=2" in warning
    with pytest.raises(ConfigError, match=r"hop_path.max_hops is 2, .* 3 to 3 hops.*set hop_path.max_hops=3"):
        check_hops([3, 3], limits)
