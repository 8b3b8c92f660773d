"""KQA Pro, compositional questions with a program and SPARQL over a part of Wikidata of its own (Cao et al. 2022).

`train.json`, `val.json` and `test.json` are lists with question, choices, program, sparql and answer; the test file has
no answers.  A program is a list of functions with their inputs: those of `Find` name the topics, the last function says
what kind of answer there is.  Questions have no ids; they get their number in the file.  The SPARQL is over the
vocabulary of its authors (`<pred:name>`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kgqa_core.datasets.files.fields import kind_of, object_of, read_text
from kgqa_core.datasets.files.jsonl import RawQuestion
from kgqa_core.datasets.files.link import NUMBER
from kgqa_core.datasets.published.base import DatasetSpec, OfficialFiles, Reject, convert_rows, numbered
from kgqa_core.datasets.published.documents import FileHead, read_list

_DATE = re.compile(r"[+-]?\d{4,}-\d{2}-\d{2}")

COMPLEXITY = {"Count": "count", "SelectBetween": "comparative", "SelectAmong": "superlative"}
"""Complexity type by the last function; of others the number of relations decides."""

ENTITIES = ("What", "QueryName", "SelectBetween", "SelectAmong")
"""Last functions whose answer is the name of an entity."""


def read_kqapro(path: Path, language: str = "en") -> Iterator[Mapping[str, Any] | Reject]:
    """Raw questions of a file.  Raises QuestionFileError when it is no list of questions."""
    rows = ((place, (number, value)) for number, (place, value) in enumerate(numbered(read_list(path)), start=1))
    return convert_rows(path, rows, lambda row: _question(row[0], object_of(row[1])))


def _question(number: int, value: Mapping[str, Any]) -> RawQuestion:
    program = _program(value.get("program"))
    last = program[-1][0] if program else ""
    answer = value.get("answer")
    if answer is not None and not isinstance(answer, str):
        raise ValueError(f"field 'answer' must be a string, but it is {kind_of(answer)}")
    row: RawQuestion = {
        "id": f"kqapro-{number:06d}",
        "question": read_text(value, "question"),
        "topic_entities": list(dict.fromkeys(inputs[0] for name, inputs in program if name == "Find" and inputs)),
        "answers": [] if answer is None else [_answer(answer, last)],
        "answer_type": None if answer is None else _answer_type(answer, last),
        "complexity": _complexity([name for name, _ in program]),
    }
    if value.get("sparql") is not None:
        row["sparql"] = read_text(value, "sparql")
    return row


def _program(value: Any) -> list[tuple[str, list[str]]]:
    """(function, inputs) of each step; none where the file gives no program."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise ValueError(f"field 'program' must be a list of functions, but it is {kind_of(value)}")
    steps = []
    for item in value:
        step = object_of(item, "program")
        inputs = step.get("inputs") or []
        if not isinstance(inputs, list) or not all(isinstance(one, str) for one in inputs):
            raise ValueError(f"field 'inputs' of a function must be a list of strings, but it is {inputs!r}")
        steps.append((read_text(step, "function"), inputs))
    return steps


def _complexity(functions: list[str]) -> str | None:
    if not functions:
        return None
    if functions[-1].startswith("Verify"):
        return "yes/no"
    if functions[-1] in COMPLEXITY:
        return COMPLEXITY[functions[-1]]
    return "multi-hop" if functions.count("Relate") > 1 else "generic"


def _answer(answer: str, last: str) -> str | bool:
    truths = {"yes": True, "no": False}
    if last.startswith("Verify") and answer.strip().casefold() not in truths:
        raise ValueError(f"the answer of {last} must be yes or no, but it is {answer!r}")
    return truths[answer.strip().casefold()] if last.startswith("Verify") else answer


def _answer_type(answer: str, last: str) -> str:
    if last.startswith("Verify"):
        return "yes/no"
    if last in ENTITIES:
        return "entities"
    if _DATE.fullmatch(answer):
        return "date"
    return "number" if last == "Count" or NUMBER.fullmatch(answer) else "text"


def _recognise(head: FileHead) -> bool:
    return head.shape == "list" and head.has("question", "choices")


KQAPRO = DatasetSpec(
    "KQA Pro",
    "compositional, with programs, SPARQL and choices",
    "a part of Wikidata, with qualifiers",
    "117,970",
    "github: shijx12/KQAPro_Baselines",
    "see its page",
    ("kqapro/*.json", "KQAPro*/**/*.json", "KQA-Pro*/**/*.json"),
    source="kqapro",
    loader=OfficialFiles(
        "KQA Pro", {"train": ("train.json",), "dev": ("val.json",), "test": ("test.json",)}, read_kqapro, prefixed=True
    ).loader(),
    recognise=_recognise,
    fields="a list with question, choices, program, sparql, answer",
)
