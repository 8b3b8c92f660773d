"""QALD, questions written by people over DBpedia or Wikidata, in several languages, with SPARQL and its results.

A QALD JSON file is an object with `questions`, each with id, question (a list of language and string), query (with
sparql) and answers (results of SPARQL as JSON: bindings of one variable, or a boolean), and often answertype
(Usbeck et al. 2018, 2024).  QALD-9 is over DBpedia; QALD-10, and QALD-9-plus, over Wikidata, whose items get their
short keys.  `questions.language` chooses the language.  Ids of the train and the test file are alike, so that those of
a folder get the split in front.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kgqa_core.datasets.files.fields import kind_of, object_of, read_id, read_text
from kgqa_core.datasets.files.jsonl import RawQuestion
from kgqa_core.datasets.published.base import DatasetSpec, OfficialFiles, Reject, convert_rows, numbered
from kgqa_core.datasets.published.documents import FileHead, read_list
from kgqa_core.datasets.published.iris import entities_of_sparql, key_of_iri
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


def read_qald(path: Path, language: str = "en") -> Iterator[Mapping[str, Any] | Reject]:
    """Raw questions of a file in a language.  Raises QuestionFileError when it is no object with `questions`."""
    rows = numbered(read_list(path, "questions"), "id")
    return convert_rows(path, rows, lambda value: _question(object_of(value), language))


def _question(value: Mapping[str, Any], language: str) -> RawQuestion:
    query = value.get("query")
    sparql = object_of(query, "query").get("sparql") if query is not None else None
    known = isinstance(sparql, str) and bool(sparql.strip())
    answer_type, answers = _answers(value.get("answers"))
    if answer_type is None:
        answer_type = GIVEN_TYPES.get(str(value.get("answertype") or "").casefold()) if answers else None
    return {
        "id": read_id(value),
        "question": _text(value, language),
        "topic_entities": entities_of_sparql(str(sparql)) if known else [],
        "answers": answers,
        "answer_type": answer_type,
        "language": language,
    } | ({"sparql": sparql} if known else {})


def _text(value: Mapping[str, Any], language: str) -> str:
    texts = value.get("question")
    if not isinstance(texts, list):
        raise ValueError(f"field 'question' must be a list of language and string, but it is {kind_of(texts)}")
    languages = []
    for item in texts:
        one = object_of(item, "question")
        languages.append(str(one.get("language")))
        if one.get("language") == language and isinstance(one.get("string"), str) and one["string"].strip():
            return read_text(one, "string")
    known = ", ".join(dict.fromkeys(languages)) or "none"
    raise ValueError(f"it has no text in the language {language!r}, only in {known}")


def _answers(value: Any) -> tuple[str | None, list[Any]]:
    """Answer type and answers of the results of a query."""
    if value is None or value == []:
        return None, []
    results = object_of(value[0] if isinstance(value, list) else value, "answers")
    truth = results.get("boolean")
    if truth is not None:
        if not isinstance(truth, bool):
            raise ValueError(f"field 'boolean' of the answers must be true or false, but it is {kind_of(truth)}")
        return "yes/no", [truth]
    bindings = object_of(results.get("results") or {}, "results").get("bindings") or []
    if not isinstance(bindings, list):
        raise ValueError(f"field 'bindings' of the answers must be a list, but it is {kind_of(bindings)}")
    names = object_of(results.get("head") or {}, "head").get("vars") or []
    found: dict[Any, str] = {}
    for binding in bindings:
        row = object_of(binding, "bindings")
        name = next((name for name in names if name in row), next(iter(row), None))
        if name is not None:
            term = object_of(row[name], str(name))
            kind, answer = _term(term)
            found.setdefault(answer, kind)
    kinds = set(found.values())
    return (kinds.pop() if len(kinds) == 1 else "text" if kinds else None), list(found)


def _term(term: Mapping[str, Any]) -> tuple[str, str]:
    """Answer type and key of one bound term."""
    value = read_text(term, "value")
    if term.get("type") == "uri":
        return "entities", key_of_iri(value)
    datatype = term.get("datatype")
    if datatype in DATES:
        return "date", value
    return ("number" if datatype in NUMBERS else "text"), value


def _recognise(head: FileHead) -> bool:
    """Whether it is QALD JSON; WebQSP has `Questions`, with a capital."""
    rows = head.first.get("questions") if head.shape in ("object", "lines") else None
    if not isinstance(rows, list):
        return False
    return not rows or (isinstance(rows[0], Mapping) and isinstance(rows[0].get("question"), list))


def _of_wikidata(head: FileHead) -> bool:
    """Whether the first query, or the first answer, of a QALD file is of Wikidata."""
    rows = head.first.get("questions") or [{}]
    return "wikidata.org" in str(rows[0]) or "wdt:" in str(rows[0].get("query"))


QALD9 = DatasetSpec(
    "QALD-9",
    "written by people, with SPARQL, several languages",
    "DBpedia",
    "558",
    "github: ag-sc/QALD",
    "see its page",
    ("relation_linking/qald9/*.json", "qald9/*.json", "amr/qald-9-amr/**/*.txt", "qald-9-*.json"),
    source="qald9",
    loader=OfficialFiles(
        "QALD-9",
        {"train": ("**/qald-9-train*.json",), "test": ("**/qald-9-test*.json",)},
        read_qald,
        prefixed=True,
    ).loader(without_dev=True),
    language="several",
    recognise=lambda head: _recognise(head) and not _of_wikidata(head),
    fields="an object with `questions`, as QALD JSON",
)  # fmt: skip

QALD10 = DatasetSpec(
    "QALD-10",
    "written by people over Wikidata, with SPARQL, four languages; trains on QALD-9-plus",
    "Wikidata",
    "394 test, 412 train",
    "github: KGQA/QALD-10",
    "MIT",
    ("qald10/**/*.json", "qald-10/**/*.json", "QALD-10/**/*.json", "qald_10*.json"),
    source="qald10",
    loader=OfficialFiles(
        "QALD-10",
        {"train": ("**/qald_9_plus_train_wikidata*.json",), "test": ("**/qald_10.json",)},
        read_qald,
        prefixed=True,
    ).loader(without_dev=True),
    language="several",
    recognise=lambda head: _recognise(head) and _of_wikidata(head),
    fields="the same over Wikidata",
)  # fmt: skip
