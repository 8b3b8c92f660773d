"""The HTTP server: replies, errors that say what to do, limits, tokens, and foreign requests."""

from __future__ import annotations

import http.client
import itertools
import json
import re
import shutil
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from starlette.testclient import TestClient

from kgqa_core.errors import BudgetReached, ConfigError, EndpointError
from kgqa_core.serving.ask_record import Ask
from kgqa_core.serving.chat import question_of
from kgqa_core.serving.feedback import Feedback, FeedbackStore
from kgqa_core.serving.graph_records import SearchResult
from kgqa_core.serving.http import HttpOptions, create_app
from kgqa_core.serving.messages import ChatMessage, ChatRequest
from kgqa_core.serving.run import ServeOptions
from kgqa_core.serving.service import Service
from tests.support.served import EchoSource, EchoSystem, listening


@contextmanager
def serving(
    system: EchoSystem | None = None, feedback: FeedbackStore | None = None, queue: int = 256, **options: Any
) -> Iterator[TestClient]:
    service = Service(EchoSource(one=system or EchoSystem()), queue=queue, poll_seconds=0.05)
    app = create_app(service, HttpOptions(**options), feedback)
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as client:
        yield client


def error(reply: Any) -> tuple[int, str]:
    return reply.status_code, reply.json()["error"]["message"]


def test_a_question_is_answered_with_proof_run_and_seconds() -> None:
    with serving() as client:
        reply = client.post("/ask", json={"question": "hello"}).json()
        assert (reply["answer"], reply["answers"], reply["proof"]) == ("hello", ["hello"], ["(a, says, hello)"])
        assert reply["run"] == "one" and reply["confidence"] == 0.9 and reply["batch"] == 1
        assert reply["stages"].items() >= {"linking": 0.25, "forms": 0.5}.items() and "waiting" in reply["stages"]
        assert reply["seconds"] >= 0 and "trace" not in reply


def test_a_batch_keeps_its_good_questions_and_lists_the_others() -> None:
    with serving() as client:
        asked = [{"question": "a"}, {"question": "b", "topics": ["nowhere"]}, {"question": "c"}]
        reply = client.post("/ask/batch", json={"questions": asked}).json()
    assert [row["answer"] for row in reply["answers"]] == ["a", None, "c"]
    assert reply["rejects"] == [1] and "nowhere" in reply["answers"][1]["reject"]


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({}, "question: Field required"),
        ({"question": "a", "topic": ["b"]}, "topic: Extra inputs"),
        ({"question": "a", "min_confidence": 2}, "min_confidence"),
        ({"question": "a", "dialogue": [{"role": "robot", "content": "b"}]}, "dialogue.0.role"),
        ([], "the body"),
    ],
)  # fmt: skip
def test_a_request_that_is_wrong_is_told_where(body: Any, named: str) -> None:
    with serving() as client:
        status, message = error(client.post("/ask", json=body))
    assert status == 422 and named in message


@pytest.mark.parametrize(
    ("bad", "named"),
    [({"question": "a" * 5000}, "5,000 characters"), ({"question": ""}, "empty"), ({"question": "a\0"}, "NUL"),
     ({"question": "a", "topics": ["b"] * 51}, "51 topics"), ({"question": "a", "topics": [" "]}, "topic is empty"),
     ({"question": "a", "dialogue": [{"role": "user", "content": "a"}] * 65}, "65 earlier turns")],
)  # fmt: skip
def test_a_question_beyond_the_limits_is_refused_and_the_others_of_its_batch_are_answered(bad: Any, named: str) -> None:
    with serving() as client:
        status, message = error(client.post("/ask", json=bad))
        batch = client.post("/ask/batch", json={"questions": [{"question": "a"}, bad]}).json()
    assert status == 400 and named in message
    assert batch["answers"][0]["answer"] == "a" and batch["rejects"] == [1] and named in batch["answers"][1]["reject"]


