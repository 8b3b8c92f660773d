"""Training of the scorer: the loss falls, equal seeds give equal weights, and a lost relation makes `none` right."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import torch

from kgqa_core.search.candidates import LabelQuery
from kgqa_core.search.graph import LabelGraph
from kgqa_core.symbolic.by_labels.examples import LabelExample, make_examples
from kgqa_core.symbolic.by_labels.model import learned, untrained
from kgqa_core.symbolic.by_labels.parser import HEAD_FEATURES, NO_CLASS, LabelParser, classes_of
from kgqa_core.symbolic.by_labels.scorer import FEATURES, HEADS, LabelScorer
from kgqa_core.symbolic.by_labels.train import FitOptions, _batch, fit, loss_of
from tests.support.label_graph import X, question_about, same_weights
from tests.support.models import Listener

FEW = FitOptions(steps=4, batch_size=4, candidates=4, checkpoint_seconds=1e-9)


@pytest.fixture(scope="module")
def examples(graph: LabelGraph, scorer: LabelScorer) -> list[LabelExample]:
    """A dozen questions of three operations."""
    rows = []
    for i in range(4):
        name, key = "Norland Sudland Estia Westria".split()[i], f"{X}c{i}"
        rows += [
            (f"capital city of {name}", f"(JOIN (R <{X}capital>) <{key}>)", key),
            (f"how many countries border {name}", f"(COUNT (JOIN (R <{X}borders>) <{key}>))", key),
            (f"head count of {name}", f"(JOIN (R <{X}population>) <{key}>)", key),
        ]
    questions = [(question_about(graph, str(n), text, key), form, 1.0) for n, (text, form, key) in enumerate(rows)]
    found, counts = make_examples(LabelParser(graph, scorer), questions, 7)
    assert counts["examples"] == 12 and counts["uncovered"] == 0
    return found


def trained(
    examples: list[LabelExample], options: FitOptions, seed: int = 7, **more: object
) -> dict[str, torch.Tensor]:
    scorer = LabelScorer(untrained(1))
    fit(scorer, examples, options, seed, **more)  # type: ignore[arg-type]
    return {name: value.clone() for name, value in learned(scorer.network).items()}


def test_a_few_steps_lower_the_loss_and_change_only_what_learns(examples: list[LabelExample]) -> None:
    scorer = LabelScorer(untrained(1))
    options = FitOptions(steps=12, batch_size=6, candidates=4, dropped=0.0)
    batch = _batch(examples, options, random.Random(0))
    fixed = {name: value.clone() for name, value in scorer.network.state_dict().items() if "lower_layers" in name}
    with torch.no_grad():
        before, _ = loss_of(scorer, examples, batch)
    measured = fit(scorer, examples, options, seed=7)
    with torch.no_grad():
        after, hits = loss_of(scorer, examples, batch)
    assert float(after) < 0.8 * float(before) and 0 <= hits <= len(examples)
    assert set(measured) == {"loss", "accuracy"} and 0 <= measured["accuracy"] <= 1
    own = scorer.network.state_dict()
    assert same_weights(fixed, {name: own[name] for name in fixed})
    assert scorer.network.encoder._known is None


@pytest.mark.slow
def test_same_seed_gives_the_same_weights_and_another_one_others(examples: list[LabelExample]) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        first, second, other = (trained(examples, FEW, seed) for seed in (7, 7, 8))
    finally:
        torch.set_num_threads(threads)
    assert same_weights(first, second) and not same_weights(first, other)


@pytest.mark.slow
def test_killed_training_goes_on_to_the_same_weights(examples: list[LabelExample], tmp_path: Path) -> None:
    class Killed(Exception):
        pass

    class Stopping(Listener):
        def progress(self, done: int, total: int, unit: str) -> None:
            raise Killed

    whole = trained(examples, FEW)
    with pytest.raises(Killed):
        trained(examples, FEW, monitor=Stopping(), work=tmp_path)
    kept = list(tmp_path.iterdir())
    assert kept
    assert same_weights(trained(examples, FEW, work=tmp_path), whole)
    assert not list(tmp_path.iterdir())


def plain(right: list[bool], relations: list[set[int]], texts: list[str] | None = None) -> LabelExample:
    """An example with candidates of these relations, of the first class of the first head."""
    size = len(right)
    return LabelExample(
        "q", LabelQuery("who leads x"), texts or [f"phrase {n}" for n in range(size)], ["leader"] * size,
        np.zeros((size, FEATURES), dtype=np.float32), np.array(right, dtype=np.bool_),
        [frozenset(own) for own in relations],
        np.array([[0, *[NO_CLASS] * (len(HEADS) - 1)]] * size, dtype=np.int64).reshape(-1, len(HEADS)),
        (0, *[NO_CLASS] * (len(HEADS) - 1)),
    )  # fmt: skip


def test_lost_relation_takes_its_candidates_away_and_makes_none_right() -> None:
    example = plain([False, True, False, False], [{1}, {2}, {2, 3}, {4}])
    lost = _batch([example], FitOptions(dropped=1.0), random.Random(0))
    assert sorted(lost.phrases) == ["phrase 0", "phrase 3"] and lost.right[0].tolist() == [False, False, True]
    whole = _batch([example], FitOptions(dropped=0.0), random.Random(0))
    assert sorted(whole.phrases) == [f"phrase {n}" for n in range(4)]
    assert whole.right[0].tolist() == [True, False, False, False, False]
    assert whole.phrases[0] == "phrase 1" and whole.sizes == [4]


def test_none_is_right_where_the_graph_holds_no_answer() -> None:
    batch = _batch([plain([False, False], [{1}, {2}])], FitOptions(dropped=1.0), random.Random(0))
    assert batch.right[0].tolist() == [False, False, True]


def test_batch_has_at_most_so_many_candidates_and_the_nearest_wrong_ones() -> None:
    example = plain([False] * 19 + [True], [{n} for n in range(20)])
    batch = _batch([example], FitOptions(candidates=6, dropped=0.0), random.Random(0))
    assert batch.sizes == [6] and batch.phrases[:4] == ["phrase 19", "phrase 0", "phrase 1", "phrase 2"]


def test_equal_phrases_of_a_batch_are_encoded_once() -> None:
    one = plain([True, False], [{1}, {2}], ["capital of x", "borders of x"])
    batch = _batch([one, one], FitOptions(dropped=0.0), random.Random(0))
    assert (
        batch.phrases == ["capital of x", "borders of x"]
        and batch.nouns == ["leader"]
        and batch.pairs.tolist()
        == [
            [0, 0, 0],
            [0, 1, 0],
            [1, 0, 0],
            [1, 1, 0],
        ]
    )


def test_questions_without_any_candidate_teach_that_none_is_right(scorer: LabelScorer) -> None:
    batch = _batch([plain([], [])], FitOptions(), random.Random(0))
    loss, hits = loss_of(scorer, [plain([], [])], batch)
    assert hits == 1 and torch.isfinite(loss)


def test_training_without_examples_is_refused(scorer: LabelScorer) -> None:
    with pytest.raises(ValueError, match="at least one example"):
        fit(scorer, [], FEW, 7)


def test_batch_has_the_log_probabilities_of_inference(graph: LabelGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(3)
    scorer = LabelScorer(untrained(1).eval())
    heads = scorer.network.heads
    with torch.no_grad():
        heads[3].bias[2] -= 100  # type: ignore[union-attr]  # below the least that counts
    parser = LabelParser(graph, scorer)
    question = question_about(graph, "q", "neighbours of Norland except Sudland", X + "c0", X + "c1")
    form = f"(MINUS (JOIN (R <{X}borders>) <{X}c0>) <{X}c1>)"
    [example], _ = make_examples(parser, [(question, form, 1.0)], 7)
    met: list[torch.Tensor] = []
    score = scorer.network.score

    def seen(likeness: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
        met.append(features.detach())
        return score(likeness, features)

    monkeypatch.setattr(scorer.network, "score", seen)
    options = FitOptions(candidates=64, dropped=0.0)
    batch = _batch([example, example], options, random.Random(0))
    loss, _ = loss_of(scorer, [example, example], batch)
    assert torch.isfinite(loss) and len(met) == 1
    [prepared] = parser.prepare([("q", example.query)], most=64)
    inference = {
        (text, classes_of(one)): row[list(HEAD_FEATURES)]
        for text, one, row in zip(prepared.texts, prepared.candidates, prepared.features, strict=True)
    }
    same = 0
    for row, (_, place, _), classes in zip(met[0], batch.pairs.tolist(), batch.classes.tolist(), strict=True):
        expected = inference.get((batch.phrases[place], tuple(classes)))
        if expected is not None:
            same += 1
            assert row[list(HEAD_FEATURES)].tolist() == pytest.approx(expected.tolist(), abs=1e-3)
        assert [value == 0 for value in row[list(HEAD_FEATURES)].tolist()] == [own == NO_CLASS for own in classes]
    assert same > 10 and (met[0][:, 27] == -2).any() and (met[0][:, 2] != 0).any()


JOINED = f"JOIN (R <{X}place_of_birth>) (JOIN (R <{X}directed_by>)"
"""The place of birth of a director."""


@pytest.mark.slow
def test_each_head_learns_its_class_of_the_right_form(graph: LabelGraph, examples: list[LabelExample]) -> None:
    scorer = LabelScorer(untrained(1))
    parser = LabelParser(graph, LabelScorer(untrained(1)))
    far = [
        (question_about(graph, name, f"where was the director of {name} born", X + key), f"({JOINED} <{X}{key}>))", 1.0)
        for name, key in (("Night A0", "f0"), ("Night B1", "f1"))
    ]
    examples = [*examples, *make_examples(parser, far, 7)[0]]
    fit(scorer, examples, FitOptions(steps=40, batch_size=12, candidates=4, dropped=0.0), seed=7)
    with torch.no_grad():
        pooled = scorer.questions([one.query.text for one in examples]).pooled
        kinds, lengths = (scorer.network.heads[n](pooled).argmax(-1).tolist() for n in (0, 3))
    right = sum(kind == one.wanted[0] for kind, one in zip(kinds, examples, strict=True))
    wanted = [one.wanted[3] for one in examples]
    assert right > 11 and set(wanted) == {1, 2} and lengths == wanted


def test_nouns_are_encoded_once_and_belong_to_their_candidates() -> None:
    one = plain([True, False, False], [{1}, {2}, {3}])
    one.nouns[:] = ["city", "year", "city"]
    batch = _batch([one], FitOptions(dropped=0.0), random.Random(0))
    assert batch.nouns == ["city", "year"]
    found = {batch.phrases[text]: batch.nouns[noun] for _, text, noun in batch.pairs.tolist()}
    assert found == {"phrase 0": "city", "phrase 1": "year", "phrase 2": "city"}
