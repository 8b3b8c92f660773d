"""What an operator does with the servers: deploy, start runs through the API, wait for them, look at what they left."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import yaml

from kgqa_core.store.home import read_runs
from tests.support.command import ROOT, Outcome
from tests.support.servers import Servers

RUN_SECONDS = 3600
"""Longest wait for a run of the toy project; it takes one minute on two quiet cores."""


class Operated:
    """The servers in the hands of somebody who operates them."""

    def __init__(self, servers: Servers) -> None:
        self.servers = servers

    def deploy(self, profile: Mapping[str, Any] | None = None) -> Outcome:
        """`prefect deploy --all` in the repository, as it stands.

        profile: in place of the one of prefect.yaml, by the change that its head asks of a user with another graph.
        """
        words: list[str | Path] = ["-m", "prefect", "--no-prompt", "deploy", "--all"]
        if profile is not None:
            words += ["--prefect-file", _own_file(self.servers.folder / "prefect.yaml", profile)]
        return self.servers.python(*words)

    def deployments(self) -> dict[str, Any]:
        """Deployments by name."""
        with self.servers.client() as client:
            return {found.name: found for found in client.read_deployments()}

    def start(self, deployment: str, parameters: Mapping[str, Any]) -> UUID:
        """Ask the API for a run of a deployment; its id."""
        with self.servers.client() as client:
            chosen = next(found for found in client.read_deployments() if found.name == deployment)
            return client.create_flow_run_from_deployment(chosen.id, parameters=dict(parameters)).id

    def run(self, deployment: str, parameters: Mapping[str, Any]) -> Any:
        """The flow run, ended."""
        return self.ended(self.start(deployment, parameters))

    def ended(self, flow_run: UUID, seconds: float = RUN_SECONDS) -> Any:
        """The flow run once its state is final.  Raises AssertionError with its log when it is not in time."""
        with self.servers.client() as client:

            def look() -> Any:
                found = client.read_flow_run(flow_run)
                return found if found.state and found.state.is_final() else None

            return waited(look, seconds, lambda: f"flow run {flow_run} did not end:\n{self.told(flow_run)}")

    def rerun(self, flow_run: UUID) -> Any:
        """What the UI's retry does: the same flow run is scheduled again; it, ended."""
        from prefect.states import AwaitingRetry

        with self.servers.client() as client:
            result = client.set_flow_run_state(
                flow_run, AwaitingRetry(scheduled_time=datetime.datetime.now(datetime.UTC)), force=True
            )
            assert result.state is not None and result.state.is_scheduled(), result
        return self.ended(flow_run)

    def build_graph(self, dump: Path) -> Path:
        """A graph folder outside any home, of which `update_graph` tells; `kgqa kg build` makes it."""
        folder = self.servers.folder / "graphs" / "register"
        outcome = self.servers.kgqa("kg", "build", dump, "--out", folder, "--json")
        assert outcome.code == 0, outcome.err[-3000:]
        return folder

    def update_graph(self, graph: Path, dump: Path) -> dict[str, Any]:
        """`kgqa kg update --emit`: the graph follows its dump, the server is told; what the command says."""
        outcome = self.servers.kgqa("kg", "update", graph, dump, "--out", graph, "--emit", "--json")
        assert outcome.code == 0, outcome.err[-3000:]
        return outcome.json

    def schedule(self, deployment: str, seconds: float) -> UUID:
        """A schedule of a deployment whose next time is `seconds` ahead, and then every two minutes; its id.

        Every two minutes, since a busy server may hear of the schedule when its first time has passed.
        """
        from prefect.client.schemas.schedules import IntervalSchedule

        first = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds)
        often = IntervalSchedule(interval=datetime.timedelta(minutes=2), anchor_date=first)
        chosen = self.deployments()[deployment].id
        with self.servers.client() as client:
            return client.create_deployment_schedules(chosen, [(often, True)])[0].id

    def unschedule(self, deployment: str, schedule: UUID) -> None:
        """Take a schedule away again; its runs that have not started go with it."""
        chosen = self.deployments()[deployment].id
        with self.servers.client() as client:
            client.delete_deployment_schedule(chosen, schedule)

    def ids(self, deployment: str) -> set[UUID]:
        """Flow runs of a deployment that there are, those to come included."""
        return {run.id for run in self.runs_of(deployment)}

    def runs_of(self, deployment: str, after: Collection[UUID] = ()) -> list[Any]:
        """Flow runs of a deployment, oldest first, without those of `after`."""
        chosen = self.deployments()[deployment].id
        with self.servers.client() as client:
            found = [run for run in client.read_flow_runs(limit=200) if run.deployment_id == chosen]
        return sorted((run for run in found if run.id not in after), key=lambda run: run.expected_start_time)

    def fired(self, deployment: str, before: Collection[UUID], seconds: float = 1200) -> Any:
        """The run of a deployment that something else than this process started since `before`, ended."""

        def look() -> Any:
            soon = datetime.datetime.now(datetime.UTC) + datetime.timedelta(minutes=5)
            return next((run for run in self.runs_of(deployment, before) if run.expected_start_time < soon), None)

        found = waited(look, seconds, lambda: f"nothing started {deployment}:\n{self.servers.log('prefect')}")
        return self.ended(found.id)

    def tasks(self, flow_run: UUID) -> dict[str, Any]:
        """Task runs of a flow run by name; the newest of each name."""
        from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId

        with self.servers.client() as client:
            found = client.read_task_runs(flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[flow_run])))
        return {task.name: task for task in sorted(found, key=lambda task: task.created)}

    def children(self, flow_run: UUID) -> list[Any]:
        """Flow runs that tasks of a flow run started, oldest first."""
        tasks = {task.id for task in self.tasks(flow_run).values()}
        with self.servers.client() as client:
            found = [run for run in client.read_flow_runs(limit=200) if run.parent_task_run_id in tasks]
        return sorted(found, key=lambda run: run.expected_start_time)

    def told(self, flow_run: UUID) -> str:
        """What a flow run logged."""
        from prefect.client.schemas.filters import LogFilter, LogFilterFlowRunId

        with self.servers.client() as client:
            rows = client.read_logs(LogFilter(flow_run_id=LogFilterFlowRunId(any_=[flow_run])), limit=200)
        return "\n".join(row.message for row in rows)

    def artifacts(self, flow_run: UUID) -> list[Any]:
        """Prefect's artifacts of a flow run."""
        from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterFlowRunId

        with self.servers.client() as client:
            chosen = ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[flow_run]))
            return client.read_artifacts(artifact_filter=chosen, limit=200)

    def record(self, flow_run: UUID) -> dict[str, Any]:
        """The record in the home of the finished run that a flow run made."""
        found = [one for one in records(self.servers.home) if one.get("flow_run_id") == str(flow_run)]
        assert found, f"flow run {flow_run} left no record:\n{self.told(flow_run)}"
        return found[-1]

    def mlflow(self) -> Any:
        """A client of the MLflow server."""
        from mlflow import MlflowClient

        return MlflowClient(self.servers.mlflow)

    def tracked(self, parent: str) -> dict[str, Any]:
        """MLflow runs nested under a run, by stage."""
        client = self.mlflow()
        experiments = [found.experiment_id for found in client.search_experiments()]
        found = client.search_runs(experiments, f"tags.`mlflow.parentRunId` = '{parent}'", max_results=500)
        return {run.data.tags["kgqa.stage"]: run for run in found if "kgqa.stage" in run.data.tags}


