"""KQA Pro, compositional questions with a program and SPARQL over a part of Wikidata of its own (Cao et al. 2022).

`train.json`, `val.json` and `test.json` are lists with question, choices, program, sparql and answer; the test file has
no answers.  A program is a list of functions with their inputs: those of `Find` name the topics, the last function says
what kind of answer there is.  Questions have no ids; they get their number in the file.  The SPARQL is over the
vocabulary of its authors (`<pred:name>`).
"""

from __future__ import annotations

import re

from msgspec import Struct

from kgqa_core.datasets.files.jsonl import RawQuestion
from kgqa_core.datasets.files.link import NUMBER
from kgqa_core.datasets.published.base import DatasetSpec, PublishedFiles, RowSource, folder_files
from kgqa_core.datasets.published.documents import FileHead
from kgqa_core.datasets.published.rows import list_rows

_DATE = re.compile(r"[+-]?\d{4,}-\d{2}-\d{2}")

COMPLEXITY = {"Count": "count", "SelectBetween": "comparative", "SelectAmong": "superlative"}
"""Complexity type by the last function; of others the number of relations decides."""

ENTITIES = ("What", "QueryName", "SelectBetween", "SelectAmong")
"""Last functions whose answer is the name of an entity."""


class ProgramStep(Struct, frozen=True):
    """A step of a program."""

    function: str
    inputs: tuple[str, ...] = ()


class KqaQuestion(Struct, frozen=True):
    """A row of KQA Pro."""

    question: str
    program: tuple[ProgramStep, ...] = ()
    answer: str | None = None
    sparql: str | None = None


def raw_question(row: KqaQuestion, source: RowSource) -> RawQuestion:
    """A row as a raw question.  Raises ValueError."""
    names = [step.function for step in row.program]
    last = names[-1] if names else ""
    topics = [step.inputs[0] for step in row.program if step.function == "Find" and step.inputs]
    return {
        "id": f"kqapro-{source.number:06d}",
        "question": row.question,
        "topic_entities": list(dict.fromkeys(topics)),
        "answers": [] if row.answer is None else [_answer(row.answer, last)],
        "answer_type": None if row.answer is None else _answer_type(row.answer, last),
        "complexity": _complexity(names),
        "sparql": row.sparql,
    }


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


FILES = PublishedFiles(
    "KQA Pro",
    folder_files("KQA Pro", {"train": ("train.json",), "dev": ("val.json",), "test": ("test.json",)}),
    list_rows,
    KqaQuestion,
    raw_question,
    prefixed=True,
)

KQAPRO = DatasetSpec(
    "KQA Pro",
    "compositional, with programs, SPARQL and choices",
    "a part of Wikidata, with qualifiers",
    "117,970",
    "github: shijx12/KQAPro_Baselines",
    "see its page",
    ("kqapro/*.json", "KQAPro*/**/*.json", "KQA-Pro*/**/*.json"),
    source="kqapro",
    loader=FILES.loader(),
    recognise=_recognise,
    fields="a list with question, choices, program, sparql, answer",
)
