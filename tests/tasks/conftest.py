"""What several modules of the tests of tasks work with."""

from __future__ import annotations

import os

import pytest

from kgqa_core.store.artifacts import Home
from tasks.tracking.mlflow_store import MlflowStore


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> tuple[Home, MlflowStore]:
    """A store in SQLite; opening it the first time takes seconds."""
    home = Home(tmp_path_factory.mktemp("mlflow-home")).prepare()
    os.environ.pop("MLFLOW_TRACKING_URI", None)
    return home, MlflowStore(home)
