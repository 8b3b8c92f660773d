"""One-fact questions about rarely named entities: PopQA, EntityQuestions and WiTQA, and their disambiguated tables.

PopQA (Mallen et al. 2023), `popQA.tsv`: columns id, question, possible_answers (a list in JSON), prop (one of sixteen
relations by name), s_uri and o_uri (Wikidata items), among others.  EntityQuestions (Sciavolino et al. 2021): a folder
each for train, dev and test with a file a relation, `P17.dev.json`, a list with question and answers; the subject is
what stands in the gap of the relation's template.  WiTQA (Maekawa et al. 2024): columns question, possible_answers,
subject, predicate, object.  The disambiguated tables (`Disamb*.csv`) have the same columns as PopQA and WiTQA, and for
EntityQuestions question, answer, wikidata_id and relation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kgqa_core.datasets.files.fields import object_of, read_text, read_texts
from kgqa_core.datasets.files.jsonl import RawQuestion
from kgqa_core.datasets.published.base import DatasetSpec, OfficialFiles, Reject, convert_rows, numbered
from kgqa_core.datasets.published.documents import FileHead, read_list, read_table
from kgqa_core.datasets.published.iris import key_of_iri
from kgqa_core.errors import nearest
from kgqa_core.types import SPLITS

PROPERTIES = {
    "occupation": "P106",
    "place of birth": "P19",
    "genre": "P136",
    "father": "P22",
    "country": "P17",
    "producer": "P162",
    "director": "P57",
    "capital of": "P1376",
    "screenwriter": "P58",
    "composer": "P86",
    "color": "P462",
    "religion": "P140",
    "sport": "P641",
    "author": "P50",
    "mother": "P25",
    "capital": "P36",
}
"""The relations of PopQA by the names in its column `prop`."""

TEMPLATES = {
    "P17": "Which country is [X] located in?",
    "P19": "Where was [X] born?",
    "P20": "Where did [X] die?",
    "P26": "Who is [X] married to?",
    "P36": "What is the capital of [X]?",
    "P40": "Who is [X]'s child?",
    "P50": "Who is the author of [X]?",
    "P69": "Where was [X] educated?",
    "P106": "What kind of work does [X] do?",
    "P112": "Who founded [X]?",
    "P127": "Who owns [X]?",
    "P131": "Where is [X] located?",
    "P136": "What type of music does [X] play?",
    "P159": "Where is the headquarter of [X]?",
    "P170": "Who was [X] created by?",
    "P175": "Who performed [X]?",
    "P176": "Which company is [X] produced by?",
    "P264": "What music label is [X] represented by?",
    "P276": "Where is [X] located?",
    "P407": "Which language was [X] written in?",
    "P413": "What position does [X] play?",
    "P495": "Which country was [X] created in?",
    "P740": "Where was [X] founded?",
    "P800": "What is [X] famous for?",
}
"""How EntityQuestions words each relation; a question that is worded otherwise has no topic, which linking finds."""

_ITEM, _PROPERTY = re.compile(r"Q\d+"), re.compile(r"P\d+")
_FILE = re.compile(r"(P\d+)\.(\w+)\.json")


def read_popqa(path: Path, language: str = "en") -> Iterator[Mapping[str, Any] | Reject]:
    """Raw questions of a table of PopQA.  Raises QuestionFileError when it cannot be read."""
    return convert_rows(path, _lines(path), lambda row: _popqa(*row))


def read_witqa(path: Path, language: str = "en") -> Iterator[Mapping[str, Any] | Reject]:
    """Raw questions of a table of WiTQA.  Raises QuestionFileError when it cannot be read."""
    return convert_rows(path, _lines(path), lambda row: _witqa(*row))


def read_entity_questions(path: Path, language: str = "en") -> Iterator[Mapping[str, Any] | Reject]:
    """Raw questions of a file of EntityQuestions, whose name says the relation, or of its disambiguated table.

    Raises QuestionFileError when it cannot be read.
    """
    if path.suffix == ".csv":
        return convert_rows(path, _lines(path), lambda row: _disambiguated(*row))
    named = _FILE.match(path.name)
    relation, stem = (named[1], f"{named[1]}-{named[2]}") if named else (None, "eq")
    rows = ((place, (number, value)) for number, (place, value) in enumerate(numbered(read_list(path)), start=1))
    return convert_rows(path, rows, lambda row: _entity_question(*row, relation=relation, stem=stem))


def subject_of(question: str, relation: str) -> str | None:
    """What stands in the gap of a relation's template; None where the question is worded otherwise.

    >>> subject_of("Where was Alma Mahler born?", "P19")
    'Alma Mahler'
    """
    before, gap, after = TEMPLATES.get(relation, "").partition("[X]")
    if not gap or not question.startswith(before) or not question.endswith(after):
        return None
    return question[len(before) : len(question) - len(after)].strip() or None


def _lines(path: Path) -> Iterator[tuple[str, tuple[int, dict[str, str]]]]:
    return ((f"line {line}", (number, row)) for number, (line, row) in enumerate(read_table(path), start=1))


def _popqa(number: int, row: dict[str, str]) -> RawQuestion:
    name = read_text(row, "prop")
    if name not in PROPERTIES:
        raise ValueError(f"relation {name!r} is unknown{nearest(name, PROPERTIES)}; known are {', '.join(PROPERTIES)}")
    subject, answer = (_key(key_of_iri(read_text(row, column)), _ITEM, column) for column in ("s_uri", "o_uri"))
    return _fact(row.get("id") or f"popqa-{number:05d}", row, subject, PROPERTIES[name], answer)


def _witqa(number: int, row: dict[str, str]) -> RawQuestion:
    subject, answer = (_key(read_text(row, column), _ITEM, column) for column in ("subject", "object"))
    relation = _key(read_text(row, "predicate"), _PROPERTY, "predicate")
    return _fact(f"witqa-{number:05d}", row, subject, relation, answer)


def _fact(own: str, row: dict[str, str], subject: str, relation: str, answer: str) -> RawQuestion:
    """A question about one fact, with the names that count as its answer."""
    text = read_text(row, "possible_answers")
    try:
        listed = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        listed = None
    if not isinstance(listed, list):
        raise ValueError(f"field 'possible_answers' must be a list in JSON, but it is {text[:60]!r}")
    named = [name for name in listed if not isinstance(name, str) or name.strip()]  # WiTQA has empty names among them
    names = read_texts({"possible_answers": named}, "possible_answers", required=True)
    return {
        "id": own,
        "question": read_text(row, "question"),
        "topic_entities": [subject],
        "answers": [answer],
        "answer_type": "entities",
        "answer_aliases": {answer: names},
        "relation_path": [relation],
        "complexity": "generic",
        "hops": 1,
    }


def _disambiguated(number: int, row: dict[str, str]) -> RawQuestion:
    return {
        "id": f"eq-{number:05d}",
        "question": read_text(row, "question"),
        "topic_entities": [_key(read_text(row, "wikidata_id"), _ITEM, "wikidata_id")],
        "answers": [read_text(row, "answer")],
        "answer_type": "entities",
        "relation_path": [_key(read_text(row, "relation"), _PROPERTY, "relation")],
        "complexity": "generic",
        "hops": 1,
    }


def _entity_question(number: int, value: Any, *, relation: str | None, stem: str) -> RawQuestion:
    row = object_of(value)
    text = read_text(row, "question")
    subject = subject_of(text, relation) if relation else None
    return {
        "id": f"{stem}-{number:05d}",
        "question": text,
        "topic_entities": [subject] if subject else [],
        "answers": read_texts(row, "answers", required=True),
        "answer_type": "entities",
        "relation_path": [relation] if relation else [],
        "complexity": "generic",
        "hops": 1,
    }


def _key(text: str, form: re.Pattern[str], column: str) -> str:
    if not form.fullmatch(text):
        raise ValueError(f"field '{column}' must hold an id of Wikidata, but it is {text!r}")
    return text


def _table_with(*columns: str) -> Callable[[FileHead], bool]:
    return lambda head: head.shape == "table" and head.has(*columns)


def _is_entity_questions(head: FileHead) -> bool:
    if head.shape == "list":
        return set(head.first) == {"question", "answers"}
    return head.shape == "table" and head.has("question", "answer", "wikidata_id", "relation")


POPQA = DatasetSpec(
    "PopQA",
    "one fact each, with the popularity of subject and object",
    "Wikidata",
    "14,267",
    "github: AlexTMallen/adaptive-retrieval",
    "MIT",
    ("longtail/**/*[Pp]op[Qq][Aa]*.csv", "popqa/*.tsv", "popQA.tsv"),
    source="popqa",
    loader=OfficialFiles(
        "PopQA", {"test": ("**/*[Pp]op[Qq][Aa]*.tsv", "**/*[Pp]op[Qq][Aa]*.csv")}, read_popqa
    ).loader(),
    recognise=_table_with("question", "possible_answers", "prop", "s_uri", "o_uri"),
    fields="a table with question, possible_answers, prop, s_uri, o_uri",
)

ENTITY_QUESTIONS = DatasetSpec(
    "EntityQuestions",
    "one fact each in 24 templates, about rarely named entities",
    "Wikidata",
    "220,553",
    "github: princeton-nlp/EntityQuestions",
    "see its page",
    ("longtail/**/*EntityQA*.csv", "entityquestions/**/P*.json", "EntityQuestions/**/P*.json"),
    source="entityquestions",
    loader=OfficialFiles(
        "EntityQuestions",
        {split: (f"**/P*.{split}.json",) for split in SPLITS} | {"": ("**/*EntityQA*.csv",)},
        read_entity_questions,
    ).loader(),
    recognise=_is_entity_questions,
    fields="a list with question, answers; the name of the file says the relation",
)

WITQA = DatasetSpec(
    "WiTQA",
    "one fact each, with how often subject and relation are named together",
    "Wikidata",
    "14,837",
    "github: megagonlabs/witqa",
    "see its page",
    ("longtail/**/*WITQA*.csv", "witqa/*.csv"),
    source="witqa",
    loader=OfficialFiles("WiTQA", {"test": ("**/*[Ww][Ii][Tt][Qq][Aa]*.csv",)}, read_witqa).loader(),
    recognise=_table_with("question", "possible_answers", "subject", "predicate", "object"),
    fields="a table with question, possible_answers, subject, predicate, object",
)
