"""MLflow's records of a home that was copied or moved: they name each file by its absolute path, and must follow."""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
from pathlib import Path
from urllib.parse import unquote, urlsplit

import yaml

from kgqa_core.store.artifacts import Home

log = logging.getLogger("kgqa.tracking")
LOCATIONS = (
    ("runs", "artifact_uri"), ("logged_models", "artifact_location"), ("model_versions", "source"),
    ("model_versions", "storage_location"), ("trace_tags", "value"), ("experiments", "artifact_location"),
)  # fmt: skip
"""Columns of MLflow's database that hold addresses of files; by the last it is known whether they follow the home."""


def moved_from(home: Home) -> list[str]:
    """Where the home was when the records of its own database were written, if that is another place than now."""
    database, new = home.root / "mlflow" / "mlflow.db", (home.root / "mlflow" / "artifacts").as_uri()
    used = os.environ.get("MLFLOW_TRACKING_URI") in (None, "", f"sqlite:///{database}")
    return [_home(old) for old in _elsewhere(database, new)] if used and database.is_file() else []


def follow_home(home: Home) -> list[str]:
    """Let the records of a home's own database name the files that lie in this home; where they lay before, if so."""
    database, new = home.root / "mlflow" / "mlflow.db", (home.root / "mlflow" / "artifacts").as_uri()
    before = moved_from(home)
    if not before:
        return []
    with home.locked("mlflow", "opening the MLflow store"):
        for old in _elsewhere(database, new):
            for file in (home.root / "mlflow" / "artifacts" / "models").glob("*/artifacts/MLmodel"):
                _follow_model(file, old, new)
            with contextlib.closing(sqlite3.connect(database)) as connection, connection:
                for table, column in LOCATIONS:
                    with contextlib.suppress(sqlite3.OperationalError):  # an older MLflow has no such column
                        connection.execute(
                            f"UPDATE {table} SET {column} = ? || substr({column}, ?) WHERE substr({column}, 1, ?) = ?",
                            [new, len(old) + 1, len(old), old],
                        )
            log.info("MLflow's records of %s followed the home to %s", old, home.root)
    return before


def _elsewhere(database: Path, new: str) -> list[str]:
    """Folders of homes at other places whose files the experiments of a database name."""
    query = (
        "SELECT DISTINCT artifact_location FROM experiments WHERE artifact_location LIKE 'file://%/mlflow/artifacts'"
    )
    with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(database)) as connection:
        return [old for (old,) in connection.execute(query) if old != new]
    return []  # busy, or no database of MLflow yet: whoever opens the store says so


def _follow_model(file: Path, old: str, new: str) -> None:
    """Lets the description of a logged model name its files and its system's home where they are now."""
    model = yaml.safe_load(file.read_text(encoding="utf-8"))
    if str(model.get("artifact_path", "")).startswith(old):
        model["artifact_path"] = new + model["artifact_path"].removeprefix(old)
    config = model["flavors"]["python_function"].get("config") or {}
    if config.get("home") == _home(old):
        config["home"] = _home(new)
    file.write_text(yaml.safe_dump(model, default_flow_style=False), encoding="utf-8")


def _home(artifacts: str) -> str:
    return str(Path(unquote(urlsplit(artifacts).path)).parents[1])