@pytest.mark.parametrize("content", ["\ud800", [{"type": "text", "text": "\ud800"}], "a" * 10_000, "a\0"])
def test_a_chat_beyond_the_limits_is_refused_and_the_history_of_a_long_one_is_read_from_its_end(content: Any) -> None:
    turns = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b, " * 2000}] * 100
    with serving() as client:
        for asked, topic, expected in ((content, "a", 400), ("good", "\ud800", 400), ("good", "a", 200)):
            body = json.dumps({"messages": [*turns, {"role": "user", "content": asked}], "topics": [topic]})
            reply = client.post("/v1/chat/completions", content=body, headers={"content-type": "application/json"})
            assert reply.status_code in ({400, 422} if expected == 400 else {200})


def events(text: str) -> list[tuple[str, Any]]:
    pairs = re.findall(r"^event: (\w+)\ndata: (.*)\n\n", text, re.MULTILINE)
    return [(name, json.loads(data)) for name, data in pairs]


def test_the_steps_of_an_answer_come_before_it_and_its_proof() -> None:
    with serving() as client:
        plain = client.post("/ask", json={"question": "two words"}).json()
        reply = client.post("/ask", json={"question": "two words", "stream": True})
        body = {"messages": [{"role": "user", "content": "two words"}], "stream": True}
        chat = client.post("/v1/chat/completions", json=body).text
    assert reply.headers["content-type"].startswith("text/event-stream")
    steps = events(reply.text)
    assert [name for name, _ in steps] == ["linked", "understood", "answer", "proof", "done"]
    assert steps[1][1] == {"form": "Q1", "named": "two words"} and steps[2][1]["answers"] == ["two words"]
    assert steps[3][1]["proof"] == plain["proof"] and steps[4][1].keys() == plain.keys()
    chunks = [json.loads(line[6:]) for line in chat.splitlines() if line.startswith("data: {")]
    told = [chunk["kgqa_step"]["step"] for chunk in chunks if "kgqa_step" in chunk]
    assert told == ["linked", "understood"] and chunks[2]["choices"][0]["delta"]["role"] == "assistant"


def test_steps_come_while_the_answer_is_still_being_made() -> None:
    begun, go = threading.Event(), threading.Event()

    def reply(question: Any) -> str:
        begun.set()
        assert go.wait(20)
        return "late"

    service = Service(EchoSource(one=EchoSystem(reply=reply)), poll_seconds=0.05)
    with (
        listening(create_app(service)) as url,
        httpx.stream("POST", f"{url}/ask", json={"question": "a", "stream": True}, timeout=20) as stream,
    ):
        lines = stream.iter_lines()
        assert next(lines) == "event: linked" and begun.wait(20) and not go.is_set()
        go.set()
        assert '"answer": "late"' in "".join(lines)


def test_a_fault_is_a_status_before_the_first_step_and_an_event_after_it() -> None:
    def reply(question: Any) -> str:
        raise EndpointError("the endpoint is down") if question.text == "down" else RuntimeError("secret inside")

    with serving(EchoSystem(reply=reply)) as client:
        refused = client.post("/ask", json={"question": "", "stream": True})
        down = events(client.post("/ask", json={"question": "down", "stream": True}).text)
        broken = client.post("/ask", json={"question": "a", "stream": True}).text
    assert error(refused)[0] == 400 and down[-1][0] == "error" and "done" not in dict(down)
    assert (down[-1][1]["error"]["code"], down[-1][1]["error"]["message"]) == (502, "the endpoint is down")
    assert '"code": 500' in broken and "secret inside" not in broken


def test_what_is_no_json_is_refused_in_the_same_shape() -> None:
    with serving() as client:
        reply = client.post("/ask", content=b"{no json", headers={"content-type": "application/json"})
        assert error(reply)[0] == 422
        assert error(client.get("/nothing")) == (404, "Not Found")
        assert error(client.get("/ask"))[0] == 405


