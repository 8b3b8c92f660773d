"""An update keeps ids, takes a dump or a pair of files, and says what it cannot do."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

from flows.cli.graph_folders import build_folder, export_folder, update_folder
from kgqa_core.config import KgOptions
from kgqa_core.dkg.csr import Dkg
from kgqa_core.errors import ArtifactError, KgInputError
from kgqa_core.kg.build import Part, build, build_parts
from kgqa_core.kg.formats.base import ENTITY, LITERAL, STATEMENTS, StatementBatch
from kgqa_core.kg.store import FILE, KgStore
from kgqa_core.kg.update.delta import DIFF, options_of, update, update_parts
from kgqa_core.kg.update.diff import differences
from kgqa_core.store.artifacts import content_digest, verify
from kgqa_core.workspace import Workspace

LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
PREFERRED_LABEL = "<http://www.w3.org/2004/02/skos/core#prefLabel>"
COMMENT = "<http://www.w3.org/2000/01/rdf-schema#comment>"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
GRAPH = [
    "<http://x/b> <http://x/near> <http://x/c> .",
    "<http://x/c> <http://x/far> <http://x/d> .",
    '<http://x/d> <http://x/size> "3" .',
    f'<http://x/b> {LABEL} "B"@en .',
]
Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Writes lines to a new N-Triples file and builds a graph of it, or brings `old` up to date with it."""
    numbers = itertools.count()

    def _make(lines: list[str], old: Path | None = None, **options: Any) -> Path:
        source = write(tmp_path / f"{next(numbers)}.nt", lines)
        out = source.with_suffix("")
        out.mkdir()
        chosen = KgOptions(files=(str(source),), format="ntriples", **options)
        if old is None:
            build(Workspace(out), options=chosen)
        else:
            update(Workspace(out), old=old, options=chosen)
        return out

    return _make


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def pair(old: Path, added: list[str], removed: list[str], out: Path, **options: Any) -> dict[str, Any]:
    """Brings `old` up to date with two files."""
    out.mkdir()
    files = {
        name: [str(write(out.with_suffix(f".{name}.nt"), lines))]
        for name, lines in (("added", added), ("removed", removed))
        if lines
    }
    return update(Workspace(out), old=old, options=KgOptions(format="ntriples", **options), **files)


def ids(folder: Path) -> dict[str, int]:
    with KgStore.open(folder) as store:
        return dict(store.connection.execute("SELECT key, id FROM entities UNION ALL FROM "
                                             "(SELECT key, id FROM relations)").fetchall())  # fmt: skip


def test_old_terms_keep_their_ids_and_new_ones_follow(make: Make) -> None:
    old = make(GRAPH)
    new = make([*GRAPH[1:], "<http://x/a> <http://x/about> <http://x/c> ."], old)
    before, after = ids(old), ids(new)
    assert after == {
        **{key: i for key, i in before.items() if key != "http://x/near"},
        "http://x/a": len(before) - 3,
        "http://x/about": 3,
    }


def test_an_id_is_never_given_again(make: Make) -> None:
    first = make([*GRAPH, "<http://x/e> <http://x/zone> <http://x/f> ."])
    second = make(GRAPH, first)
    third = make([*GRAPH, "<http://x/g> <http://x/zzz> <http://x/h> ."], second)
    assert not {ids(third)[f"http://x/{name}"] for name in "gh"} & {ids(first)[f"http://x/{name}"] for name in "ef"}
    assert ids(third)["http://x/zzz"] == ids(first)["http://x/zone"] + 1


def test_a_removed_relation_leaves_a_place_holder(make: Make) -> None:
    old = make(GRAPH)
    new = make([line for line in GRAPH if "near" not in line], old)
    with KgStore.open(old) as store:
        assert store.relation_keys() == ["http://x/far", "http://x/near", "http://x/size"]
    with KgStore.open(new) as store:
        assert store.relation_keys() == ["http://x/far", "<removed>-1", "http://x/size"]
        assert store.relation_names() == ["far", "<removed>-1", "size"]


