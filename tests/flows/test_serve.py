"""`kgqa serve` over a trained system: as a process, by OpenAI's client, beside `kgqa ask`, and to its end."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from openai import OpenAI

from kgqa_core.datasets.files.question import read_questions, write_questions
from kgqa_core.datasets.load import ALSO_TRAIN, CORRECTED
from kgqa_core.runs.champion import Corrected
from kgqa_core.store.artifacts import Home
from kgqa_core.store.home import read_run
from tasks.engine.corrected import corrected
from tests.support.films_home import films_home
from tests.support.forked_command import forked_kgqa
from tests.support.kgqa_serve import Running, served

QUESTION = "hey, whats the capital of norland"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a run over a graph of films and countries, without a question file."""
    return films_home(tmp_path_factory, "serve")


@pytest.fixture(scope="module")
def server(home: Path) -> Iterator[Running]:
    with served(home) as running:
        yield running


def test_the_server_says_what_ask_says(home: Path, server: Running) -> None:
    alone = forked_kgqa("ask", QUESTION, "--home", home, "--json", "--own-process").json
    reply = server.call("/ask", {"question": QUESTION})
    for name in ("answers", "proof", "form", "road", "confidence", "topics", "facts"):
        assert reply[name] == alone[name], name
    through = forked_kgqa("ask", QUESTION, "--home", home, "--json").json
    assert through["answers"] == alone["answers"] and through["run"] == reply["run"]
    assert "load_seconds" not in through, "the server answered, nothing was loaded"
    shown = forked_kgqa("ask", QUESTION, "--home", home)
    assert shown.code == 0 and "Norland City" in shown.out


def test_questions_that_are_answered_together_are_answered_as_alone(server: Running) -> None:
    texts = [QUESTION, "who is the president of Norland?", "how many films are there", "capital norland"]
    alone = [server.call("/ask", {"question": text}) for text in texts]
    batch = server.call("/ask/batch", {"questions": [{"question": text} for text in texts]})["answers"]
    for one, together in zip(alone, batch, strict=True):
        assert (one["answers"], one["reason"], one["form"]) == (
            together["answers"],
            together["reason"],
            together["form"],
        )
        assert one["confidence"] == pytest.approx(together["confidence"], abs=1e-5)
    assert alone[1]["answer"] is None and alone[1]["reason"]


def test_the_openai_client_talks_to_it_plain_and_streaming(server: Running) -> None:
    client = OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)
    [model] = client.models.list().data
    messages: Any = [{"role": "user", "content": QUESTION}]
    whole = client.chat.completions.create(model=model.id, messages=messages)
    assert whole.choices[0].message.content is not None
    assert whole.choices[0].message.content.startswith("Norland City [1]\n\n[1] ")
    assert whole.kgqa["answers"] == ["Norland City"]  # type: ignore[attr-defined]
    stream = client.chat.completions.create(model=model.id, messages=messages, stream=True)
    pieces = [piece.choices[0].delta.content or "" for piece in stream if piece.choices]
    assert "".join(pieces) == whole.choices[0].message.content


def test_another_confidence_is_for_its_own_request_only(server: Running) -> None:
    question = "who is the president of Norland?"
    assert server.call("/ask", {"question": question})["answer"] is None
    assert server.call("/ask", {"question": question, "min_confidence": 0})["min_confidence"] == 0
    assert server.call("/ask", {"question": question})["answer"] is None
    assert server.call("/ask", {"question": QUESTION, "min_confidence": 1})["answer"] is None


def test_feedback_becomes_questions_that_the_command_exports(home: Path, server: Running, tmp_path: Path) -> None:
    reply = server.call("/ask", {"question": QUESTION})
    number = server.call("/feedback", {"answer_id": reply["answer_id"], "verdict": "up"})["id"]
    listed = forked_kgqa("feedback", "list", "--home", home, "--json")
    assert listed.code == 0 and listed.json["examples"] == [] and len(listed.json["feedback"]) == 1, listed.err
    confirmed = forked_kgqa("feedback", "confirm", number, "--home", home)
    assert confirmed.code == 0 and "Norland City" in confirmed.out + confirmed.err
    out = tmp_path / "examples.jsonl"
    assert forked_kgqa("feedback", "export", "--home", home, "--out", out).code == 0
    [row] = [json.loads(line) for line in out.read_text().splitlines()]
    assert row["s_expression"] == reply["form"]
    assert row["answers"] == ["Norland City"] and row["topic_entities"] == [topic["key"] for topic in reply["topics"]]
    assert forked_kgqa("feedback", "quarantine", "--client", "loopback", "--home", home).code == 0
    refused = forked_kgqa("feedback", "export", "--home", home, "--out", tmp_path / "none.jsonl")
    assert refused.code == 2 and "nothing is confirmed yet" in refused.err
    assert forked_kgqa("feedback", "remove", "--since", "2026-01-01", "--home", home).code == 0


