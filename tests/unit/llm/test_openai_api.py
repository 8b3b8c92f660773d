"""The endpoint backend against a real server on loopback that misbehaves."""

from __future__ import annotations

import asyncio
import json
import logging
import time

import pytest

from kgqa_core.config import Endpoint, LlmOptions
from kgqa_core.errors import EndpointError, ModelError
from kgqa_core.http_clients import retry_after
from kgqa_core.llm.factory import load_model
from kgqa_core.llm.faults import UnreadableReply
from kgqa_core.llm.openai_api import OpenAIModel, read_reply
from kgqa_core.llm.protocol import Completion, GenerationParams
from tests.support.chat_server import ChatServer, Fault
from tests.support.command import closed_port

PARAMS = GenerationParams(max_new_tokens=8)


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def make(server: ChatServer, **given: object) -> OpenAIModel:
    options: dict[str, object] = {"timeout_seconds": 5.0, "retries": 2} | given
    return OpenAIModel("stub", LlmOptions.model_validate({"base_url": server.base_url, **options}), first_wait=0.01)


def test_outputs_come_in_the_order_of_the_prompts_and_equal_prompts_are_asked_once() -> None:
    with ChatServer() as server:
        server.always("p1", Fault(delay=0.2))
        prompts = [f"p{number % 5}" for number in range(12)]
        got: list[int] = []
        out = make(server).generate(prompts, PARAMS, on_result=lambda place, _: got.append(place))
    assert [completion.text for completion in out] == [f"echo {prompt}" for prompt in prompts]
    assert sorted(server.prompts) == ["p0", "p1", "p2", "p3", "p4"]
    assert sorted(got) == list(range(12))
    assert out[0] == Completion("echo p0", "stop", 1, 2)


def test_parameters_and_model_reach_the_server() -> None:
    with ChatServer() as server:
        make(server).generate(["x"], GenerationParams(max_new_tokens=7, seed=3, stop=("\n",)))
    body = server.bodies[0]
    assert (body["model"], body["max_tokens"], body["temperature"], body["seed"], body["stop"]) == (
        "stub",
        7,
        0,
        3,
        ["\n"],
    )
    assert body["messages"] == [{"role": "user", "content": "x"}]


@pytest.mark.parametrize(
    ("allowed", "prompts"), [(3, 15), (150, 300)], ids=["few", "more than the library keeps connections"]
)
def test_as_many_requests_at_once_as_are_allowed_and_never_more(allowed: int, prompts: int) -> None:
    with ChatServer() as server:
        model = make(server, concurrency=allowed, timeout_seconds=120.0, retries=0)
        model.generate(["first"], PARAMS)  # goes alone
        server.gate = allowed  # would never open if fewer were sent
        out = model.generate([f"p{number}" for number in range(prompts)], PARAMS)
    assert [completion.finish for completion in out] == ["stop"] * prompts and server.max_at_once == allowed


@pytest.mark.parametrize(
    "fault",
    [Fault(status=429), Fault(status=500), Fault(status=503), Fault(status=408), Fault(status=409), Fault(hang_up=True),
     Fault(cut=True), Fault(garbage=True), Fault(choices=False), Fault(delay=1.0)],
    ids=["429", "500", "503", "408", "409", "hang-up", "cut", "garbage", "no choices", "slow"],
)  # fmt: skip
def test_a_passing_fault_is_tried_again(fault: Fault) -> None:
    with ChatServer() as server:
        server.fail("b", fault)
        out = make(server, timeout_seconds=0.4).generate(["a", "b", "c"], PARAMS)
    assert [completion.text for completion in out] == ["echo a", "echo b", "echo c"]
    assert server.prompts.count("b") == 2


def test_retry_after_is_waited_for() -> None:
    with ChatServer() as server:
        server.fail("a", Fault(status=429, headers={"Retry-After": "0.5"}))
        make(server).generate(["a"], PARAMS)
    assert server.times[1] - server.times[0] >= 0.45


def test_retry_after_reads_seconds_milliseconds_and_dates() -> None:
    assert retry_after({"retry-after": "2"}) == 2.0
    assert retry_after({"retry-after-ms": "250"}) == 0.25
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0.0
    assert retry_after({"retry-after": "soon"}) is None
    assert retry_after({}) is None


