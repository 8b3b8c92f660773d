"""The pipeline as a deployment: started through the API, run by workers, remembered in PostgreSQL and MLflow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tasks.tracking.addresses import RUNS_VIEW
from tests.support.chat_server import ServerProcess
from tests.support.command import closed_port, kgqa
from tests.support.operated import Operated, digests, records, statuses
from tests.support.servers import PLAIN
from tests.support.toy import Register

TRAINED = {"retriever", "hop_path"}


@pytest.fixture(scope="module")
def in_process(register: Register, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Record of the same profile run by `kgqa run` in one process, without any server, in a home of its own."""
    folder = tmp_path_factory.mktemp("in-process")
    profile = register.profile(operations={"gpu_stages": "here"})
    (folder / "register.yaml").write_text(yaml.safe_dump(profile))
    outcome = kgqa("run", "--profile", folder / "register.yaml", "--home", folder / "home", "--json", env=PLAIN)
    assert outcome.code == 0, outcome.err[-3000:]
    return records(folder / "home")[-1]


def test_deploy_all_makes_every_deployment_of_the_file(as_it_stands: dict[str, Any]) -> None:
    tree = yaml.safe_load((Path(__file__).parents[2] / "prefect.yaml").read_text())
    assert set(as_it_stands) == {one["name"] for one in tree["deployments"]}
    pools = {name: found.work_pool_name for name, found in as_it_stands.items()}
    assert pools["pipeline"] == pools["refresh"] == pools["evaluate"] == "cpu"
    assert pools["train-retriever"] == pools["finetune-rewriter"] == "gpu"
    for name, found in as_it_stands.items():
        assert found.description and len(found.description) > 40, name
        assert "profile" in found.parameter_openapi_schema["properties"], f"{name} has no form"
    assert [schedule.active for schedule in as_it_stands["refresh"].schedules] == [True]


def test_a_run_started_through_the_api_ends_completed_on_postgresql(operated: Operated, first: Any) -> None:
    rows = operated.servers.query("prefect", f"SELECT name, state_type FROM flow_run WHERE id = '{first.id}'")
    assert rows == [("register/asked", "COMPLETED")]
    assert set(statuses(operated.record(first.id)).values()) == {"computed"}
    tables = [one for one in operated.artifacts(first.id) if one.type in ("table", "markdown")]
    assert len(tables) > len(operated.record(first.id)["stages"]) - len(TRAINED)


def test_the_page_of_a_stage_links_to_mlflow_and_to_the_report(operated: Operated, first: Any) -> None:
    record, stages = operated.record(first.id), operated.tracked(operated.record(first.id)["mlflow_run_id"])
    run = f"{operated.servers.mlflow}/#/experiments/{record['mlflow_experiment_id']}/runs/{record['mlflow_run_id']}"
    pages = {one.key: one.data for one in operated.artifacts(first.id) if one.type == "markdown"}
    kg = next(data for key, data in pages.items() if key.startswith("kg-"))
    assert f"/runs/{stages['kg'].info.run_id}{RUNS_VIEW})" in kg and f"({run}{RUNS_VIEW})" in kg
    assert f"({run}/artifacts/report.html{RUNS_VIEW})" in kg
    assert f"({run}/artifacts/report.html{RUNS_VIEW})" in pages["kgqa-champion"]


def test_mlflow_on_postgresql_has_the_run_with_its_stages_and_scores(operated: Operated, first: Any) -> None:
    record = operated.record(first.id)
    tracked = record["mlflow_run_id"]
    rows = operated.servers.query("mlflow", f"SELECT status FROM runs WHERE run_uuid = '{tracked}'")
    assert rows == [("FINISHED",)]
    parent = operated.mlflow().get_run(tracked)
    assert parent.data.tags["kgqa.flow_run_id"] == str(first.id)
    value = record["aggregates"]["scores"]["rigel/-/-"]["test"]["hits_at_1"]["value"]
    kept = {name: got for name, got in parent.data.metrics.items() if name.endswith("test/hits_at_1")}
    assert value in kept.values(), kept
    stages = operated.tracked(tracked)
    assert set(stages) >= {stage["name"] for stage in record["stages"]} - TRAINED
    assert {run.info.status for run in stages.values()} == {"FINISHED"}
    assert stages["kg"].data.tags["kgqa.digest"] == digests(record)["kg"]
    assert stages["kg"].data.metrics["count/triples"] > 1000
    assert [one.path for one in operated.mlflow().list_artifacts(tracked) if one.path.endswith(".html")]


def test_trainings_run_on_the_gpu_pool_as_children_of_the_run(operated: Operated, first: Any) -> None:
    children = operated.children(first.id)
    assert len(children) == len(TRAINED)
    assert {child.work_pool_name for child in children} == {"gpu"}
    assert all(child.state.is_completed() for child in children)
    spans = sorted((child.start_time, child.end_time) for child in children)
    assert all(earlier[1] <= later[0] for earlier, later in zip(spans, spans[1:], strict=False)), "one at a time"


def test_workers_make_the_digests_of_a_run_in_one_process(
    operated: Operated, first: Any, in_process: dict[str, Any]
) -> None:
    assert digests(operated.record(first.id)) == digests(in_process)


def test_a_failed_run_that_is_scheduled_again_takes_up_where_it_stopped(
    operated: Operated, register: Register, first: Any
) -> None:
    port = closed_port()
    llm = {"base_url": f"http://127.0.0.1:{port}/v1", "retries": 0}
    profile = register.profile(answering={"answerer": "openai:toy", "limit": 4}, llm=llm)
    failed = operated.run("pipeline", {"profile": profile})
    assert failed.state.is_failed(), failed.state
    assert f"127.0.0.1:{port}" in failed.state.message
    done = {name: task for name, task in operated.tasks(failed.id).items() if task.state.is_completed()}
    assert "knowledge rigel" in done and not any(name.startswith("scores") for name in done)
    with ServerProcess("--port", str(port)):
        again = operated.rerun(failed.id)
    assert again.state.is_completed(), f"{again.state}:\n{operated.told(failed.id)}"
    assert again.id == failed.id and again.run_count == failed.run_count + 1
    record = operated.record(failed.id)
    computed = {name for name, status in statuses(record).items() if status == "computed"}
    assert computed == {"answers/none", "answers/rigel", "scores"}
    assert not operated.children(failed.id), "nothing is trained again"
