"""The thesaurus: files of one format in two languages, whose labels are each in one entry."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from kgqa_core.datasets.derived.thesaurus import FILES, read_thesaurus, thesaurus
from kgqa_core.errors import ConfigError
from kgqa_core.metrics.normalise import is_cjk


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
