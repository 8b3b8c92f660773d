"""The Prefect and MLflow servers of a home, behind a login, as child processes that end with this one."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import threading
import time
import urllib.parse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from flows.cli._session import out
from kgqa_core.errors import ConfigError, InputError, KgqaError, StorageError
from kgqa_core.serving.addresses import is_wildcard, reserve
from kgqa_core.store.artifacts import Home, write_json
from tasks.servers import login, process
from tasks.tracking.addresses import run_page, runs_page, ui_addresses
from tasks.tracking.mlflow_store import tracking_uri

WAIT_SECONDS = 300
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def serve(home: Home, host: str, prefect_port: int, mlflow_port: int, allowed_hosts: Sequence[str] = ()) -> None:
    """Start both servers, print the links and wait for Ctrl-C, SIGTERM or SIGHUP, which end both at any moment.

    allowed_hosts: names beside that of the address that requests may name in `Host`.
    Raises InputError when a port is in use, ConfigError for an auth string of the user's that cannot be used.
    """
    if login.running_server(home.root):
        raise InputError(
            f"the UIs of {home.root} are running already; stop them first (Ctrl-C where they were started)"
        )
    auth_string = _auth_string(home)
    logs = home.root / "prefect" / "ui.log"
    record = login.record_file(home.root)
    with contextlib.ExitStack() as stack:
        ended = stack.enter_context(_signals())
        bound = [
            stack.enter_context(_reserved(host, port, name))
            for name, port in (("--prefect-port", prefect_port), ("--mlflow-port", mlflow_port))
        ]
        named = in_url(host)
        prefect, mlflow = (f"http://{named}:{socket.getsockname()[1]}" for socket in bound)
        environment = {**os.environ, login.VARIABLE: auth_string, "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "INFO"}
        for name in ("PREFECT_API_URL", "PREFECT_UI_API_URL", "PREFECT_SERVER_UI_API_URL", "MLFLOW_TRACKING_URI"):
            environment.pop(name, None)
        environment |= {
            "MLFLOW_BACKEND_STORE_URI": tracking_uri(home),
            "MLFLOW_ARTIFACTS_DESTINATION": str(home.root / "mlflow" / "artifacts"),
        }
        words = [word for name in allowed_hosts for word in ("--allowed-host", name)]
        children: list[subprocess.Popen[bytes]] = []
        stack.callback(lambda: process.stop(*children))
        for kind, bound_socket in zip(("prefect", "mlflow"), bound, strict=True):
            children.append(process.start(kind, bound_socket, logs, environment, words))
            bound_socket.close()
        if _await(children, [prefect, mlflow], auth_string, ended, logs):
            stack.callback(record.unlink, missing_ok=True)
            write_json(record, {"api": f"{prefect}/api", "prefect": prefect, "mlflow": mlflow, "process": os.getpid()})
            _show(home, {"Prefect UI": prefect, "MLflow UI": mlflow}, auth_string)
            while not ended.wait(0.5):
                if any(child.poll() is not None for child in children):
                    raise KgqaError(f"a UI server stopped by itself; its log is {logs}")
        out.print("stopped")


def links(record: dict[str, Any]) -> dict[str, str]:
    """Links to a run's report and to its pages in both UIs, with the command that starts them when they are down."""
    home = Home(Path(record["home"]))
    pages = {"Report": Path(record["report"]).as_uri()}
    known = ui_addresses(home)
    usual = {"prefect": "http://127.0.0.1:4200", "mlflow": "http://127.0.0.1:5000"}
    hints = {name: "" if name in known else f"   (first start the UIs: kgqa ui --home {home.root})" for name in usual}
    base = {**usual, **known}
    if record.get("flow_run_id"):
        pages["Prefect UI"] = f"{base['prefect']}/runs/flow-run/{record['flow_run_id']}{hints['prefect']}"
    if record.get("mlflow_run_id"):
        page = run_page(base["mlflow"], record["mlflow_experiment_id"], record["mlflow_run_id"])
        pages["MLflow UI"] = f"{page}{hints['mlflow']}"
        pages["All runs"] = runs_page(base["mlflow"], record["mlflow_experiment_id"])
    return pages


def _show(home: Home, addresses: dict[str, str], auth_string: str) -> None:
    """Links that log a browser in, on a terminal; elsewhere, in a log say, only where the login lies."""
    where = f"{login.auth_file(home.root)}" if not os.environ.get(login.VARIABLE) else login.VARIABLE
    behind = f"#{urllib.parse.quote(auth_string, safe=':')}" if out.is_terminal else ""
    for name, address in addresses.items():
        out.print(f"{name:<12} {address}{login.LOGIN}{behind}", soft_wrap=True, markup=False, highlight=False)
    out.print(f"The login is in {where}. Ctrl-C stops both.", soft_wrap=True, markup=False, highlight=False)


def _auth_string(home: Home) -> str:
    try:
        return login.ensure_auth_string(home.root)
    except ValueError as fault:
        raise ConfigError(str(fault)) from fault
    except OSError as fault:
        raise StorageError(f"the login of the UIs cannot be kept in {login.auth_file(home.root)}: {fault}") from fault


@contextlib.contextmanager
def _signals() -> Iterator[threading.Event]:
    """An event that is set by the signals that end a command; at the end they do what they did before.

    What is ignored, as by nohup, stays so.
    """
    ended = threading.Event()
    handled = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, lambda *_: ended.set()) for number in handled}
    try:
        yield ended
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _reserved(host: str, port: int, option: str) -> socket.socket:
    try:
        return reserve(host, port)
    except OSError as fault:
        raise InputError(
            f"port {port} on {host} is in use or not of this machine ({fault}); choose {option}"
        ) from fault


def _await(
    children: list[subprocess.Popen[bytes]], addresses: list[str], auth_string: str, ended: threading.Event, logs: Path
) -> bool:
    """Wait until both servers answer; false when a signal came before that."""
    waiting = list(addresses)
    until = time.monotonic() + WAIT_SECONDS
    while waiting:
        if time.monotonic() > until or any(child.poll() is not None for child in children):
            raise KgqaError(f"{waiting[0]} did not come up; the log is {logs}")
        if login.is_own(waiting[0], auth_string):
            waiting.pop(0)
        elif ended.wait(0.2):
            return False
    return not ended.is_set()


def in_url(host: str) -> str:
    """An address as a link has it; loopback's for one that stands for all."""
    if is_wildcard(host):
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host
