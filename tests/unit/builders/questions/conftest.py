"""The small graph of films and countries, built once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.question_graph import build_graph


@pytest.fixture(scope="session")
def film_kg(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the graph."""
    return build_graph(tmp_path_factory.mktemp("questions"))
