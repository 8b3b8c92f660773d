"""What several rooms' tests share."""

from __future__ import annotations

import pytest

from tests.support.small_world import World


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """The small world, on disk."""
    return World(tmp_path_factory.mktemp("world"))
