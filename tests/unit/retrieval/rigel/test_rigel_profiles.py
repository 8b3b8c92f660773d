"""Every shipped profile trains Rigel with the paper's loss and with the other one, large last hops included."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from flows.cli._session import choose_profile, profile_names
from kgqa_core.retrieval.rigel import loss as losses
from kgqa_core.retrieval.rigel import train as training
from tests.support.models import runner

LOSSES = ("bce", "normalised")
DEFAULT = ("atlas", "metaqa", "webqsp-rra-published")
"""Profiles of the default run; the others are slow tests."""
LARGE = ("metaqa", "simplequestions-freebase", "webqsp-rra-published")
QUICK = (
    "rigel.encoder=scratch", "rigel.scratch_width=32", "rigel.epochs=3", "rigel.min_steps=1", "rigel.batch_size=8",
    "rigel.learning_rate=0.005", "rigel.device=cpu",
)  # fmt: skip
"""A small encoder and some 45 steps over the small world; the rest is the profile's."""


def dev_losses(world: Any, folder: Path, name: str, loss: str) -> list[float]:
    """The loss on dev questions after each pass."""
    options = choose_profile(name, settings=[*QUICK, f"rigel.loss={loss}"]).rigel
    assert options.loss == loss
    runner(training.train, options)(world, folder)
    curve = pl.read_parquet(folder / "curves.parquet").filter((pl.col("split") == "dev") & (pl.col("metric") == "loss"))
    return list(curve.sort("step")["value"])


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    "name", [name if name in DEFAULT else pytest.param(name, marks=pytest.mark.slow) for name in profile_names()]
)
def test_a_profile_trains_with_either_loss(name: str, loss: str, world: Any, tmp_path: Path) -> None:
    measured = dev_losses(world, tmp_path / "retriever", name, loss)
    assert len(measured) == 3 and 0 < measured[-1] < measured[0]


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", ["atlas", *(pytest.param(name, marks=pytest.mark.slow) for name in LARGE)])
def test_it_learns_where_every_last_hop_is_too_large_to_expand(
    name: str, loss: str, world: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = dev_losses(world, tmp_path / "plain", name, loss)
    monkeypatch.setattr(losses, "_most_edges", lambda *_: 10**9)
    large = dev_losses(world, tmp_path / "large", name, loss)
    assert 0 < large[-1] < large[0]
    assert large[-1] == pytest.approx(plain[-1], rel=0.15), "training sees nearly the same loss"