@pytest.mark.parametrize(
    ("fault", "status"),
    [(EndpointError("the endpoint is down"), 502), (BudgetReached("max_calls", "1 call", "1"), 429),
     (RuntimeError("secret inside"), 500)],
)  # fmt: skip
def test_a_fault_while_answering_has_its_status(fault: Exception, status: int) -> None:
    def reply(question: Any) -> str:
        raise fault

    with serving(EchoSystem(reply=reply)) as client:
        found, message = error(client.post("/ask", json={"question": "a"}))
    assert found == status and "secret inside" not in message


def test_a_body_that_is_too_long_is_refused_with_and_without_its_length() -> None:
    with serving(body_kb=1) as client:
        long = json.dumps({"question": "a" * 3000}).encode()
        status, message = error(client.post("/ask", content=long))
        assert status == 413 and "1,024 bytes" in message
        pieces = (long[start : start + 100] for start in range(0, len(long), 100))
        assert error(client.post("/ask", content=pieces))[0] == 413
        assert client.post("/ask", json={"question": "a"}).status_code == 200


def test_an_answer_that_takes_too_long_ends_and_the_server_goes_on() -> None:
    gate = threading.Event()
    with serving(EchoSystem(gate=gate), timeout_seconds=0.2) as client:
        status, message = error(client.post("/ask", json={"question": "slow"}))
        assert status == 504 and "too long" in message
        gate.set()
        assert client.post("/ask", json={"question": "fast"}).status_code == 200


def test_a_full_queue_says_when_to_ask_again() -> None:
    with serving(queue=1) as client:
        reply = client.post("/ask/batch", json={"questions": [{"question": "a"}] * 2})
        assert reply.status_code == 503 and reply.headers["retry-after"] == "1"


def test_calls_that_look_into_the_graph_wait_for_each_other_and_too_many_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kgqa_core.serving.http.GRAPH_WAITING", 1, raising=False)
    source, begun, go = EchoSource(one=EchoSystem()), threading.Semaphore(0), threading.Event()

    class View:
        def search(self, text: str, limit: int) -> SearchResult:
            begun.release()
            go.wait(10)
            return SearchResult(text, (), False)

    source.looked_into = View()
    app = create_app(Service(source), HttpOptions())  # type: ignore[arg-type]
    with TestClient(app, base_url="http://localhost") as client, ThreadPoolExecutor() as pool:
        calls = [pool.submit(client.get, "/entities", params={"q": "a"}) for _ in range(5)]
        refused = [call.result() for call in itertools.islice(as_completed(calls), 3)]
        assert begun.acquire(timeout=10) and not begun.acquire(timeout=0.2), "one begins, one waits"
        assert {reply.headers["retry-after"] for reply in refused if error(reply)[0] == 503} == {"1"}
        assert client.post("/ask", json={"question": "a"}).status_code == 200
        go.set()
        assert sorted(call.result().status_code for call in calls) == [200, 200, 503, 503, 503]


def test_a_token_is_asked_of_all_but_probes() -> None:
    with serving(token="s3cret") as client:
        reply = client.post("/ask", json={"question": "a"})
        assert error(reply)[0] == 401 and reply.headers["www-authenticate"] == "Bearer" and "s3cret" not in reply.text
        assert client.get("/ready").status_code == client.get("/health").status_code == 200
        assert client.get("/metrics").status_code == 401
        right = {"Authorization": "Bearer s3cret"}
        assert client.post("/ask", json={"question": "a"}, headers=right).status_code == 200
        assert client.post("/ask", json={"question": "a"}, headers={"Authorization": "Bearer s3"}).status_code == 401


def test_pages_of_other_origins_and_rebound_names_are_refused() -> None:
    with serving() as client:
        assert error(client.post("/ask", json={"question": "a"}, headers={"Origin": "http://evil.example"}))[0] == 403
        status, message = error(client.get("/ready", headers={"Host": "evil.example"}))
        assert status == 403 and "--allowed-host evil.example" in message
        assert client.get("/ready", headers={"Host": "127.0.0.1:8000"}).status_code == 200
        assert client.get("/ready", headers={"Host": "testserver"}).status_code == 403
    with serving(hosts=("kg.example",)) as client:
        assert client.get("/ready", headers={"Host": "kg.example"}).status_code == 200


