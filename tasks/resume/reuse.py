"""Artifacts of an earlier run that a run goes on with: in its ledger like stages, and told in Prefect and MLflow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from prefect import task
from prefect.states import Completed
from prefect.utilities.annotations import quote

from kgqa_core.retrieval.registry import TRAINED
from kgqa_core.store.artifacts import ArtifactRef, read_manifest
from tasks.engine.artifacts import RunArtifacts
from tasks.engine.run import Run
from tasks.retrieval import TRAINING_STAGES


@task(name="keep", task_run_name="keep {title}", tags=["kgqa"], description="Go on with what an earlier run made.")
def _reuse(title: str, ref: Any, why: str) -> Any:
    return Completed(message=f"kept from {why}", data=ref)


def reuse(run: Run, name: str, ref: ArtifactRef, why: str) -> ArtifactRef:
    """Take an artifact of an earlier run for this one.  name: of its stage.  why: whose it is, in words."""
    run.home.use(f"{ref.kind}/{ref.folder.name}")
    with run.stage(name, f"{name} kept", trains=name in (*TRAINING_STAGES, "rewriter")) as record:
        state = _reuse(name, quote(ref), why, return_state=True)
        state.result()
        run.states[ref.path] = state
        record.artifact, record.status = ref, "kept"
        record.counts = read_manifest(ref.folder)["counts"]
    return ref


def reuse_all(run: Run, made: RunArtifacts, parts: Mapping[str, ArtifactRef], why: str) -> RunArtifacts:
    """With an earlier run's retrievers and rewriter.  parts: by stage, with what they learnt from."""
    reused = {name: reuse(run, name, ref, why) for name, ref in parts.items()}
    retrievers = {name: reused[spec.artifact] for name, spec in TRAINED.items() if spec.artifact in reused}
    return replace(made, retrievers=retrievers, rewriter=reused.get("rewriter"))
