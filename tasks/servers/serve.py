"""The two servers behind the gate, run by uvicorn."""

from __future__ import annotations

import argparse
import os
import secrets
import socket
from collections.abc import Sequence
from typing import Any

from kgqa_core.serving.addresses import is_wildcard, reserve
from kgqa_core.serving.guard import App
from tasks.servers.gate import gate
from tasks.servers.login import VARIABLE

HOSTS = "KGQA_ALLOWED_HOSTS"
"""What `--allowed-host` says, separated by commas."""
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
SETTINGS = {
    "PREFECT_SERVER_CSRF_PROTECTION_ENABLED": "true",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_UI_API_URL": "/api",
    "PREFECT__SERVER_FINAL": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
}
"""What both servers run with, unless their environment says otherwise."""
LOCKED_SECONDS = 5
"""How long a request to Prefect's server waits for the write lock of its SQLite database."""


def main(words: Sequence[str]) -> int:
    """Serve until SIGTERM or SIGINT; the exit status.

    Raises SystemExit(2) for a missing login or an address that is in use.
    """
    parser = argparse.ArgumentParser(prog="python -m tasks.servers", description=__doc__)
    parser.add_argument("kind", choices=("prefect", "mlflow"))
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, default=0, help="port to listen on")
    parser.add_argument("--fd", type=int, help="a bound socket that is inherited, instead of --host and --port")
    parser.add_argument("--allowed-host", action="append", default=[], help="a further name that `Host` may have")
    options = parser.parse_args(words)
    auth_string = os.environ.get(VARIABLE, "")
    if not auth_string or (options.kind == "mlflow" and ":" not in auth_string):
        parser.error(f"{VARIABLE} is needed, in the form user:password")
    try:
        bound = _bound(options.fd, options.host, options.port)
    except OSError as fault:
        parser.error(f"cannot listen on {options.host}:{options.port}: {fault}")
    host, port = bound.getsockname()[:2]
    wildcard = is_wildcard(host)
    names = [f"{name}:{port}" for name in LOOPBACK] + [f"{_bracketed(host)}:{port}"]
    names += [f"{name}:{port}" for name in (options.host, socket.gethostname()) if wildcard and not is_wildcard(name)]
    further = [*options.allowed_host, *filter(None, os.environ.get(HOSTS, "").split(","))]
    names += further
    origins = [f"http://{name}" for name in names] + [f"https://{name}" for name in further]
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    if options.kind == "prefect":
        app = _prefect(origins)
    else:
        hosts = [*names, *(f"{name}:*" for name in further)]
        app = _mlflow(origins, ["*"] if wildcard else hosts)
    guarded = gate(app, auth_string, names, addresses=wildcard, basic=options.kind == "mlflow")
    import uvicorn

    config = uvicorn.Config(guarded, log_level="warning", lifespan="on", access_log=False, timeout_graceful_shutdown=3)
    server = uvicorn.Server(config)
    server.run(sockets=[bound])
    return 0 if server.started else 3


def _prefect(origins: Sequence[str]) -> App:
    os.environ.setdefault("PREFECT_SERVER_CORS_ALLOWED_ORIGINS", ",".join(origins))
    from prefect.server.api.server import create_app

    _wait_less_for_locks()
    app: App = create_app()
    return app


def _wait_less_for_locks() -> None:
    """Let requests give up on SQLite's write lock after `LOCKED_SECONDS`, not after a minute.

    Now and then two requests of one server wait for each other.  The one that gives up is answered with 503, and
    clients try it again, so that a run stands still for seconds and not for a minute.
    """
    from prefect.server.database.configurations import AioSqliteConfiguration

    set_up = AioSqliteConfiguration.setup_sqlite

    def setup_sqlite(self: Any, connection: Any, record: Any) -> None:
        set_up(self, connection, record)
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout = {1000 * LOCKED_SECONDS}")
        cursor.close()

    setattr(AioSqliteConfiguration, "setup_sqlite", setup_sqlite)  # noqa: B010 - its type is SQLAlchemy's


def _mlflow(origins: Sequence[str], hosts: Sequence[str]) -> App:
    """MLflow's application, with what `mlflow server` sets before it starts it.

    Its jobs run arbitrary scorers in processes of their own; they stay off.
    """
    import uvicorn  # noqa: F401 - MLflow takes it for the sign that it is a server, and checks hosts itself too

    store = os.environ["MLFLOW_BACKEND_STORE_URI"]
    settings = {
        "_MLFLOW_SERVER_FILE_STORE": store,
        "_MLFLOW_SERVER_REGISTRY_STORE": store,
        "_MLFLOW_SERVER_ARTIFACT_ROOT": "mlflow-artifacts:/",
        "_MLFLOW_SERVER_ARTIFACT_DESTINATION": os.environ["MLFLOW_ARTIFACTS_DESTINATION"],
        "_MLFLOW_SERVER_SERVE_ARTIFACTS": "true",
        "_MLFLOW_SERVER_BOOT_ID": secrets.token_hex(16),
        "_MLFLOW_SGI_NAME": "uvicorn",
        "_MLFLOW_IN_JOB_EXECUTOR": "false",
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        "MLFLOW_SERVER_ALLOWED_HOSTS": ",".join(hosts),
    }
    os.environ.update(settings)
    os.environ.setdefault("MLFLOW_SERVER_CORS_ALLOWED_ORIGINS", ",".join(origins))
    from mlflow.server.handlers import initialize_backend_stores

    from tasks.servers.database import ensure_database

    ensure_database(store)
    initialize_backend_stores(store, store, "mlflow-artifacts:/")
    from mlflow.server.fastapi_app import app

    served: App = app
    return served


def _bound(descriptor: int | None, host: str, port: int) -> socket.socket:
    return reserve(host, port) if descriptor is None else socket.socket(fileno=descriptor)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
