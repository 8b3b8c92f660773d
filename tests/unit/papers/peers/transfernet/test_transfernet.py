"""TransferNet reads words, transfers scores, learns one and two hops from answers, and is stored and loaded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from kgqa_core.config import RetrievalOptions, TransferNetOptions
from kgqa_core.datasets.files.question import write_questions
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.follow import EntityWeights
from kgqa_core.errors import GraphMismatch, TrainingError
from kgqa_core.nn.encoders import Scratch
from kgqa_core.papers.peers.transfernet.network import TransferNet, load
from kgqa_core.papers.peers.transfernet.train import squared_error, train
from kgqa_core.retrieval.api import RetrieverInputs, TrainingInputs
from kgqa_core.retrieval.collect import collect
from kgqa_core.retrieval.registry import open_retriever
from kgqa_core.retrieval.rigel.walk import RelationPlan, WalkOptions, walk
from kgqa_core.workspace import Workspace
from tests.support.device import DEVICE
from tests.support.models import content, ignores_checkpoints, resumed, runner

OPTIONS = TransferNetOptions(
    encoder="scratch", hops=2, epochs=12, patience=12, batch_size=8, learning_rate=5e-3, scratch_width=32, device=DEVICE
)
run = runner(train, OPTIONS)
QUICK = OPTIONS.model_copy(update={"epochs": 3, "min_steps": 1, "scratch_width": 16})


@pytest.fixture(scope="module")
def trained(world: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("trained") / "transfernet"
    return folder, run(world, folder)


@pytest.fixture(scope="module")
def undisturbed(world: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed") / "transfernet"
    run(world, folder, QUICK)
    return folder


def hits(world: Any, trained: Path, out: Path) -> float:
    out.mkdir()
    inputs = RetrieverInputs(world.dkg, RetrievalOptions(), trained=trained)
    return float(collect(Workspace(out), world.questions_folder, "transfernet", inputs)["hits_at_1"]["test"])


def test_learns_one_and_two_hops_from_answers_alone(
    world: Any, trained: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    folder, counts = trained
    assert counts["dev_hits_at_1"] == 1.0 and counts["dev_hop_accuracy"] == 1.0
    assert counts["with_hops"] == counts["questions"]["train"] and counts["hops"] == 2
    assert hits(world, folder, tmp_path / "facts") == 1.0


@pytest.mark.slow
def test_relations_scored_by_themselves_learn_too(world: Any, tmp_path: Path) -> None:
    counts = run(world, tmp_path / "own", OPTIONS.model_copy(update={"relation_scores": "sigmoid", "epochs": 20}))
    assert counts["dev_hits_at_1"] >= 0.9
    assert hits(world, tmp_path / "own", tmp_path / "facts") >= 0.9


@pytest.mark.slow
def test_hops_are_not_needed(world: Any, tmp_path: Path) -> None:
    (tmp_path / "questions").mkdir()
    write_questions(tmp_path / "questions", [replace(question, hops=None) for question in world.questions])
    (tmp_path / "own").mkdir()
    longer = OPTIONS.model_copy(update={"epochs": 30, "patience": 30})
    given = {"dkg": world.dkg_folder, "questions": tmp_path / "questions", "options": longer, "seed": 7}
    counts = train(Workspace(tmp_path / "own"), TrainingInputs(**given))
    assert counts["with_hops"] == 0 and counts["dev_hits_at_1"] >= 0.8 and "dev_hop_accuracy" not in counts


def test_squared_error_weighs_answers_and_counts_those_that_were_not_reached() -> None:
    """By hand: 0.5 on one of two answers, 0.2 on another entity, the second answer missed; weight 10."""
    scores = EntityWeights.from_rows([{3: 0.5, 4: 0.2}, {}])
    found = squared_error(scores, [(3, 9), (1,)]).tolist()
    assert found == pytest.approx([(10 * 0.25 + 0.04 + 10) / 20, 1.0])
    perfect = squared_error(EntityWeights.one_hot([[3, 9]]), [(3, 9)])
    assert perfect.tolist() == [0.0]


def test_weights_above_one_become_one_after_each_step_and_keep_a_gradient() -> None:
    """Two ways lead from 0 to 3, each of weight 1; what is behind gets 1, not 2."""
    graph = Dkg.from_triples([0, 0, 1, 2, 3], [0, 0, 1, 1, 2], [1, 2, 3, 3, 4], 5, 3)
    relations = [torch.zeros(1, 6) for _ in range(3)]
    for hop, relation in enumerate((0, 1, 2)):
        relations[hop][0, relation] = 1.0
        relations[hop].requires_grad_()
    plan = RelationPlan(relations, torch.tensor([[0.0, 0.0, 1.0]]))
    plain = walk(graph, EntityWeights.one_hot([[0]]), plan, WalkOptions(epsilon=1e-6))
    clamped = walk(graph, EntityWeights.one_hot([[0]]), plan, WalkOptions(epsilon=1e-6, clamp=True))
    assert [(s.entity.tolist(), s.weight.tolist()) for s in clamped.sets] == [
        ([0], [1.0]), ([1, 2], [1.0, 1.0]), ([3], [1.0]), ([4], [1.0]),
    ]  # fmt: skip
    assert plain.sets[-1].weight.tolist() == [2.0] and clamped.sets[-1].weight.tolist() == [1.0]
    clamped.sets[-1].weight.sum().backward()
    assert relations[1].grad is not None and float(relations[1].grad[0, 1]) == pytest.approx(1.0)


def test_a_step_reads_words_and_no_padding() -> None:
    torch.manual_seed(1)
    network = TransferNet(Scratch(20, 8, 0), 4, 2, "softmax").eval()
    ids, mask = torch.tensor([[5, 6, 7, 0, 0], [5, 6, 7, 8, 9]]), torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
    with torch.inference_mode():
        states, question = network.read(ids, mask)
        read, attention = network.attend(network.steps[0], states, question, mask)
        short = network(ids[:1, :3], mask[:1, :3])
        both = network(ids, mask)
    assert attention.sum(1).tolist() == pytest.approx([1.0, 1.0]) and attention[0, 3:].tolist() == [0.0, 0.0]
    assert torch.allclose(read[0], (attention[0, :3, None] * states[0, :3]).sum(0), atol=1e-6)
    assert torch.allclose(short.relations[1][0], both.relations[1][0], atol=1e-6)
    assert both.attention.sum(1).tolist() == pytest.approx([1.0, 1.0])
    assert both.relations[0].sum(1).tolist() == pytest.approx([1.0, 1.0])
    alone = TransferNet(Scratch(20, 8, 0), 4, 2, "sigmoid").eval()
    with torch.inference_mode():
        assert float(alone(ids, mask).relations[0].max()) < 0.1, "training does not begin by following every edge"


@pytest.mark.slow
def test_same_seed_gives_the_same_bytes(world: Any, undisturbed: Path, tmp_path: Path) -> None:
    run(world, tmp_path / "again", QUICK)
    run(world, tmp_path / "other", QUICK, seed=8)
    assert content(tmp_path / "again") == content(undisturbed)
    assert content(tmp_path / "other")["model.safetensors"] != content(undisturbed)["model.safetensors"]


@pytest.mark.slow
def test_killed_training_goes_on_and_ends_with_the_same_bytes(world: Any, undisturbed: Path, tmp_path: Path) -> None:
    again, written = resumed(run, world, tmp_path, QUICK, 5)
    assert written == content(undisturbed)
    assert any("goes on from its checkpoint" in note for note in again.notes)


def test_checkpoint_of_another_training_is_not_gone_on_from(world: Any, undisturbed: Path, tmp_path: Path) -> None:
    assert ignores_checkpoints(run, world, tmp_path, QUICK) == [content(undisturbed)] * 2


def test_other_graph_and_questions_without_answers_are_refused(
    world: Any, trained: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    other = Dkg.from_triples([0], [0], [1], 2, ["other"])
    with pytest.raises(GraphMismatch, match="knows 3 relations and this graph has 1; they differ in"):
        load(trained[0], other)
    with pytest.raises(GraphMismatch, match="Train it on this graph"):
        open_retriever("transfernet", RetrieverInputs(other, RetrievalOptions(), trained=trained[0]))
    (tmp_path / "questions").mkdir()
    write_questions(tmp_path / "questions", [replace(one, answers=()) for one in world.questions])
    with pytest.raises(TrainingError, match="none of the 112 training questions has both a topic entity and an answer"):
        train(Workspace(tmp_path), TrainingInputs(world.dkg_folder, tmp_path / "questions", QUICK, 7))
