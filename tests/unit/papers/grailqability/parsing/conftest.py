"""The small world, made once."""

from __future__ import annotations

import pytest

from tests.support.parsing import World, make_world


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Folders of its graph and examples."""
    return make_world(tmp_path_factory.mktemp("world"))
