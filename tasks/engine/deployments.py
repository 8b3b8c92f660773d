"""GPU stages as deployments, the caller's side: where a stage is made, and waiting for it.

The caller's cached task starts a run of the deployment with the profile, the input artifacts and the key that it waits
for, and takes the artifact from the shared home when the run has ended.  Two callers of one key wait for one run; a
caller that is stopped stops the run that it started; a run whose process died is started again.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kgqa_core.config import Profile
from kgqa_core.errors import WorkerError
from kgqa_core.retrieval.registry import TRAINED
from kgqa_core.store.artifacts import ArtifactRef, canonical_json
from tasks.engine.context import StageOptions
from tasks.engine.run import Run, current_run
from tasks.engine.stage_request import StageRequest, in_process, is_dead, is_requested

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.objects import FlowRun


POLL_SECONDS = 2.0
TELL_SECONDS = 60.0
"""Seconds between two words on a run that has not started yet."""
RESTARTS = 2
"""New runs for one whose process or machine died; each goes on from the last checkpoint."""

log = logging.getLogger("kgqa")


@dataclass(frozen=True)
class Placement:
    """Where a stage is made: by a deployment, or here when there is none; and why."""

    deployment: str | None
    why: str
    pool: str | None = None


_CALLED: set[str] = set()
"""Paths of artifacts that deployments made because this process requested them."""


def make(
    stage: StageOptions, key: str, parts: Mapping[str, Any], call: Any, arguments: Mapping[str, Any]
) -> tuple[ArtifactRef | None, str]:
    """The artifact of a GPU stage as a deployment makes it, and where it was made.

    The artifact is None where the stage is to be made here; the words are empty where there was nothing to choose.
    Raises WorkerError when a deployment is wanted and there is none, when its run fails, or when this is a called run
    whose code would make another artifact than the one that was requested.
    """
    run, kind = current_run(), stage.kind
    if is_requested(kind, key, parts):
        return None, "made by the run of a deployment"
    if stage.deployment is None or run.profile is None or stage.only_here(call):
        return None, ""
    wish = run.profile.operations.gpu_stages
    if wish == "here":
        return None, ""
    placement = choose_placement(stage.deployment, wish)
    if placement.deployment is None:
        log.info("%s is made in this process: %s", kind, placement.why)
        return None, f"made in this process: {placement.why}"
    inputs = {name: value for name, value in arguments.items() if isinstance(value, ArtifactRef)}
    request = StageRequest(kind=kind, key=key, made_of=json.loads(canonical_json(parts)), inputs=inputs, caller=run.id)
    return _call(placement, request, run.profile, run)


def choose_placement(name: str, wish: str) -> Placement:
    """Where a stage is made that the deployment `flow/name` can make.  wish: `operations.gpu_stages`.

    Raises WorkerError when `deployments` are wanted and the server or the deployment is missing.
    """
    import httpx
    from prefect.client.orchestration import get_client
    from prefect.exceptions import ObjectNotFound
    from prefect.settings import get_current_settings

    address = get_current_settings().api.url
    if wish == "here":
        return Placement(None, "operations.gpu_stages is here")
    if address is None:
        return _without(wish, "PREFECT_API_URL names no server")
    try:
        with get_client(sync_client=True) as client:
            try:
                deployment = client.read_deployment_by_name(name)
            except ObjectNotFound:
                return _without(wish, f"the server {address} has no deployment {name}")
            pool = deployment.work_pool_name
            online = _workers_online(client, pool)
    except httpx.HTTPError as fault:
        return _without(wish, f"the server {address} does not answer ({fault})")
    if wish == "auto" and (deployment.paused or not online):
        why = "is paused" if deployment.paused else f"has no worker online in its pool {pool}"
        return Placement(None, f"the deployment {name} {why}")
    return Placement(name, f"by the deployment {name}", pool)


def was_requested(ref: ArtifactRef) -> bool:
    """Whether a deployment made this artifact because this process requested it."""
    return ref.path in _CALLED


def _call(placement: Placement, request: StageRequest, profile: Profile, run: Run) -> tuple[ArtifactRef, str]:
    """Wait for a run of the deployment and take what it made."""
    from prefect.client.orchestration import get_client

    assert placement.deployment is not None
    died = 0
    with get_client(sync_client=True) as client:
        while True:
            child, ours = _join_or_start(client, placement.deployment, request, profile, run)
            word = "given to" if ours else "waits for another caller's run of"
            log.info("%s: %s the deployment %s, flow run %s", request.kind, word, placement.deployment, child.name)
            child = _wait(client, child, placement, run, ours=ours)
            made = run.home.find(request.kind, request.key)
            if made is not None:
                if ours:
                    _CALLED.add(made.path)
                return made, f"made by {placement.deployment}, flow run {child.name}"
            if child.state is not None and child.state.is_completed():
                raise WorkerError(
                    f"the flow run {child.name} of {placement.deployment} ended well, but the home {run.home.root} "
                    f"has no {request.kind} {request.key[:20]}: its worker has another home or another version of the "
                    "code; give all workers the same KGQA_HOME and the same version of kgqa"
                )
            crashed = child.state is not None and child.state.is_crashed()
            died += crashed
            if ours and not (crashed and died <= RESTARTS):
                raise WorkerError(_ending(child, placement.deployment))
            log.warning("%s: %s; a new run is started", request.kind, _ending(child, placement.deployment))


def _join_or_start(
    client: SyncPrefectClient, deployment: str, request: StageRequest, profile: Profile, run: Run
) -> tuple[FlowRun, bool]:
    """A run of the deployment for this artifact, and whether it was started now or by another caller."""
    from prefect.client.schemas.filters import FlowRunFilter
    from prefect.deployments import run_deployment
    from prefect.states import StateType

    mark = f"{request.kind} {request.key[:20]} {run.home.root}"
    open_states = [StateType.SCHEDULED, StateType.PENDING, StateType.RUNNING]
    where = FlowRunFilter.model_validate({"tags": {"all_": [mark]}, "state": {"type": {"any_": open_states}}})
    under_way = client.read_flow_runs(flow_run_filter=where, limit=1)
    if under_way:
        return under_way[0], False
    if trained := tuple(name for name, spec in TRAINED.items() if spec.artifact == request.kind):
        only = profile.retrieval.model_copy(update={"retrievers": trained})
        profile = profile.model_copy(update={"retrieval": only})
    child: Any = run_deployment(
        deployment,
        parameters={
            "profile": in_process(profile).model_dump(mode="json"),
            "given": request.model_dump(mode="json"),
        },
        timeout=0,
        as_subflow=True,
        tags=["kgqa", mark],
        flow_run_name=f"{request.kind} for {run.id}",
    )
    return child, True


def _wait(client: SyncPrefectClient, child: FlowRun, placement: Placement, run: Run, *, ours: bool) -> FlowRun:
    """The called run when it has ended; it is cancelled when the caller is stopped while it waits."""
    import httpx

    reported, lost = time.monotonic(), False
    try:
        while child.state is None or not child.state.is_final():
            time.sleep(POLL_SECONDS)
            try:
                child = client.read_flow_run(child.id)
                state = child.state
                if state is not None and state.is_running() and is_dead(run.home, str(child.id)):
                    child = _crash(client, child)
                elif state is not None and not state.is_final() and not state.is_running():
                    reported = _report_waiting(client, child, placement, reported)
                lost = False
            except httpx.HTTPError as fault:
                if not lost:
                    log.warning("the Prefect server does not answer (%s); waiting for it", fault)
                lost = True
    except BaseException:
        if ours:
            _cancel(client, child)
        raise
    return child


def _report_waiting(client: SyncPrefectClient, child: FlowRun, placement: Placement, reported: float) -> float:
    """Say now and then what a run that has not started waits for, and when that was logged last."""
    if time.monotonic() - reported < TELL_SECONDS:
        return reported
    reason = "is busy" if _workers_online(client, placement.pool) else "has no worker online"
    log.info("flow run %s has not started yet; the pool %s %s", child.name, placement.pool, reason)
    return time.monotonic()


def _crash(client: SyncPrefectClient, child: FlowRun) -> FlowRun:
    """Write off a run whose process died without a word, so that it holds no place in its pool any more."""
    from prefect.states import Crashed

    child = client.read_flow_run(child.id)  # it may have ended in the meantime
    if child.state is not None and child.state.is_running():
        client.set_flow_run_state(child.id, Crashed(message="its process or its machine died"), force=True)
        child = client.read_flow_run(child.id)
    return child


def _cancel(client: SyncPrefectClient, child: FlowRun) -> None:
    """Ask the worker to stop a run; a run that has not started is cancelled at once."""
    from prefect.states import Cancelled, Cancelling

    message = "the run that called it was stopped"
    try:
        state = client.read_flow_run(child.id).state
        if state is not None and state.is_final():
            return
        started = state is not None and (state.is_running() or state.is_pending())
        client.set_flow_run_state(child.id, Cancelling(message=message) if started else Cancelled(message=message))
        log.info("flow run %s is cancelled, since its caller was stopped", child.name)
    except Exception as fault:
        log.warning("flow run %s could not be cancelled (%s); cancel it in the UI", child.name, fault)


def _workers_online(client: SyncPrefectClient, pool: str | None) -> bool:
    """Whether a worker of the pool has been heard of lately."""
    if pool is None:
        return False
    return any(worker.status == "ONLINE" for worker in client.read_workers_for_work_pool(pool))


def _without(wish: str, why: str) -> Placement:
    if wish == "deployments":
        raise WorkerError(
            f"operations.gpu_stages is deployments, but {why}; start a server and `prefect deploy --all`, or set "
            "operations.gpu_stages to auto or here"
        )
    return Placement(None, why)


def _ending(child: FlowRun, deployment: str) -> str:
    """What the end of a called run says."""
    state = child.state
    name, message = (state.name, state.message or "") if state is not None else ("unknown", "")
    reason = message.removeprefix("Flow run encountered an exception: ").strip() or "it says no more"
    return f"{deployment}, flow run {child.name}, ended as {name}: {reason}"
