"""Sharded stages: the work in parts, each a task on the runner that the profile names, each an artifact of its own.

A part's key is that of the stage with the part's number, so that a killed run uses finished parts again.  The stage
merges them under its own key, which knows nothing of parts: whatever runner and number, the artifact is the same.
Parts may run in processes that have no run: they get all that they need, a handle of their run's budget with it.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import pickle
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prefect import task
from prefect.cache_policies import NO_CACHE

from kgqa_core.config import BudgetOptions, LlmOptions, Price
from kgqa_core.errors import KgqaError, WorkerError
from kgqa_core.llm.budget import Budget
from kgqa_core.llm.cache import FILE as RESPONSES
from kgqa_core.store.artifacts import ArtifactRef, Home, canonical_json
from kgqa_core.store.locks import free
from kgqa_core.workspace import Workspace
from tasks.engine.context import ArtifactWriter
from tasks.engine.progress import StageMonitor
from tasks.engine.runners import server_named, task_runner, threads_of, workers_of

if TYPE_CHECKING:
    from tasks.engine.run import Run

log = logging.getLogger("kgqa")

OWNED = 12
"""Digits of a stage's key that the keys of its parts begin with: by these what belongs to it is found."""
LOOK = 0.2
"""Seconds that one part is waited for before the others are looked at."""


@dataclass(frozen=True)
class BudgetHandle:
    """A run's budget for a process that has no run: its limits, and the accounts that count against them."""

    options: BudgetOptions
    prices: Mapping[str, Price]
    ledger: Path
    accounts: tuple[str, ...]
    account: str

    @classmethod
    def of(cls, budget: Budget, home: Home) -> BudgetHandle:
        """What another process needs to spend on the same accounts."""
        return cls(budget.options, budget.prices, home.cache / RESPONSES, budget.accounts, budget.account)

    def open(self) -> Budget:
        """The budget: what all accounts have spent, here and elsewhere, counts."""
        budget = Budget(self.options, self.prices, self.ledger, self.account)
        for account in self.accounts:
            budget.open(account)
        return budget


@dataclass(frozen=True)
class StageCall:
    """A call of a stage: its arguments, and the key of what it makes.  parts: of the key."""

    kind: str
    key: str
    title: str
    stage: ArtifactWriter
    parts: Mapping[str, Any]
    arguments: Mapping[str, Any]

    def of_part(self, number: int, among: int) -> tuple[str, str]:
        """Kind and key of a part's artifact."""
        digest = hashlib.sha256(canonical_json([self.key, number, among]).encode()).hexdigest()
        return f"{self.kind}-part", self.key[:OWNED] + digest[OWNED:]


def is_divided(run: Run) -> bool:
    """Whether the stages of a run that can be divided are."""
    if run.profile is None:
        return False
    options = run.profile.operations.runner
    return options.shards > 1 or options.kind != "inline"


def make_parts(workspace: Workspace, run: Run, call: StageCall) -> list[Path]:
    """Folders of all parts: from the home, or made by the runner of the profile.

    workspace: of the stage; the parts together may spend its budget.  A part that fails does not stop the others; when
    all have ended, the first one's own error is raised.
    """
    assert run.profile is not None
    monitor, budget = workspace.monitor, workspace.budget
    among = run.profile.operations.runner.shards
    made = {number: ref for number in range(among) if (ref := run.home.find(*call.of_part(number, among))) is not None}
    if made:
        monitor.note(f"{len(made)} of {among} parts are there from an earlier run")
    missing = [number for number in range(among) if number not in made]
    faults: dict[int, BaseException] = {}
    monitor.progress(len(made), among, "parts")
    handle = BudgetHandle.of(budget, run.home) if budget is not None else None
    for number, outcome in _outcomes(run, call, handle, missing):
        if isinstance(outcome, BaseException):
            faults[number] = outcome
            log.warning("%s: part %d of %d failed: %s", call.title, number + 1, among, outcome)
        else:
            made[number] = outcome
        monitor.progress(len(made), among, "parts")
    if faults:
        raise faults[min(faults)]
    return [made[number].folder for number in range(among)]


def clear_parts(home: Home, kind: str, key: str) -> None:
    """Removes what the parts of a published artifact have left, of whatever number of parts."""
    owned = f"{key[:OWNED]}*"
    folders = [*(home.root / "artifacts" / f"{kind}-part").glob(owned)]
    for name in ("tmp", "work"):
        folders += (home.root / name).glob(f"{kind}-part-{owned}")
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    for lock in (home.root / "locks").glob(f"{kind}-part-{owned}"):
        with contextlib.suppress(OSError), free(lock, remove=True):
            pass
    with contextlib.suppress(OSError):
        (home.root / "artifacts" / f"{kind}-part").rmdir()


