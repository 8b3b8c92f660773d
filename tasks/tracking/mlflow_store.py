"""What is remembered of a run outside its home: one interface, and MLflow behind it.

MLflow is imported in this folder and nowhere else.  Parameters are the dotted keys of the profile; metrics of a
training step keep their name (`loss`, `dev_hits_at_1`), scores are called `experiment/split/metric`;
`docs/tracking.md` lists all.
`tasks.tracking.buffered_tracker` stands before it, so that a lost server fails nothing; every call may therefore come
twice, and the second time changes nothing.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import logging
import os
import re
import sqlite3
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from kgqa_core.store.artifacts import Home
from kgqa_core.store.scratch import scratch_folder
from kgqa_core.store.sqlite import write_ahead
from tasks.servers.database import SQLITE, ensure_database
from tasks.servers.login import hand_to_clients
from tasks.tracking.model_files import save_model
from tasks.tracking.moved import follow_home

if TYPE_CHECKING:
    from mlflow import MlflowClient

EXPERIMENT = "kgqa"
KIND, MODELS = "mlflow.experimentKind", "custom_model_development"
"""Tag and value by which MLflow's UI opens an experiment on its runs, not on chat traces.  3.17 has a switch beside it,
which links set (`tasks.tracking.addresses`)."""
PARAM_LENGTH = 500
TAG_LENGTH = 5000
MODEL = "system"
"""Name of the model that a run logs."""
RUN_ID = "kgqa.run_id"
PENDING = "pending-"
PROBE_TIMEOUT = 3.0


class DataSet(NamedTuple):
    """A data set as a run read it: numbers among its counts are kept, and what it was read for."""

    name: str
    digest: str
    counts: Mapping[str, Any]
    context: str


class Tracker(Protocol):
    """Where runs, their parameters, metrics and files are remembered."""

    @property
    def experiment(self) -> str | None:
        """Id of the experiment, for links."""
        ...

    def start(self, name: str, tags: Mapping[str, str], parent: str | None = None) -> str | None:
        """Open a run, nested under `parent` where given; its id, or None when nothing is remembered."""
        ...

    def log(
        self,
        run: str | None,
        *,
        params: Mapping[str, Any] | None = None,
        metrics: Sequence[tuple[str, float, int]] = (),
        tags: Mapping[str, str] | None = None,
    ) -> None:
        """Parameters, measured values as (name, value, step), and tags of a run, in one request."""
        ...

    def file(self, run: str | None, path: Path, folder: str | None = None) -> None:
        """A file, or the files of a folder, to keep with a run."""
        ...

    def datasets(self, run: str | None, read: Sequence[DataSet]) -> None:
        """Data sets that the run read."""
        ...

    def model(self, run: str | None, reference: Mapping[str, Any]) -> None:
        """Log the system of a run as a model that loads (`tasks.tracking.model_reference`)."""
        ...

    def register(self, run: str | None, model: str, folder: str, tags: Mapping[str, str], description: str) -> None:
        """Make the files that a run keeps under `folder` a version of a registered model; without
        one, the model that it logged."""
        ...

    def aliases(self, model: str, truth: Path) -> None:
        """Let the aliases of a registered model follow the file that says which run bears which."""
        ...

    def end(self, run: str | None, *, failed: bool = False) -> None:
        """Close a run."""
        ...

    def known(self, run: str | None) -> str | None:
        """The id that a run has where runs are remembered, or None while it is not there."""
        ...

    def retry(self) -> None:
        """Send what could not be sent before, should the place where runs are remembered be back."""
        ...

    def close(self) -> int:
        """The last try to send; how many calls are left for the next run of the home."""
        ...


class NoTracker:
    """Remembers nothing."""

    experiment: str | None = None

    def start(self, name: str, tags: Mapping[str, str], parent: str | None = None) -> str | None:
        """No run is opened."""
        return None

    def log(
        self,
        run: str | None,
        *,
        params: Mapping[str, Any] | None = None,
        metrics: Sequence[tuple[str, float, int]] = (),
        tags: Mapping[str, str] | None = None,
    ) -> None:
        """Ignored."""

    def file(self, run: str | None, path: Path, folder: str | None = None) -> None:
        """Ignored."""

    def datasets(self, run: str | None, read: Sequence[DataSet]) -> None:
        """Ignored."""

    def model(self, run: str | None, reference: Mapping[str, Any]) -> None:
        """Ignored."""

    def register(self, run: str | None, model: str, folder: str, tags: Mapping[str, str], description: str) -> None:
        """Ignored."""

    def aliases(self, model: str, truth: Path) -> None:
        """Ignored."""

    def end(self, run: str | None, *, failed: bool = False) -> None:
        """Ignored."""

    def known(self, run: str | None) -> str | None:
        """No run is known."""
        return None

    def retry(self) -> None:
        """Nothing waits."""

    def close(self) -> int:
        """Nothing is left."""
        return 0


def make_handle(run_id: str, at: int) -> str:
    """What stands for a tracked run until it has an id, and finds it: our run, and the moment (ms) it was opened at."""
    return f"{PENDING}{at}-{run_id}"


def read_handle(handle: str) -> tuple[str, int]:
    """The run and the moment that a handle was made of.

    >>> read_handle(make_handle("20260101-120000-ab12", 1767268800000))
    ('20260101-120000-ab12', 1767268800000)
    """
    at, _, run_id = handle.removeprefix(PENDING).partition("-")
    return run_id, int(at)


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
    except (OSError, ValueError):
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
        """Whether the store can be reached now."""
        if not answers(self.uri):
            return False
        try:
            self._client.get_experiment(self.experiment)
        except Exception:
            return False
        return True

    def start(self, handle: str, name: str, tags: Mapping[str, str], parent: str | None) -> str:
        """Open a run, nested under `parent` where given, and return its id."""
        run_id, at = read_handle(handle)
        nested = {"mlflow.parentRunId": parent} if parent else {}
        given = {key: _cut(value) for key, value in {**tags, **nested, RUN_ID: run_id}.items()}
        run = self._client.create_run(self.experiment, run_name=name, start_time=at, tags=given)
        return str(run.info.run_id)

    def find(self, handle: str) -> str | None:
        """Id of the run that was opened with this handle, if any."""
        run_id, at = read_handle(handle)
        wanted = f"tags.`{RUN_ID}` = '{run_id}' and attributes.start_time = {at}"
        found = self._client.search_runs([self.experiment], wanted, max_results=1)
        return str(found[0].info.run_id) if found else None

    def log(
        self, run: str, params: Mapping[str, Any], metrics: Sequence[Sequence[Any]], tags: Mapping[str, str], at: int
    ) -> None:
        """Parameters (long ones are cut), values as (name, value, step), tags; what is logged twice is there once."""
        from mlflow.entities import Metric, Param, RunTag

        self._client.log_batch(
            run,
            params=[Param(_name(key), str(value)[:PARAM_LENGTH]) for key, value in params.items()],
            metrics=[Metric(_name(name), float(value), at, int(step)) for name, value, step in metrics],
            tags=[RunTag(key, _cut(value)) for key, value in tags.items()],
        )  # it makes more than one request of what is too much for one

    def file(self, run: str, path: str, folder: str | None) -> None:
        """A file, or the files of a folder, to keep with a run."""
        if Path(path).is_dir():
            self._client.log_artifacts(run, path, folder)
        else:
            self._client.log_artifact(run, path, folder)

    def datasets(self, run: str, read: Sequence[Sequence[Any]]) -> None:
        """Data sets that the run read, as (name, digest, numbers, context)."""
        from mlflow.entities import Dataset, DatasetInput, InputTag

        self._client.log_inputs(
            run,
            [
                DatasetInput(
                    Dataset(
                        name, digest[:36], source_type="kgqa", source=f"kgqa:{digest}", profile=json.dumps(numbers)
                    ),
                    [InputTag("mlflow.data.context", context)],
                )
                for name, digest, numbers, context in read
            ],
        )

    def model(self, run: str, reference: Mapping[str, Any]) -> None:
        """Log the system that a reference means as a model of a run, once; what it refers to stays where it is."""
        from mlflow.entities import LoggedModelOutput

        logged = self._logged(run)
        if logged is None:
            tags = {RUN_ID: str(reference["run"])}
            logged = self._client.create_logged_model(self.experiment, MODEL, run, tags=tags, model_type="agent")
        if logged.status != "READY":
            own = {"run_id": run, "model_id": logged.model_id, "model_uuid": logged.model_id}
            with scratch_folder(None, "kgqa-model") as scratch:
                folder, place = scratch / MODEL, logged.artifact_location
                save_model(folder, reference, self._templates, artifact_path=place, **own)
                self._client.log_model_artifacts(logged.model_id, str(folder))
            self._client.finalize_logged_model(logged.model_id, "READY")
        outputs = self._client.get_run(run).outputs
        if logged.model_id not in [one.model_id for one in (outputs.model_outputs if outputs else ())]:
            self._client.log_outputs(run, [LoggedModelOutput(logged.model_id, step=0)])

    def register(self, run: str, model: str, folder: str, tags: Mapping[str, str], description: str) -> None:
        """Make the files that a run keeps under `folder` a version of a registered model.

        Without a folder it is the model that the run logged, or all its files where it logged none.
        """
        from mlflow.exceptions import MlflowException

        model = model_name(model)
        try:
            self._client.create_registered_model(model)
        except MlflowException as fault:
            if fault.error_code != "RESOURCE_ALREADY_EXISTS":
                raise
        logged = None if folder else self._logged(run)
        if logged is not None and logged.status == "READY":
            source, own = str(logged.artifact_location), {"model_id": logged.model_id}
        else:
            uri, own = str(self._client.get_run(run).info.artifact_uri), {}
            source = f"{uri}/{folder}" if folder else uri
        there = self._client.search_model_versions(f"name = '{model}' and run_id = '{run}'")
        if all(version.source != source for version in there):
            cut = {key: _cut(text) for key, text in tags.items()}
            made = self._client.create_model_version(model, source, run, tags=cut, description=_cut(description), **own)
            if own:  # by which the page of the logged model links to its version
                said = json.dumps([{"name": model, "version": made.version}])
                self._client.set_logged_model_tags(own["model_id"], {"mlflow.modelVersions": said})

    def _logged(self, run: str) -> Any:
        """The model that a run logged, if any."""
        found = self._client.search_logged_models([self.experiment], filter_string=f"source_run_id = '{run}'")
        return next((one for one in found if one.name == MODEL), None)

    def aliases(self, model: str, truth: str) -> None:
        """Aliases of a registered model follow `truth`: a JSON file, alias → `{"run_id"}` or null."""
        model = model_name(model)
        wanted = json.loads(Path(truth).read_text(encoding="utf-8"))
        versions = {
            version.tags.get(RUN_ID): version.version
            for version in self._client.search_model_versions(f"name = '{model}'", max_results=10_000)
        }
        for alias in ("champion", "previous"):
            bearer = (wanted.get(alias) or {}).get("run_id")
            if bearer in versions:
                self._client.set_registered_model_alias(model, alias, str(versions[bearer]))

    def end(self, run: str, status: str, at: int) -> None:
        """Close a run as FINISHED, FAILED or KILLED."""
        self._client.set_terminated(run, status, at)

    def kill(self, run_id: str) -> int:
        """Close what a dead process left open of a run of ours as KILLED; how many MLflow runs that were."""
        wanted = f"tags.`{RUN_ID}` = '{run_id}' and attributes.status = 'RUNNING'"
        left = self._client.search_runs([self.experiment], wanted, max_results=1000)
        for run in left:
            now = int(time.time() * 1000)
            tags = {"kgqa.status": "killed", "kgqa.note": "the process died; closed by a later run"}
            self.log(run.info.run_id, {}, (), tags, now)
            self.end(run.info.run_id, "KILLED", now)
        return len(left)

    def _open_experiment(self, home: Home) -> str:
        found = self._client.get_experiment_by_name(EXPERIMENT)
        if found is not None:
            if found.tags.get(KIND) is None:
                from mlflow.exceptions import MlflowException

                with contextlib.suppress(MlflowException):  # only how pages open depends on it
                    self._client.set_experiment_tag(found.experiment_id, KIND, MODELS)
            return str(found.experiment_id)
        from mlflow.store.db.db_types import DATABASE_ENGINES

        opened_here = self.uri.partition("://")[0].partition("+")[0] in DATABASE_ENGINES
        place = (home.root / "mlflow" / "artifacts").as_uri() if opened_here else None  # else `mlruns` where we work
        return str(self._client.create_experiment(EXPERIMENT, artifact_location=place, tags={KIND: MODELS}))


def model_name(text: str) -> str:
    """A name that MLflow's registry, a file system and a filter take: `kgqa-my graph/v2` → `kgqa-my-graph-v2`."""
    short = re.sub(r"[^\w.-]+", "-", text).strip("-.").encode("utf-8", "ignore")[:200]
    return short.decode("utf-8", "ignore") or "kgqa"


def _name(text: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "_-. /:" else "_" for letter in text)


def _cut(text: Any) -> str:
    return str(text)[:TAG_LENGTH]
