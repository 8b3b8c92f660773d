"""Folds over topics: each question is tested once, no topic twice, and the order of the questions decides nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa_core.config import QuestionsOptions, make_profile
from kgqa_core.datasets.derived.folds import fold_rows, topic_folds
from kgqa_core.datasets.load import read_raw
from kgqa_core.errors import ConfigError, QuestionFileError


def test_folds_of_a_small_set_by_hand() -> None:
    groups = {"a1": "A", "a2": "A", "a3": "A", "b1": "B", "b2": "B", "c1": "C"}
    found = topic_folds(groups, 2, seed=1)
    assert found == {"a1": 0, "a2": 0, "a3": 0, "b1": 1, "b2": 1, "c1": 1}


@given(st.lists(st.integers(0, 12), min_size=13, max_size=60), st.integers(2, 5), st.integers(0, 9))
def test_a_topic_is_in_one_fold_and_no_fold_is_larger_than_another_by_more_than_a_topic(
    topics: list[int], folds: int, seed: int
) -> None:
    topics = [*range(13), *topics]
    groups = {f"q{place:02}": topic for place, topic in enumerate(topics)}
    found = topic_folds(groups, folds, seed)
    assert found == topic_folds(dict(reversed(groups.items())), folds, seed)
    assert len({(groups[question], fold) for question, fold in found.items()}) == 13
    sizes = [list(found.values()).count(fold) for fold in range(folds)]
    assert min(sizes) > 0 and max(sizes) - min(sizes) <= max(map(topics.count, topics))


def rows(number: int, topics: int) -> list[dict[str, object]]:
    return [{"id": f"q{n:03}", "topic_entities": [f"t{n % topics}", "x"], "split": "train"} for n in range(number)]


def test_every_question_is_tested_in_one_fold_and_its_topic_trains_in_the_others() -> None:
    tested: list[str] = []
    for fold in range(5):
        made = fold_rows(rows(100, 20), 5, fold, 0.1, seed=7)
        topics = {
            split: {row["topic_entities"][0] for row in made if row["split"] == split}
            for split in ("train", "dev", "test")
        }
        assert not topics["test"] & (topics["train"] | topics["dev"]) and not topics["train"] & topics["dev"]
        assert {split: len(own) for split, own in topics.items()} == {"train": 14, "dev": 2, "test": 4}
        tested += [row["id"] for row in made if row["split"] == "test"]
    assert sorted(tested) == [row["id"] for row in rows(100, 20)]


def test_fewer_topics_than_folds_are_refused() -> None:
    with pytest.raises(QuestionFileError, match="3 topics cannot be divided into 5 folds; set questions.folds"):
        fold_rows(rows(9, 3), 5, 0, 0.1, seed=7)


def test_a_question_file_is_divided_by_the_options(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    given = [
        {"answers": ["a"], "id": str(n), "question": f"What is {n}?", "topic_entities": [f"t{n}"]} for n in range(10)
    ]
    lines = [json.dumps(one) + "\n" for one in given]
    path.write_text("".join(lines), encoding="utf-8")
    tested = []
    for fold in range(2):
        found = read_raw(QuestionsOptions(path=str(path), folds=2, fold=fold), seed=7)
        tested += [row["question"] for row in found if row["split"] == "test"]
        assert {row["split"] for row in found} == {"train", "dev", "test"}
    assert sorted(tested) == sorted(f"What is {n}?" for n in range(10))


def test_a_fold_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigError, match="fold 5 is not among the 5"):
        make_profile({"questions": {"folds": 5, "fold": 5}})
