"""Both UIs in a real browser: the pages that a user opens show the run, and a screenshot of each is kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tasks.servers.login import LOGIN
from tests.servers.conftest import Story
from tests.support.browser import NO_CHROMIUM, Browser, chromium
from tests.support.operated import Operated

MODEL = "kgqa-register-asked"


@pytest.fixture(scope="module")
def browser(output: Path, operated: Operated) -> Iterator[Browser]:
    """Chromium whose user has logged in to both servers."""
    if chromium() is None:
        pytest.skip(NO_CHROMIUM)
    servers = operated.servers
    with Browser(output / "chromium.log", size=(1600, 1100)) as running:
        running.open(f"{servers.mlflow}{LOGIN}#{servers.login}", "Experiments")
        running.open(f"{servers.prefect}{LOGIN}#{servers.login}", "Dashboard")
        yield running


@pytest.fixture(scope="module")
def pictures(output: Path) -> Path:
    return output / "screenshots"


def tracked(operated: Operated, *runs: Any) -> list[str]:
    return [operated.record(run.id)["mlflow_run_id"] for run in runs]


def experiment(operated: Operated, run: Any) -> str:
    return str(operated.record(run.id)["mlflow_experiment_id"])


def test_the_page_of_a_run_shows_its_stages(
    browser: Browser, pictures: Path, operated: Operated, story: Story, first: Any
) -> None:
    words = ("register/asked", "Task runs", "kgqa-pipeline", "Completed")
    browser.open(f"{operated.servers.prefect}/runs/flow-run/{first.id}", *words)
    browser.drawn("canvas")
    browser.picture(pictures / "prefect-run.png")


def test_the_artifacts_of_a_run_tell_its_stages(
    browser: Browser, pictures: Path, operated: Operated, story: Story, first: Any
) -> None:
    browser.open(f"{operated.servers.prefect}/runs/flow-run/{first.id}", "register/asked", "Artifacts")
    browser.click("Artifacts")
    browser.wait("kgqa-scores")
    browser.drawn("canvas")
    browser.picture(pictures / "prefect-run-artifacts.png")
    scores = next(one for one in operated.artifacts(first.id) if one.key == "kgqa-scores")
    words = ("rigel/triples/builtin", "hits_at_1", "its report")
    browser.open(f"{operated.servers.prefect}/artifacts/artifact/{scores.id}", *words)
    browser.picture(pictures / "prefect-artifact-scores.png")
    trained = next(one for one in operated.artifacts(first.id) if (one.key or "").startswith("kg-"))
    words = ("triples", "this stage in MLflow", "report of the run")
    browser.open(f"{operated.servers.prefect}/artifacts/artifact/{trained.id}", *words)
    browser.picture(pictures / "prefect-artifact-kg.png")


def test_the_page_of_deployments_shows_all_of_them(
    browser: Browser, pictures: Path, operated: Operated, story: Story
) -> None:
    schedule = "At 03:00"
    browser.open(f"{operated.servers.prefect}/deployments", *operated.deployments(), schedule)
    browser.picture(pictures / "prefect-deployments.png")
    refresh = operated.deployments()["refresh"]
    browser.open(f"{operated.servers.prefect}/deployments/deployment/{refresh.id}", "refresh", "Description")
    browser.click("Description")
    browser.wait("A newer dump of the graph")
    browser.picture(pictures / "prefect-deployment-refresh.png")


def test_the_form_of_a_deployment_has_typed_fields(
    browser: Browser, pictures: Path, operated: Operated, story: Story
) -> None:
    refresh = operated.deployments()["refresh"]
    browser.open(f"{operated.servers.prefect}/deployments/deployment/{refresh.id}/run", "files", "profile")
    browser.picture(pictures / "prefect-form-refresh.png")


def test_mlflow_compares_the_runs_with_charts(
    browser: Browser, pictures: Path, operated: Operated, story: Story, first: Any
) -> None:
    address = f"{operated.servers.mlflow}/#/experiments/{experiment(operated, first)}"
    browser.open(f"{address}/runs", "register/asked", "Model training")
    browser.click("Model training")
    browser.open(f"{address}/runs?compareRunsMode=CHART", "register/asked", "rigel/-/-/test")
    browser.dismiss()
    browser.fill("input[placeholder*='metric charts']", "rigel/-/-/test")
    browser.wait("rigel/-/-/test/hits_at_1")
    browser.count("svg.main-svg", at_least=2)
    browser.picture(pictures / "mlflow-charts.png")
    ids = tracked(operated, first, story.facts, story.relation)
    chosen = f"runs={quote(json.dumps(ids))}&experiments={quote(json.dumps([experiment(operated, first)]))}"
    words = ("Comparing 3 Runs", "Parallel Coordinates Plot", *ids)
    browser.open(f"{operated.servers.mlflow}/#/compare-runs?{chosen}", *words)
    browser.count("svg.main-svg")
    browser.dismiss()
    browser.picture(pictures / "mlflow-compare.png")


def test_mlflow_shows_the_run_and_its_stages(
    browser: Browser, pictures: Path, operated: Operated, story: Story, first: Any
) -> None:
    (run,) = tracked(operated, story.relation)
    address = f"{operated.servers.mlflow}/#/experiments/{experiment(operated, first)}/runs/{run}"
    browser.open(address, run, "register/asked", "knowledge rigel", "Finished")
    browser.dismiss()
    browser.picture(pictures / "mlflow-run.png")


def test_the_model_registry_shows_the_champion_and_the_previous(
    browser: Browser, pictures: Path, operated: Operated, story: Story
) -> None:
    browser.open(f"{operated.servers.mlflow}/#/models", MODEL, "champion")
    browser.dismiss()
    browser.picture(pictures / "mlflow-models.png")
    browser.open(f"{operated.servers.mlflow}/#/models/{MODEL}", MODEL, "champion", "previous")
    browser.dismiss()
    browser.picture(pictures / "mlflow-model.png")
