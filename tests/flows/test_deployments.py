"""Deployments are what prefect.yaml says, and a stage is made by one only where somebody is there to make it."""

from __future__ import annotations

import importlib
import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from prefect import Flow, flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.client.schemas.schedules import CronSchedule
from prefect.events.schemas.deployment_triggers import DeploymentEventTrigger
from prefect.states import Completed, Running
from prefect.testing.utilities import prefect_test_harness

from flows import stages, workplace
from flows.cli import events as news
from flows.cli.graph_folders import build_folder
from kgqa_core.config import Profile, make_profile
from kgqa_core.errors import ConfigError, InputError, KgqaError, WorkerError
from kgqa_core.store.artifacts import ArtifactRef, Home
from kgqa_core.store.locks import myself
from tasks.engine import deployments as calling
from tasks.engine import stage_request as deployed
from tasks.engine.run import Run, tracked_run
from tasks.kg import build_kg, export_dkg
from tasks.questions import load_questions
from tasks.resume.inputs import LEARNERS
from tasks.retrieval import train_retrievers
from tasks.tracking.tracker import NoTracker
from tests.support.command import ROOT
from tests.support.toy import write_graph, write_questions

FILE = yaml.safe_load((ROOT / "prefect.yaml").read_text(encoding="utf-8"))
TRAIN, CORPUS = "kgqa-train-retriever/train-retriever", "kgqa-generate-corpus/generate-corpus"
DEPLOYMENTS: dict[str, dict[str, Any]] = {each["name"]: each for each in FILE["deployments"]}
GPU = ("train-retriever", "finetune-rewriter", "generate-corpus")


@pytest.fixture(scope="module")
def own_server() -> Iterator[None]:
    """A Prefect server of this module's own, without deployments."""
    with prefect_test_harness(server_startup_timeout=600):
        yield


def flow_of(deployment: dict[str, Any]) -> Flow[Any, Any]:
    module, _, name = deployment["entrypoint"].rpartition(".")
    return getattr(importlib.import_module(module), name)


def test_every_deployment_is_described_and_placed() -> None:
    assert list(DEPLOYMENTS) == ["pipeline", "table", "refresh", *GPU[:2], "generate-corpus", "evaluate"]
    for name, deployment in DEPLOYMENTS.items():
        assert len(deployment["description"].split()) > 20
        assert deployment["work_pool"]["name"] == ("gpu" if name in GPU else "cpu")
        assert deployment["work_pool"]["work_queue_name"] in ("runs", "refreshes", "trainings", "corpora")
        assert {"kgqa", deployment["work_pool"]["name"]} <= set(deployment["tags"])
        assert deployment["work_pool"]["job_variables"]["env"]["PREFECT_LOGGING_EXTRA_LOGGERS"] == "kgqa"
    assert {name for name, each in DEPLOYMENTS.items() if each.get("concurrency_limit") == 1} == {
        "pipeline", "table", "refresh", "train-retriever", "finetune-rewriter"
    }  # fmt: skip


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_an_entrypoint_is_a_flow_that_takes_the_parameters_as_a_form(name: str) -> None:
    deployment = DEPLOYMENTS[name]
    found = flow_of(deployment)
    assert isinstance(found, Flow) and found.name == f"kgqa-{name}"
    given = found.validate_parameters(deployment["parameters"])
    assert isinstance(given["profile"], Profile) and given["profile"].kg.name == "atlas"
    form = found.parameters.model_dump()
    assert form["required"] == ["profile"]
    assert set(form["definitions"]["Profile"]["properties"]) == set(Profile.model_fields)
    assert all(each.get("description") for each in form["properties"].values())


def test_stages_are_given_to_deployments_that_there_are() -> None:
    deployed = {stage.options.kind: stage.options.deployment for stage, _ in LEARNERS.values()}
    assert set(deployed) == {"retriever", "hop_path", "transfernet", "relation_ranker", "corpus", "rewriter"}
    for target in deployed.values():
        name = target.partition("/")[2]
        assert target == f"{flow_of(DEPLOYMENTS[name]).name}/{name}"
        assert DEPLOYMENTS[name]["work_pool"]["name"] == "gpu"


