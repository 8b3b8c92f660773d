"""`@stage`: everything around a library call that makes it a step of a run.

    @stage("dkg", packages=("duckdb", "numpy"))
    def export_dkg(workspace: Workspace, kg: ArtifactRef, options: DkgOptions) -> Counts:
        return export(workspace, kg=kg.folder, options=options)

The body fills the folder `workspace.out` and returns counts; the decorated stage is called without the workspace and
returns the artifact.  It computes the key of the call, looks the artifact up and verifies it, and otherwise runs the
body under the key's lock.  Prefect sees a task with a name, tags, retries and a page of counts, and the key as its
cache key; MLflow sees a nested run; the terminal sees a progress bar.
"""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Concatenate, Generic, ParamSpec

from prefect import task
from prefect.states import Completed, State
from prefect.utilities.annotations import quote

from kgqa_core.errors import EndpointError
from kgqa_core.monitor import Monitor
from kgqa_core.store.artifacts import ArtifactRef, Home, read_manifest
from kgqa_core.workspace import Workspace
from tasks.engine import deployments
from tasks.engine.context import Call, Counts, StageOptions
from tasks.engine.external_digests import FileDigest, check_unchanged, recorded_digests
from tasks.engine.key import StageKey, stage_key
from tasks.engine.prefect_pages import publish_stage_page
from tasks.engine.run import Run, StageRecord, current_run
from tasks.engine.shards import StageCall, clear_parts, is_divided, make_parts

P = ParamSpec("P")
Body = Callable[Concatenate[Workspace, P], Counts]


@dataclass(frozen=True)
class _Key:
    """The key of a call, what it is made of, the arguments, and the files whose digests are in it."""

    key: str
    parts: dict[str, Any]
    arguments: dict[str, Any]
    files: list[FileDigest] = field(default_factory=list)

    @property
    def call(self) -> Call:
        return SimpleNamespace(**self.arguments)


