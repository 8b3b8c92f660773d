"""A lost Prefect server: what is said, what counts as one, and whether it is away now."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import httpx
import pytest
from prefect.client.orchestration import get_client
from prefect.settings import PREFECT_API_URL, PREFECT_CLIENT_MAX_RETRIES, temporary_settings

from tasks.engine import server_lost
from tests.support.command import closed_port


@pytest.fixture
def gone(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Address of a Prefect server that nobody answers at; what is heard is heard by a new watch."""
    monkeypatch.setattr(logging, "raiseExceptions", logging.raiseExceptions)
    heard = logging.getLogger("prefect.client")
    before, level = list(heard.handlers), heard.level
    heard.handlers = []
    api = f"http://127.0.0.1:{closed_port()}/api"
    with temporary_settings({PREFECT_API_URL: api, PREFECT_CLIENT_MAX_RETRIES: 0}):
        server_lost.watch()
        yield api
    heard.handlers = before
    heard.setLevel(level)


def attempt() -> None:
    """What Prefect's client writes before it tries again."""
    try:
        raise httpx.ConnectError("[Errno 111] Connection refused")
    except httpx.ConnectError:
        logging.getLogger("prefect.client").debug(
            "Encountered retryable exception during request. Another attempt will be made in 2s.", exc_info=True
        )


def fault_of(url: str) -> Exception:
    try:
        httpx.get(url)
    except httpx.ConnectError as fault:
        return fault
    raise AssertionError("somebody answers")


def test_a_loss_is_said_once_with_the_address(gone: str, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(3):
        attempt()
    said = [one.getMessage() for one in caplog.records if one.name == "kgqa.tracking"]
    assert len(said) == 1 and f"{gone} is away (" in said[0] and "Connection refused" in said[0]


def test_a_server_that_fails_is_lost_too(gone: str, caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("prefect.client").debug(
        "Received response with retryable status code 500. Another attempt will be made in 2s. This is attempt 1/5."
    )
    said = [one.getMessage() for one in caplog.records if one.name == "kgqa.tracking"]
    assert len(said) == 1 and f"{gone} fails (retryable status code 500)" in said[0]
    request = httpx.Request("POST", f"{gone}/logs/")
    for status, lost in ((500, True), (503, True), (404, False)):
        fault = httpx.HTTPStatusError("", request=request, response=httpx.Response(status, request=request))
        assert server_lost.is_loss(fault) is lost


def test_a_server_that_is_busy_for_a_moment_is_not_lost(gone: str, caplog: pytest.LogCaptureFixture) -> None:
    said = []
    for number in range(1, 5):
        logging.getLogger("prefect.client").debug(
            f"Received response with retryable status code 503. Another attempt will be made in 2s. This is attempt "
            f"{number}/5."
        )
        said.append(len([one for one in caplog.records if one.name == "kgqa.tracking"]))
    assert said == [0, 0, 1, 1], "said once, when the third try of a request was in vain"


def test_an_ordinary_line_of_the_client_is_no_loss(gone: str, caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("prefect.client").debug("Connecting to API at %s", gone)
    assert not [one for one in caplog.records if one.name == "kgqa.tracking"]
    assert not server_lost.away()


def test_a_request_of_prefects_client_that_finds_nobody_is_a_loss(gone: str) -> None:
    with pytest.raises(httpx.ConnectError) as raised, get_client(sync_client=True) as client:
        client.read_flows()
    assert server_lost.is_loss(raised.value)


def test_only_requests_to_the_server_count_also_as_causes(gone: str) -> None:
    wrapped = RuntimeError("the stage could not be closed")
    wrapped.__cause__ = fault_of(f"{gone}/flows")
    assert server_lost.is_loss(wrapped)
    assert not server_lost.is_loss(fault_of(f"http://127.0.0.1:{closed_port()}/v1/chat/completions"))
    assert not server_lost.is_loss(RuntimeError("something else")) and not server_lost.is_loss(None)


def test_a_refused_login_is_told_apart_from_other_answers(gone: str) -> None:
    def refused(address: str, status: int) -> httpx.HTTPStatusError:
        request = httpx.Request("GET", address)
        return httpx.HTTPStatusError("no", request=request, response=httpx.Response(status, request=request))

    wrapped = RuntimeError("no flow run was made")
    wrapped.__cause__ = refused(f"{gone}/flows/", 401)
    assert server_lost.wants_login(wrapped) and not server_lost.is_loss(wrapped)
    assert not server_lost.wants_login(refused(f"{gone}/flows/", 500)) and not server_lost.wants_login(None)
    assert not server_lost.wants_login(refused("http://127.0.0.1:9/v1/models", 401)), (
        "an endpoint's login is another matter"
    )


def test_a_server_that_was_lost_and_does_not_answer_is_away(gone: str) -> None:
    attempt()
    assert server_lost.away()


def test_a_loss_in_an_earlier_run_of_the_process_does_not_count(gone: str) -> None:
    attempt()
    server_lost.watch()
    assert not server_lost.away()


def test_credentials_of_an_address_are_not_said(gone: str) -> None:
    with temporary_settings({PREFECT_API_URL: gone.replace("://", "://me:secret@")}):
        assert server_lost.address() == gone