def test_refresh_runs_each_month_and_when_the_graph_was_updated() -> None:
    assert [name for name, each in DEPLOYMENTS.items() if each.get("schedules") or each.get("triggers")] == ["refresh"]
    (schedule,) = DEPLOYMENTS["refresh"]["schedules"]
    assert schedule["active"] and CronSchedule(cron=schedule["cron"], timezone=schedule["timezone"])
    (spec,) = DEPLOYMENTS["refresh"]["triggers"]
    trigger = DeploymentEventTrigger.model_validate(spec)
    assert trigger.expect == {news.EVENT}
    graph = DEPLOYMENTS["refresh"]["parameters"]["profile"]["kg"]["name"]
    assert spec["match"] == {"prefect.resource.id": f"kgqa.kg.{graph}"}


def test_the_pull_step_goes_to_the_project_wherever_it_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (step,) = FILE["pull"]
    assert list(step) == [f"{workplace.enter.__module__}.{workplace.enter.__name__}"]
    monkeypatch.chdir(tmp_path)
    assert workplace.enter() == {"directory": str(ROOT)} and Path.cwd() == ROOT
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(workplace, "ROOT", tmp_path)
    assert workplace.enter() == {"directory": os.getcwd()} and Path.cwd() == tmp_path
    monkeypatch.delenv("KGQA_HOME")
    with pytest.raises(ConfigError, match="KGQA_HOME"):
        workplace.enter()


@pytest.mark.usefixtures("prefect_server")
def test_without_a_server_stages_are_made_here_or_it_is_said_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    from prefect.settings import PREFECT_API_URL, temporary_settings

    with temporary_settings(restore_defaults={PREFECT_API_URL}):
        place = calling.choose_placement(TRAIN, "auto")
        assert place.deployment is None and "PREFECT_API_URL names no server" in place.why
        with pytest.raises(WorkerError, match="prefect deploy --all"):
            calling.choose_placement(TRAIN, "deployments")
    with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:9/api"}):
        assert "does not answer" in calling.choose_placement(TRAIN, "auto").why
    assert calling.choose_placement(TRAIN, "here").deployment is None


@pytest.mark.slow
@pytest.mark.usefixtures("own_server")
def test_auto_takes_a_deployment_that_has_a_worker() -> None:
    assert "has no deployment" in calling.choose_placement(CORPUS, "auto").why
    with get_client(sync_client=True) as client:
        client.create_work_pool(WorkPoolCreate(name="gpu", type="process"))
        made = client.create_flow(stages.generate_corpus)
        client.create_deployment(made, "generate-corpus", work_pool_name="gpu")
        assert "no worker online" in calling.choose_placement(CORPUS, "auto").why
        assert calling.choose_placement(CORPUS, "deployments").deployment == CORPUS
        client.send_worker_heartbeat("gpu", "trainer", heartbeat_interval_seconds=30)
        assert calling.choose_placement(CORPUS, "auto").deployment == CORPUS
        assert calling.choose_placement("kgqa-finetune-rewriter/finetune-rewriter", "auto").deployment is None


@pytest.fixture
def profile(tmp_path: Path) -> Profile:
    """A profile over a small graph, with trainings that take a second."""
    write_questions(tmp_path / "asked.jsonl", write_graph(tmp_path / "graph.tsv", 420), 30)
    return make_profile(
        {
            "kg": {"name": "toy", "files": [str(tmp_path / "graph.tsv")]},
            "questions": {"name": "asked", "path": str(tmp_path / "asked.jsonl")},
            "rigel": {"encoder": "scratch", "scratch_width": 16, "min_steps": 2, "epochs": 1},
            "hop_path": {"encoder": "scratch", "scratch_width": 16, "epochs": 1},
            "retrieval": {"retrievers": ["rigel"]},
            "operations": {"gpu_stages": "deployments"},
        }
    )


