"""GrailQAbility: GrailQA over a Freebase without some types, relations, entities and facts (Patidar et al. 2023).

    GrailQAbility_v1.0_{train,dev,test}_a_na_reference.json
    {entity,entity_type,fact,relation}_deletion/{train,dev/iid,dev/zero-shot,…}/*.json

The first are arrays of rows of GrailQA.  `qType` is `A` where the modified graph answers a question and `U` (or `NA`)
where it does not, and `Missing_KB_elements` lists what is missing: `T`ype, `R`elation, `E`ntity, `F`act.  `answer` and
`s_expression` are those of the modified graph, `NK` where it has no form; `Organswer` and `Orgs_expression` are those
of the ideal one.  The others are arrays of question ids: which kind of drop made a question unanswerable and, in dev
and test, whether what it misses is missed in training too (`iid`), in part (`partial`) or not at all (`full`).

As raw questions, those that cannot be answered are marked (`answerable`, `reason`, `missing`), and never show their
ideal form.  `read_records` has both sides of every question.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import field

from kgqa_core.config import QuestionSource
from kgqa_core.datasets.files.jsonl import RawQuestion
from kgqa_core.datasets.published.base import DatasetSpec, PublishedFiles, Reject, RowSource, path_of
from kgqa_core.datasets.published.documents import read_json
from kgqa_core.datasets.published.form_fields import form_fields
from kgqa_core.datasets.published.grailqa import GrailAnswer, GrailQuestion, answered_question, topics_of
from kgqa_core.datasets.published.rows import Rows, Text, choose, list_rows
from kgqa_core.errors import FormError, QuestionFileError
from kgqa_core.logic.parser import parse
from kgqa_core.types import ENTITY, FACT, RELATION, SPLITS

MISSING = {"T": "type", "R": "relation", "E": "entity", "F": "fact"}
"""Letter of `Missing_KB_elements` → kind of what is missing."""

REASON = {"type": "no such type", "relation": RELATION, "entity": ENTITY, "fact": FACT}

DELETIONS = {
    "entity_deletion": "entity",
    "entity_type_deletion": "type",
    "fact_deletion": "fact",
    "relation_deletion": "relation",
}
"""Folder of question ids → kind of drop."""

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
        """Kinds of what is missing, in the order of the row.  Raises ValueError."""
        if self.answerable:
            return ()
        letters = [self.missing_elements] if isinstance(self.missing_elements, str) else self.missing_elements
        if not isinstance(letters, list) or not letters or not all(letter in MISSING for letter in letters):
            raise ValueError(
                f"field 'Missing_KB_elements' must list some of {', '.join(MISSING)} of a question that is not "
                f"answerable, but it is {self.missing_elements!r}"
            )
        return tuple(dict.fromkeys(MISSING[letter] for letter in letters))


@dataclass(frozen=True, slots=True)
class AbilityQuestion:
    """A question of GrailQAbility in the modified and in the ideal graph.

    question: as the modified graph has it, its form None where that has none (NK) and its answers empty, or `0` of a
    count, where that finds none (NA).  drops: kinds of drop under which the folders list it.  novelty: `iid`,
    `zero-shot`, `partial` or `full`, as the folders say; None in train and where answerable.
    """

    question: AbilityRow
    split: str | None
    ideal_answers: tuple[GrailAnswer, ...]
    ideal_form: str | None
    drops: tuple[str, ...]
    novelty: str | None

    @property
    def id(self) -> str:
        """The id."""
        return self.question.id

    @property
    def answerable(self) -> bool:
        """Whether the modified graph answers it."""
        return self.question.answerable

    @property
    def missing(self) -> tuple[str, ...]:
        """Kinds of what is missing."""
        return self.question.missing

    @property
    def answer_label(self) -> str:
        """`A` or `NA`."""
        return "A" if self.answerable else "NA"

    @property
    def form_label(self) -> str:
        """`K` where the modified graph has its form, else `NK`."""
        return "NK" if self.question.s_expression is None else "K"


@dataclass(frozen=True, slots=True)
class ListedQuestion:
    """What the folders of deletions say of a question id.

    kinds: kinds of drop.  split: `train`, `dev` or `test`.  novelty: as in `AbilityQuestion`.
    """

    kinds: tuple[str, ...]
    split: str
    novelty: str | None


def question_files(options: QuestionSource) -> dict[Path, str | None]:
    """The files of the questions anywhere below a folder, with their splits, or the one file.

    Raises QuestionFileError.
    """
    path = path_of(options)
    if path.is_file():
        return {path: None}
    if not path.is_dir():
        raise QuestionFileError(
            f"{path} is neither a file nor a folder; questions.path must name the folder of GrailQAbility or one file"
        )
    files: dict[Path, str | None] = {}
    for split in SPLITS:
        matches = sorted(path.rglob(f"*_{split}_a_na_reference.json"))
        if len(matches) > 1:
            raise QuestionFileError(
                f"{path} holds the {split} questions twice: {matches[0]} and {matches[1]}; keep one"
            )
        files |= dict.fromkeys(matches, split)
    if not files:
        raise QuestionFileError(
            f"{path} holds no GrailQAbility_v1.0_{{train,dev,test}}_a_na_reference.json; unpack "
            "GrailQAbility_dataset.zip there"
        )
    return files


def deletion_files(path: Path) -> list[Path]:
    """The files of question ids below a folder, or beside a file, in order of path."""
    home = path.parent if path.is_file() else path
    return sorted(file for name in DELETIONS for file in home.rglob(f"{name}/**/*.json") if file.is_file())


def read_deletions(path: Path) -> dict[str, ListedQuestion]:
    """Question id → what the folders of deletions say of it.  Raises QuestionFileError where a file is no such list."""
    listed: dict[str, ListedQuestion] = {}
    for file in deletion_files(path):
        parts = file.parts[:-1]
        folder = max(index for index, part in enumerate(parts) if part in DELETIONS)
        kind, inner = DELETIONS[parts[folder]], parts[folder + 1 :]
        split = next((split for split in SPLITS if split in inner), None)
        if split is None:
            raise QuestionFileError(f"{file} is in no folder train, dev or test, which say the split of its questions")
        novelty = next((name for name in ("full", "partial", "zero-shot", "iid") if name in inner), None)
        for name in _ids(file):
            before = listed.get(name, ListedQuestion((), split, None))
            kinds = tuple(dict.fromkeys((*before.kinds, kind)))
            # A question of the list zero-shot is in one of its parts too, and these say more.
            finer = novelty if novelty in ("full", "partial") or before.novelty is None else before.novelty
            listed[name] = ListedQuestion(kinds, split, finer)
    return listed


def _ids(file: Path) -> list[str]:
    found = read_json(file)
    if not isinstance(found, list) or not all(isinstance(one, (int, str)) for one in found):
        raise QuestionFileError(f"{file} is no array of question ids")
    return [str(one) for one in found]


def read_records(path: Path) -> Iterator[AbilityQuestion | Reject]:
    """The rows of a folder or file with what the folders of deletions say.  Raises QuestionFileError."""
    listed = read_deletions(path)
    for source, row in FILES.records(path):
        if isinstance(row, Reject):
            yield row
            continue
        ideal = row.ideal_form or (row.s_expression if row.answerable else None)
        answers = row.ideal_answers if row.ideal_answers is not None else row.answers or ()
        about = listed.get(row.id)
        drops, novelty = (about.kinds, about.novelty) if about is not None else ((), None)
        yield AbilityQuestion(row, source.split, answers, ideal, drops, novelty)


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
    found: list[dict[str, str]] = answer
    return found


def raw_question(row: AbilityRow, source: RowSource | None = None) -> RawQuestion:
    """A question as the modified graph has it; one that is not answerable is marked."""
    if row.answerable:
        return answered_question(row)
    # The query is that of the ideal graph and would give the form away.
    topics = row.topics or topics_of(row.ideal_form, None)
    raw: RawQuestion = {
        "id": row.id,
        "question": row.text,
        "topic_entities": list(topics),
        "answers": [],
        "generalization": row.level,
        "answerable": False,
        "reason": ", ".join(REASON[kind] for kind in row.missing),
        "missing": ", ".join(row.missing),
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
