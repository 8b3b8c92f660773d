"""Single faults amid a run: two runs at once, a lost MLflow server, a lost Prefect server, a crash inside a lock."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.llm.budget import Budget
from kgqa_core.llm.cache import FILE
from kgqa_core.store.artifacts import Home as Store
from tests.support import writing_runs
from tests.support.chaos import Try, World, last_words, lost, wait_for
from tests.support.chaos_table import Home, Measured, Table
from tests.support.command import ROOT
from tests.support.operated import records

slow = pytest.mark.slow


def midway(world: World, expected: Measured, running: Try, since: int) -> None:
    """Waits until half of the texts are there."""
    wait_for(
        lambda: world.model.count() - since >= expected.replies / 2 or running.process.poll() is not None,
        "it asked nothing",
    )
    assert running.process.poll() is None, running.end().err[-3000:]


@slow
@pytest.mark.parametrize("killed", [False, True], ids=["both live", "one is killed"])
def test_two_identical_runs_at_once_pay_once(world: World, undisturbed: Measured, table: Table, killed: bool) -> None:
    row = table.row(f"two identical runs at once{', one killed' if killed else ''}")
    home = Home(world, row, undisturbed)
    both = [home.start(), home.start()]
    if killed:
        midway(world, undisturbed, both[0], home.paid)
        home.hit(both[0].kill())
    outcomes = [one.end() for one in both[killed:]]
    assert [one.code for one in outcomes] == [0] * len(outcomes), outcomes[-1].err[-3000:]
    row.went_on += killed
    home.settle(done=not killed)
    table.write()


@slow
def test_mlflow_lost_midway_is_said_once_and_told_afterwards(world: World, undisturbed: Measured, table: Table) -> None:
    row, servers = table.row("MLflow server lost for the rest of the run"), world.servers
    assert servers is not None
    home = Home(world, row, undisturbed)
    running = home.start()
    midway(world, undisturbed, running, home.paid)
    home.hit(running.at())
    with lost("mlflow", servers):
        outcome = running.end()
        assert outcome.code == 0, outcome.err[-3000:]
        assert outcome.err.count("is away (") == 1
        assert list((home.path / "runs").glob("*/untracked.jsonl"))
    row.went_on += 1
    row.said["MLflow … is away …; the run goes on, and what it would store waits"] += 1
    home.settle()
    done = [one["mlflow_run_id"] for one in records(home.path) if one["status"] == "done"]
    from mlflow import MlflowClient

    assert [MlflowClient(servers.mlflow).get_run(run).info.status for run in done] == ["FINISHED"] * 2
    table.write()


@slow
def test_prefect_lost_midway_is_said_and_the_rerun_takes_up(world: World, undisturbed: Measured, table: Table) -> None:
    row, servers = table.row("Prefect server lost midway"), world.servers
    assert servers is not None
    home = Home(world, row, undisturbed)
    running = home.start()
    midway(world, undisturbed, running, home.paid)
    home.hit(running.at())
    with lost("prefect", servers):
        outcome = running.end()
    row.said[f"code {outcome.code}: {last_words(outcome)}"] += 1
    row.went_on += outcome.code == 0
    home.settle()
    table.write()
    assert outcome.code, "a run whose Prefect server does not come back cannot end"
    assert outcome.err.count("is away (") == 1 and f"{servers.api} is away or fails" in outcome.err, outcome.err[-3000:]
    assert "Traceback" not in outcome.err and "Error logging" not in outcome.err, outcome.err[-3000:]


HOLD = """
import sys, time
from pathlib import Path
from kgqa_core.store.artifacts import Home
home = Home(Path(sys.argv[1])).prepare()
def fill(out, work):
    (out / "half").write_text("half")
    (work / "kept").write_text("step 7")
    print("inside", flush=True)
    time.sleep(600)
home.compute("facts", "a" * 64, fill, {"run_id": "dead"})
"""
GATE = """
import sys, time
from pathlib import Path
from kgqa_core.store.locks import gate, shared
with shared(gate(Path(sys.argv[1]) / "locks"), alone=True):
    print("inside", flush=True)
    time.sleep(600)
"""
LEDGER = """
import sqlite3, sys, time
from pathlib import Path
base = sqlite3.connect(Path(sys.argv[1]) / "cache" / "responses.sqlite", isolation_level=None)
base.execute("BEGIN EXCLUSIVE")
base.execute("DELETE FROM accounts")
print("inside", flush=True)
time.sleep(600)
"""


def inside(code: str, home: Path) -> subprocess.Popen[str]:
    """A process that is in the middle of something, and stays there."""
    words = [sys.executable, "-c", code, str(home)]
    process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "inside\n"
    return process


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert process.stdout is not None
    process.stdout.close()


class Notes:
    """A monitor that ends a process when somebody is said to wait for it."""

    def __init__(self, holder: subprocess.Popen[str]) -> None:
        self.holder, self.said = holder, list[str]()

    def progress(self, done: float, total: float | None, what: str) -> None: ...

    def metric(self, name: str, value: float, step: int | None = None) -> None: ...

    def note(self, message: str) -> None:
        self.said.append(message)
        end(self.holder)


def fill(out: Path, work: Path) -> dict[str, Any]:
    (out / "whole").write_text(f"taken up from {(work / 'kept').read_text()}")
    return {}


def test_crash_inside_the_lock_of_a_stage_frees_who_waits_and_the_next(own_home: Path) -> None:
    holder = inside(HOLD, own_home)
    notes = Notes(holder)
    ref, fresh = Store(own_home).compute("facts", "a" * 64, fill, {}, notes)
    assert fresh and (ref.folder / "whole").read_text() == "taken up from step 7"
    assert [path.name for path in ref.folder.iterdir() if path.name == "half"] == []
    assert len(notes.said) == 1 and f"waiting for process {holder.pid} on" in notes.said[0], notes.said
    assert not list((own_home / "tmp").iterdir()) and not list((own_home / "work").iterdir())


def test_crash_inside_the_gate_of_housekeeping_blocks_no_run(own_home: Path) -> None:
    Store(own_home).prepare()
    end(inside(GATE, own_home))
    home = Store(own_home).prepare()
    home.use("facts/somebody")
    (own_home / "work" / "facts-aaaaaaaaaaaaaaaaaaaa").mkdir()
    (own_home / "work" / "facts-aaaaaaaaaaaaaaaaaaaa" / "kept").write_text("nothing")
    assert home.compute("facts", "a" * 64, fill, {})[1]


def test_crash_inside_a_booking_changes_nothing_and_blocks_no_request(own_home: Path) -> None:
    cache = Store(own_home).prepare().cache
    given = writing_runs.llm("http://127.0.0.1:9/v1", max_calls=5)

    def account() -> Budget:
        return Budget(given.budget, given.prices, cache / FILE, "corpus")

    account()
    with sqlite3.connect(cache / FILE) as base:
        base.execute("INSERT OR REPLACE INTO accounts VALUES ('corpus', 3, 300, 0)")
    base.close()
    end(inside(LEDGER, own_home))
    live = account()
    assert live.spent().calls == 3
    live.reserve("openai:stub", 10, 10)
    assert live.spent().calls == 4