def test_two_runs_are_asked_what_was_corrected_and_held_out(home: Path, server: Running, tmp_path: Path) -> None:
    run = server.call("/ready")["run"]
    record = read_run(home, run) or {}
    [folder] = [Path(one["artifact"]["path"]) for one in record["stages"] if one["name"] == "questions"]
    assert corrected(Home(home), folder, (run, run)) is None, "nobody corrected anything"
    right = replace(read_questions(folder)[0], id="a", text=QUESTION, source=ALSO_TRAIN, unlinkable=None)
    right = replace(right, topic_keys=(), answer_names=(("Norland City",),))
    wrong = replace(right, id="b", text=f"{QUESTION}?!", topic_keys=("other",), answer_names=(("Sudland City",),))
    write_questions(tmp_path, [right, wrong])
    assert corrected(Home(home), tmp_path, (run, run)) is None, "what is trained on does not test"
    (tmp_path / CORRECTED).mkdir()
    write_questions(tmp_path / CORRECTED, [right, wrong])
    assert corrected(Home(home), tmp_path, (run, run)) == Corrected(2, 1, 1)
    assert corrected(Home(home), tmp_path, ("gone", run)) is None


def test_the_graph_is_looked_into(server: Running) -> None:
    found = server.call("/entities?q=norlnd")["matches"]
    assert found[0]["name"] == "Norland" and found[0]["how"] == "typo"
    key = urllib.parse.quote(found[0]["key"], safe="")
    page = server.call(f"/entities/{key}?limit=5")
    capital = next(fact for fact in page["facts"]["facts"] if fact["relation"]["name"] == "capital")
    assert capital["tail"]["name"] == "Norland City"
    picture = server.call(f"/entities/{key}/neighbourhood?limit=3")
    assert len(picture["edges"]) == 3 and picture["total"] == 3 + sum(one["count"] for one in picture["left_out"])
    paths = server.call("/paths?start=Norland&end=Norland%20City")["paths"]
    assert paths[0]["relations"][0]["name"] == "capital"
    form = server.call("/ask", {"question": QUESTION})["form"]
    assert [one["name"] for one in server.call("/query", {"form": form})["answers"]] == ["Norland City"]
    for path, body, named in (("/entities/Norlandia", None, "Norland"), ("/query", {"form": "(JOIN"}, "never closed")):
        with pytest.raises(urllib.error.HTTPError) as refused:
            server.call(path, body)
        assert refused.value.code == 400 and named in refused.value.read().decode()


def test_slow_and_broken_clients_are_left_and_others_are_answered(server: Running) -> None:
    address = urlsplit(server.url)
    half = socket.create_connection((address.hostname, address.port))
    half.sendall(
        b"POST /ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{"
    )
    silent = socket.create_connection((address.hostname, address.port))
    gone = socket.create_connection((address.hostname, address.port))
    gone.sendall(
        b"POST /ask HTTP/1.1\r\nHost: localhost\r\nContent-Length: 30\r\n\r\n" + b'{"question": "capital norlan"}'
    )
    gone.close()
    garbage = socket.create_connection((address.hostname, address.port))
    garbage.sendall(b"\x16\x03\x01 no http at all\r\n\r\n")
    assert b" 400 " in garbage.recv(4096).split(b"\r\n")[0]
    assert server.call("/ask", {"question": QUESTION})["answers"] == ["Norland City"]
    for one in (half, silent, garbage):
        one.close()


def test_others_need_a_token_to_reach_it(home: Path) -> None:
    refused = forked_kgqa("serve", "--home", home, "--host", "0.0.0.0", "--port", "0")
    assert refused.code == 2 and "KGQA_SERVE_TOKEN" in refused.err
    unknown = forked_kgqa("serve", "--home", home, "--run", "nothing")
    assert unknown.code == 2 and "nothing" in unknown.err


def linked_copy(home: Path, folder: Path) -> Path:
    """A home with the same artifacts and runs, and no server."""
    copy = folder / "home"
    copy.mkdir()
    for entry in home.iterdir():
        if entry.name != "serve":
            (copy / entry.name).symlink_to(entry)
    return copy


@pytest.mark.slow
def test_a_signal_ends_it_after_the_requests_that_are_under_way(home: Path, tmp_path: Path) -> None:
    copy = linked_copy(home, tmp_path)
    with served(copy) as running:
        statuses: list[int] = []

        def client() -> None:
            address = urlsplit(running.url)
            connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=60)
            questions = [{"question": f"{QUESTION} {number}"} for number in range(8)]
            body = json.dumps({"questions": questions}).encode()
            connection.request("POST", "/ask/batch", body, {"Content-Type": "application/json"})
            reply = connection.getresponse()
            reply.read()
            connection.close()
            statuses.append(reply.status)

        threads = [threading.Thread(target=client) for _ in range(3)]
        for one in threads:
            one.start()
        time.sleep(0.7)
        os.kill(running.process.pid, signal.SIGTERM)
        for one in threads:
            one.join(90)
        running.process.wait(90)
        out = running.output()
    assert statuses == [200, 200, 200] and running.process.returncode == 0, out
    assert "stopped" in out and not (copy / "serve" / "server.json").exists()


@pytest.mark.slow
def test_two_workers_answer_and_end_together(home: Path, tmp_path: Path) -> None:
    copy = linked_copy(home, tmp_path)
    with served(copy, "--workers", "2") as running:
        found: Sequence[Any] = [running.call("/ask", {"question": QUESTION})["answers"] for _ in range(20)]
        assert all(one == ["Norland City"] for one in found)
        with urllib.request.urlopen(f"{running.url}/metrics", timeout=30) as reply:
            text = reply.read().decode()
        assert 'kgqa_answers_total{outcome="answered"} 20.0' in text, "of both workers together"
        running.process.terminate()
        running.process.wait(90)
        out = running.output()
    assert running.process.returncode == 0 and "stopped" in out
