"""QALD, questions written by people over DBpedia or Wikidata, in several languages, with SPARQL and its results.

A QALD JSON file is an object with `questions`, each with id, question (a list of language and string), query (with
sparql) and answers (results of SPARQL as JSON: bindings of one variable, or a boolean), and often answertype
(Usbeck et al. 2018, 2024).  QALD-9 is over DBpedia; QALD-10, and QALD-9-plus, over Wikidata, whose items get their
short keys.  `questions.language` chooses the language.  Ids of the train and the test file are alike, so that those of
a folder get the split in front.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct, field

from kgqa_core.datasets.files.jsonl import RawQuestion
from kgqa_core.datasets.published.base import DatasetSpec, Loader, PublishedFiles, RowSource, folder_files
from kgqa_core.datasets.published.documents import FileHead
from kgqa_core.datasets.published.iris import entities_of_sparql, key_of_iri
from kgqa_core.datasets.published.rows import Text, list_rows, read_row
from kgqa_core.kg.vocabulary import XSD

NUMBERS = {
    XSD + name
    for name in (
        "integer",
        "int",
        "long",
        "short",
        "decimal",
        "double",
        "float",
        "nonNegativeInteger",
        "positiveInteger",
    )
}
DATES = {XSD + name for name in ("date", "dateTime", "gYear", "gYearMonth", "gMonthDay")}

GIVEN_TYPES = {
    "resource": "entities",
    "uri": "entities",
    "list": "entities",
    "boolean": "yes/no",
    "number": "number",
    "date": "date",
    "string": "text",
}
"""Answer types as `answertype` names them; results of the query count first."""


class QaldText(Struct, frozen=True):
    """The text of a question in a language."""

    language: Text | None = None
    string: Any = None


class QaldTerm(Struct, frozen=True):
    """A bound term of a result in JSON."""

    value: str
    type: Text | None = None
    datatype: Any = None


class QaldQuery(Struct, frozen=True):
    """The query of a question."""

    sparql: Any = None


class QaldHeader(Struct, frozen=True):
    """The variables of a result."""

    variables: tuple[str, ...] = field(name="vars", default=())


class QaldBindings(Struct, frozen=True):
    """The rows of a result, a term by variable."""

    bindings: tuple[dict[str, QaldTerm], ...] = ()


class QaldResult(Struct, frozen=True):
    """The result of a query in SPARQL's JSON: a truth value, or bindings."""

    head: QaldHeader = QaldHeader()
    results: QaldBindings = QaldBindings()
    boolean: bool | None = None


class QaldQuestion(Struct, frozen=True):
    """A question of QALD JSON.  answers: a list with the result of its query, or that alone."""

    id: str | int
    question: tuple[QaldText, ...]
    query: QaldQuery = QaldQuery()
    answers: Any = None
    answer_type: Any = field(name="answertype", default=None)


def raw_question(row: QaldQuestion, source: RowSource) -> RawQuestion:
    """A row as a raw question in the language of the options.  Raises ValueError."""
    language = source.options.language
    texts = (each.string for each in row.question if each.language == language and isinstance(each.string, str))
    text = next(texts, None)
    if text is None:
        known = ", ".join(dict.fromkeys(str(each.language) for each in row.question)) or "none"
        raise ValueError(f"it has no text in the language {language!r}, only in {known}")
    sparql = row.query.sparql if isinstance(row.query.sparql, str) else None
    answer_type, answers = _answers(row.answers)
    if answer_type is None and answers:
        answer_type = GIVEN_TYPES.get(str(row.answer_type or "").casefold())
    return {
        "id": row.id,
        "question": text,
        "topic_entities": entities_of_sparql(sparql or ""),
        "answers": answers,
        "answer_type": answer_type,
        "language": language,
        "sparql": sparql,
    }


def _answers(value: Any) -> tuple[str | None, list[Any]]:
    """Answer type and answers of the results of a query."""
    if value is None or value == []:
        return None, []
    result = read_row(value[0] if isinstance(value, list) else value, QaldResult)
    if result.boolean is not None:
        return "yes/no", [result.boolean]
    answers: dict[str, str] = {}
    for row in result.results.bindings:
        name = next((name for name in result.head.variables if name in row), next(iter(row), None))
        if name is not None:
            kind, answer = _answer(row[name])
            answers.setdefault(answer, kind)
    kinds = set(answers.values())
    return (kinds.pop() if len(kinds) == 1 else "text" if kinds else None), list(answers)


def _answer(term: QaldTerm) -> tuple[str, str]:
    """Answer type and key of one bound term."""
    if term.type == "uri":
        return "entities", key_of_iri(term.value.strip())
    if term.datatype in DATES:
        return "date", term.value.strip()
    return ("number" if term.datatype in NUMBERS else "text"), term.value.strip()


def _recognise(head: FileHead) -> bool:
    """Whether it is QALD JSON; WebQSP has `Questions`, with a capital."""
    rows = head.first.get("questions") if head.shape in ("object", "lines") else None
    if not isinstance(rows, list):
        return False
    return not rows or (isinstance(rows[0], dict) and isinstance(rows[0].get("question"), list))


def _of_wikidata(head: FileHead) -> bool:
    """Whether the first query, or the first answer, of a QALD file is of Wikidata."""
    rows = head.first.get("questions") or [{}]
    return "wikidata.org" in str(rows[0]) or "wdt:" in str(rows[0].get("query"))


def _loader(name: str, splits: Mapping[str, Sequence[str]]) -> Loader:
    rows = partial(list_rows, within="questions")
    files = PublishedFiles(name, folder_files(name, splits), rows, QaldQuestion, raw_question, prefixed=True)
    return files.loader(without_dev=True)


QALD9 = DatasetSpec(
    "QALD-9",
    "written by people, with SPARQL, several languages",
    "DBpedia",
    "558",
    "github: ag-sc/QALD",
    "see its page",
    ("relation_linking/qald9/*.json", "qald9/*.json", "amr/qald-9-amr/**/*.txt", "qald-9-*.json"),
    source="qald9",
    loader=_loader("QALD-9", {"train": ("**/qald-9-train*.json",), "test": ("**/qald-9-test*.json",)}),
    language="several",
    recognise=lambda head: _recognise(head) and not _of_wikidata(head),
    fields="an object with `questions`, as QALD JSON",
)

QALD10 = DatasetSpec(
    "QALD-10",
    "written by people over Wikidata, with SPARQL, four languages; trains on QALD-9-plus",
    "Wikidata",
    "394 test, 412 train",
    "github: KGQA/QALD-10",
    "MIT",
    ("qald10/**/*.json", "qald-10/**/*.json", "QALD-10/**/*.json", "qald_10*.json"),
    source="qald10",
    loader=_loader("QALD-10", {"train": ("**/qald_9_plus_train_wikidata*.json",), "test": ("**/qald_10.json",)}),
    language="several",
    recognise=lambda head: _recognise(head) and _of_wikidata(head),
    fields="the same over Wikidata",
)
