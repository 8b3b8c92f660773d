"""The files of the web page and what it asks of the server, without a browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import kgqa_core.serving.page.routes as routes
from kgqa_core.serving.graph_view import GraphView
from kgqa_core.serving.http import HttpOptions, create_app
from kgqa_core.serving.service import Service
from tests.support.question_graph import X
from tests.support.served import EchoSource

FILES = sorted(
    path for path in Path(routes.__file__).parent.iterdir() if path.suffix in routes.TYPES and path.name != "page.html"
)


@contextmanager
def serving(view: GraphView | None = None, **options: Any) -> Iterator[TestClient]:
    source = EchoSource()
    source.looked_into = view
    app = create_app(Service(source), HttpOptions(**options))
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as client:
        yield client


def test_the_page_and_its_files_come_with_rules_that_let_nothing_else_load_or_run() -> None:
    with serving() as client:
        for path in ("/", "/entity", "/entity?key=x", *(f"/assets/{file.name}" for file in FILES)):
            reply = client.get(path)
            assert reply.status_code == 200, path
            rules = reply.headers["content-security-policy"]
            assert "default-src 'none'" in rules and "unsafe" not in rules and "*" not in rules
            assert "require-trusted-types-for 'script'; trusted-types 'none'" in rules
            assert reply.headers["x-content-type-options"] == "nosniff"
            assert reply.headers["referrer-policy"] == "no-referrer"


def test_a_file_that_the_browser_has_is_not_sent_again() -> None:
    with serving() as client:
        tag = client.get("/assets/page.css").headers["etag"]
        again = client.get("/assets/page.css", headers={"If-None-Match": tag})
    assert again.status_code == 304 and not again.content


@pytest.mark.parametrize("name", ["routes.py", "page.html", "__init__.py", "%2e%2e%2fguard.py", ""])
def test_nothing_but_the_files_of_the_page_is_an_asset(name: str) -> None:
    with serving() as client:
        assert client.get(f"/assets/{name}").status_code == 404


def test_a_token_is_needed_for_data_and_not_for_the_page_that_asks_for_it() -> None:
    with serving(token="secret") as client:
        for path in ("/", "/entity?key=a", "/assets/page.css", "/assets/start.js"):
            assert client.get(path).status_code == 200, path
        data = ("/page/state", "/page/entity?key=a", "/page/neighbourhood?key=a", "/entities?q=a", "/names")
        data = (*data, "/page/start", "/page/examples", "/page/types?id=1")
        for path in (*data, "/assets", "/assets/x%2f..%2f..%2fask"):
            assert client.get(path).status_code == 401, path
        assert client.get("/page/state", headers={"Authorization": "Bearer secret"}).json()["graph"] == "toy"


def test_the_page_of_another_origin_or_host_is_refused_as_all_else() -> None:
    with serving() as client:
        assert client.get("/", headers={"Host": "rebound.test"}).status_code == 403
        assert client.get("/assets/start.js", headers={"Origin": "http://evil.test"}).status_code == 403


def test_any_key_has_a_page(view: GraphView) -> None:
    with serving(view) as client:
        found = client.get("/page/entity", params={"key": f"{X}f1", "limit": 1, "direction": "out"}).json()
        assert found["entity"]["name"] == "Night B1" and len(found["facts"]["facts"]) == 1
        second = client.get(
            "/page/entity", params={"key": f"{X}f1", "limit": 1, "offset": 1, "direction": "out"}
        ).json()
        assert second["facts"]["facts"] != found["facts"]["facts"] and second["facts"]["offset"] == 1
        around = client.get("/page/neighbourhood", params={"key": f"{X}f1", "limit": 4}).json()
        assert around["nodes"][0]["key"] == f"{X}f1" and len(around["edges"]) == 4
        for key in ("..", "a/neighbourhood", "no such thing"):
            assert client.get("/page/entity", params={"key": key}).status_code == 400


def test_what_the_page_begins_with_and_types_are_those_of_the_graph(view: GraphView) -> None:
    with serving(view) as client:
        found = client.get("/page/start").json()
        assert found["counts"]["entities"] > 50 and {"type": "country", "entities": 8} in found["types"]
        assert client.get("/page/examples").json() == {"questions": []}, "its answers are not computed"
        known = client.get("/page/entity", params={"key": f"{X}f1"}).json()["entity"]["id"]
        typed = client.get("/page/types", params={"id": [known, 10**9, -1]}).json()["types"]
        assert typed == {str(known): ["film"]}
        assert client.get("/page/types?" + "id=1&" * 501).status_code == 422


def test_a_system_without_a_graph_says_so() -> None:
    with serving() as client:
        assert client.get("/page/state").json() == {
            "graph": "toy",
            "run": "one",
            "feedback": False,
            "naming": False,
            "graphs": [],
            "upload_mb": 0,
            "graph_view": False,
        }
        reply = client.get("/page/entity", params={"key": "a"})
        assert reply.status_code == 400 and "reads no graph" in reply.json()["error"]["message"]


def test_no_script_of_the_page_makes_markup_or_code_of_text_and_none_names_another_host() -> None:
    forbidden = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|\beval\b"
        r"|new Function|setTimeout\(\s*[\"'`]|\.srcdoc\b|javascript:|import\("
    )
    hosts = re.compile(r"(?:https?:)?//[a-z0-9-]+(?:\.[a-z0-9-]+)+", re.I)
    for file in [*FILES, Path(routes.__file__).parent / "page.html"]:
        text = file.read_text("utf-8")
        assert not forbidden.findall(text), file.name
        assert set(hosts.findall(text)) <= {"http://www.w3.org"}, file.name  # the namespace of SVG
