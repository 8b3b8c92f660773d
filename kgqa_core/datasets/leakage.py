"""Test questions that training has seen: the same text, or the same topic entities and relation path.

`leakage.json` holds, for test against train and dev against train, the ids with a count each; `leaked` is the union
for the test split, without which scores are given a second time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any

from kgqa_core.errors import ArtifactError
from kgqa_core.types import Question

FILE = "leakage.json"


def leakage(questions: Sequence[Question]) -> dict[str, Any]:
    """Leaked ids, sorted: {"leaked": ids of test, "counts": {…}, "test": {"same_text": ids, …}, "dev": {…}}."""
    train = [question for question in questions if question.split == "train"]
    tables: dict[str, dict[str, list[str]]] = {}
    for split in ("test", "dev"):
        held = [question for question in questions if question.split == split]
        tables[split] = {
            "same_text": _shared(held, train, same_text),
            "same_topic_and_path": _shared(held, train, same_topic_and_path),
        }
    leaked = sorted({question for ids in tables["test"].values() for question in ids})
    counts = {f"{split}_{name}": len(ids) for split, table in tables.items() for name, ids in table.items()}
    return {"leaked": leaked, "counts": {"leaked": len(leaked), **counts}, **tables}


def write_leakage(folder: Path, table: dict[str, Any]) -> None:
    """Writes `leakage.json`."""
    text = json.dumps(table, ensure_ascii=False, sort_keys=True, indent=1)
    (folder / FILE).write_text(text + "\n", encoding="utf-8")


def read_leakage(folder: Path) -> dict[str, Any]:
    """The table of a `questions` artifact.  Raises ArtifactError when it is missing or damaged."""
    try:
        table: dict[str, Any] = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as fault:
        raise ArtifactError(f"{folder / FILE} cannot be read ({fault}); run the questions stage again") from None
    return table


def same_text(question: Question) -> Hashable | None:
    """What two questions share when their texts are the same but for spaces."""
    return " ".join(question.text.split())


def same_topic_and_path(question: Question) -> Hashable | None:
    """What two questions share when they start at the same entities along the same paths; None without a path."""
    topics: tuple[int | str, ...] = tuple(sorted(question.topic_entities)) or tuple(sorted(question.topic_keys))
    return (topics, tuple(sorted(question.relation_paths))) if question.relation_paths else None


def _shared(
    held: Iterable[Question], train: Iterable[Question], sign: Callable[[Question], Hashable | None]
) -> list[str]:
    seen = {sign(question) for question in train} - {None}
    return sorted(question.id for question in held if sign(question) in seen)
