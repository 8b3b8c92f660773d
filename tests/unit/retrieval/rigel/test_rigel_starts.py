"""A soft start: candidates weighted by ρ, gradients that reach their weights, and nothing changed where ρ is 1."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from torch import nn

from kgqa_core.config import RetrievalOptions, RigelOptions
from kgqa_core.datasets.files.question import read_questions, write_questions
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.follow import EntityWeights
from kgqa_core.errors import ArtifactError
from kgqa_core.retrieval.linked_candidates import with_candidates, with_linked_candidates
from kgqa_core.retrieval.rigel.loss import normalised
from kgqa_core.retrieval.rigel.network import Extension, Weighting, load
from kgqa_core.retrieval.rigel.questions import leg_texts, make_starts
from kgqa_core.retrieval.rigel.retriever import RigelRetriever
from kgqa_core.retrieval.rigel.train import train
from kgqa_core.retrieval.rigel.walk import RelationPlan, walk
from kgqa_core.types import Question
from tests.support.device import DEVICE
from tests.support.models import content, resumed, runner
from tests.support.small_world import COUNTRIES

OPTIONS = RigelOptions(
    encoder="scratch", hops=2, epochs=2, patience=12, batch_size=16, learning_rate=5e-3, scratch_width=16,
    min_steps=20, device=DEVICE,
)  # fmt: skip
SOFT = OPTIONS.model_copy(update={"soft_start": True, "candidates": 2})
run = runner(train, OPTIONS)


def write_links(folder: Path, questions: list[Question], wrong: int) -> None:
    """Linked questions: of each topic two candidates, the right one with ρ 0.4 behind the entity that is `wrong` on."""
    folder.mkdir()
    linked, rows = [], []
    for question in questions:
        topic = question.topic_entities[0]
        other = (topic + wrong) % COUNTRIES + (COUNTRIES if topic >= COUNTRIES else 0)
        linked.append(replace(question, topic_entities=(other,), topic_weights=(0.6,)))
        for rank, (entity, rho) in enumerate([(other, 0.6), (topic, 0.4)]):
            rows.append((question.id, 0, 0, 4, question.topic_keys[0], entity, rho, rank))
    write_questions(folder, linked)
    columns = ["question", "turn", "start", "end", "mention", "entity", "rho", "rank"]
    pl.DataFrame(rows, schema=columns, orient="row").write_parquet(folder / "links.parquet")


@pytest.mark.parametrize("loss", ["bce", "normalised"])
def test_training_on_certain_topics_is_the_plain_training(world: Any, tmp_path: Path, loss: str) -> None:
    run(world, tmp_path / "plain", OPTIONS.model_copy(update={"loss": loss}))
    run(world, tmp_path / "soft", SOFT.model_copy(update={"loss": loss}))
    one, two = load(tmp_path / "plain", world.dkg), load(tmp_path / "soft", world.dkg)
    weights = two.network.state_dict()
    assert all(torch.equal(value, weights[name]) for name, value in one.network.state_dict().items())
    assert all(name.startswith("extras.weighting.") for name in set(weights) - set(one.network.state_dict()))
    questions = [question for question in world.questions if question.split == "test"]
    first, second = (RigelRetriever(world.dkg, own, RetrievalOptions()).retrieve(questions) for own in (one, two))
    assert first == second
    assert "extension" not in json.loads((tmp_path / "plain" / "config.json").read_text())
    assert two.extension == Extension(soft_start=True, candidates=2)


def test_weights_of_one_are_the_plain_retriever_and_smaller_ones_scale_its_scores(world: Any, tmp_path: Path) -> None:
    run(world, tmp_path / "plain")
    retriever = RigelRetriever(world.dkg, load(tmp_path / "plain", world.dkg), RetrievalOptions())
    questions = world.questions[:5]
    plain = retriever.retrieve(questions)
    assert retriever.retrieve([replace(question, topic_weights=(1.0,)) for question in questions]) == plain
    halves = retriever.retrieve([replace(question, topic_weights=(0.5,)) for question in questions])
    for whole, half in zip(plain, halves, strict=True):
        assert [entity for entity, _ in whole.entities[:3]] == [entity for entity, _ in half.entities[:3]]
        assert half.entities[0][1] == pytest.approx(whole.entities[0][1] / 2, abs=1e-5)


def test_weighting_starts_at_rho_and_keeps_what_is_certain() -> None:
    torch.manual_seed(0)
    weighting = Weighting(8)
    rho = torch.tensor([0.2, 0.7, 1.0, 0.0])
    given = torch.randn(4, 8), torch.randn(4, 8), rho, torch.rand(4, 2)
    assert torch.allclose(weighting(*given), torch.tensor([0.2, 0.7, 1.0, 1e-4]), atol=1e-6)
    nn.init.normal_(weighting.out.weight)
    moved = weighting(*given).detach()
    assert float(moved[2]) == 1.0
    assert not torch.allclose(moved[:2], rho[:2], atol=1e-3)
    assert bool(((moved >= 0) & (moved <= 1)).all())


def test_weighting_passes_gradcheck_in_rho_question_and_text() -> None:
    torch.manual_seed(1)
    weighting = Weighting(6).double()
    nn.init.normal_(weighting.out.weight)
    state, words = (torch.randn(5, 6, dtype=torch.float64, requires_grad=True) for _ in range(2))
    rho = (torch.rand(5, dtype=torch.float64) * 0.8 + 0.1).requires_grad_()
    features = torch.rand(5, 2, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda s, w, r: weighting(s, w, r, features), (state, words, rho))


def test_gradient_goes_through_the_graph_to_rho() -> None:
    dkg = Dkg.from_triples([0, 1], [0, 0], [2, 3], 4, 1)
    rho = torch.tensor([0.6, 0.4], requires_grad=True)
    plan = RelationPlan([torch.tensor([[1.0, 0.0]])], torch.ones(1, 1))
    topics = EntityWeights.one_hot([[0, 1]]).with_weight(rho)
    normalised(walk(dkg, topics, plan).scores, [[3]]).sum().backward()
    assert rho.grad is not None
    assert float(rho.grad[1]) < 0 <= float(rho.grad[0])


def test_starts_know_a_candidates_share_of_its_mention() -> None:
    dkg = Dkg.from_triples([0, 0, 0, 1], [0, 0, 0, 0], [2, 3, 4, 2], 5, 1)
    question = Question("q", "x", topic_entities=(1, 0), topic_weights=(0.25, 0.75), topic_mentions=(0, 0))
    starts = make_starts([question, Question("none", "y")], dkg, False, {})
    assert starts.sets.to_rows() == [{0: 0.75, 1: 0.25}, {}]
    assert starts.features[:, 0].tolist() == pytest.approx([4 / 6, 2 / 6])
    assert starts.features[0, 1] > starts.features[1, 1]
    again, legs = starts.take(torch.tensor([1, 0]))
    assert (again.sets.to_rows(), legs.tolist(), again.ptr.tolist()) == ([{}, {0: 0.75, 1: 0.25}], [1, 0], [0, 1, 2])


def test_candidates_come_from_the_links_of_accepted_mentions(world: Any, tmp_path: Path) -> None:
    write_links(tmp_path / "linked", world.questions, 1)
    best = read_questions(tmp_path / "linked")
    wide = with_linked_candidates(best, tmp_path / "linked", 2)
    right = next(own for own in world.questions if own.id == wide[0].id)
    assert wide[0].topic_entities == (best[0].topic_entities[0], right.topic_entities[0])
    assert (wide[0].topic_weights, wide[0].topic_mentions) == ((0.6, 0.4), (0, 0))
    assert leg_texts(wide[0], False, "[T]", {}) == leg_texts(right, False, "[T]", {})
    assert with_linked_candidates(best, tmp_path / "linked", 1)[0].topic_entities == best[0].topic_entities
    assert with_linked_candidates(best, tmp_path, 2) == best
    assert with_candidates(best[0], [("Land 9", [(9, 0.9), (1, 0.5)])], 2) == best[0], "its best is no topic"
    pl.DataFrame({"question": ["q"]}).write_parquet(tmp_path / "linked" / "links.parquet")
    with pytest.raises(ArtifactError, match=r"links\.parquet cannot be read"):
        with_linked_candidates(best, tmp_path / "linked", 2)


def test_learns_which_candidate_is_meant_and_resumes_to_the_same_bytes(world: Any, tmp_path: Path) -> None:
    """Where each answer can be reached from the right candidate alone, gradients lift it over the linker's first."""
    capitals = [question for question in world.questions if question.relation_paths[0] == ("capital",)]
    folder = tmp_path / "linked"
    folder.mkdir()
    linked, rows = [], []
    for question in capitals:
        topic = question.topic_entities[0]
        linked.append(replace(question, topic_entities=(COUNTRIES + topic,), topic_weights=(0.7,)))
        for rank, (entity, rho) in enumerate([(COUNTRIES + topic, 0.7), (topic, 0.3)]):
            rows.append((question.id, 0, 0, 4, question.topic_keys[0], entity, rho, rank))
    write_questions(folder, linked)
    columns = ["question", "turn", "start", "end", "mention", "entity", "rho", "rank"]
    pl.DataFrame(rows, schema=columns, orient="row").write_parquet(folder / "links.parquet")
    options = SOFT.model_copy(update={"min_steps": 60, "hops": 1})
    counts = run(world, tmp_path / "soft", options, questions=folder)
    assert counts["dev_hits_at_1"] == 1.0
    trained = load(tmp_path / "soft", world.dkg)
    retriever = RigelRetriever(world.dkg, trained, RetrievalOptions())
    questions = with_linked_candidates(linked[-3:], folder, retriever.candidates)
    assert questions[0].topic_mentions == (0, 0)
    assert with_linked_candidates(linked, tmp_path, 2) == linked
    found = retriever.retrieve(questions)
    assert [own.entities[0][0] in question.answers for own, question in zip(found, questions, strict=True)] == [
        True
    ] * 3
    assert found[0].entities[0][1] > 0.3, "the right candidate weighs more than the linker gave it"
    assert resumed(run, world, tmp_path, options, 13, questions=folder)[1] == content(tmp_path / "soft")
