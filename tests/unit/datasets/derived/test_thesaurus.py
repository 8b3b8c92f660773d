"""The thesaurus: files of one format in two languages, whose labels are each in one entry."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
import yaml

from kgqa_core.datasets.derived.thesaurus import FILES, PUBLIC, WITHOUT, public_names, read_thesaurus, thesaurus
from kgqa_core.errors import ConfigError
from kgqa_core.metrics.normalise import is_cjk
from tools.relation_names import lines


def written(path: Path, relations: list[dict[str, object]], **more: object) -> Path:
    path.write_text(yaml.safe_dump({"relations": relations, **more}, allow_unicode=True), encoding="utf-8")
    return path


def test_entries_of_all_files_are_in_one_thesaurus(tmp_path: Path) -> None:
    one = written(tmp_path / "one.yaml", [{"labels": ["capital"], "nouns": ["capital"]}], types=[["film", "movie"]])
    two = written(
        tmp_path / "two.yaml", [{"labels": ["首都", "省会"], "ask": ["<x>的首府在哪"]}], words=[["big", "large"]]
    )
    book = read_thesaurus(one, two)
    assert set(book.relations) == {"capital", "首都", "省会"} and book.relations["首都"] is book.relations["省会"]
    assert book.type("movie") == ("film",) and book.words["big"] == ("large",)
    assert set(read_thesaurus(two).relations) == {"首都", "省会"} and not read_thesaurus(two).types


@pytest.mark.parametrize("apart", [True, False])
def test_label_that_is_used_twice_is_refused_with_its_file(tmp_path: Path, apart: bool) -> None:
    rows: list[dict[str, object]] = [{"labels": ["capital"]}, {"labels": ["seat", "capital"]}]
    paths = [written(tmp_path / "a.yaml", rows[:1] if apart else rows)]
    if apart:
        paths.append(written(tmp_path / "b.yaml", rows[1:]))
    with pytest.raises(ConfigError, match=rf"{paths[-1].name}: .*'capital' is in two entries"):
        read_thesaurus(*paths)


@pytest.mark.parametrize("row", [{"labels": ["capital"], "noun": ["capital"]}, {"nouns": ["capital"]}])
def test_entry_with_an_unknown_field_or_without_labels_is_refused(tmp_path: Path, row: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"a\.yaml: entry .* unknown fields"):
        read_thesaurus(written(tmp_path / "a.yaml", [row]))


def test_vocabulary_has_the_words_of_relations_and_types_in_small_letters(tmp_path: Path) -> None:
    row = {
        "labels": ["IMDb score"], "nouns": ["rating"], "passive": ["rated by"], "active": ["rates"],
        "verb": ["scores|score"], "ask": ["how good is <x>"], "back": ["what did <x> judge"], "most": ["finest"],
    }  # fmt: skip
    book = read_thesaurus(written(tmp_path / "a.yaml", [row], types=[["film", "movie"]]))
    assert {"imdb", "score", "rating", "rated", "rates", "scores", "good", "judge", "film", "movie"} <= book.vocabulary
    assert not {"finest", "IMDb", "zorp"} & book.vocabulary


def test_packaged_thesaurus_has_both_languages() -> None:
    english, chinese = (read_thesaurus(path) for path in FILES)
    assert set(thesaurus().relations) == set(english.relations) | set(chinese.relations)
    assert thesaurus().relation("导演") is not None and thesaurus().relation("directed by") is not None
    assert len(set(chinese.relations.values())) > 40
    for label, entry in chinese.relations.items():
        assert any(map(is_cjk, label)) and entry.nouns, label
        assert all(any(map(is_cjk, text)) for text in (*entry.nouns, *entry.ask, *entry.back)), label


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_whole_questions_name_their_topic_once(path: Path) -> None:
    for label, entry in read_thesaurus(path).relations.items():
        assert all(text.count("<x>") == 1 for text in (*entry.ask, *entry.back)), label


def test_without_the_names_of_a_graph_no_lookup_gives_an_entry_for_one_of_them() -> None:
    book = read_thesaurus(*FILES)
    measures = {f"total {label} of x" for label, entry in book.relations.items() if entry.most}
    for names in (["directed by", "unit price (eur)", "HAS Genre"], [*book.relations], measures):
        rest = book.without(names)
        assert not [name for name in names if rest.relation(name) or rest.measure(name)]
        assert rest.types == book.types and set(rest.relations) < set(book.relations)
    assert {entry.labels[0] for entry in book.relations.values()} - {
        entry.labels[0] for entry in book.without(["Directed-by", "unit price", "zorp"]).relations.values()
    } == {"director", "price"}, "an entry goes with all its labels, and no other goes"
    assert dict(book.without([]).relations) == dict(book.relations)


def test_what_a_left_out_entry_says_changes_nothing(tmp_path: Path) -> None:
    rest: list[dict[str, object]] = [{"labels": ["capital"], "nouns": ["capital"]}]
    one, other = (
        read_thesaurus(written(tmp_path / f"{noun}.yaml", [{"labels": ["boss", "chief"], "nouns": [noun]}, *rest]))
        for noun in ("head", "tsar")
    )
    assert one.vocabulary != other.vocabulary
    left = one.without(["chief"]), other.without(["chief"])
    assert dict(left[0].relations) == dict(left[1].relations) and left[0].vocabulary == left[1].vocabulary


def test_a_variable_names_the_file_of_what_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = tmp_path / "names.txt"
    names.write_text("directed by\n首都\n", encoding="utf-8")
    whole = thesaurus()
    monkeypatch.setenv(WITHOUT, str(names))
    assert thesaurus() is thesaurus() and thesaurus().relation("directed by") is thesaurus().relation("省会") is None
    monkeypatch.setenv(WITHOUT, str(tmp_path / "no.txt"))
    with pytest.raises(ConfigError, match=rf"{WITHOUT} names '.*no\.txt', which cannot be read .* unset it"):
        thesaurus()
    monkeypatch.delenv(WITHOUT)
    assert thesaurus() is whole


def test_other_names_of_relations_are_those_of_wikidatas_properties() -> None:
    entry = public_names("place of birth")
    assert entry is public_names("Birthplace") is public_names("has birth location")
    assert entry is not None and entry.nouns[0] == "place of birth" and "born in" in entry.passive
    assert not entry.labels and not entry.ask, "labels are keys of the thesaurus"
    borders = public_names("shares border with")
    assert borders is not None and ("borders", "border") in borders.verb and "bordered by" in borders.passive
    assert public_names("zorp") is public_names("VIAF ID") is None
    inspired = public_names("after a work by")
    assert inspired is not None and not inspired.nouns


def test_packaged_names_are_what_the_tool_makes(shared_data: Path) -> None:
    rows = (shared_data / "relation_names" / "wikidata_properties.jsonl").read_text(encoding="utf-8").splitlines()
    made = lines(json.loads(row) for row in rows)
    assert gzip.decompress(PUBLIC.read_bytes()).decode().splitlines() == made and len(made) > 1000


def test_what_a_table_says_besides_is_no_part_of_a_relation_s_name() -> None:
    book = thesaurus()
    for label, plain in (("supplier name", "supplier"), ("goals this season", "goals"), ("current owner", "owner")):
        assert book.relation(label) is book.relation(plain) is not None
    assert book.relation("first name") is not book.relation("first")


def test_a_name_of_two_relations_is_that_of_the_one_with_more_statements() -> None:
    rows = [
        {"id": "P1", "datatype": "Item", "label": "author", "aliases": ["writer", "made by", "X2", "by"],
         "count_2020": 9},
        {"id": "P2", "datatype": "Item", "label": "editor", "aliases": ["writer", "Author", "edits texts"]},
        {"id": "P3", "datatype": "ExternalId", "label": "number", "aliases": ["code"]},
        {"id": "P4", "label": "height", "aliases": []},
    ]  # fmt: skip
    assert lines(rows) == ["author\tauthor|writer\tmade by\t", "editor\teditor|edits texts\t\t"]
