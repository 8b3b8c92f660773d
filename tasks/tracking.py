"""What is remembered of a run outside its home: one interface, and MLflow behind it.

MLflow is imported here and nowhere else.  Parameters are the dotted keys of the profile; metrics of a training step
keep their name (`loss`, `dev_hits_at_1`), scores are called `experiment/split/metric`; every run is tagged with the
flow run, the digest of the graph and the git commit.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from kgqa_core.artifacts import Home

log = logging.getLogger("kgqa.tracking")
EXPERIMENT = "kgqa"
PARAM_LENGTH = 500


class Tracker(Protocol):
    """Where runs, their parameters, metrics and files are remembered.  experiment: its id, for links."""

    experiment: str | None

    def start(self, name: str, tags: Mapping[str, str], parent: str | None = None) -> str | None:
        """Open a run, nested under `parent` where given; its id, or None when nothing is remembered."""
        ...

    def params(self, run: str | None, values: Mapping[str, Any]) -> None:
        """Parameters of a run."""
        ...

    def metrics(self, run: str | None, values: Sequence[tuple[str, float, int]]) -> None:
        """Measured values as (name, value, step)."""
        ...

    def tags(self, run: str | None, values: Mapping[str, str]) -> None:
        """Tags of a run."""
        ...

    def file(self, run: str | None, path: Path, folder: str | None = None) -> None:
        """A file, or the files of a folder, to keep with a run."""
        ...

    def dataset(self, run: str | None, name: str, digest: str, counts: Mapping[str, Any], context: str) -> None:
        """A data set that the run read."""
        ...

    def register(self, run: str | None, model: str, folder: str, tags: Mapping[str, str]) -> None:
        """Make the files that a run keeps under `folder` a version of a registered model."""
        ...

    def end(self, run: str | None, *, failed: bool = False) -> None:
        """Close a run."""
        ...


class NoTracker:
    """Remembers nothing."""

    experiment: str | None = None

    def start(self, name: str, tags: Mapping[str, str], parent: str | None = None) -> str | None:
        """No run is opened."""
        return None

    def params(self, run: str | None, values: Mapping[str, Any]) -> None:
        """Ignored."""

    def metrics(self, run: str | None, values: Sequence[tuple[str, float, int]]) -> None:
        """Ignored."""

    def tags(self, run: str | None, values: Mapping[str, str]) -> None:
        """Ignored."""

    def file(self, run: str | None, path: Path, folder: str | None = None) -> None:
        """Ignored."""

    def dataset(self, run: str | None, name: str, digest: str, counts: Mapping[str, Any], context: str) -> None:
        """Ignored."""

    def register(self, run: str | None, model: str, folder: str, tags: Mapping[str, str]) -> None:
        """Ignored."""

    def end(self, run: str | None, *, failed: bool = False) -> None:
        """Ignored."""


def tracking_uri(home: Home) -> str:
    """`MLFLOW_TRACKING_URI`, else an SQLite store in the home."""
    return os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{home.root / 'mlflow' / 'mlflow.db'}"


class MlflowTracker:
    """Remembers runs in MLflow: the server that `MLFLOW_TRACKING_URI` names, else an SQLite store in the home."""

    def __init__(self, home: Home) -> None:
        for name, value in (
            ("MLFLOW_DISABLE_TELEMETRY", "true"),
            ("MLFLOW_LOGGING_LEVEL", "ERROR"),
            ("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2"),
            ("MLFLOW_HTTP_REQUEST_TIMEOUT", "10"),
            ("GIT_PYTHON_REFRESH", "quiet"),
        ):
            os.environ.setdefault(name, value)
        for name in ("mlflow", "alembic"):
            logging.getLogger(name).setLevel(logging.ERROR)
        from mlflow import MlflowClient

        with home.locked("mlflow", "opening the MLflow store"):  # its first opening creates tables
            self._client = MlflowClient(tracking_uri=tracking_uri(home))
            self.experiment: str | None = self._open_experiment(home)

    def start(self, name: str, tags: Mapping[str, str], parent: str | None = None) -> str | None:
        """Open a run, nested under `parent` where given, and return its id."""
        nested = {"mlflow.parentRunId": parent} if parent else {}
        run = self._client.create_run(self.experiment or "0", run_name=name, tags={**tags, **nested})
        return str(run.info.run_id)

    def params(self, run: str | None, values: Mapping[str, Any]) -> None:
        """Parameters of a run; long values are cut."""
        from mlflow.entities import Param

        rows = [Param(_name(key), str(value)[:PARAM_LENGTH]) for key, value in values.items()]
        for start in range(0, len(rows), 100):
            self._client.log_batch(run or "", params=rows[start : start + 100])

    def metrics(self, run: str | None, values: Sequence[tuple[str, float, int]]) -> None:
        """Measured values as (name, value, step)."""
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        rows = [Metric(_name(name), float(value), now, step) for name, value, step in values]
        for start in range(0, len(rows), 1000):
            self._client.log_batch(run or "", metrics=rows[start : start + 1000])

    def tags(self, run: str | None, values: Mapping[str, str]) -> None:
        """Tags of a run."""
        from mlflow.entities import RunTag

        self._client.log_batch(run or "", tags=[RunTag(key, value) for key, value in values.items()])

    def file(self, run: str | None, path: Path, folder: str | None = None) -> None:
        """A file, or the files of a folder, to keep with a run."""
        if path.is_dir():
            self._client.log_artifacts(run or "", str(path), folder)
        else:
            self._client.log_artifact(run or "", str(path), folder)

    def dataset(self, run: str | None, name: str, digest: str, counts: Mapping[str, Any], context: str) -> None:
        """A data set that the run read."""
        import json

        from mlflow.entities import Dataset, DatasetInput, InputTag

        profile = json.dumps({key: value for key, value in counts.items() if isinstance(value, int | float)})
        source = Dataset(name=name, digest=digest[:36], source_type="kgqa", source=f"kgqa:{digest}", profile=profile)
        self._client.log_inputs(run or "", [DatasetInput(source, [InputTag("mlflow.data.context", context)])])

    def register(self, run: str | None, model: str, folder: str, tags: Mapping[str, str]) -> None:
        """Make the files that a run keeps under `folder` a version of a registered model."""
        from mlflow.exceptions import MlflowException

        try:
            self._client.create_registered_model(model)
        except MlflowException as fault:
            if fault.error_code != "RESOURCE_ALREADY_EXISTS":
                raise
        uri = self._client.get_run(run or "").info.artifact_uri
        self._client.create_model_version(model, f"{uri}/{folder}", run, tags=dict(tags))

    def end(self, run: str | None, *, failed: bool = False) -> None:
        """Close a run."""
        self._client.set_terminated(run or "", "FAILED" if failed else "FINISHED")

    def _open_experiment(self, home: Home) -> str:
        found = self._client.get_experiment_by_name(EXPERIMENT)
        if found is not None:
            return str(found.experiment_id)
        local = None if os.environ.get("MLFLOW_TRACKING_URI") else (home.root / "mlflow" / "artifacts").as_uri()
        kind = {"mlflow.experimentKind": "custom_model_development"}  # else its UI shows the pages for chat traces
        return str(self._client.create_experiment(EXPERIMENT, artifact_location=local, tags=kind))


def open_tracker(home: Home) -> Tracker:
    """MLflow, or a tracker that remembers nothing when its store cannot be reached (said in the log)."""
    try:
        return MlflowTracker(home)
    except Exception as fault:
        log.warning("MLflow at %s cannot be used (%s); this run is not tracked", tracking_uri(home), _first_line(fault))
        return NoTracker()


def _first_line(fault: Exception) -> str:
    return str(fault).strip().splitlines()[0][:200] if str(fault).strip() else type(fault).__name__


def _name(text: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "_-. /:" else "_" for letter in text)
