"""A few real questions beside generated ones: they count more in training, and choose the model where they suffice."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kgqa_core.builders.questions.generate import FILE, STATISTICS
from kgqa_core.config import QuestionsOptions, QuestionSource
from kgqa_core.datasets.derived.splits import hold_out
from kgqa_core.datasets.files.jsonl import RawQuestion, read_question_file
from kgqa_core.datasets.load import load_rows, read_raw
from kgqa_core.workspace import Workspace

LEAST_DEV = 50
"""Real questions without a split from which on some of them are the dev set, in place of generated ones."""

DEV_SHARE = 0.5
"""Of real questions without a split, the share that is dev where there are enough."""


def load_mixed(
    workspace: Workspace, *, kg: Path, generated: Path, options: QuestionsOptions, repeat: int, seed: int
) -> dict[str, Any]:
    """Writes a `questions` artifact of generated questions and of those of `options.path`; returns counts.

    generated: folder with the file of generated questions.  Raises QuestionFileError.
    """
    made = read_question_file(generated / FILE)
    real = read_raw(QuestionSource(path=options.path, language=options.language), seed) if options.path else []
    rows, counts = mix(made, real, repeat=repeat, min_dev=LEAST_DEV, seed=seed)
    scored = counts["real_test"]
    workspace.monitor.note(
        f"{counts['real_train']} of your questions train, {counts['real_dev']} choose the model, {scored} are scored"
        if real
        else "no question file: the questions are made from the graph, and so are those that are scored"
    )
    counts["generated_scored"] = (
        0 if scored else sum(row["split"] == "test" for row in made if row.get("answerable", True))
    )
    left_out = json.loads((generated / STATISTICS).read_text(encoding="utf-8"))["left_out"]
    return load_rows(workspace, rows, kg=kg, options=options, seed=seed) | counts | {"left_out": left_out}


def mix(
    generated: Sequence[RawQuestion], real: Sequence[RawQuestion], *, repeat: int, min_dev: int, seed: int
) -> tuple[list[RawQuestion], dict[str, Any]]:
    """Rows of both, and counts.  A real question of a file with splits keeps its own.

    Those without: all train where they are fewer than `min_dev`, else a seeded half is dev.  Each one that trains is
    there `repeat` times.  Where real questions are dev or test, generated ones of that split train.
    """
    open_ids = [row["id"] for row in real if row["split"] is None]
    held = hold_out(open_ids, DEV_SHARE, seed) if len(open_ids) >= min_dev else set()
    placed = [{**row, "split": row["split"] or ("dev" if row["id"] in held else "train")} for row in real]
    scored = {row["split"] for row in placed} - {"train"}
    rows = [{**row, "split": "train"} if row["split"] in scored else row for row in generated]
    used = {row["id"] for row in rows}
    for row in placed:
        for time in range(repeat if row["split"] == "train" else 1):
            name = row["id"] if time == 0 else f"{row['id']}#{time + 1}"
            while name in used:
                name = f"real-{name}"
            used.add(name)
            rows.append({**row, "id": name})
    splits = Counter(row["split"] for row in placed)
    return rows, {f"real_{split}": splits[split] for split in ("train", "dev", "test")}
