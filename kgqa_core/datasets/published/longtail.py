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
from collections.abc import Callable, Sequence

from msgspec import Struct, field

from kgqa_core.datasets.files.fields import read_texts
from kgqa_core.datasets.files.jsonl import RawQuestion
from kgqa_core.datasets.published.base import DatasetSpec, PublishedFiles, RowSource, folder_files
from kgqa_core.datasets.published.documents import FileHead
from kgqa_core.datasets.published.iris import key_of_iri
from kgqa_core.datasets.published.rows import choose, list_rows, table_rows
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


class PopQuestion(Struct, frozen=True):
    """A row of PopQA."""

    question: str
    names: str = field(name="possible_answers")
    property: str = field(name="prop")
    subject: str = field(name="s_uri")
    object: str = field(name="o_uri")
    id: str | None = None


class WitQuestion(Struct, frozen=True):
    """A row of WiTQA."""

    question: str
    names: str = field(name="possible_answers")
    subject: str
    predicate: str
    object: str


class EntityQuestion(Struct, frozen=True):
    """A row of EntityQuestions; of its disambiguated table where it has an `answer`."""

    question: str
    answers: str | list[str] | None = None
    answer: str | None = None
    subject: str | None = field(name="wikidata_id", default=None)
    relation: str | None = None


def _popqa(row: PopQuestion, source: RowSource) -> RawQuestion:
    choose("prop", row.property, PROPERTIES)
    subject, answer = (
        _key(key_of_iri(uri), _ITEM, column) for uri, column in ((row.subject, "s_uri"), (row.object, "o_uri"))
    )
    names = _names(row.names)
    identity = row.id or f"popqa-{source.number:05d}"
    return _fact(identity, row.question, subject, PROPERTIES[row.property], [answer]) | {
        "answer_aliases": {answer: names}
    }


def _witqa(row: WitQuestion, source: RowSource) -> RawQuestion:
    subject, answer = _key(row.subject, _ITEM, "subject"), _key(row.object, _ITEM, "object")
    relation = _key(row.predicate, _PROPERTY, "predicate")
    return _fact(f"witqa-{source.number:05d}", row.question, subject, relation, [answer]) | {
        "answer_aliases": {answer: _names(row.names)}
    }


def _entity_question(row: EntityQuestion, source: RowSource) -> RawQuestion:
    """A question whose relation the name of its file says, or its column."""
    if source.file.suffix == ".csv":
        subject = _key(row.subject, _ITEM, "wikidata_id")
        relation = _key(row.relation, _PROPERTY, "relation")
        return _fact(f"eq-{source.number:05d}", row.question, subject, relation, [row.answer])
    named = _FILE.match(source.file.name)
    stem = f"{named[1]}-{named[2]}" if named else "eq"
    topic = subject_of(row.question.strip(), named[1]) if named else None
    answers = read_texts({"answers": row.answers}, "answers", required=True)
    return _fact(f"{stem}-{source.number:05d}", row.question, topic, named[1] if named else None, answers)


def subject_of(question: str, relation: str) -> str | None:
    """What stands in the gap of a relation's template; None where the question is worded otherwise.

    >>> subject_of("Where was Alma Mahler born?", "P19")
    'Alma Mahler'
    """
    before, gap, after = TEMPLATES.get(relation, "").partition("[X]")
    if not gap or not question.startswith(before) or not question.endswith(after):
        return None
    return question[len(before) : len(question) - len(after)].strip() or None


def _fact(
    identity: str, text: str, topic: str | None, relation: str | None, answers: Sequence[str | None]
) -> RawQuestion:
    """A question about one fact."""
    return {
        "id": identity,
        "question": text,
        "topic_entities": [topic] if topic else [],
        "answers": list(answers),
        "answer_type": "entities",
        "relation_path": [relation] if relation else [],
        "complexity": "generic",
        "hops": 1,
    }


def _names(text: str) -> list[str]:
    """The names that count as an answer, a list in JSON."""
    try:
        listed = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        listed = None
    if not isinstance(listed, list):
        raise ValueError(f"field 'possible_answers' must be a list in JSON, but it is {text[:60]!r}")
    named = [name for name in listed if not isinstance(name, str) or name.strip()]  # WiTQA has empty names among them
    return read_texts({"possible_answers": named}, "possible_answers", required=True)


def _key(text: str | None, form: re.Pattern[str], column: str) -> str:
    if text is None or not form.fullmatch(text.strip()):
        raise ValueError(f"field '{column}' must hold an id of Wikidata, but it is {text!r}")
    return text.strip()


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
    loader=PublishedFiles(
        "PopQA", folder_files("PopQA", {"test": ("**/*[Pp]op[Qq][Aa]*.[tc]sv",)}), table_rows, PopQuestion, _popqa
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
    loader=PublishedFiles(
        "EntityQuestions",
        folder_files(
            "EntityQuestions",
            {split: (f"**/P*.{split}.json",) for split in SPLITS} | {"": ("**/*EntityQA*.csv",)},
        ),
        lambda path: table_rows(path) if path.suffix == ".csv" else list_rows(path),
        EntityQuestion,
        _entity_question,
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
    loader=PublishedFiles(
        "WiTQA", folder_files("WiTQA", {"test": ("**/*[Ww][Ii][Tt][Qq][Aa]*.csv",)}), table_rows, WitQuestion, _witqa
    ).loader(),
    recognise=_table_with("question", "possible_answers", "subject", "predicate", "object"),
    fields="a table with question, possible_answers, subject, predicate, object",
)
