"""`kg.remote.sparql`: the graph behind an endpoint is that of its triples as a file, however the endpoint behaves."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.config import KgOptions
from kgqa_core.errors import EndpointError, KgInputError
from kgqa_core.kg.build import build
from kgqa_core.kg.client.pass_folder import PassFolder
from kgqa_core.kg.remote import snapshot as snapshot_module
from kgqa_core.kg.remote import sparql
from kgqa_core.kg.remote.registry import graph_name, remote_of
from kgqa_core.kg.remote.sparql_query import read_query
from kgqa_core.kg.store import KgStore
from kgqa_core.monitor import QUIET
from kgqa_core.workspace import Workspace
from tests.support.command import closed_port
from tests.support.property_graph import COUNTED, built
from tests.support.sparql_server import RETRY_AFTER, SparqlServer

X = "http://x/"
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
XSD = "http://www.w3.org/2001/XMLSchema#"

Built = tuple[dict[str, int], dict[str, list[Any]]]


def graph_text(blank: bool = True) -> str:
    """A graph of people and films with every kind of term."""
    lines = []
    for n in range(12):
        person = f"<{X}p{n:02}>"
        lines.append(f"{person} <{TYPE}> <{X}Person> .")
        lines.append(f'{person} <{LABEL}> "Person {n} \\"é\\" \\\\ \\n漢"@en .')
        lines.append(f'{person} <{X}age> "{n + 20}"^^<{XSD}integer> .')
        lines.append(f'{person} <{X}note> "plain" .')
        lines += [f"{person} <{X}likes> <{X}f{film}> ." for film in range(n % 4)]
    for film in range(3):
        lines.append(f"<{X}f{film}> <{TYPE}> <{X}Film> .")
        lines.append(f'<{X}f{film}> <{LABEL}> "Film {film}"@de .')
        lines += [f'<{X}f{film}> <{X}tag> "t{tag}" .' for tag in range(7)]
    lines.append(f'<{X}likes> <{LABEL}> "likes"@en .')
    if blank:
        lines += [
            f"<{X}p00> <{X}home> _:h .",
            f'_:h <{X}street> "Elm" .',
            f"_:h <{X}near> _:k .",
            f"_:k <{X}in> <{X}t> .",
        ]
    return "\n".join(lines) + "\n"


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    snapshot_module._looked.clear()
    yield
    snapshot_module._looked.clear()


@pytest.fixture(scope="module")
def rdflib_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """rdflib-endpoint over the graph, on loopback, a process of its own."""
    folder = tmp_path_factory.mktemp("rdflib")
    (folder / "graph.nt").write_text(graph_text(), encoding="utf-8")
    port = closed_port()
    command = [sys.executable, "-m", "rdflib_endpoint", "serve", "graph.nt", "--host", "127.0.0.1", "--port", str(port)]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 120
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            assert process.poll() is None and time.monotonic() < deadline, (folder / "log").read_text()
            time.sleep(0.1)
        yield f"sparql+http://127.0.0.1:{port}/"
    finally:
        process.kill()
        process.wait()


def from_server(address: str, folder: Path, **sparql_options: Any) -> Built:
    chosen = {"delay": 0, "retries": 5, **sparql_options}
    return built(folder / "out", [address], sparql=chosen, fetched=str(folder / "fetched"))


def from_file(text: str, folder: Path) -> Built:
    folder.mkdir(exist_ok=True)
    (folder / "graph.nt").write_text(text)
    return built(folder / "file", [folder / "graph.nt"])


def without_labels(content: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Labels of blank nodes mean nothing."""
    return {name: sorted(re.sub(r"'_:\w+'", "'_:'", repr(row)) for row in rows) for name, rows in content.items()}


def same(found: Built, expected: Built) -> None:
    assert without_labels(found[1]) == without_labels(expected[1])
    assert {name: found[0][name] for name in COUNTED} == {name: expected[0][name] for name in COUNTED}
    assert found[0]["rejects"] == 0


@pytest.mark.parametrize("page_size", [16, pytest.param(10_000, marks=pytest.mark.slow)])
def test_the_graph_of_rdflib_endpoint_is_that_of_its_file(tmp_path, rdflib_server, page_size):
    same(from_server(rdflib_server, tmp_path, page_size=page_size), from_file(graph_text(), tmp_path))


