"""`kgqa ui` serves both UIs of a home on loopback, behind a login, and leaves nothing behind however it is ended."""

from __future__ import annotations

import signal
import socket
import stat
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import psutil
import pytest

from tasks.servers import login
from tests.support.chaos import wait_for
from tests.support.command import closed_port, environment
from tests.support.forked_command import forked_kgqa


def start(home: Path, *words: str) -> tuple[subprocess.Popen[str], list[int]]:
    ports = [closed_port(), closed_port()]
    command = [sys.executable, "-m", "flows.cli", "ui", "--home", str(home)]
    command += ["--prefect-port", str(ports[0]), "--mlflow-port", str(ports[1]), *words]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, env=environment(), text=True, **pipes), ports


def alive(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


@pytest.mark.parametrize(
    ("how", "moment"),
    [
        (signal.SIGTERM, 0.0),
        pytest.param(signal.SIGHUP, 1.5, marks=pytest.mark.slow),
        *(
            pytest.param(how, moment, marks=pytest.mark.slow)
            for how in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL)
            for moment in (0.0, 0.2, 0.8, 2.5, 5.0)
            if (how, moment) != (signal.SIGTERM, 0.0)
        ),
    ],
)
def test_ended_while_it_starts_it_leaves_no_process(tmp_path: Path, how: signal.Signals, moment: float) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # tests under nohup ignore it, and so would their children
    try:
        process, _ = start(tmp_path)
    finally:
        signal.signal(signal.SIGHUP, before)
    children: list[psutil.Process] = []
    try:
        wait_for(lambda: psutil.Process(process.pid).children(recursive=True), "no server was started", 120)
        time.sleep(moment)
        children = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(how)
        ended = time.monotonic()
        process.communicate(timeout=60)
        assert time.monotonic() - ended < 15
        wait_for(lambda: not any(map(alive, children)), "a server lives on", 10)
    finally:
        for child in [*children, psutil.Process(process.pid)] if process.poll() is None else children:
            if alive(child):
                child.kill()
    assert process.returncode == (-signal.SIGKILL if how == signal.SIGKILL else 0)
    assert not (tmp_path / "prefect" / "server.json").exists()


@pytest.mark.slow
def test_started_under_nohup_it_outlives_its_terminal(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        process, _ = start(tmp_path)
    finally:
        signal.signal(signal.SIGHUP, before)
    try:
        wait_for(lambda: psutil.Process(process.pid).children(recursive=True), "no server was started", 120)
        process.send_signal(signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1)
    finally:
        process.terminate()
        process.communicate(timeout=60)
    assert process.returncode == 0


@pytest.mark.slow
def test_both_uis_answer_and_stop_together(tmp_path: Path) -> None:
    process, ports = start(tmp_path)
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        auth_string = login.read_auth_string(tmp_path)
        assert f"http://127.0.0.1:{ports[0]}/kgqa-login" in lines[0], (lines, process.poll())
        assert f"http://127.0.0.1:{ports[1]}/kgqa-login" in lines[1]
        assert auth_string and auth_string.partition(":")[2] not in "".join(lines), "a pipe may be a log"
        assert stat.S_IMODE(login.auth_file(tmp_path).stat().st_mode) == 0o600
        children = psutil.Process(process.pid).children(recursive=True)
        for port in ports:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/kgqa-login", timeout=120) as reply:
                assert reply.status == 200
        listening = {
            connection.laddr.ip
            for child in children
            for connection in child.net_connections("tcp")
            if connection.status == psutil.CONN_LISTEN
        }
        assert listening == {"127.0.0.1"}, "servers bind to loopback only"
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=300)
    assert process.returncode == 0
    assert not [child for child in children if alive(child)]
    assert not (tmp_path / "prefect" / "server.json").exists()


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        outcome = forked_kgqa("ui", "--home", tmp_path, "--prefect-port", str(port))
    assert outcome.code == 2
    assert str(port) in outcome.err and "--prefect-port" in outcome.err
