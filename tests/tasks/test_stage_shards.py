"""Map stages make the same artifacts on every runner, keep finished parts, and hold one budget."""

from __future__ import annotations

import inspect
import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from kgqa_core import errors
from kgqa_core.answering import answer as answering
from kgqa_core.config import RunnerOptions, make_profile
from kgqa_core.errors import BudgetReached, ConfigError, EndpointError, KgqaError
from kgqa_core.workspace import Workspace
from tasks.engine import runners
from tests.support.chat_server import ChatServer
from tests.support.command import ROOT
from tests.support.mapped import mapped, outcomes, settings
from tests.support.prefect_server import shared_environment

MAPPED = ("facts", "knowledge", "answers")


pytestmark = pytest.mark.usefixtures("prefect_server")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("inputs")


@pytest.fixture(scope="module")
def server() -> Iterator[ChatServer]:
    with ChatServer(reply=lambda prompt: f"answer {len(prompt)}") as served:
        yield served


@pytest.fixture(scope="module")
def undivided(
    inputs: Path, server: ChatServer, prefect_server: None, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """What the stages make in one piece."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KGQA_HOME", str(tmp_path_factory.mktemp("undivided")))
        return outcomes(mapped(make_profile(settings(inputs, server.base_url))))


def left_over(home: Path) -> list[str]:
    return sorted(
        str(path.relative_to(home))
        for place in ("artifacts", "tmp", "work", "locks")
        for path in (home / place).glob("*")
        if place in ("tmp", "work") or "-part" in path.name
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "shards"),
    [
        ("inline", 3),
        ("thread", 4),
        ("process", 3),
        ("dask", 4),
        ("ray", 4),
    ],
)
def test_artifacts_are_the_same_on_every_runner_and_found_again(
    inputs: Path, server: ChatServer, undivided: dict[str, Any], own_home: Path, kind: str, shards: int
) -> None:
    profile = make_profile(settings(inputs, server.base_url, kind=kind, shards=shards, workers=2))
    run = mapped(profile)
    assert {stage.status for stage in run.stages} == {"computed"}
    assert outcomes(run) == undivided
    assert left_over(own_home) == []
    asked = len(server.prompts)
    again = mapped(profile)
    assert {stage.status for stage in again.stages} == {"cached"}
    assert again.runner is None, "nothing to make, no workers to start"
    assert outcomes(again) == undivided and len(server.prompts) == asked
    assert not [child.name() for child in psutil.Process().children(recursive=True) if "ray" in child.name()]


@pytest.mark.slow
def test_a_part_that_fails_leaves_the_others_and_says_its_own_message(
    inputs: Path, server: ChatServer, undivided: dict[str, Any], own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Callable[..., Any] = answering.answer
    made: list[Any] = []

    def failing(workspace: Workspace, **given: Any) -> Any:
        if workspace.part == (1, 3) and given["name"] == "random/triples":
            raise KgqaError("part one has no luck")
        made.append((given["name"], workspace.part))
        return real(workspace, **given)

    failing.__signature__ = inspect.signature(real)  # type: ignore[attr-defined]
    profile = make_profile(settings(inputs, server.base_url, kind="thread", shards=3, workers=1))
    with monkeypatch.context() as patch:
        patch.setattr(answering, "answer", failing)
        with pytest.raises(KgqaError, match="^part one has no luck$"):
            mapped(profile)
        assert [part for name, part in made if name == "random/triples"] == [(0, 3), (2, 3)]
        assert len(list((own_home / "artifacts" / "answers-part").iterdir())) == 2
    made.clear()
    monkeypatch.setattr(answering, "answer", listening(real, made))
    assert outcomes(mapped(profile)) == undivided
    assert [part for name, part in made if name == "random/triples"] == [(1, 3)]
    assert left_over(own_home) == []


def listening(real: Callable[..., Any], made: list[Any]) -> Callable[..., Any]:
    def watched(workspace: Workspace, **given: Any) -> Any:
        made.append((given["name"], workspace.part))
        return real(workspace, **given)

    watched.__signature__ = inspect.signature(real)  # type: ignore[attr-defined]
    return watched


@pytest.mark.slow
def test_worker_processes_keep_to_one_budget(inputs: Path, own_home: Path) -> None:
    with ChatServer(reply=lambda prompt: "answer") as server:
        given = settings(inputs, server.base_url, kind="process", shards=4, workers=2)
        given["llm"]["budget"] = {"max_calls": 33}
        with pytest.raises(BudgetReached, match="33 of 33 calls"):
            mapped(make_profile(given))
        assert len(server.prompts) == 33


@pytest.mark.slow
def test_a_killed_run_takes_up_finished_parts_and_leaves_no_process(
    inputs: Path, undivided: dict[str, Any], own_home: Path, tmp_path: Path
) -> None:
    with ChatServer(reply=lambda prompt: f"answer {len(prompt)}") as server:
        server.slowness = 0.5
        given = settings(inputs, server.base_url, kind="process", shards=4, workers=2)
        given["llm"]["concurrency"] = 4
        (tmp_path / "profile.json").write_text(json.dumps(given))
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.mapped", str(tmp_path / "profile.json")],
            env={**os.environ, **shared_environment(), "PYTHONPATH": str(ROOT)},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        kept = own_home / "artifacts" / "answers-part"
        deadline = time.monotonic() + 900
        while not (kept.is_dir() and any(kept.iterdir())):
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.02)
        workers = [child for child in psutil.Process(process.pid).children(recursive=True)]
        process.send_signal(signal.SIGKILL)
        process.wait()
        _, alive = psutil.wait_procs(workers, timeout=60)
        assert workers and not alive, "workers end with the run that started them"
        finished = {path.name for path in kept.iterdir()}
        asked = len(server.prompts)
        server.slowness = 0.0
        run = mapped(make_profile(given))
        again = len(server.prompts) - asked
    found = outcomes(run)
    assert {name: digest for name, (digest, _) in found.items()} == {
        name: digest for name, (digest, _) in undivided.items()
    }
    assert finished and again < sum(counts["prompts"] for name, (_, counts) in found.items() if "answers" in name)
    assert left_over(own_home) == []


@pytest.mark.parametrize("kind", ["dask", "ray"])
def test_a_runner_that_is_not_installed_names_the_extra(
    inputs: Path, monkeypatch: pytest.MonkeyPatch, own_home: Path, kind: str
) -> None:
    for name in runners.PACKAGES[kind]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ConfigError, match=r"kgqa\[cluster\]"):
        runners.check_runner(RunnerOptions(kind=kind))  # type: ignore[arg-type]
    runners.check_runner(RunnerOptions(kind="process"))


def test_errors_say_the_same_in_another_process() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, KgqaError)]
    assert EndpointError in kinds
    for kind in kinds:
        fault = kind("max_calls", "9 calls", "1", 3, 4) if kind is BudgetReached else kind("what to do")
        assert str(pickle.loads(pickle.dumps(fault))) == str(fault)  # noqa: S301
