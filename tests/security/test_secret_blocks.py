"""Secrets come from the environment or a Secret block of Prefect, and from no profile."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
from prefect.blocks.system import Secret

from kgqa_core.config import make_profile
from kgqa_core.errors import ConfigError
from kgqa_core.llm.faults import shown
from tasks.secrets import load_secrets
from tests.support.prefect_server import on_shared_server

KEY = "block-canary-4711"


@pytest.fixture(scope="module", autouse=True)
def prefect_server() -> Iterator[None]:
    """The tests' Prefect server, with blocks."""
    with on_shared_server():
        Secret(value=KEY).save("lab-key")
        Secret(value={"key": "a", "secret": KEY}).save("options")
        Secret(value="").save("empty")
        yield


def wants(**secrets: str) -> Any:
    return make_profile({"operations": {"secrets": secrets}})


def test_a_block_fills_the_variable_that_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_KEY", "")
    monkeypatch.setenv("KGQA_STORE_OPTIONS", "")
    profile = wants(LAB_KEY="lab-key", KGQA_STORE_OPTIONS="options")
    load_secrets(profile)
    assert os.environ["LAB_KEY"] == KEY
    assert json.loads(os.environ["KGQA_STORE_OPTIONS"]) == {"key": "a", "secret": KEY}
    assert KEY not in profile.model_dump_json()


def test_the_environment_goes_before_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_KEY", "mine")
    load_secrets(wants(LAB_KEY="no such block"))
    assert os.environ["LAB_KEY"] == "mine"


@pytest.mark.parametrize(("block", "said"), [("other", "has no Secret block 'other'"), ("empty", "is empty")])
def test_a_block_that_is_not_there_is_named_with_the_way_out(
    block: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LAB_KEY", raising=False)
    with pytest.raises(ConfigError, match=f"operations.secrets.LAB_KEY: .*{said}.*or set LAB_KEY in the environment"):
        load_secrets(wants(LAB_KEY=block))
    assert "LAB_KEY" not in os.environ


@pytest.mark.parametrize(
    "variable", ["LD_PRELOAD", "PYTHONPATH", "PATH", "lab_key", "KGQA_HOME", "X=Y_KEY", "A\nB_KEY"]
)
def test_only_variables_for_secrets_are_filled(variable: str) -> None:
    with pytest.raises(ConfigError, match="is not a variable for a secret"):
        load_secrets(wants(**{variable: "lab-key"}))
    assert KEY not in os.environ.get(variable, "")


@pytest.mark.parametrize("address", [
    "http://me:canary@127.0.0.1/v1", "http://canary@127.0.0.1/v1", "http://127.0.0.1/v1?api_key=canary",
    "http://127.0.0.1/v1?x=1&access_token=canary",
])  # fmt: skip
@pytest.mark.parametrize("named", [False, True])
def test_an_address_with_a_secret_has_no_place_in_a_profile(address: str, named: bool) -> None:
    llm = {"endpoints": {"lab": {"base_url": address}}} if named else {"base_url": address}
    with pytest.raises(ConfigError, match="llm.*base_url.*environment variable") as caught:
        load_secrets(make_profile({"llm": llm}))
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("address", [
    "me:canary@host/v1", "http://me:canary@[host/v1", "me:canary@http://host/v1", "http://me:can/ary@host/v1",
    "http://me:canary", "canary", "ftp://me:canary@host", "http://me@host/x?canary@", "http://host/v1/canary@x",
])  # fmt: skip
@pytest.mark.parametrize("named", [False, True])
def test_an_address_that_may_hide_a_password_is_refused_and_never_shown(address: str, named: bool) -> None:
    llm = {"endpoints": {"lab": {"base_url": address}}} if named else {"base_url": address}
    with pytest.raises(ConfigError, match="llm.*base_url") as caught:
        load_secrets(make_profile({"llm": llm}))
    for part in ("canary", "can/", "ary@"):
        assert part not in str(caught.value) and ("@" not in address or part not in shown(address))


def test_an_address_with_a_version_is_fine() -> None:
    address = "https://lab.test/v1?api-version=2026-01-01"
    profile = make_profile({"llm": {"base_url": address}})
    load_secrets(profile)
    assert profile.llm.base_url == address and shown(address) == address.partition("?")[0]
