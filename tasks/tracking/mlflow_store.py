"""MLflow as the store of what runs tell their tracker; it is imported in this folder and nowhere else.

`tasks.tracking.buffered_tracker` stands before it, so that a lost server fails nothing; every event may therefore come
twice, and the second time changes nothing.
"""

from __future__ import annotations

import contextlib
import functools
import http.client
import importlib
import json
import logging
import os
import re
import sqlite3
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgqa_core.store.artifacts import Home
from kgqa_core.store.scratch import scratch_folder
from kgqa_core.store.sqlite import write_ahead
from tasks.servers.database import SQLITE, ensure_database
from tasks.servers.login import hand_to_clients
from tasks.tracking.model_files import save_model
from tasks.tracking.moved import follow_home
from tasks.tracking.tracker import (
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

if TYPE_CHECKING:
    from mlflow import MlflowClient

log = logging.getLogger("kgqa.tracking")
EXPERIMENT = "kgqa"
KIND, MODELS = "mlflow.experimentKind", "custom_model_development"
"""Tag and value by which MLflow's UI opens an experiment on its runs, not on chat traces.  3.17 has a switch beside it,
which links set (`tasks.tracking.addresses`)."""
HEADLINES = ("right", "wrong", "declined", "right_of_answered", "answered", "questions")
"""Names of the metrics `answers/…` that the table of runs shows, in their order."""
VIEW = "kgqa"
VIEW_TAG = f"mlflow.sharedViewState.{VIEW}"
"""Tag by which an experiment has a shared view of its table of runs; MLflow's UI opens it from a link alone, since it
stores the columns of its own table in the browser."""
PARAM_LENGTH = 500
TAG_LENGTH = 5000
MODEL = "system"
"""Name of the model that a run logs."""
RUN_ID = "kgqa.run_id"
PROBE_TIMEOUT = 3.0


def tracking_uri(home: Home) -> str:
    """`MLFLOW_TRACKING_URI`, else an SQLite store in the home."""
    return os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{home.root / 'mlflow' / 'mlflow.db'}"


def without_credentials(text: str) -> str:
    """Text whose addresses name neither user nor password.

    >>> without_credentials("postgresql://me:secret@db/mlflow is away")
    'postgresql://db/mlflow is away'
    """
    return re.sub(r"(\w://)[^/\s]*@", r"\1", text)


def answers(uri: str) -> bool:
    """Whether a tracking server gives any answer but a failure within seconds; true for what is not a server."""
    if not uri.startswith(("http://", "https://")):
        return True
    try:
        with urllib.request.urlopen(f"{uri.rstrip('/')}/health", timeout=PROBE_TIMEOUT):
            return True
    except urllib.error.HTTPError as fault:
        return fault.code < 500
    except (OSError, ValueError, http.client.HTTPException):
        return False


def import_client(uri: str) -> type[MlflowClient]:
    """MLflow's client, set up for the store at an address; a caller that waits for something else imports it meanwhile.

    The import takes seconds.
    """
    for name, value in (
        ("MLFLOW_DISABLE_TELEMETRY", "true"),
        ("MLFLOW_LOGGING_LEVEL", "ERROR"),
        ("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0"),  # its own retries would open a run twice when a reply is lost
        ("MLFLOW_HTTP_REQUEST_TIMEOUT", "10"),
        ("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true"),
        ("GIT_PYTHON_REFRESH", "quiet"),
    ):
        os.environ.setdefault(name, value)
    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.ERROR)
    logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)  # whoever calls reports its faults
    from mlflow import MlflowClient

    if uri.startswith(SQLITE):
        importlib.import_module("mlflow.store.tracking.sqlalchemy_store")
        _sync_at_checkpoints()
    return MlflowClient


def _write_ahead(path: Path) -> None:
    """Put a database into write-ahead mode for good; where another process holds it, it stays as it is."""
    with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(path, timeout=0)) as connection:
        write_ahead(connection, seconds=0)


@functools.cache
def _sync_at_checkpoints() -> None:
    """Sync databases in write-ahead mode to the disk at checkpoints only, as Prefect does with its own.

    A killed process loses nothing; a machine that loses power may lose the latest calls.
    """
    from sqlalchemy import event
    from sqlalchemy.pool import Pool

    def connected(connection: Any, _: Any) -> None:
        if not isinstance(connection, sqlite3.Connection):
            return
        if connection.execute("PRAGMA journal_mode").fetchone() == ("wal",):
            connection.execute("PRAGMA synchronous = NORMAL")

    event.listen(Pool, "connect", connected)