def _own_file(out: Path, profile: Mapping[str, Any]) -> Path:
    """prefect.yaml with another profile, and with triggers that listen to that profile's graph."""
    tree = yaml.safe_load((ROOT / "prefect.yaml").read_text(encoding="utf-8"))
    for deployment in tree["deployments"]:
        deployment["parameters"]["profile"] = dict(profile)
        for trigger in deployment.get("triggers", ()):
            trigger["match"]["prefect.resource.id"] = f"kgqa.kg.{profile['kg']['name']}"
    out.write_text(yaml.safe_dump(tree, sort_keys=False), encoding="utf-8")
    return out


def records(home: Path) -> list[dict[str, Any]]:
    """Records of a home's runs, oldest first."""
    return read_runs(home)


def digests(record: Mapping[str, Any]) -> dict[str, str]:
    """Digests of a run's artifacts by stage."""
    return {stage["name"]: stage["artifact"]["digest"] for stage in record["stages"] if stage["artifact"]}


def statuses(record: Mapping[str, Any]) -> dict[str, str]:
    """What became of each stage: computed, cached, …"""
    return {stage["name"]: stage["status"] for stage in record["stages"]}


def waited(look: Callable[[], Any], seconds: float, otherwise: Callable[[], str]) -> Any:
    """What `look` finds, as soon as it is not None.  Raises AssertionError."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found = look()
        if found is not None:
            return found
        time.sleep(0.3)
    raise AssertionError(otherwise())