@pytest.mark.parametrize(
    ("page_size", "max_rows"),
    [
        pytest.param(1, None, marks=pytest.mark.slow),
        (3, None),
        pytest.param(20, 2, marks=pytest.mark.slow),
        pytest.param(10_000, None, marks=pytest.mark.slow),
        pytest.param(10_000, 5, marks=pytest.mark.slow),
    ],
)
def test_the_graph_of_an_endpoint_is_that_of_its_file_whatever_the_pages(tmp_path, page_size, max_rows):
    text = graph_text(blank=max_rows is None)
    with SparqlServer(text, max_rows) as server:
        same(from_server(server.address, tmp_path, page_size=page_size), from_file(text, tmp_path))


def test_an_endpoint_that_misbehaves_is_asked_again_and_the_graph_is_the_same(tmp_path):
    slept: list[float] = []
    options = KgOptions(sparql={"delay": 0, "page_size": 20, "retries": 5})  # type: ignore[arg-type]
    with SparqlServer(graph_text()) as server:
        server.misbehave(["", "429", "500", "cut", "truncated", "html", "", "500"])
        out = tmp_path / "graph.nt"
        counts = sparql.fetch(server.address, options, PassFolder(tmp_path / "w"), out, QUIET, slept.append)
    assert counts["requests_retried"] == 6 and slept[0] == RETRY_AFTER and all(0.5 <= wait <= 60 for wait in slept)
    same(built(tmp_path / "out", [out]), from_file(graph_text(), tmp_path / "of-file"))


def test_pages_that_were_fetched_are_not_fetched_again_after_an_endpoint_went_away(tmp_path):
    with SparqlServer(graph_text()) as server:
        server.misbehave([""] * 4 + ["500"] * 40)
        with pytest.raises(EndpointError, match=r"run the same command again later, with smaller pages"):
            from_server(server.address, tmp_path, page_size=20, retries=1)
        answered = server.queries[:4]
        server.faults.clear()
        server.queries.clear()
        same(from_server(server.address, tmp_path, page_size=20), from_file(graph_text(), tmp_path))
        assert set(answered).isdisjoint(server.queries)


@pytest.mark.slow
def test_a_graph_that_was_fetched_is_used_until_it_is_too_old(tmp_path):
    options = {"sparql": {"delay": 0}, "fetched": str(tmp_path / "fetched")}
    with SparqlServer(graph_text()) as server:
        built(tmp_path / "a", [server.address], **options)
        first = len(server.queries)
        snapshot_module._looked.clear()  # another process
        built(tmp_path / "b", [server.address], **options)
        assert len(server.queries) == first
        [file] = (tmp_path / "fetched").glob("*/graph.nt")
        os.utime(file, (time.time() - 7200, time.time() - 7200))
        snapshot_module._looked.clear()
        built(tmp_path / "c", [server.address], **options, max_age=3)
        assert len(server.queries) == first
        snapshot_module._looked.clear()
        built(tmp_path / "d", [server.address], **options, max_age=1)
        assert len(server.queries) == 2 * first


def test_requests_wait_for_the_delay(tmp_path):
    slept: list[float] = []
    options = KgOptions(sparql={"delay": 5, "page_size": 50})  # type: ignore[arg-type]
    with SparqlServer(graph_text()) as server:
        counts = sparql.fetch(server.address, options, PassFolder(tmp_path / "w"), tmp_path / "g", QUIET, slept.append)
    assert len(slept) == counts["requests"] - 1 and all(4 < wait <= 5 for wait in slept)


def test_statements_of_classes_come_with_the_names_of_what_they_lead_to(tmp_path):
    person = re.compile(rf"^<{X}p\d+>|^_:|^<{X}likes>|^<{X}f[0-2]> <{LABEL}>")
    expected = "".join(line for line in graph_text().splitlines(True) if person.match(line))
    with SparqlServer(graph_text()) as server:
        found = from_server(server.address, tmp_path, classes=[X + "Person"], page_size=7)
        keys = {row[0] for row in found[1]["entities"]}
        assert X + "Film" not in keys and X + "f0" in keys
        bare = from_server(server.address, tmp_path / "bare", classes=[X + "Person"], names=False)
        labelled = {row[0] for row in bare[1]["labels"] if not row[0].startswith("_:")}
        assert labelled == {f"{X}p{n:02}" for n in range(12)}
    # of blank nodes, those that an instance leads to, and what these state
    same(found, from_file(expected.replace(f"_:k <{X}in> <{X}t> .\n", ""), tmp_path))


