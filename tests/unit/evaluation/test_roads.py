"""Scores by road, on answers whose every number is known."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from kgqa_core.evaluation.roads import by_road, read_roads
from kgqa_core.types import Question
from tests.unit.evaluation.test_score import artifacts, run

__all__ = ["artifacts"]  # a fixture

AUTO = "rigel/triples/auto"
RECORDS = [Question(id=f"q{n}", text="?", unlinkable="not there" if n in (3, 5) else None) for n in range(6)]
RIGHT = {"q0": 1.0, "q1": 0.0, "q2": 1.0, "q3": 0.0, "q4": 0.0, "q5": 0.0}
ROADS = {"q0": "labels", "q1": "labels", "q2": "retriever", "q3": "labels", "q4": None, "q5": None}
CONFIDENCES = {"q0": 0.9, "q1": 0.5, "q2": 0.8, "q3": None, "q4": 0.2, "q5": 0.1}


def frame(roads: dict[str, Any], confidences: dict[str, Any]) -> pl.DataFrame:
    rows = [(name, road, confidences[name]) for name, road in roads.items()]
    schema = {"question": pl.String, "road": pl.String, "confidence": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def grouped(answers: pl.DataFrame, records: list[Question] = RECORDS) -> dict[str, Any]:
    rows = {AUTO: {name: {"exact": value} for name, value in RIGHT.items()}}
    return by_road({AUTO: answers}, rows, records, samples=200, seed=7)


def test_each_road_has_its_share_exactness_confidence_and_questions_that_are_not_there() -> None:
    roads = grouped(frame(ROADS, CONFIDENCES))[AUTO]
    found = {road: {name: (cell["value"], cell["n"]) for name, cell in own.items()} for road, own in roads.items()}
    assert found == {
        "labels": {"share": (0.5, 6), "exact": (0.333333, 3), "confidence": (0.7, 2), "not_in_graph": (0.333333, 3)},
        "retriever": {"share": (0.166667, 6), "exact": (1.0, 1), "confidence": (0.8, 1), "not_in_graph": (0.0, 1)},
        "declined": {"share": (0.333333, 6), "confidence": (0.15, 2), "not_in_graph": (0.5, 2)},
    }
    assert list(found) == ["labels", "retriever", "declined"]
    cell = roads["labels"]["exact"]
    assert cell["low"] < cell["value"] < cell["high"]


def test_the_shares_of_all_roads_are_the_whole() -> None:
    shares = [own["share"]["value"] for own in grouped(frame(ROADS, CONFIDENCES))[AUTO].values()]
    assert sum(shares) == pytest.approx(1, abs=1e-5)


def test_a_road_is_never_credited_with_the_answers_of_another() -> None:
    swapped = {name: {"labels": "parser", "retriever": "labels"}.get(road or "") for name, road in ROADS.items()}
    found = grouped(frame(swapped, CONFIDENCES))[AUTO]
    assert list(found) == ["labels", "parser", "declined"]
    assert (found["labels"]["exact"]["value"], found["parser"]["exact"]["value"]) == (1.0, 0.333333)


def test_what_is_not_known_is_left_out() -> None:
    linked = [Question(id=record.id, text="?") for record in RECORDS]
    found = grouped(frame(ROADS, dict.fromkeys(ROADS)), linked)[AUTO]
    assert set(found) >= {"labels", "declined"}
    assert all(not {"confidence", "not_in_graph"} & set(own) for own in found.values())


def test_only_the_split_that_tables_show_counts() -> None:
    records = [Question(id=one.id, text="?", split="dev" if one.id < "q3" else "test") for one in RECORDS]
    found = grouped(frame(ROADS, CONFIDENCES), records)[AUTO]
    assert {road: own["share"]["n"] for road, own in found.items()} == {"labels": 3, "declined": 3}


def test_answers_without_roads_and_such_that_decline_everything_have_no_group() -> None:
    assert grouped(frame(ROADS, CONFIDENCES).drop("road", "confidence")) == {}
    assert grouped(frame(dict.fromkeys(ROADS), CONFIDENCES)) == {}


def add_roads(folder: Path) -> None:
    answers = pl.read_parquet(folder / "answers.parquet").with_columns(model=pl.lit("auto"))
    roads = frame({"q1": "labels", "q2": "retriever", "q3": None}, {"q1": 0.9, "q2": 0.6, "q3": 0.3})
    answers.join(roads, on="question").write_parquet(folder / "answers.parquet")


def test_the_stage_groups_the_answers_that_have_roads(artifacts: dict[str, Path]) -> None:
    before = run(artifacts)
    assert "by_road" not in before
    add_roads(artifacts["with_facts"])
    found = json.loads(json.dumps(run(artifacts)))["by_road"]
    assert list(found) == [AUTO]
    counted = {road: (own["share"]["value"], own.get("exact", {}).get("value")) for road, own in found[AUTO].items()}
    # q1 "Paris" is right, "It is Oslo." is not exact; q3 was declined, q4 has no answer and is not in the graph
    assert counted == {"labels": (0.25, 1.0), "retriever": (0.25, 0.0), "declined": (0.5, None)}
    assert found[AUTO]["declined"]["not_in_graph"]["value"] == 0.5


def test_roads_are_read_by_experiment_and_question(artifacts: dict[str, Path]) -> None:
    folders = [artifacts["none"], artifacts["with_facts"]]
    assert read_roads(folders) == {}
    add_roads(artifacts["with_facts"])
    assert read_roads(folders) == {AUTO: {"q1": "labels", "q2": "retriever"}}
