"""Real servers for tests and benchmarks: PostgreSQL, Prefect, MLflow and two workers, each a process of its own.

`Servers(folder)` brings them up on free loopback ports when it is entered and ends all of them when it is left.  Logs
lie in `folder`/logs.  Nothing outside `folder` is written but PostgreSQL's data, whose folder another user owns.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from tasks.servers.login import make_auth_string
from tests.support.command import ROOT, Outcome, closed_port, environment, run_python

PATIENCE = 900
"""Seconds that a server may take to answer; a machine with two busy cores needs a fraction of them."""
POOLS = ("cpu", "gpu")
QUICK = {
    # The services look every 60 s and every 5 s, workers every 10 s: too slow to watch, and nothing else differs.
    "PREFECT_SERVER_SERVICES_SCHEDULER_LOOP_SECONDS": "2",
    "PREFECT_SERVER_SERVICES_SCHEDULER_RECENT_DEPLOYMENTS_LOOP_SECONDS": "1",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_FLUSH_INTERVAL": "1",
    "PREFECT_WORKER_QUERY_SECONDS": "1",
}
PLAIN = {
    "DO_NOT_TRACK": "true",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    "RAY_USAGE_STATS_ENABLED": "0",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "OMP_NUM_THREADS": "1",
    "POLARS_MAX_THREADS": "1",
}


class Servers:
    """PostgreSQL, Prefect and MLflow on it, and a worker for each pool, while the `with` block lasts.

    folder: where homes and artifacts go.  pools: of the workers; none are started when it is empty.  logs: their
    folder, if it is to be another than `folder`/logs.
    Raises RuntimeError with the end of its log when one of them does not come up.
    """

    def __init__(self, folder: Path, pools: Sequence[str] = POOLS, logs: Path | None = None) -> None:
        self.folder, self.pools = folder, tuple(pools)
        self.logs, self.home = logs or folder / "logs", folder / "home"
        self.seconds: dict[str, float] = {}
        self.prefect = self.mlflow = ""
        self.login = make_auth_string()
        self.data = Path()
        self._database = ""
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._exit = contextlib.ExitStack()

    def __enter__(self) -> Servers:
        os.environ |= self._mlflow_login()  # of the clients in this process
        for name in self._mlflow_login():
            self._exit.callback(os.environ.pop, name, None)
        for path in (self.logs, self.home, self.folder / "prefect", self.folder / "mlflow"):
            path.mkdir(parents=True, exist_ok=True)
        try:
            self.data = Path(tempfile.mkdtemp(prefix="kgqa-postgres-"))
            self._exit.callback(shutil.rmtree, self.data, ignore_errors=True)
            self._exit.callback(self._stop)
            with self._timed("PostgreSQL"):
                self._start_postgres(self.data)
            with self._timed("Prefect and MLflow on it"):
                self._start_servers()
            with self._timed("workers"):
                self._start_workers()
        except BaseException:
            self._exit.close()
            raise
        return self

    def __exit__(self, *_: Any) -> None:
        self._exit.close()

    @property
    def api(self) -> str:
        """Address of Prefect's API."""
        return f"{self.prefect}/api"

    def environment(self, home: Path | None = None) -> dict[str, str]:
        """What a process needs that works with these servers.  home: another one than the workers'."""
        return {
            **PLAIN,
            **QUICK,
            "PREFECT_API_URL": self.api,
            "PREFECT_API_AUTH_STRING": self.login,
            "PREFECT_HOME": str(self.folder / "prefect"),
            "PREFECT_LOCAL_STORAGE_PATH": str(self.folder / "prefect" / "results"),
            "PREFECT_LOGGING_EXTRA_LOGGERS": "kgqa",
            "MLFLOW_TRACKING_URI": self.mlflow,
            **self._mlflow_login(),
            "KGQA_HOME": str(home or self.home),
        }

    def _mlflow_login(self) -> dict[str, str]:
        user, _, password = self.login.partition(":")
        return {"MLFLOW_TRACKING_USERNAME": user, "MLFLOW_TRACKING_PASSWORD": password}

    def python(self, *words: str | Path, home: Path | None = None, timeout: float = 3600) -> Outcome:
        """Run Python with arguments against the servers, in the repository."""
        return run_python(words, env=self.environment(home), cwd=ROOT, timeout=timeout)

    def kgqa(self, *words: str | Path, home: Path | None = None, timeout: float = 3600) -> Outcome:
        """Run `kgqa` against the servers."""
        return self.python("-m", "flows.cli", *words, home=home, timeout=timeout)

    def client(self) -> Any:
        """A client of Prefect's API; to be used in a `with`."""
        from prefect.client.orchestration import SyncPrefectClient

        return SyncPrefectClient(self.api, auth_string=self.login)

    def query(self, database: str, statement: str) -> list[tuple[Any, ...]]:
        """Rows of a statement in the database `prefect` or `mlflow`."""
        import psycopg2

        connection = psycopg2.connect(self._url("postgresql", database), connect_timeout=5)
        try:
            with connection, connection.cursor() as cursor:
                cursor.execute(statement)
                return list(cursor.fetchall())
        finally:
            connection.close()

    def log(self, name: str, lines: int = 40) -> str:
        """The end of a process's log."""
        text = (self.logs / f"{name}.log").read_text(encoding="utf-8", errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    def restart(self, name: str) -> None:
        """Kill a worker (`worker-cpu`) with SIGKILL, and what it runs, and start it again."""
        self._kill(name)
        self._start_workers([name.removeprefix("worker-")])

    def _start_postgres(self, data: Path) -> None:
        bin_folder = postgres_folder()
        if bin_folder is None:
            raise RuntimeError(NO_POSTGRES)
        before = _as_other_user(data)
        password = secrets.token_hex(16)
        secret = data / "password"
        secret.write_text(password)
        secret.chmod(0o644)
        made = [*before, str(bin_folder / "initdb"), "-D", str(data / "db"), "-U", "kgqa", "-A", "scram-sha-256"]
        made += ["--pwfile", str(secret), "-E", "UTF8", "--locale=C", "--no-sync"]
        with (self.logs / "postgres.log").open("ab") as log:
            subprocess.run(made, stdout=log, stderr=log, check=True, timeout=PATIENCE, cwd=data)
        secret.unlink()
        port = closed_port()
        self._database = f"kgqa:{password}@127.0.0.1:{port}"
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(port),
            "unix_socket_directories": "",
            "fsync": "off",
            "max_connections": "200",
        }
        words = [*before, *_leash("INT"), str(bin_folder / "postgres"), "-D", str(data / "db")]
        self._start("postgres", [*words, *(f"-c{key}={value}" for key, value in settings.items())], cwd=data)
        self._await("postgres", lambda: bool(self.query("postgres", "SELECT 1")))
        import psycopg2

        connection = psycopg2.connect(self._url("postgresql", "postgres"), connect_timeout=5)
        connection.autocommit = True
        with connection.cursor() as cursor:
            for name in ("prefect", "mlflow"):
                cursor.execute(f"CREATE DATABASE {name}")
        connection.close()

    def _start_servers(self) -> None:
        ports = [closed_port(), closed_port()]
        self.prefect, self.mlflow = (f"http://127.0.0.1:{port}" for port in ports)
        python = [sys.executable, "-m"]
        self._start(
            "prefect",
            [*_leash(), *python, "tasks.servers", "prefect", "--port", str(ports[0])],
            {
                "PREFECT_SERVER_API_AUTH_STRING": self.login,
                "PREFECT_API_DATABASE_CONNECTION_URL": self._url("postgresql+asyncpg", "prefect"),
                "PREFECT_API_URL": "",
                "PREFECT_HOME": str(self.folder / "prefect"),
            },
        )
        self._start(
            "mlflow",
            [*_leash(), *python, "tasks.servers", "mlflow", "--port", str(ports[1])],
            {
                "PREFECT_SERVER_API_AUTH_STRING": self.login,
                "MLFLOW_BACKEND_STORE_URI": self._url("postgresql+psycopg2", "mlflow"),
                "MLFLOW_ARTIFACTS_DESTINATION": (self.folder / "mlflow").as_uri(),
            },
        )
        self._await("prefect", lambda: _answers(f"{self.api}/health"))
        self._await("mlflow", lambda: _answers(f"{self.mlflow}/health"))

    def _start_workers(self, pools: Sequence[str] | None = None) -> None:
        chosen = self.pools if pools is None else pools
        with self.client() as client:
            for pool in chosen:
                _make_pool(client, pool)
            for pool in chosen:
                words = ["prefect", "worker", "start", "--pool", pool, "--type", "process", "--name", f"{pool}-worker"]
                self._start(f"worker-{pool}", [*_leash(), sys.executable, "-m", *words], self.environment(), cwd=ROOT)
            for pool in chosen:
                self._await(f"worker-{pool}", lambda pool=pool: _online(client, pool))

    def _start(
        self, name: str, words: list[str], env: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> None:
        own = environment(**PLAIN | QUICK | dict(env or {}))
        given = {key: value for key, value in own.items() if value}
        with (self.logs / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                words, env=given, cwd=cwd or self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip

    def _await(self, name: str, ready: Callable[[], bool]) -> None:
        until = time.monotonic() + PATIENCE
        fault: Exception | None = None
        while time.monotonic() < until:
            if self._processes[name].poll() is not None:
                raise RuntimeError(f"{name} ended with {self._processes[name].returncode}:\n{self.log(name)}")
            try:
                if ready():
                    return
            except ImportError:  # waiting brings no package
                raise
            except Exception as met:
                fault = met
            time.sleep(0.2)
        raise RuntimeError(f"{name} did not answer in {PATIENCE} s ({fault}):\n{self.log(name)}")

    def _stop(self) -> None:
        for name in list(self._processes)[::-1]:
            self._kill(name, signal.SIGINT if name == "postgres" else signal.SIGTERM)

    def _kill(self, name: str, how: int = signal.SIGKILL) -> None:
        process = self._processes.pop(name, None)
        if process is not None:
            end_family(process, how)

    def _url(self, driver: str, database: str) -> str:
        return f"{driver}://{self._database}/{database}"

    @contextlib.contextmanager
    def _timed(self, what: str) -> Any:
        started = time.monotonic()
        yield
        self.seconds[what] = time.monotonic() - started


NO_POSTGRES = "no PostgreSQL on this machine: `initdb` is neither in /usr/lib/postgresql/*/bin nor in PATH"


def postgres_folder() -> Path | None:
    """Folder of PostgreSQL's programs, the newest of Debian's first, else that of `initdb` in PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    inside = shutil.which("initdb")
    if found:
        return found[-1].parent
    return Path(inside).resolve().parent if inside else None


def end_family(process: subprocess.Popen[bytes], how: int = signal.SIGTERM, patience: float = 60) -> None:
    """End a process and everything it started, also what left its group; with SIGKILL where `how` does not help."""
    family: list[psutil.Process] = []
    with contextlib.suppress(psutil.NoSuchProcess):
        family = psutil.Process(process.pid).children(recursive=True)
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(how)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(patience)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for member in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            member.kill()
    process.wait(patience)
    psutil.wait_procs(family, timeout=patience)


def _leash(how: str = "TERM") -> list[str]:
    """What goes before a command that ends when this process is killed; nothing where there is no `setpriv`."""
    program = shutil.which("setpriv")
    return [program, "--pdeathsig", how] if program else []


def _as_other_user(folder: Path) -> list[str]:
    """What goes before a command that must not run as root; the folder is given to that user."""
    if os.geteuid() != 0:
        return []
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            user = pwd.getpwnam(name)
            os.chown(folder, user.pw_uid, user.pw_gid)
            return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    raise RuntimeError("PostgreSQL does not run as root, and there is neither a user `postgres` nor `nobody`")


def _answers(address: str) -> bool:
    with urllib.request.urlopen(address, timeout=5) as reply:
        return bool(reply.status == 200)


def _make_pool(client: Any, name: str) -> None:
    from prefect.client.schemas.actions import WorkPoolCreate
    from prefect.exceptions import ObjectAlreadyExists

    with contextlib.suppress(ObjectAlreadyExists):
        limit = 1 if name == "gpu" else None
        client.create_work_pool(WorkPoolCreate(name=name, type="process", concurrency_limit=limit))


def _online(client: Any, pool: str) -> bool:
    return any(str(worker.status).endswith("ONLINE") for worker in client.read_workers_for_work_pool(pool))
