"""Stage `unite`: the training and dev questions of several sets as one, without those that any of the sets tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from kgqa_core.datasets.files.question import read_questions, write_questions
from kgqa_core.metrics.normalise import normalise
from kgqa_core.workspace import Workspace


def unite(workspace: Workspace, *, sets: Mapping[str, Path]) -> dict[str, Any]:
    """Writes `questions.parquet` with ids `set/id`, and returns counts.

    sets: `questions` artifacts by name.  A question that any set tests in the same words, up to case and punctuation,
    is left out and counted (`left_out`): one set's test would be another's lesson.
    """
    questions = {name: read_questions(folder) for name, folder in sets.items()}
    tested = {normalise(question.text) for rows in questions.values() for question in rows if question.split == "test"}
    united, left_out = [], dict.fromkeys(questions, 0)
    for name, rows in questions.items():
        for question in rows:
            if question.split == "test":
                continue
            if normalise(question.text) in tested:
                left_out[name] += 1
            else:
                united.append(replace(question, id=f"{name}/{question.id}"))
    write_questions(workspace.out, united)
    if total := sum(left_out.values()):
        workspace.monitor.note(f"{total} training questions are left out: a set tests them in the same words")
    by_split = Counter(question.split for question in united)
    return {"questions": {split: by_split[split] for split in ("train", "dev")}, "left_out": left_out}
