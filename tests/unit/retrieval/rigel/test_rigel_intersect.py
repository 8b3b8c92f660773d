"""Topics that are followed apart: the sparse mix of union and intersection, and a retriever that learns it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from kgqa_core.config import RetrievalOptions, RigelOptions
from kgqa_core.datasets.files.question import write_questions
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.follow import EntityWeights
from kgqa_core.errors import GraphMismatch
from kgqa_core.retrieval.api import RetrieverInputs
from kgqa_core.retrieval.collect import collect
from kgqa_core.retrieval.rigel.network import load
from kgqa_core.retrieval.rigel.questions import OTHER, leg_texts, mentions_of
from kgqa_core.retrieval.rigel.retriever import RigelRetriever
from kgqa_core.retrieval.rigel.train import train
from kgqa_core.retrieval.rigel.walk import RelationPlan, combine, walk
from kgqa_core.types import Question
from kgqa_core.workspace import Workspace
from tests.support.device import DEVICE
from tests.support.models import content, resumed, runner
from tests.support.small_world import store_dkg

OPTIONS = RigelOptions(
    encoder="scratch", hops=2, epochs=3, patience=12, batch_size=8, learning_rate=5e-3, scratch_width=16, device=DEVICE
)
run = runner(train, OPTIONS)


@pytest.mark.parametrize("how", ["product", "min"])
@pytest.mark.parametrize("seed", range(6))
def test_sparse_mix_equals_the_dense_one_on_random_graphs(how: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    entities, relations = 30, 4
    triples = {
        (int(random.integers(entities)), int(random.integers(relations)), int(random.integers(entities)))
        for _ in range(120)
    }
    dkg = Dkg.from_triples(*zip(*sorted(triples), strict=True), entities, relations)
    counts = [int(count) for count in random.integers(0, 4, size=7)]
    legs = sum(counts)
    ptr = torch.tensor([0, *np.cumsum(counts)])
    topics = EntityWeights.one_hot([[int(random.integers(entities))] for _ in range(legs)])
    torch.manual_seed(seed)
    plan = RelationPlan(
        [torch.softmax(torch.randn(legs, 2 * relations), 1) for _ in range(2)], torch.softmax(torch.randn(legs, 2), 1)
    )
    share = torch.rand(len(counts))
    mixed = combine(walk(dkg, topics, plan).scores, ptr, share, how)
    steps = dense_walk(dkg, topics, plan)
    for question, count in enumerate(counts):
        own = steps[int(ptr[question]) : int(ptr[question]) + count]
        assert torch.allclose(dense(mixed, entities)[question], expected(own, share[question], how), atol=1e-6)


def dense(weights: EntityWeights, entities: int) -> Tensor:
    """[batch, entities]."""
    matrix = torch.zeros(weights.batch, entities)
    matrix[weights.row, weights.entity] = weights.weight
    return matrix


def dense_walk(dkg: Dkg, topics: EntityWeights, plan: RelationPlan) -> Tensor:
    """Σ a_t x_t with matrices of the size of the graph."""
    heads, relations, tails = (
        torch.from_numpy(column.astype(np.int64)) for column in dkg.edges(np.arange(dkg.triples))
    )
    x, total = dense(topics, dkg.entities), torch.zeros(topics.batch, dkg.entities)
    for hop, weights in enumerate(plan.relations):
        forward = torch.zeros_like(x).index_add(1, tails, x[:, heads] * weights[:, relations])
        back = torch.zeros_like(x).index_add(1, heads, x[:, tails] * weights[:, relations + dkg.relations])
        x = forward + back
        total = total + plan.attention[:, hop : hop + 1] * x
    return total


def expected(own: Tensor, share: Tensor, how: str) -> Tensor:
    """The mix of the dense scores of a question's legs."""
    if len(own) < 2:
        return own.sum(0)
    bounded = own.clamp(max=1)
    met = bounded.prod(0) if how == "product" else bounded.min(0).values
    return (1 - share) * own.sum(0) + share * met


def test_a_question_with_one_topic_keeps_its_scores_to_the_bit() -> None:
    legs = EntityWeights.from_rows([{1: 0.25, 4: 1.75}, {2: 0.5}, {2: 0.25, 3: 1.0}])
    mixed = combine(legs, torch.tensor([0, 1, 3]), torch.tensor([0.7, 1.0]), "product")
    assert mixed.to_rows()[0] == {1: 0.25, 4: 1.75}
    assert mixed.to_rows()[1] == {2: 0.125, 3: 0.0}


@pytest.mark.parametrize("how", ["product", "min"])
def test_mix_passes_gradcheck_in_weights_and_share(how: str) -> None:
    torch.manual_seed(3)
    bare = EntityWeights.one_hot([[0, 1, 2], [1, 2, 3], [5], [0, 4], [4, 6], [4, 0, 6]])
    ptr = torch.tensor([0, 2, 3, 6])
    weight = (torch.rand(len(bare.entity), dtype=torch.float64) * 0.9).requires_grad_()
    share = torch.rand(3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda w, s: combine(bare.with_weight(w), ptr, s, how).weight, (weight, share))