class MlflowStore:
    """Runs in MLflow: the server that `MLFLOW_TRACKING_URI` names, else an SQLite store in the home.

    Runs are named by MLflow's ids, moments in milliseconds.  Raises whatever MLflow raises.
    """

    def __init__(self, home: Home) -> None:
        self.uri, self._templates = tracking_uri(home), home.cache / "logged_models"
        hand_to_clients(home.root, os.environ)
        if not answers(self.uri):
            raise ConnectionError(f"no answer from {self.uri}")
        client = import_client(self.uri)
        follow_home(home)
        with home.locked("mlflow", "opening the MLflow store"):
            ensure_database(self.uri)
            if not os.environ.get("MLFLOW_TRACKING_URI"):
                _write_ahead(Path(self.uri.removeprefix(SQLITE)))
            self._client = client(tracking_uri=self.uri)
            self.experiment: str = self._open_experiment(home)

    def alive(self) -> bool:
        """Whether the store can be reached now: any fault of the smallest request means that it cannot."""
        if not answers(self.uri):
            return False
        try:
            self._client.get_experiment(self.experiment)
        except Exception as fault:
            log.debug("MLflow cannot be reached: %s", without_credentials(str(fault)))
            return False
        return True

    def start(self, event: RunStart) -> str:
        """Open a run, whose handle and whose parent's id the event has, and return its id."""
        run_id, at = read_handle(str(event.run))
        nested = {"mlflow.parentRunId": event.parent} if event.parent else {}
        tags = {key: _cut(value) for key, value in {**event.tags, **nested, RUN_ID: run_id}.items()}
        run = self._client.create_run(self.experiment, run_name=event.name, start_time=at, tags=tags)
        return str(run.info.run_id)

    def find(self, handle: str) -> str | None:
        """Id of the run that was opened with this handle, if any."""
        run_id, at = read_handle(handle)
        wanted = f"tags.`{RUN_ID}` = '{run_id}' and attributes.start_time = {at}"
        runs = self._client.search_runs([self.experiment], wanted, max_results=1)
        return str(runs[0].info.run_id) if runs else None

    def write(self, event: Event) -> None:
        """Write an event of a run that is named by its MLflow id; written twice it is there once."""
        if isinstance(event, ModelAliases):
            self._write_aliases(event)
            return
        run = event.run
        assert run is not None
        match event:
            case RunStart():
                self.start(event)
            case RunValues():
                self._write_values(run, event)
            case RunFile():
                log_file = self._client.log_artifacts if Path(event.path).is_dir() else self._client.log_artifact
                log_file(run, event.path, event.folder)
            case RunDatasets():
                self._write_datasets(run, event)
            case RunModel():
                self._write_model(run, event)
            case ModelVersion():
                self._write_version(run, event)
            case RunEnd():
                self._client.set_terminated(run, event.status, event.at)

    def _write_values(self, run: str, event: RunValues) -> None:
        """Long parameters and tags are cut."""
        from mlflow.entities import Metric, Param, RunTag

        self._client.log_batch(
            run,
            params=[Param(_name(key), str(value)[:PARAM_LENGTH]) for key, value in event.params.items()],
            metrics=[Metric(_name(name), float(value), event.at, int(step)) for name, value, step in event.metrics],
            tags=[RunTag(key, _cut(value)) for key, value in event.tags.items()],
        )  # it makes more than one request of what is too much for one

    def _write_datasets(self, run: str, event: RunDatasets) -> None:
        from mlflow.entities import Dataset, DatasetInput, InputTag

        inputs = []
        for name, digest, counts, context in event.read:
            numbers = json.dumps({key: count for key, count in counts.items() if isinstance(count, int | float)})
            source = f"kgqa:{digest}"
            dataset = Dataset(name, digest[:36], source_type="kgqa", source=source, profile=numbers)
            inputs.append(DatasetInput(dataset, [InputTag("mlflow.data.context", context)]))
        self._client.log_inputs(run, inputs)

    def _write_model(self, run: str, event: RunModel) -> None:
        """What the model's reference means stays where it is."""
        from mlflow.entities import LoggedModelOutput

        reference = event.reference
        logged = self._logged(run)
        if logged is None:
            tags = {RUN_ID: str(reference["run"])}
            logged = self._client.create_logged_model(self.experiment, MODEL, run, tags=tags, model_type="agent")
        if logged.status != "READY":
            ids = {"run_id": run, "model_id": logged.model_id, "model_uuid": logged.model_id}
            with scratch_folder(None, "kgqa-model") as scratch:
                folder, location = scratch / MODEL, logged.artifact_location
                save_model(folder, reference, self._templates, artifact_path=location, **ids)
                self._client.log_model_artifacts(logged.model_id, str(folder))
            self._client.finalize_logged_model(logged.model_id, "READY")
        outputs = self._client.get_run(run).outputs
        if logged.model_id not in [output.model_id for output in (outputs.model_outputs if outputs else ())]:
            self._client.log_outputs(run, [LoggedModelOutput(logged.model_id, step=0)])

    def _write_version(self, run: str, event: ModelVersion) -> None:
        """Without a folder it is the model that the run logged, or all its files where it logged none."""
        from mlflow.exceptions import MlflowException

        model = model_name(event.model)
        try:
            self._client.create_registered_model(model)
        except MlflowException as fault:
            if fault.error_code != "RESOURCE_ALREADY_EXISTS":
                raise
        logged = None if event.folder else self._logged(run)
        if logged is not None and logged.status == "READY":
            source, ids = str(logged.artifact_location), {"model_id": logged.model_id}
        else:
            uri, ids = str(self._client.get_run(run).info.artifact_uri), {}
            source = f"{uri}/{event.folder}" if event.folder else uri
        there = self._client.search_model_versions(f"name = '{model}' and run_id = '{run}'")
        if all(version.source != source for version in there):
            tags, description = {key: _cut(text) for key, text in event.tags.items()}, _cut(event.description)
            made = self._client.create_model_version(model, source, run, tags=tags, description=description, **ids)
            if ids:  # by which the page of the logged model links to its version
                versions = json.dumps([{"name": model, "version": made.version}])
                self._client.set_logged_model_tags(ids["model_id"], {"mlflow.modelVersions": versions})

    def _logged(self, run: str) -> Any:
        """The model that a run logged, if any."""
        models = self._client.search_logged_models([self.experiment], filter_string=f"source_run_id = '{run}'")
        return next((model for model in models if model.name == MODEL), None)

    def _write_aliases(self, event: ModelAliases) -> None:
        model = model_name(event.model)
        wanted = json.loads(Path(event.truth).read_text(encoding="utf-8"))
        versions = {
            version.tags.get(RUN_ID): version.version
            for version in self._client.search_model_versions(f"name = '{model}'", max_results=10_000)
        }
        for alias in ("champion", "previous"):
            bearer = (wanted.get(alias) or {}).get("run_id")
            if bearer in versions:
                self._client.set_registered_model_alias(model, alias, str(versions[bearer]))

    def kill(self, run_id: str) -> int:
        """Close what a dead process left open of a run of ours as KILLED; how many MLflow runs that were."""
        wanted = f"tags.`{RUN_ID}` = '{run_id}' and attributes.status = 'RUNNING'"
        left = self._client.search_runs([self.experiment], wanted, max_results=1000)
        tags = {"kgqa.status": "killed", "kgqa.note": "the process died; closed by a later run"}
        for run in left:
            self.write(RunValues(run.info.run_id, tags=tags))
            self.write(RunEnd(run.info.run_id, "KILLED"))
        return len(left)

    def _open_experiment(self, home: Home) -> str:
        columns = [f"metrics.`answers/{name}`" for name in HEADLINES]
        tags = {KIND: MODELS, VIEW_TAG: json.dumps({"selectedColumns": columns})}
        experiment = self._client.get_experiment_by_name(EXPERIMENT)
        if experiment is not None:
            from mlflow.exceptions import MlflowException

            for name, value in tags.items():
                if experiment.tags.get(name) is None or (name == VIEW_TAG and experiment.tags[name] != value):
                    with contextlib.suppress(MlflowException):  # only how pages open depends on it
                        self._client.set_experiment_tag(experiment.experiment_id, name, value)
            return str(experiment.experiment_id)
        from mlflow.store.db.db_types import DATABASE_ENGINES

        opened_here = self.uri.partition("://")[0].partition("+")[0] in DATABASE_ENGINES
        location = (home.root / "mlflow" / "artifacts").as_uri() if opened_here else None  # else `mlruns` where we work
        return str(self._client.create_experiment(EXPERIMENT, artifact_location=location, tags=tags))


def model_name(text: str) -> str:
    """A name that MLflow's registry, a file system and a filter take: `kgqa-my graph/v2` → `kgqa-my-graph-v2`."""
    short = re.sub(r"[^\w.-]+", "-", text).strip("-.").encode("utf-8", "ignore")[:200]
    return short.decode("utf-8", "ignore") or "kgqa"


def _name(text: str) -> str:
    """A name of a parameter or metric that MLflow takes: of usual signs, and as a path without empty parts."""
    plain = "".join(letter if letter.isalnum() or letter in "_-. /:" else "_" for letter in text)
    return "/".join(part for part in plain.split("/") if part.strip(".")) or "_"


def _cut(text: Any) -> str:
    return str(text)[:TAG_LENGTH]
