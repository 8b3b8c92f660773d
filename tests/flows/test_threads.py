"""The number of torch's threads follows what other processes leave, unless the user says it."""

from __future__ import annotations

from pathlib import Path

import pytest

from flows.cli import _threads
from flows.cli._threads import choose_threads, cores_in_use, threads_beside
from kgqa_core.cores import own_cores


@pytest.mark.parametrize(
    ("used", "cores", "threads"),
    [(0.0, 2, 2), (0.4, 2, 2), (0.6, 2, 1), (2.0, 2, 1), (9.0, 2, 1), (3.4, 8, 5), (0.1, 1, 1)],
)
def test_threads_are_as_many_as_there_are_cores_left(used: float, cores: int, threads: int) -> None:
    assert threads_beside(used, cores) == threads


def test_a_busy_machine_is_told_and_a_quiet_one_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_threads, "own_cores", lambda: frozenset({0, 1}))
    monkeypatch.setattr(_threads, "cores_in_use", lambda: 1.2)
    found: dict[str, str] = {}
    told = choose_threads(found)
    assert told is not None and told.startswith("other processes use 1.2 of 2 cores: computing with 1 thread (")
    assert found == dict.fromkeys(_threads.VARIABLES, "1")
    monkeypatch.setattr(_threads, "cores_in_use", lambda: 0.1)
    quiet: dict[str, str] = {}
    assert choose_threads(quiet) is None and not quiet


def test_what_the_user_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_threads, "cores_in_use", lambda: 9.0)
    given = {"MKL_NUM_THREADS": "3"}
    assert choose_threads(given) is None and given == {"MKL_NUM_THREADS": "3"}


def test_only_the_cores_of_this_process_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stat = tmp_path / "stat"
    monkeypatch.setattr(_threads, "STAT", stat)
    monkeypatch.setattr(_threads, "own_cores", lambda: frozenset({0, 2}))
    before = (
        "cpu 9 9 9 9 9 0 0 0 0 0\ncpu0 10 0 5 100 1 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0\ncpu2 0 0 0 50 0 0 0 0\nintr 1\n"
    )
    after = before.replace("cpu0 10 0 5 100", "cpu0 30 0 15 100").replace("cpu1 0", "cpu1 900").replace("50 0", "80 0")
    stat.write_text(before, encoding="ascii")
    monkeypatch.setattr(_threads.time, "sleep", lambda _: stat.write_text(after, encoding="ascii"))
    assert cores_in_use() == pytest.approx(1.0), "30 ticks busy and 30 idle, of two cores"


def test_a_system_that_does_not_tell_is_asked_for_its_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_threads, "STAT", tmp_path / "none")
    monkeypatch.setattr(_threads.os, "getloadavg", lambda: (1.5, 0.0, 0.0))
    assert cores_in_use() == 1.5
    (tmp_path / "none").write_text("cpu 1 2 3\n", encoding="ascii")
    assert cores_in_use() == 1.5


def test_this_machine_tells() -> None:
    assert 0 <= cores_in_use(0.05) <= len(own_cores())
