"""What the fixtures start, they end: no process, no folder, no open port stays."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request
from pathlib import Path

import psutil
import pytest

from tests.support.servers import NO_POSTGRES, Servers, postgres_folder


def test_servers_leave_neither_processes_nor_data_behind(tmp_path: Path) -> None:
    if postgres_folder() is None:
        pytest.skip(NO_POSTGRES)
    others = set(psutil.Process().children(recursive=True))
    with Servers(tmp_path, pools=("cpu",)) as servers:
        started = set(psutil.Process().children(recursive=True)) - others
        assert {"postgres", "prefect"} <= {name for one in started for name in (one.name(), *one.cmdline()[1:4])}
        listening = {
            connection.laddr.ip
            for one in started
            for connection in one.net_connections("tcp")
            if connection.status == psutil.CONN_LISTEN
        }
        assert listening == {"127.0.0.1"}
        assert servers.data.is_dir()
    assert not [one for one in started if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]
    assert not servers.data.exists()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"{servers.api}/health", timeout=5)


def test_a_server_that_does_not_come_up_is_named_with_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if postgres_folder() is None:
        pytest.skip(NO_POSTGRES)
    servers = Servers(tmp_path)
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        monkeypatch.setattr("tests.support.servers.closed_port", lambda: holder.getsockname()[1])
        with pytest.raises(RuntimeError, match=r"postgres ended with 1:(?s:.*)could not bind"):
            servers.__enter__()
    assert not servers.data.exists()
