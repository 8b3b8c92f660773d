"""Mintaka, questions of nine complexity types in nine languages (Sen et al. 2022).

`mintaka_{train,dev,test}.json` are lists of questions with id, question, translations, questionEntity, answer, category
and complexityType.  Topics are the entities of the question that have a Wikidata id; ordinals, dates and amounts are
none.  Answers are ids, truth values, numbers or dates; where an entity has no id (`"answer": null`), its mention is the
answer, as text.  `questions.language` chooses the language: `en` is the field `question`, others are translations.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from kgqa_core.datasets.files.jsonl import RawQuestion
from kgqa_core.datasets.published.base import DatasetSpec, PublishedFiles, RowSource, folder_files
from kgqa_core.datasets.published.documents import FileHead
from kgqa_core.datasets.published.rows import Text, choose, list_rows, read_row
from kgqa_core.types import SPLITS

COMPLEXITY = {"multihop": "multi-hop", "yesno": "yes/no"}
"""Complexity types that are named otherwise here."""

ANSWER_TYPES = {"entity": "entities", "boolean": "yes/no", "numerical": "number", "date": "date", "string": "text"}


class MentionedEntity(Struct, frozen=True):
    """A part of the question.  name: the Wikidata id of an entity."""

    kind: Text | None = field(name="entityType", default=None)
    name: Any = None


class AnswerEntity(Struct, frozen=True):
    """An answer that is an entity.  label: one text, or a text by language."""

    name: str
    label: Any = None


class MintakaAnswer(Struct, frozen=True):
    """What a question's answer is: entities, or values; `mention` is its text."""

    kind: Text = field(name="answerType")
    values: tuple[Any, ...] | None = field(name="answer", default=None)
    mention: Any = None

    def __post_init__(self) -> None:
        choose("answerType", self.kind, ANSWER_TYPES)


class MintakaQuestion(Struct, frozen=True):
    """A row of Mintaka."""

    id: str
    complexity: str = field(name="complexityType")
    answer: MintakaAnswer
    question: str | None = None
    translations: dict[str, str | None] = {}
    mentions: tuple[MentionedEntity, ...] = field(name="questionEntity", default=())


def raw_question(row: MintakaQuestion, source: RowSource) -> RawQuestion:
    """A row as a raw question in the language of the options; topics without an id are left to linking."""
    language = source.options.language
    texts = {"en": row.question, **row.translations}
    if texts.get(language) is None:
        known = ", ".join(name for name, text in texts.items() if text is not None)
        raise ValueError(f"it is not there in the language {language!r}, only in {known}")
    topics = [mention.name for mention in row.mentions if mention.kind == "entity" and mention.name is not None]
    answer_type, answers, aliases = _answers(row.answer, language)
    return {
        "id": row.id,
        "question": texts[language],
        "topic_entities": list(dict.fromkeys(topics)),
        "answers": answers,
        "answer_type": answer_type,
        "answer_aliases": aliases,
        "complexity": COMPLEXITY.get(row.complexity, row.complexity),
        "language": language,
    }


def _answers(answer: MintakaAnswer, language: str) -> tuple[str | None, list[Any], dict[str, list[str]]]:
    """Answer type, answers and the labels of those that are ids."""
    if answer.values is None:
        return ("text", [answer.mention], {}) if isinstance(answer.mention, str) else (None, [], {})
    if answer.kind != "entity":
        return ANSWER_TYPES[answer.kind], list(answer.values), {}
    entities = [read_row(value, AnswerEntity) for value in answer.values]
    labels = {entity.name: _labels(entity.label, language) for entity in entities}
    return "entities", [entity.name for entity in entities], {key: names for key, names in labels.items() if names}


def _labels(label: Any, language: str) -> list[str]:
    """Labels of an answer: one text, or a text by language, that of the questions first."""
    texts = [label.get(language), label.get("en")] if isinstance(label, dict) else [label]
    return list(dict.fromkeys(text.strip() for text in texts if isinstance(text, str) and text.strip()))


def _recognise(head: FileHead) -> bool:
    return head.shape == "list" and head.has("id", "question", "complexityType")


MINTAKA = DatasetSpec(
    "Mintaka",
    "nine complexity types in nine languages",
    "Wikidata",
    "20,000",
    "github: amazon-science/mintaka",
    "CC BY 4.0",
    ("mintaka/mintaka_*.json", "mintaka_*.json"),
    source="mintaka",
    loader=PublishedFiles(
        "Mintaka",
        folder_files("Mintaka", {split: (f"mintaka_{split}.json",) for split in SPLITS}),
        list_rows,
        MintakaQuestion,
        raw_question,
    ).loader(),
    language="several",
    recognise=_recognise,
    fields="a list with id, question, complexityType, answer",
)
