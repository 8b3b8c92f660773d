"""One run of a flow: its id, its home, its ledger of stages, and the tracker that remembers it."""

from __future__ import annotations

import contextlib
import datetime
import functools
import importlib.metadata
import json
import logging
import os
import platform
import secrets
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from prefect.states import Completed

from kgqa_core.config import Options, Profile
from kgqa_core.errors import ConfigError
from kgqa_core.llm.budget import Budget
from kgqa_core.llm.cache import FILE as RESPONSES
from kgqa_core.runs.changes import flatten
from kgqa_core.store.artifacts import ArtifactRef, Home, read_manifest, storage_faults, write_json
from kgqa_core.store.home import portable
from tasks.engine import server_lost, temporary_server
from tasks.engine.progress import StageMonitor
from tasks.engine.run_lock import RunLock, reap_killed_runs
from tasks.engine.runners import check_runner
from tasks.secrets import load_secrets
from tasks.tracking.buffered_tracker import open_tracker
from tasks.tracking.system_metrics import system_metrics
from tasks.tracking.tracker import DataSet, NoTracker, RunDatasets, RunEnd, RunValues, Tracker

log = logging.getLogger("kgqa")
T = TypeVar("T")
PACKAGES = ("prefect", "torch", "transformers", "duckdb", "polars", "numpy", "mlflow")

temporary_server.install()  # on import: Prefect starts a flow's server before the flow's first line


@dataclass
class StageRecord:
    """What one stage did in this run."""

    name: str
    title: str
    status: str = "running"
    seconds: float = 0.0
    artifact: ArtifactRef | None = None
    counts: dict[str, Any] = field(default_factory=dict)
    trains: bool = False
    tracked: str | None = None
    params: dict[str, Any] = field(default_factory=dict)
    """Parameters that go to the tracker with the next call about the stage."""


