"""The temporary server of a process that is killed, at any moment of the server's start."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.support.chaos import wait_for
from tests.support.command import ROOT, run_python

STARTS = """
import os, sys, time
from pathlib import Path
from kgqa_core.serving.addresses import reserve
from tasks.servers import process
bound = reserve("127.0.0.1", 0)
login = {"PREFECT_SERVER_API_AUTH_STRING": "me:secret"}
server = process.start("prefect", bound, Path(sys.argv[1]) / "log", {**os.environ, **login})
bound.close()
print(server.pid, flush=True)
time.sleep(600)
"""
"""A parent that has not imported Prefect, so that the server is the only slow one."""
FLOW = """
from prefect import flow
import tasks.engine.run

@flow
def nothing():
    return 7

print(nothing(), flush=True)
"""


def start(words: list[str], folder: Path) -> subprocess.Popen[bytes]:
    env = {key: value for key, value in os.environ.items() if not key.startswith(("PREFECT_", "KGQA_"))}
    env |= {"PREFECT_HOME": str(folder), "PYTHONPATH": str(ROOT), "PREFECT_SERVER_ANALYTICS_ENABLED": "false"}
    return subprocess.Popen(
        [sys.executable, "-c", *words], cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def alive(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


def family(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    return psutil.Process(process.pid).children(recursive=True)


def check_that_nothing_is_left(parent: subprocess.Popen[bytes], children: list[psutil.Process]) -> None:
    """After the death of a parent: whoever reads its output reads the end, and its children are gone."""
    try:
        died = time.monotonic()
        parent.communicate(timeout=30)
        assert time.monotonic() - died < 5, "its stdout was held open"
        wait_for(lambda: not any(map(alive, children)), "the server lives on", 10)
    finally:
        for child in children:
            if alive(child):
                child.kill()


@pytest.mark.parametrize(
    "moment", [0.0, *(pytest.param(moment, marks=pytest.mark.slow) for moment in (0.03, 0.1, 0.4, 1.0, 2.0))]
)
def test_a_killed_process_takes_its_starting_server_along(tmp_path: Path, moment: float) -> None:
    parent = start([STARTS, str(tmp_path)], tmp_path)
    wait_for(lambda: family(parent), "no server was started", 60)
    children = family(parent)
    time.sleep(moment)
    parent.kill()
    check_that_nothing_is_left(parent, children)


@pytest.mark.slow
def test_a_run_killed_while_its_server_starts_leaves_no_process(tmp_path: Path) -> None:
    parent = start([FLOW], tmp_path)
    wait_for(lambda: family(parent), "Prefect started no server", 120)
    children = family(parent)
    time.sleep(0.3)
    parent.kill()
    check_that_nothing_is_left(parent, children)


@pytest.mark.slow
def test_runs_killed_at_random_moments_leave_no_process(tmp_path: Path) -> None:
    draw = random.Random(7)
    for number in range(12):
        folder = tmp_path / str(number)
        folder.mkdir()
        parent = start([FLOW], folder)
        wait_for(lambda parent=parent: family(parent), "Prefect started no server", 120)
        children = family(parent)
        time.sleep(draw.uniform(0, 8))
        parent.send_signal(signal.SIGKILL)
        check_that_nothing_is_left(parent, children)


@pytest.mark.slow
def test_a_flow_without_a_server_runs_on_one_that_ends_with_it(tmp_path: Path) -> None:
    parent = start([FLOW], tmp_path)
    wait_for(lambda: family(parent), "Prefect started no server", 120)
    children = family(parent)
    out, err = parent.communicate(timeout=300)
    assert parent.returncode == 0 and out.strip() == b"7", err[-2000:]
    assert not any(map(alive, children))


def test_a_server_of_the_users_own_is_left_alone() -> None:
    code = (
        "import tasks.engine.run, os, sys; assert 'PREFECT_API_AUTH_STRING' not in os.environ; "
        "assert 'prefect.server.api.server' not in sys.modules"
    )
    outcome = run_python(["-c", code], env={"PREFECT_API_URL": "http://127.0.0.1:9/api"})
    assert outcome.code == 0, outcome.err


LIGHT = """
import sys
import tasks.engine.run
from prefect import flow

@flow
def nothing():
    return 7

assert nothing() == 7
heavy = [name for name in sys.modules if name.startswith("prefect.server.") and name != "prefect.server.api.server"]
assert not any(name.startswith("prefect.server.api.") for name in heavy), heavy
from tasks.servers.temporary import TemporaryServer
from prefect.server.api.server import SubprocessASGIServer, create_app
assert SubprocessASGIServer is TemporaryServer and callable(create_app)
import prefect.server.api.server as real
assert real.SubprocessASGIServer is TemporaryServer and real.__file__
"""


@pytest.mark.slow
def test_a_flow_imports_nothing_of_the_server_until_somebody_looks_for_it(tmp_path: Path) -> None:
    outcome = run_python(["-c", LIGHT], env={"PREFECT_HOME": str(tmp_path)})
    assert outcome.code == 0, outcome.err[-2000:]


LOCKS = """
import asyncio, sys
from sqlalchemy import text
from prefect.server.database.configurations import AioSqliteConfiguration
from tasks.servers import serve

serve._prefect([])

async def main():
    engine = await AioSqliteConfiguration(f"sqlite+aiosqlite:///{sys.argv[1]}/some.db").engine()
    async with engine.connect() as connection:
        return (await connection.execute(text("PRAGMA busy_timeout"))).scalar()

print(asyncio.run(main()))
"""


@pytest.mark.slow
def test_requests_wait_for_the_lock_of_the_database_for_seconds_only(tmp_path: Path) -> None:
    outcome = run_python(["-c", LOCKS, str(tmp_path)], env={"PREFECT_HOME": str(tmp_path)})
    assert outcome.code == 0 and outcome.out.strip() == "5000", outcome.err[-2000:]
