"""Statements that are left out, by relation, datatype, value and language."""

from __future__ import annotations

import pytest

from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError
from kgqa_core.kg import filters
from kgqa_core.kg.store import KgStore
from kgqa_core.monitor import Quiet
from tests.support.staged import EN, LABEL, STRING, graph

BASE = filters.WIKIBASE
STATEMENTS = [
    ("Q1", LABEL, ("one", EN)), ("Q1", LABEL, ("eins", "@de")), ("Q1", LABEL, ("1", "@mul")), ("Q1", LABEL, ("I", "")),
    ("Q1", "P31", "Q5"), ("Q1", "P735", "Q7"), ("Q1", "P735", "Q8"), ("Q1", "P19", "Q9"),
    ("Q1", "P213", ("0000", BASE + "ExternalId")), ("Q1", "P18", ("a.jpg", BASE + "CommonsMedia")),
    ("Q1", "P19", ("somevalue", BASE + "somevalue")), ("Q1", "P20", ("novalue", BASE + "novalue")),
    ("Q1", "P9", ("text", STRING)), ("P9", LABEL, ("family name", EN)), ("Q1", "P10000", ("x", "@de")),
]  # fmt: skip


@pytest.fixture
def left(tmp_path):
    """What a graph of STATEMENTS keeps: keys of relations of triples, and filtered by rule."""

    def _left(**options):
        counts = graph(tmp_path / "kg.duckdb", KgOptions(**options), STATEMENTS)
        with KgStore.open(tmp_path / "kg.duckdb") as store:
            kept = store.connection.execute(
                "SELECT r.key, count(*) FROM triples t JOIN relations r ON r.id = relation GROUP BY ALL"
            ).fetchall()
            rules = dict(store.connection.execute("FROM filtered").fetchall())
        (tmp_path / "kg.duckdb").unlink()
        parts = ("duplicates", "labels", "aliases", "descriptions", "type_statements", "filtered", "triples")
        assert sum(counts[part] for part in parts) == len(STATEMENTS)
        assert sum(rules.values()) == counts["filtered"]
        return dict(kept), rules, counts

    return _left


ALL = {"P31": 1, "P735": 2, "P19": 2, "P213": 1, "P18": 1, "P20": 1, "P9": 1, "P10000": 1}


def test_without_options_everything_stays(left):
    kept, rules, counts = left()
    assert kept == ALL and rules == {} and counts["labels"] == 5


def test_a_keep_list_keeps_names_and_types_too(left):
    kept, rules, counts = left(relations=("P19", "<P20>"))
    assert kept == {"P31": 1, "P19": 2, "P20": 1} and rules == {"relation: not listed": 6}
    assert counts["labels"] == 5


def test_a_drop_list_goes_before_the_keep_list_and_takes_names_too(left):
    kept, rules, counts = left(relations=("P19", "P20"), drop_relations=("P19", LABEL, "P31"))
    assert kept == {"P20": 1} and counts["labels"] == 0
    assert rules == {"relation: dropped": 8, "relation: not listed": 6}


def test_datatypes_are_dropped_by_iri_or_its_last_part(left):
    kept, rules, _ = left(drop_datatypes=("ExternalId", f"<{BASE}CommonsMedia>", "@de"))
    assert kept == {k: n for k, n in ALL.items() if k not in ("P213", "P18", "P10000")}
    assert rules == {"datatype: ExternalId": 1, f"datatype: <{BASE}CommonsMedia>": 1, "datatype: @de": 1}


def test_names_are_no_literals_to_be_dropped(left):
    kept, _, counts = left(drop_datatypes=("string", "@en"))
    assert counts["labels"] == 5 and "P9" not in kept


def test_unknown_values_are_dropped_when_asked(left):
    kept, rules, _ = left(unknown_values="drop")
    assert kept == {k: n - (k == "P19") for k, n in ALL.items() if k != "P20"} and rules == {"value: unknown": 2}


def test_names_in_other_languages_are_dropped_but_those_for_all_languages(left):
    kept, rules, counts = left(only_languages=True, languages=("en",))
    assert kept == ALL and counts["labels"] == 3 and rules == {"language": 2}
    assert left(only_languages=True, languages=("DE", ""))[2]["labels"] == 3
    assert left(only_languages=True, languages=("",))[2]["labels"] == 1


def test_informative_only_drops_names_media_and_identifiers(left):
    kept, rules, _ = left(informative_only=True)
    assert kept == {"P31": 1, "P19": 2, "P20": 1, "P10000": 1} and rules == {"relation: not informative": 5}


@pytest.mark.parametrize(
    ("key", "labels"),
    [
        ("P734", []), ("http://www.wikidata.org/prop/direct/P735", []), ("x", ["ISNI ID"]), ("x", ["image"]),
        ("http://dbpedia.org/ontology/wikiPageID", []), ("http://xmlns.com/foaf/0.1/givenName", []),
        ("http://xmlns.com/foaf/0.1/homepage", []), ("x", ["topic's main category"]), ("x", ["Commons category"]),
        ("people.person.first_name", []), ("common.topic.image", []), ("http://www.w3.org/2002/07/owl#sameAs", []),
    ],
)  # fmt: skip
def test_relations_that_say_little(key, labels):
    assert not filters.is_informative(key, labels)


@pytest.mark.parametrize(
    ("key", "labels"),
    [
        ("P19", ["place of birth"]), ("P31", []), ("x", ["video game platform"]), ("x", ["mass media owner"]),
        ("has_tags", []), ("starred_actors", []), ("出生地", []), ("x", ["named after"]), ("x", ["sport category"]),
        ("people.person.place_of_birth", []), ("x", ["media franchise"]), ("film.film.directed_by", []),
        ("http://dbpedia.org/ontology/birthPlace", []), ("x", ["grid"]),
    ],
)  # fmt: skip
def test_relations_that_say_something(key, labels):
    assert filters.is_informative(key, labels)


def test_bundled_and_benchmark_relations_say_something():
    for key in ("release_year", "in_language", "written_by", "has_genre", "has_imdb_rating", "directed_by"):
        assert filters.is_informative(key), key


class Notes(Quiet):
    """Keeps the notes."""

    def __init__(self):
        self.notes = []

    def note(self, message):
        self.notes.append(message)


def test_unknown_relations_are_noted_with_the_nearest(tmp_path):
    notes = Notes()
    options = KgOptions(relations=("P19", "P2O"), drop_relations=("P7355",))
    graph(tmp_path / "kg.duckdb", options, STATEMENTS, monitor=notes)
    assert len(notes.notes) == 2 and "'P2O'" in notes.notes[0] and "did you mean 'P735'" in notes.notes[1]


def test_a_keep_list_of_unknown_relations_is_an_error(tmp_path):
    with pytest.raises(KgInputError, match=r"no relation of kg\.relations.*'P2O'.*did you mean 'P20'"):
        graph(tmp_path / "kg.duckdb", KgOptions(relations=("P2O",)), STATEMENTS)
