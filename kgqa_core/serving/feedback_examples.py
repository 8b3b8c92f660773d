"""Training examples that confirmed feedback makes, checked by the reader of question files."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import time
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unicodedata import category

from kgqa_core.datasets.derived.splits import near_duplicate
from kgqa_core.datasets.files.jsonl import canonical, check_faults, read_question_file
from kgqa_core.datasets.files.link import DATE, NUMBER
from kgqa_core.errors import StorageError
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.parser import parse
from kgqa_core.metrics.normalise import normalise
from kgqa_core.question_limits import question_fault, shown, text_fault
from kgqa_core.types import Question

HELD_OUT = 3
"""One of so many confirmed questions is not trained on, but tests what the others taught."""
FEEDBACK_ID = "feedback-"
"""How the ids of the questions begin."""
_BLANK = "\u115f\u1160\u2800\u3164\uffa0"
"""Letters and symbols that show nothing: fillers of Korean writing, and the empty pattern of Braille."""
_ALPHABETS = frozenset({"LATIN", "GREEK", "CYRILLIC", "ARMENIAN", "COPTIC", "CHEROKEE"})
"""How the names of letters begin that may look like those of another alphabet."""
_VALUE = re.compile(f"{NUMBER.pattern}|{DATE.pattern}|yes|no", re.IGNORECASE)
"""Answers that need not be in the graph."""
SUPERSEDED_SECONDS = 24 * 3600.0
"""Age from which a file of former examples is removed: until then a refresh may read it."""


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
        parse(example.form or "x")
    except ValueError as fault:
        return str(fault)
    if blank := next(
        (text for text in texts if all(category(sign)[0] in "CMZ" or sign in _BLANK for sign in text)), None
    ):
        return f"the text {blank!a} shows nothing"
    faults = (text_fault(f"answer {shown(text)!r}", text) for text in example.answers)
    return question_fault(example.question, example.topics) or next(filter(None, faults), None)


def training_fault(row: Mapping[str, Any]) -> str | None:
    """Why a row of `FeedbackStore.rows` cannot train; None where it can."""
    if row["earlier_turns"] and not row["topics"]:
        return "it follows other turns, which say what it is about, and would train without them; ask it in full"
    return fault_of(row)


def look_alikes(text: str) -> str | None:
    """The words of a text that mixes alphabets whose letters look alike, as a warning; None for any other text."""
    words = {
        word: {unicodedata.name(sign, "").partition(" ")[0] for sign in word} & _ALPHABETS
        for word in re.findall(r"[^\W\d_]+", text)
    }
    if len(used := set().union(*words.values())) < 2:
        return None
    names = " and ".join(sorted(name.capitalize() for name in used))
    other = ", ".join(f"{word!r}" for word, scripts in words.items() if scripts - {"LATIN"})
    return f"{names} letters, which look alike, stand in one text: {other}"


def reviewed(rows: Sequence[Mapping[str, Any]], store: KgStore | None) -> list[tuple[list[str], list[str]]]:
    """Of each row of `FeedbackStore.rows` the names of its topics, and what to know before it is confirmed.

    store: the graph; without it topics are called by their keys.  For a single row the nearest names are looked for.
    """
    examples = [example_of(row) if fault_of(row) is None else TrainingExample("", (), ()) for row in rows]
    texts = sorted({text for example in examples for text in (*example.topics, *example.answers)})
    ids = store.resolve(texts) if store is not None else {}
    names = store.names({matches[0] for matches in ids.values() if matches}) if store is not None else {}
    result = []
    for row, example in zip(rows, examples, strict=True):
        warnings = [f"it cannot train: {row['fault']}"] if row["fault"] else []
        warnings += filter(None, map(look_alikes, (example.question, *example.answers)))
        lost = [text for text in example.answers if ids.get(text) == [] and not _VALUE.fullmatch(text)]
        near = store.suggest(lost[0]) if store is not None and lost and len(rows) == 1 else None
        if lost:
            hint = f" (did you mean {near!r}?)" if near else ""
            nothing = "; it will teach nothing" if len(lost) == len(example.answers) else ""
            warnings.append(f"not in the graph: {', '.join(map(repr, lost))}{hint}{nothing}")
        result.append(([names[ids[key][0]] if ids.get(key) else key for key in example.topics], warnings))
    return result


def read_examples(path: Path) -> list[TrainingExample]:
    """Corrections in a question file: with right answers, or the form that gives them.  Raises QuestionFileError."""
    read = read_question_file(path, gold=False)
    rows = [{**row, "verdict": "up", "topics": row["topic_entities"], "form": row["s_expression"]} for row in read]
    empty = "neither answers nor s_expression say what is right"
    faults = [(row["id"], fault_of(row) or ("" if row["answers"] or row["form"] else empty)) for row in rows]
    check_faults(path, [f"question {name!r}: {fault}" for name, fault in faults if fault])
    return [example_of(row) for row in rows]


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
    """Writes examples as a question file, whose name follows its content; its path.  Raises StorageError.

    Files of former examples are removed once they are `SUPERSEDED_SECONDS` old.
    """
    rows = (json.dumps(example.to_row(), ensure_ascii=False, sort_keys=True) for example in examples)
    text = "".join(sorted(f"{row}\n" for row in rows))
    path = folder / f"confirmed-{hashlib.sha256(text.encode()).hexdigest()[:12]}.jsonl"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".part")
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
        for other in folder.glob("confirmed-*"):
            with contextlib.suppress(FileNotFoundError):  # another process may remove it
                if other.stat().st_mtime < time.time() - SUPERSEDED_SECONDS:
                    other.unlink()
    except OSError as fault:
        raise StorageError(f"{path} cannot be written ({fault}); free space or make its folder writable") from None
    return path
