"""`kg.subset.endpoint`: the subset of a SPARQL endpoint is that of a file with its graph, however it misbehaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kgqa_core.config import SubsetOptions
from kgqa_core.errors import EndpointError, KgInputError
from kgqa_core.kg.client.pass_folder import PassFolder
from kgqa_core.kg.subset.endpoint import subset_of_endpoint
from kgqa_core.kg.subset.subset import SubsetResult, subset_of_dump
from tests.support.sparql_server import RETRY_AFTER, SparqlServer
from tests.unit.kg.subset.test_kg_subset import graphs, label_line, wikidata_line

GRAPH = [
    ("Q1", "P19", "Q2"), ("Q1", "P31", "Q5"), ("Q2", "P17", "Q3"), ("Q3", "P36", "Q4"), ("Q7", "P19", "Q2"),
    ("Q1", "P2", "a \\\"literal\\\""), ("Q2", "P31", "Q6"), ("Q4", "P1", "Q8"),
]  # fmt: skip
TEXT = "".join(map(wikidata_line, GRAPH)) + "".join(map(label_line, ("Q1", "Q2", "Q5", "Q6", "Q8", "P19", "P36")))


class Clock:
    """Sleeps that take no time."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.slept.append(seconds)


def from_endpoint(
    server: SparqlServer, folder: Path, seeds: list[str], clock: Clock | None = None, **options: Any
) -> tuple[SubsetResult, set[str]]:
    names = options.keys() & {"batch", "page", "retries", "timeout"}
    endpoint = {"delay": 0, **{name: options.pop(name) for name in names}}
    chosen = SubsetOptions(**{"endpoint": endpoint, **options})
    result = subset_of_endpoint(server.address, seeds, chosen, PassFolder(folder / "endpoint"), sleep=clock or Clock())
    return result, written(result, folder / "endpoint.nt")


def from_file(text: str, folder: Path, seeds: list[str], **options: Any) -> tuple[SubsetResult, set[str]]:
    folder.mkdir(exist_ok=True)
    (folder / "dump.nt").write_text(text)
    chosen = SubsetOptions(**options)
    result = subset_of_dump([str(folder / "dump.nt")], seeds, chosen, PassFolder(folder / "file"))
    return result, written(result, folder / "file.nt")


def written(result: SubsetResult, path: Path) -> set[str]:
    result.write(path)
    return set(path.read_text(encoding="utf-8").splitlines())


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    graph=graphs,
    hops=st.integers(1, 3),
    max_degree=st.integers(0, 3),
    direction=st.sampled_from(["both", "forward"]),
    relations=st.sampled_from([(), ("P1",)]),
)
def test_the_subset_of_an_endpoint_is_that_of_its_graph_as_a_file(
    tmp_path_factory: pytest.TempPathFactory,
    graph: list[tuple[str, str, str]],
    hops: int,
    max_degree: int,
    direction: str,
    relations: tuple[str, ...],
) -> None:
    folder = tmp_path_factory.mktemp("endpoint")
    text = "".join(map(wikidata_line, graph)) + "".join(label_line(f"{kind}{n}") for n in range(1, 10) for kind in "QP")
    options = dict(hops=hops, max_degree=max_degree, direction=direction, relations=relations)
    with SparqlServer(text) as server:
        try:
            of_file, lines = from_file(text, folder, ["Q1", "Q2"], **options)
        except KgInputError:
            with pytest.raises(KgInputError, match="knows none of the 2 entities"):
                from_endpoint(server, folder, ["Q1", "Q2"], **options)
            return
        of_endpoint, found = from_endpoint(server, folder, ["Q1", "Q2"], batch=2, page=3, **options)
    assert found == lines
    same = ("kept", "entities", "relations", "seeds_not_found", "by_hop", "hubs_cut", "runs_cut")
    assert {name: of_endpoint.counts[name] for name in same} == {name: of_file.counts[name] for name in same}


def test_an_endpoint_that_misbehaves_is_asked_again_and_the_result_is_the_same(tmp_path: Path) -> None:
    clock = Clock()
    _, lines = from_file(TEXT, tmp_path, ["Q1"])
    with SparqlServer(TEXT) as server:
        server.misbehave(["429", "500", "cut", "truncated", "html"])
        result, found = from_endpoint(server, tmp_path, ["Q1"], clock, retries=5)
    assert found == lines
    assert result.counts["requests_retried"] == 5
    assert clock.slept[0] == RETRY_AFTER
    assert all(0.5 <= wait <= 60 for wait in clock.slept)


def test_a_request_that_takes_too_long_is_asked_again(tmp_path: Path) -> None:
    with SparqlServer(TEXT) as server:
        server.misbehave(["slow"])
        result, _ = from_endpoint(server, tmp_path, ["Q1"], timeout=0.6)
    assert result.counts["requests_retried"] == 1


