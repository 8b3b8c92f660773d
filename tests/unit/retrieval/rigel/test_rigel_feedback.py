"""Right answers of a language model speak for relation paths, and a training listens to them."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch

from kgqa_core.config import RigelOptions
from kgqa_core.datasets.files.question import write_questions
from kgqa_core.dkg.csr import Dkg
from kgqa_core.errors import ArtifactError
from kgqa_core.retrieval.collect import write_retrieved
from kgqa_core.retrieval.rigel.feedback import chains, gather, read_feedback
from kgqa_core.retrieval.rigel.loss import path_loss
from kgqa_core.retrieval.rigel.train import train
from kgqa_core.retrieval.rigel.walk import RelationPlan
from kgqa_core.types import Fact, Question, Retrieved
from kgqa_core.workspace import Workspace
from tests.support.device import DEVICE
from tests.support.models import content, resumed, runner

OPTIONS = RigelOptions(
    encoder="scratch", hops=2, epochs=2, patience=12, batch_size=16, learning_rate=5e-3, scratch_width=16,
    min_steps=20, device=DEVICE, feedback_weight=1.0,
)  # fmt: skip
run = runner(train, OPTIONS)
SPOKEN = "<inv>-capital", "currency"


def gold_facts(world: Any, question: Question) -> tuple[Fact, ...]:
    """The triples of a question's gold path from its topic."""
    dkg, entity, facts = world.dkg, question.topic_entities[0], []
    for hop, key in enumerate(question.relation_paths[0], start=1):
        start, stop = int(dkg.ptr[entity]), int(dkg.ptr[entity + 1])
        edge = next(place for place in range(start, stop) if dkg.relation_keys[int(dkg.rel[place])] == key)
        triple, direction = int(dkg.triple_of([edge])[0]), int(dkg.direction_of([edge])[0])
        facts.append(Fact(hop - 1, 0.8, hop, triple, direction))
        entity = int(dkg.tail[edge])
    return tuple(facts)