@dataclass
class Run:
    """A run under way; stages find it through `current_run`."""

    id: str
    home: Home
    tracker: Tracker
    profile: Profile | None = None
    tracked: str | None = None
    stages: list[StageRecord] = field(default_factory=list)
    states: dict[str, Any] = field(default_factory=dict)
    """Prefect's state of the task that returned each artifact, by path; from these it draws the arrows of the run."""
    decisions: dict[str, str] = field(default_factory=dict)
    """What was decided on the way and why, by name."""
    runner: Any = None
    """Prefect's task runner for the parts of map stages, once one is needed."""
    closing: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    """What ends with the run."""
    outer: Run | None = None
    """The run of several question sets that this one is a set of: it holds the budget, and the tracker nests this run
    under it."""
    sets: dict[str, str] = field(default_factory=dict)
    """Of a run of several question sets: the run of each set that is done, by name."""
    failed_sets: dict[str, str] = field(default_factory=dict)
    """Question sets that failed, with why."""
    _budget: Budget | None = None
    _background: ThreadPoolExecutor | None = None

    @property
    def folder(self) -> Path:
        """Where this run's record, report and reject lists lie."""
        return self.home.root / "runs" / self.id

    def in_background(self, work: Callable[..., object], *arguments: Any) -> None:
        """Do some work in a background thread, in the order of the calls; the run ends when it is done.

        It is done at once where the run is not the current one, such as that of a stage which is called on its own.
        """
        if _CURRENT.get() is not self:
            work(*arguments)
            return
        if self._background is None:
            self._background = self.closing.enter_context(ThreadPoolExecutor(1, "kgqa-background"))
        self._background.submit(copy_context().run, work, *arguments)

    def budget(self, account: str) -> Budget | None:
        """What a stage may spend at endpoints: the run's limits less what its stages so far have cost."""
        if self.outer is not None:
            return self.outer.budget(account)
        if self.profile is None:
            return None
        if self._budget is None:
            llm = self.profile.llm
            self._budget = Budget(llm.budget, llm.prices, self.home.cache / RESPONSES, account)
        return self._budget.open(account)

    def made(self, kind: str) -> dict[str, ArtifactRef]:
        """Artifacts of a kind that this run has, by the stage's variant (the kind itself where it has none)."""
        named = {stage.name: stage.artifact for stage in self.stages if stage.artifact is not None}
        return {name.partition("/")[2] or kind: ref for name, ref in named.items() if name.partition("/")[0] == kind}

    @contextlib.contextmanager
    def stage(
        self, name: str, title: str, arguments: Mapping[str, Any] | None = None, *, trains: bool = False
    ) -> Iterator[StageRecord]:
        """Open a stage in the ledger and as a nested tracked run; close it with its outcome.

        arguments: of the stage's call, whose options are the parameters of the tracked run.  trains: its artifact is a
        trained model.
        """
        record = StageRecord(name, title, trains=trains)
        self.tracker.retry()
        record.tracked = self.tracker.start(title, {"kgqa.stage": name, **self._names()}, parent=self.tracked)
        record.params = self._params((arguments or {}).values())
        self.stages.append(record)
        log.info("%s …", title)
        try:
            yield record
        except BaseException:
            record.status = "failed"
            self._tell(record, tags={"kgqa.status": "failed"})
            self.tracker.record(RunEnd(record.tracked, "FAILED"))
            raise
        log.info("%s: %s in %.1f s", title, record.status, record.seconds)
        if record.artifact is not None:
            self._remember(record, record.artifact)
        else:
            self._tell(record)
        self.tracker.record(RunEnd(record.tracked))

    def states_of(self, arguments: Mapping[str, Any]) -> list[Any]:
        """States of the tasks that made the artifacts among a stage's arguments."""
        refs: list[Any] = []
        for value in arguments.values():
            refs += value.values() if isinstance(value, Mapping) else [value]
        return [self.states[ref.path] for ref in refs if isinstance(ref, ArtifactRef) and ref.path in self.states]

    def monitor(self, title: str) -> StageMonitor:
        """A monitor whose metrics go to the stage that is open now, after the stage's parameters."""
        record = next((stage for stage in reversed(self.stages) if stage.title == title), StageRecord("", title))
        self._tell(record)
        return StageMonitor(title, lambda rows: self.tracker.record(RunValues(record.tracked, metrics=rows)))

    def decide(self, name: str, text: str) -> None:
        """Remember a decision that was taken on the way, such as what a refresh trains again and why."""
        self.decisions[name] = text
        self.tracker.record(RunValues(self.tracked, tags={f"kgqa.{name}": text}))

    def provenance(self) -> dict[str, Any]:
        """Where and with what this run works; recorded beside results, never digested."""
        return {"environment": environment(), "run_id": self.id}

    def save(self, **extra: Any) -> None:
        """Write the run's record."""
        self.folder.mkdir(parents=True, exist_ok=True)
        record = {
            "run_id": self.id,
            "profile": self.profile.model_dump(mode="json") if self.profile else None,
            "mlflow_run_id": self.tracker.known(self.tracked),
            "mlflow_handle": self.tracked,
            "environment": environment(),
            "decisions": self.decisions,
            **({"table": self.outer.id} if self.outer else {}),
            **({"sets": self.sets, "failed_sets": self.failed_sets} if self.sets or self.failed_sets else {}),
            "stages": [
                {
                    "name": stage.name,
                    "title": stage.title,
                    "status": stage.status,
                    "seconds": stage.seconds,
                    "counts": stage.counts,
                    "artifact": stage.artifact.model_dump() if stage.artifact else None,
                }
                for stage in self.stages
            ],
            **extra,
        }
        write_json(self.folder / "run.json", portable(record, self.home.root))

    def settle(self) -> None:
        """The last word in the record: the tracker's id, should it have come late, and that the run has ended."""
        path = self.folder / "run.json"
        record = json.loads(path.read_text(encoding="utf-8"))
        record |= {"mlflow_run_id": self.tracker.known(self.tracked), "decisions": self.decisions}
        if record.get("status") == "running":
            record["status"] = "ended"
        write_json(path, record)

    def _names(self) -> dict[str, str]:
        """Tags that a run and each of its stages have alike."""
        named = {"kgqa.run_id": self.id}
        if self.profile is not None:
            named |= {"kgqa.kg": self.profile.kg.name, "kgqa.questions": " + ".join(self.profile.set_names)}
        if self.outer is not None:
            named["kgqa.table"] = self.outer.id
        return named

    def _params(self, arguments: Iterable[Any]) -> dict[str, Any]:
        """The options among a stage's arguments under the keys of the profile, and the seed."""
        if self.profile is None:
            return {}
        params: dict[str, Any] = {"seed": self.profile.seed}
        for options in arguments:
            if isinstance(options, Options) and (section := _sections(Profile).get(type(options))) is not None:
                params |= {f"{section}.{key}": value for key, value in flatten(options.model_dump(mode="json")).items()}
        return params

    def _remember(self, record: StageRecord, ref: ArtifactRef) -> None:
        counts = flatten(record.counts)
        numbers = {key: float(value) for key, value in counts.items() if isinstance(value, int | float)}
        numbers = {key: value for key, value in numbers.items() if value == value}
        rows = [(f"count/{key}", value, 0) for key, value in numbers.items()]
        manifest = read_manifest(ref.folder)
        tags = {"kgqa.status": record.status, "kgqa.digest": ref.digest, "kgqa.made_by": str(manifest.get("run_id"))}
        self._tell(record, [*rows, ("seconds", record.seconds, 0)], tags)
        if record.trains:
            inputs = flatten(manifest.get("made_of", {}).get("inputs", {}))
            read = [DataSet(name, str(digest), {}, "training") for name, digest in inputs.items()]
            self.tracker.record(RunDatasets(record.tracked, read))

    def _tell(
        self, record: StageRecord, metrics: Sequence[tuple[str, float, int]] = (), tags: Mapping[str, str] | None = None
    ) -> None:
        """Tell the tracker of a stage, with its parameters unless it has them."""
        params, record.params = record.params, {}
        self.tracker.record(RunValues(record.tracked, params, metrics, tags or {}))

    def _close(self, status: str) -> None:
        """Tell the tracker how the run ended and what each stage took, and close it there."""
        if self.outer is not None:
            self.outer.tracker.retry()  # the run that this one is nested under is sent first, should it still wait
        took = [(f"seconds/{stage.name}", stage.seconds, 0) for stage in self.stages if stage.artifact is not None]
        self.tracker.record(
            RunValues(self.tracked, metrics=took, tags={"kgqa.status": status}),
            RunEnd(self.tracked, "FAILED" if status == "failed" else "FINISHED"),
        )


