"""The server that a command starts before its imports is the one that Prefect uses, and ends with the process."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from tests.support.command import run_python

LAUNCHED = """
import subprocess
from tasks.servers import early
started = []
popen = subprocess.Popen
class Counted(popen):
    def __init__(self, words, *rest, **more):
        super().__init__(words, *rest, **more)
        if "tasks.servers" in words:
            started.append(self)
subprocess.Popen = Counted
early.launch()
early.launch()
"""
USED = """
from prefect import flow
import tasks.engine.run
from tasks.servers.temporary import TemporaryServer

@flow
def nothing():
    return 7

assert nothing() == 7
assert len(started) == 1 and TemporaryServer().server_process is started[0] and early.port() is None
"""
GONE = """
early.discard()
assert started[0].poll() is not None and early.port() is None
from prefect.client.orchestration import get_client
import tasks.engine.run
with get_client(sync_client=True) as client:
    assert client.api_healthcheck() is None
assert len(started) == 2
"""


DEAD = """
import os, signal
os.killpg(started[0].pid, signal.SIGKILL)
started[0].wait()
assert early.port() is None
from prefect.client.orchestration import get_client
import tasks.engine.run
with get_client(sync_client=True) as client:
    assert client.api_healthcheck() is None
assert len(started) == 2
"""

WITHDRAWN = """
assert len(started) == 1 and started[0].poll() is None
import tasks.engine.run
assert started[0].poll() is not None and early.port() is None
from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL
assert (PREFECT_API_URL.value(), PREFECT_API_AUTH_STRING.value()) == ("http://127.0.0.1:9/api", "me:mine")
"""


def _run(folder: Path, code: str, **more: str) -> str:
    env = {"PREFECT_HOME": str(folder), "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "300", **more}
    outcome = run_python(["-c", LAUNCHED + code], env=env)
    assert outcome.code == 0, outcome.err
    return outcome.out


@pytest.mark.slow
def test_prefect_takes_over_the_server_that_was_launched(tmp_path: Path) -> None:
    _run(tmp_path, USED)


@pytest.mark.slow
@pytest.mark.parametrize("end", [GONE, DEAD], ids=["discarded", "killed"])
def test_without_the_launched_server_prefect_starts_one(tmp_path: Path, end: str) -> None:
    _run(tmp_path, end)


def test_a_server_that_nobody_took_over_ends_with_its_process(tmp_path: Path) -> None:
    assert not psutil.pid_exists(int(_run(tmp_path, "print(started[0].pid)")))


@pytest.mark.slow
def test_a_launched_server_ends_where_a_file_of_settings_names_one(tmp_path: Path) -> None:
    named = "[profiles.own]\nPREFECT_API_URL = 'http://127.0.0.1:9/api'\nPREFECT_API_AUTH_STRING = 'me:mine'\n"
    (tmp_path / "profiles.toml").write_text(f"active = 'own'\n{named}", encoding="utf-8")
    _run(tmp_path, WITHDRAWN)


def test_nothing_is_launched_where_prefect_has_a_server(tmp_path: Path) -> None:
    _run(tmp_path, "assert started == [] and early.port() is None", PREFECT_API_URL="http://127.0.0.1:9/api")
