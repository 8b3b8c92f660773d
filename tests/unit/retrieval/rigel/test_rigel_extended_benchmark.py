"""The extended-retriever benchmark: its stand-in for a tagger, how cells are stored, and the table of differences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.papers import extended_retriever as bench
from kgqa_core.datasets.question import read_questions
from kgqa_core.retrieval.linked_candidates import with_linked_candidates


def test_noise_gives_three_candidates_of_which_the_right_one_is_first_in_seven_of_ten(
    world: Any, tmp_path: Path
) -> None:
    bench.write_noise(tmp_path, world.questions, world.dkg)
    best = read_questions(tmp_path)
    right = {question.id: question.topic_entities[0] for question in world.questions}
    first = sum(question.topic_entities[0] == right[question.id] for question in best) / len(best)
    assert 0.6 < first < 0.8
    for question in with_linked_candidates(best, tmp_path, 3):
        assert len(set(question.topic_entities)) == 3 and right[question.id] in question.topic_entities
        assert question.topic_weights[0] == max(question.topic_weights) <= 0.8


def test_samples_are_the_same_every_time(world: Any) -> None:
    chosen = bench.sample(world.questions, (10, 5, 3))
    assert chosen == bench.sample(world.questions, (10, 5, 3))
    assert [sum(own.split == split for own in chosen) for split in ("train", "dev", "test")] == [10, 5, 3]


def cell(variant: str, seed: int, hits: list[int]) -> dict[str, Any]:
    place = {"data": "d", "comparison": "intersect", "condition": "-", "variant": variant, "seed": seed}
    return place | {"questions": ["a", "b"], "groups": ["x", "y"], "scores": {"hits_at_1": hits}}


def test_a_cell_replaces_the_one_in_its_place_and_the_table_pairs_shared_seeds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "results.json"
    for one in (cell("plain", 7, [1, 1]), cell("plain", 7, [0, 1]), cell("min", 7, [1, 1]), cell("min", 8, [0, 0])):
        bench.put(path, one)
    assert "scores" not in capsys.readouterr().out
    cells = bench.read_cells(path)
    assert [(own["variant"], own["seed"]) for own in cells] == [("min", 7), ("min", 8), ("plain", 7)]
    rows = bench.table(bench.differences(cells)).splitlines()
    assert len(rows) == 5
    assert rows[2].startswith("| d | intersect | - | all | 2 | 1 | `plain` | `min` | 0.500 | 1.000 | +0.500 [")
    assert "| x | 1 |" in rows[3] and "+1.000 [+1.000, +1.000]" in rows[3]
    assert bench.table(bench.differences([])) == "\n".join(rows[:2])
    with pytest.raises(SystemExit, match="of `plain` and `min` differ"):
        bench.differences([cells[0], cells[2] | {"questions": ["a", "c"]}])


def test_a_record_has_the_same_table_without_the_scores_of_single_questions(tmp_path: Path) -> None:
    whole, cells = tmp_path / "whole.json", tmp_path / "kept.json"
    for one in (cell("plain", 7, [0, 1]), cell("min", 7, [1, 1])):
        bench.put(whole, one)
    bench.record(whole, cells)
    assert bench.of_file(cells, "hits_at_1") == bench.of_file(whole, "hits_at_1") != []
    assert all(set(own) == set(bench.PLACE) for own in bench.read_cells(cells))
    with pytest.raises(SystemExit, match="is a record"):
        bench.of_file(cells, "answer_share")