_CURRENT: ContextVar[Run | None] = ContextVar("kgqa_run", default=None)


_latest: Run | None = None


def current_run() -> Run:
    """The run that is under way, or one that remembers nothing when a task is called on its own."""
    run = _CURRENT.get()
    if run is None:
        home = Home.current()
        run = Run(id="adhoc", home=home.prepare() if home.writable else home.look(), tracker=NoTracker())
    return run


def latest_run() -> Run | None:
    """The run that this process has opened last, also when it has ended."""
    return _latest


@contextlib.contextmanager
def tracked_run(profile: Profile, *, several: bool = False) -> Iterator[Run]:
    """Open a run for a flow: a folder in the home, a parent run in the tracker, a ledger for its stages.

    Inside a run of several question sets it is the run of one of them.  several: whether the flow takes a profile with
    several question sets; raises ConfigError for one where it does not.
    """
    if profile.further_questions and not several:
        raise ConfigError(
            f"the profile has {len(profile.set_names)} question sets ({', '.join(profile.set_names)}), and "
            f"{flow_name()} takes one; leave one in its section questions (`kgqa run`, `refresh` and `forecast`, and "
            "the flow kgqa-table, take all)"
        )
    outer = _CURRENT.get()
    check_runner(profile.operations.runner)
    load_secrets(profile)
    server_lost.watch()
    home = Home.current().prepare()
    run_id = new_run_id()
    folder = home.root / "runs" / run_id
    home.use(f"runs/{run_id}")
    with storage_faults(home.root):
        owner = RunLock(folder)
    tracker = open_tracker(home, folder)
    reap_killed_runs(home, run_id, tracker)
    run = Run(id=run_id, home=home, tracker=tracker, profile=profile, outer=outer)
    global _latest
    _latest = run
    name = f"{profile.kg.name}/{' + '.join(profile.set_names)} {profile.rigel.encoder} {profile.answering.answerer}"
    name = f"{flow_name()} {name} {run_id.rpartition('-')[0]}".removeprefix("pipeline ")
    note = {"mlflow.note.content": profile.description, "mlflow.source.name": f"kgqa, profile {profile.name}"}
    tags = {"kgqa.profile": profile.name, **run._names(), **note, **_tags()}
    run.tracked = tracker.start(name, tags, parent=outer.tracked if outer else None)
    settings = flatten(profile.model_dump(mode="json", exclude={"name", "description"}))
    tracker.record(RunValues(run.tracked, settings))
    with storage_faults(home.root):
        run.save(status="running")
    home.catch_up()
    token = _CURRENT.set(run)
    try:
        with run.closing, system_metrics(tracker, run.tracked):
            yield run
    except BaseException as fault:
        run._close("failed")
        left = tracker.close()
        with contextlib.suppress(OSError):  # a full disk must not hide the fault that ended the run
            run.save(status="failed", fault=f"{type(fault).__name__}: {fault}")
        owner.release(settled=not (left or server_lost.away()))
        raise
    finally:
        _CURRENT.reset(token)
        _latest = outer or run
    run._close("done")
    left = tracker.close()
    with contextlib.suppress(OSError, ValueError):
        run.settle()
    owner.release(settled=not (left or server_lost.away()))
    home.catch_up()


