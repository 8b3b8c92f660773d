"""`@stage`: everything around a library call that turns it into a step of a run.

A stage binds its arguments, computes its key, looks the artifact up, verifies it, and otherwise runs the library
function under the key's lock.  Prefect sees a task with a name, tags, retries and a table of counts; MLflow sees a
nested run; the terminal sees a progress bar.  The function that carries the decorator is only a signature.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from prefect import task
from prefect.utilities.annotations import quote

from kgqa_core.artifacts import ArtifactRef, read_manifest
from kgqa_core.errors import EndpointError
from tasks.caching import StageKey, stage_key
from tasks.run import StageRecord, current_run

Outside = Callable[[Mapping[str, Any]], Mapping[str, str]]


class Stage:
    """A step of a run: called, it returns its artifact; `find` returns it only if it is finished already."""

    def __init__(self, call: Callable[..., ArtifactRef], find: Callable[..., ArtifactRef | None]) -> None:
        functools.update_wrapper(self, call)
        self._call, self.find = call, find

    def __call__(self, *args: Any, **kwargs: Any) -> ArtifactRef:
        """The artifact of the stage: found, or made now."""
        return self._call(*args, **kwargs)


def stage(
    kind: str,
    *,
    runs: str,
    label: Callable[[Mapping[str, Any]], str] = lambda arguments: "",
    variant: Callable[[Mapping[str, Any]], str] = lambda arguments: "",
    outside: Outside = lambda arguments: {},
    packages: Iterable[str] = (),
    tags: Iterable[str] = ("cpu",),
    retries: int = 0,
) -> Callable[[Callable[..., ArtifactRef]], Stage]:
    """Make a stage that publishes artifacts of `kind` by calling the library function `runs` (`module:function`).

    label: what is said after the kind in run names, from the arguments.
    variant: tells apart several stages of one kind in a run (`facts/rigel`); it is the label where there is none.
    outside: digests of files that the arguments only name (dumps, models), so that they enter the key.
    packages: third-party packages whose version decides the outcome.
    retries: further tries when an endpoint fails; nothing else gets better by trying again.
    """
    module, _, function = runs.partition(":")

    def decorate(declared: Callable[..., ArtifactRef]) -> Stage:
        signature = inspect.signature(declared)

        def body(key: str, title: str, parts: dict[str, Any], arguments: dict[str, Any]) -> ArtifactRef:
            return _compute(kind, key, title, parts, module, function, arguments)

        prefect_task = task(
            body,
            name=kind,
            description=inspect.getdoc(declared),
            tags=["kgqa", *tags],
            retries=retries,
            retry_delay_seconds=5,
            retry_condition_fn=_worth_another_try,
            persist_result=True,
            result_serializer="json",
            task_run_name="{title}",
        )

        def keyed(args: Any, kwargs: Any) -> tuple[str, dict[str, Any], dict[str, Any]]:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            arguments = dict(bound.arguments)
            return *stage_key(kind, module, arguments, outside(arguments), packages), arguments

        def find(*args: Any, **kwargs: Any) -> ArtifactRef | None:
            return current_run().home.find(kind, keyed(args, kwargs)[0])

        @functools.wraps(declared)
        def call(*args: Any, **kwargs: Any) -> ArtifactRef:
            key, parts, arguments = keyed(args, kwargs)
            part = variant(arguments)
            title = f"{kind} {label(arguments) or part}".strip()
            run = current_run()
            started = time.monotonic()
            hit = run.home.find(kind, key)
            if "llm" in arguments:
                run.budget(f"{kind}/{key[:20]}")  # what was paid for it before counts, found or not
            with run.stage(f"{kind}/{part}" if part else kind, title) as record:
                ready = prefect_task.with_options(cache_policy=StageKey(key, run.home.root), refresh_cache=hit is None)
                state = ready(
                    key, title, quote(parts), quote(arguments), wait_for=run.states_of(arguments), return_state=True
                )
                ref = state.result()
                run.states[ref.path] = state
                _finish(record, ref, run.id, found=hit is not None, seconds=time.monotonic() - started)
            return ref

        return Stage(call, find)

    return decorate


def _compute(
    kind: str, key: str, title: str, parts: dict[str, Any], module: str, function: str, arguments: dict[str, Any]
) -> ArtifactRef:
    run = current_run()
    monitor = run.monitor(title)

    def fill(out: Path, work: Path) -> Mapping[str, Any]:
        library = getattr(importlib.import_module(module), function)
        accepted = inspect.signature(library).parameters
        extras: dict[str, Any] = {"monitor": monitor, "work": work, "cache": run.cache}
        if "llm" in arguments:
            extras["budget"] = run.budget(f"{kind}/{key[:20]}")
        given = {name: _as_paths(value) for name, value in arguments.items()}
        return library(out, **given, **{name: value for name, value in extras.items() if name in accepted})

    with monitor:
        ref, _ = run.home.compute(kind, key, fill, {"stage": title, "made_of": parts, **run.provenance()}, monitor)
    run.publish_counts(title, ref)
    return ref


def _finish(record: StageRecord, ref: ArtifactRef, run_id: str, *, found: bool, seconds: float) -> None:
    manifest = read_manifest(ref.folder)
    elsewhere = found or manifest["run_id"] != run_id  # another run may have made it while this one waited
    record.artifact = ref
    record.status = "cached" if elsewhere else "computed"
    record.seconds = round(seconds, 3)
    record.counts = manifest["counts"]


def _as_paths(value: Any) -> Any:
    if isinstance(value, ArtifactRef):
        return value.folder
    if isinstance(value, Mapping) and any(isinstance(part, ArtifactRef) for part in value.values()):
        return {name: part.folder for name, part in value.items()}
    return value


def _worth_another_try(task: Any, task_run: Any, state: Any) -> bool:
    try:
        state.result()
    except EndpointError:
        return True
    except BaseException:
        return False
    return False
