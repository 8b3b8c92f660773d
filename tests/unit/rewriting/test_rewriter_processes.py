"""Two processes compute what one computes, and a run that is killed goes on: real processes, gloo on the CPU."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import polars as pl
import pytest
from safetensors.torch import load_file

from tests.support.models import command, environment, options, save_causal, save_corpus

TOLERANCE = 1e-5
"""Largest difference of an adapter's weights, relative to its largest weight, between one process and two.

Sums of gradients are rounded in another order, nothing else differs: micro batches and dropout are the same.
"""
ADAPTER = "adapter/adapter_model.safetensors"


def _run(line: list[str]) -> None:
    done = subprocess.run(line, env=environment(), capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.slow
def test_two_processes_equal_one_within_rounding(tmp_path: Path) -> None:
    corpus = save_corpus(tmp_path / "c")
    # Steps small enough that AdamW does not blow rounding up where a gradient is all but zero.
    how = options(save_causal(tmp_path / "m"), learning_rate=1e-3, lora_dropout=0.1, micro_batch_tokens=120)
    for processes in (1, 2):
        _run(command(corpus, tmp_path / f"n{processes}", how, processes=processes))
    one, two = (load_file(tmp_path / f"n{processes}" / ADAPTER) for processes in (1, 2))
    assert one.keys() == two.keys()
    largest = max(float(value.abs().max()) for value in one.values())
    worst = max(float((value - two[name]).abs().max()) for name, value in one.items())
    assert worst <= TOLERANCE * largest
    losses = [pl.read_parquet(tmp_path / f"n{processes}" / "curves.parquet")["value"] for processes in (1, 2)]
    assert (losses[0] - losses[1]).abs().max() <= TOLERANCE * losses[0].max()


@pytest.mark.slow
def test_a_run_killed_by_the_system_ends_with_the_same_bytes(tmp_path: Path) -> None:
    corpus = save_corpus(tmp_path / "c")
    how = options(save_causal(tmp_path / "m"), epochs=3)
    _run(command(corpus, tmp_path / "whole", how))
    line = command(corpus, tmp_path / "cut", how)
    state = tmp_path / "cut" / "work" / "checkpoint.safetensors"
    kills = 0
    for _ in range(2):
        seen = state.stat().st_mtime_ns if state.is_file() else 0
        process = subprocess.Popen(line, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and not (state.is_file() and state.stat().st_mtime_ns > seen):
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        kills += process.wait() == -signal.SIGKILL
    assert kills
    _run(line)
    for name in (ADAPTER, "adapter/adapter_config.json", "curves.parquet", "samples.parquet", "meta.json"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