def test_an_update_with_the_same_dump_is_the_same_graph_and_lists_nothing(make: Make) -> None:
    old = make(GRAPH)
    new = make(GRAPH, old)
    assert content_digest(new) == content_digest(old)
    assert json.loads((new / DIFF / "summary.json").read_text())["triples"] == {"added": 0, "changed": 0, "removed": 0}


def test_literals_are_told_apart_by_their_details(tmp_path: Path) -> None:
    def part(*details: str | None) -> list[Part]:
        date = ("a", "date", "1952-01-01T00:00:00Z", LITERAL, "http://www.w3.org/2001/XMLSchema#dateTime")
        columns = {name: STATEMENTS[name] for name in ("subject", "predicate", "object", "kind", "datatype", "detail")}
        return [
            Part(
                "part", "test", [StatementBatch(pl.DataFrame([(*date, one) for one in details], columns, orient="row"))]
            )
        ]

    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    build_parts(Workspace(tmp_path / "old"), part("9 gregorian", "11 julian"), KgOptions())
    update_parts(Workspace(tmp_path / "new"), part(None, "14 gregorian", "11 julian"), tmp_path / "old", KgOptions())
    with KgStore.open(tmp_path / "old") as old, KgStore.open(tmp_path / "new") as new:
        sql = "SELECT detail, id FROM entities WHERE kind = 'literal' ORDER BY id"
        assert old.connection.execute(sql).fetchall() == [("11 julian", 1), ("9 gregorian", 2)]
        assert new.connection.execute(sql).fetchall() == [("11 julian", 1), (None, 3), ("14 gregorian", 4)]


def test_a_pair_of_files_does_what_a_new_dump_does(make: Make, tmp_path: Path) -> None:
    added = ["<http://x/a> <http://x/near> <http://x/c> .", f'<http://x/b> {LABEL} "Bee"@de .']
    old, rebuilt = make(GRAPH), make([*GRAPH[1:], *added])
    strange = ["<http://x/b> <http://x/near> <http://x/never> ."]
    counts = pair(old, [*added, GRAPH[1]], [GRAPH[0], *strange], tmp_path / "new")
    assert differences(tmp_path / "new", rebuilt) == {}
    assert (counts["not_found"], counts["already_there"]) == (1, 1)
    assert counts["changes"]["triples"] == {"added": 1, "removed": 1, "changed": 0}


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(f'<http://x/b> {LABEL} "B"@en .', marks=pytest.mark.slow),
        pytest.param(f'<http://x/b> {PREFERRED_LABEL} "B"@en .', marks=pytest.mark.slow),
        f'<http://x/b> {LABEL} "Bee"@en .',
        pytest.param('<http://x/b> <http://www.w3.org/2004/02/skos/core#altLabel> "Bee"@en .', marks=pytest.mark.slow),
        pytest.param(f'<http://x/b> {COMMENT} "second"@en .', marks=pytest.mark.slow),
        pytest.param(f'<http://x/near> {LABEL} "near"@en .', marks=pytest.mark.slow),
        f"<http://x/b> {TYPE} <http://x/T> .",
        pytest.param('<http://x/b> <http://x/mid> "/m/0b" .', marks=pytest.mark.slow),
    ],
)
def test_every_kind_of_statement_can_be_taken_away_again(make: Make, tmp_path: Path, line: str) -> None:
    others = [
        *GRAPH,
        f'<http://x/b> {PREFERRED_LABEL} "B"@en .',
        f'<http://x/b> {LABEL} "Bee"@en .',
        f'<http://x/c> {LABEL} "C" .',
        f'<http://x/b> {COMMENT} "second"@en .',
        '<http://x/b> <http://schema.org/description> "first"@en .',
        '<http://x/c> <http://schema.org/description> "c"@en .',
        f"<http://x/b> {TYPE} <http://x/T> .",
        "<http://x/b> <http://x/kind> <http://x/T> .",
        f"<http://x/c> {TYPE} <http://x/T> .",
    ]
    options = {
        "types_as_triples": False,
        "type_predicates": (TYPE, "http://x/kind"),
        "bridges": ("http://x/mid",),
        "drop_relations": ("http://x/mid",),
    }
    without = [other for other in others if other != line]
    old, rebuilt = make([*without, line], **options), make(without, **options)
    counts = pair(old, [], [line], tmp_path / "without", **options)
    assert counts["not_found"] == 0
    assert differences(tmp_path / "without", rebuilt) == {}
    pair(tmp_path / "without", [line], [], tmp_path / "with", **options)
    assert differences(tmp_path / "with", old) == {}


