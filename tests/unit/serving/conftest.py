"""A small graph, opened once for the tests of what serves it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kgqa_core.serving.graph_view import GraphView
from tests.support.served_graph import GraphFolders, films


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> GraphFolders:
    """The graph of films and countries."""
    return films(tmp_path_factory.mktemp("films"))


@pytest.fixture(scope="module")
def view(folders: GraphFolders) -> Iterator[GraphView]:
    """The same graph, opened."""
    found = folders.view()
    yield found
    found.close()
