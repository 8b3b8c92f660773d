"""A checkpoint brings a run back to the bit, or is ignored and changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from kgqa_core.config import HopPathOptions, Options, RewriterOptions, RigelOptions
from kgqa_core.nn.checkpoint import TrainingState, key_of, restore, store, trainable_weights


def new_run(seed: int) -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(seed)
    network = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 1))
    network[0].requires_grad_(False)
    learning = [parameter for parameter in network.parameters() if parameter.requires_grad]
    return network, torch.optim.AdamW(learning, lr=0.1)


def step(network: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    network(torch.ones(2, 3)).sum().backward()
    optimizer.step()


def same(one: dict[str, Tensor], two: dict[str, Tensor]) -> bool:
    return one.keys() == two.keys() and all(torch.equal(value, two[name]) for name, value in one.items())


def test_a_restored_run_takes_the_step_that_the_stored_one_takes(tmp_path: Path) -> None:
    path = tmp_path / "work" / "run.safetensors"
    network, optimizer = new_run(1)
    step(network, optimizer)
    best = trainable_weights(network)
    step(network, optimizer)
    progress = TrainingState("key", 2, 5, [0.5, -1.0], 1, [3.0, 2.0], [[7, 0, "dev", "loss", 0.25]], [[0, "p", "text"]])
    store(path, progress, network, optimizer, best)
    step(network, optimizer)

    other, its_optimizer = new_run(2)
    other[0].load_state_dict(network[0].state_dict())
    restored = restore(path, "key", other, its_optimizer)
    assert restored is not None
    assert restored[0] == progress
    assert same(restored[1], best)
    step(other, its_optimizer)
    assert same(trainable_weights(other), trainable_weights(network))
    assert [file.name for file in path.parent.iterdir()] == ["run.safetensors"]


@pytest.mark.parametrize("length", [0, 5, 0.5, -1])
def test_a_half_written_checkpoint_and_one_of_another_key_are_ignored(tmp_path: Path, length: float) -> None:
    path = tmp_path / "run.safetensors"
    network, optimizer = new_run(1)
    step(network, optimizer)
    store(path, TrainingState("key"), network, optimizer, {})
    fresh, its_optimizer = new_run(2)
    before = trainable_weights(fresh)
    assert restore(path, "another", fresh, its_optimizer) is None
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * length) if 0 < length < 1 else int(length)])
    assert restore(path, "key", fresh, its_optimizer) is None
    assert same(trainable_weights(fresh), before)


@pytest.mark.parametrize("options", [RigelOptions(), HopPathOptions(), RewriterOptions()])
def test_only_what_decides_the_bits_is_in_the_key(options: Options) -> None:
    def key(**changed: object) -> str:
        return key_of("digest", options.model_copy(update=changed).decisive(), 7)

    assert key() == key(device="cuda", checkpoint_seconds=1.0)
    assert key() != key(epochs=3)
