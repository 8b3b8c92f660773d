"""A lock names its owner, is free when the owner is gone, and excludes whatever happens to its file."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from kgqa_core.store.locks import free, held, read_owner
from tests.support.command import ROOT

HOLDER = """
import sys, time
from pathlib import Path
from kgqa_core.store.locks import held
with held(Path(sys.argv[1]), "x", print, run="20260101-000000-abcd"):
    print("held", flush=True)
    time.sleep(float(sys.argv[2]))
"""


def holding(path: Path, seconds: str) -> subprocess.Popen[str]:
    """A process that holds the lock."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-c", HOLDER, str(path), seconds]
    holder = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment)
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    return holder


def test_whoever_waits_is_told_the_process_host_run_and_time(tmp_path: Path) -> None:
    path = tmp_path / "locks" / "x.lock"
    path.parent.mkdir()
    holder = holding(path, "2")
    owner = read_owner(path)
    assert owner is not None and owner.pid == holder.pid and not owner.gone
    messages: list[str] = []
    with held(path, "computing the same facts", messages.append):
        assert read_owner(path).pid == os.getpid()  # type: ignore[union-attr]
    assert messages == [
        f"waiting for process {holder.pid} on {owner.host} (run 20260101-000000-abcd), "
        f"which has been computing the same facts since {owner.when}"
    ]
    assert holder.wait(30) == 0
    assert holder.stdout is not None
    holder.stdout.close()
    assert path.read_text() == "" and owner.gone


def test_a_lock_whose_holder_was_killed_is_free_at_once_and_names_the_next(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    holder = holding(path, "60")
    holder.kill()
    holder.wait()
    assert holder.stdout is not None
    holder.stdout.close()
    owner = read_owner(path)
    assert owner is not None and owner.pid == holder.pid and owner.gone
    messages: list[str] = []
    with held(path, "x", messages.append):
        assert read_owner(path).pid == os.getpid()  # type: ignore[union-attr]
    assert messages == []


@pytest.mark.parametrize("text", ["", "process 12", '{"host": "h", "pid": 1', '{"host": 1}', "[]", "\0\0", "{}"])
def test_a_lock_file_that_is_being_written_is_no_owner(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.lock").write_text(text)
    assert read_owner(tmp_path / "x.lock") is None
    assert read_owner(tmp_path / "missing.lock") is None


def test_a_lock_whose_file_was_removed_while_somebody_waited_still_excludes(tmp_path: Path) -> None:
    path, order = tmp_path / "x.lock", []

    def wait() -> None:
        with held(path, "x", lambda _: order.append("waits")):
            order.append("second")
            with free(path) as acquired:
                assert not acquired

    with held(path, "x", lambda _: None):
        thread = threading.Thread(target=wait)
        thread.start()
        while not order:
            time.sleep(0.01)
        path.unlink()
        order.append("first")
    thread.join(30)
    assert order == ["waits", "first", "second"] and path.exists()
