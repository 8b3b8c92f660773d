"""A stage is computed once, found again, rebuilt when damaged, and tells Prefect and MLflow what it did."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from prefect import flow

from kgqa_core.config import Profile, make_profile
from kgqa_core.errors import KgInputError
from kgqa_core.store.artifacts import ArtifactRef
from tasks.engine.run import Run, tracked_run
from tasks.kg import build_kg, export_dkg
from tests.support.toy import write_graph

pytestmark = pytest.mark.usefixtures("prefect_server")


@pytest.fixture
def profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Profile:
    """A profile over a small graph, with a home of its own."""
    monkeypatch.setenv("KGQA_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    write_graph(tmp_path / "graph.tsv", 300)
    return make_profile({"kg": {"name": "toy", "files": [str(tmp_path / "graph.tsv")]}})


@flow(name="two-stages")
def two_stages(profile: Profile) -> tuple[Run, ArtifactRef, ArtifactRef]:
    with tracked_run(profile) as run:
        kg = build_kg(profile.kg)
        dkg = export_dkg(kg, profile.dkg)
        return run, kg, dkg


def statuses(run: Run) -> dict[str, str]:
    return {stage.name: stage.status for stage in run.stages}


def test_second_run_is_cached_and_a_change_reruns_only_what_depends_on_it(profile: Profile) -> None:
    run, kg, dkg = two_stages(profile)
    assert statuses(run) == {"kg": "computed", "dkg": "computed"}
    again, same_kg, same_dkg = two_stages(profile)
    assert statuses(again) == {"kg": "cached", "dkg": "cached"}
    assert (same_kg, same_dkg) == (kg, dkg)
    changed = profile.model_copy(update={"dkg": profile.dkg.model_copy(update={"literal_inverses": True})})
    third, _, _ = two_stages(changed)
    assert statuses(third) == {"kg": "cached", "dkg": "computed"}


def test_prefect_shows_its_own_cached_state_and_why_a_stage_was_not_computed(profile: Profile) -> None:
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterFlowRunId, FlowRunFilter, FlowRunFilterId

    two_stages(profile)
    state = two_stages(profile, return_state=True)
    flow_run = state.state_details.flow_run_id
    with get_client(sync_client=True) as client:
        tasks = client.read_task_runs(flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[flow_run])))
        pages = client.read_artifacts(
            artifact_filter=ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[flow_run]))
        )
    assert {task.name for task in tasks} == {"kg toy", "dkg"}
    for task in tasks:
        assert task.state is not None and task.state.name == "Cached" and task.state.is_completed()
    graph = next(page for page in pages if page.key == "kg-toy")
    assert "cached: the same inputs" in str(graph.data) and "| triples | 390 |" in str(graph.data)


@pytest.mark.slow
def test_changed_dump_reruns_both(profile: Profile) -> None:
    two_stages(profile)
    with Path(profile.kg.files[0]).open("a") as stream:
        stream.write("new\tknows\tnewer\n")
    run, _, _ = two_stages(profile)
    assert statuses(run) == {"kg": "computed", "dkg": "computed"}


@pytest.mark.parametrize("harm", ["flip", pytest.param("delete", marks=pytest.mark.slow)])
def test_damaged_artifact_is_rebuilt_although_prefect_has_it_cached(profile: Profile, harm: str) -> None:
    _, kg, dkg = two_stages(profile)
    file = dkg.folder / "tail.npy"
    if harm == "flip":
        content = bytearray(file.read_bytes())
        content[-1] ^= 1
        file.write_bytes(bytes(content))
    else:
        file.unlink()
    run, same_kg, rebuilt = two_stages(profile)
    assert statuses(run) == {"kg": "cached", "dkg": "computed"}
    assert (same_kg, rebuilt) == (kg, dkg)


def test_run_is_remembered_in_mlflow_with_nested_stages(profile: Profile, tmp_path: Path) -> None:
    from mlflow import MlflowClient

    run, kg, _ = two_stages(profile)
    client = MlflowClient(f"sqlite:///{tmp_path / 'home' / 'mlflow' / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("kgqa")
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id])
    parent = next(found for found in runs if found.info.run_id == run.tracked)
    nested = [found for found in runs if found.data.tags.get("mlflow.parentRunId") == run.tracked]
    assert parent.info.status == "FINISHED"
    assert parent.data.params["rigel.batch_size"] == "32"
    assert parent.data.tags["kgqa.flow_run_id"]
    assert {found.data.tags["kgqa.stage"] for found in nested} == {"kg", "dkg"}
    graph = next(found for found in nested if found.data.tags["kgqa.stage"] == "kg")
    assert graph.data.metrics["count/triples"] == 390, "with 90 types of what is called `… Ltd` and `… Club`"
    assert graph.data.tags["kgqa.digest"] == kg.digest


def test_failed_stage_leaves_a_clear_error_and_a_failed_run(profile: Profile, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, logger="prefect")
    missing = profile.model_copy(update={"kg": profile.kg.model_copy(update={"files": ("nowhere.tsv",)})})
    with pytest.raises(KgInputError, match=r"nowhere\.tsv"):
        two_stages(missing)
    home = Path(profile.kg.files[0]).parent / "home"
    assert not list((home / "tmp").iterdir())
    assert '"failed"' in next((home / "runs").glob("*/run.json")).read_text()
