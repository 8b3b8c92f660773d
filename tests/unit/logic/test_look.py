"""Forms with names in place of keys: they are read back as the same forms."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgqa_core.config import KgOptions
from kgqa_core.errors import FormError
from kgqa_core.kg.build import build
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.look import by_key, by_name, look, read_form
from kgqa_core.logic.parser import parse
from kgqa_core.workspace import Workspace

LABELS = {
    "Q1": "New Zealand", "Q2": "Wellington", "Q3": "Wellington", "T1": "city",
    "P1": "capital", "P2": "head", "P3": "head",
}  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> KgStore:
    lines = ["Q1 P1 Q2", "Q1 P2 Q3", "Q2 P3 Q3", "Q2 rdf:type T1"]
    rows = ["\t".join(line.split()) for line in lines] + [f"{key}\trdfs:label\t{name}" for key, name in LABELS.items()]
    folder: Path = tmp_path_factory.mktemp("names")
    (folder / "graph.tsv").write_text("\n".join(rows), encoding="utf-8")
    (folder / "kg").mkdir()
    build(Workspace(folder / "kg"), options=KgOptions(files=(str(folder / "graph.tsv"),)))
    return KgStore.open(folder / "kg")


@pytest.mark.parametrize(
    ("form", "named"),
    [
        ("(JOIN (R P1) Q1)", "(JOIN (R capital) <New Zealand>)"),
        ("(COUNT (AND (TYPE T1) (JOIN (R P1) Q1)))", "(COUNT (AND (TYPE city) (JOIN (R capital) <New Zealand>)))"),
        ("(JOIN P1 Q2)", "(JOIN capital Q2)"),  # two things are called Wellington
        ("(JOIN (R P2) Q1)", "(JOIN (R P2) <New Zealand>)"),  # two relations are called head
    ],
)
def test_a_form_has_names_where_they_mean_one_thing_and_means_the_same(store: KgStore, form: str, named: str) -> None:
    assert str(by_name(parse(form), store)) == named
    assert by_key(parse(named), store) == parse(form)


def test_sparql_that_a_form_can_say_is_looked_up_as_that_form(store: KgStore) -> None:
    for text in ("SELECT ?x WHERE { <Q1> <P1> ?x }", "# a comment\nprefix p: <> select ?x where { <Q1> <capital> ?x }"):
        found = look(store, text)
        assert found["form"] == "(JOIN (R P1) Q1)" and [one["text"] for one in found["answers"]] == ["Wellington"]
    assert look(store, "ASK { <Q1> <P1> <Q2> }")["value"] is True


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT * WHERE { ?s ?p ?o }", "a variable relation, which logical forms cannot say; .* or use SQL"),
        ("SELECT ?x WHERE { ?x <P1 }", "SPARQL, character 19"),
        ("DESCRIBE <Q1>", "DESCRIBE instead of SELECT or ASK"),
        ("INSERT DATA { <Q1> <P1> <Q3> }", "SPARQL, character 1"),
        ("SELECT ?x WHERE { <Q1> <capitol> ?x }", "did you mean 'capital'"),
        ("SELECT ?x WHERE " + "{" * 25 + "<Q1> <P1> ?x" + "}" * 25, "24 brackets in each other"),
        ("SELECT ?x WHERE { <Q1> <P1> ?x . " + "?x <P1> ?x . " * 370 + "}", "too many patterns|cycle"),
        ("SELECT ?x WHERE { <Q1> <P1> ?x }" + " " * 5000, "5,000 characters"),
    ],
)
def test_sparql_that_no_form_says_is_refused_with_the_way_out(store: KgStore, text: str, message: str) -> None:
    with pytest.raises(FormError, match=message):
        look(store, text)


def test_what_begins_like_sparql_is_a_form_where_it_is_one(store: KgStore) -> None:
    assert str(read_form("(JOIN (R P1) Q1)")) == "(JOIN (R P1) Q1)" and str(read_form("Selected")) == "Selected"
