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

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from kgqa_core.config import QuestionSource
from kgqa_core.datasets.files.jsonl import RawQuestion, canonical
from kgqa_core.datasets.published.base import DatasetSpec, Reject, path_of
from kgqa_core.datasets.published.documents import read_json, read_list
from kgqa_core.datasets.published.form_fields import form_fields
from kgqa_core.datasets.published.grailqa import GrailAnswer, GrailQuestion, read_answers, read_row, topics_of
from kgqa_core.datasets.published.grailqa import raw_question as answerable_question
from kgqa_core.datasets.published.json_rows import SplitFiles, need_text, optional_text, read_each, split_loader
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


@dataclass(frozen=True, slots=True)
class AbilityQuestion:
    """A question of GrailQAbility in the modified and in the ideal graph.

    question: as the modified graph has it, its form None where that has none (NK) and its answers empty, or `0` of a
    count, where that finds none (NA).  missing: kinds of what is missing.  drops: kinds of drop under which the folders
    list it.  novelty: `iid`, `zero-shot`, `partial` or `full`, as the folders say; None in train and where answerable.
    """

    question: GrailQuestion
    answerable: bool
    ideal_answers: tuple[GrailAnswer, ...]
    ideal_form: str | None
    missing: tuple[str, ...]
    drops: tuple[str, ...]
    novelty: str | None

    @property
    def id(self) -> str:
        """The id."""
        return self.question.id

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


def question_files(path: Path) -> SplitFiles:
    """(split, file) of the questions anywhere below a folder, or the one file.  Raises QuestionFileError."""
    if path.is_file():
        return [(None, path)]
    if not path.is_dir():
        raise QuestionFileError(
            f"{path} is neither a file nor a folder; questions.path must name the folder of GrailQAbility or one file"
        )
    files: SplitFiles = [
        (split, file) for split in SPLITS for file in sorted(path.rglob(f"*_{split}_a_na_reference.json"))
    ]
    if not files:
        raise QuestionFileError(
            f"{path} holds no GrailQAbility_v1.0_{{train,dev,test}}_a_na_reference.json; unpack "
            "GrailQAbility_dataset.zip there"
        )
    for split in SPLITS:
        own = [file for name, file in files if name == split]
        if len(own) > 1:
            raise QuestionFileError(f"{path} holds the {split} questions twice: {own[0]} and {own[1]}; keep one")
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
        folder = max(place for place, part in enumerate(parts) if part in DELETIONS)
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
    for split, file in question_files(path):
        yield from read_each(file, read_list(file), partial(read_ability, split=split, listed=listed), "GrailQAbility")


def read_ability(value: Mapping[str, Any], split: str | None, listed: Mapping[str, ListedQuestion]) -> AbilityQuestion:
    """One row.  Raises ValueError that names the field."""
    kind = need_text(value, "qType", "`A` or `U`")
    if kind not in ("A", "U", "NA"):
        raise ValueError(f"field 'qType' must be `A` or `U`, but it is {kind!r}")
    answerable = kind == "A"
    form = optional_text(value, "s_expression")
    row = {**value, "s_expression": None if form in NO_FORM else form}
    if not answerable:
        row["answer"] = _no_answers(value.get("answer"))
    question = read_row(row, split)
    ideal = optional_text(value, "Orgs_expression") or (question.s_expression if answerable else None)
    if answerable and value.get("Organswer") is None:
        answers = question.answers or ()
    else:
        answers = read_answers(value, "Organswer")
    about = listed.get(question.id)
    return AbilityQuestion(
        question,
        answerable,
        answers,
        ideal,
        () if answerable else _missing(value),
        about.kinds if about is not None else (),
        about.novelty if about is not None else None,
    )


def _no_answers(answer: Any) -> list[dict[str, str]]:
    """The answers of a question that has none: `0` of a count, which is written as a text or as an answer."""
    if answer in (None, [], "null", ""):
        return []
    if answer in ("0", 0, ["0"], [0]):
        return [{"answer_type": "Value", "answer_argument": "0"}]
    found: list[dict[str, str]] = answer
    return found


def _missing(value: Mapping[str, Any]) -> tuple[str, ...]:
    found = value.get("Missing_KB_elements")
    letters = [found] if isinstance(found, str) else found
    if not isinstance(letters, list) or not letters or not all(letter in MISSING for letter in letters):
        raise ValueError(
            f"field 'Missing_KB_elements' must list some of {', '.join(MISSING)} of a question that is not answerable, "
            f"but it is {found!r}"
        )
    return tuple(dict.fromkeys(MISSING[letter] for letter in letters))


def raw_question(record: AbilityQuestion) -> RawQuestion:
    """A question as the modified graph has it, canonical; one that is not answerable is marked.  Raises ValueError."""
    question = record.question
    if record.answerable:
        return answerable_question(question)
    # The query is that of the ideal graph and would give the form away.
    topics = question.topics or topics_of(record.ideal_form, None)
    row: dict[str, Any] = {
        "id": question.id,
        "question": question.text,
        "topic_entities": list(topics),
        "answers": [],
        "split": question.split,
        "generalization": question.level,
        "answerable": False,
        "reason": ", ".join(REASON[kind] for kind in record.missing),
        "missing": ", ".join(record.missing),
        "answer_type": "number" if question.function == "count" else None,
    }
    if question.s_expression is not None:
        try:
            form = parse(question.s_expression)
        except FormError as fault:
            return canonical(row) | {"without_form": f"s_expression: {fault}"}
        row |= form_fields(form, topics)
    return canonical(row)


def read(options: QuestionSource) -> Iterator[RawQuestion | Reject]:
    """Canonical raw questions.  Raises QuestionFileError."""
    for split, file in question_files(path_of(options)):
        yield from read_each(file, read_list(file), partial(_read_raw, split=split), "GrailQAbility")


def _read_raw(value: Mapping[str, Any], split: str | None) -> RawQuestion:
    return raw_question(read_ability(value, split, {}))


GRAILQABILITY = DatasetSpec(
    "GrailQAbility",
    "GrailQA with questions that the graph cannot answer",
    "Freebase with facts taken out",
    "50,507",
    "github: dair-iitd/GrailQAbility",
    "see its page",
    ("grailqa/grailqability/**/*.json", "grailqability/**/*.json", "GrailQAbility/**/*.json"),
    source="grailqability",
    loader=split_loader(question_files, read),
    recognise=lambda head: head.shape == "list" and head.has("qid", "question", "qType"),
    fields="a list with qid, question, qType, Missing_KB_elements",
)
