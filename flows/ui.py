"""`kgqa ui`: the Prefect and MLflow servers of a home, on loopback, as child processes."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from flows.session import out, running_server
from kgqa_core.artifacts import Home, write_json
from kgqa_core.errors import InputError, KgqaError
from tasks.addresses import ui_addresses
from tasks.tracking import tracking_uri

WAIT_SECONDS = 300


def serve(home: Home, host: str, prefect_port: int, mlflow_port: int) -> None:
    """Start both servers, print the links and wait for Ctrl-C.  Raises InputError when a port is taken."""
    if running_server(home):
        raise InputError(
            f"the UIs of {home.root} are running already; stop them first (Ctrl-C where they were started)"
        )
    for name, port in (("--prefect-port", prefect_port), ("--mlflow-port", mlflow_port)):
        if not _free(host, port):
            raise InputError(f"port {port} on {host} is taken; choose another with {name}")
    record = home.root / "prefect" / "server.json"
    logs = home.root / "prefect" / "ui.log"
    prefect = f"http://{host}:{prefect_port}"
    mlflow = f"http://{host}:{mlflow_port}"
    environment = {
        **os.environ,
        "PREFECT_UI_API_URL": f"{prefect}/api",
        "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "INFO",
    }
    environment.setdefault("MLFLOW_SERVER_ENABLE_JOB_EXECUTION", "false")
    environment.pop("PREFECT_API_URL", None)
    commands = [
        [sys.executable, "-m", "prefect", "server", "start", "--host", host, "--port", str(prefect_port)],
        [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", tracking_uri(home)]
        + ["--artifacts-destination", str(home.root / "mlflow" / "artifacts")]
        + ["--host", host, "--port", str(mlflow_port), "--workers", "1"],
    ]
    with logs.open("ab") as log:
        children = [
            subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
            for command in commands
        ]
        try:
            _await(children, [f"{prefect}/api/health", f"{mlflow}/health"], logs)
            write_json(record, {"api": f"{prefect}/api", "prefect": prefect, "mlflow": mlflow, "process": os.getpid()})
            out.print(f"Prefect UI   {prefect}\nMLflow UI    {mlflow}\nCtrl-C stops both.", soft_wrap=True)
            signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
            while all(child.poll() is None for child in children):
                time.sleep(0.5)
            raise KgqaError(f"a UI server stopped by itself; its log is {logs}")
        except KeyboardInterrupt:
            out.print("stopped")
        finally:
            record.unlink(missing_ok=True)
            for child in children:
                if child.poll() is None:
                    os.killpg(child.pid, signal.SIGTERM)
            for child in children:
                try:
                    child.wait(timeout=15)
                except subprocess.TimeoutExpired:
                    os.killpg(child.pid, signal.SIGKILL)


def links(record: dict[str, Any]) -> dict[str, str]:
    """Links to a run's report and to its pages in both UIs, with the command that starts them when they are down."""
    home = Home(Path(record["home"]))
    found = {"Report": Path(record["report"]).as_uri()}
    known = ui_addresses(home)
    usual = {"prefect": "http://127.0.0.1:4200", "mlflow": "http://127.0.0.1:5000"}
    hints = {name: "" if name in known else f"   (first start the UIs: kgqa ui --home {home.root})" for name in usual}
    base = {**usual, **known}
    if record.get("flow_run_id"):
        found["Prefect UI"] = f"{base['prefect']}/runs/flow-run/{record['flow_run_id']}{hints['prefect']}"
    if record.get("mlflow_run_id"):
        page = f"{base['mlflow']}/#/experiments/{record['mlflow_experiment_id']}/runs/{record['mlflow_run_id']}"
        found["MLflow UI"] = f"{page}{hints['mlflow']}"
    return found


def _free(host: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def _await(children: list[subprocess.Popen[bytes]], addresses: list[str], logs: Path) -> None:
    waiting = list(addresses)
    until = time.monotonic() + WAIT_SECONDS
    while waiting:
        if time.monotonic() > until or any(child.poll() is not None for child in children):
            raise KgqaError(f"{waiting[0]} did not come up; the log is {logs}")
        try:
            with urllib.request.urlopen(waiting[0], timeout=2):
                waiting.pop(0)
        except OSError:
            time.sleep(0.5)