class Stage(Generic[P]):
    """A step of a run: called, it returns its artifact, from the home or computed now."""

    def __init__(self, body: Body[P], options: StageOptions) -> None:
        functools.update_wrapper(self, body)
        self.body, self.options = body, options
        first, *rest = inspect.signature(body).parameters.values()
        self.signature = inspect.Signature(rest)

    def __reduce__(self) -> str:
        return self.body.__name__  # by its name in its module, so that workers import it

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> ArtifactRef:
        """The artifact of the stage: cached, or computed now."""
        key = self._key(args, kwargs)
        run, options = current_run(), self.options
        part = options.variant(key.call)
        title = f"{options.kind} {options.label(key.call) or part}".strip()
        started = time.monotonic()
        hit = run.home.find(options.kind, key.key)
        if options.pays:
            run.budget(self._account(key))  # what was paid for it before counts, cached or not
        name = f"{options.kind}/{part}" if part else options.kind
        with run.stage(name, title, key.arguments, trains=options.trains) as record:
            state = self._task(run, key, title, hit)
            ref = hit or state.result()
            if hit is not None:
                publish_stage_page(run, title, ref, cached=True)
            run.states[ref.path] = state
            if options.merge is not None:
                clear_parts(run.home, options.kind, key.key)
            _finish(record, ref, run.id, cached=hit is not None, seconds=time.monotonic() - started)
        return ref

    def find(self, *args: P.args, **kwargs: P.kwargs) -> ArtifactRef | None:
        """The artifact if it is in the home, None otherwise; nothing is computed."""
        return current_run().home.find(self.options.kind, self._key(args, kwargs).key)

    def account(self, *args: P.args, **kwargs: P.kwargs) -> str:
        """The account that requests of this call are booked on."""
        return self._account(self._key(args, kwargs))

    def external_digests(self, **arguments: Any) -> Mapping[str, str]:
        """Digests of what a call reads beside artifacts, by those of its arguments that say what that is."""
        return self.options.external(SimpleNamespace(**arguments))

    def compute_in(self, home: Home, monitor: Monitor, *args: P.args, **kwargs: P.kwargs) -> ArtifactRef:
        """The artifact, cached in a home or computed into it, without a run, Prefect or MLflow."""
        key = self._key(args, kwargs)
        record = {"stage": self.options.kind, "made_of": key.parts, **current_run().provenance()}

        def fill(out: Path, work: Path) -> Counts:
            counts = self.fill(Workspace(out, work, home.cache, monitor), key.arguments)
            check_unchanged(key.files)
            return counts

        return home.compute(self.options.kind, key.key, fill, record, monitor)[0]

    def fill(self, workspace: Workspace, arguments: Mapping[str, Any]) -> Counts:
        """Run the body, as a worker that has no run does."""
        return self.body(workspace, **arguments)  # type: ignore[call-arg]

    def _task(self, run: Run, key: _Key, title: str, hit: ArtifactRef | None) -> State[Any]:
        """Prefect's state of the call; where the artifact is there, its own `Cached` state, else the body has run.

        hit: the verified artifact of the home.  Without one the entry of Prefect's cache is refreshed: it points at an
        artifact that is missing or damaged.
        """
        options = self.options

        def body(key: _Key, title: str) -> Any:
            if hit is not None:  # the home has it and Prefect's cache does not: from another machine or server
                return Completed(name="Cached", data=hit)
            made, where = deployments.make(options, key.key, key.parts, key.call, key.arguments)
            ref = made or self._compute(current_run(), key, title)  # Prefect pickles what this function holds
            return Completed(message=where, data=ref) if where else ref

        ready = task(
            body,
            name=options.kind,
            description=inspect.getdoc(self.body),
            tags=["kgqa", *options.tags],
            retries=options.retries,
            retry_delay_seconds=5,
            retry_condition_fn=_is_endpoint_error,
            persist_result=True,
            result_serializer="json",
            task_run_name=_run_name(title),
            cache_policy=StageKey(key.key, run.home.root),
            refresh_cache=hit is None,
        )  # type: ignore[call-overload]
        state: State[Any] = ready(quote(key), quote(title), wait_for=run.states_of(key.arguments), return_state=True)
        return state

    def _compute(self, run: Run, key: _Key, title: str) -> ArtifactRef:
        """The artifact, computed now; nothing is published where a file whose digest is in the key has changed."""
        options = self.options
        monitor = run.monitor(title)
        budget = run.budget(self._account(key)) if options.pays else None
        call = StageCall(options.kind, key.key, title, self, key.parts, key.arguments)

        def fill(out: Path, scratch: Path) -> Counts:
            workspace = Workspace(out, scratch, run.home.cache, monitor, budget)
            if options.merge is not None and is_divided(run) and options.divides(key.call):
                counts = options.merge(workspace, make_parts(workspace, run, call), key.call)
            else:
                counts = self.fill(workspace, key.arguments)
            check_unchanged(key.files)
            return counts

        with monitor:
            record = {"stage": title, "made_of": key.parts, **run.provenance()}
            ref, _ = run.home.compute(options.kind, key.key, fill, record, monitor)
        publish_stage_page(run, title, ref, cached=False)
        return ref

    def _key(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> _Key:
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        arguments = dict(bound.arguments)
        call = SimpleNamespace(**arguments)
        with recorded_digests() as files:
            digests = self.options.external(call)
        options = self.options
        code = (self.body,) if options.code is None else (self.body, options.code(call))
        packages = options.packages(call) if callable(options.packages) else options.packages
        return _Key(*stage_key(options.kind, code, arguments, digests, packages), arguments, files)

    def _account(self, key: _Key) -> str:
        return f"{self.options.kind}/{key.key[:20]}"


@dataclass(frozen=True)
class StageDecorator(StageOptions):
    """Makes a function that fills a folder a stage that publishes artifacts of `kind`."""

    def __call__(self, body: Body[P]) -> Stage[P]:
        """The stage of a body."""
        return Stage(body, self)


stage = StageDecorator


def _finish(record: StageRecord, ref: ArtifactRef, run_id: str, *, cached: bool, seconds: float) -> None:
    manifest = read_manifest(ref.folder)
    # another run may have made it while this one waited
    computed = not cached and (manifest["run_id"] == run_id or deployments.was_requested(ref))
    record.artifact = ref
    record.status = "computed" if computed else "cached"
    record.seconds = round(seconds, 3)
    record.counts = manifest["counts"]


def _run_name(title: str) -> Callable[[], str]:
    """A task run's name that Prefect does not read as a template."""
    return lambda: title


def _is_endpoint_error(task: Any, task_run: Any, state: Any) -> bool:
    try:
        state.result()
    except EndpointError:
        return True
    except BaseException:
        return False
    return False
