"""`@stage`: everything around a library call that turns it into a step of a run.

A stage binds its arguments, computes its key, looks the artifact up, verifies it, and otherwise runs the library
function under the key's lock.  Prefect sees a task with a name, tags, retries and a table of counts; MLflow sees a
nested run; the terminal sees a progress bar.  The function that carries the decorator is only a signature.
"""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from prefect import task
from prefect.states import Completed
from prefect.utilities.annotations import quote

from kgqa_core.errors import EndpointError
from kgqa_core.store.artifacts import ArtifactRef, read_manifest
from tasks.engine import deployments as calling
from tasks.engine.external_digests import Digested, check_unchanged, noted
from tasks.engine.key import StageKey, stage_key
from tasks.engine.prefect_pages import why_found
from tasks.engine.run import StageRecord, current_run
from tasks.engine.shards import Work, call_library, clear_parts, is_mapped, join, map_parts

Outside = Callable[[Mapping[str, Any]], Mapping[str, str]]


class Stage:
    """A step of a run: called, it returns its artifact; `find` returns it only if it is finished already.

    account: what its requests to endpoints are booked on.  outside: digests of what it reads beside artifacts, by those
    of its arguments that say what that is.
    """

    def __init__(
        self,
        call: Callable[..., ArtifactRef],
        find: Callable[..., ArtifactRef | None],
        account: Callable[..., str],
        outside: Outside,
    ) -> None:
        functools.update_wrapper(self, call)
        self._call, self.find, self.account, self.outside = call, find, account, outside

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
    mapped: bool = False,
) -> Callable[[Callable[..., ArtifactRef]], Stage]:
    """Make a stage that publishes artifacts of `kind` by calling the library function `runs` (`module:function`).

    label: what is said after the kind in run names, from the arguments.
    variant: tells apart several stages of one kind in a run (`facts/rigel`); it is the label where there is none.
    outside: digests of files that the arguments only name (dumps, models), so that they enter the key.
    packages: third-party packages whose version decides the outcome.
    retries: further tries when an endpoint fails; nothing else gets better by trying again.
    mapped: the library function takes `part`, and `merge` of its module joins the parts.
    """
    module, _, function = runs.partition(":")

    def decorate(declared: Callable[..., ArtifactRef]) -> Stage:
        signature = inspect.signature(declared)

        def body(
            key: str, title: str, parts: dict[str, Any], arguments: dict[str, Any], files: Sequence[Digested]
        ) -> Any:
            found = current_run().home.find(kind, key)
            if found is not None:
                current_run().publish_counts(title, found, found=True)
                return Completed(name="Cached", message=why_found(read_manifest(found.folder)), data=found)
            made, where = calling.make(kind, key, parts, arguments)
            work = Work(kind, key, title, module, function, parts, arguments)
            ref = made or _compute(work, files, mapped=mapped)
            return Completed(message=where, data=ref) if where else ref

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

        def keyed(args: Any, kwargs: Any) -> tuple[str, dict[str, Any], dict[str, Any], list[Digested]]:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            arguments = dict(bound.arguments)
            with noted() as files:
                digests = outside(arguments)
            return *stage_key(kind, module, arguments, digests, packages), arguments, files

        def find(*args: Any, **kwargs: Any) -> ArtifactRef | None:
            return current_run().home.find(kind, keyed(args, kwargs)[0])

        def account(*args: Any, **kwargs: Any) -> str:
            return f"{kind}/{keyed(args, kwargs)[0][:20]}"

        @functools.wraps(declared)
        def call(*args: Any, **kwargs: Any) -> ArtifactRef:
            key, parts, arguments, files = keyed(args, kwargs)
            part = variant(arguments)
            title = f"{kind} {label(arguments) or part}".strip()
            run = current_run()
            started = time.monotonic()
            hit = run.home.find(kind, key)
            if "llm" in arguments:
                run.budget(f"{kind}/{key[:20]}")  # what was paid for it before counts, found or not
            with run.stage(f"{kind}/{part}" if part else kind, title) as record:
                ready = prefect_task.with_options(cache_policy=StageKey(key, run.home.root), refresh_cache=True)
                given = (key, title, quote(parts), quote(arguments), quote(files))
                state = ready(*given, wait_for=run.states_of(arguments), return_state=True)
                ref = state.result()
                run.states[ref.path] = state
                if mapped:
                    clear_parts(run.home, kind, key)
                _finish(record, ref, run.id, found=hit is not None, seconds=time.monotonic() - started)
            return ref

        return Stage(call, find, account, outside)

    return decorate


def _compute(work: Work, files: Sequence[Digested], *, mapped: bool) -> ArtifactRef:
    """The artifact of a stage, made now; nothing is published where one of the files that its key is of changed."""
    run = current_run()
    monitor = run.monitor(work.title)
    budget = run.budget(f"{work.kind}/{work.key[:20]}") if "llm" in work.arguments else None

    def fill(out: Path, scratch: Path) -> Mapping[str, Any]:
        counts = made(out, scratch)
        check_unchanged(files)
        return counts

    def made(out: Path, scratch: Path) -> Mapping[str, Any]:
        if mapped and is_mapped(run):
            return join(work, out, map_parts(run, work, budget, monitor), monitor)
        extras: dict[str, Any] = {"monitor": monitor, "work": scratch, "cache": run.home.cache}
        if "llm" in work.arguments:
            extras["budget"] = budget
        return call_library(work.module, work.function, work.arguments, extras, out)

    with monitor:
        record = {"stage": work.title, "made_of": work.parts, **run.provenance()}
        ref, _ = run.home.compute(work.kind, work.key, fill, record, monitor)
    run.publish_counts(work.title, ref)
    return ref


def _finish(record: StageRecord, ref: ArtifactRef, run_id: str, *, found: bool, seconds: float) -> None:
    manifest = read_manifest(ref.folder)
    own = manifest["run_id"] == run_id or calling.was_called_for(ref)
    elsewhere = found or not own  # another run may have made it while this one waited
    record.artifact = ref
    record.status = "cached" if elsewhere else "computed"
    record.seconds = round(seconds, 3)
    record.counts = manifest["counts"]


def _worth_another_try(task: Any, task_run: Any, state: Any) -> bool:
    try:
        state.result()
    except EndpointError:
        return True
    except BaseException:
        return False
    return False
