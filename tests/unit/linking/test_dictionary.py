"""The mention dictionary holds every name of a graph, and finds what a plain search finds."""

from __future__ import annotations

import json
import random
from pathlib import Path

import duckdb
import numpy as np
import pytest

from kgqa_core.errors import ArtifactError, GraphMismatch, KgInputError
from kgqa_core.linking import kernels
from kgqa_core.linking.dictionary import build
from kgqa_core.linking.fold import fold, fold_text, keys
from kgqa_core.linking.mentions import MentionDictionary
from kgqa_core.linking.tagger import open_tagger
from kgqa_core.store.publish import publish_folder
from kgqa_core.workspace import Workspace
from tests.unit.linking.conftest import named, write_graph


def made(folder: Path, *graph: object, **more: object) -> MentionDictionary:
    write_graph(folder / "kg" / "kg.duckdb", *graph, **more)  # type: ignore[arg-type]
    (folder / "m").mkdir(exist_ok=True)
    build(Workspace(folder / "m"), kg=folder / "kg")
    return MentionDictionary(folder / "m")


def lookup(mentions: MentionDictionary, name: str) -> list[tuple[int, float]]:
    return mentions.candidates(number) if (number := mentions.find(name)) >= 0 else []


def test_labels_aliases_and_names_of_unlabelled_entities_are_found(tmp_path: Path) -> None:
    mentions = made(
        tmp_path,
        {
            "Q1": [("en", "Germany"), ("de", "Deutschland"), ("zh", "德国")],
            "http://example.org/New_York": [],
            "安徽": [],
        },
    )
    assert [lookup(mentions, name) for name in ("GERMANY", "deutschland", "德国", "New York", "安徽", "Q1", "")] == [
        [(0, 1.0)],
        [(0, 1.0)],
        [(0, 1.0)],
        [(1, 1.0)],
        [(2, 1.0)],
        [],
        [],
    ]


def test_commonness_is_the_share_of_the_degree_and_aliases_count_half(tmp_path: Path) -> None:
    entities = {"a": named("Paris"), "b": named("Paris"), "c": named("Ville Lumière", "Paris"), "x": named("France")}
    triples = [("a", "in", "x"), ("a", "r", "x"), ("a", "s", "x"), ("c", "in", "x")]
    mentions = made(tmp_path, entities, triples)
    # Masses: a 1 + 3, b 1, c (1 + 1) / 2; the last two are equal, so the lower id comes first.
    assert lookup(mentions, "paris") == [
        (0, pytest.approx(4 / 6)),
        (1, pytest.approx(1 / 6)),
        (2, pytest.approx(1 / 6)),
    ]


def test_page_views_decide_commonness_where_the_graph_has_them(tmp_path: Path) -> None:
    entities = {"a": named("Paris"), "b": named("Paris"), "x": named("France")}
    mentions = made(tmp_path, entities, [("a", "in", "x")], views={"b": 999})
    assert lookup(mentions, "paris") == [(1, pytest.approx(1000 / 1001)), (0, pytest.approx(1 / 1001))]


def test_relatedness_is_milne_wittens_over_neighbours_both_ways(tmp_path: Path) -> None:
    entities = {key: named(f"Name {key}") for key in "abcdefgh"}
    mentions = made(tmp_path, entities, [("a", "r", "c"), ("b", "r", "c"), ("d", "r", "a"), ("d", "r", "b")])
    # a: {a, c, d}; b: {b, c, d}; they share 2 of 3 each, in a graph of 8.
    expected = 1 - (np.log(3) - np.log(2)) / (np.log(8) - np.log(3))
    assert mentions.relatednesses([0], [1, 0, 7]) == [[pytest.approx(expected), 1.0, 0.0]]
    assert mentions.relatednesses([1], [0]) == [[pytest.approx(expected)]]


def test_the_same_graph_gives_the_same_digest(tmp_path: Path) -> None:
    rng = random.Random(2)
    entities = {f"k{n}": named(f"Name {rng.randrange(60)}", f"Other {n}") for n in range(100)}
    triples = sorted({(f"k{rng.randrange(100)}", f"r{rng.randrange(5)}", f"k{rng.randrange(100)}") for _ in range(180)})
    write_graph(tmp_path / "kg" / "kg.duckdb", entities, triples)
    refs = [
        publish_folder("mentions", tmp_path / name, lambda out, work: build(Workspace(out, work), kg=tmp_path / "kg"))
        for name in ("one", "two")
    ]
    assert refs[0].digest == refs[1].digest


def test_hostile_names_neither_break_the_build_nor_the_walk(tmp_path: Path) -> None:
    hostile = ["!!!", "  ", "\u200b", "x" * 5000, "a\x00b", "'; DROP TABLE names; --", "[bold]red[/bold]", "\u202eevil"]
    hostile += ["🎉", "e\u0301" * 60, "()", "（）", "the ", "The The", "\U00020000", "'", "''s", "C#", "..."]
    mentions = made(tmp_path, {f"k{n}": named(name) for n, name in enumerate(hostile)})
    found = {name: lookup(mentions, name) for name in hostile}
    for number, name in enumerate(hostile):
        assert (number in {entity for entity, _ in found[name]}) == bool(keys(name)), name
    text = fold_text(" ".join(hostile))
    assert len(mentions.names.spots(text)) >= 8


def test_a_graph_without_any_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KgInputError, match="no entity of the graph"):
        made(tmp_path, {"???": [], "!!!": []})


