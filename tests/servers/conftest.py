"""One set of real servers for all tests here, with the deployments of `prefect.yaml` and a first run behind them.

Logs, pages and screenshots are kept in the folder that KGQA_TEST_OUTPUT names, else under pytest's `--basetemp`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.operated import Operated
from tests.support.servers import NO_POSTGRES, Servers, postgres_folder
from tests.support.toy import Register, write_register


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here is slow; the fixtures alone take half a minute."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where logs and screenshots stay after the tests."""
    given = os.environ.get("KGQA_TEST_OUTPUT")
    folder = Path(given).resolve() if given else tmp_path_factory.getbasetemp() / "servers"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory, output: Path) -> Iterator[Servers]:
    """PostgreSQL, Prefect and MLflow on it, and a worker for each of the pools `cpu` and `gpu`."""
    if postgres_folder() is None:
        pytest.skip(NO_POSTGRES)
    with Servers(tmp_path_factory.mktemp("operated"), logs=output / "logs") as running:
        yield running


@pytest.fixture(scope="session")
def register(servers: Servers) -> Register:
    """The toy project, in a folder that the workers see."""
    return write_register(servers.folder / "register")


@pytest.fixture(scope="session")
def as_it_stands(servers: Servers) -> dict[str, Any]:
    """Deployments that `prefect deploy --all` made of the unchanged prefect.yaml."""
    made = Operated(servers)
    outcome = made.deploy()
    assert outcome.code == 0, f"prefect deploy --all failed:\n{outcome.out[-3000:]}\n{outcome.err[-3000:]}"
    return made.deployments()


@pytest.fixture(scope="session")
def operated(servers: Servers, register: Register, as_it_stands: dict[str, Any]) -> Operated:
    """The servers, with the deployments turned to the toy project."""
    made = Operated(servers)
    outcome = made.deploy(register.profile())
    assert outcome.code == 0, f"prefect deploy --all failed:\n{outcome.out[-3000:]}\n{outcome.err[-3000:]}"
    return made


@pytest.fixture(scope="session")
def first(operated: Operated) -> Any:
    """The flow run of the first pipeline, started through the API; it has ended well."""
    run = operated.run("pipeline", {})
    assert run.state.is_completed(), f"{run.state}:\n{operated.told(run.id)}"
    return run


@dataclass(frozen=True)
class Story:
    """What happened to the register: each flow run of `refresh` and what `kgqa kg update --emit` said before it.

    scheduled: the run that a schedule started while the graph was still the first.
    """

    scheduled: Any
    facts: Any
    facts_said: dict[str, Any]
    relation: Any
    relation_said: dict[str, Any]


@pytest.fixture(scope="session")
def story(operated: Operated, register: Register, first: Any) -> Story:
    """After the first run the schedule fires; then a dump with more facts comes, and one with a relation, whose events
    start a refresh each."""
    before = operated.ids("refresh")
    schedule = operated.schedule("refresh", 8)
    try:
        scheduled = operated.fired("refresh", before)
    finally:
        operated.unschedule("refresh", schedule)
    graph = operated.build_graph(register.first)
    before = operated.ids("refresh")
    facts_said = operated.update_graph(graph, register.facts)
    facts = operated.fired("refresh", before)
    before = operated.ids("refresh")
    relation_said = operated.update_graph(graph, register.relation)
    relation = operated.fired("refresh", before)
    for run in (scheduled, facts, relation):
        assert run.state.is_completed(), f"{run.state}:\n{operated.told(run.id)}"
    return Story(scheduled, facts, facts_said, relation, relation_said)
