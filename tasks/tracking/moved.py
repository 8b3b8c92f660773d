"""MLflow's records of a home that was copied or moved: they name each file by its absolute path, and must follow."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
from pathlib import Path
from urllib.parse import unquote, urlsplit

import yaml

from kgqa_core.store.artifacts import Home

log = logging.getLogger("kgqa.tracking")
LOCATIONS = (
    ("experiments", "artifact_location"), ("runs", "artifact_uri"), ("logged_models", "artifact_location"),
    ("model_versions", "source"), ("model_versions", "storage_location"), ("trace_tags", "value"),
)  # fmt: skip
"""Columns of MLflow's database that hold addresses of files."""


def follow_home(home: Home, database: Path, experiment: str) -> None:
    """Let the records of a home's own database name the files that lie in this home; changes nothing where they do.

    experiment: whose files lie in the home.  Call it with the lock of the store held.
    """
    new = (home.root / "mlflow" / "artifacts").as_uri()
    with contextlib.closing(sqlite3.connect(database)) as connection, connection:
        row = connection.execute("SELECT artifact_location FROM experiments WHERE name = ?", [experiment]).fetchone()
        old = row[0] if row is not None else new
        if old == new or not (old.startswith("file://") and old.endswith("/mlflow/artifacts")):
            return
        known = "SELECT t.name, c.name FROM sqlite_master t, pragma_table_info(t.name) c WHERE t.type = 'table'"
        columns = set(connection.execute(known))
        for file in (home.root / "mlflow" / "artifacts" / "models").glob("*/artifacts/MLmodel"):
            _follow_model(file, old, new)
        for table, column in LOCATIONS:
            if (table, column) in columns:
                connection.execute(
                    f"UPDATE {table} SET {column} = ? || substr({column}, ?) WHERE substr({column}, 1, ?) = ?",
                    [new, len(old) + 1, len(old), old],
                )
    log.info("MLflow's records of %s followed the home to %s", old, home.root)


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
