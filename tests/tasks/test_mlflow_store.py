"""MLflow keeps what it is told, once however often it is told, and a server that comes back gets all of it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import pytest
import yaml
from typer.testing import CliRunner

from flows.cli.app import app
from kgqa_core.store.artifacts import Home, write_json
from tasks.engine.run_lock import RunLock, reap_killed_runs
from tasks.tracking.buffered_tracker import BufferedTracker, open_tracker
from tasks.tracking.journal import UNTRACKED
from tasks.tracking.mlflow_store import KIND, MlflowStore, _name, model_name, tracking_uri
from tasks.tracking.model_files import _save
from tasks.tracking.moved import follow_home, moved_from
from tasks.tracking.tracker import (
    DataSet,
    ModelAliases,
    ModelVersion,
    RunDatasets,
    RunEnd,
    RunFile,
    RunModel,
    RunStart,
    RunValues,
    make_handle,
)
from tests.support.command import closed_port


def test_everything_told_twice_is_kept_once(opened: tuple[Home, MlflowStore], tmp_path: Path) -> None:
    home, store = opened
    handle = make_handle("r1", 1000)
    run = store.find(handle) or store.start(RunStart(handle, "a run", {"kgqa.run_id": "r1"}))
    assert store.find(handle) == run
    assert store.find(make_handle("r1", 1001)) is None and store.find(make_handle("r2", 1000)) is None
    (tmp_path / "report.html").write_text("<p>")
    for _ in range(2):
        values = [("loss", 0.5, 1), ("loss", 0.4, 2), ("rigel/-/-/test/hits_at_1", 0.9, 0)]
        store.write(RunValues(run, {"rigel.epochs": "4"}, values, {"kgqa.status": "done"}, 2000))
        store.write(RunDatasets(run, [DataSet("atlas", "d" * 64, {"triples": 3}, "graph")]))
        store.write(RunFile(run, str(tmp_path / "report.html")))
        store.write(ModelVersion(run, "kgqa-a", "", {"kgqa.run_id": "r1"}, "Run r1."))
        store.write(RunEnd(run, "FINISHED", 3000))
    client = store._client
    assert [(one.value, one.step) for one in client.get_metric_history(run, "loss")] == [(0.5, 1), (0.4, 2)]
    found = client.get_run(run)
    assert found.data.params == {"rigel.epochs": "4"} and found.info.status == "FINISHED"
    assert [(one.dataset.name, one.tags[0].value) for one in found.inputs.dataset_inputs] == [("atlas", "graph")]
    assert [one.description for one in client.search_model_versions("name = 'kgqa-a'")] == ["Run r1."]
    assert {name for name in found.data.tags if not name.startswith("mlflow.")} == {"kgqa.run_id", "kgqa.status"}
    assert found.info.start_time == 1000


def test_the_store_of_a_home_writes_ahead_and_one_that_is_given_stays_as_it_is(
    opened: tuple[Home, MlflowStore], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def modes(store: MlflowStore) -> tuple[str, int]:
        with store._client._tracking_client.store.engine.connect() as connection:
            values = [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("journal_mode", "synchronous")]
        return values[0], values[1]

    assert modes(opened[1]) == ("wal", 1)  # NORMAL
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'own.db'}")
    assert modes(MlflowStore(Home(tmp_path / "home").prepare())) == ("delete", 2)  # FULL


def test_what_is_too_much_for_one_request_arrives_whole(opened: tuple[Home, MlflowStore]) -> None:
    _, store = opened
    run = store.start(RunStart(make_handle("r-much", 1000), "much", {}))
    params = {f"option.{n}": str(n) for n in range(230)}
    losses = [("loss", 1.0 / (n + 1), n) for n in range(2100)]
    store.write(RunValues(run, params, losses, {f"t{n}": "x" for n in range(120)}, 2000))
    found = store._client.get_run(run)
    assert found.data.params == params and {f"t{n}" for n in range(120)} <= set(found.data.tags)
    assert len(store._client.get_metric_history(run, "loss")) == 2100


def test_aliases_follow_the_file_of_the_home(opened: tuple[Home, MlflowStore], tmp_path: Path) -> None:
    _, store = opened
    for name in ("r8", "r9"):
        run = store.start(RunStart(make_handle(name, 1000), name, {"kgqa.run_id": name}))
        store.write(ModelVersion(run, "kgqa-my graph/x", "", {"kgqa.run_id": name}, ""))
    write_json(tmp_path / "truth.json", {"champion": {"run_id": "r8"}, "previous": None})
    store.write(ModelAliases("kgqa-my graph/x", str(tmp_path / "truth.json")))
    model = store._client.get_model_version_by_alias("kgqa-my-graph-x", "champion")
    assert model.tags["kgqa.run_id"] == "r8"
    write_json(tmp_path / "truth.json", {"champion": {"run_id": "r9"}, "previous": {"run_id": "r8"}})
    store.write(ModelAliases("kgqa-my graph/x", str(tmp_path / "truth.json")))
    aliases = {
        alias: store._client.get_model_version_by_alias("kgqa-my-graph-x", alias).tags["kgqa.run_id"]
        for alias in ("champion", "previous")
    }
    assert aliases == {"champion": "r9", "previous": "r8"}


def test_open_runs_of_a_dead_process_are_closed_as_killed(opened: tuple[Home, MlflowStore]) -> None:
    _, store = opened
    left = store.start(RunStart(make_handle("dead", 1000), "left", {"kgqa.run_id": "dead"}))
    ended = store.start(RunStart(make_handle("dead", 1001), "ended", {"kgqa.run_id": "dead"}, left))
    store.write(RunEnd(ended, "FINISHED", 2000))
    other = store.start(RunStart(make_handle("living", 1000), "other", {"kgqa.run_id": "living"}))
    assert store.kill("dead") == 1 and store.kill("dead") == 0
    statuses = [store._client.get_run(run).info.status for run in (left, ended, other)]
    assert statuses == ["KILLED", "FINISHED", "RUNNING"]


def test_files_lie_in_the_home_where_the_address_is_a_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MLflow itself would keep them in `mlruns` of the folder that we work in."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'shared.db'}")
    monkeypatch.chdir(tmp_path)
    home = Home(tmp_path / "home").prepare()
    store = MlflowStore(home)
    place = store._client.get_experiment(store.experiment).artifact_location
    assert place == (home.root / "mlflow" / "artifacts").as_uri()


def test_a_home_that_was_copied_says_where_it_was_until_its_records_have_followed(
    opened: tuple[Home, MlflowStore], tmp_path: Path
) -> None:
    home, _ = opened
    copy = Home(tmp_path / "a copy, é")
    shutil.copytree(home.root, copy.root)
    assert moved_from(home) == [] and moved_from(copy) == [str(home.root)]
    shown = CliRunner().invoke(app, ["home", "--home", str(copy.root)]).output
    assert f"it was at {home.root}" in shown and str(copy.root) in shown
    assert follow_home(copy) == [str(home.root)] and follow_home(copy) == [] == moved_from(copy)
    assert moved_from(home) == [], "the original stays as it is"


@pytest.mark.slow
def test_the_records_of_a_copied_home_follow_it(
    opened: tuple[Home, MlflowStore], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, store = opened
    run = store.start(RunStart(make_handle("r-copied", 1000), "copied", {}))
    (tmp_path / "report.html").write_text("<p>")
    store.write(RunFile(run, str(tmp_path / "report.html")))
    store.write(ModelVersion(run, "copied", "", {}, ""))
    logged = store._client.create_logged_model(store.experiment, "system", run)
    place = home.root / "mlflow" / "artifacts" / "models" / logged.model_id / "artifacts"
    place.mkdir(parents=True)
    described = {
        "artifact_path": logged.artifact_location,
        "flavors": {"python_function": {"config": {"home": str(home.root)}}},
    }
    (place / "MLmodel").write_text(yaml.safe_dump(described))
    copy = Home(tmp_path / "a copy, é")
    shutil.copytree(home.root, copy.root)
    follower = MlflowStore(copy)
    uri = (copy.root / "mlflow" / "artifacts").as_uri()
    client = follower._client
    assert client.get_experiment(follower.experiment).artifact_location == uri
    [version] = client.search_model_versions("name = 'copied'")
    told = yaml.safe_load((copy.root / place.relative_to(home.root) / "MLmodel").read_text())
    assert told["flavors"]["python_function"]["config"]["home"] == str(copy.root)
    for text in (
        client.get_run(run).info.artifact_uri, version.source, told["artifact_path"],
        client.get_logged_model(logged.model_id).artifact_location,
    ):  # fmt: skip
        assert text.startswith(f"{uri}/")
    assert [file.path for file in client.list_artifacts(run)] == ["report.html"]
    assert store._client.get_run(run).info.artifact_uri.startswith(home.root.as_uri()), "the original is as it was"


@pytest.mark.parametrize("before", [None, "genai_development"])
def test_an_experiment_of_an_earlier_version_opens_on_its_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str | None
) -> None:
    from mlflow import MlflowClient

    home = Home(tmp_path / "home").prepare()
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    client = MlflowClient(tracking_uri=tracking_uri(home))
    made = client.create_experiment("kgqa", tags={KIND: before} if before else {})
    assert MlflowStore(home).experiment == made
    kind = client.get_experiment(made).tags[KIND]
    assert kind == (before or "custom_model_development"), "what the user chose stays"


def test_names_of_models_suit_the_registry() -> None:
    assert model_name("kgqa-a/b:c'd e") == "kgqa-a-b-c-d-e" and model_name("///") == "kgqa"


def _server(folder: Path, port: int) -> subprocess.Popen[bytes]:
    """A real MLflow server that is up."""
    command = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", f"sqlite:///{folder / 'db'}"]
    command += ["--artifacts-destination", str(folder / "artifacts"), "--host", "127.0.0.1", "--port", str(port)]
    environment = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    with (folder / "log").open("ab") as log:
        server = subprocess.Popen(
            [*command, "--workers", "1"], env=environment, stdout=log, stderr=log, start_new_session=True
        )
    until = time.monotonic() + 600
    while time.monotonic() < until:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2):
                return server
        except OSError:
            time.sleep(0.3)
    _kill(server)
    raise AssertionError(f"MLflow did not start: {(folder / 'log').read_text()[-2000:]}")


def _kill(server: subprocess.Popen[bytes]) -> None:
    if server.poll() is None:
        os.killpg(server.pid, signal.SIGKILL)
    server.wait()


@contextmanager
def _servers(folder: Path, port: int) -> Iterator[Callable[[bool], None]]:
    """Starts and kills one server as told, and leaves none."""
    running: list[subprocess.Popen[bytes]] = []

    def wanted(up: bool) -> None:
        while running:
            _kill(running.pop())
        if up:
            running.append(_server(folder, port))

    try:
        yield wanted
    finally:
        wanted(False)


@pytest.mark.slow
def test_server_that_is_killed_and_comes_back_has_everything_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = closed_port()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{port}")
    home = Home(tmp_path / "home").prepare()
    (tmp_path / "server").mkdir()
    (tmp_path / "report.html").write_text("<p>")

    def tell(tracker: Any, run: Any, step: int) -> None:
        tracker.record(RunValues(run, metrics=[("loss", 1.0 / (step + 1), step)]))

    with _servers(tmp_path / "server", port) as wanted:
        wanted(True)
        owner = RunLock(home.root / "runs" / "one")
        tracker = open_tracker(home, home.root / "runs" / "one")
        run = tracker.start("whole", {"kgqa.run_id": "one"})
        tell(tracker, run, 0)
        wanted(False)
        tell(tracker, run, 1)
        nested = tracker.start("stage", {"kgqa.run_id": "one"}, parent=run)
        tracker.record(RunFile(nested, str(tmp_path / "report.html")))
        tracker.record(RunDatasets(run, [DataSet("atlas", "d" * 64, {"triples": 3}, "graph")]))
        tracker.record(RunEnd(nested))
        assert len((home.root / "runs" / "one" / UNTRACKED).read_text().splitlines()) == 5
        wanted(True)
        tracker._next = 0.0
        tracker.retry()
        tell(tracker, run, 2)
        wanted(False)
        tell(tracker, run, 3)
        tracker.record(ModelVersion(run, "kgqa-a", "", {"kgqa.run_id": "one"}, ""))
        tracker.record(RunEnd(run))
        owner.release(settled=not tracker.close())
        wanted(True)
        later = open_tracker(home, home.root / "runs" / "two")
        assert reap_killed_runs(home, "two", later) == ["one"]
        client = later.store._client
        found = client.get_run(run)
        assert found.info.status == "FINISHED" and len(found.inputs.dataset_inputs) == 1
        assert [one.step for one in client.get_metric_history(run, "loss")] == [0, 1, 2, 3]
        stage = client.get_run(tracker.known(nested))
        assert stage.info.status == "FINISHED" and stage.data.tags["mlflow.parentRunId"] == run
        assert [one.path for one in client.list_artifacts(stage.info.run_id)] == ["report.html"]
        assert len(client.search_model_versions("name = 'kgqa-a'")) == 1
        everything = client.search_runs([later.experiment])
        assert len(everything) == 2, json.dumps([one.data.tags for one in everything])


REFERENCE = {
    "home": "/nowhere", "run": "r9", "graph": "g", "artifacts": {}, "code": {"git": "abc", "path": "/code"},
    "requirements": ["kgqa==0.1.0", "mlflow==3.17.2"],
}  # fmt: skip


def test_a_run_logs_its_model_once_and_the_registered_version_is_that_model(opened: tuple[Home, MlflowStore]) -> None:
    home, store = opened
    run = store.start(RunStart(make_handle("r9", 9000), "a run", {}))
    for _ in range(2):
        store.write(RunModel(run, REFERENCE))
        store.write(ModelVersion(run, "kgqa-m", "", {"kgqa.run_id": "r9"}, "Run r9."))
    store.write(RunEnd(run, "FINISHED", 9500))
    store.write(RunModel(run, REFERENCE))  # sent again after its run has ended
    client = store._client
    [logged] = client.search_logged_models([store.experiment], filter_string=f"source_run_id = '{run}'")
    assert (logged.name, str(logged.status), logged.model_type) == ("system", "READY", "agent")
    assert [one.model_id for one in client.get_run(run).outputs.model_outputs] == [logged.model_id]
    [version] = client.search_model_versions("name = 'kgqa-m'")
    assert (version.source, version.run_id) == (logged.artifact_location, run)
    assert json.loads(client.get_logged_model(logged.model_id).tags["mlflow.modelVersions"]) == [
        {"name": "kgqa-m", "version": version.version}
    ]
    files = Path(logged.artifact_location.removeprefix("file://"))
    assert (files / "MLmodel").is_file() and not list(files.rglob("*.pkl"))
    write_json(home.root / "truth.json", {"champion": {"run_id": "r9"}, "previous": None})
    store.write(ModelAliases("kgqa-m", str(home.root / "truth.json")))
    assert client.get_model_version_by_alias("kgqa-m", "champion").version == version.version


def test_the_next_model_is_made_of_the_last_ones_files(
    opened: tuple[Home, MlflowStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    import mlflow.pyfunc

    _, store = opened
    files = {}
    for name in ("r10", "r11", "r12"):
        run = store.start(RunStart(make_handle(name, 9000), name, {}))
        reference = REFERENCE | {"run": name, "requirements": ["kgqa==0.1.0", f"mlflow==3.{name == 'r12'}.0"]}
        if name == "r11":
            with monkeypatch.context() as patched:
                patched.setattr(mlflow.pyfunc, "save_model", None)
                store.write(RunModel(run, reference))
        else:
            store.write(RunModel(run, reference))
        [logged] = store._client.search_logged_models([store.experiment], filter_string=f"source_run_id = '{run}'")
        folder = Path(logged.artifact_location.removeprefix("file://"))
        record = yaml.safe_load((folder / "MLmodel").read_text(encoding="utf-8"))
        assert (record["run_id"], record["model_id"], record["model_uuid"]) == (run, logged.model_id, logged.model_id)
        assert record["artifact_path"] == logged.artifact_location
        assert record["flavors"]["python_function"]["config"]["run"] == name
        files[name] = {
            path.relative_to(folder): path.read_bytes()
            for path in folder.rglob("*") if path.is_file() and path.name != "MLmodel"
        }  # fmt: skip
    assert files["r10"] == files["r11"] != files["r12"], "other packages, another template"


def test_temporary_files_of_mlflow_lie_in_ours_while_a_model_is_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed process leaves them; of ours the next one is rid."""
    import mlflow.pyfunc

    used = []
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(mlflow.pyfunc, "save_model", lambda **_: used.append(Path(tempfile.mkdtemp())))
    _save(tmp_path / "model", {}, [], {})
    assert used[0].parent.parent == tmp_path and used[0].parent.name.startswith(".kgqa-code.")
    assert not used[0].exists() and tempfile.gettempdir() == str(tmp_path)