@pytest.fixture(scope="module")
def earlier(world: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of an earlier run: facts of all questions on their gold paths, right answers to two-hop questions."""
    root = tmp_path_factory.mktemp("earlier")
    folders = {name: root / name for name in ("facts", "answers", "bare", "feedback")}
    for folder in folders.values():
        folder.mkdir()
    write_retrieved(folders["facts"], "rigel", [Retrieved(own.id, gold_facts(world, own)) for own in world.questions])
    rows = [(own.id, own.answer_keys[0] if own.hops == 2 else "nobody") for own in world.questions]
    answered(folders["answers"], rows)
    answered(folders["bare"], [(world.questions[6].id, world.questions[6].answer_keys[0])])
    inputs = {"dkg": world.dkg_folder, "questions": world.questions_folder}
    gather(Workspace(folders["feedback"]), facts=folders["facts"], answers=folders["answers"], **inputs)
    return folders


def answered(folder: Path, rows: list[tuple[str, str]]) -> None:
    pl.DataFrame(rows, schema=["question", "output"], orient="row").write_parquet(folder / "answers.parquet")


def test_right_answers_speak_for_the_chains_that_end_in_them(
    world: Any, earlier: dict[str, Path], tmp_path: Path
) -> None:
    frame = pl.read_parquet(earlier["feedback"] / "feedback.parquet")
    two = [own for own in world.questions if own.hops == 2]
    assert sorted(frame["question"].to_list()) == sorted(own.id for own in two)
    assert {tuple(path) for path in frame["path"].to_list()} == {SPOKEN}
    assert set(frame["weight"].to_list()) == {1.0}
    counts = gather(
        Workspace(tmp_path),
        dkg=world.dkg_folder,
        questions=world.questions_folder,
        facts=earlier["facts"],
        answers=earlier["answers"],
        bare=earlier["bare"],
    )
    assert world.questions[6].hops == 2
    assert (counts["right"], counts["right_without_facts"]) == (len(two), 1)
    assert world.questions[6].id not in pl.read_parquet(tmp_path / "feedback.parquet")["question"].to_list()


def test_chains_share_the_weight_and_leave_out_what_does_not_lead_to_gold() -> None:
    dkg = Dkg.from_triples([0, 0, 1, 2, 3], [0, 1, 2, 2, 0], [1, 2, 3, 3, 4], 5, 3)
    question = Question("q", "x", topic_entities=(0,), answers=(3,))
    facts = [Fact(0, 0.5, 1, 0, 1), Fact(1, 0.25, 1, 1, 1), Fact(2, 1.0, 2, 2, 1), Fact(3, 1.0, 2, 3, 1)]
    assert chains(dkg, question, facts) == {(0, (0, 2)): 0.5, (0, (1, 2)): 0.25}
    assert chains(dkg, replace(question, answers=(4,)), facts) == {}
    back = replace(question, topic_entities=(3,), answers=(1,))
    assert chains(dkg, back, [Fact(0, 1.0, 1, 2, -1)]) == {(3, (5,)): 1.0}
    assert chains(dkg, question, []) == {}
    unsure = [replace(fact, score=0.0) for fact in facts]
    assert chains(dkg, question, unsure) == {}, "facts of no weight speak for nothing"


def test_dev_and_test_questions_never_speak(world: Any, earlier: dict[str, Path]) -> None:
    learn = [own for own in world.questions if own.split == "train"]
    held = [own for own in world.questions if own.split != "train"]
    spoken = read_feedback(earlier["feedback"], world.dkg, learn, held)
    assert {learn[number].hops for number in spoken} == {2}
    assert len(spoken) == sum(own.hops == 2 for own in learn)
    assert read_feedback(earlier["feedback"], world.dkg, learn, learn) == {}
    assert read_feedback(earlier["feedback"], world.dkg, [replace(own, text="other") for own in learn], held) == {}
    with pytest.raises(ArtifactError, match="is missing"):
        read_feedback(earlier["facts"], world.dkg, learn, held)


def test_path_loss_is_the_likelihood_of_any_of_the_paths() -> None:
    first = torch.tensor([[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]], dtype=torch.float64, requires_grad=True)
    second = torch.tensor([[0.2, 0.8, 0.0], [1.0, 0.0, 0.0]], dtype=torch.float64, requires_grad=True)
    attention = torch.tensor([[0.4, 0.6], [0.9, 0.1]], dtype=torch.float64, requires_grad=True)
    paths = {0: [(0, (0, 1), 0.75), (0, (2,), 0.25), (0, (0, 0, 0), 1.0)], 1: [(1, (2,), 1.0)]}

    def loss(*inputs: torch.Tensor) -> torch.Tensor:
        return path_loss(RelationPlan([inputs[0], inputs[1]], inputs[2]), paths, lambda question, leg: leg)

    expected = -math.log(0.75 * 0.6 * 0.5 * 0.8 + 0.25 * 0.4 * 0.25) - math.log(0.9 * 0.7)
    assert float(loss(first, second, attention).detach()) == pytest.approx(expected)
    assert torch.autograd.gradcheck(loss, (first, second, attention))
    nothing = path_loss(RelationPlan([first, second], attention), {}, lambda question, leg: leg)
    assert float(nothing.detach()) == 0


def test_a_path_that_is_nearly_impossible_still_has_a_gradient() -> None:
    """As that of two hops among the thousands of relations of a large graph, before training."""
    logits = torch.zeros(2, 1, 4000, requires_grad=True)
    first, second = torch.softmax(logits, -1)
    loss = path_loss(
        RelationPlan([first, second], torch.tensor([[0.5, 0.5]])), {0: [(0, (3, 5), 1.0)]}, lambda _, leg: leg
    )
    loss.backward()
    assert float(loss.detach()) == pytest.approx(math.log(2 * 4000**2), rel=1e-5)
    assert logits.grad is not None and float(logits.grad[0, 0, 3]) < -0.9


def test_training_listens_and_without_weight_it_is_the_plain_one(
    world: Any, earlier: dict[str, Path], tmp_path: Path
) -> None:
    plain = OPTIONS.model_copy(update={"feedback_weight": 0.0})
    run(world, tmp_path / "plain", plain)
    run(world, tmp_path / "deaf", plain, feedback=earlier["feedback"])
    assert content(tmp_path / "deaf") == content(tmp_path / "plain")
    counts = run(world, tmp_path / "taught", feedback=earlier["feedback"])
    assert counts["with_feedback"] == sum(own.hops == 2 and own.split == "train" for own in world.questions)
    assert content(tmp_path / "taught") != content(tmp_path / "plain")


@pytest.mark.slow
def test_feedback_tells_which_of_many_paths_is_meant(world: Any, earlier: dict[str, Path], tmp_path: Path) -> None:
    """Answers that many relations lead to say little; the paths that a model could use say which."""
    vague = [
        replace(own, answers=tuple(range(world.dkg.entities))) if own.hops == 2 and own.split == "train" else own
        for own in world.questions
    ]
    write_questions(tmp_path, vague)
    options = OPTIONS.model_copy(update={"min_steps": 250, "batch_size": 8, "scratch_width": 32, "loss": "normalised"})
    deaf = run(world, tmp_path / "plain", options, questions=tmp_path)
    taught = run(world, tmp_path / "taught", options, questions=tmp_path, feedback=earlier["feedback"])
    assert taught["dev_hits_at_1"] == 1.0
    assert taught["dev_hits_at_1"] > deaf["dev_hits_at_1"]


def test_killed_training_with_feedback_ends_with_the_same_bytes(
    world: Any, earlier: dict[str, Path], tmp_path: Path
) -> None:
    options = OPTIONS.model_copy(update={"intersect": "min"})
    inputs = {"feedback": earlier["feedback"]}
    run(world, tmp_path / "whole", options, **inputs)
    assert resumed(run, world, tmp_path, options, 15, **inputs)[1] == content(tmp_path / "whole")
