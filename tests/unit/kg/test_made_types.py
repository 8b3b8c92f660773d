"""Types of graphs that state none: by the words that names end in and by the file's name; what no type is made of."""

from __future__ import annotations

import pytest

from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError
from kgqa_core.kg.update.delta import check_pair

TEAMS = "".join(
    f"{team} Team\tled by\t{lead}\n{team} Team\tlocated in\t{town}\n"
    for team, lead, town in (
        ("Search", "Omar Haddad", "Lisbon"), ("Data", "Ana Novak", "Bonn"), ("Mobile", "Li Wei", "Lagos"),
    )
)  # fmt: skip
SERVICES = "".join(
    f"{name}\t{relation}\t{value}\n"
    for name in ("mail-service", "user-service", "checkout", "search")
    for relation, value in (("owned by", "Reds"), ("written in", "Go"), ("stores data in", "Redis"))
)


def kinds(store):
    """The things of each type, by the type's key."""
    rows = store.connection.execute(
        "SELECT k.key, list(e.key ORDER BY e.key) FROM types t JOIN entities k ON k.id = t.type "
        "JOIN entities e ON e.id = t.entity GROUP BY 1 ORDER BY 1"
    ).fetchall()
    return dict(rows)


def test_things_are_called_by_the_word_that_their_names_end_in(make):
    store, counts = make(TEAMS, "g.tsv")
    assert kinds(store) == {"team": ["Data Team", "Mobile Team", "Search Team"]}
    assert counts["types"] == 1 and counts["rejects"] == 0
    assert store.meta["inferred"] == {"team": {"datatype": "type", "parsed": 3, "left_as_text": 0}}


def test_two_names_or_words_that_few_names_have_make_no_type(make):
    two = "Search Team\tled by\tOmar\nData Team\tled by\tAna\n"
    assert not kinds(make(two, "g.tsv")[0])
    assert not kinds(make(TEAMS + "Berlin\tlocated in\tGermany\nHamburg\tled by\tIda\n", "g.tsv")[0])


def test_a_file_names_the_things_that_are_like_those_which_have_its_name(make):
    expected = {"service": ["checkout", "mail-service", "search", "user-service"]}
    assert kinds(make(SERVICES + "Reds\tlocated in\tBonn\n", "services.tsv")[0]) == expected
    assert not kinds(make(SERVICES, "other.tsv")[0])


def test_a_file_in_the_plural_names_its_subjects_where_they_are_alike(make):
    films = "".join(f"{film}\tdirector\tA{film}\n{film}\tcast\tB\n{film}\tscript\tC\n" for film in ("Dust", "Rain"))
    assert kinds(make(films, "films.tsv")[0]) == {"film": ["Dust", "Rain"]}
    assert not kinds(make(films, "film.tsv")[0]) and not kinds(make(films, "facts.tsv")[0])
    assert not kinds(make(films + "Bonn\tin\tGermany\nUlm\tin\tGermany\n", "films.tsv")[0])


def test_stated_types_and_the_settings_leave_no_room_for_inferred_ones(make):
    assert kinds(make(TEAMS + "Bonn\trdf:type\tcity\n", "g.tsv")[0]) == {"city": ["Bonn"]}
    assert kinds(make(TEAMS + "Bonn\tis a\tcity\n", "g.tsv")[0]) == {"city": ["Bonn"]}
    assert not kinds(make(TEAMS + "Ana Novak\tlikes\tteam\n", "g.tsv")[0])
    for option in ({"infer_types": False}, {"literal": True}, {"type_predicates": ()}):
        assert not kinds(make(TEAMS, "g.tsv", **option)[0])


def test_labels_and_names_of_keys_count_in_turtle_and_blank_nodes_have_no_type(make):
    text = (
        "@prefix : <http://x/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n"
        ':SearchTeam :p :a . :DataTeam :p :b . :t3 :p :c ; rdfs:label "Mobile Team"@en . :a :q [ :of :b ] .'
    )
    store, _ = make(text, "g.ttl")
    assert kinds(store) == {"team": ["http://x/DataTeam", "http://x/SearchTeam", "http://x/t3"]}


def test_inferred_types_have_other_names_by_a_names_file(make):
    store, _ = make(TEAMS, "g.tsv", names={"types": {"team": "squad"}})
    assert store.resolve(["squad"])["squad"] == store.resolve(["team"])["team"] != []


def test_files_of_the_difference_are_refused_where_types_were_inferred(make):
    store, _ = make(TEAMS, "g.tsv")
    with pytest.raises(KgInputError, match="what 'team' means .* was inferred"):
        check_pair(store, KgOptions())