def test_an_endpoint_that_stays_away_is_an_error_and_what_it_answered_is_not_asked_again(tmp_path: Path) -> None:
    with SparqlServer(TEXT) as server:
        server.misbehave([""] * 5 + ["500"] * 40)
        with pytest.raises(EndpointError, match="run the same command again later"):
            from_endpoint(server, tmp_path, ["Q1"], retries=1, batch=1)
        answered = server.queries[:4]
        server.faults.clear()
        server.queries.clear()
        result, found = from_endpoint(server, tmp_path, ["Q1"], batch=1)
        assert set(answered).isdisjoint(server.queries)
    assert result.counts["passes_found_done"] == ["2 batches"]
    assert found == from_file(TEXT, tmp_path, ["Q1"])[1]


def test_a_limit_of_requests_does_not_divide_a_query(tmp_path: Path) -> None:
    clock = Clock()
    with SparqlServer(TEXT) as server:
        server.misbehave(["429"] * 4)
        result, _ = from_endpoint(server, tmp_path, ["Q1", "Q2"], clock, hops=1)
        assert len(set(server.queries[:5])) == 1
    assert clock.slept[:3] == [RETRY_AFTER] * 3 and clock.slept[3] >= RETRY_AFTER
    assert result.counts["requests_retried"] == 4


def test_a_query_that_an_endpoint_refuses_is_not_repeated(tmp_path: Path) -> None:
    with SparqlServer(TEXT) as server:
        server.misbehave(["400"])
        with pytest.raises(EndpointError, match="refuses a query .status 400: the server says no"):
            from_endpoint(server, tmp_path, ["Q1"])
        assert len(server.queries) == 1


def test_a_query_that_is_too_large_is_divided(tmp_path: Path) -> None:
    seeds = [f"Q{number}" for number in range(1, 9)]
    text = "".join(wikidata_line((seed, "P1", "Q9")) for seed in seeds)
    with SparqlServer(text) as server:
        server.too_large = 2
        result, found = from_endpoint(server, tmp_path, seeds, hops=1, max_degree=0, direction="forward", retries=2)
    assert found == from_file(text, tmp_path, seeds, hops=1)[1]
    assert result.counts["kept"]["edges"] == 8


def test_rows_that_an_endpoint_holds_back_at_a_limit_of_its_own_are_fetched_too(tmp_path: Path) -> None:
    text = "".join(wikidata_line(("Q1", "P1", f"Q{number}")) for number in range(2, 2602))
    with SparqlServer(text, max_rows=1000) as server:
        result, found = from_endpoint(server, tmp_path, ["Q1"], hops=1, max_degree=0)
    assert len(found) == 2600 == result.counts["kept"]["edges"]


def test_requests_wait_for_the_delay(tmp_path: Path) -> None:
    clock = Clock()
    with SparqlServer(TEXT) as server:
        chosen = SubsetOptions(hops=1, endpoint={"delay": 5})  # type: ignore[arg-type]
        result = subset_of_endpoint(server.address, ["Q1"], chosen, PassFolder(tmp_path / "work"), sleep=clock)
    assert len(clock.slept) == result.counts["requests"] - 1
    assert all(4 < wait <= 5 for wait in clock.slept)


def test_freebase_ids_are_found_at_an_endpoint_of_wikidata(tmp_path: Path) -> None:
    text = TEXT + wikidata_line(("Q1", "P646", "/m/0abc"))
    with SparqlServer(text) as server:
        result, found = from_endpoint(server, tmp_path, ["m.0abc", "m.0xyz"])
    assert found == from_file(text, tmp_path, ["m.0abc", "m.0xyz"])[1]
    assert (result.counts["seeds_bridged"], result.not_found) == (1, ["m.0xyz"])


def test_other_graphs_are_followed_by_their_iris(tmp_path: Path) -> None:
    a, b, c, p = (f"http://example.org/{name}" for name in "abcp")
    label = "http://www.w3.org/2000/01/rdf-schema#label"
    text = f'<{a}> <{p}> <{b}> .\n<{b}> <{p}> <{c}> .\n<{c}> <{p}> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
    text += f'<{b}> <{label}> "Bé\\n"@en-GB .\n<{p}> <{label}> "relation"@en .\n<{c}> <{p}> _:x .\n'
    with SparqlServer(text) as server:
        result, found = from_endpoint(server, tmp_path, [a], hops=3)
    _, lines = from_file(text, tmp_path, [a], hops=3)

    def comparable(found: set[str]) -> set[str]:
        """The store folds language tags, and labels of blank nodes mean nothing."""
        return {line.partition("_:")[0].replace("en-gb", "en-GB") for line in found}

    assert comparable(found) == comparable(lines)
