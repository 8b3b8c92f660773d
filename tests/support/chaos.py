"""What the chaos suite needs: a toy pipeline that pays a loopback server, seeded moments, and what must not be left.

The server of the language model writes a line into a file for every reply that it works on, so that its count outlives
it.  Every process of a try has a mark in its environment, by which orphans are found.  `Row` is a line of the table.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import secrets
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
import yaml
from prefect.client.schemas.sorting import FlowRunSort

from kgqa_core.errors import ArtifactError
from kgqa_core.store.artifacts import verify
from kgqa_core.store.locks import idle
from tests.support.chat_server import ServerProcess, digest_words
from tests.support.command import ROOT, Outcome, closed_port, environment
from tests.support.operated import digests, records
from tests.support.servers import Servers, _answers
from tests.support.toy import write_graph, write_questions

PAID = "KGQA_CHAOS_PAID"
MARK = "KGQA_CHAOS_MARK"
CONCURRENCY = 2
"""Requests under way at once; what a kill may cost at most."""
PATIENCE = 3600
KILLS = int(os.environ.get("KGQA_CHAOS_KILLS", "100"))
SEED = int(os.environ.get("KGQA_CHAOS_SEED", "5"))


def reply(prompt: str) -> str:
    """What the model says; that it was asked is on disk before anybody hears the answer."""
    line = hashlib.sha256(prompt.encode()).hexdigest().encode() + b"\n"
    handle = os.open(os.environ[PAID], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    try:
        os.write(handle, line)
    finally:
        os.close(handle)
    return digest_words(prompt)


class Model:
    """The server of the language model, which can be killed and comes back at the same address."""

    def __init__(self, paid: Path, latency: float = 0.2, reply: str = "tests.support.chaos:reply") -> None:
        self.paid, self.port, self.latency, self.reply = paid, closed_port(), latency, reply
        self._running: ServerProcess | None = None

    def __enter__(self) -> Model:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def base_url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self) -> None:
        """Serve, if it does not."""
        if self._running is None:
            os.environ[PAID] = str(self.paid)
            words = ("--port", str(self.port), "--reply", self.reply, "--latency", str(self.latency))
            self._running = ServerProcess(*words).__enter__()

    def kill(self) -> None:
        """End with SIGKILL."""
        if self._running is not None:
            self._running.__exit__(None, None, None)
            self._running = None

    def count(self) -> int:
        """Replies that it has worked on."""
        return self.paid.read_bytes().count(b"\n") if self.paid.is_file() else 0

    def twice(self, since: int = 0) -> int:
        """Replies since that were given before; each home pays for itself."""
        lines = self.paid.read_text().split()[since:] if self.paid.is_file() else []
        return len(lines) - len(set(lines))


class World:
    """Everything around the tries: the toy's files, the model, the environment of the servers.

    servers: None where each try has its own temporary ones.
    """

    def __init__(self, folder: Path, model: Model, servers: Servers | None) -> None:
        self.folder, self.model, self.servers, self.marks = folder, model, servers, list[str]()
        folder.mkdir(parents=True, exist_ok=True)
        write_questions(folder / "questions.jsonl", write_graph(folder / "graph.tsv", 400), 120)

    def profile(self, **runner: Any) -> dict[str, Any]:
        """A profile whose rewriter and answerer are asked for some sixty texts; nothing is trained."""
        return {
            "name": "chaos",
            "kg": {"name": "toy", "files": [str(self.folder / "graph.tsv")]},
            "questions": {"name": "toy", "source": "jsonl", "path": str(self.folder / "questions.jsonl")},
            "retrieval": {"retrievers": ["random", "oracle"]},
            "rewriter": {"base": "openai:m", "adapt": False, "max_new_tokens": 32},
            "answering": {"answerer": "openai:m", "knowledge": ["none", "random", "oracle/rewritten"], "limit": 16},
            "llm": {"base_url": self.model.base_url, "concurrency": CONCURRENCY},
            "evaluation": {"bootstrap": 100},
            "operations": {"runner": runner},
        }

    def home(self) -> Path:
        """A new home."""
        return self.folder / f"home-{secrets.token_hex(4)}"

    def start(self, home: Path, **runner: Any) -> Try:
        """`kgqa run` in a process of its own, under way when this returns."""
        path = self.folder / f"profile-{hashlib.sha256(repr(runner).encode()).hexdigest()[:8]}.yaml"
        path.write_text(yaml.safe_dump(self.profile(**runner)), encoding="utf-8")
        self.marks.append(secrets.token_hex(8))
        return Try(home, path, self.marks[-1], self.servers.environment(home) if self.servers else {})

    def close(self) -> None:
        """End tries that a failed or interrupted test has left."""
        for mark in self.marks:
            for one in marked(mark):
                with contextlib.suppress(psutil.Error):
                    one.kill()


class Try:
    """One `kgqa run`, from the moment at which its run is open in the home."""

    def __init__(self, home: Path, profile: Path, mark: str, env: Mapping[str, str]) -> None:
        self.home, self.mark = home, mark
        own = environment(**env) | {MARK: self.mark}
        self._out, self._err = (profile.parent / f"{self.mark}.{name}" for name in ("out", "err"))
        words = [sys.executable, "-m", "flows.cli", "run", "--profile", profile, "--home", home, "--json"]
        before = _runs(home)
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                [str(word) for word in words], env=own, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                start_new_session=True,
            )  # fmt: skip
        self.started = time.monotonic()
        wait_for(lambda: _runs(home) > before or self.process.poll() is not None, "no run was opened")
        self.opened = time.monotonic()

    def ended_by(self, seconds: float) -> bool:
        """Whether it has ended when this long has passed since its run was opened."""
        try:
            self.process.wait(max(0.0, self.opened + seconds - time.monotonic()))
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self) -> str:
        """SIGKILL to the flow's process alone; what it was at."""
        at = self.at()
        self.process.kill()
        self.process.wait()
        return at

    def at(self) -> str:
        """What it is at."""
        return stage_of(self.home)

    def end(self) -> Outcome:
        """How it ended, once it has."""
        self.process.wait(PATIENCE)
        return Outcome(self.process.returncode, self._out.read_text(), self._err.read_text())

    def children(self) -> list[psutil.Process]:
        """Processes of the process runner."""
        try:
            family = psutil.Process(self.process.pid).children(recursive=True)
            return [one for one in family if "spawn_main" in " ".join(one.cmdline())]
        except psutil.Error:
            return []

    def orphans(self) -> list[str]:
        """What this try started and what is there although it is not."""
        return [" ".join(one.cmdline())[:200] for one in marked(self.mark) if one.pid != self.process.pid]