SELECT = f"""# people
PREFIX x: <{X}>
SELECT ?s (x:likes AS ?p) ?o WHERE {{ ?s a x:Person ; x:likes ?o # a comment {{
}}"""
CONSTRUCT = f"""PREFIX x: <{X}> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
CONSTRUCT {{ ?film x:likedBy ?who ; rdfs:label ?name . ?who x:note "a ?string }}", _:b . _:b x:of ?film }}
WHERE {{ ?who x:likes ?film OPTIONAL {{ ?film rdfs:label ?name FILTER(LANG(?name) = "de" && ?film != x:f2) }} }}"""


@pytest.mark.parametrize("page_size", [4, 1000])
def test_a_select_query_gives_statements(tmp_path, page_size):
    expected = "".join(line for line in graph_text().splitlines(True) if f"<{X}likes> <{X}f" in line)
    with SparqlServer(graph_text()) as server:
        same(from_server(server.address, tmp_path, query=SELECT, page_size=page_size), from_file(expected, tmp_path))


@pytest.mark.parametrize("page_size", [4, 1000])
def test_a_construct_query_gives_the_statements_that_the_engine_constructs(tmp_path, page_size):
    import pyoxigraph

    (tmp_path / "query.rq").write_text(CONSTRUCT)
    with SparqlServer(graph_text()) as server:
        triples = server.store.query(CONSTRUCT)
        text = bytes(triples.serialize(format=pyoxigraph.RdfFormat.N_TRIPLES)).decode()  # type: ignore[union-attr]
        found = from_server(server.address, tmp_path, query=f"@{tmp_path / 'query.rq'}", page_size=page_size)
    same(found, from_file(text, tmp_path))


@pytest.mark.parametrize(
    ("query", "match"),
    [
        ("ASK { ?s ?p ?o }", "neither a SELECT nor a CONSTRUCT"),
        ("SELECT ?a WHERE { ?a ?b ?c }", r"where \?s, \?p and \?o are needed"),
        ("CONSTRUCT { ?s ?p ?o", "never closed"),
        ("CONSTRUCT { ?s ?p ?o }", "without WHERE"),
        ("CONSTRUCT { ?s ?p } WHERE { ?s ?p ?o }", "template of kg.sparql.query is not understood"),
        ("@/nowhere/query.rq", "cannot be read"),
        ("SELECT ?s ?p ?o WHERE { ?s ?p ?o . FILTER(?s = <http://x/none>) }", "has no statement for the query"),
    ],
)
def test_a_query_that_gives_no_statements_is_an_error_in_one_line(tmp_path, query, match):
    with SparqlServer(graph_text()) as server, pytest.raises(KgInputError, match=match) as fault:
        from_server(server.address, tmp_path, query=query)
    assert "\n" not in str(fault.value)


def test_clauses_of_a_dataset_go_to_the_outer_query():
    query = read_query("SELECT ?s ?p ?o FROM <http://x/g> FROM NAMED <http://x/h> WHERE { ?s ?p ?o }")
    assert (query.dataset.split(), query.pattern) == (
        ["FROM", "<http://x/g>", "FROM", "NAMED", "<http://x/h>"], "{ SELECT ?s ?p ?o   WHERE { ?s ?p ?o } }"
    )  # fmt: skip
    short = read_query("CONSTRUCT WHERE { ?a <http://x/p> ?b } LIMIT 3", ("http://x/g",))
    assert short.dataset == "FROM <http://x/g> " and short.variables == ("a", "b") and "LIMIT 3" in short.pattern


