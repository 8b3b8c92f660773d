"""`kgqa ui` serves both UIs of a home on loopback and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import psutil
import pytest

from tests.support.command import ROOT, kgqa


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.slow
def test_both_uis_answer_and_stop_together(tmp_path: Path) -> None:
    ports = [free_port(), free_port()]
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PREFECT_", "MLFLOW_", "KGQA_"))}
    command = [sys.executable, "-m", "flows.cli", "ui", "--home", str(tmp_path)]
    command += ["--prefect-port", str(ports[0]), "--mlflow-port", str(ports[1])]
    process = subprocess.Popen(
        command, env={**kept, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        assert f"http://127.0.0.1:{ports[0]}" in lines[0], (lines, process.poll())
        assert f"http://127.0.0.1:{ports[1]}" in lines[1]
        children = psutil.Process(process.pid).children(recursive=True)
        for address in (f"http://127.0.0.1:{ports[0]}/", f"http://127.0.0.1:{ports[1]}/"):
            with urllib.request.urlopen(address, timeout=120) as reply:
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
    assert not [child for child in children if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]
    assert not (tmp_path / "prefect" / "server.json").exists()


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        outcome = kgqa("ui", "--home", tmp_path, "--prefect-port", str(port))
    assert outcome.code == 2
    assert str(port) in outcome.err and "--prefect-port" in outcome.err
