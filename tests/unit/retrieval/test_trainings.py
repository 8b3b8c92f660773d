"""Every training of a retriever ends with the same bytes: twice, after a kill, and beside another's checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from kgqa_core.config import HopPathOptions, RigelOptions
from kgqa_core.retrieval.hop_path.train import train as train_paths
from kgqa_core.retrieval.rigel.train import train as train_rigel
from tests.support.device import DEVICE
from tests.support.models import Listener, content, ignores_checkpoints, resumed, runner

SMALL = {
    "encoder": "scratch", "scratch_width": 16, "epochs": 3, "patience": 12, "batch_size": 8, "learning_rate": 5e-3,
    "device": DEVICE,
}  # fmt: skip
OPTIONS = {
    "rigel": RigelOptions(hops=2, min_steps=40, **SMALL),
    "label": RigelOptions(decoder="label", hops=2, min_steps=40, **SMALL),
    "hop_path": HopPathOptions(**SMALL),
}
TRAINS = {"rigel": train_rigel, "label": train_rigel, "hop_path": train_paths}
RUNS = {name: runner(TRAINS[name], options) for name, options in OPTIONS.items()}
slow = pytest.mark.slow


@pytest.fixture(scope="module")
def undisturbed(world: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, Listener]]:
    """Of a training, its folder and what it reported; each is trained once."""
    made: dict[str, tuple[Path, Listener]] = {}

    def training(name: str) -> tuple[Path, Listener]:
        if name not in made:
            made[name] = tmp_path_factory.mktemp(name) / "trained", Listener()
            RUNS[name](world, made[name][0], monitor=made[name][1])
        return made[name]

    return training


@pytest.mark.parametrize("name", [pytest.param("rigel", marks=slow), pytest.param("label", marks=slow), "hop_path"])
def test_same_seed_gives_the_same_bytes_and_another_seed_does_not(
    world: Any, undisturbed: Any, tmp_path: Path, name: str
) -> None:
    files = content(undisturbed(name)[0])
    RUNS[name](world, tmp_path / "again")
    RUNS[name](world, tmp_path / "other", seed=8)
    assert content(tmp_path / "again") == files
    assert content(tmp_path / "other")["model.safetensors"] != files["model.safetensors"]
    gold = ["gold_paths.parquet"] if name == "hop_path" else []
    assert sorted(files) == ["config.json", "curves.parquet", *gold, "model.safetensors", "tokenizer.json"]


@pytest.mark.parametrize(
    ("name", "stop_at"),
    [
        ("hop_path", 20), pytest.param("rigel", 5, marks=slow),  # by default Rigel is killed in a training with starts
        *(pytest.param(name, step, marks=slow) for name in OPTIONS for step in (1, 30)),
    ],
)  # fmt: skip
def test_killed_training_goes_on_and_ends_with_the_same_bytes(
    world: Any, undisturbed: Any, tmp_path: Path, name: str, stop_at: int
) -> None:
    listener, files = resumed(RUNS[name], world, tmp_path, OPTIONS[name], stop_at)
    assert listener.steps[0] == stop_at  # the step that was lost is done again, no other
    assert files == content(undisturbed(name)[0])
    assert list((tmp_path / "work").iterdir()) == []


@pytest.mark.parametrize("name", [pytest.param("rigel", marks=slow), "hop_path"])
def test_a_checkpoint_of_another_training_or_a_damaged_one_is_not_used(
    world: Any, undisturbed: Any, tmp_path: Path, name: str
) -> None:
    assert ignores_checkpoints(RUNS[name], world, tmp_path, OPTIONS[name]) == [content(undisturbed(name)[0])] * 2


def test_curves_and_metrics_are_recorded_by_step(undisturbed: Any) -> None:
    folder, listener = undisturbed("rigel")
    curve = pl.read_parquet(folder / "curves.parquet")
    assert curve.columns == ["step", "epoch", "split", "metric", "value"]
    assert {"loss", "hits_at_1"} <= set(curve["metric"])
    assert {"loss", "dev_hits_at_1"} <= {name for name, _ in listener.metrics}
    assert listener.steps == sorted(listener.steps)
