"""A lost tracker fails no run: what it did not take waits in a file, is sent once, and dead runs are closed."""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kgqa_core.config import make_profile
from kgqa_core.store.artifacts import Home, write_json
from kgqa_core.store.locks import idle
from tasks.engine.run import tracked_run
from tasks.engine.run_lock import OWNER, RunLock, reap_killed_runs
from tasks.tracking.buffered_tracker import BufferedTracker
from tasks.tracking.journal import REFUSED, UNTRACKED, Journal
from tasks.tracking.tracker import (
    PENDING,
    DataSet,
    Event,
    ModelAliases,
    ModelVersion,
    RunDatasets,
    RunEnd,
    RunFile,
    RunModel,
    RunStart,
    RunValues,
    read_handle,
)
from tests.support.finished import publish

WHERE = "http://tracker.test"


class FakeStore:
    """Runs in dictionaries; `up` says whether it can be reached, `bad` which calls it never takes.

    lost_replies: so many opened runs of whose opening the caller hears nothing.
    """

    experiment = "7"

    def __init__(self) -> None:
        self.up = True
        self.bad: set[str] = set()
        self.lost_replies = 0
        self.until: int | None = None
        self.runs: dict[str, dict[str, Any]] = {}
        self.calls = 0

    def _check(self, call: str) -> None:
        if self.until is not None:
            self.until -= 1
            self.up = self.up and self.until >= 0
        if not self.up:
            raise ConnectionError("connection refused")
        if call in self.bad:
            raise ValueError(f"{call} is not taken")
        self.calls += 1

    def alive(self) -> bool:
        return self.up

    def find(self, handle: str) -> str | None:
        self._check("find")
        return next((run for run, row in self.runs.items() if row["handle"] == handle), None)

    def start(self, event: RunStart) -> str:
        self._check("start")
        run = f"run{len(self.runs)}"
        row = {"handle": event.run, "name": event.name, "parent": event.parent, "status": "RUNNING"}
        self.runs[run] = row | {"metrics": set(), "params": {}, "tags": dict(event.tags), "files": set()}
        if self.lost_replies:
            self.lost_replies -= 1
            self.up = False
            raise TimeoutError("no reply")
        return run

    def write(self, event: Event) -> None:
        self._check(str(event.__struct_config__.tag))
        match event:
            case RunValues():
                row = self.runs[str(event.run)]
                row["params"].update({key: str(value) for key, value in event.params.items()})
                row["metrics"] |= {(*metric, event.at) for metric in event.metrics}
                row["tags"].update(event.tags)
            case RunFile():
                self.runs[str(event.run)]["files"].add((event.path, event.folder))
            case RunEnd():
                self.runs[str(event.run)]["status"] = event.status

    def kill(self, run_id: str) -> int:
        self._check("kill")
        left = [row for row in self.runs.values() if row["tags"].get("run") == run_id and row["status"] == "RUNNING"]
        for row in left:
            row["status"] = "KILLED"
        return len(left)


@pytest.fixture
def store() -> FakeStore:
    return FakeStore()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "tracked").prepare()


def tracker_of(store: FakeStore, home: Home, run: str = "own") -> BufferedTracker:
    def connect() -> FakeStore:
        if not store.up:
            raise ConnectionError("connection refused")
        return store

    return BufferedTracker(connect, home.root / "runs" / run, WHERE)


def waiting(home: Home, run: str = "own") -> list[dict[str, Any]]:
    path = home.root / "runs" / run / UNTRACKED
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_a_run_is_nested_under_one_of_another_tracker_and_stands_alone_where_that_was_never_sent(
    store: FakeStore, home: Home
) -> None:
    store.up = False
    table, people, staff = (tracker_of(store, home, name) for name in ("table", "people", "staff"))
    outer = table.start("table", {})
    alone, nested = (one.start(name, {}, parent=outer) for one, name in ((people, "people"), (staff, "staff")))
    people.start("scores", {}, parent=alone)
    assert nested.startswith(PENDING)
    store.up = True
    assert people.close() == 0 and table.close() == 0 and staff.close() == 0
    ids = {"scores": people.known(alone), "staff": table.known(outer)}
    parents = {row["name"]: row["parent"] for row in store.runs.values()}
    assert parents == {"people": None, "table": None, **ids}
    assert not (home.root / "runs" / "people" / REFUSED).exists()