def test_one_prompt_that_keeps_failing_does_not_lose_the_others() -> None:
    with ChatServer() as server:
        server.always("bad", Fault(status=500))
        out = make(server).generate(["a", "bad", "c"], PARAMS)
    assert [completion.finish for completion in out] == ["stop", "error", "stop"]
    assert out[1].text == "" and "status 500" in (out[1].error or "")
    assert server.prompts.count("bad") == 3


def test_a_bad_request_is_not_tried_again() -> None:
    with ChatServer() as server:
        server.always("bad", Fault(status=400))
        out = make(server).generate(["a", "bad"], PARAMS)
    assert out[1].finish == "error" and server.prompts.count("bad") == 1


def test_when_an_endpoint_fails_on_several_prompts_and_never_answered_it_is_named() -> None:
    with ChatServer() as server:
        server.always("", Fault(status=500))
        with pytest.raises(EndpointError, match=f"{server.base_url}.*status 500"):
            make(server, retries=0).generate(["a", "b", "c"], PARAMS)


def test_a_prompt_that_fails_alone_is_not_taken_for_a_dead_endpoint() -> None:
    with ChatServer() as server:
        server.always("bad", Fault(status=500))
        model = make(server, retries=0)
        assert model.generate(["bad"], PARAMS)[0].finish == "error"
        assert model.generate(["good"], PARAMS)[0].finish == "stop"
        out = model.generate(["bad", "bad 2", "bad 3", "bad 4"], PARAMS)
    assert [completion.finish for completion in out] == ["error"] * 4


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_refusal_of_key_or_model_stops_at_the_first_request(status: int) -> None:
    with ChatServer() as server:
        server.always("", Fault(status=status))
        with pytest.raises(EndpointError, match=f"status {status}"):
            make(server).generate(["a", "b", "c"], PARAMS)
    assert len(server.prompts) == 1


def test_an_endpoint_that_is_down_is_named_with_the_way_out() -> None:
    url = f"http://127.0.0.1:{closed_port()}/v1"
    model = OpenAIModel("m", LlmOptions(base_url=url, retries=1, timeout_seconds=2), first_wait=0.01)
    started = time.monotonic()
    with pytest.raises(EndpointError, match=rf"{url}.*llm\.base_url"):
        model.generate([f"p{number}" for number in range(100)], PARAMS)
    assert time.monotonic() - started < 5


def test_finish_reasons() -> None:
    with ChatServer() as server:
        server.fail("cut", Fault(finish="length"))
        server.fail("no", Fault(refusal="I cannot help"))
        server.fail("filter", Fault(finish="content_filter"))
        server.fail("void", Fault(content="  "))
        out = make(server).generate(["cut", "no", "filter", "void"], PARAMS)
    assert [completion.finish for completion in out] == ["length", "refusal", "refusal", "empty"]


