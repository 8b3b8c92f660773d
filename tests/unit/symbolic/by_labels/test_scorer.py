"""The scorer: likenesses in range and of equal texts 1, and what it remembers is what it would encode."""

from __future__ import annotations

import pytest
import torch

from kgqa_core.search.candidates import KINDS
from kgqa_core.symbolic.by_labels import scorer as module
from kgqa_core.symbolic.by_labels.scorer import FEATURES, INNER, LIKENESS, EncodedTexts, LabelScorer, describe

PHRASES = ["capital of x", "film with directed by x", "number of borders of x", "capital of x"]


def test_likeness_of_a_text_to_itself_is_one_and_all_are_at_most_one(scorer: LabelScorer) -> None:
    question = scorer.questions(["capital of x"])
    likeness = scorer.likeness(question, 0, scorer.phrases(PHRASES))
    assert likeness.shape == (4, LIKENESS)
    assert torch.allclose(likeness[0], torch.tensor([1.0, 1.0, 1.0, 0.0, 0.0]), atol=1e-4)
    assert torch.equal(likeness[0], likeness[3])
    assert (likeness <= 1 + 1e-4).all() and (likeness[1:3, :3] < likeness[0, :3]).all()
    assert (likeness[1:3, 3] > 0.1).all() and not likeness[:, 4].any()


def encoded(tokens: list[list[float]], weights: list[float]) -> EncodedTexts:
    """One text with these tokens, whose whole is the first one."""
    rows = torch.tensor([tokens])
    return EncodedTexts(rows[:, 0], rows[:, 0], rows, torch.tensor([weights]), rows[:, 1])


@pytest.mark.parametrize(
    ("weights", "missed"),
    [
        ([0.5, 0.3, 0.2, 0.0], 0.4),  # the third token is said nothing of, and counts 0.2 / 0.5
        ([0.5, 0.4, 0.1, 0.0], 0.32),  # the second counts 0.8, of which 0.6 is said
        ([1.0, 0.0, 0.0, 0.0], 0.0),
        ([0.1, 0.0, 0.9, 0.0], 1.0),
    ],
)
def test_fourth_likeness_is_what_is_missed_of_the_most_important_token_that_is_said_least_of(
    scorer: LabelScorer, weights: list[float], missed: float
) -> None:
    question = encoded([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]], weights)
    phrase = encoded([[1.0, 0.0, 0.0], [0.0, 0.6, -0.8]], [0.75, 0.25])
    found = scorer.network.compare(question, phrase)
    said = weights[0] + 0.6 * weights[1]  # a token that the phrase says the contrary of counts 0, not below
    assert torch.allclose(found, torch.tensor([[1.0, said, 0.75 + 0.25 * 0.6, missed, 0.0]]), atol=1e-6)
    nouns = torch.tensor([[0.0, 0.8, 0.6]])  # what is wanted is the second token
    assert scorer.network.compare(question, phrase, nouns)[:, 4].tolist() == pytest.approx([0.8])
    assert torch.equal(scorer.network.compare(question, phrase, nouns)[:, :4], found[:, :4])


def test_remembered_phrases_are_those_that_are_encoded_anew(scorer: LabelScorer) -> None:
    scorer.clear()
    first = scorer.phrases(PHRASES)
    other = scorer.phrases(PHRASES[1:2])
    again = scorer.phrases(PHRASES)
    assert torch.equal(first.vectors, again.vectors) and torch.equal(first.tokens, again.tokens)
    scorer.clear()
    alone = scorer.phrases(PHRASES[1:2])
    assert torch.allclose(alone.vectors, other.vectors, atol=1e-4)
    assert torch.allclose(alone.weights.sum(1), torch.ones(1), atol=1e-4)


def test_scorer_forgets_before_it_holds_too_much(scorer: LabelScorer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_PHRASES", 4)
    scorer.clear()
    scorer.phrases(["one", "two", "three"])
    found = scorer.phrases(["three", "four", "five"])
    assert len(found.vectors) == 3 and set(scorer._known) == {"three", "four", "five"}


def test_likeness_of_one_of_a_batch_is_that_of_the_question_alone(scorer: LabelScorer) -> None:
    phrases = scorer.phrases(PHRASES)
    batch = scorer.questions(["who made it", "what is the capital city over in x then"])
    alone = scorer.questions(["who made it"])
    assert torch.allclose(scorer.likeness(batch, 0, phrases), scorer.likeness(alone, 0, phrases), atol=1e-4)


def test_fifth_likeness_is_of_the_question_to_what_each_candidate_finds(scorer: LabelScorer) -> None:
    question, nouns = scorer.questions(["director"]), scorer.phrases(["director", "film", "year", "director"])
    found = scorer.likeness(question, 0, scorer.phrases(PHRASES), nouns)
    assert found[0, 4] == pytest.approx(1, abs=1e-4) and found[0, 4] == found[3, 4]  # untrained, it compares as it is
    assert (found[1:3, 4] < 0.999).all() and (found[:, 4] >= -1 - 1e-4).all()
    assert torch.equal(found[:, :4], scorer.likeness(question, 0, scorer.phrases(PHRASES))[:, :4])


def test_rows_of_texts_are_theirs_in_all_parts(scorer: LabelScorer) -> None:
    batch = scorer.questions(["who made it", "what is the capital of x"])
    own = batch.rows(torch.tensor([1]))
    for name in ("pooled", "vectors", "tokens", "weights", "wanted"):
        assert torch.equal(getattr(own, name), getattr(batch, name)[1:]), name


def test_untrained_score_is_the_likeness_with_its_weights(scorer: LabelScorer) -> None:
    likeness = torch.tensor([[1.0, 0.5, 0.25, 0.75, 0.5], [0.0, 0.0, 0.0, 1.0, 1.0]])
    scores = scorer.network.score(likeness, torch.randn(2, FEATURES))
    assert torch.allclose(
        scores, torch.tensor([14.0, 0.0]), atol=1e-5
    )  # the worst token and the noun weigh nothing at first


def test_description_names_what_weights_depend_on(scorer: LabelScorer) -> None:
    width = scorer.network.encoder.width
    assert describe(scorer.network) == {"inner": INNER, "features": FEATURES, "kinds": list(KINDS), "width": width}
