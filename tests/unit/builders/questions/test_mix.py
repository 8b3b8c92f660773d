"""A few real questions beside generated ones."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.builders.questions.generate import generate
from kgqa_core.builders.questions.mix import LEAST_DEV, load_mixed, mix
from kgqa_core.config import QuestionsOptions
from kgqa_core.config.generated_questions import GeneratedQuestionsOptions
from kgqa_core.datasets.files.jsonl import canonical
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.workspace import Workspace


def row(number: int, split: str | None = None, name: str = "q") -> dict[str, Any]:
    return canonical(
        {"id": f"{name}{number}", "question": f"{name} {number}?", "topic_entities": ["X"], "answers": ["Y"],
         **({"split": split} if split else {})}
    )  # fmt: skip


GENERATED = [row(i, split, "g") for i, split in enumerate(["train"] * 8 + ["dev", "test"])]


@pytest.mark.parametrize("count", [1, LEAST_DEV - 1])
def test_few_questions_all_train_and_count_more(count: int) -> None:
    rows, counts = mix(GENERATED, [row(i) for i in range(count)], repeat=3, min_dev=LEAST_DEV, seed=7)
    assert counts == {"real_train": count, "real_dev": 0, "real_test": 0}
    assert Counter(each["question"] for each in rows)["q 0?"] == 3
    assert len({each["id"] for each in rows}) == len(rows) == 10 + 3 * count
    assert [each["split"] for each in rows[:10]] == [each["split"] for each in GENERATED]


def test_enough_questions_are_the_dev_set() -> None:
    rows, counts = mix(GENERATED, [row(i) for i in range(LEAST_DEV)], repeat=2, min_dev=LEAST_DEV, seed=7)
    assert counts["real_dev"] == counts["real_train"] == LEAST_DEV // 2
    dev = [each for each in rows if each["split"] == "dev"]
    assert len(dev) == LEAST_DEV // 2 and not any(each["question"].startswith("g") for each in dev)
    train = {each["question"] for each in rows if each["split"] == "train"}
    assert not train & {each["question"] for each in dev}


def test_questions_with_splits_keep_them_and_are_what_is_scored() -> None:
    rows, counts = mix(GENERATED, [row(1, "test"), row(2, "train")], repeat=2, min_dev=LEAST_DEV, seed=7)
    assert counts == {"real_train": 1, "real_dev": 0, "real_test": 1}
    assert [each["question"] for each in rows if each["split"] == "test"] == ["q 1?"]
    assert [each["question"] for each in rows if each["split"] == "dev"] == ["g 8?"]


def test_ids_that_are_taken_are_changed() -> None:
    rows, _ = mix([row(1, "train")], [row(1)], repeat=2, min_dev=LEAST_DEV, seed=7)
    assert [each["id"] for each in rows] == ["q1", "real-q1", "q1#2"]


def test_the_artifact_says_how_many_generated_questions_are_scored(film_kg: Path, tmp_path: Path) -> None:
    made, few = tmp_path / "made", tmp_path / "few.jsonl"
    made.mkdir()
    generate(Workspace(made), film_kg, GeneratedQuestionsOptions(size=80, read_back=0), 7)
    question = {
        "id": "1",
        "question": "Norland's main city?",
        "topic_entities": ["Norland"],
        "answers": ["Norland City"],
    }
    few.write_text(json.dumps(question), encoding="utf-8")
    for path, repeated in ((None, 0), (str(few), 4)):
        out = tmp_path / f"out{repeated}"
        out.mkdir()
        options = QuestionsOptions(name="mixed", source="generated", path=path)
        counts = load_mixed(Workspace(out), kg=film_kg, generated=made, options=options, repeat=4, seed=7)
        questions = read_questions(out)
        assert counts["generated_scored"] == sum(each.split == "test" for each in questions) > 0
        assert counts["unanswerable"] > 0 and (out / "unanswerable.jsonl").is_file()
        assert sum(each.text == question["question"] for each in questions) == repeated
        assert all(each.unlinkable is None for each in questions)