def test_the_key_is_sent_but_never_shown(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    caplog.set_level(logging.DEBUG)
    with ChatServer() as server:
        server.always("", Fault(status=500, headers={}))
        with pytest.raises(EndpointError) as caught:
            make(server, retries=1).generate([f"{n} sk-very-secret" for n in range(3)], PARAMS)
    assert server.headers[0]["authorization"] == "Bearer sk-very-secret"
    assert "sk-very-secret" not in str(caught.value)
    mine = [record for record in caplog.records if record.name.startswith("kgqa")]
    assert mine and not any("sk-very-secret" in record.getMessage() for record in mine)


def test_a_local_server_needs_no_key_and_a_vendor_does() -> None:
    with ChatServer() as server:
        assert make(server).generate(["a"], PARAMS)[0].text == "echo a"
    with pytest.raises(EndpointError, match="OPENAI_API_KEY"):
        OpenAIModel("m", LlmOptions())


def test_an_address_with_a_password_is_shown_without_it() -> None:
    model = OpenAIModel("m", LlmOptions(base_url="http://user:secret@127.0.0.1:1/v1?token=x", retries=0))
    assert model.address == "http://127.0.0.1:1/v1"
    with pytest.raises(EndpointError, match="http"):
        OpenAIModel("m", LlmOptions(base_url="localhost:8000"))


def test_works_inside_a_running_event_loop() -> None:
    async def inside(server: ChatServer) -> list[Completion]:
        return make(server).generate(["a"], PARAMS)

    with ChatServer() as server:
        assert asyncio.run(inside(server))[0].text == "echo a"


def test_a_failing_listener_stops_the_run_with_its_own_error() -> None:
    def full(place: int, completion: Completion) -> None:
        if place:
            raise ModelError("disk full")

    with ChatServer() as server, pytest.raises(ModelError, match="disk full"):
        make(server).generate(["a", "b", "c"], PARAMS, on_result=full)


def test_no_prompts_ask_nothing_and_a_beam_search_is_refused() -> None:
    with ChatServer() as server:
        assert make(server).generate([], PARAMS) == []
        with pytest.raises(ModelError, match="num_beams"):
            make(server).generate(["a"], GenerationParams(num_beams=5))
    assert server.prompts == []


LAB = "sk-of-the-lab"


def named(lab: str, other: str, monkeypatch: pytest.MonkeyPatch) -> LlmOptions:
    """Options with a default endpoint, one with a key of its own and one without, and all variables set."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-vendor")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-secret")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-secret")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "sk-admin")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Team: team-secret")
    monkeypatch.setenv("LAB_KEY", LAB)
    return LlmOptions(
        base_url=other, retries=0,
        endpoints={"lab": Endpoint(base_url=lab, key_env="LAB_KEY"), "open": Endpoint(base_url=lab)},
    )  # fmt: skip


def test_a_key_goes_only_to_the_endpoint_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with ChatServer() as lab, ChatServer() as default:
        llm = named(lab.base_url, default.base_url, monkeypatch)
        for spec in ("openai:m@lab", "openai:m@open", "openai:m"):
            assert load_model(spec, llm).generate([spec], PARAMS)[0].text == f"echo {spec}"
    keyed, bare = lab.headers
    assert keyed["authorization"] == f"Bearer {LAB}"
    assert "authorization" not in bare
    for headers in lab.headers:
        assert not any("secret" in value or "vendor" in value or "admin" in value for value in headers.values())
    assert default.headers[0]["authorization"] == "Bearer sk-of-the-vendor"
    assert not any(LAB in value for value in default.headers[0].values())


def test_every_key_is_cut_out_of_every_message(monkeypatch: pytest.MonkeyPatch) -> None:
    with ChatServer() as server:
        llm = named(server.base_url.replace("//", "//me:pass-word@"), server.base_url, monkeypatch)
        body = {"error": {"message": f"wrong: {LAB} sk-of-the-vendor pass-word"}}
        monkeypatch.setattr("tests.support.chat_server.error_body", lambda status: body)
        server.always("", Fault(status=401))
        with pytest.raises(EndpointError) as caught:
            load_model("openai:m@lab", llm).generate(["a"], PARAMS)
    assert "wrong: [key] [key] [key]" in str(caught.value)


def test_a_named_endpoint_without_its_key_says_which_variable_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    llm = named("http://127.0.0.1:1/v1", "http://127.0.0.1:1/v1", monkeypatch)
    monkeypatch.delenv("LAB_KEY")
    with pytest.raises(EndpointError, match="LAB_KEY, which is not set"):
        load_model("openai:m@lab", llm)


def test_a_model_that_wants_the_limit_under_its_newer_name_gets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    says = {"error": {"message": "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."}}
    monkeypatch.setattr("tests.support.chat_server.error_body", lambda status: says)
    with ChatServer() as server:
        server.fail("", Fault(status=400))
        out = make(server, retries=0).generate(["a", "b"], GenerationParams(max_new_tokens=7))
    assert [completion.text for completion in out] == ["echo a", "echo b"]
    assert [body.get("max_completion_tokens") for body in server.bodies] == [None, 7, 7]
    assert "max_tokens" not in server.bodies[1]


def test_top_k_is_sent_where_it_is_asked_for() -> None:
    with ChatServer() as server:
        make(server).generate(["a"], GenerationParams(temperature=1.0, top_k=50, top_p=0.9))
        make(server).generate(["a"], PARAMS)
    assert (server.bodies[0]["top_k"], server.bodies[0]["top_p"]) == (50, 0.9)
    assert not {"top_k", "top_p"} & set(server.bodies[1])


def test_content_in_parts_and_odd_replies_are_read() -> None:
    message = {"content": [{"type": "text", "text": "Ro"}, {"type": "text", "text": "me"}]}
    reply = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}], "usage": None}).encode()
    assert read_reply(reply, PARAMS) == Completion("Rome")
    for odd in (b"", b"[]", b"null", b"{}", b'{"choices": [{"message": null}]}', b'{"choices": null}', b"\xff"):
        with pytest.raises(UnreadableReply):
            read_reply(odd, PARAMS)
