"""Predicted relation paths against annotated ones."""

from kgqa_core.metrics.normalise import count_words
from kgqa_core.metrics.paths import hop_accuracy, path_at_1, path_at_5
from kgqa_core.types import INVERSE

DIRECTOR, ACTOR = ("directed_by",), (f"{INVERSE}starred_actors", "directed_by")


def test_the_first_path_decides_hops_and_path_at_1() -> None:
    assert (hop_accuracy([DIRECTOR, ACTOR], {1}), hop_accuracy([DIRECTOR, ACTOR], {2})) == (1.0, 0.0)
    assert (path_at_1([DIRECTOR, ACTOR], {ACTOR}), path_at_5([DIRECTOR, ACTOR], {ACTOR})) == (0.0, 1.0)
    assert path_at_1([ACTOR], {DIRECTOR, ACTOR}) == 1.0


def test_direction_and_order_belong_to_a_path() -> None:
    assert path_at_5([("starred_actors", "directed_by"), ACTOR[::-1]], {ACTOR}) == 0.0


def test_only_the_first_five_count_and_none_is_wrong() -> None:
    others = [(str(number),) for number in range(5)]
    assert (path_at_5([*others, ACTOR], {ACTOR}), path_at_5([*others[:4], ACTOR], {ACTOR})) == (0.0, 1.0)
    assert (hop_accuracy([], {1}), path_at_1([], {ACTOR}), path_at_5([ACTOR], frozenset())) == (0.0, 0.0, 0.0)


def test_words_are_counted_in_every_script() -> None:
    assert [count_words(text) for text in ("", " \n", "one  two\nthree", "(Paris, is, big)", "北京 is 大")] == [
        0,
        0,
        3,
        3,
        4,
    ]
