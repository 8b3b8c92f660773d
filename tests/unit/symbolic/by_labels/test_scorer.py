"""The scorer: likenesses in range and of equal texts 1, and what it remembers is what it would encode."""

from __future__ import annotations

import pytest
import torch

from kgqa_core.symbolic.by_labels import scorer as module
from kgqa_core.symbolic.by_labels.candidates import KINDS
from kgqa_core.symbolic.by_labels.scorer import FEATURES, INNER, LabelScorer, describe

PHRASES = ["capital of x", "film with directed by x", "number of borders of x", "capital of x"]


def test_likeness_of_a_text_to_itself_is_one_and_all_are_at_most_one(scorer: LabelScorer) -> None:
    question = scorer.questions(["capital of x"])
    likeness = scorer.likeness(question, 0, scorer.phrases(PHRASES))
    assert likeness.shape == (4, 4)
    assert torch.allclose(likeness[0], torch.ones(3), atol=1e-4)
    assert torch.equal(likeness[0], likeness[3])
    assert (likeness <= 1 + 1e-4).all() and (likeness[1:3] < likeness[0]).all()


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


def test_untrained_score_is_the_likeness_with_its_weights(scorer: LabelScorer) -> None:
    likeness = torch.tensor([[1.0, 0.5, 0.25], [0.0, 0.0, 0.0]])
    scores = scorer.network.score(likeness, torch.randn(2, FEATURES))
    assert torch.allclose(scores, torch.tensor([14.0, 0.0]), atol=1e-5)


def test_description_names_what_weights_depend_on(scorer: LabelScorer) -> None:
    width = scorer.network.encoder.width
    assert describe(scorer.network) == {"inner": INNER, "features": FEATURES, "kinds": list(KINDS), "width": width}
