"""Mintaka, questions of nine complexity types in nine languages (Sen et al. 2022).

`mintaka_{train,dev,test}.json` are lists of questions with id, question, translations, questionEntity, answer, category
and complexityType.  Topics are the entities of the question that have a Wikidata id; ordinals, dates and amounts are
none.  Answers are ids, truth values, numbers or dates; where an entity has no id (`"answer": null`), its mention is the
answer, as text.  `questions.language` chooses the language: `en` is the field `question`, others are translations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kgqa_core.datasets.files.fields import kind_of, object_of, read_text
from kgqa_core.datasets.files.jsonl import RawQuestion
from kgqa_core.datasets.published.base import DatasetSpec, OfficialFiles, Reject, convert_rows, numbered
from kgqa_core.datasets.published.documents import FileHead, read_list
from kgqa_core.errors import nearest
from kgqa_core.types import SPLITS

LANGUAGES = ("en", "ar", "de", "es", "fr", "hi", "it", "ja", "pt")

COMPLEXITY = {"multihop": "multi-hop", "yesno": "yes/no"}
"""Complexity types that are named otherwise here."""

ANSWER_TYPES = {"entity": "entities", "boolean": "yes/no", "numerical": "number", "date": "date", "string": "text"}


def read_mintaka(path: Path, language: str = "en") -> Iterator[Mapping[str, Any] | Reject]:
    """Raw questions of a file in a language.  Raises QuestionFileError when it is no list of questions."""
    return convert_rows(path, numbered(read_list(path), "id"), lambda value: _question(object_of(value), language))


def _question(value: Mapping[str, Any], language: str) -> RawQuestion:
    answer = object_of(value.get("answer"), "answer")
    answer_type, answers, aliases = _answers(answer, language)
    complexity = read_text(value, "complexityType")
    return {
        "id": read_text(value, "id"),
        "question": _text(value, language),
        "topic_entities": _topics(value),
        "answers": answers,
        "answer_type": answer_type,
        "answer_aliases": aliases,
        "complexity": COMPLEXITY.get(complexity, complexity),
        "language": language,
    }


def _text(value: Mapping[str, Any], language: str) -> str:
    if language == "en":
        return read_text(value, "question")
    translations = object_of(value.get("translations") or {}, "translations")
    if language not in translations:
        known = ["en", *translations]
        raise ValueError(f"it is not there in the language {language!r}, only in {', '.join(known)}")
    return read_text(translations, language)


def _topics(value: Mapping[str, Any]) -> list[str]:
    """Ids of the question's entities, each once; those without an id are left to linking."""
    entities = value.get("questionEntity") or []
    if not isinstance(entities, list):
        raise ValueError(f"field 'questionEntity' must be a list, but it is {kind_of(entities)}")
    topics = []
    for entity in entities:
        one = object_of(entity, "questionEntity")
        if one.get("entityType") == "entity" and one.get("name") is not None:
            topics.append(read_text(one, "name"))
    return list(dict.fromkeys(topics))


def _answers(answer: Mapping[str, Any], language: str) -> tuple[str | None, list[Any], dict[str, list[str]]]:
    """Answer type, answers and the labels of those that are ids."""
    kind = answer.get("answerType")
    if kind not in ANSWER_TYPES:
        raise ValueError(
            f"answerType {kind!r} is unknown{nearest(str(kind), ANSWER_TYPES)}; known are {', '.join(ANSWER_TYPES)}"
        )
    found = answer.get("answer")
    if found is None:
        mention = answer.get("mention")
        return ("text", [mention], {}) if isinstance(mention, str) and mention.strip() else (None, [], {})
    if not isinstance(found, list):
        raise ValueError(f"field 'answer' must be a list, but it is {kind_of(found)}")
    if kind != "entity":
        return ANSWER_TYPES[kind], found, {}
    keys, labels = [], {}
    for item in found:
        entity = object_of(item, "answer")
        key = read_text(entity, "name")
        keys.append(key)
        labels[key] = _labels(entity.get("label"), language)
    return "entities", keys, {key: names for key, names in labels.items() if names}


def _labels(label: Any, language: str) -> list[str]:
    """Labels of an answer: one text, or a text by language, that of the questions first."""
    texts = [label.get(language), label.get("en")] if isinstance(label, Mapping) else [label]
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
    loader=OfficialFiles("Mintaka", {split: (f"mintaka_{split}.json",) for split in SPLITS}, read_mintaka).loader(),
    language="several",
    recognise=_recognise,
    fields="a list with id, question, complexityType, answer",
)