class ShardJob:
    """What the makers of all parts are handed; a plain object, into which neither Prefect nor Dask looks.

    handle: None where nothing may be spent.
    """

    def __init__(self, call: StageCall, handle: BudgetHandle | None, provenance: Mapping[str, Any]) -> None:
        self.call, self.handle, self.provenance = call, handle, provenance


def make_part(title: str, home: str, job: ShardJob, number: int, among: int, threads: int | None) -> ArtifactRef:
    """One part of a stage's work, in whatever process this is."""
    call, handle = job.call, job.handle
    if threads is not None:
        _keep_to(threads)
    kind, key = call.of_part(number, among)
    store = Home(Path(home))
    monitor = StageMonitor(title, lambda rows: None, bar=False)

    def fill(out: Path, scratch: Path) -> Mapping[str, Any]:
        budget = handle.open() if handle is not None else None
        workspace = Workspace(out, scratch, store.cache, monitor, budget, (number, among))
        return call.stage.fill(workspace, call.arguments)

    record = {"stage": title, "made_of": {**call.parts, "part": [number, among]}, **job.provenance}
    try:
        with monitor:
            return store.compute(kind, key, fill, record, monitor)[0]
    except Exception as fault:
        if not _travels(fault):
            raise KgqaError(f"{type(fault).__name__}: {fault}") from None
        raise


def _outcomes(
    run: Run, call: StageCall, handle: BudgetHandle | None, numbers: Sequence[int]
) -> Iterator[tuple[int, ArtifactRef | BaseException]]:
    """Number and artifact of each part, or why there is none, as they end."""
    if run.profile is None or not numbers:
        return
    options = run.profile.operations.runner
    call = _divided(call, min(workers_of(options), len(numbers)))
    part = task(
        make_part,
        name=f"{call.kind} part",
        description=f"One part of the stage {call.kind}.",
        tags=["kgqa", "part"],
        task_run_name="{title}",
        cache_policy=NO_CACHE,
        persist_result=False,
    )  # type: ignore[call-overload]

    job = ShardJob(call, handle, run.provenance())

    def parameters(number: int) -> dict[str, Any]:
        title = f"{call.title}, part {number + 1} of {options.shards}"
        return {
            "title": title, "home": str(run.home.root), "job": job, "number": number, "among": options.shards,
            "threads": threads_of(options),
        }  # fmt: skip

    if options.kind == "inline":
        for number in numbers:
            state = part(**parameters(number), return_state=True)
            yield number, state.result(raise_on_failure=False)
        return
    if run.runner is None:
        run.runner = run.closing.enter_context(task_runner(options))
    with server_named():
        waiting = {number: run.runner.submit(part, parameters(number)) for number in numbers}
    while waiting:
        for number, future in list(waiting.items()):
            try:
                outcome = future.result(timeout=LOOK, raise_on_failure=False)
            except TimeoutError:
                continue
            except Exception as fault:
                outcome = _lost(call, fault)
            del waiting[number]
            yield number, outcome


def _divided(call: StageCall, workers: int) -> StageCall:
    """The work with requests under way to endpoints shared among workers, so that together they are as many."""

    def share(value: Any) -> Any:
        if not isinstance(value, LlmOptions):
            return value
        return value.model_copy(update={"concurrency": max(1, value.concurrency // workers)})

    return replace(call, arguments={name: share(value) for name, value in call.arguments.items()})


def _lost(call: StageCall, fault: Exception) -> WorkerError:
    return WorkerError(
        f"a worker was lost while it made a part of {call.title} ({type(fault).__name__}: {fault}); it may have run "
        "out of memory: lower operations.runner.workers and run the same command again, finished parts are kept"
    )


def _keep_to(threads: int) -> None:
    import torch

    if torch.get_num_threads() != threads:
        torch.set_num_threads(threads)
    if "numba" in sys.modules:
        import numba

        numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))


def _travels(fault: Exception) -> bool:
    """Whether an error says the same in another process.

    One whose constructor takes other arguments than its message raises, when it is unpickled, whatever that raises.
    """
    try:
        return str(pickle.loads(pickle.dumps(fault))) == str(fault)  # noqa: S301 - our own, made in this line
    except Exception as unpickled:
        log.debug("%s cannot be sent from a worker: %s", type(fault).__name__, unpickled)
        return False
