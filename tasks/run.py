"""One run of a flow: its id, its home, its ledger of stages, and the tracker that remembers it."""

from __future__ import annotations

import contextlib
import datetime
import functools
import importlib.metadata
import logging
import os
import platform
import re
import secrets
import subprocess
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kgqa_core.artifacts import ArtifactRef, Home, write_json
from kgqa_core.config import Profile
from kgqa_core.llm.budget import Budget
from kgqa_core.llm.cache import FILE as RESPONSES
from tasks.progress import StageMonitor
from tasks.tracking import NoTracker, Tracker, open_tracker

log = logging.getLogger("kgqa")
PACKAGES = ("prefect", "torch", "transformers", "duckdb", "polars", "numpy", "mlflow")


@dataclass
class StageRecord:
    """What one stage did in this run."""

    name: str
    title: str
    status: str = "running"
    seconds: float = 0.0
    artifact: ArtifactRef | None = None
    counts: dict[str, Any] = field(default_factory=dict)
    tracked: str | None = None


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
    _budget: Budget | None = None

    @property
    def folder(self) -> Path:
        """Where this run's record, report and reject lists lie."""
        return self.home.root / "runs" / self.id

    @property
    def cache(self) -> Path:
        """Folder of what all runs of this home share: responses of language models, vectors."""
        return self.home.root / "cache"

    def budget(self, account: str) -> Budget | None:
        """What a stage may spend at endpoints: the run's limits less what its stages so far have cost."""
        if self.profile is None:
            return None
        if self._budget is None:
            llm = self.profile.llm
            self.cache.mkdir(parents=True, exist_ok=True)
            self._budget = Budget(llm.budget, llm.prices, self.cache / RESPONSES, account)
        return self._budget.open(account)

    def made(self, kind: str) -> dict[str, ArtifactRef]:
        """Artifacts of a kind that this run has, by the stage's variant (the kind itself where it has none)."""
        named = {stage.name: stage.artifact for stage in self.stages if stage.artifact is not None}
        return {name.partition("/")[2] or kind: ref for name, ref in named.items() if name.partition("/")[0] == kind}

    @contextlib.contextmanager
    def stage(self, name: str, title: str) -> Iterator[StageRecord]:
        """Open a stage in the ledger and as a nested tracked run; close it with its outcome."""
        record = StageRecord(name, title)
        record.tracked = self.tracker.start(title, {"kgqa.stage": name, "kgqa.run_id": self.id}, parent=self.tracked)
        self.stages.append(record)
        log.info("%s …", title)
        try:
            yield record
        except BaseException:
            record.status = "failed"
            self.tracker.end(record.tracked, failed=True)
            raise
        log.info("%s: %s in %.1f s", title, record.status, record.seconds)
        if record.artifact is not None:
            self._remember(record, record.artifact)
        self.tracker.end(record.tracked)

    def states_of(self, arguments: Mapping[str, Any]) -> list[Any]:
        """States of the tasks that made the artifacts among a stage's arguments."""
        refs: list[Any] = []
        for value in arguments.values():
            refs += value.values() if isinstance(value, Mapping) else [value]
        return [self.states[ref.path] for ref in refs if isinstance(ref, ArtifactRef) and ref.path in self.states]

    def monitor(self, title: str) -> StageMonitor:
        """A monitor whose metrics go to the stage that is open now."""
        tracked = next((stage.tracked for stage in reversed(self.stages) if stage.title == title), None)
        return StageMonitor(title, lambda rows: self.tracker.metrics(tracked, rows))

    def publish_counts(self, title: str, ref: ArtifactRef) -> None:
        """Show a stage's counts as a table in Prefect."""
        from prefect.artifacts import create_markdown_artifact
        from prefect.context import TaskRunContext

        from kgqa_core.artifacts import read_manifest

        if TaskRunContext.get() is None:
            return
        manifest = read_manifest(ref.folder)
        rows = "\n".join(f"| {_cell(name)} | {_cell(value)} |" for name, value in manifest["counts"].items())
        text = (
            f"## {_cell(title)}\n\n| count | value |\n|---|---|\n{rows}\n\n"
            f"artifact `{ref.kind}` · digest `{ref.digest[:16]}` · written {manifest['written']}"
        )
        try:
            create_markdown_artifact(text, key=re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-"), description=title)
        except Exception as fault:  # a lost server must not undo finished work
            log.debug("the table of %s was not stored: %s", title, fault)

    def provenance(self) -> dict[str, Any]:
        """Where and with what this run works; recorded beside results, never digested."""
        return {"environment": environment(), "run_id": self.id}

    def save(self, **extra: Any) -> None:
        """Write the run's record."""
        self.folder.mkdir(parents=True, exist_ok=True)
        write_json(
            self.folder / "run.json",
            {
                "run_id": self.id,
                "profile": self.profile.model_dump(mode="json") if self.profile else None,
                "mlflow_run_id": self.tracked,
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
            },
        )

    def _remember(self, record: StageRecord, ref: ArtifactRef) -> None:
        numbers = {key: value for key, value in record.counts.items() if isinstance(value, int | float)}
        rows = [(f"count/{key}", float(value), 0) for key, value in numbers.items() if value == value]
        self.tracker.metrics(record.tracked, [*rows, ("seconds", record.seconds, 0)])
        self.tracker.tags(record.tracked, {"kgqa.status": record.status, "kgqa.digest": ref.digest})


_CURRENT: ContextVar[Run | None] = ContextVar("kgqa_run", default=None)


def current_run() -> Run:
    """The run that is under way, or one that remembers nothing when a task is called on its own."""
    return _CURRENT.get() or Run(id="adhoc", home=Home.current().prepare(), tracker=NoTracker())


@contextlib.contextmanager
def tracked_run(profile: Profile) -> Iterator[Run]:
    """Open a run for a flow: a folder in the home, a parent run in the tracker, a ledger for its stages."""
    home = Home.current().prepare()
    tracker = open_tracker(home)
    run = Run(id=new_run_id(), home=home, tracker=tracker, profile=profile)
    name = f"{profile.kg.name}/{profile.questions.name} {profile.retriever.encoder} {profile.answering.answerer}"
    told = {"mlflow.note.content": profile.description, "mlflow.source.name": f"kgqa, profile {profile.name}"}
    run.tracked = tracker.start(name, {"kgqa.run_id": run.id, "kgqa.profile": profile.name, **told, **_tags()})
    tracker.params(run.tracked, flatten(profile.model_dump(mode="json", exclude={"name", "description"})))
    token = _CURRENT.set(run)
    try:
        yield run
    except BaseException as fault:
        run.save(status="failed", fault=f"{type(fault).__name__}: {fault}")
        tracker.end(run.tracked, failed=True)
        raise
    finally:
        _CURRENT.reset(token)
    tracker.end(run.tracked)


def new_run_id() -> str:
    """A run id that sorts by time."""
    return f"{datetime.datetime.now(datetime.UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A nested mapping with dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            flat.update(flatten(value, f"{prefix}{key}."))
        else:
            flat[prefix + key] = value
    return flat


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
def git_commit() -> str:
    """Commit of the code that runs, with a mark when it was changed since, or `unknown` outside a clone."""
    root = Path(__file__).resolve().parent.parent
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


def _tags() -> dict[str, str]:
    flow = flow_run_id()
    return {"kgqa.git": git_commit(), **({"kgqa.flow_run_id": flow} if flow else {})}


def _cell(value: Any) -> str:
    text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
