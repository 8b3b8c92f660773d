"""SPARQL executed over slices of a graph: what comes out, what a solution is made of, and what is refused."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyoxigraph as ox
import pytest

from kgqa_core.config import KgOptions
from kgqa_core.errors import FormError, FormTimeout
from kgqa_core.kg.build import build
from kgqa_core.kg.store import KgStore
from kgqa_core.kg.vocabulary import FREEBASE, XSD
from kgqa_core.logic.execute import execute
from kgqa_core.logic.sparql import from_sparql
from kgqa_core.logic.sparql_dialect import PREFIXES, standard
from kgqa_core.logic.sparql_execution import run
from kgqa_core.logic.sparql_execution.engine import NotExecuted
from kgqa_core.logic.sparql_execution.run import QueryResult, SparqlRunner
from kgqa_core.logic.sparql_execution.scopes import read_scopes
from kgqa_core.logic.sparql_execution.slice import slice_of
from kgqa_core.workspace import Workspace
from tests.support.command import ROOT

TRIPLES = """
m.book  book.author  m.ann
m.book  book.year  "1999"^^gYear
m.book2  book.author  m.ann
m.book2  book.year  "2003-05-01"^^date
m.book3  book.author  m.bob
m.book  book.pages  "100"^^integer
m.book2  book.pages  "250"^^integer
m.book3  book.pages  "100"^^integer
m.ann  person.marriage  m.cvt1
m.cvt1  marriage.spouse  m.bob
m.cvt1  marriage.from  "1990-02-03"^^date
m.ann  person.marriage  m.cvt2
m.cvt2  marriage.spouse  m.carl
m.cvt2  marriage.from  "2001"^^gYear
m.ann  person.born  m.rome
m.bob  person.born  m.oslo
m.rome  place.in  m.italy
m.italy  place.in  m.europe
m.oslo  place.in  m.norway
m.ann  type.object.type  people.person
m.bob  type.object.type  people.person
"""

STATEMENTS = "Q1\tP69\tQ2\nQ1\tP69\tQ3\nQ4\tP69\tQ2\nQ2\tP31\tQ10\nQ10\tP279\tQ11\nQ5\tP6\tQ1\n"
QUALIFIERS = "Q1\tP69\tQ2\tP512\tQ20\nQ1\tP69\tQ2\tP582\tQ21\nQ4\tP69\tQ2\tP512\tQ22\nQ1\tP69\tQ3\tP512\tQ22\n"


def freebase_lines() -> Iterator[str]:
    for line in TRIPLES.strip().splitlines():
        subject, relation, value = line.split("  ")
        if value.startswith('"'):
            text, _, kind = value.partition("^^")
            value = f"{text}^^<{XSD}{kind}>"
        else:
            value = f"<{FREEBASE}{value}>"
        yield f"<{FREEBASE}{subject}> <{FREEBASE}{relation}> {value} .\n"


@pytest.fixture(scope="module")
def freebase(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparqlRunner]:
    folder = tmp_path_factory.mktemp("freebase")
    (folder / "graph.nt").write_text("".join(freebase_lines()), encoding="utf-8")
    with opened(folder, KgOptions(files=(str(folder / "graph.nt"),), format="freebase")) as runner:
        yield runner


@pytest.fixture(scope="module")
def wikidata(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparqlRunner]:
    folder = tmp_path_factory.mktemp("wikidata")
    (folder / "triples.tsv").write_text(STATEMENTS, encoding="utf-8")
    (folder / "qualifiers.tsv").write_text(QUALIFIERS, encoding="utf-8")
    (folder / "labels.en.tsv").write_text("Q1\tAnn\nQ2\tEast School\nQ3\tWest School\n", encoding="utf-8")
    files = tuple(str(folder / name) for name in ("triples.tsv", "labels.en.tsv", "qualifiers.tsv"))
    with opened(folder, KgOptions(files=files)) as runner:
        yield runner


def opened(folder: Path, options: KgOptions) -> SparqlRunner:
    (folder / "kg").mkdir()
    build(Workspace(folder / "kg"), options=options)
    return SparqlRunner(KgStore.open(folder / "kg"))


def keys(runner: SparqlRunner, result: QueryResult) -> set[str]:
    return set(runner.store.entity_keys(result.nodes).values())


def named(runner: SparqlRunner, triples: tuple[int, ...]) -> list[tuple[str, str, str]]:
    relations, rows = runner.store.relation_keys(), runner.store.triples(triples)
    names = runner.store.entity_keys({end for head, _, tail in rows.values() for end in (head, tail)})
    return [(names[rows[i][0]], relations[rows[i][1]], names[rows[i][2]]) for i in triples]


def test_a_solution_has_the_intermediate_entities_of_the_query(freebase: SparqlRunner) -> None:
    text = (
        "SELECT DISTINCT ?x WHERE { FILTER (?x != ns:m.ann) ns:m.ann ns:person.marriage ?y . ?y ns:marriage.spouse ?x }"
    )
    result = freebase.run(text)
    assert keys(freebase, result) == {"m.bob", "m.carl"}
    assert [named(freebase, one.triples) for one in result.solutions] == [
        [("m.ann", "person.marriage", "m.cvt1"), ("m.cvt1", "marriage.spouse", "m.bob")],
        [("m.ann", "person.marriage", "m.cvt2"), ("m.cvt2", "marriage.spouse", "m.carl")],
    ]


def test_solutions_with_gold_answers_come_first(freebase: SparqlRunner) -> None:
    text = "SELECT ?x WHERE { ns:m.ann ns:person.marriage ?y . ?y ns:marriage.spouse ?x }"
    (carl,) = freebase.store.resolve(["m.carl"])["m.carl"]
    first = freebase.run(text, gold=(carl,)).solutions[0]
    assert first.nodes == {carl}


def test_a_superlative_has_the_triples_of_the_best_alone(freebase: SparqlRunner) -> None:
    text = (
        "PREFIX ns: <http://rdf.freebase.com/ns/> SELECT DISTINCT ?x WHERE { ns:m.ann ns:person.marriage ?y . "
        "?y ns:marriage.spouse ?x . ?y ns:marriage.from ?d } ORDER BY DESC(xsd:datetime(?d)) LIMIT 1"
    )
    result = freebase.run(text)
    assert keys(freebase, result) == {"m.carl"}, "a year is compared with a day, as Virtuoso does"
    assert [named(freebase, one.triples)[-1] for one in result.solutions] == [("m.cvt2", "marriage.from", "2001")]


def test_dates_that_virtuoso_takes_are_compared(freebase: SparqlRunner) -> None:
    text = (
        "SELECT ?x WHERE { ?x ns:book.author ns:m.ann . ?x ns:book.year ?d . "
        'FILTER (xsd:datetime(?d) < "2000-12-31"^^xsd:dateTime OR ?x = ns:m.none) }'
    )
    assert keys(freebase, freebase.run(text)) == {"m.book"}


def test_a_count_of_an_inner_query_has_the_triples_of_what_is_counted(freebase: SparqlRunner) -> None:
    text = (
        "SELECT (COUNT(?x0) AS ?value) WHERE { SELECT DISTINCT ?x0 WHERE { ?x0 ns:type.object.type ns:people.person . "
        "?x0 ns:person.born ?p . VALUES ?p { ns:m.oslo } } }"
    )
    result = freebase.run(text)
    assert result.values == ("1",) and not result.nodes
    assert [sorted(named(freebase, one.triples)) for one in result.solutions] == [
        [("m.bob", "person.born", "m.oslo")]
    ], "types of Freebase are in a table of their own"


def test_optional_group_by_and_paths_are_executed(freebase: SparqlRunner) -> None:
    most = (
        "SELECT ?a WHERE { ?b ns:book.author ?a . ?a ns:type.object.type ns:people.person } "
        "GROUP BY ?a ORDER BY DESC(COUNT(?b)) LIMIT 1"
    )
    result = freebase.run(most)
    assert keys(freebase, result) == {"m.ann"}
    assert {head for one in result.solutions for head, _, _ in named(freebase, one.triples)} == {
        "m.book", "m.book2",
    }  # fmt: skip
    ways = freebase.run("SELECT ?c WHERE { ns:m.ann ns:person.born/ns:place.in+ ?c }")
    assert keys(freebase, ways) == {"m.italy", "m.europe"}
    assert max((named(freebase, one.triples) for one in ways.solutions), key=len) == [
        ("m.ann", "person.born", "m.rome"), ("m.rome", "place.in", "m.italy"), ("m.italy", "place.in", "m.europe"),
    ]  # fmt: skip
    optional = freebase.run(
        "SELECT ?b WHERE { ?b ns:book.author ?a OPTIONAL { ?a ns:person.born ?p } FILTER(!BOUND(?p)) "
        "VALUES ?a { ns:m.bob ns:m.carl } }"
    )
    assert optional.empty


@pytest.mark.parametrize(
    "query",
    [
        "SELECT (COUNT(?b) AS ?n) { ?b ns:book.author ns:m.ann }",
        "SELECT (MAX(?y) AS ?n) { ?b ns:book.author ns:m.ann . ?b ns:book.year ?y }",
        "SELECT (SUM(?y) AS ?n) { ?a ns:type.object.type ns:people.person . ?b ns:book.author ?a ; ns:book.pages ?y }",
        "SELECT (AVG(?y) AS ?n) { ?b ns:book.author ns:m.ann . ?b ns:book.pages ?y }",
    ],
)
def test_the_form_of_an_aggregate_gives_what_the_query_gives(freebase: SparqlRunner, query: str) -> None:
    computed, executed = execute(from_sparql(query), freebase.store), freebase.run(query)
    values = [] if computed.value is None else [computed.value]
    assert computed.nodes == executed.nodes and values == [float(text) for text in executed.values]
    assert not computed.empty


def test_an_absent_constant_is_named_and_gives_nothing(freebase: SparqlRunner) -> None:
    result = freebase.run("SELECT ?x WHERE { ns:m.nobody ns:person.born ?x }")
    assert result.empty and result.missing == (FREEBASE + "m.nobody",)


def test_statement_nodes_give_qualifiers_as_answers(wikidata: SparqlRunner) -> None:
    result = wikidata.run("SELECT ?v WHERE { wd:Q1 p:P69 ?s . ?s ps:P69 wd:Q2 . ?s pq:P512 ?v }")
    assert keys(wikidata, result) == {"Q20"}
    assert [named(wikidata, one.triples) for one in result.solutions] == [[("Q1", "P69", "Q2")]]
    back = wikidata.run("SELECT ?o WHERE { ?o p:P69 ?s . ?s ps:P69 ?x . ?s pq:P512 wd:Q22 }")
    assert keys(wikidata, back) == {"Q1", "Q4"}
    two = wikidata.run("SELECT ?a ?b WHERE { wd:Q1 p:P69 ?s . ?s ps:P69 ?a . ?s pq:P582 ?b }")
    assert keys(wikidata, two) == {"Q2", "Q21"}, "several answers are one set"


def test_types_by_subclasses_and_names_are_found(wikidata: SparqlRunner) -> None:
    text = 'SELECT ?o WHERE { ?p wdt:P69 ?o . ?p rdfs:label "Ann"@en . ?o wdt:P31/wdt:P279* wd:Q11 }'
    assert keys(wikidata, wikidata.run(text)) == {"Q2"}
    part = "SELECT ?o ?l WHERE { wd:Q1 wdt:P69 ?o . ?o rdfs:label ?l . FILTER(CONTAINS(lcase(?l), 'west')) }"
    assert keys(wikidata, wikidata.run(part)) == {"Q3"}
    served = (
        'SELECT ?o ?oLabel WHERE { wd:Q5 wdt:P6 ?o SERVICE wikibase:label { bd:serviceParam wikibase:language "en" } }'
    )
    assert keys(wikidata, wikidata.run(served)) == {"Q1"}


def test_yes_and_no_are_truths(wikidata: SparqlRunner) -> None:
    yes = wikidata.run("ASK WHERE { wd:Q1 wdt:P69 wd:Q3 }")
    assert yes.truth is True and [named(wikidata, one.triples) for one in yes.solutions] == [[("Q1", "P69", "Q3")]]
    no = wikidata.run("ASK WHERE { wd:Q4 wdt:P69 wd:Q3 }")
    assert no.truth is False and not no.solutions


def test_what_cannot_be_executed_has_a_reason(wikidata: SparqlRunner, freebase: SparqlRunner) -> None:
    for text, reason in (
        (
            "SELECT ?x WHERE { ?x psv:P1 ?y . ?x ps:P69 wd:Q2 }",
            "a value node of Wikidata, or a statement that is named",
        ),
        ("SELECT ?x WHERE { SERVICE <http://example.org/> { ?x ?p ?o } }", "SERVICE"),
        ("DESCRIBE wd:Q1", "DESCRIBE instead of SELECT or ASK"),
    ):
        with pytest.raises(NotExecuted) as fault:
            wikidata.run(text)
        assert fault.value.reason == reason
    with pytest.raises(FormError, match="SPARQL, character"):
        wikidata.run("SELECT ?x WHERE { ?x")
    small = SparqlRunner(freebase.store, most=2)
    with small, pytest.raises(NotExecuted, match="touch too many"):
        small.run("SELECT ?x WHERE { ?x ns:place.in ?y }")


def test_a_query_that_takes_too_long_is_ended_and_the_next_one_runs(freebase: SparqlRunner) -> None:
    product = " ".join(f"?a{n} ?r{n} ?b{n} ." for n in range(9))
    with SparqlRunner(freebase.store, seconds=1) as runner:
        with pytest.raises(FormTimeout, match="longer than 1 s"):
            runner.run(f"SELECT (COUNT(*) AS ?n) WHERE {{ {product} FILTER(?a0 = ?b1 || ?a2 = ?b3) }}")
        assert keys(runner, runner.run("SELECT ?x WHERE { ns:m.rome ns:place.in ?x }")) == {"m.italy"}


LONG = """
from kgqa_core.logic.sparql_execution.engine import SparqlEngine
engine = SparqlEngine(60)
engine.load("".join(f"<urn:a{i}> <urn:p> <urn:b{i}> .\\n" for i in range(3000)), [])
print(engine._running().pid, flush=True)
engine.query("SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }", {}, 5)
"""


def test_a_query_ends_with_a_process_that_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", LONG], cwd=ROOT, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        time.sleep(0.5)
        parent.kill()
    end = time.monotonic() + 5
    try:
        while time.monotonic() < end:
            os.kill(worker, 0)
            time.sleep(0.05)
    except ProcessLookupError:
        return
    os.kill(worker, signal.SIGKILL)
    pytest.fail("the query goes on 5 s after its parent was killed")


def test_the_time_of_a_slice_and_the_rows_of_a_result_are_bounded(
    freebase: SparqlRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(FormTimeout, match="part of the graph"):
        slice_of(read_scopes("SELECT ?x WHERE { ns:m.ann ns:person.born ?x }"), freebase.store, seconds=-1)
    two = "SELECT ?x WHERE { ns:m.ann ns:person.marriage ?y . ?y ns:marriage.spouse ?x }"
    monkeypatch.setattr(run, "ROWS", 1)
    with pytest.raises(NotExecuted, match="more than 1 results"):
        freebase.run(two)
    ordered = freebase.run(f"{two} ORDER BY ?x LIMIT 1".replace("?x WHERE", "DISTINCT ?x WHERE"))
    assert len(ordered.solutions) == 1
    counted = freebase.run(
        "SELECT (COUNT(?x) AS ?n) WHERE { ns:m.ann ns:person.marriage ?y . ?y ns:marriage.spouse ?x }"
    )
    assert counted.values == ("2",) and len(counted.solutions) == 1, "the first in the order of its terms"
    assert named(freebase, counted.solutions[0].triples)[-1][2] == "m.bob"


def test_numbers_are_found_however_they_are_written(tmp_path: Path) -> None:
    lines = (
        f'<{FREEBASE}m.a> <{FREEBASE}size> "007"^^<{XSD}integer> .\n',
        f'<{FREEBASE}m.b> <{FREEBASE}size> "7.0"^^<{XSD}float> .\n',
    )
    (tmp_path / "graph.nt").write_text("".join(lines), encoding="utf-8")
    with opened(tmp_path, KgOptions(files=(str(tmp_path / "graph.nt"),), format="freebase")) as runner:
        result = runner.run("SELECT ?s WHERE { ns:m.a ns:size ?s }")
        assert keys(runner, result) == {"007"} and len(result.solutions[0].triples) == 1
        assert keys(runner, runner.run("SELECT ?x WHERE { ?x ns:size ?s . ns:m.a ns:size ?t FILTER(?s = ?t) }")) == {
            "m.a", "m.b",
        }  # fmt: skip


def test_dialects_become_standard_and_quotations_stay() -> None:
    assert standard("FILTER (?a OR lang(?x) = 'OR')") == "FILTER (?a || lang(?x) = 'OR')"
    assert standard('"x"^^xsd:dateTime "2001"^^xsd:datetime') == '"x"^^xsd:dateTime "2001-01-01T00:00:00"^^xsd:dateTime'
    assert (
        standard("xsd:datetime(?d) year(?x) ?year ns:year", functions=False)
        == "xsd:datetime(?d) year(?x) ?year ns:year"
    )
    assert "dateTime>(?d)" in standard("xsd:datetime(?d)") and "?year" in standard("?year")
    best = "SELECT DISTINCT ?a WHERE { ?b ns:c ?a } ORDER BY DESC(COUNT(?b)) LIMIT 1"
    assert standard(best) == best.replace("} ORDER", "} GROUP BY ?a ORDER")
    assert standard(best.replace("COUNT(?b)", "?a")) == best.replace("COUNT(?b)", "?a")
    assert standard("SELECT COUNT(DISTINCT ?a AS ?a) WHERE {}") == "SELECT (COUNT(DISTINCT ?a) AS ?number) WHERE {}"
    assert standard("?x ns:a ?y # OR\n.") == "?x ns:a ?y \n."


# -- slices against the whole graph -----------------------------------------------------------------------------------

VARIABLES, ENTITIES, RELATIONS = ("a", "b", "c", "d"), 6, 3


def random_pattern(rng: random.Random) -> str:
    def end() -> str:
        return f"?{rng.choice(VARIABLES)}" if rng.random() < 0.7 else f"ns:m.{rng.randrange(ENTITIES)}"

    relation = f"ns:r{rng.randrange(RELATIONS)}"
    form = rng.random()
    if form < 0.1:
        relation = f"^{relation}"
    elif form < 0.2:
        relation = f"{relation}/ns:r{rng.randrange(RELATIONS)}"
    elif form < 0.3:
        relation += rng.choice("*+?")
    elif form < 0.4:
        relation = f"({relation}|ns:r{rng.randrange(RELATIONS)})"
    elif form < 0.45:
        relation = f"?{rng.choice('pq')}"
    return f"{end()} {relation} {end()} ."


def random_group(rng: random.Random, depth: int = 0) -> str:
    parts = [random_pattern(rng) for _ in range(rng.randint(1, 3))]
    if depth < 2:
        for _ in range(rng.randint(0, 2)):
            inner, other = random_group(rng, depth + 1), random_group(rng, depth + 1)
            parts.append(
                rng.choice(
                    (
                        f"OPTIONAL {{ {inner} }}", f"{{ {inner} }} UNION {{ {other} }}", f"MINUS {{ {inner} }}",
                        f"FILTER NOT EXISTS {{ {inner} }}", f"FILTER EXISTS {{ {inner} }}",
                        f"VALUES ?{rng.choice(VARIABLES)} {{ ns:m.0 ns:m.1 ns:m.2 }}",
                        f"FILTER (?{rng.choice(VARIABLES)} = ns:m.{rng.randrange(ENTITIES)})",
                        f"{{ SELECT ?{rng.choice(VARIABLES)} WHERE {{ {inner} }} }}",
                    )
                )
            )  # fmt: skip
        rng.shuffle(parts)
    return " ".join(parts)


@pytest.mark.slow
def test_slices_give_what_the_whole_graph_gives(tmp_path: Path) -> None:
    rng, unlike, answered, refused = random.Random(5), [], 0, 0
    lines = sorted({
        f"<{FREEBASE}m.{rng.randrange(ENTITIES)}> <{FREEBASE}r{rng.randrange(RELATIONS)}> "
        f"<{FREEBASE}m.{rng.randrange(ENTITIES)}> .\n"
        for _ in range(26)
    })  # fmt: skip
    (tmp_path / "graph.nt").write_text("".join(lines), encoding="utf-8")
    whole = ox.Store()
    whole.load("".join(lines).encode(), format=ox.RdfFormat.N_TRIPLES)
    with opened(tmp_path, KgOptions(files=(str(tmp_path / "graph.nt"),), format="freebase")) as runner:
        for _ in range(400):
            text = f"SELECT ?{rng.choice(VARIABLES)} WHERE {{ {random_group(rng)} }}"
            try:
                result = runner.run(text)
            except NotExecuted as fault:
                assert fault.reason == "the engine does not read it", text
                refused += 1
                continue
            found = {
                str(one[0]).removeprefix(f"<{FREEBASE}").rstrip(">")
                for one in whole.query(text, prefixes=PREFIXES)
                if one[0]
            }
            answered += bool(found)
            if keys(runner, result) != found:
                unlike.append((text, keys(runner, result), found))
            proof = {triple for one in result.solutions for triple in one.triples}
            assert proof <= set(range(len(lines)))
    assert not unlike, unlike[:3]
    assert answered > 100 and refused < 40
