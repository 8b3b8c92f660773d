"""Stages that read files whose names say something are made again when a file gets another name."""

from __future__ import annotations

import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from kgqa_core.config import KgOptions, PassagesOptions, PopularityOptions
from tasks.benchmarks import _views
from tasks.engine.external_digests import check_unchanged, recorded_digests
from tasks.kg import dump_digests
from tasks.passages import _corpus


def test_a_file_of_page_views_under_another_name_is_of_another_month(tmp_path: Path) -> None:
    january, user = tmp_path / "pageviews-202101-user", tmp_path / "pageviews-user"
    for file in (january, user):
        file.write_text("en.wikipedia Oslo 1 desktop 99 A99\n")
    keys = [_views(SimpleNamespace(popularity=PopularityOptions(files=(str(file),)))) for file in (january, user)]
    assert keys[0] != keys[1]


def test_a_table_of_titles_is_not_taken_for_one_of_views(tmp_path: Path) -> None:
    views, titles = tmp_path / "views.tsv", tmp_path / "titles.tsv"
    views.write_text("a\t1\n")
    titles.write_text("a\tA\n")
    both = PopularityOptions(files=(str(views), str(titles)))
    assert _views(SimpleNamespace(popularity=both)) != _views(
        SimpleNamespace(popularity=PopularityOptions(files=(str(views),), titles=str(titles)))
    )


def test_a_corpus_without_ids_under_another_name_is_another_corpus(tmp_path: Path) -> None:
    keys = []
    for name in ("one.txt", "two.txt"):
        (tmp_path / name).write_text("Documents are called one.txt:1 or two.txt:1.\n")
        keys.append(_corpus(SimpleNamespace(options=PassagesOptions(corpus=str(tmp_path / name), retriever="bm25"))))
    assert keys[0] != keys[1]
    folders = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "one.txt").write_text("Called one.txt:1 in any folder.\n")
        folders.append(_corpus(SimpleNamespace(options=PassagesOptions(corpus=str(tmp_path / name), retriever="bm25"))))
    assert folders[0] == folders[1]


@pytest.mark.parametrize("option", ["map", "context"])
def test_a_file_that_says_how_a_graph_is_read_is_part_of_its_key(tmp_path: Path, option: str) -> None:
    graph, said = tmp_path / "graph.nt", tmp_path / "said"
    graph.write_text("<urn:a> <urn:b> <urn:c> .\n")
    keys = []
    for text in ("{}", "{ }"):
        said.write_text(text)
        value = str(said) if option == "map" else {"": str(said)}
        keys.append(dump_digests(KgOptions(name="g", files=(str(graph),), **{option: value})))
    assert keys[0] != keys[1]


def test_an_archive_is_keyed_by_itself_and_not_by_what_is_in_it(tmp_path: Path) -> None:
    archive = tmp_path / "graph.zip"
    with zipfile.ZipFile(archive, "w") as members:
        members.writestr("a.nt", "<urn:a> <urn:b> <urn:c> .\n")
    with recorded_digests() as files:
        assert list(dump_digests(KgOptions(name="g", files=(str(archive),)))) == ["file 0"]
    assert [file.path for file in files] == [archive]
    check_unchanged(files)
