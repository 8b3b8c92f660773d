"""The Atlas questions: counts, splits, wordings, and gold answers that follow from the graph."""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.datasets.published import atlas as packaged
from kgqa_core.types import ANSWER_TYPES, COMPLEXITY_TYPES, SPLITS
from tools.atlas import questions as atlas
from tools.atlas.drafts import expression, full
from tools.atlas.graph import AtlasGraph
from tools.atlas.paths import LARGEST_ANSWER
from tools.atlas.templates import compose, templates

Row = dict[str, Any]
FRANCE, SPAIN, PARIS = "urn:atlas:country:FR", "urn:atlas:country:ES", "urn:atlas:city:2988507"


@pytest.fixture(scope="module")
def graph() -> AtlasGraph:
    return atlas._bundled_world().graph


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return list(packaged.rows())


def of(rows: list[Row], **wanted: object) -> list[Row]:
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def test_there_are_at_least_12_000_questions_and_all_nine_types_in_every_split(rows: list[Row]) -> None:
    assert len(rows) >= 12_000
    counts = Counter((row["split"], row["complexity"]) for row in rows)
    assert all(counts[split, kind] >= 30 for split in SPLITS for kind in COMPLEXITY_TYPES)
    assert 2_000 <= sum(row["split"] == "test" for row in rows) <= 2_600


def test_generic_and_multi_hop_are_the_large_majority(rows: list[Row]) -> None:
    assert sum(row["complexity"] in {"generic", "multi-hop"} for row in rows) >= 0.6 * len(rows)
    paths = {tuple(row["relation_path"]) for row in rows if row["complexity"] in {"generic", "multi-hop"}}
    assert len(paths) >= 60


def test_no_question_and_no_id_twice(rows: list[Row]) -> None:
    assert len({row["question"].casefold() for row in rows}) == len(rows)
    assert len({row["id"] for row in rows}) == len(rows)


def test_the_packaged_questions_are_those_of_seed_7(graph: AtlasGraph, rows: list[Row]) -> None:
    assert atlas.generate(graph, seed=7) == rows


@pytest.mark.slow
def test_another_seed_other_questions(graph: AtlasGraph, rows: list[Row]) -> None:
    assert {row["question"] for row in atlas.generate(graph, seed=8)} != {row["question"] for row in rows}


def test_every_template_has_at_least_eight_wordings_with_some_only_in_test() -> None:
    known = templates()
    composed = [compose(a, p) for p in known.phrases for a in known.attributes]
    for wordings in [*(a.one for a in known.attributes), *known.operators.values(), *filter(None, composed)]:
        assert len(wordings.seen) >= 8 and len(wordings.test) >= 2
        assert len(set(wordings.seen) | set(wordings.test)) == len(wordings.seen) + len(wordings.test)


def test_test_wordings_occur_in_test_only(graph: AtlasGraph, rows: list[Row]) -> None:
    uses: dict[str, set[str]] = defaultdict(set)
    for row in of(rows, template="capital"):
        name = row["question"].replace("the " + graph.labels[row["topic_entities"][0]], "{x}")
        name = name.replace("The " + graph.labels[row["topic_entities"][0]], "{x}")
        uses[name.replace(graph.labels[row["topic_entities"][0]], "{x}")].add(row["split"])
    (capital,) = (a.one for a in templates().attributes if a.name == "capital")
    assert any(wording in uses for wording in capital.test)
    assert all(uses[wording] == {"test"} for wording in capital.test if wording in uses)


def test_some_entities_are_topics_of_test_questions_only(rows: list[Row]) -> None:
    held_out = set(atlas.test_only_entities(7))
    in_test = {topic for row in of(rows, split="test") for topic in row["topic_entities"]}
    elsewhere = {topic for row in rows if row["split"] != "test" for topic in row["topic_entities"]}
    assert not held_out & elsewhere
    assert len(held_out & in_test) >= 50


def test_no_topic_and_path_of_a_test_question_is_in_train_or_dev(rows: list[Row]) -> None:
    seen: dict[tuple[Any, ...], set[str]] = defaultdict(set)
    for row in rows:
        key = (tuple(sorted(row["topic_entities"])), tuple(sorted(map(tuple, row["relation_paths"]))))
        seen[key].add(row["split"])
    assert all(len(splits) == 1 for splits in seen.values())


def test_answers_of_path_questions_are_exactly_what_the_path_reaches(graph: AtlasGraph, rows: list[Row]) -> None:
    for row in rows:
        if row["complexity"] in {"generic", "multi-hop"}:
            reached = graph.follow(row["topic_entities"], row["relation_path"])
            assert reached == sorted(row["answers"]) and 1 <= len(reached) <= LARGEST_ANSWER
            assert not set(row["topic_entities"]) & set(reached)
            assert row["hops"] == len(row["relation_path"]) == (1 if row["complexity"] == "generic" else 2)


