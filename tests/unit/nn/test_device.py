"""The device that a training asks for."""

from __future__ import annotations

import pytest

from kgqa_core.errors import ConfigError
from kgqa_core.nn.device import pick_device


@pytest.mark.parametrize("section", ["retriever", "rewriter"])
def test_device_that_is_not_there_is_named(section: str) -> None:
    assert pick_device("cpu", section).type == "cpu"
    with pytest.raises(ConfigError, match=f"{section}.device 'tpux' is unknown"):
        pick_device("tpux", section)
    with pytest.raises(ConfigError, match=f"{section}.device 'cuda:63' is not on this machine"):
        pick_device("cuda:63", section)