HEADERS = (
    "Host", "Origin", "Referer", "Content-Length", "Content-Type", "Authorization", "Accept", "Transfer-Encoding",
    "Expect", "Upgrade", "MCP-Protocol-Version", "MCP-Session-Id",
)  # fmt: skip
VALUES = (
    b"", b"[", b"]", b"a]b", b"http://a]b", b"http://[", b"http://[::1", b"[::1]x", b"[v1.a]", b"::1:", b"a:b", b"a:-1",
    b"a:99999", b"@", b"a@b", b"%", b"%00", b"\\", b"\xff", "http://\u2100".encode(), b"x" * 9000, b"0", b"-1", b"+5",
    b"1e9", b"5, 6", b"\xb2", b"9" * 30, b"9" * 5000, b";", b"/", b"null", b"application/json; charset=x", b"\x01",
    b"multipart/form-data", b"application/x-www-form-urlencoded", b"websocket", b"chunked, x", b"100-continue",
)  # fmt: skip


def replies(address: str, path: str, header: str) -> Iterator[tuple[bytes, http.client.HTTPResponse, bytes]]:
    """Each value of a header, and what came of a question with it."""
    body = b'{"question": "a"}'
    for value in VALUES:
        lines = {"Host": b"localhost", "Content-Type": b"application/json", "Content-Length": b"%d" % len(body)}
        lines |= {header: value}
        head = b"".join(name.encode() + b": " + text + b"\r\n" for name, text in lines.items())
        with socket.create_connection(("127.0.0.1", urlsplit(address).port), 10) as connection:
            connection.sendall(b"POST " + path.encode() + b" HTTP/1.1\r\nConnection: close\r\n" + head + b"\r\n" + body)
            reply = http.client.HTTPResponse(connection)
            reply.begin()
            yield value, reply, reply.read()


def test_no_value_of_a_header_makes_an_error_of_the_server(caplog: pytest.LogCaptureFixture) -> None:
    app = create_app(Service(EchoSource(one=EchoSystem())), HttpOptions(body_seconds=0.05))  # type: ignore[arg-type]
    with listening(app) as address:
        for path, header in itertools.product(("/ask", "/mcp"), HEADERS):
            for value, reply, body in replies(address, path, header):
                case = (path, header, value[:40], reply.status, body[:200])
                assert reply.status == 200 or 400 <= reply.status < 500, case
                if reply.status != 200:
                    assert json.loads(body)["error"]["message"], case
    assert not [record for record in caplog.records if record.exc_info], "no traceback"


def test_a_chat_is_answered_with_its_proof_as_citations_and_the_whole_answer_beside() -> None:
    messages = [
        {"role": "system", "content": "Be brief."}, {"role": "user", "content": "first"},
        {"role": "assistant", "content": "one [1]\n\n[1] (a, says, one)"},
        {"role": "user", "content": [{"type": "text", "text": "second"}]},
    ]  # fmt: skip
    seen: list[Any] = []
    with serving(EchoSystem(reply=lambda question: seen.append(question) or question.text)) as client:
        reply = client.post("/v1/chat/completions", json={"model": "kgqa/toy", "messages": messages}).json()
    assert seen[0].dialogue == (("user", "first"), ("agent", "one"))
    content = reply["choices"][0]["message"]["content"]
    assert content == "second [1]\n\n[1] (a, says, second)\n… and 6 more"
    assert reply["kgqa"]["answers"] == ["second"] and reply["model"] == "kgqa/toy"


