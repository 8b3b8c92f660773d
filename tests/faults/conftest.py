"""What the chaos suite shares: the servers with a toy on them, an undisturbed run, the table."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.chaos import CONCURRENCY, KILLS, SEED, Model, World, last_digests, left_over, marked
from tests.support.chaos_table import Measured, Table
from tests.support.servers import NO_POSTGRES, Servers, postgres_folder


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Model]:
    with Model(tmp_path_factory.mktemp("model") / "paid") as running:
        yield running


@pytest.fixture(scope="session")
def world(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The toy with PostgreSQL, Prefect and MLflow."""
    if postgres_folder() is None:
        pytest.skip(NO_POSTGRES)
    with Servers(tmp_path_factory.mktemp("servers"), pools=()) as servers:
        made = World(tmp_path_factory.mktemp("toy"), model, servers)
        yield made
        made.close()


@pytest.fixture(scope="session")
def undisturbed(world: World) -> Measured:
    """The same run twice, so that it is seen to be the same and its time is not that of a cold disk."""
    found = []
    for _ in range(2):
        home, before = world.home(), world.model.count()
        running = world.start(home)
        outcome = running.end()
        seconds = time.monotonic() - running.opened
        assert outcome.code == 0, outcome.err[-4000:]
        assert not left_over(home, world.servers) and not marked(running.mark)
        assert world.model.twice(before) == 0
        found.append((last_digests(home), world.model.count() - before, seconds))
    assert found[0][:2] == found[1][:2]
    return Measured(found[0][0], found[0][1], [one[2] for one in found])


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory, undisturbed: Measured) -> Iterator[Table]:
    given = os.environ.get("KGQA_CHAOS_OUTPUT")
    folder = Path(given) if given else tmp_path_factory.getbasetemp() / "chaos"
    shown = Table(
        folder,
        {
            "seed": SEED, "kills": KILLS, "cores": os.cpu_count(), "load": os.getloadavg(), "concurrency": CONCURRENCY,
            "undisturbed_seconds": undisturbed.seconds, "replies": undisturbed.replies,
        },
    )  # fmt: skip
    yield shown
    print(f"\n{shown.write()}\nwritten into {shown.folder}")
