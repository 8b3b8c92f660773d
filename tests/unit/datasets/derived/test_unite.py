"""Several question sets as one training set: what is kept, and what a set tests is learnt by none."""

from __future__ import annotations

from pathlib import Path

from kgqa_core.datasets.derived.unite import unite
from kgqa_core.datasets.files.question import read_questions, write_questions
from kgqa_core.types import Question
from kgqa_core.workspace import Workspace


def test_training_and_dev_questions_are_kept_but_for_those_that_any_set_tests(tmp_path: Path) -> None:
    sets = {
        "people": [
            ("q1", "Where does Ada live?", "train"),
            ("q2", "Who is Bob?", "dev"),
            ("q3", "Who is Eve?", "test"),
        ],
        "towns": [("q1", "who is eve", "train"), ("q2", "Where is Ulm?", "train"), ("q3", "Who is Bob", "test")],
    }
    folders = {}
    for name, rows in sets.items():
        folders[name] = tmp_path / name
        folders[name].mkdir()
        write_questions(folders[name], [Question(id=id, text=text, split=split) for id, text, split in rows])
    counts = unite(Workspace(tmp_path), sets=folders)
    assert [(one.id, one.split) for one in read_questions(tmp_path)] == [("people/q1", "train"), ("towns/q2", "train")]
    assert counts == {"questions": {"train": 2, "dev": 0}, "left_out": {"people": 1, "towns": 1}}
