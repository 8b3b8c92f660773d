"""What cases that run flows share: a Prefect server, and a database of MLflow whose files lie outside the worlds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.command import ROOT
from tests.support.prefect_server import shared_environment

_OPEN = """
from kgqa_core.store.artifacts import Home
from tasks.tracking.mlflow_store import MlflowStore

MlflowStore(Home.current().prepare())
"""


def environment_of_flows(folder: Path) -> dict[str, str]:
    """The environment of such cases; MLflow's database is made in a folder."""
    shared = shared_environment() | {"MLFLOW_TRACKING_URI": f"sqlite:///{folder}/mlflow.db"}
    home = {"KGQA_HOME": str(folder / "home")}
    subprocess.run([sys.executable, "-c", _OPEN], cwd=ROOT, env={**os.environ, **shared, **home}, check=True)
    return shared