def stage_of(home: Path) -> str:
    """The stage that is being computed, by the folder that is being filled."""
    filling = sorted(
        {path.name.split("-")[0] for path in (home / "tmp").glob("*-*") if not path.name.startswith("fetch-")}
    )
    made = len(list((home / "artifacts").glob("*/*/manifest.json")))
    return filling[0] if filling else ("before the first stage" if not made else "between stages")


def marked(mark: str, name: str = MARK) -> list[psutil.Process]:
    """Living processes that have a try's mark in their environment."""
    found = []
    for one in psutil.process_iter():
        try:
            if one.environ().get(name) == mark and one.status() != psutil.STATUS_ZOMBIE:
                found.append(one)
        except psutil.Error:
            continue
    return found


def wait_for(look: Callable[[], Any], otherwise: str, seconds: float = PATIENCE) -> Any:
    """What `look` finds, once that is true.  Raises AssertionError."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if found := look():
            return found
        time.sleep(0.05)
    raise AssertionError(otherwise)


def moments(draw: random.Random, number: int, longest: float) -> list[float]:
    """So many moments in [0, longest), one in each of as many equal spans, in random order."""
    spans = list(range(number))
    draw.shuffle(spans)
    return [(span + draw.random()) / number * longest for span in spans]


def finished(home: Path) -> set[str]:
    """Whole artifacts of a home, parts aside."""
    whole = set()
    for path in (home / "artifacts").glob("*/*/manifest.json"):
        try:
            verify(path.parent)
        except ArtifactError:
            continue
        if not path.parent.parent.name.endswith("-part"):
            whole.add(f"{path.parent.parent.name}/{path.parent.name}")
    return whole


def last_digests(home: Path) -> dict[str, str]:
    """Digests of the newest finished run."""
    return digests([one for one in records(home) if one.get("status") == "done"][-1])


def left_over(home: Path, servers: Servers | None) -> list[str]:
    """What no process needs any more and is there: folders, held locks, open runs in MLflow and in Prefect."""
    found = [f"{place}/{path.name}" for place in ("tmp", "work") for path in (home / place).iterdir()]
    found += [f"held {path.name}" for path in (home / "locks").rglob("*") if path.is_file() and not idle(path)]
    found += [str(path.relative_to(home)) for path in (home / "runs").glob("*/owner.lock")]
    found += [str(path.relative_to(home)) for path in (home / "runs").glob("*/untracked.jsonl")]
    found += [f"run {one['run_id']} says running" for one in records(home) if one.get("status") == "running"]
    found += [f"MLflow run {run} is RUNNING" for run in _open_in_mlflow(home, servers)]
    if servers is None:
        with contextlib.closing(sqlite3.connect(home / "prefect" / "prefect.db")) as base:
            rows = base.execute("SELECT name FROM flow_run WHERE state_type IN ('RUNNING', 'PENDING')")
            found += [f"flow run {name} is RUNNING" for (name,) in rows]
    else:
        with servers.client() as client:
            for one in client.read_flow_runs(limit=200, sort=FlowRunSort.EXPECTED_START_TIME_DESC):
                if one.state is not None and (one.state.is_running() or one.state.is_pending()):
                    found.append(f"flow run {one.name} is {one.state.name}")
    return found


def _open_in_mlflow(home: Path, servers: Servers | None) -> Iterable[str]:
    from mlflow import MlflowClient

    client = MlflowClient(servers.mlflow if servers else f"sqlite:///{home / 'mlflow' / 'mlflow.db'}")
    ours = {path.name for path in (home / "runs").iterdir()}
    experiments = [one.experiment_id for one in client.search_experiments()]
    running = client.search_runs(experiments, "attributes.status = 'RUNNING'", max_results=1000)
    return [run.info.run_id for run in running if run.data.tags.get("kgqa.run_id") in ours]


def crash_database(servers: Servers) -> None:
    """SIGKILL for PostgreSQL and all its backends; it comes back on the same data and port."""
    words = servers._processes["postgres"].args
    servers._kill("postgres", signal.SIGKILL)
    (servers.data / "db" / "postmaster.pid").unlink(missing_ok=True)
    assert isinstance(words, list)
    servers._start("postgres", [str(word) for word in words], cwd=servers.data)
    servers._await("postgres", lambda: bool(servers.query("postgres", "SELECT 1")))
    servers._await("prefect", lambda: _reads(servers))


def _reads(servers: Servers) -> bool:
    with servers.client() as client:
        client.read_flow_runs(limit=1)
    return _answers(f"{servers.mlflow}/health")


@contextlib.contextmanager
def lost(name: str, servers: Servers) -> Iterator[None]:
    """Prefect or MLflow is killed, and comes back at its address when the block ends."""
    process = servers._processes[name]
    words, env = process.args, psutil.Process(process.pid).environ()
    assert isinstance(words, list)
    servers._kill(name, signal.SIGKILL)
    try:
        yield
    finally:
        servers._start(name, [str(word) for word in words], env)
        address = f"{servers.api}/health" if name == "prefect" else f"{servers.mlflow}/health"
        servers._await(name, lambda: _answers(address))


def last_words(outcome: Outcome) -> str:
    """What a failed command says, without numbers, as one line."""
    lines = [line.strip() for line in outcome.err.splitlines() if line.strip()]
    chosen = [line for line in lines if line.startswith("Error")] or lines[-1:]
    return " ".join(chosen)[:160]


def _runs(home: Path) -> int:
    return len(list((home / "runs").glob("*/run.json")))