class PerReply(SparqlServer):
    """An endpoint whose labels of blank nodes hold for one reply, as Fuseki's."""

    def _results(self, query: str) -> bytes:
        names: dict[str, str] = {}
        value = json.loads(super()._results(query))
        for row in value["results"]["bindings"]:
            for term in row.values():
                if term["type"] == "bnode":
                    term["value"] = names.setdefault(term["value"], f"b{len(names)}")
        return json.dumps(value).encode()


@pytest.mark.slow
def test_blank_nodes_whose_labels_hold_for_one_reply_are_not_mixed_up(tmp_path):
    text = graph_text() + "".join(f'<{X}p{n:02}> <{X}home> _:z{n} .\n_:z{n} <{X}no> "{n}" .\n' for n in range(9))
    with PerReply(text) as server:
        same(from_server(server.address, tmp_path, page_size=4), from_file(text, tmp_path))


def test_an_endpoint_that_holds_rows_back_is_an_error_and_no_smaller_graph(tmp_path):
    text = graph_text() + "".join(f'_:z{n} <{X}no> "{n}" .\n' for n in range(9))
    message = "counts 13 statements and sent 3: its limits hold rows back"
    with PerReply(text, max_rows=3) as server, pytest.raises(EndpointError, match=message):
        from_server(server.address, tmp_path, page_size=4)


def test_rows_that_are_no_statements_are_rejects_that_are_listed(tmp_path, monkeypatch):
    answer = SparqlServer._results

    def spoilt(self: SparqlServer, query: str) -> bytes:
        value = json.loads(answer(self, query))
        for row in value["results"]["bindings"]:
            if "isIRI(?s)" in query and row.get("o", {}).get("value") in ("21", "22"):
                row["o"] = {"type": "triple", "value": {"subject": "x"}}
        return json.dumps(value).encode()

    monkeypatch.setattr(SparqlServer, "_results", spoilt)
    with SparqlServer(graph_text()) as server:
        counts, _ = built(
            tmp_path / "out", [server.address], sparql={"delay": 0}, fetched=str(tmp_path / "f"), max_reject_share=0.2
        )
    assert counts["rejects"] == 2
    with KgStore.open(tmp_path / "out") as store:
        rows = store.connection.execute("SELECT source, text FROM rejects").fetchall()
    assert all(source.startswith("sparql+http://127.0.0.1:") and '"triple"' in text for source, text in rows)


@pytest.mark.parametrize(
    ("address", "options", "match"),
    [
        ("sparql+http://me:secret@127.0.0.1:1/", {}, "SPARQL_USERNAME"),
        ("sparql+http://127.0.0.1:1/", {"classes": ["Person> } DROP"]}, "is no IRI"),
        ("sparql+http://[::1/", {}, "is no address|Invalid"),
    ],
)
def test_addresses_and_settings_that_cannot_be_used_are_errors(tmp_path, address, options, match):
    with pytest.raises(KgInputError, match=match) as fault:
        from_server(address, tmp_path, retries=0, **options)
    assert "secret" not in str(fault.value)


def test_an_endpoint_without_statements_is_an_error(tmp_path):
    with SparqlServer("") as server, pytest.raises(KgInputError, match="has no statement for its graph"):
        from_server(server.address, tmp_path)


def test_an_endpoint_and_files_make_one_graph(tmp_path):
    (tmp_path / "more.nt").write_text(f"<{X}p00> <{X}knows> <{X}p01> .\n")
    text = graph_text(blank=False)
    with SparqlServer(text) as server:
        options = KgOptions(
            files=(server.address, str(tmp_path / "more.nt")), sparql={"delay": 0},  # type: ignore[arg-type]
            fetched=str(tmp_path / "f"),
        )  # fmt: skip
        (tmp_path / "out").mkdir()
        counts = build(Workspace(tmp_path / "out"), options=options)
    assert counts["triples"] == from_file(text, tmp_path)[0]["triples"] + 1


def test_names_of_graphs_on_servers_are_those_of_their_hosts():
    assert graph_name("sparql+https://query.wikidata.org/sparql") == "query-wikidata-org"
    assert graph_name(Path("data/people.nt.gz")) == graph_name("bundled:people") == "people"
    assert remote_of("bolt://localhost:7687").name == "neo4j" and remote_of("people.nt") is None
