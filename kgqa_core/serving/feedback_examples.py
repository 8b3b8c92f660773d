"""Training examples that confirmed feedback makes, checked by the reader of question files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unicodedata import category

from kgqa_core.datasets.jsonl import canonical
from kgqa_core.datasets.splits import near_duplicate
from kgqa_core.errors import StorageError
from kgqa_core.metrics.normalise import normalise
from kgqa_core.question_limits import question_fault, shown, text_fault
from kgqa_core.types import Question

HELD_OUT = 3
"""One of so many confirmed questions is not trained on, but tests what the others taught."""
FEEDBACK_ID = "feedback-"
"""How the ids of the questions begin."""
_BLANK = "\u115f\u1160\u2800\u3164\uffa0"
"""Letters and symbols that show nothing: fillers of Korean writing, and the empty pattern of Braille."""


@dataclass(frozen=True, slots=True)
class TrainingExample:
    """A question with confirmed answers.  held_out: it is not trained on, and tests what the others taught."""

    question: str
    topics: tuple[str, ...]
    answers: tuple[str, ...]
    form: str | None = None
    held_out: bool = False

    def to_row(self) -> dict[str, Any]:
        """A row of a question file."""
        digest = hashlib.sha256(json.dumps([self.question, *self.topics]).encode()).hexdigest()[:32]
        row = {
            "id": f"{FEEDBACK_ID}{digest}", "question": self.question, "topic_entities": list(self.topics),
            "answers": list(self.answers), "split": "test" if self.held_out else "train",
        }  # fmt: skip
        return row | ({"s_expression": self.form} if self.form else {})


def example_of(row: Mapping[str, Any]) -> TrainingExample:
    """What a row of `FeedbackStore.rows` teaches; without answers where it names no right one."""
    up = row["verdict"] == "up"
    right = (row["answers"] if up else row["correction"]) or ()
    return TrainingExample(
        row["question"], tuple(row["topics"]), tuple(sorted(set(right))), row["form"] if up else None
    )


def fault_of(row: Mapping[str, Any]) -> str | None:
    """Why what a row says cannot be asked, or no question file could hold it; None where both hold."""
    example = example_of(row)
    texts = (example.question, *example.topics, *example.answers)
    try:
        canonical(example.to_row())
    except ValueError as fault:
        return str(fault)
    if blank := next(
        (text for text in texts if all(category(sign)[0] in "CMZ" or sign in _BLANK for sign in text)), None
    ):
        return f"the text {blank!a} shows nothing"
    faults = (text_fault(f"answer {shown(text)!r}", text) for text in example.answers)
    return question_fault(example.question, example.topics) or next(filter(None, faults), None)


def training_examples(rows: Sequence[Mapping[str, Any]]) -> list[TrainingExample]:
    """The confirmed questions with answers, in the order of their confirmation; every third is held out.

    Of a question, up to case and punctuation, with the same topics, what was confirmed last counts.  Near-duplicates
    are held out together or not at all.
    """
    latest: dict[tuple[Any, ...], TrainingExample] = {}
    for row in sorted((row for row in rows if row["state"] == "confirmed"), key=lambda row: (row["turn"], row["id"])):
        example = example_of(row)
        if row["fault"] is None and example.answers:
            latest[normalise(example.question), tuple(sorted(example.topics))] = example
    examples, groups = [], list[list[Question]]()
    for example in latest.values():
        question = Question("", example.question, topic_keys=example.topics, answer_keys=example.answers)
        near = (n for n, group in enumerate(groups) if any(near_duplicate(question, other) for other in group))
        number = next(near, len(groups))
        if number == len(groups):
            groups.append([])
        groups[number].append(question)
        examples.append(replace(example, held_out=number % HELD_OUT == HELD_OUT - 1))
    return examples


def write_examples(folder: Path, examples: Sequence[TrainingExample]) -> Path:
    """Writes examples as a question file, whose name follows its content; its path.  Raises StorageError."""
    text = "".join(sorted(json.dumps(one.to_row(), ensure_ascii=False, sort_keys=True) + "\n" for one in examples))
    path = folder / f"confirmed-{hashlib.sha256(text.encode()).hexdigest()[:12]}.jsonl"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".part")
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    except OSError as fault:
        raise StorageError(f"{path} cannot be written ({fault}); free space or make its folder writable") from None
    return path