@flow(name="trains")
def trains(profile: Profile) -> tuple[Run, dict[str, ArtifactRef]]:
    with tracked_run(profile) as run:
        kg = build_kg(profile.kg)
        dkg = export_dkg(kg, profile.dkg)
        questions = load_questions(kg, profile.questions, profile.seed)
        return run, train_retrievers(kg, dkg, questions, profile)


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Runs deployments in this process, in place of a worker; what they were asked."""
    asked: list[dict[str, Any]] = []

    def run_deployment(name: str, *, parameters: dict[str, Any], tags: list[str], **_: Any) -> Any:
        asked.append({"name": name, "tags": tags, **parameters})
        state = stages.train_retriever(**stages.train_retriever.validate_parameters(parameters), return_state=True)
        with get_client(sync_client=True) as client:
            return client.read_flow_run(state.state_details.flow_run_id)

    monkeypatch.setattr("prefect.deployments.run_deployment", run_deployment)
    place = calling.Placement(TRAIN, "", "gpu")
    monkeypatch.setattr(calling, "choose_placement", lambda name, wish: place)
    return asked


@pytest.mark.slow
@pytest.mark.usefixtures("own_server")
def test_a_deployment_makes_the_artifact_that_the_caller_waits_for(
    profile: Profile, worker: list[dict[str, Any]], own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, trained = trains(profile)
    (asked,) = worker
    assert asked["name"] == "kgqa-train-retriever/train-retriever"
    assert asked["profile"]["operations"]["gpu_stages"] == "here", "a called run calls nobody"
    assert asked["profile"]["retrieval"]["retrievers"] == ["rigel"] and asked["given"]["caller"] == run.id
    assert {stage.name: stage.status for stage in run.stages}["retriever"] == "computed"
    message = run.states[trained["rigel"].path].message
    assert message.startswith("made by kgqa-train-retriever/train-retriever, flow run")
    again, found = trains(profile)
    assert found == trained and len(worker) == 1
    assert {stage.status for stage in again.stages} == {"cached"}
    monkeypatch.setenv("KGQA_HOME", str(tmp_path / "other"))
    alone = profile.model_copy(update={"operations": make_profile({"operations": {"gpu_stages": "here"}}).operations})
    assert trains(alone)[1]["rigel"].digest == trained["rigel"].digest


@pytest.mark.slow
@pytest.mark.usefixtures("own_server")
def test_the_message_of_a_failed_deployment_comes_through(
    profile: Profile, worker: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise KgqaError("the GPU is on fire")

    monkeypatch.setattr(stages, "train_retrievers", fail)
    with pytest.raises(WorkerError, match=r"ended as Failed: .*the GPU is on fire"):
        trains(profile)


@pytest.mark.usefixtures("prefect_server")
def test_a_worker_with_other_code_or_another_home_says_so_before_it_works(profile: Profile, tmp_path: Path) -> None:
    given = deployed.StageRequest(
        kind="retriever", key="k" * 64, made_of={"code": "abc", "packages": {"torch": "1"}}, inputs={}, caller="r"
    )
    home = Home(tmp_path / "home").prepare()
    run = Run(id="r", home=home, tracker=NoTracker())
    with (
        deployed.receive(given, run) as inputs,
        pytest.raises(WorkerError, match=r"packages\.torch: \"2\" here, \"1\" requested"),
    ):
        assert inputs == {}
        parts = {"code": "abc", "packages": {"torch": "2"}}
        calling.make(LEARNERS["retriever"][0].options, "other", parts, None, {})
    lost = ArtifactRef(kind="kg", path=str(home.root / "artifacts" / "kg" / "gone"), digest="d")
    with (
        pytest.raises(WorkerError, match="KGQA_HOME"),
        deployed.receive(given.model_copy(update={"inputs": {"kg": lost}}), run),
    ):
        raise AssertionError("nothing is handed over")


@pytest.mark.slow
@pytest.mark.usefixtures("own_server")
def test_a_called_run_that_died_is_started_again(
    profile: Profile, worker: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    from prefect import deployments as place

    make = place.run_deployment

    def die_once(name: str, **asked: Any) -> Any:
        if worker:
            return make(name, **asked)
        worker.append({})
        with get_client(sync_client=True) as client:
            child = client.create_flow_run(stages.train_retriever, tags=asked["tags"])
            client.set_flow_run_state(child.id, Running(), force=True)
        lock = Home.current().root / "locks" / f"called-{child.id}.lock"
        lock.write_text(json.dumps(asdict(myself("r"))))
        return child

    monkeypatch.setattr("prefect.deployments.run_deployment", die_once)
    monkeypatch.setattr(calling, "POLL_SECONDS", 0.05)
    run, trained = trains(profile)
    assert len(worker) == 2 and "made by kgqa-train" in run.states[trained["rigel"].path].message


def test_a_called_run_counts_as_dead_only_when_its_process_left_its_lock(tmp_path: Path) -> None:
    home = Home(tmp_path / "home").prepare()
    given = deployed.StageRequest(kind="retriever", key="k", made_of={}, inputs={}, caller="r")
    assert not deployed.is_dead(home, "r")
    with deployed.receive(given, Run(id="r", home=home, tracker=NoTracker())):
        left = (home.root / "locks" / "called-r.lock").read_text()
        assert not deployed.is_dead(home, "r")
    assert not deployed.is_dead(home, "r")
    (home.root / "locks" / "called-r.lock").write_text(left)
    assert deployed.is_dead(home, "r")


@pytest.mark.slow
@pytest.mark.usefixtures("own_server")
def test_a_stopped_caller_stops_the_run_that_it_started(profile: Profile, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Any] = []

    def run_deployment(name: str, **asked: Any) -> Any:
        with get_client(sync_client=True) as client:
            started.append(client.create_flow_run(stages.train_retriever, tags=asked["tags"]))
        return started[0]

    def stop(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("prefect.deployments.run_deployment", run_deployment)
    place = calling.Placement(TRAIN, "", "gpu")
    monkeypatch.setattr(calling, "choose_placement", lambda name, wish: place)
    monkeypatch.setattr(calling, "time", SimpleNamespace(sleep=stop, monotonic=time.monotonic))
    with pytest.raises(KeyboardInterrupt):
        trains(profile)
    with get_client(sync_client=True) as client:
        state = client.read_flow_run(started[0].id).state
    assert state is not None and (state.is_cancelling() or state.is_cancelled())
    assert "was stopped" in (state.message or "")


@pytest.mark.usefixtures("prefect_server")
def test_two_callers_of_one_artifact_wait_for_one_run(profile: Profile, monkeypatch: pytest.MonkeyPatch) -> None:
    home, given = (
        Home.current(),
        deployed.StageRequest(kind="retriever", key="a" * 64, made_of={}, inputs={}, caller="one"),
    )

    def run_deployment(name: str, **asked: Any) -> Any:
        with get_client(sync_client=True) as client:
            return client.create_flow_run(stages.train_retriever, tags=asked["tags"])

    monkeypatch.setattr("prefect.deployments.run_deployment", run_deployment)
    run = Run(id="one", home=home, tracker=NoTracker())
    with get_client(sync_client=True) as client:
        first, ours = calling._join_or_start(client, "f/d", given, profile, run)
        second, theirs = calling._join_or_start(client, "f/d", given, profile, run)
        assert (ours, theirs) == (True, False) and first.id == second.id
        client.set_flow_run_state(first.id, Completed(), force=True)
        assert calling._join_or_start(client, "f/d", given, profile, run)[1]


@pytest.mark.slow
@pytest.mark.usefixtures("own_server")
def test_a_built_graph_is_told_to_the_server(tmp_path: Path) -> None:
    write_graph(tmp_path / "dump.tsv", 200)
    counts = build_folder([str(tmp_path / "dump.tsv")], tmp_path / "toy", {})
    news.check_server()
    assert news.tell(tmp_path / "toy", counts, [str(tmp_path / "*.tsv")]) == "kgqa.kg.toy"
    from prefect.events.filters import EventFilter, EventNameFilter

    wanted = EventFilter(event=EventNameFilter(name=[news.EVENT]))
    with get_client(sync_client=True) as client:
        until = time.monotonic() + 300
        while time.monotonic() < until:
            found = client.request("POST", "/events/filter", json={"filter": wanted.model_dump(mode="json")}).json()
            if found["events"]:
                break
            time.sleep(0.2)
    (event,) = found["events"]
    assert event["resource"]["prefect.resource.id"] == "kgqa.kg.toy"
    assert event["payload"]["files"] == [str(tmp_path / "dump.tsv")]
    assert event["payload"]["digest"] == counts["digest"] and event["payload"]["counts"]["triples"] == 200


def test_emit_without_a_server_says_what_to_do() -> None:
    from prefect.settings import PREFECT_API_URL, temporary_settings

    with (
        temporary_settings(restore_defaults={PREFECT_API_URL}),
        pytest.raises(InputError, match="PREFECT_API_URL names none"),
    ):
        news.check_server()


@pytest.mark.slow
@pytest.mark.usefixtures("own_server")
def test_a_finished_deployment_is_no_finished_run_of_the_pipeline(profile: Profile) -> None:
    from kgqa_core.runs.records import newest_run

    stages.train_retriever(profile)
    with pytest.raises(InputError, match="no finished run"):
        newest_run(Home.current())