def test_a_folder_that_is_no_dictionary_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="holds no mention dictionary"):
        MentionDictionary(tmp_path)
    made(tmp_path, {"a": named("Paris")})
    (tmp_path / "m" / "names.bin").write_bytes(b"pari")
    with pytest.raises(ArtifactError, match="4 bytes"):
        MentionDictionary(tmp_path / "m")
    meta = json.loads((tmp_path / "m" / "meta.json").read_text())
    (tmp_path / "m" / "meta.json").write_text(json.dumps(meta | {"format": 99}))
    with pytest.raises(ArtifactError, match="its format is 99"):
        MentionDictionary(tmp_path / "m")


def test_a_dictionary_of_another_graph_is_refused(tmp_path: Path) -> None:
    made(tmp_path, {"a": named("Paris")})
    write_graph(tmp_path / "other" / "kg.duckdb", {"a": named("Paris"), "b": named("London")})
    with pytest.raises(GraphMismatch, match="was made of another graph"):
        open_tagger(tmp_path / "m", tmp_path / "other")


def test_a_dictionary_of_a_graph_of_the_same_size_is_refused_too(tmp_path: Path) -> None:
    made(tmp_path, {"a": named("Paris"), "b": named("London")})
    write_graph(tmp_path / "other" / "kg.duckdb", {"b": named("London"), "a": named("Paris")})
    with pytest.raises(GraphMismatch, match="was made of another graph"):
        open_tagger(tmp_path / "m", tmp_path / "other")


@pytest.mark.parametrize("size", [4_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_names_are_found_as_a_plain_dictionary_finds_them(tmp_path: Path, size: int) -> None:
    rng = random.Random(11)
    words = ["".join(rng.choice("abcdeéß中国人日") for _ in range(rng.randint(1, 4))) for _ in range(400)]
    forms = [" ".join(rng.choice(words) for _ in range(rng.randint(1, 4))) for _ in range(size)]
    mentions = _from_names(tmp_path, forms)
    plain: dict[str, set[int]] = {}
    for number, form in enumerate(forms):
        for key, _ in keys(form):
            plain.setdefault(key, set()).add(number)
    assert mentions.n_whole == len(plain)
    every = [mentions.names[number] for number in range(len(mentions))]
    assert every == sorted(every, key=str.encode)
    assert [name for name in every if mentions.find_whole(name) >= 0] == sorted(plain, key=str.encode)
    for form in rng.sample(forms, size // 20):
        number = mentions.find(form)
        whole = mentions.candidates(number)[: mentions.whole_candidates(number)]
        assert {entity for entity, _ in whole} == plain[fold(form)]
    for _ in range(200):
        text = " ".join(rng.choice(words) for _ in range(rng.randint(1, 9)))
        folded = fold_text(text)
        data = folded.data.tobytes()
        rows = mentions.names.spots(folded)
        compiled = kernels.spot(mentions.names.blob, mentions.names.offsets, folded.data, folded.begin, folded.end)
        assert [list(row) for row in rows] == compiled.tolist()
        expected = {
            (first, last, data[folded.begin[first] : folded.end[last]].decode())
            for first in range(len(folded.begin))
            for last in range(first, len(folded.begin))
            if data[folded.begin[first] : folded.end[last]].decode() in plain
        }
        found = {(first, last, mentions.names[name]) for first, last, name in rows}
        assert {row for row in found if mentions.find_whole(row[2]) >= 0} == expected


def _from_names(folder: Path, forms: list[str]) -> MentionDictionary:
    import duckdb
    import pyarrow as pa

    write_graph(folder / "kg" / "kg.duckdb", {})
    table = pa.table({"id": list(range(len(forms))), "form": forms})
    with duckdb.connect(str(folder / "kg" / "kg.duckdb")) as connection:
        connection.register("forms", table)
        connection.execute("INSERT INTO entities(id, key, kind, popularity) SELECT id, id, 'entity', 0 FROM forms")
        connection.execute("INSERT INTO labels(id, lang, label) SELECT id, 'en', form FROM forms")
    (folder / "m").mkdir()
    build(Workspace(folder / "m"), kg=folder / "kg")
    return MentionDictionary(folder / "m")


def test_names_that_are_cut_by_a_block_are_put_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entities = {
        key: named(name, "Paris") for key, name in zip("abcde", ("Paris", "Rome", "Bonn", "Oslo", "Bern"), strict=True)
    }
    whole = made(tmp_path / "whole", entities)
    monkeypatch.setattr("kgqa_core.linking.dictionary.ROWS", 2)
    monkeypatch.setattr("kgqa_core.linking.dictionary.SORTED", 2)  # ranges of names, too
    cut = made(tmp_path / "cut", entities)
    files = sorted(path.name for path in whole.folder.iterdir())
    assert len(lookup(cut, "paris")) == 5
    assert [(whole.folder / name).read_bytes() for name in files] == [
        (cut.folder / name).read_bytes() for name in files
    ]


def test_a_view_in_the_place_of_a_table_puts_no_file_into_the_dictionary(tmp_path: Path) -> None:
    write_graph(tmp_path / "kg" / "kg.duckdb", {"a": named("Paris")})
    (tmp_path / "secret.txt").write_text("canary")
    with duckdb.connect(str(tmp_path / "kg" / "kg.duckdb")) as connection:
        view = f"SELECT 0 AS id, 'en' AS lang, content AS label FROM read_text('{tmp_path / 'secret.txt'}')"
        connection.execute(f"DROP TABLE relation_labels; CREATE VIEW relation_labels AS {view}")
    (tmp_path / "m").mkdir()
    with pytest.raises(duckdb.PermissionException):
        build(Workspace(tmp_path / "m"), kg=tmp_path / "kg")
