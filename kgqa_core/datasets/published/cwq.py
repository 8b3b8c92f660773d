"""ComplexWebQuestions: compositions and conjunctions made of WebQSP's queries (Talmor and Berant 2018).

`ComplexWebQuestions_{train,dev,test}.json` are arrays.  A row has `ID`, `question`, `machine_question`, `sparql`,
`compositionality_type`, `webqsp_ID`, `webqsp_question` and `answers`, objects with `answer`, `answer_id` and `aliases`.
The first release of test has no answers; its rows are read only where questions come unscored.

Topics are the entities of the query, in its order.  The form is made of the query where the fragment of forms allows
(`logic.sparql`), and the relation paths are those of the form.  Some answers are values, without an id; some have no
name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from kgqa_core.config import QuestionSource
from kgqa_core.datasets.files.jsonl import RawQuestion, canonical
from kgqa_core.datasets.published.base import DatasetSpec, Reject
from kgqa_core.datasets.published.documents import read_list
from kgqa_core.datasets.published.form_fields import form_fields
from kgqa_core.datasets.published.iris import entities_of_sparql
from kgqa_core.datasets.published.json_rows import (
    SplitFiles,
    need_text,
    objects,
    optional_text,
    read_each,
    read_published,
    split_files,
    split_loader,
)
from kgqa_core.errors import FormError
from kgqa_core.logic.paths import to_paths

NAMES = {split: (f"ComplexWebQuestions_{split}.json",) for split in ("train", "dev", "test")}

COMPLEXITY = {
    "composition": "multi-hop",
    "conjunction": "intersection",
    "superlative": "superlative",
    "comparative": "comparative",
}
"""Type of composition → type of `types.COMPLEXITY_TYPES`."""


@dataclass(frozen=True, slots=True)
class ComplexAnswer:
    """An answer: its Freebase id, or None of a value; its name, or None; further names."""

    id: str | None
    name: str | None
    aliases: tuple[str, ...]

    @property
    def key(self) -> str:
        """The id, or else the value.  Raises ValueError where there is neither."""
        if self.id is None and self.name is None:
            raise ValueError("field 'answers' has an answer with neither answer_id nor answer; give it one")
        return self.id or self.name or ""


@dataclass(frozen=True, slots=True)
class ComplexQuestion:
    """A row of ComplexWebQuestions.

    split: None where the file does not say it.  answers: None where they are not published.  topics: entities of the
    query, each once, in its order.
    """

    id: str
    text: str
    split: str | None
    answers: tuple[ComplexAnswer, ...] | None
    sparql: str | None
    composition: str | None
    webqsp_id: str | None
    webqsp_question: str | None
    machine_question: str | None
    topics: tuple[str, ...]


def question_files(path: Path) -> SplitFiles:
    """(split, file) of what is there.  Raises QuestionFileError when it is not ComplexWebQuestions."""
    return split_files(path, NAMES, "ComplexWebQuestions")


def read_records(path: Path) -> Iterator[ComplexQuestion | Reject]:
    """The rows of a folder or file, in file order.  Raises QuestionFileError where a file is no array."""
    for split, file in question_files(path):
        yield from read_each(file, read_list(file), partial(read_row, split=split), "ComplexWebQuestions")


def read_row(value: Mapping[str, Any], split: str | None) -> ComplexQuestion:
    """One row.  Raises ValueError that names the field."""
    name = need_text(value, "ID", "the id of the question")
    text = need_text(value, "question", "its text")
    answers = None
    if value.get("answers") is not None or split not in ("test", None):
        answers = tuple(map(_answer, objects(value, "answers", "answers, objects with answer, answer_id and aliases")))
    sparql = optional_text(value, "sparql")
    composition = optional_text(value, "compositionality_type")
    if composition is not None and composition not in COMPLEXITY:
        raise ValueError(
            f"field 'compositionality_type' must be one of {', '.join(COMPLEXITY)}, but it is {composition!r}"
        )
    return ComplexQuestion(
        name,
        text,
        split,
        answers,
        sparql,
        composition,
        optional_text(value, "webqsp_ID"),
        optional_text(value, "webqsp_question"),
        optional_text(value, "machine_question"),
        tuple(entities_of_sparql(sparql or "")),
    )


def _answer(value: Mapping[str, Any]) -> ComplexAnswer:
    aliases = value.get("aliases") or []
    if not isinstance(aliases, list):
        raise ValueError(f"field 'aliases' must list names, but it is {aliases!r}")
    names = tuple(str(alias).strip() for alias in aliases if str(alias).strip())
    return ComplexAnswer(optional_text(value, "answer_id"), optional_text(value, "answer"), names)


def raw_question(record: ComplexQuestion) -> RawQuestion:
    """A row as a canonical raw question.  Raises ValueError."""
    answers = record.answers or ()
    names: dict[str, dict[str, None]] = {}
    for answer in answers:
        own = [name for name in (answer.name, *answer.aliases) if name and name != answer.key]
        names.setdefault(answer.key, {}).update(dict.fromkeys(own))
    row: dict[str, Any] = {
        "id": record.id,
        "question": record.text,
        "topic_entities": list(record.topics),
        "answers": [answer.key for answer in answers],
        "answer_type": "entities" if answers and all(_is_entity(answer) for answer in answers) else None,
        "answer_aliases": {key: list(own) for key, own in names.items()},
        "split": record.split,
    }
    without_form = None
    if record.sparql is not None:
        try:
            row |= _of_query(record)
        except (FormError, RecursionError) as fault:
            without_form = f"sparql: {fault}"
    if record.composition is not None:
        row["complexity"] = COMPLEXITY[record.composition]
    found = canonical(row)
    if record.sparql is not None:
        found["sparql"] = record.sparql
    if without_form is not None:
        found["without_form"] = without_form
    return found


def _of_query(record: ComplexQuestion) -> dict[str, Any]:
    from kgqa_core.logic.sparql import from_sparql  # rdflib takes 0.2 s to import

    form = from_sparql(record.sparql or "")
    topics = list(dict.fromkeys([*(path.topic for path in to_paths(form)), *record.topics]))
    return {"topic_entities": topics, **form_fields(form, topics)}


def _is_entity(answer: ComplexAnswer) -> bool:
    return answer.id is not None and re.match(r"[mg]\.", answer.id) is not None


def read(options: QuestionSource) -> Iterator[RawQuestion | Reject]:
    """Canonical raw questions; rows without published answers only where questions are unscored."""
    return read_published(options, question_files, read_row, raw_question, "ComplexWebQuestions")


CWQ = DatasetSpec(
    "CWQ",
    "ComplexWebQuestions: compositions, conjunctions, superlatives, comparatives",
    "Freebase",
    "34,689",
    "tau-nlp.sites.tau.ac.il/compwebq",
    "see its page",
    ("cwq/ComplexWebQuestions_*.json", "ComplexWebQuestions_*.json"),
    source="cwq",
    loader=split_loader(question_files, read),
    recognise=lambda head: head.shape == "list" and head.has("ID", "question", "webqsp_ID"),
    fields="a list with ID, question, sparql, answers, webqsp_ID",
)