def test_a_number_behind_a_reply_that_offers_readings_asks_its_question_again_in_that_reading() -> None:
    offers = "I am not sure (confidence 0.39, needs 0.40).\n\n1. boss of it: Ada\n2. place of it: Oster"
    texts = ["first", "one", "who is it?", offers, "2.", "Oster [1]\n\n[1] (it, place, Oster)", "and then?"]
    messages = [ChatMessage(role=("user", "assistant")[n % 2], content=text) for n, text in enumerate(texts)]
    before = (("user", "first"), ("agent", "one"))
    assert question_of(ChatRequest(messages=messages[:5])) == Ask("who is it?", dialogue=before, reading=2)
    later = question_of(ChatRequest(messages=messages))
    assert later == Ask("and then?", dialogue=(*before, ("user", "who is it?"), ("agent", "Oster")))
    other = question_of(ChatRequest(messages=[*messages[:4], ChatMessage(role="user", content="3")]))
    assert (other.question, other.reading) == ("3", 0) and other.dialogue[-1][1] == offers.split("\n")[0]
    with serving() as client:
        assert client.post("/ask", json={"question": "a", "reading": 2}).json()["answer"] == "a"
        assert error(client.post("/ask", json={"question": "a", "reading": 4}))[0] == 422


def test_a_stream_says_the_same_as_the_whole() -> None:
    body = {"messages": [{"role": "user", "content": "two words"}], "stream": True,
            "stream_options": {"include_usage": True}}  # fmt: skip
    with serving() as client:
        text = client.post("/v1/chat/completions", json=body).text
        whole = client.post("/v1/chat/completions", json={"messages": body["messages"]}).json()
    events = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
    assert events[-1] == "[DONE]"
    pieces = [json.loads(one) for one in events[:-1]]
    said = "".join(one["choices"][0]["delta"].get("content", "") for one in pieces if one["choices"])
    assert said == whole["choices"][0]["message"]["content"]
    assert pieces[-1]["usage"] == whole["usage"] and pieces[-2]["kgqa"]["answers"] == ["two words"]


@pytest.mark.parametrize(
    ("body", "status", "named"),
    [
        ({"messages": [{"role": "assistant", "content": "a"}]}, 400, "last message"),
        ({"messages": [{"role": "user", "content": " "}]}, 400, "last message"),
        ({"messages": []}, 422, "messages"),
        ({"messages": [{"role": "user", "content": "a"}], "n": 2}, 422, "n:"),
        ({"messages": [{"role": "user", "content": "a"}], "model": "gpt"}, 404, "there is kgqa/toy"),
    ],
)  # fmt: skip
def test_a_chat_that_is_no_question_is_refused(body: Any, status: int, named: str) -> None:
    with serving() as client:
        found, message = error(client.post("/v1/chat/completions", json=body))
    assert found == status and named in message


def test_counts_say_what_was_answered_and_refused() -> None:
    with serving() as client:
        client.post("/ask", json={"question": "a"})
        client.post("/ask", json={"question": "b", "topics": ["nowhere"]})
        text = client.get("/metrics").text
    for line in (
        'kgqa_requests_total{path="/ask",status="200"} 1.0', 'kgqa_requests_total{path="/ask",status="400"} 1.0',
        'kgqa_answers_total{outcome="answered"} 1.0', 'kgqa_answers_total{outcome="rejected"} 1.0', "kgqa_ready 1.0",
    ):  # fmt: skip
        assert line in text


def test_feedback_is_kept_on_answers_that_were_given(tmp_path: Path) -> None:
    store = FeedbackStore(tmp_path)
    chat = {"messages": [{"role": "user", "content": "c"}]}
    with serving(feedback=store) as client:
        ids = [client.post("/ask", json={"question": "a"}).json()["answer_id"]]
        batch = {"questions": [{"question": "b"}, {"question": "x", "topics": ["nowhere"]}]}
        ids += [row.get("answer_id") for row in client.post("/ask/batch", json=batch).json()["answers"]]
        ids += [client.post("/v1/chat/completions", json=chat).json()["kgqa"]["answer_id"]]
        assert ids.pop(2) is None and len(set(ids)) == 3
        for name in ids:
            given = {"answer_id": name, "verdict": "down", "correction": ["z"]}
            assert client.post("/feedback", json=given).status_code == 201
            for host in ("1.2.3.4", "5.6.7.8"):  # is one client whatever a header says
                assert client.post("/feedback", json=given, headers={"X-Forwarded-For": host}).status_code == 201
            assert error(client.post("/feedback", json={**given, "verdict": "up"}))[0] == 400
            assert error(client.post("/feedback", json={**given, "verdict": "meh"}))[0] == 422
            assert error(client.post("/feedback", json={**given, "answer_id": "a" * 24}))[0] == 404
            assert error(client.post("/feedback", json={**given, "question": "invented"}))[0] == 422
            assert error(client.post("/feedback", json={**given, "correction": [" "]}))[0] == 400
            assert error(client.post("/feedback", json={**given, "correction": ["é" * 500] * 99}))[0] == 413
            assert (
                '"a\\ud800"'
                not in client.post("/feedback", content=json.dumps({**given, "correction": ["a\ud800"]}).encode()).text
            )
    rows = [(row["question"], row["answers"], row["correction"], row["run"]) for row in store.rows()]
    assert rows == [(text, [text], ["z"], "one") for text in "abc"]