def test_a_model_that_waits_for_a_lost_mlflow_is_logged_when_it_is_back(opened: tuple[Home, MlflowStore]) -> None:
    home, store = opened
    back = False

    def connect() -> MlflowStore:
        if not back:
            raise ConnectionError("away")
        return store

    folder = home.root / "runs" / "r10"
    tracker = BufferedTracker(connect, folder, "http://me:secret@away")
    run = tracker.start("a run", {"kgqa.run_id": "r10"})
    tracker.record(RunModel(run, REFERENCE | {"run": "r10"}))
    tracker.record(ModelVersion(run, "kgqa-late", "", {"kgqa.run_id": "r10"}, ""))
    tracker.record(RunEnd(run))
    calls = [json.loads(line)["call"] for line in (folder / UNTRACKED).read_text().splitlines()]
    assert calls == ["start", "model", "register", "end"]
    back = True
    assert tracker.close() == 0
    [version] = store._client.search_model_versions("name = 'kgqa-late'")
    [logged] = store._client.search_logged_models(
        [store.experiment], filter_string=f"source_run_id = '{tracker.known(run)}'"
    )
    assert version.source == logged.artifact_location


class LosesReply(BaseHTTPRequestHandler):
    """MLflow as far as opening a run goes; the first run is opened and nobody hears of it."""

    opened: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self._reply({"experiment": {"experiment_id": "1", "name": "kgqa", "lifecycle_stage": "active"}})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        info = {"status": "RUNNING", "start_time": 1, "lifecycle_stage": "active", "experiment_id": "1"}
        if self.path.endswith("runs/create"):
            self.opened.append(f"run{len(self.opened)}")
            if len(self.opened) == 1:
                self.connection.shutdown(socket.SHUT_RDWR)
                return
        run = {"info": {"run_id": self.opened[-1], "run_uuid": self.opened[-1], **info}, "data": {}}
        self._reply({"runs": [{**run, "info": {**run["info"], "run_id": self.opened[0]}}], "run": run})

    def log_message(self, *words: Any) -> None:
        pass

    def _reply(self, told: dict[str, Any]) -> None:
        body = json.dumps(told).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def test_a_run_whose_reply_is_lost_on_the_way_is_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LosesReply, "opened", [])
    monkeypatch.delenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", raising=False)
    with ThreadingHTTPServer(("127.0.0.1", 0), LosesReply) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{server.server_address[1]}")
        home = Home(tmp_path / "home").prepare()
        tracker = open_tracker(home, home.root / "runs" / "one")
        run = tracker.start("whole", {})
        server.shutdown()
    assert run == "run0" and LosesReply.opened == ["run0"]


@pytest.mark.parametrize(
    "text",
    ["count/reasons.1^^http://www.w3.org/2001/XMLSchema#integer is no literal", "/a//b/../c/", "a,b(c)", "..", "é"],
)
def test_every_name_is_one_that_mlflow_takes(text: str) -> None:
    from mlflow.utils.validation import _validate_metric_name, _validate_param_name

    _validate_metric_name(_name(text))
    _validate_param_name(_name(text))
