"""`kg.remote.bolt`: the official driver reads a server that speaks Bolt, however it misbehaves."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.config import KgOptions
from kgqa_core.errors import EndpointError, KgInputError
from kgqa_core.kg.client.pass_folder import PassFolder
from kgqa_core.kg.remote import bolt
from kgqa_core.kg.remote import snapshot as snapshot_module
from kgqa_core.monitor import QUIET
from tests.support.bolt_server import BoltServer
from tests.support.property_graph import COUNTED, EDGES, NODES, as_triples, built, properties

LINKS = [
    {
        "id": f"5:x:{number}",
        "type": edge["relation"],
        "start": edge["source"],
        "end": edge["target"],
        **properties(edge),
    }
    for number, edge in enumerate(EDGES)
]
LOGIN = ("neo4j", "a secret")


@pytest.fixture(autouse=True)
def login(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot_module._looked.clear()
    monkeypatch.setenv("NEO4J_USERNAME", LOGIN[0])
    monkeypatch.setenv("NEO4J_PASSWORD", LOGIN[1])


def from_server(
    server: BoltServer, folder: Path, scheme: str = "bolt", **more: Any
) -> tuple[dict[str, int], dict[str, list[Any]]]:
    return built(folder / "out", [f"{scheme}://{server.host}"], fetched=str(folder / "fetched"), neo4j=more)


@pytest.mark.parametrize("scheme", ["bolt", "neo4j"])
@pytest.mark.parametrize("page_size", [1, 2, 10_000])
def test_the_graph_of_a_server_is_that_of_its_triples(tmp_path, scheme, page_size):
    with BoltServer(NODES, LINKS, LOGIN) as server:
        counts, content = from_server(server, tmp_path, scheme, page_size=page_size, database="films")
        assert set(server.databases) == {"films"}
    expected, same = built(tmp_path / "reference", as_triples(tmp_path))
    assert content == same
    assert {name: counts[name] for name in COUNTED} == {name: expected[name] for name in COUNTED}
    assert counts["rejects"] == 0


def test_cut_connections_and_transient_errors_are_tried_again(tmp_path):
    slept: list[float] = []
    options = KgOptions(neo4j={"page_size": 2, "retries": 3})  # type: ignore[arg-type]
    with BoltServer(NODES, LINKS, LOGIN) as server:
        server.faults += ["", "cut", "transient", "", "cut", "", "transient"]
        out = tmp_path / "graph.jsonl"
        counts = bolt.fetch(f"bolt://{server.host}", options, PassFolder(tmp_path / "w"), out, QUIET, slept.append)
    assert (counts["nodes"], counts["relationships"], counts["queries_retried"]) == (5, 5, 4)
    assert len(slept) == 4 and all(0.5 <= wait <= 60 for wait in slept)
    assert built(tmp_path / "out", [out])[1] == built(tmp_path / "reference", as_triples(tmp_path))[1]


def test_pages_that_were_fetched_are_not_fetched_again(tmp_path):
    with BoltServer(NODES, LINKS, LOGIN) as server:
        server.faults += ["", "", "cut"]
        with pytest.raises(EndpointError, match=r"does not answer after 1 tries .* run the same command again later"):
            from_server(server, tmp_path, page_size=2, retries=0)
        answered = len(server.queries)
        from_server(server, tmp_path, page_size=2)
        assert answered == 2 and len(server.queries) == 4 + 4  # three pages and an empty one, twice


def test_a_query_that_a_server_refuses_is_not_repeated(tmp_path):
    with BoltServer(NODES, LINKS, LOGIN) as server:
        server.faults += ["refused"]
        with pytest.raises(EndpointError, match="refuses a query"):
            from_server(server, tmp_path)
        assert not server.queries


def test_a_wrong_login_or_half_of_one_names_the_variables(tmp_path, monkeypatch):
    with BoltServer(NODES, LINKS, LOGIN) as server:
        monkeypatch.setenv("NEO4J_PASSWORD", "another secret")
        with pytest.raises(KgInputError, match="refuses the login .* set NEO4J_USERNAME and NEO4J_PASSWORD") as fault:
            from_server(server, tmp_path)
        assert "secret" not in str(fault.value)
        monkeypatch.delenv("NEO4J_PASSWORD")
        with pytest.raises(KgInputError, match="belong together; set NEO4J_PASSWORD too"):
            from_server(server, tmp_path)
        address = f"bolt://me:hidden@{server.host}"
        with pytest.raises(KgInputError, match="NEO4J_USERNAME and NEO4J_PASSWORD") as fault:
            built(tmp_path / "out", [address], fetched=str(tmp_path / "f"))
        assert "hidden" not in str(fault.value)


def test_an_empty_server_is_an_error(tmp_path):
    with BoltServer([], [], LOGIN) as server, pytest.raises(KgInputError, match="has no node; check the address"):
        from_server(server, tmp_path)


def test_dates_keep_their_datatype_and_lists_are_several_literals(tmp_path):
    days = [datetime.date(2000, 1, 2), datetime.date(2001, 1, 2)]
    node = {"id": "a", "labels": ["T"], "born": datetime.date(1815, 12, 10), "raw": b"\x00\x01", "days": days}
    node |= {"nan": float("nan"), "big": 2**40, "deep": "x" * 70_000}
    with BoltServer([node], [], LOGIN) as server:
        _, content = from_server(server, tmp_path)
    xsd = "http://www.w3.org/2001/XMLSchema#"
    found = {(key[:20], datatype and datatype.removeprefix(xsd)) for key, _, datatype, _ in content["entities"]}
    assert found == {
        ("a", None), ("T", None), ("1815-12-10", "date"), ("2000-01-02", "date"), ("2001-01-02", "date"),
        ("AAE=", "base64Binary"), ("NaN", "double"), (str(2**40), "integer"), ("x" * 20, "string"),
    }  # fmt: skip


def test_a_server_that_is_not_there_is_an_error(tmp_path):
    address = "bolt://127.0.0.1:1"
    with pytest.raises(EndpointError, match="does not answer after 1 tries"):
        built(tmp_path / "out", [address], fetched=str(tmp_path / "f"), neo4j={"retries": 0, "timeout": 2})
