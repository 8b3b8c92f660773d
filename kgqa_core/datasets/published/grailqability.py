"""GrailQAbility: GrailQA over a Freebase without some types, relations, entities and facts (Patidar et al. 2023).

`GrailQAbility_v1.0_{train,dev,test}_a_na_reference.json` are arrays of rows of GrailQA; other sets of these fields, as
samples with a size behind `reference`, are read alike.  `qType` is `A` where the
modified graph answers a question and `U` (or `NA`) where it does not, and `Missing_KB_elements` lists what is missing:
`T`ype, `R`elation, `E`ntity, `F`act.  `answer` and `s_expression` are those of the modified graph, `NK` where it has no
form; `Orgs_expression` is that of the ideal one.

As raw questions, those that cannot be answered are marked (`answerable`, `reason`, `missing`), and never show their
ideal form.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import field

from kgqa_core.config import QuestionSource
from kgqa_core.datasets.files.jsonl import RawQuestion
from kgqa_core.datasets.published.base import DatasetSpec, PublishedFiles, RowSource, folder_files
from kgqa_core.datasets.published.form_fields import form_fields
from kgqa_core.datasets.published.grailqa import GrailAnswer, GrailQuestion, answered_question, topics_of
from kgqa_core.datasets.published.rows import Rows, Text, choose, list_rows
from kgqa_core.errors import FormError, QuestionFileError
from kgqa_core.logic.parser import parse
from kgqa_core.types import ENTITY, FACT, RELATION, SPLITS

MISSING = {"T": "type", "R": "relation", "E": "entity", "F": "fact"}
"""Letter of `Missing_KB_elements` → kind of what is missing."""

REASON = {"type": "no such type", "relation": RELATION, "entity": ENTITY, "fact": FACT}

UNKNOWN = "the graph does not answer it"
"""Reason of a row that does not say what is missing."""

NO_FORM = ("NK", "no logical form", "")
"""What `s_expression` is where the modified graph has no form for the question."""


class AbilityRow(GrailQuestion, frozen=True, kw_only=True):
    """A row of GrailQAbility, a question of GrailQA as the modified graph has it."""

    kind: Text = field(name="qType")
    ideal_answers: tuple[GrailAnswer, ...] | None = field(name="Organswer", default=None)
    ideal_form: Text | None = field(name="Orgs_expression", default=None)
    missing_elements: Any = field(name="Missing_KB_elements", default=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        choose("qType", self.kind, ("A", "U", "NA"))
        if self.answers is None:
            raise ValueError("field 'answer' is missing")
        if not self.answerable and self.ideal_answers is None:
            raise ValueError("field 'Organswer' is missing")
        assert self.missing is not None  # raises where the letters are unknown

    @property
    def answerable(self) -> bool:
        """Whether the modified graph answers it."""
        return self.kind == "A"

    @property
    def missing(self) -> tuple[str, ...]:
        """Kinds of what is missing, in the order of the row; none where the row does not say.  Raises ValueError."""
        if self.answerable or self.missing_elements is None:
            return ()
        letters = [self.missing_elements] if isinstance(self.missing_elements, str) else self.missing_elements
        if not isinstance(letters, list) or not letters or not all(letter in MISSING for letter in letters):
            raise ValueError(
                f"field 'Missing_KB_elements' must list some of {', '.join(MISSING)} of a question that is not "
                f"answerable, but it is {self.missing_elements!r}"
            )
        return tuple(dict.fromkeys(MISSING[letter] for letter in letters))


_find = folder_files("GrailQAbility", {split: (f"**/*_{split}_a_na_reference*.json",) for split in SPLITS})


def question_files(options: QuestionSource) -> dict[Path, str | None]:
    """The files of the questions anywhere below a folder, with their splits, or the one file.

    Raises QuestionFileError, also for two files of a split.
    """
    by_split: dict[str | None, Path] = {}
    for path, split in _find(options).items():
        if split in by_split:
            raise QuestionFileError(f"the {split} questions are there twice: {by_split[split]} and {path}; keep one")
        by_split[split] = path
    return {path: split for split, path in by_split.items()}


def _rows(path: Path) -> Rows:
    """Rows without the words for no form, with a list of answers where the file has another value for none."""
    for where, value in list_rows(path):
        if isinstance(value, dict):
            if value.get("s_expression") in NO_FORM:
                value = {**value, "s_expression": None}
            if value.get("qType") != "A":
                value = {**value, "answer": _no_answers(value.get("answer"))}
        yield where, value


def _no_answers(answer: Any) -> list[dict[str, str]]:
    """The answers of a question that has none: `0` of a count, which is written as a text or as an answer."""
    if answer in (None, [], "null", ""):
        return []
    if answer in ("0", 0, ["0"], [0]):
        return [{"answer_type": "Value", "answer_argument": "0"}]
    answers: list[dict[str, str]] = answer
    return answers


def raw_question(row: AbilityRow, source: RowSource | None = None) -> RawQuestion:
    """A question as the modified graph has it; one that is not answerable is marked."""
    if row.answerable:
        return answered_question(row)
    # The query is that of the ideal graph and would give the form away.
    topics = row.topics or topics_of(row.ideal_form, row.graph_query)
    raw: RawQuestion = {
        "id": row.id,
        "question": row.text,
        "topic_entities": list(topics),
        "answers": [],
        "generalization": row.level,
        "answerable": False,
        "reason": ", ".join(REASON[kind] for kind in row.missing) or UNKNOWN,
        "missing": ", ".join(row.missing) or None,
        "answer_type": "number" if row.function == "count" else None,
    }
    if row.s_expression is not None:
        try:
            raw |= form_fields(parse(row.s_expression), topics)
        except FormError as fault:
            raw["without_form"] = f"s_expression: {fault}"
    return raw


FILES = PublishedFiles("GrailQAbility", question_files, _rows, AbilityRow, raw_question, forms_given=True)

GRAILQABILITY = DatasetSpec(
    "GrailQAbility",
    "GrailQA with questions that the graph cannot answer",
    "Freebase with facts taken out",
    "50,507",
    "github: dair-iitd/GrailQAbility",
    "see its page",
    ("grailqa/grailqability/**/*.json", "grailqability/**/*.json", "GrailQAbility/**/*.json"),
    source="grailqability",
    loader=FILES.loader(),
    recognise=lambda head: head.shape == "list" and head.has("qid", "question", "qType"),
    fields="a list with qid, question, qType, Missing_KB_elements",
)
