"""The temporary server of a process that is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.support.chaos import wait_for
from tests.support.command import ROOT

CHILD = """
import subprocess, sys, time
from tasks import temporary_server
words = [sys.executable, "-c", "import time; time.sleep(600)", temporary_server.SERVER]
servers = [subprocess.Popen(words), subprocess.Popen(words[:3])]
while any("time.sleep" not in " ".join(temporary_server.psutil.Process(one.pid).cmdline()) for one in servers):
    time.sleep(0.05)
temporary_server.guard()
temporary_server.guard()
print(*(one.pid for one in servers), *(one.pid for one in temporary_server._guards.values()), flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=["killed", "stopped"])
def test_a_process_that_is_killed_takes_its_temporary_server_along(tmp_path: Path, how: signal.Signals) -> None:
    env = {key: value for key, value in os.environ.items() if not key.startswith("PREFECT_")}
    env |= {"PREFECT_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-c", CHILD]
    with subprocess.Popen(words, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as parent:
        assert parent.stdout is not None
        server, other, *guards = map(int, parent.stdout.readline().split())
        try:
            assert len(guards) == 1, "one guard, however often it is asked for"
            parent.send_signal(how)
            parent.wait(60)
            wait_for(lambda: not psutil.pid_exists(guards[0]), "the guard lives on", 60)
            assert alive(other)
            assert alive(server) == (how == signal.SIGINT), "who exits in order stops the server itself"
        finally:
            for pid in (server, other):
                if psutil.pid_exists(pid):
                    os.kill(pid, signal.SIGKILL)


def alive(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