def completed(message: str, data: T) -> T:
    """What a flow returns: its caller gets the data, and Prefect a completed state with a message."""
    return Completed(message=message, data=data)  # type: ignore[return-value]


def new_run_id() -> str:
    """A run id that sorts by time."""
    return f"{datetime.datetime.now(datetime.UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def environment() -> dict[str, Any]:
    """Versions, machine and commit."""
    versions = {}
    for package in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "packages": versions,
        "git": git_commit(),
    }


@functools.cache
def _sections(options: type[Options]) -> dict[type, str]:
    """Key in the profile of each class of options, such as `ltgen.sampling`."""
    keys: dict[type, str] = {}
    for name, info in options.model_fields.items():
        kind = info.annotation
        if isinstance(kind, type) and issubclass(kind, Options):
            keys |= {kind: name} | {inner: f"{name}.{key}" for inner, key in _sections(kind).items()}
    return keys


@functools.cache
def git_commit() -> str:
    """Commit of the code that runs, with a mark when it was changed since, or `unknown` outside a clone."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return "unknown"
    try:
        commit = _git(root, "rev-parse", "HEAD")
        return f"{commit[:12]}{'-changed' if _git(root, 'status', '--porcelain', '-uno') else ''}"
    except (OSError, subprocess.SubprocessError):
        return "unknown"


def _git(root: Path, *words: str) -> str:
    return subprocess.run(
        ["git", "-C", str(root), *words], capture_output=True, text=True, timeout=10, check=True
    ).stdout.strip()


def flow_run_id() -> str | None:
    """Id of the Prefect flow run that we are in, if any."""
    from prefect.context import FlowRunContext

    context = FlowRunContext.get()
    return str(context.flow_run.id) if context and context.flow_run else None


def flow_name() -> str:
    """What the flow that we are in is called: `pipeline`, `refresh`, `train-retriever`; `pipeline` outside any."""
    from prefect.context import FlowRunContext

    context = FlowRunContext.get()
    return context.flow.name.removeprefix("kgqa-") if context and context.flow else "pipeline"


def _tags() -> dict[str, str]:
    flow = flow_run_id()
    return {"kgqa.git": git_commit(), **({"kgqa.flow_run_id": flow} if flow else {})}
