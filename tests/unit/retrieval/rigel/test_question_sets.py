"""Several question sets over one graph: how an epoch samples them, what is measured, what is left out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from kgqa_core.config import QuestionsOptions, RigelOptions
from kgqa_core.datasets.files.question import write_questions
from kgqa_core.errors import TrainingError
from kgqa_core.retrieval.rigel.questions import epoch_size, read_sets, sample_epoch
from kgqa_core.retrieval.rigel.train import train
from tests.support.device import DEVICE
from tests.support.models import content, resumed, runner

OPTIONS = RigelOptions(
    encoder="scratch", hops=2, epochs=2, patience=12, batch_size=16, learning_rate=5e-3, scratch_width=16,
    min_steps=20, device=DEVICE,
)  # fmt: skip
run = runner(train, OPTIONS)


@pytest.fixture(scope="module")
def parts(world: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The small world's questions of one hop and of two, as two sets."""
    folder = tmp_path_factory.mktemp("parts")
    for name, hops in (("near", 1), ("far", 2)):
        (folder / name).mkdir()
        write_questions(folder / name, [replace(own, source=name) for own in world.questions if own.hops == hops])
    return {name: folder / name for name in ("near", "far")}


def test_weights_are_how_often_an_epoch_has_a_question() -> None:
    assert sample_epoch([5, 3], [1, 1], 7, 0) is None
    sample = sample_epoch([10, 4], [0.5, 2.25], 7, 0)
    assert sample is not None
    numbers = sample.tolist()
    assert len(numbers) == epoch_size([10, 4], [0.5, 2.25]) == 5 + 9
    assert len({number for number in numbers if number < 10}) == 5
    assert sorted({numbers.count(number) for number in range(10, 14)}) == [2, 3]
    again, other = sample_epoch([10, 4], [0.5, 2.25], 7, 0), sample_epoch([10, 4], [0.5, 2.25], 7, 1)
    assert again is not None and other is not None
    assert again.tolist() == numbers != other.tolist()


def test_each_set_has_its_dev_scores_and_the_best_epoch_goes_by_their_mean(
    world: Any, parts: dict[str, Path], tmp_path: Path
) -> None:
    options = OPTIONS.model_copy(update={"mix": {"far": 0.5}})
    counts = run(world, tmp_path / "mixed", options, questions=parts["near"], further_sets={"far": parts["far"]})
    assert counts["sets"]["near"]["weight"] == 1 and counts["sets"]["far"]["weight"] == 0.5
    assert counts["questions"]["train"] == counts["sets"]["near"]["train"] + counts["sets"]["far"]["train"]
    own = [counts[f"dev_hits_at_1/{name}"] for name in ("near", "far")]
    assert counts["dev_hits_at_1"] == pytest.approx(sum(own) / 2, abs=1e-5)
    assert {"hits_at_1", "hits_at_1/near", "hits_at_1/far"} <= set(
        pl.read_parquet(tmp_path / "mixed" / "curves.parquet")["metric"]
    )


def test_no_further_set_is_the_plain_training(world: Any, tmp_path: Path) -> None:
    run(world, tmp_path / "plain")
    run(world, tmp_path / "none", further_sets={})
    assert content(tmp_path / "none") == content(tmp_path / "plain")


def test_killed_mixed_training_goes_on_and_ends_with_the_same_bytes(
    world: Any, parts: dict[str, Path], tmp_path: Path
) -> None:
    options = OPTIONS.model_copy(update={"mix": {"near": 0.6, "far": 1.5}})
    folders = {"questions": parts["near"], "further_sets": {"far": parts["far"]}}
    run(world, tmp_path / "whole", options, **folders)
    assert resumed(run, world, tmp_path, options, 11, **folders)[1] == content(tmp_path / "whole")


def test_what_one_set_tests_no_other_set_teaches(world: Any, parts: dict[str, Path], tmp_path: Path) -> None:
    test = next(own for own in world.questions if own.split == "test" and own.hops == 1)
    write_questions(tmp_path, [replace(test, id="stolen", split="train"), world.questions[0]])
    sets = read_sets(parts["near"], {"copied": tmp_path}, OPTIONS)
    assert [own.name for own in sets] == ["near", "copied"]
    assert (sets[1].leaked, [own.id for own in sets[1].learn]) == (1, [world.questions[0].id])
    assert sets[0].leaked == 0
    write_questions(tmp_path, [replace(test, id="stolen", split="train", text=f" {test.text} "), world.questions[0]])
    assert read_sets(parts["near"], {"copied": tmp_path}, OPTIONS)[1].leaked == 1, "blanks do not hide a question"


def test_a_weight_for_a_set_that_is_not_there_is_refused(parts: dict[str, Path]) -> None:
    with pytest.raises(TrainingError, match=r"names 'farr'; did you mean 'far'\?; the question sets are near, far"):
        read_sets(parts["near"], {"far": parts["far"]}, OPTIONS.model_copy(update={"mix": {"farr": 2.0}}))


def test_a_weight_below_nothing_is_refused(parts: dict[str, Path]) -> None:
    with pytest.raises(TrainingError, match=r"gives 'far' the weight -0.5"):
        read_sets(parts["near"], {"far": parts["far"]}, OPTIONS.model_copy(update={"mix": {"far": -0.5}}))


def test_further_sets_change_nothing_of_the_questions_key_and_need_names_of_their_own() -> None:
    more = {"name": "other", "path": "elsewhere"}
    assert QuestionsOptions(more=[more]).decisive() == QuestionsOptions().decisive()  # type: ignore[list-item]
    with pytest.raises(ValueError, match="a name of its own"):
        QuestionsOptions(more=[more, more])  # type: ignore[list-item]