def test_topics_and_entity_answers_are_in_the_graph(graph: AtlasGraph, rows: list[Row]) -> None:
    for row in rows:
        assert row["answer_type"] in ANSWER_TYPES and row["split"] in SPLITS and row["answers"]
        assert all(key in graph.labels for key in row["topic_entities"])
        if row["answer_type"] == "entities":
            assert all(key in graph.labels for key in row["answers"])


def test_topic_labels_are_unique_and_stand_in_the_question(graph: AtlasGraph, rows: list[Row]) -> None:
    often = Counter(label.casefold() for label in graph.labels.values())
    for row in rows:
        for key in row["topic_entities"]:
            assert often[graph.labels[key].casefold()] == 1 and graph.labels[key] in row["question"]


def test_intersections_and_differences_equal_set_operations(graph: AtlasGraph, rows: list[Row]) -> None:
    for row in [*of(rows, complexity="intersection"), *of(rows, complexity="difference")]:
        first, last = row["relation_paths"][0], row["relation_paths"][-1]
        x, y = (set(graph.follow([t], p)) for t, p in zip(row["topic_entities"], (first, last), strict=True))
        assert set(row["answers"]) == (x & y if row["complexity"] == "intersection" else x - y)


def test_counts_equal_the_number_of_things_that_the_path_reaches(graph: AtlasGraph, rows: list[Row]) -> None:
    for row in of(rows, complexity="count"):
        assert row["answers"] == [str(len(graph.follow(row["topic_entities"], row["relation_path"])))]


def test_superlatives_have_the_extreme_number(graph: AtlasGraph, rows: list[Row]) -> None:
    for row in of(rows, complexity="superlative"):
        step, relation = row["relation_path"]
        numbers = {m: float(graph.edges[relation][m][0]) for m in graph.follow(row["topic_entities"], [step])}
        best = min if row["s_expression"].startswith("(ARGMIN") else max
        assert row["answers"] == [best(numbers, key=lambda m: numbers[m])]


def test_ordinals_have_the_rank_that_the_question_names(graph: AtlasGraph, rows: list[Row]) -> None:
    ranks = {"second": 1, "third": 2, "fourth": 3}
    for row in of(rows, complexity="ordinal"):
        step, relation = row["relation_path"]
        members = graph.follow(row["topic_entities"], [step])
        order = sorted(members, key=lambda m: -float(graph.edges[relation][m][0]))
        (rank,) = (place for word, place in ranks.items() if f" {word}" in row["question"])
        assert row["answers"] == [order[rank]]


def test_comparatives_name_the_larger(graph: AtlasGraph, rows: list[Row]) -> None:
    for row in of(rows, complexity="comparative"):
        (relation,) = row["relation_path"]
        tails = {t: graph.edges[relation][t] for t in row["topic_entities"]}
        size = {t: len(found) if relation.endswith("borders") else float(found[0]) for t, found in tails.items()}
        assert row["answers"] == [max(size, key=lambda t: size[t])]


def test_yes_and_no_are_true_and_balanced_in_every_split(graph: AtlasGraph, rows: list[Row]) -> None:
    for row in of(rows, complexity="yes/no"):
        x, y = row["topic_entities"]
        assert row["answers"] == ["yes" if y in graph.follow([x], row["relation_path"]) else "no"]
    for split in SPLITS:
        share = Counter(row["answers"][0] for row in of(rows, complexity="yes/no", split=split))
        assert 0.4 <= share["yes"] / share.total() <= 0.6


def test_s_expressions_are_balanced_and_name_the_topic(rows: list[Row]) -> None:
    for row in rows:
        text = row["s_expression"]
        if text is not None:
            assert text.count("(") == text.count(")") and all(topic in text for topic in row["topic_entities"])
    assert all(row["s_expression"] for row in rows if row["complexity"] in {"generic", "multi-hop", "count"})


def test_s_expression_of_a_path_follows_grailqa() -> None:
    assert expression(FRANCE, full("capital")) == f"(JOIN (R urn:atlas:capital) {FRANCE})"
    assert expression(PARIS, full("<inv>-capital", "borders")) == (
        f"(JOIN (R urn:atlas:borders) (JOIN urn:atlas:capital {PARIS}))"
    )


def test_hand_known_answers(graph: AtlasGraph) -> None:
    assert graph.follow([FRANCE], full("capital")) == [PARIS]
    assert SPAIN in graph.follow([PARIS], full("country", "borders"))
    assert graph.follow(["urn:atlas:country:PT"], full("borders", "capital")) == ["urn:atlas:city:3117735"]


def test_question_file_holds_one_object_a_line(
    tmp_path: Path, rows: list[Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atlas, "generate", lambda graph, seed: rows)
    path = tmp_path / "atlas.jsonl"
    assert atlas.write_jsonl(path, seed=7) == len(rows)
    assert [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] == rows
    assert atlas.main([str(tmp_path / "atlas.jsonl.gz")]) == 0
    assert gzip.decompress((tmp_path / "atlas.jsonl.gz").read_bytes()) == path.read_bytes()
