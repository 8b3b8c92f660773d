"""The share of a phrase's likeness to a question that is in order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa_core.symbolic.by_labels.word_order import ordered_shares


def shares(like: list[list[float]], weights: list[float] | None = None, length: int | None = None) -> float:
    table = np.array([like], dtype=np.float32)
    own = np.array(weights or [1.0] * table.shape[1], dtype=np.float32)
    return float(ordered_shares(table, own, np.array([length or table.shape[2]]))[0])


def test_words_in_the_same_order_lose_nothing() -> None:
    assert shares(np.eye(4).tolist()) == 1.0


def test_phrase_may_be_read_backwards() -> None:
    assert shares(np.eye(4)[::-1].tolist()) == 1.0


def test_two_words_that_are_exchanged_lose_one() -> None:
    assert shares([[0, 1, 0], [1, 0, 0], [0, 0, 1]]) == pytest.approx(2 / 3)


def test_word_of_the_phrase_stands_for_one_word_of_the_question() -> None:
    assert shares([[1.0], [1.0]]) == 0.5


def test_words_that_weigh_nothing_lose_nothing() -> None:
    assert shares([[0, 1, 0], [1, 0, 0], [0, 0, 1]], [1.0, 0.0, 1.0]) == 1.0


def test_words_beyond_the_length_of_a_phrase_do_not_count() -> None:
    assert shares([[0.5, 1.0]], length=1) == 1.0


def test_phrase_without_words_or_likeness_loses_nothing() -> None:
    assert shares([[0.0, 0.0]]) == 1.0
    assert ordered_shares(np.zeros((1, 2, 0), np.float32), np.ones(2, np.float32), np.array([0])).tolist() == [1.0]


@given(st.integers(0, 2**31), st.integers(1, 5), st.integers(1, 5))
def test_equals_a_search_over_all_pairings(seed: int, words: int, length: int) -> None:
    chooser = np.random.default_rng(seed)
    like, weights = chooser.random((words, length)).astype(np.float32), chooser.random(words).astype(np.float32)

    def best(t: int, start: int, table: np.ndarray) -> float:
        if t == words:
            return 0.0
        pairs = [weights[t] * table[t, u] + best(t + 1, u + 1, table) for u in range(start, length)]
        return max([best(t + 1, start, table), *pairs])

    free = float((weights * like.max(1)).sum())
    expected = max(best(0, 0, like), best(0, 0, like[:, ::-1])) / free
    found = ordered_shares(like[None], weights, np.array([length]))[0]
    assert found == pytest.approx(expected, rel=1e-4)
