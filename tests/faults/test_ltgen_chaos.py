"""LTGen from a model that misbehaves in transport, form and content, with the stages killed again and again.

The server keeps its own count.  What it says depends on a prompt and its seed alone, so every run must end with the
same benchmark.
"""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kgqa_core.config import KgOptions
from kgqa_core.kg.build import build
from kgqa_core.store.artifacts import content_digest
from kgqa_core.workspace import Workspace
from tests.support import writing_runs
from tests.support.chat_server import ServerProcess
from tests.support.ltgen import make_sample
from tests.support.writing_runs import KINDS, finish, kill

pytestmark = pytest.mark.slow

PER_LEVEL = 40
KILLS = 10
CONCURRENCY = 8

FAULTS = {
    "throttled": 0.03, "retry-after": 0.05, "failing": 0.02, "hang-up": 0.01, "cut": 0.01, "garbage": 0.005,
    "empty": 0.02, "nonsense": 0.02,
}  # fmt: skip
"""Shares of requests; what a completion says has faults of its own, 0.03 each (`tests.support.ltgen`)."""


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The graph Atlas and a draw from it."""
    folder = tmp_path_factory.mktemp("atlas")
    for name in ("kg", "work"):
        (folder / name).mkdir()
    build(Workspace(folder / "kg", folder / "work"), options=KgOptions(files=("bundled:atlas",)))
    return folder / "kg", make_sample(folder, folder / "kg", PER_LEVEL)


def started() -> ServerProcess:
    """A server with its faults."""
    rates = [word for name, share in FAULTS.items() for word in (f"--{name}", str(share))]
    return ServerProcess("--reply", "tests.support.ltgen:reply", "--latency", "0.02", "--seed", "5", *rates)


@pytest.fixture
def server() -> Iterator[ServerProcess]:
    with started() as running:
        yield running


def start(parts: tuple[Path, Path], at: Path, server: ServerProcess) -> subprocess.Popen[str]:
    """The stages in a process of their own; results and cache are under `at`."""
    words = (*parts, at / "out", at / "cache", server.base_url, CONCURRENCY)
    return writing_runs.start("ltgen", words)


def digests(at: Path) -> dict[str, str]:
    return {kind: content_digest(at / "out" / kind) for kind in KINDS}


def test_killed_again_and_again_pays_no_prompt_twice_and_makes_the_same_benchmark(
    parts: tuple[Path, Path], tmp_path: Path, server: ServerProcess
) -> None:
    counts = json.loads(finish(start(parts, tmp_path / "undisturbed", server)))
    undisturbed = server.stats()
    assert counts["qa"]["rejected"] > 20 and counts["conv"]["rejected"] > 20 and counts["conv"]["spent_attempts"] > 2
    assert counts["qa"]["questions"] > 3 * PER_LEVEL * 4 * 0.9
    draw = random.Random(11)
    with started() as again:
        # every process keeps what it was told, so each one meets fewer requests than are left
        killed = sum(kill(start(parts, tmp_path / "killed", again), again, draw.randint(0, 40)) for _ in range(KILLS))
        under_way = again.stats()["answered"]
        last = json.loads(finish(start(parts, tmp_path / "killed", again)))
        disturbed = again.stats()
    twice = sum(max(0, each["answered"] - 1) for each in disturbed["prompts"].values())
    print(
        f"undisturbed {undisturbed['answered']} replies, {counts}; killed {killed} times, {under_way} replies before "
        f"the last run, {disturbed['answered']} in all; delivered twice: {twice} (at most {CONCURRENCY * killed})"
    )
    assert killed == KILLS and 0 < under_way < undisturbed["answered"]
    assert twice <= CONCURRENCY * killed
    assert set(disturbed["prompts"]) == set(undisturbed["prompts"])
    assert last == counts
    assert digests(tmp_path / "killed") == digests(tmp_path / "undisturbed")