def test_a_statement_in_both_files_of_a_pair_ends_up_in_the_graph(make: Make, tmp_path: Path) -> None:
    old = make(GRAPH)
    pair(old, [GRAPH[0]], [GRAPH[0]], tmp_path / "new")
    assert differences(tmp_path / "new", old) == {}


def test_page_views_stay_where_no_file_of_them_is_given(make: Make) -> None:
    old = make(GRAPH)
    with duckdb.connect(str(old / FILE)) as connection:
        connection.execute("UPDATE entities SET views = 7 WHERE key = 'http://x/c'")
    new = make(GRAPH[1:], old)
    with KgStore.open(new) as store:
        assert store.connection.execute("SELECT key, views FROM entities WHERE views IS NOT NULL").fetchall() == [
            ("http://x/c", 7)
        ]


def test_what_a_pair_cannot_tell_is_refused(make: Make, tmp_path: Path) -> None:
    old = make(GRAPH)
    line = ["<http://x/a> <http://x/near> <http://x/c> ."]
    with pytest.raises(KgInputError, match="kg.ranks differs"):
        pair(old, line, [], tmp_path / "one", ranks="all")
    informative = make(GRAPH, informative_only=True)
    with pytest.raises(KgInputError, match="informative_only"):
        pair(informative, line, [], tmp_path / "two", informative_only=True)
    with duckdb.connect(str(old / FILE)) as connection:
        connection.execute("INSERT INTO qualifiers VALUES (0, 0, 0, 0)")
    with pytest.raises(KgInputError, match="has 1 qualifiers"):
        pair(old, line, [], tmp_path / "three")
    with duckdb.connect(str(old / FILE)) as connection:
        connection.execute("DELETE FROM qualifiers; INSERT INTO filtered VALUES ('rank: not preferred', 3)")
    with pytest.raises(KgInputError, match="left out 3 statements because preferred ones"):
        pair(old, line, [], tmp_path / "four")


def test_a_pair_with_qualifiers_or_statement_nodes_is_refused(make: Make, tmp_path: Path) -> None:
    old = make(GRAPH)
    kgtk = write(tmp_path / "edges.tsv", ["id\tnode1\tlabel\tnode2", "e1\tQ1\tP31\tQ2", "\te1\tP580\tQ3"])
    (tmp_path / "one").mkdir()
    with pytest.raises(KgInputError, match=r"edges\.tsv has qualifiers"):
        update(Workspace(tmp_path / "one"), old=old, options=KgOptions(format="kgtk"), added=[str(kgtk)])
    node = "http://www.wikidata.org/entity/statement/Q1-x"
    rdf = write(
        tmp_path / "full.nt", [f"<http://www.wikidata.org/entity/Q1> <http://www.wikidata.org/prop/P31> <{node}> ."]
    )
    (tmp_path / "two").mkdir()
    with pytest.raises(KgInputError, match="full Wikidata RDF, with statement nodes"):
        update(Workspace(tmp_path / "two"), old=old, options=KgOptions(format="wikidata-rdf"), removed=[str(rdf)])


def test_what_the_old_graph_left_out_stays_counted(make: Make, tmp_path: Path) -> None:
    options = {"drop_relations": ("http://x/size",)}
    counts = pair(make(GRAPH, **options), ['<http://x/c> <http://x/size> "4" .'], [], tmp_path / "new", **options)
    assert counts["filtered"] == 2
    with KgStore.open(tmp_path / "new") as store:
        assert store.connection.execute("FROM filtered").fetchall() == [("relation: dropped", 2)]


