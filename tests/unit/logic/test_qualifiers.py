"""Conditions on qualifiers over Wikidata's statements about Denmark: who was head of its government, and when."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from flows.cli.app import app
from kgqa_core.config import KgOptions
from kgqa_core.errors import FormError
from kgqa_core.kg.build import build
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.look import look, sql_of
from kgqa_core.logic.parser import parse
from kgqa_core.workspace import Workspace

NAMED = {"P6", "P580", "P582", "P1082", "Q182397", "Q312881", "Q348901", "Q441330", "Q721358"}


@pytest.fixture(scope="module")
def denmark(shared_data, tmp_path_factory):
    """The graph's folder: one entity of a dump, all its statements that are not deprecated, and names from a list."""
    folder = tmp_path_factory.mktemp("denmark")
    samples = shared_data / "wikidata_samples"
    with (samples / "wikidata-filter" / "entities").open(encoding="utf-8") as lines:
        entity = next(line for line in lines if '"id":"Q35",' in line[:40])
    (folder / "denmark.json").write_text(f"[\n{entity.rstrip().rstrip(',')}\n]\n", encoding="utf-8")
    with (samples / "derived" / "labels_en_pool.tsv").open(encoding="utf-8") as lines:
        named = [line.replace("\t", "\trdfs:label\t", 1) for line in lines if line.split("\t", 1)[0] in NAMED]
    (folder / "names.tsv").write_text("".join(named), encoding="utf-8")
    (folder / "kg").mkdir()
    files = (str(folder / "denmark.json"), str(folder / "names.tsv"))
    build(Workspace(folder / "kg"), options=KgOptions(files=files, ranks="normal", threads=1))
    return folder / "kg"


@pytest.fixture(scope="module")
def store(denmark):
    with KgStore.open(denmark) as opened:
        yield opened


def result_of(store, form):
    found = look(store, form, seconds=600)
    return sorted(row["entity"] for row in found["answers"]) if found["value"] is None else found["value"]


HEAD = "(JOIN (R P6) Q35 {})"


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ("(at P580 2010^^xsd:gYear)", ["Lars Løkke Rasmussen"]),
        ("(at P580 2010-05-01)", ["Lars Løkke Rasmussen"]),
        ("(at P580 1972^^xsd:gYear)", ["Anker Jørgensen", "Jens Otto Krag"]),
        ("(at P580 1972-10-04)", ["Jens Otto Krag"]),
        ("(at P580 1974-06^^xsd:gYearMonth)", ["Poul Hartling"]),
        ("(eq P580 1955-02-01)", ["H. C. Hansen"]),
        ("(eq P580 1955^^xsd:gYear)", ["H. C. Hansen"]),
        ("(ge P580 1972-10-05) (lt P582 1975^^xsd:gYear)", ["Anker Jørgensen"]),
        ("(ge P580 1972-10-05) (le P582 1975^^xsd:gYear)", ["Anker Jørgensen", "Poul Hartling"]),
        ("(at P580 1300^^xsd:gYear)", []),
        ("(current P582 1975-06-01) (lt P580 1975-06-01) (ge P580 1970^^xsd:gYear)", ["Anker Jørgensen"]),
        ("(last P580 1)", ["Lars Løkke Rasmussen"]),
    ],
)
def test_a_time_asks_for_one_statement_that_holds_then(store, conditions, expected):
    assert result_of(store, HEAD.format(conditions)) == expected


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("(QUALIFIER P580 (JOIN (R P6) Q35) Q441330)", ["1962-09-03T00:00:00Z", "1971-10-11T00:00:00Z"]),
        ("(QUALIFIER P582 (JOIN (R P6) Q35 (last P580 2)))", ["2015-06-28T00:00:00Z"]),
        ("(COUNT (QUALIFIER P580 (JOIN (R P6) Q35 (at P580 1972^^xsd:gYear))))", 2),
    ],
)
def test_a_qualifier_is_an_answer_with_its_statement_as_proof(store, form, expected):
    assert parse(str(parse(form))) == parse(form)
    found = look(store, form, seconds=600)
    assert [row["entity"] for row in found["answers"]] == expected or found["value"] == expected
    assert all("start time: " in fact for fact in found["proof"])