def dead_run(home: Home, run: str, record: dict[str, Any] | None = None) -> Path:
    """A run whose process was killed while it held the run's lock."""
    folder = home.root / "runs" / run
    code = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom tasks.engine.run_lock import RunLock\n"
        "owner = RunLock(Path(sys.argv[1]))\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(folder)], cwd=Path(__file__).parents[2])
    assert done.returncode == -9
    if record is not None:
        write_json(folder / "run.json", {"run_id": run, **record})
    return folder


def test_what_a_reachable_tracker_takes_leaves_no_file(store: FakeStore, home: Home) -> None:
    tracker = tracker_of(store, home)
    run = tracker.start("a run", {"a": "b"})
    tracker.record(RunValues(run, params={"rigel.epochs": 4}))
    tracker.record(RunValues(run, metrics=[("loss", 0.5, 1)]))
    tracker.record(RunEnd(run))
    assert tracker.close() == 0 and not waiting(home)
    assert (run, tracker.known(run), tracker.experiment) == ("run0", "run0", "7")
    assert store.runs["run0"]["params"] == {"rigel.epochs": "4"} and store.runs["run0"]["status"] == "FINISHED"


def test_loss_in_the_middle_is_said_once_and_everything_arrives_at_the_next_stage(
    store: FakeStore, home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="kgqa.tracking")
    tracker = tracker_of(store, home)
    run = tracker.start("whole", {})
    tracker.record(RunValues(run, metrics=[("loss", 0.9, 0)]))
    store.up = False
    tracker.record(RunValues(run, metrics=[("loss", 0.5, 1)]))
    nested = tracker.start("stage", {}, parent=run)
    tracker.record(RunValues(nested, metrics=[("count/facts", 3.0, 0)]))
    tracker.record(RunEnd(nested))
    assert nested.startswith(PENDING) and tracker.known(nested) is None
    assert [row["call"] for row in waiting(home)] == ["log", "start", "log", "end"]
    store.up = True
    tracker._next = 0.0
    tracker.retry()
    tracker.record(RunEnd(run))
    assert not waiting(home) and tracker.close() == 0
    assert {row[:3] for row in store.runs["run0"]["metrics"]} == {("loss", 0.9, 0), ("loss", 0.5, 1)}
    assert tracker.known(nested) == "run1"
    assert store.runs["run1"]["parent"] == "run0" and store.runs["run1"]["status"] == "FINISHED"
    warnings = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 1 and WHERE in warnings[0] and UNTRACKED in warnings[0]
    assert any("is back: 4 calls" in record.message for record in caplog.records)