@pytest.mark.parametrize(
    ("proxies", "token", "clients"), [((), None, 1), (("127.0.0.0/8",), None, 2), (("127.0.0.1",), "t" * 16, 1)]
)
def test_a_trusted_proxy_says_whose_feedback_it_is_unless_a_token_does(
    tmp_path: Path, proxies: tuple[str, ...], token: str | None, clients: int
) -> None:
    store = FeedbackStore(tmp_path)
    app = create_app(Service(EchoSource()), HttpOptions(token=token, proxies=proxies), store)
    bearer = {"Authorization": f"Bearer {token}"} if token else {}
    with TestClient(app, base_url="http://localhost", client=("127.0.0.1", 9)) as client:
        for said in ("10.0.0.1", "10.0.0.2", "10.0.0.9, 10.0.0.2", "127.0.0.1, 10.0.0.1"):
            headers = {"X-Forwarded-For": said, **bearer}
            name = client.post("/ask", json={"question": "a"}, headers=headers).json()["answer_id"]
            assert client.post("/feedback", json={"answer_id": name, "verdict": "up"}, headers=headers).is_success
    assert len({row["client"] for row in store.rows()}) == clients
    for wrong in ("*", "proxy.example.org", "10.0.0.1/8"):
        with pytest.raises(ConfigError, match="--trusted-proxy takes an address or a network"):
            ServeOptions("home", proxies=(wrong,)).http()


def test_feedback_of_a_deleted_home_is_not_kept_and_no_path_is_told(tmp_path: Path) -> None:
    store = FeedbackStore(tmp_path / "serve")
    with serving(feedback=store) as client:
        given = {"answer_id": client.post("/ask", json={"question": "a"}).json()["answer_id"], "verdict": "up"}
        shutil.rmtree(tmp_path / "serve")
        status, message = error(client.post("/feedback", json=given))
        assert status == 500 and str(tmp_path) not in message and "StorageError" in message
        reply = client.post("/ask", json={"question": "a"}).json()
    assert reply["answer"] == "a" and "answer_id" not in reply, "questions are answered as before"


def test_openapi_describes_every_path_with_examples() -> None:
    with serving() as client:
        found = client.get("/openapi.json").json()
    assert {"/ask", "/ask/batch", "/v1/chat/completions", "/v1/models", "/health", "/ready", "/metrics"} <= set(
        found["paths"]
    )
    assert found["components"]["schemas"]["AskRequest"]["examples"]


class Sampler:
    """Traces every other question."""

    def __init__(self) -> None:
        self.asked = 0

    def wants(self) -> bool:
        self.asked += 1
        return self.asked % 2 == 1

    def record(self, trace: Any) -> str:
        return f"tr-{self.asked}"