def test_ranks_survive_a_pair(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "subject": ["http://x/a", "http://x/b"], "predicate": ["http://x/p"] * 2, "object": ["http://x/c"] * 2,
            "kind": [ENTITY] * 2, "datatype": [None] * 2, "rank": [1, 0],
        },
        schema_overrides={"kind": pl.Int8, "rank": pl.Int8, "datatype": pl.String},
    )  # fmt: skip
    (tmp_path / "old").mkdir()
    build_parts(Workspace(tmp_path / "old"), [Part("part", "test", [StatementBatch(frame)])], KgOptions())
    pair(tmp_path / "old", ["<http://x/c> <http://x/p> <http://x/d> ."], [], tmp_path / "new")
    with KgStore.open(tmp_path / "new") as store:
        ranks = "SELECT e.key, rank FROM triples JOIN entities e ON e.id = head ORDER BY 1"
        assert store.connection.execute(ranks).fetchall() == [("http://x/a", 1), ("http://x/b", 0), ("http://x/c", 0)]


def test_either_a_dump_or_a_pair_is_wanted(make: Make, tmp_path: Path) -> None:
    old = make(GRAPH)
    with pytest.raises(KgInputError, match="either the new dump, or"):
        update(Workspace(tmp_path), old=old, options=KgOptions())
    with pytest.raises(KgInputError, match="either the new dump, or"):
        update(Workspace(tmp_path), old=old, options=KgOptions(files=("a.nt",)), added=["b.nt"])


def test_a_folder_is_updated_in_place_with_the_options_it_was_built_with(tmp_path: Path) -> None:
    source = write(tmp_path / "old.nt", [*GRAPH, f'<http://x/c> {LABEL} "C"@fr .'])
    folder = tmp_path / "kg"
    build_folder([str(source)], folder, {"format": "ntriples", "only_languages": True})
    with pytest.raises(ArtifactError, match="no graph folder"):
        update_folder(tmp_path / "none", folder, files=[str(source)])
    before = ids(folder)
    write(source, [*GRAPH[1:], f'<http://x/c> {LABEL} "Cé"@fr .', '<http://x/c> <http://x/size> "4" .'])
    counts = update_folder(folder, folder, files=[str(source)], settings={"format": "ntriples"})
    verify(folder)
    assert options_of(folder)["only_languages"] is True and counts["filtered"] == 1
    assert counts["changes"]["triples"] == {"added": 1, "removed": 1, "changed": 0}
    assert ids(folder).items() >= {key: i for key, i in before.items() if key != "http://x/near"}.items()
    assert {path.name for path in (folder / DIFF).iterdir()} == {
        "entities.parquet", "relations.parquet", "triples.parquet", "summary.json",
    }  # fmt: skip
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_the_dkg_of_an_updated_graph_opens_and_is_shared_when_nothing_changed(tmp_path: Path) -> None:
    source = write(tmp_path / "old.nt", GRAPH)
    build_folder([str(source)], tmp_path / "kg", {"format": "ntriples"})
    export_folder(tmp_path / "kg", tmp_path / "dkg")
    write(source, [*GRAPH[1:], "<http://x/a> <http://x/about> <http://x/c> ."])
    update_folder(tmp_path / "kg", tmp_path / "kg2", files=[str(source)], settings={"format": "ntriples"})
    counts = export_folder(tmp_path / "kg2", tmp_path / "dkg2", old_dkg=tmp_path / "dkg")
    full = export_folder(tmp_path / "kg2", tmp_path / "full")
    assert counts["made"] == "exported" and counts["digest"] == full["digest"]
    dkg = Dkg.open(tmp_path / "dkg2")
    place = ids(tmp_path / "kg2")
    assert dkg.find_edge(place["http://x/c"], dkg.relation_ids["<inv>-http://x/about"], place["http://x/a"]) >= 0
    assert export_folder(tmp_path / "kg2", tmp_path / "dkg2", old_dkg=tmp_path / "dkg2")["made"] == "kept"
