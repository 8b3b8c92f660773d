"""Graph files that are sent over HTTP: each is served beside the others, or refused with what is wrong."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import kgqa_core.serving.upload_routes as upload_routes
from kgqa_core.errors import ConfigError, InputError
from kgqa_core.runs import graph_files
from kgqa_core.runs.graph_files import graph_record, uploaded_record
from kgqa_core.serving.limits import TOKEN_VARIABLE
from kgqa_core.serving.run import ServeOptions
from kgqa_core.store.artifacts import Home

TEAMS = "Blue Team\tled by\tAda Stone\nRed Team\tled by\tBo Lind\nBlue Team\tbased in\tOslo\n"
PEOPLE = b"name,boss,team\nAna,Dee,Red\nBo,Ana,Red\nCy,Ana,Blue\n"
TURTLE = b'@prefix : <urn:x:> . :oslo :country :norway . :norway :capital :oslo . :oslo :population "700000" .'


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> ServeOptions:
    folder = tmp_path_factory.mktemp("served")
    file, home = folder / "teams.tsv", Home(folder / "home")
    file.write_text(TEAMS, encoding="utf-8")
    return ServeOptions(str(home.root), record=graph_record(home, [file]), upload_mb=1, poll_seconds=600)


@pytest.fixture(scope="module")
def client(options: ServeOptions) -> Iterator[TestClient]:
    with TestClient(options.app(), base_url="http://localhost") as client:
        yield client


def send(client: TestClient, name: str, file: str, content: bytes = PEOPLE, **headers: str) -> Any:
    return client.post("/graphs", params={"name": name, "file": file}, content=content, headers=headers)


def test_a_graph_that_is_sent_answers_through_every_door_beside_the_others(client: TestClient) -> None:
    reply = send(client, "people", "people.csv")
    assert reply.status_code == 201, reply.text
    assert reply.json() == {
        "name": "people", "address": "/g/people/", "model": "kgqa/people", "entities": reply.json()["entities"],
        "triples": reply.json()["triples"],
    }  # fmt: skip
    assert reply.json()["triples"] >= 6
    question = {"question": "Who is the boss of Cy?"}
    assert client.post("/g/people/ask", json=question).json()["answer"] == "Ana"
    assert client.post("/ask", json=question).json()["answer"] is None, "the first graph has no Cy"
    assert client.post("/ask", json={"question": "Who leads Blue Team?"}).json()["answer"] == "Ada Stone"
    chat = {"model": "kgqa/people", "messages": [{"role": "user", "content": question["question"]}]}
    assert "Ana" in client.post("/v1/chat/completions", json=chat).json()["choices"][0]["message"]["content"]
    assert [one["id"] for one in client.get("/v1/models").json()["data"]] == ["kgqa/teams", "kgqa/people"]
    for base in ("", "/g/people", "/g/teams"):
        state = client.get(f"{base}/page/state").json()
        assert state["graphs"] == ["teams", "people"] and state["upload_mb"] == 1, base
    assert client.get("/g/people/").status_code == 200 and client.get("/g/people/page/start").json()["counts"]
    assert client.post("/g/people/sql", json={"statement": "SHOW TABLES"}).status_code == 200
    again = send(client, "people", "people.csv")
    assert again.status_code == 409 and "there is a graph 'people' already" in again.json()["error"]["message"]
    assert send(client, "land", "land.ttl", TURTLE).status_code == 201
    asked = client.post("/g/land/ask", json={"question": "What is the capital of norway?"}).json()
    assert asked["answer"] == "oslo"


@pytest.mark.parametrize(
    ("name", "file", "content", "status", "message"),
    [
        ("a b", "a.csv", PEOPLE, 400, "'a b' is no name of a graph; give 1 to 64 letters"),
        ("../x", "a.csv", PEOPLE, 400, "is no name of a graph"),
        ("x", "../../etc/passwd", PEOPLE, 400, "is no name of a file; give it without its folder"),
        ("x", "..", PEOPLE, 400, "is no name of a file"),
        ("x", "a.csv", b"", 400, "'a.csv' is empty; send a graph file"),
        ("x", "a.pdf", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n", 400, "a.pdf"),
        ("x", "a.nt", b"<urn:a> <urn:b> .\n" * 3, 400, "a.nt"),
        ("x", "a.csv", b"x" * (1 << 20) + b"x", 413, "start the server with more --upload-mb"),
    ],
)
def test_what_is_no_graph_is_refused_and_nothing_is_added(
    client: TestClient, name: str, file: str, content: bytes, status: int, message: str
) -> None:
    before = client.get("/v1/models").json()
    reply = send(client, name, file, content)
    assert reply.status_code == status and message in reply.json()["error"]["message"], reply.text
    assert tempfile.gettempdir() not in reply.text, "no folder of the server is told"
    assert client.get("/v1/models").json() == before


def test_a_file_that_takes_too_long_is_refused_with_the_way_out(
    options: ServeOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow.csv").write_bytes(PEOPLE + b"Eve,Ana,Blue\n")
    monkeypatch.setattr(graph_files, "UPLOAD_SECONDS", 0.05)
    with pytest.raises(InputError, match=r"'slow.csv' takes longer to read than 0.05 s; serve it with `--graph slow"):
        uploaded_record(Home(Path(options.home)).look(), "slow", tmp_path / "slow.csv")


def test_a_server_takes_some_graphs_and_no_more(options: ServeOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload_routes, "MOST_UPLOADS", 1)
    with TestClient(options.app(), base_url="http://localhost") as client:
        assert send(client, "one", "people.csv").status_code == 201
        more = send(client, "two", "people.csv")
        assert more.status_code == 409 and "restart it with `--graph two=FILE`" in more.json()["error"]["message"]
        foreign = send(client, "two", "people.csv", Origin="http://evil.example")
        assert foreign.status_code == 403


def test_without_the_option_no_file_is_taken_and_the_reply_says_how(options: ServeOptions) -> None:
    closed = ServeOptions(options.home, record=options.record, poll_seconds=600)
    with TestClient(closed.app(), base_url="http://localhost") as client:
        reply = send(client, "people", "people.csv")
        assert reply.status_code == 403 and "start it with --allow-upload" in reply.json()["error"]["message"]
        assert client.get("/page/state").json()["upload_mb"] == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"workers": 2}, "--allow-upload needs one process, not --workers 2"),
        ({"hosts": ("kg.example.org",)}, f"needs a token: set {TOKEN_VARIABLE}"),
        ({"proxies": ("10.0.0.0/8",)}, f"needs a token: set {TOKEN_VARIABLE}"),
        ({"host": "0.0.0.0"}, "so a token is needed"),
    ],
)
def test_where_others_reach_the_server_files_are_taken_with_a_token_alone(
    options: ServeOptions, changes: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    given = ServeOptions(options.home, record=options.record, upload_mb=1, **changes)
    with pytest.raises(ConfigError, match=message):
        given.http()
    monkeypatch.setenv(TOKEN_VARIABLE, "a-token-of-sixteen-letters")
    if "workers" not in changes:
        assert given.http().upload_mb == 1 and given.http().token