def test_legs_that_do_not_fit_are_refused() -> None:
    with pytest.raises(GraphMismatch, match="2 legs and 1 shares do not fit 1 questions"):
        combine(EntityWeights.one_hot([[0], [1]]), torch.tensor([0, 3]), torch.ones(1), "min")


def test_each_leg_reads_its_own_mention_and_a_word_for_the_others() -> None:
    question = Question("q", "who borders New York and York", topic_keys=("York", "New York"), topic_entities=(3, 5))
    assert leg_texts(question, True, "[T]", {}) == [f"who borders {OTHER} and [T]", f"who borders [T] and {OTHER}"]
    assert leg_texts(question, False, "[T]", {}) == ["who borders [T] and [T]"]
    one = replace(question, topic_keys=("York",), topic_entities=(3, 5))
    assert mentions_of(one) == [[0, 1]]
    assert len(leg_texts(one, True, "[T]", {})) == 1


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["bce", "normalised"])
def test_training_on_single_topics_is_the_plain_training(world: Any, tmp_path: Path, loss: str) -> None:
    plain = OPTIONS.model_copy(update={"loss": loss, "exclude_topic": True})
    run(world, tmp_path / "plain", plain)
    run(world, tmp_path / "apart", plain.model_copy(update={"intersect": "min"}))
    one, two = load(tmp_path / "plain", world.dkg), load(tmp_path / "apart", world.dkg)
    weights = two.network.state_dict()
    assert all(torch.equal(value, weights[name]) for name, value in one.network.state_dict().items())
    assert set(weights) - set(one.network.state_dict()) == {"extras.gate.weight", "extras.gate.bias"}
    questions = [question for question in world.questions if question.split == "test"]
    first, second = (RigelRetriever(world.dkg, own, RetrievalOptions()).retrieve(questions) for own in (one, two))
    assert first == second


class Crossing:
    """Places a_i and b_j, and cities that lie at one crossing each: what lies at both a_i and b_j?"""

    def __init__(self, folder: Path) -> None:
        n = 12
        triples = sorted([(2 * n + i * n + j, 0, i) for i in range(n) for j in range(n)])
        triples += sorted([(2 * n + i * n + j, 1, n + j) for i in range(n) for j in range(n)])
        self.dkg = Dkg.from_triples(*zip(*triples, strict=True), 2 * n + n * n, ("road", "river"))
        self.dkg_folder = store_dkg(self.dkg, folder / "dkg")
        self.questions = [
            Question(
                id=f"q{i:02}{j:02}",
                text=f"what lies where Way {i} crosses Stream {j}",
                split="train" if i < 8 else "dev" if i < 10 else "test",
                topic_keys=(f"Way {i}", f"Stream {j}"),
                topic_entities=(i, n + j),
                answer_keys=("x",),
                answers=(2 * n + i * n + j,),
                answer_names=(("x",),),
            )
            for i in range(n)
            for j in range(n)
        ]
        self.questions_folder = folder / "questions"
        self.questions_folder.mkdir()
        write_questions(self.questions_folder, self.questions)


@pytest.fixture(scope="module")
def crossing(tmp_path_factory: pytest.TempPathFactory) -> Crossing:
    return Crossing(tmp_path_factory.mktemp("crossing"))


@pytest.mark.parametrize("decoder", ["layer", pytest.param("label", marks=pytest.mark.slow)])
def test_learns_what_two_topics_have_in_common(crossing: Crossing, tmp_path: Path, decoder: str) -> None:
    options = OPTIONS.model_copy(update={"hops": 1, "min_steps": 150, "decoder": decoder, "intersect": "product"})
    counts = run(crossing, tmp_path / "retriever", options)
    assert counts["dev_hits_at_1"] == 1.0
    (tmp_path / "facts").mkdir()
    found = collect(
        Workspace(tmp_path / "facts"),
        crossing.questions_folder,
        "rigel",
        RetrieverInputs(crossing.dkg, RetrievalOptions(k=4), 7, trained=tmp_path / "retriever"),
    )
    assert found["hits_at_1"]["test"] == 1.0
    retriever = RigelRetriever(crossing.dkg, load(tmp_path / "retriever", crossing.dkg), RetrievalOptions(k=4))
    question = crossing.questions[-1]
    retrieved = retriever.retrieve([question])[0]
    heads, _, tails = crossing.dkg.edges([fact.triple for fact in retrieved.facts])
    at_answer = {int(tail) for head, tail in zip(heads, tails, strict=True) if int(head) == question.answers[0]}
    assert at_answer == set(question.topic_entities)
    assert len(retrieved.facts) <= 4
    assert sum(retrieved.hop_attention) == pytest.approx(1, abs=1e-5)


def test_killed_training_with_legs_goes_on_and_ends_with_the_same_bytes(crossing: Crossing, tmp_path: Path) -> None:
    options = OPTIONS.model_copy(update={"hops": 1, "min_steps": 30, "intersect": "min"})
    run(crossing, tmp_path / "whole", options)
    assert resumed(run, crossing, tmp_path, options, 17)[1] == content(tmp_path / "whole")
