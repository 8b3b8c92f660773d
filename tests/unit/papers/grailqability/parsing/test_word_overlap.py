"""What two texts share, counted by the words of a graph's labels."""

from __future__ import annotations

import numpy as np
import pytest

from kgqa_core.papers.grailqability.parsing.word_overlap import NEAR, SHARES, WordOverlap, crossed, shares

LABELS = ["place of birth", "producer", "place", "country of citizenship"]


def test_rare_words_count_more_and_words_that_no_label_has_do_not_count() -> None:
    overlap = WordOverlap(LABELS)
    assert overlap.rarity[overlap.vocabulary["birth"]] > overlap.rarity[overlap.vocabulary["place"]]
    asked = overlap.read(["the place of her birth", "unheard words"])
    assert asked.total[1] == 0 and asked.total[0] > 0
    found = crossed(asked, overlap.labels(LABELS))
    assert found.shape == (2, 4, SHARES) and not found[1].any()
    assert found[0, 0].tolist() == pytest.approx([1.0] * SHARES)  # all of the label, and all that counts of the text
    assert found[0, 2, 0] == pytest.approx(1.0) and 0 < found[0, 2, 1] < 1
    assert not found[0, 1].any()
    more = crossed(overlap.read(["the place of birth of [E1] in the club"]), overlap.labels(LABELS))
    assert more[0, 0, 1] == pytest.approx(1.0) and 0 < more[0, 0, 3] < 1, "nothing is said of the club"


def test_a_word_with_the_same_beginning_is_near() -> None:
    overlap = WordOverlap(LABELS)
    found = crossed(overlap.read(["who produced it", "producers"]), overlap.labels(["producer"]))
    assert found[0, 0, 0] == pytest.approx(NEAR) and found[1, 0, 0] == pytest.approx(1.0)


def test_pairs_and_products_of_all_say_the_same() -> None:
    overlap = WordOverlap(LABELS)
    asked, named = overlap.read(["place of birth in the country", "citizenship"]), overlap.labels(LABELS)
    rows, columns = np.repeat(np.arange(2), 4), np.tile(np.arange(4), 2)
    shared = np.asarray(asked.rows[rows].multiply(named.rows[columns]).sum(1)).ravel()
    paired = shares(shared, asked.total[rows], asked.whole[rows], named.total[columns])
    assert np.allclose(paired.reshape(2, 4, SHARES), crossed(asked, named))
    part = asked.of([1])
    assert np.allclose(crossed(part, named), crossed(asked, named)[1:])
