"""Names that are given over HTTP: the next question is read with them, and so is every other of the home."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from starlette.testclient import TestClient

import kgqa_core.serving.limits as limits
from kgqa_core.runs.graph_files import graph_record
from kgqa_core.serving.feedback import FeedbackStore
from kgqa_core.serving.http import HttpOptions, create_app
from kgqa_core.serving.run import ServeOptions
from kgqa_core.serving.service import Service
from kgqa_core.serving.systems import SystemSource
from kgqa_core.store.artifacts import Home
from kgqa_core.system import System

GRAPH = (
    "Blue Team\tled by\tAda Stone\nRed Team\tled by\tBo Lind\nBlue Team\tbased in\tOslo\nRed Team\tbased in\tBergen\n"
)
QUESTION, LINES = "Who is the gaffer of Blue Team?", "relations: {led by: [gaffer]}"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TestClient, Home, Path]]:
    folder = tmp_path_factory.mktemp("named")
    file, home = folder / "teams.tsv", Home(folder / "home")
    file.write_text(GRAPH, encoding="utf-8")
    service = Service(SystemSource(home, record=graph_record(home, [file])), poll_seconds=600)
    app = create_app(service, HttpOptions(naming=True), FeedbackStore(home.root / "serve"))
    with TestClient(app, base_url="http://localhost") as client:
        yield client, home, file


def ask(client: TestClient) -> dict[str, Any]:
    found: dict[str, Any] = client.post("/ask", json={"question": QUESTION}).json()
    return found


def test_a_name_counts_for_the_next_question_for_the_whole_home_and_until_it_is_taken_out(
    served: tuple[TestClient, Home, Path],
) -> None:
    client, home, file = served
    assert ask(client)["answer"] is None and client.get("/names").json()["names"] == {}
    given = client.post("/names", json={"lines": LINES}).json()
    assert given == {
        "names": {"relations": {"led by": ["gaffer"]}}, "file": "names/teams.yaml", "writable": True, "active": True,
        "fault": None,
    }  # fmt: skip
    assert ask(client)["answer"] == "Ada Stone"
    assert System.from_graph(file, home=home).ask(QUESTION).answer == "Ada Stone", "as `kgqa ask` does"
    more = client.post("/names", json={"lines": "entities: {Blue Team: [The Azures]}"}).json()
    assert more["names"].keys() == {"relations", "entities"}
    assert yaml.safe_load((home.root / "names" / "teams.yaml").read_text(encoding="utf-8")) == more["names"]
    found = client.post("/ask", json={"question": "Where is The Azures based?"}).json()
    assert found["topics"][0]["name"] == "Blue Team"
    assert client.get("/entities?q=the azures").json()["matches"][0]["key"] == "Blue Team"
    for lines in (LINES, "entities: {Blue Team: [The Azures]}"):
        gone = client.post("/names", json={"lines": lines, "remove": True}).json()
    assert gone["names"] == {} and gone["active"] and ask(client)["answer"] is None
    assert not (home.root / "names" / "teams.yaml").exists()


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("relations: {led bye: [gaffer]}", "'led bye' is not in the graph; did you mean 'led by'"),
        ("relation: {led by: [gaffer]}", "unknown key 'kg.names.relation'; did you mean 'kg.names.relations'"),
        ("gaffer", "must be a mapping of sections"),
        ("a: [b", "cannot be read"),
        ("relations: {led by: []}", "give a name, as in"),
        ("hide: [led by]", "give a name, as in"),
        ("relations: {led by: ['a\\u202eb', x]}".replace("'", '"'), "is no name for 'led by'"),
        (f"relations: {{led by: [{'x' * 201}]}}", "has 1 to 200 letters"),
        ("a: &a [x, x, x]\n" + "".join(f"{c}: &{c} [*{p}, *{p}, *{p}, *{p}, *{p}, *{p}, *{p}, *{p}]\n"
                                       for p, c in zip("abcdefgh", "bcdefghi", strict=True)), "by its anchors"),
    ],
)  # fmt: skip
def test_what_is_no_name_of_this_graph_is_refused_with_the_way_out_and_changes_nothing(
    served: tuple[TestClient, Home, Path], lines: str, message: str
) -> None:
    client, home, _ = served
    reply = client.post("/names", json={"lines": lines})
    assert reply.status_code == 400 and message in reply.json()["error"]["message"], reply.text
    assert client.get("/names").json()["names"] == {} and not (home.root / "names" / "teams.yaml").exists()


def test_names_are_limited_as_feedback_is_and_only_where_they_may_be_changed(
    served: tuple[TestClient, Home, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    client, home, file = served
    monkeypatch.setattr(limits, "FEEDBACK_LIMITS", ((0, "a minute of a client"), *limits.FEEDBACK_LIMITS[1:]))
    refused = client.post("/names", json={"lines": LINES})
    assert refused.status_code == 429 and "a minute of a client" in refused.json()["error"]["message"]
    assert client.post("/names", json={"lines": LINES}, headers={"Origin": "http://evil.test"}).status_code == 403
    monkeypatch.setenv("KGQA_SERVE_TOKEN", "a-token-of-this-test")
    options = ServeOptions(str(home.root))
    assert options.http().naming and not ServeOptions(str(home.root), naming=False).http().naming
    for more in ({"host": "0.0.0.0"}, {"hosts": ("kg.test",)}, {"proxies": ("10.0.0.1",)}):
        assert not ServeOptions(str(home.root), **more).http().naming, "others reach it"  # type: ignore[arg-type]
    assert ServeOptions(str(home.root), host="0.0.0.0", naming=True).http().naming
    service = Service(SystemSource(home, record=graph_record(home, [file])))
    with TestClient(create_app(service, HttpOptions(), FeedbackStore(tmp_path)), base_url="http://localhost") as other:
        reply = other.post("/names", json={"lines": LINES})
        assert reply.status_code == 403 and "--allow-naming" in reply.json()["error"]["message"]
        assert other.get("/names").json()["writable"] is False