def test_a_traced_answer_says_its_trace_and_feedback_on_it_is_told(tmp_path: Path) -> None:
    source, told = EchoSource(one=EchoSystem()), []
    source.traced_by = Sampler()

    def on_feedback(said: Feedback) -> None:
        told.append(said.trace)
        raise EndpointError("the tracker is away")

    app = create_app(Service(source), HttpOptions(), FeedbackStore(tmp_path), on_feedback=on_feedback)
    with TestClient(app, base_url="http://localhost") as client:
        replies = [client.post("/ask", json={"question": text}).json() for text in "abc"]
        given = {"answer_id": replies[0]["answer_id"], "verdict": "up"}
        assert client.post("/feedback", json=given).status_code == 201, "a tracker that is away loses nothing"
    assert [reply.get("trace") for reply in replies] == ["tr-1", None, "tr-3"] and told == ["tr-1"]


@contextmanager
def two_graphs(**options: Any) -> Iterator[TestClient]:
    services = {}
    for name in ("films", "lands"):
        source = EchoSource(one=EchoSystem(reply=lambda question, name=name: f"{question.text} of {name}"))  # type: ignore[misc]
        source.called = name
        services[name] = Service(source, poll_seconds=600)  # type: ignore[arg-type]
    app = create_app(services["films"], HttpOptions(**options), graphs=services)
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as client:
        yield client


def test_several_graphs_have_addresses_and_model_names_of_their_own() -> None:
    asked, chat = {"question": "q"}, {"messages": [{"role": "user", "content": "q"}]}
    with two_graphs() as client:
        for path, answer in (("/ask", "q of films"), ("/g/films/ask", "q of films"), ("/g/lands/ask", "q of lands")):
            assert client.post(path, json=asked).json()["answer"] == answer, path
        assert [one["id"] for one in client.get("/v1/models").json()["data"]] == ["kgqa/films", "kgqa/lands"]
        assert [one["id"] for one in client.get("/g/lands/v1/models").json()["data"]] == ["kgqa/lands"]
        for model, name in (("", "films"), ("kgqa", "films"), ("kgqa/lands", "lands"), ("lands", "lands")):
            reply = client.post("/v1/chat/completions", json={**chat, "model": model}).json()
            assert (reply["model"], reply["kgqa"]["answer"]) == (f"kgqa/{name}", f"q of {name}"), model
            with client.stream("POST", "/v1/chat/completions", json={**chat, "model": model, "stream": True}) as lines:
                assert f"q of {name}" in "".join(lines.iter_lines())
        status, message = error(client.post("/v1/chat/completions", json={**chat, "model": "kgqa/other"}))
        assert status == 404 and "there is kgqa/films, kgqa/lands" in message
        assert client.post("/g/lands/v1/chat/completions", json={**chat, "model": "kgqa/films"}).status_code == 404
        state = client.get("/g/lands/page/state").json()
        assert (state["graph"], state["graphs"]) == ("lands", ["films", "lands"])
        assert client.get("/g/lands/ready").json()["graph"] == "lands" and client.get("/g/other/ask").status_code == 404
        assert client.get("/g/lands").url.path == "/g/lands/" and "<title>kgqa" in client.get("/g/lands/entity").text
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": "ask", "arguments": {"question": "q"}}}  # fmt: skip
        accept = {"Accept": "application/json, text/event-stream"}
        for path, answer in (("/mcp", "q of films"), ("/g/lands/mcp", "q of lands")):
            reply = client.post(path, json=call, headers=accept).json()
            assert reply["result"]["structuredContent"]["answer"] == answer


def test_every_graph_of_several_needs_the_token_and_its_page_asks_for_it() -> None:
    with two_graphs(token="a-token-of-this-test") as client:
        for path in ("/g/lands/", "/g/lands", "/g/lands/entity", "/g/lands/console", "/g/lands/assets/page.css"):
            assert client.get(path).status_code == 200, path
        for path in ("/g/lands/page/state", "/g/lands/v1/models", "/g/lands/g/lands/", "/g/", "/g//ask"):
            assert client.get(path).status_code == 401, path
        assert client.post("/g/lands/ask", json={"question": "q"}).status_code == 401
        assert (
            client.post("/g/lands/ask", json={"question": "q"}, headers={"Origin": "http://e.test"}).status_code == 403
        )
