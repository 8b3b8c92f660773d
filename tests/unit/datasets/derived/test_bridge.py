"""Freebase questions over Wikidata: what survives, what is rejected, and how paths are learnt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.config import KgOptions
from kgqa_core.datasets.derived.bridge import Bridge, bridge, ids_of_file, ids_of_graph
from kgqa_core.datasets.derived.bridge_paths import bridged_path, learn_paths, read_paths, write_paths
from kgqa_core.datasets.files.jsonl import canonical, read_question_file
from kgqa_core.datasets.files.seeds import seeds_of
from kgqa_core.errors import InputError
from kgqa_core.kg.build import build
from kgqa_core.kg.store import KgStore
from kgqa_core.workspace import Workspace

WD, WDT = "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/direct/"


def question(key: str, topics: list[str], answers: list[Any], path: list[str] | None = None, **more: Any) -> Any:
    value = {"id": key, "question": f"question {key}", "topic_entities": topics, "answers": answers, **more}
    return canonical(value | ({"relation_path": path} if path else {}))


def test_ids_are_replaced_and_what_is_lost_is_a_reject_with_its_reason() -> None:
    rows = [
        question("all", ["m.0a"], ["m.0b"], ["r.one"], answer_aliases={"m.0b": ["B"]}, split="train"),
        question("some", ["m.0a"], ["m.0b", "m.0lost"], ["r.one", "r.two"], split="train"),
        question("value", ["m.0a"], [1969], ["r.two"], split="test"),
        question("answer", ["m.0a"], ["m.0lost"]),
        question("topic", ["m.0gone"], ["m.0b"]),
    ]
    given = Bridge({"m.0a": ["Q1"], "m.0b": ["Q2", "Q3"]}, {("r.one",): ("P1",)})
    found = bridge(rows, given)
    assert [(row["id"], row["topic_entities"], row["answers"]) for row in found.rows] == [
        ("all", ["Q1"], ["Q2", "Q3"]), ("some", ["Q1"], ["Q2", "Q3"]), ("value", ["Q1"], ["1969"]),
    ]  # fmt: skip
    assert found.rows[0]["answer_aliases"] == {"Q2": ["B"], "Q3": ["B"]}
    assert found.rows[0]["relation_path"] == ["P1"] and "relation_path" not in found.rows[1]
    assert {one["id"]: one["reason"] for one in found.rejects} == {
        "answer": "no answer survives", "topic": "no topic survives"
    }  # fmt: skip
    counts = found.counts
    assert counts["topics"] == {"all": 2, "surviving": 1, "of_several_items": 0}
    assert counts["answers"] == {"all": 2, "surviving": 1, "of_several_items": 1}
    assert counts["relations"] == {"all": 2, "surviving": 1}
    assert counts["paths"] == {"all": 3, "surviving": 1}
    assert counts["by_split"]["train"] == {"all": 2, "surviving": 2}
    assert (counts["questions_with_every_answer"], counts["answers_lost_of_questions"]) == (2, 1)
    strict = bridge(rows, given, answers="all")
    assert [row["id"] for row in strict.rows] == ["all", "value"]


def test_what_survives_is_a_question_file_of_ours(tmp_path: Path) -> None:
    rows = [question("q", ["m.0a"], ["m.0b"], ["r.one"], split="dev", complexity="generic")]
    found = bridge(rows, Bridge({"m.0a": ["Q1"], "m.0b": ["Q2"]}, {("r.one",): ("P1", "<inv>-P2")}))
    path = tmp_path / "own.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in found.rows))
    (row,) = read_question_file(path)
    assert (row["topic_entities"], row["relation_paths"], row["hops"]) == (["Q1"], [["P1", "<inv>-P2"]], 2)


@pytest.mark.parametrize(
    ("path", "own"),
    [
        (("a", "b"), ("P9",)),
        (("a", "a"), ("P1", "P1")),
        (("<inv>-a",), ("<inv>-P1",)),
        (("<inv>-c",), ("<inv>-P3", "P2")),
        (("a", "x"), None),
    ],
)
def test_a_path_is_that_of_the_whole_or_those_of_its_relations(path: Any, own: Any) -> None:
    paths = {("a", "b"): ("P9",), ("a",): ("P1",), ("c",): ("<inv>-P2", "P3")}
    assert bridged_path(path, paths) == own


def test_a_file_of_paths_is_read_as_it_was_written_and_a_bad_line_is_named(tmp_path: Path) -> None:
    paths = {("a.b", "c.d"): ("P1",), ("e",): ("P2", "<inv>-P3")}
    write_paths(tmp_path / "paths.tsv", paths)
    assert read_paths(tmp_path / "paths.tsv") == paths
    (tmp_path / "bad.tsv").write_text("# a comment\na.b P1\n")
    with pytest.raises(InputError, match=r"bad.tsv line 2: 'a.b P1' is no pair of paths"):
        read_paths(tmp_path / "bad.tsv")


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    lines = [f'<{WD}Q{n}> <{WDT}P646> "/m/0{n}" .' for n in range(1, 8)]
    lines += [f"<{WD}{s}> <{WDT}{p}> <{WD}{o}> ." for s, p, o in (
        ("Q1", "P36", "Q2"), ("Q3", "P36", "Q4"), ("Q1", "P30", "Q5"), ("Q3", "P30", "Q5"),
        *((f"Q{n}", "P17", one) for n in (2, 4, 6, 7) for one in ("Q1", "Q3")),
    )]  # fmt: skip
    lines.append(f"<{WD}P36> <{WDT}P1628> <http://rdf.freebase.com/ns/location.country.capital> .")
    (tmp_path / "graph.nt").write_text("\n".join(lines) + "\n")
    return tmp_path / "graph.nt"


def test_a_path_is_learnt_that_finds_the_answers_and_little_else(graph: Path, tmp_path: Path) -> None:
    (tmp_path / "kg").mkdir()
    build(Workspace(tmp_path / "kg"), options=KgOptions(files=(str(graph),)))
    ids = {f"m.0{n}": [f"Q{n}"] for n in range(1, 8)}
    rows = [
        question("a", ["m.01"], ["m.02"], ["x.capital"]),
        question("b", ["m.03"], ["m.04"], ["x.capital"]),
        question("c", ["m.01"], ["m.05"], ["x.seen_once"]),
        question("d", ["m.0nowhere"], ["m.05"], ["x.absent"]),
    ]
    with KgStore.open(tmp_path / "kg") as store:
        paths, counts = learn_paths(rows, ids, store)
    # P17 joins them backwards too, but finds four cities of which one is right.
    assert paths == {("x.capital",): ("P36",)}
    assert counts == {"foreign_paths": 3, "with_ends_in_the_graph": 2, "learnt": 1}


def test_ids_and_equivalent_properties_are_the_same_from_a_dump_and_from_its_graph(graph: Path, tmp_path: Path) -> None:
    (tmp_path / "kg").mkdir()
    build(Workspace(tmp_path / "kg"), options=KgOptions(files=(str(graph),)))
    of_dump, of_folder = ids_of_graph([str(graph)]), ids_of_graph([str(tmp_path / "kg")])
    assert of_dump.ids == of_folder.ids == {f"m.0{n}": [f"Q{n}"] for n in range(1, 8)}
    assert of_dump.paths == of_folder.paths == {("location.country.capital",): ("P36",)}


def test_ids_of_a_file_of_pairs(tmp_path: Path) -> None:
    (tmp_path / "map.json").write_text(json.dumps({"/m/0a": {"wikidata_id": "Q1"}, "/m/0b": {"wikidata_id": None}}))
    assert ids_of_file(tmp_path / "map.json") == {"m.0a": ["Q1"]}


def test_seeds_are_topics_and_answers_that_may_be_entities() -> None:
    rows = [
        question("a", ["Q1"], ["Q2", "Q1"]),
        question("b", ["Q1", "Q3"], ["Q4"], answer_type="entities"),
        question("c", ["Q5"], [12], answer_type="number"),
    ]
    seeds = seeds_of(rows)
    assert seeds.keys == ["Q1", "Q3", "Q5", "Q2", "Q4"]
    assert (seeds.topics, seeds.answers) == (3, 3)