def test_tracker_away_from_the_start_is_followed_by_the_next_run(
    store: FakeStore, home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    store.up = False
    owner = RunLock(home.root / "runs" / "first")
    tracker = tracker_of(store, home, "first")
    run = tracker.start("whole", {"run": "first"})
    tracker.record(RunValues(run, params={"seed": 7}))
    tracker.record(RunEnd(run))
    write_json(home.root / "runs" / "first" / "run.json", {"run_id": "first", "status": "done", "mlflow_handle": run})
    left = tracker.close()
    owner.release(settled=not left)
    assert left == 3 and "3 calls of this run stay in" in caplog.text
    store.up = True
    later = tracker_of(store, home, "second")
    assert reap_killed_runs(home, "second", later) == ["first"]
    assert not waiting(home, "first") and not (home.root / "runs" / "first" / OWNER).exists()
    assert store.runs["run0"]["params"] == {"seed": "7"} and store.runs["run0"]["status"] == "FINISHED"
    record = json.loads((home.root / "runs" / "first" / "run.json").read_text())
    assert (record["mlflow_run_id"], record["status"]) == ("run0", "done")


def test_calls_stay_while_the_tracker_is_away(store: FakeStore, home: Home) -> None:
    store.up = False
    tracker = tracker_of(store, home, "first")
    tracker.start("whole", {})
    folder = dead_run(home, "first")
    later = tracker_of(store, home, "second")
    assert reap_killed_runs(home, "second", later) == []
    assert len(waiting(home, "first")) == 1 and (folder / OWNER).exists()
    assert json.loads((folder / "run.json").read_text())["status"] == "killed"


def test_loss_while_sending_keeps_what_is_left_and_counts_nothing_twice(store: FakeStore, home: Home) -> None:
    tracker = tracker_of(store, home)
    run = tracker.start("whole", {})
    store.up = False
    for step in range(6):
        tracker.record(RunValues(run, metrics=[("loss", 1.0 / (step + 1), step)]))
    store.up, store.until, tracker._next = True, 3, 0.0
    tracker.retry()
    assert len(waiting(home)) == 3 and len(store.runs["run0"]["metrics"]) == 3
    store.up, store.until, tracker._next = True, None, 0.0
    tracker.record(RunValues(run, metrics=[("loss", 0.1, 6)]))
    tracker.retry()
    assert not waiting(home)
    assert sorted(row[2] for row in store.runs["run0"]["metrics"]) == list(range(7))


def test_killed_sender_sends_again_without_counting_twice(store: FakeStore, home: Home) -> None:
    tracker = tracker_of(store, home)
    run = tracker.start("whole", {})
    store.up = False
    tracker.record(RunValues(run, metrics=[("loss", 0.5, 1)]))
    nested = tracker.start("stage", {}, parent=run)
    tracker.record(RunEnd(nested))
    before = (home.root / "runs" / "own" / UNTRACKED).read_text()
    store.up, tracker._next = True, 0.0
    tracker.retry()
    (home.root / "runs" / "own" / UNTRACKED).write_text(before + '{"call": "metr')  # as if killed before the file went
    other = tracker_of(store, home, "other")
    ids, left = other.adopt(home.root / "runs" / "own")
    assert (ids, left) == ({nested: "run1"}, 0)
    assert len(store.runs) == 2 and len(store.runs["run0"]["metrics"]) == 1


def test_run_whose_opening_was_heard_but_not_answered_is_not_opened_twice(store: FakeStore, home: Home) -> None:
    tracker = tracker_of(store, home)
    store.lost_replies = 1
    run = tracker.start("whole", {})
    assert run.startswith(PENDING) and len(store.runs) == 1
    store.up, tracker._next = True, 0.0
    tracker.retry()
    assert len(store.runs) == 1 and tracker.known(run) == "run0"


def test_refused_call_is_kept_aside_and_holds_nothing_up(
    store: FakeStore, home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    tracker = tracker_of(store, home)
    run = tracker.start("whole", {})
    store.bad = {"file"}
    tracker.record(RunFile(run, "/nowhere"))
    tracker.record(RunValues(run, tags={"after": "it"}))
    assert store.runs["run0"]["tags"] == {"after": "it"} and not waiting(home)
    refused = json.loads((home.root / "runs" / "own" / REFUSED).read_text())
    assert refused["call"] == "file" and "not taken" in refused["refused"]
    assert "MLflow refuses a call" in caplog.text


def test_runs_of_killed_processes_are_closed_and_those_of_living_ones_are_not(store: FakeStore, home: Home) -> None:
    before = tracker_of(store, home, "dead")
    whole = before.start("whole", {"run": "dead"})
    before.start("stage", {"run": "dead"}, parent=whole)
    done = before.start("done", {"run": "dead"}, parent=whole)
    before.record(RunEnd(done))
    alive = tracker_of(store, home, "alive")
    alive.start("whole", {"run": "alive"})
    folder = dead_run(home, "dead", {"status": "running"})
    owner = RunLock(home.root / "runs" / "alive")
    assert reap_killed_runs(home, "new", tracker_of(store, home, "new")) == ["dead"]
    assert [row["status"] for row in store.runs.values()] == ["KILLED", "KILLED", "FINISHED", "RUNNING"]
    assert json.loads((folder / "run.json").read_text())["status"] == "killed"
    assert not (folder / OWNER).exists() and (home.root / "runs" / "alive" / OWNER).exists()
    owner.release(settled=True)
    assert reap_killed_runs(home, "new", tracker_of(store, home, "new")) == []


def test_password_of_the_address_is_never_said(home: Home, caplog: pytest.LogCaptureFixture) -> None:
    where = "http://me:canary@tracker.test/mlflow"

    def connect() -> FakeStore:
        raise ConnectionError(f"no answer from {where}")

    tracker = BufferedTracker(connect, home.root / "runs" / "own", where)
    tracker.start("whole", {})
    assert tracker.close() == 1
    assert "canary" not in caplog.text and "http://tracker.test/mlflow" in caplog.text


def test_a_run_that_is_taken_for_dead_before_its_lock_is_its_own_holds_a_new_one(
    store: FakeStore, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, flock, cared = home.root / "runs" / "own", fcntl.flock, []

    def late(handle: Any, how: int) -> None:
        if not cared:
            cared.append(True)
            assert reap_killed_runs(home, "other", tracker_of(store, home, "other")) == ["own"]
        flock(handle, how)

    monkeypatch.setattr("kgqa_core.store.locks.fcntl.flock", late)
    owner = RunLock(folder)
    assert json.loads((folder / OWNER).read_text())["run"] == "own" and not idle(folder / OWNER)
    assert reap_killed_runs(home, "other", tracker_of(store, home, "other")) == []
    owner.release(settled=True)


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.EIO])
def test_only_a_file_system_without_locks_lets_a_run_go_on_without_one(
    home: Home, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def broken(handle: Any, how: int) -> None:
        raise OSError(number, "no lock")

    monkeypatch.setattr("kgqa_core.store.locks.fcntl.flock", broken)
    if number == errno.EIO:
        with pytest.raises(OSError, match="no lock"):
            RunLock(home.root / "runs" / "own")
    else:
        RunLock(home.root / "runs" / "own").release(settled=True)


def test_lock_names_its_owner(home: Home) -> None:
    import os

    owner = RunLock(home.root / "runs" / "own")
    told = json.loads((home.root / "runs" / "own" / OWNER).read_text())
    assert told["pid"] == os.getpid() and told["run"] == "own" and told["host"] and told["since"]
    owner.release(settled=False)
    assert (home.root / "runs" / "own" / OWNER).exists()


def test_whole_run_goes_on_without_its_tracker_and_is_named_in_the_end(
    store: FakeStore, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KGQA_HOME", str(home.root))
    monkeypatch.setattr("tasks.engine.run.open_tracker", lambda home, folder: tracker_of(store, home, folder.name))
    store.up = False
    profile = make_profile({"kg": {"name": "toy"}, "rigel": {"epochs": 3}})
    with tracked_run(profile) as run:
        with run.stage("retriever", "retriever toy", {"options": profile.rigel}):
            run.decide("refresh", "nothing is trained again: 0 of 300 triples changed")
        assert json.loads((run.folder / "run.json").read_text())["status"] == "running"
        store.up = True
    record = json.loads((run.folder / "run.json").read_text())
    assert (record["mlflow_run_id"], record["status"]) == ("run0", "ended")
    assert record["decisions"] == {"refresh": "nothing is trained again: 0 of 300 triples changed"}
    assert not (run.folder / OWNER).exists() and not waiting(home, run.id)
    whole, stage = store.runs["run0"], store.runs["run1"]
    assert (whole["status"], whole["tags"]["kgqa.status"]) == ("FINISHED", "done")
    assert whole["tags"]["kgqa.refresh"].startswith("nothing is trained") and whole["tags"]["kgqa.kg"] == "toy"
    assert whole["params"]["rigel.epochs"] == stage["params"]["rigel.epochs"] == "3"
    assert "dkg.literal_inverses" in whole["params"] and "dkg.literal_inverses" not in stage["params"]


def test_next_run_closes_what_a_killed_one_left(store: FakeStore, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KGQA_HOME", str(home.root))
    monkeypatch.setattr("tasks.engine.run.open_tracker", lambda home, folder: tracker_of(store, home, folder.name))
    tracker_of(store, home, "dead").start("whole", {"run": "dead"})
    folder = dead_run(home, "dead", {"status": "running"})
    with pytest.raises(ZeroDivisionError), tracked_run(make_profile({"kg": {"name": "toy"}})) as run:
        raise ZeroDivisionError("by the flow")
    assert store.runs["run0"]["status"] == "KILLED"
    assert json.loads((folder / "run.json").read_text())["status"] == "killed"
    assert store.runs["run1"]["status"] == "FAILED" and not (run.folder / OWNER).exists()
    assert json.loads((run.folder / "run.json").read_text())["fault"] == "ZeroDivisionError: by the flow"


def test_runs_opened_in_one_moment_are_told_apart(
    store: FakeStore, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks.tracking.buffered_tracker.now", lambda: 1000)
    tracker = tracker_of(store, home)
    tracker.start("whole", {})
    tracker.start("stage", {})
    assert [read_handle(row["handle"]) for row in store.runs.values()] == [("own", 1000), ("own", 1001)]


def test_a_stage_that_is_found_is_told_in_one_call_and_one_that_works_shows_its_options_before(
    store: FakeStore, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KGQA_HOME", str(home.root))
    monkeypatch.setattr("tasks.engine.run.open_tracker", lambda home, folder: tracker_of(store, home, folder.name))
    made = publish(home, "kg", "made", {}, {}, "run-a")
    profile = make_profile({"kg": {"name": "toy"}})
    options = {"options": profile.kg}
    with tracked_run(profile) as run:
        before = store.calls
        with run.stage("kg", "kg toy", options) as record:
            record.artifact, record.status, record.counts = made, "cached", {"triples": 3}
        assert store.calls - before == 3
        found = store.runs["run1"]
        assert found["params"]["kg.name"] == "toy" and found["tags"]["kgqa.status"] == "cached"
        assert {row[0] for row in found["metrics"]} == {"count/triples", "seconds"}
        with run.stage("kg", "kg again", options) as record:
            with run.monitor("kg again"):
                assert store.runs["run2"]["params"]["kg.name"] == "toy"
            record.artifact, record.status = made, "computed"
        assert store.calls - before == 7
    assert {row[0] for row in store.runs["run0"]["metrics"]} == {"seconds/kg"}


def test_calls_that_wait_when_a_home_is_moved_name_its_files_where_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "home" / "runs" / "r"
    Journal(folder).add(RunFile("r", str(folder / "report.html")))
    (tmp_path / "home").rename(tmp_path / "moved")
    moved = tmp_path / "moved" / "runs" / "r"
    assert Journal(moved).events() == [RunFile("r", str(moved / "report.html"))]


def test_every_event_waits_and_comes_back_as_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "home" / "runs" / "r"
    events: list[Event] = [
        RunStart("pending-1-r", "a run", {"a": "b"}, "parent"),
        RunValues("r", {"rigel.epochs": 4, "shuffle": True}, [("loss", 0.5, 1)], {"kgqa.status": "done"}, 3),
        RunFile("r", str(folder / "report.html"), "scores"),
        RunDatasets("r", [DataSet("atlas", "d" * 64, {"triples": 3}, "graph")]),
        RunModel("r", {"home": str(tmp_path / "home"), "artifacts": {"kg": "k"}}),
        ModelVersion("r", "kgqa-a", "", {"kgqa.run_id": "r"}, "Run r."),
        ModelAliases("kgqa-a", str(folder / "truth.json")),
        RunEnd("r", "FAILED", 4),
    ]
    journal = Journal(folder)
    for event in events:
        journal.add(event)
    with journal.path.open("a") as stream:
        stream.write('{"call": "unknown", "run": "r"}\n{"call": "log", "run"')
    assert str(tmp_path) not in journal.path.read_text()
    back = journal.events()
    assert [msgspec.to_builtins(event) for event in back] == [msgspec.to_builtins(event) for event in events]
    assert [type(event) for event in back] == [type(event) for event in events]
    older = [  # as earlier versions wrote them
        {"call": "log", "run": "r", "params": {"a": "1"}, "metrics": [["loss", 0.5, 1]], "tags": {}, "at": 7},
        {"call": "datasets", "run": "r", "read": [["atlas", "d", {"triples": 3}, "graph"]]},
        {"call": "file", "run": "r", "path": "{home}/runs/r/report.html", "folder": None},
    ]
    journal.path.write_text("".join(json.dumps(row) + "\n" for row in older))
    assert [type(event) for event in journal.events()] == [RunValues, RunDatasets, RunFile]