def test_conditions_count_and_combine_with_other_forms(store):
    # One who came back later has two statements, and is one.
    seventies = HEAD.format("(ge P580 1970^^xsd:gYear) (lt P580 1980^^xsd:gYear)")
    assert result_of(store, f"(COUNT {seventies})") == 3
    assert result_of(store, f"(MINUS {seventies} {HEAD.format('(at P580 1972^^xsd:gYear)')})") == ["Poul Hartling"]
    assert result_of(store, f"(HOLDS {seventies} Q348901)") is True
    assert result_of(store, f"(HOLDS {seventies} Q182397)") is False


def test_the_proof_tells_the_fact_with_its_qualifiers(store):
    found = look(store, "(JOIN (R <head of government>) Denmark (at <start time> 1974^^xsd:gYear))", seconds=600)
    assert found["form"].startswith("(JOIN (R P6) Q35 (at P580 1974")
    assert "Poul Hartling" in [row["entity"] for row in found["answers"]]
    [fact] = [text for text in found["proof"] if "Poul Hartling" in text]
    assert fact == (
        "(Denmark, head of government, Poul Hartling; start time: 1973-12-19T00:00:00Z; end time: 1975-02-13T00:00:00Z)"
    )


def test_a_name_that_means_nothing_is_reported_with_the_nearest(store):
    for form, part in (
        ("(JOIN (R <head of goverment>) Denmark)", "did you mean 'head of government'?"),
        ("(JOIN (R P6) Denmarkk)", "did you mean 'Denmark'?"),
        ("(JOIN (R P6) Q35 (at P580 2010))", "write its datatype, such as 2010^^xsd:gYear"),
    ):
        with pytest.raises(FormError) as caught:
            look(store, form)
        assert part in str(caught.value)


def test_where_there_is_no_answer_the_types_may_say_why(store):
    found = look(store, "(ARGMAX (JOIN (R P6) Q35) P1082)", seconds=600)
    assert found["answers"] == [] and found["proof"] == []
    assert "but applied to" in found["why"]


def test_the_key_of_a_relation_wins_over_the_label_of_another(tmp_path):
    lines = "a\tcountry\tb\na\tx_country\tc\nx_country\trdfs:label\tcountry\n"
    (tmp_path / "graph.tsv").write_text(lines, encoding="utf-8")
    build(Workspace(tmp_path), options=KgOptions(files=(str(tmp_path / "graph.tsv"),), threads=1))
    with KgStore.open(tmp_path) as store:
        assert result_of(store, "(JOIN (R country) a)") == ["b"]
        assert result_of(store, "(JOIN (R x_country) a)") == ["c"]


@pytest.mark.parametrize(
    "words", [("--limit", str(2**63 - 1)), ("--seconds", "inf"), ("--seconds", "nan"), ("--seconds", "-1")]
)
def test_the_command_refuses_bounds_that_are_none(denmark, words):
    found = CliRunner().invoke(app, ["kg", "query", "Q35", "--kg", str(denmark), *words])
    assert found.exit_code == 2 and "Invalid value" in found.output


def test_the_command_prints_answers_proof_and_query(denmark):
    def run(*words):
        return CliRunner().invoke(app, ["kg", "query", *words, "--kg", str(denmark)])

    form_text = HEAD.format("(at P580 2010^^xsd:gYear)")
    shown = run(form_text)
    assert shown.exit_code == 0 and "Lars Løkke Rasmussen" in shown.stdout
    assert "(Denmark, head of government, Lars Løkke Rasmussen; start time: 2009-04-05" in shown.stdout
    found = json.loads(run(form_text, "--json").stdout)
    assert [row["entity_key"] for row in found["answers"]] == ["Q182397"] and len(found["triples"]) == 1
    assert run(f"(COUNT {form_text})").stdout.splitlines()[0] == "1"
    assert run(f"(HOLDS {form_text} Q348901)").stdout.splitlines()[0] == "no"
    query = json.loads(run(form_text, "--sql", "--json").stdout)
    assert query["sql"].startswith("WITH t0") and "$1" in query["sql"] and "Q35" not in query["sql"]
    assert run(form_text, "--sql").stdout.count(" = ") >= len(query["parameters"])
    assert isinstance(run("(JOIN (R P6) Denmarkk)").exception, FormError)


def test_the_shown_query_is_the_one_that_runs(store):
    query = sql_of(store, HEAD.format("(at P580 2010^^xsd:gYear)"))
    rows = store.connection.execute(query["sql"], query["parameters"]).fetchall()
    assert [store.entity_keys([i])[i] for kind, i in rows if kind == 0] == ["Q182397"]
