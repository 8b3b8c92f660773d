"""Rigel learns, stops and resumes, is stored and loaded, and retrieves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from kgqa_core.config import RetrievalOptions, RigelOptions
from kgqa_core.datasets.files.question import write_questions
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.follow import EntityWeights
from kgqa_core.errors import ArtifactError, GraphMismatch, ModelError, TrainingError
from kgqa_core.retrieval.api import RetrieverInputs
from kgqa_core.retrieval.collect import collect
from kgqa_core.retrieval.rigel.network import load
from kgqa_core.retrieval.rigel.retriever import RigelRetriever
from kgqa_core.retrieval.rigel.train import train
from kgqa_core.retrieval.rigel.walk import RelationPlan, WalkOptions, walk
from kgqa_core.workspace import Workspace
from tests.support.device import DEVICE
from tests.support.models import Listener, runner

OPTIONS = RigelOptions(
    encoder="scratch",
    hops=2,
    epochs=12,
    patience=12,
    min_steps=1,
    batch_size=8,
    learning_rate=5e-3,
    scratch_width=32,
    device=DEVICE,
)
run = runner(train, OPTIONS)


@pytest.fixture(scope="module")
def trainings(world: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, dict[str, Any]]]:
    """Folder and counts of a training with a loss; each is trained once."""

    @cache
    def training(loss: str) -> tuple[Path, dict[str, Any]]:
        folder = tmp_path_factory.mktemp("trained") / "retriever"
        return folder, run(world, folder, OPTIONS.model_copy(update={"loss": loss}))

    return training


@pytest.fixture(scope="module")
def trained(trainings: Any) -> Path:
    return Path(trainings("bce")[0])


@pytest.mark.parametrize("loss", ["bce", pytest.param("normalised", marks=pytest.mark.slow)])
def test_learns_one_and_two_hops_from_answers_alone(world: Any, trainings: Any, tmp_path: Path, loss: str) -> None:
    folder, counts = trainings(loss)
    assert counts["dev_hits_at_1"] == 1.0
    assert counts["left_out"]["train"] == 0
    (tmp_path / "facts").mkdir()
    found = collect(
        Workspace(tmp_path / "facts"),
        world.questions_folder,
        "rigel",
        RetrieverInputs(world.dkg, RetrievalOptions(), 7, trained=folder),
    )
    assert found["hits_at_1"]["test"] == 1.0


def test_questions_without_topic_or_answer_are_left_out_and_named(world: Any, tmp_path: Path) -> None:
    questions = [
        replace(question, topic_entities=()) if question.id == "q00-capital-0" else question
        for question in world.questions
    ]
    questions += [yes_no(world.questions[0])]
    (tmp_path / "questions").mkdir()
    write_questions(tmp_path / "questions", questions)
    counts = run(world, tmp_path / "r", OPTIONS.model_copy(update={"epochs": 1}), questions=tmp_path / "questions")
    assert counts["left_out"]["train"] == 2
    assert counts["left_out"]["examples"] == ["q00-capital-0", "yes-no"]
    write_questions(tmp_path / "questions", [replace(question, answers=()) for question in world.questions])
    with pytest.raises(TrainingError, match="none of the 112 training questions"):
        run(world, tmp_path / "none", questions=tmp_path / "questions")


def yes_no(like: Any) -> Any:
    return replace(like, id="yes-no", answer_type="yes/no", answers=())


def test_stored_retriever_is_rebuilt_and_refuses_other_relations(world: Any, trained: Path, tmp_path: Path) -> None:
    first, second = load(trained, world.dkg), load(trained, world.dkg)
    one, two = (model.plan(["what is the capital of [TOPIC]"]) for model in (first, second))
    assert all(torch.equal(a, b) for a, b in zip(one.relations, two.relations, strict=True))
    other = Dkg.from_triples([0], [0], [1], 2, ["capital", "currency", "mayor"])
    with pytest.raises(GraphMismatch, match="mayor"):
        load(trained, other)
    with pytest.raises(ArtifactError, match="does not hold a trained retriever"):
        load(tmp_path, world.dkg)


def test_retrieved_facts_are_the_reasoning_path(world: Any, trained: Path) -> None:
    retriever = RigelRetriever(world.dkg, load(trained, world.dkg), RetrievalOptions())
    question = next(question for question in world.questions if question.hops == 2 and question.split == "test")
    found, empty = retriever.retrieve([question, replace(question, id="none", topic_entities=())])
    heaviest = [next(fact for fact in found.facts if fact.hop == hop) for hop in (1, 2)]
    heads, relations, tails = world.dkg.edges([fact.triple for fact in heaviest])
    assert [fact.direction for fact in heaviest] == [-1, 1]
    assert relations.tolist() == [0, 1]
    assert (int(tails[0]), int(heads[0]), int(tails[1])) == (
        question.topic_entities[0],
        int(heads[1]),
        question.answers[0],
    )
    assert found.entities[0][0] == question.answers[0]
    assert [fact.rank for fact in found.facts] == list(range(len(found.facts)))
    assert sum(found.hop_attention) == pytest.approx(1, abs=1e-5)
    assert empty.facts == () and empty.entities == () and empty.truncated == 0


def test_k_bounds_the_facts_of_a_hop_and_the_edge_budget_is_reported(world: Any, trained: Path) -> None:
    question = world.questions[0]
    model = load(trained, world.dkg)
    bounded = RigelRetriever(world.dkg, model, RetrievalOptions(k=1)).retrieve([question])[0]
    assert all(sum(fact.hop == hop for fact in bounded.facts) <= 1 for hop in (1, 2))
    cut = RigelRetriever(world.dkg, model, RetrievalOptions(edge_budget=1)).retrieve([question])[0]
    assert cut.truncated > 0
    assert bounded.truncated == 0


def test_exclude_topic_takes_the_topic_out_after_each_hop() -> None:
    dkg = Dkg.from_triples([0, 1], [0, 0], [2, 2], 3, 1)  # two films by one director
    there, back = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    plan = RelationPlan([there, back], torch.tensor([[0.0, 1.0]]))
    topics = EntityWeights.one_hot([[0]])
    best = walk(dkg, topics, plan).scores.top(5)[0]
    left = walk(dkg, topics, plan, WalkOptions(exclude_topic=True)).scores.top(5)[0]
    assert [entity for entity, weight in best if weight > 0] == [0, 1]
    assert [entity for entity, weight in left if weight > 0] == [1]


@pytest.mark.slow
def test_minilm_trains_and_warns_of_text_that_it_cannot_read(world: Any, tmp_path: Path) -> None:
    chinese = [replace(question, text="马振霞是哪里人" + question.text[:4]) for question in world.questions[:8]]
    (tmp_path / "questions").mkdir()
    write_questions(tmp_path / "questions", chinese)
    listener = Listener()
    options = OPTIONS.model_copy(update={"encoder": "minilm", "epochs": 1})
    counts = run(world, tmp_path / "r", options, questions=tmp_path / "questions", monitor=listener)
    assert counts["unknown_token_share"] > 0.05
    assert any("unknown to the encoder 'minilm'" in note and "scratch" in note for note in listener.notes)
    plan = load(tmp_path / "r", world.dkg).plan(["what is the capital of [MASK]?"])
    assert plan.attention.shape == (1, 2)
    assert not [path for path in (tmp_path / "r").iterdir() if b"site-packages" in path.read_bytes()]


def test_encoder_that_is_none_is_named(world: Any, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for encoder, reason in (
        (str(tmp_path / "empty"), "config.json"),
        (str(tmp_path / "missing" / "deep" / "er"), "neither a folder nor a hub id"),
    ):
        with pytest.raises(ModelError, match=reason) as fault:
            run(world, tmp_path / f"r{len(reason)}", OPTIONS.model_copy(update={"encoder": encoder}))
        assert encoder in str(fault.value)
    (tmp_path / "empty" / "config.json").write_text("{}")
    with pytest.raises(ModelError, match="cannot be loaded as an encoder"):
        run(world, tmp_path / "r", OPTIONS.model_copy(update={"encoder": str(tmp_path / "empty")}))
