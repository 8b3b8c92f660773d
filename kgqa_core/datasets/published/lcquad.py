"""LC-QuAD 1 and 2: questions written from templates and paraphrased, with SPARQL.

LC-QuAD 1 (Trivedi et al. 2017), `{train,test}-data.json`: a list with _id, corrected_question,
intermediary_question, sparql_query and sparql_template_id, over DBpedia.  LC-QuAD 2 (Dubey et al. 2019),
`{train,test}.json`: a list with uid, question, paraphrased_question, NNQT_question, sparql_wikidata,
sparql_dbpedia18, template and subgraph.  Both are also read from the JSON Lines of IBM's relation linking (q_id, text,
query).

No file has answers: they are the result of the query.  `gold_answers.by_query` runs its form, or itself, on the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kgqa_core.datasets.derived.gold_answers import by_query
from kgqa_core.datasets.files.fields import object_of, read_text
from kgqa_core.datasets.files.jsonl import RawQuestion, check_faults, read_json_lines
from kgqa_core.datasets.published.base import DatasetSpec, OfficialFiles, Reject, convert_rows, numbered
from kgqa_core.datasets.published.documents import FileHead, read_head, read_list
from kgqa_core.datasets.published.iris import entities_of_sparql
from kgqa_core.logic.sparql_dialect import standard_count

TEXTS = ("paraphrased_question", "question", "NNQT_question")
"""Fields that may hold the text of a question of LC-QuAD 2, the best first: some are empty or `n/a`."""


def read_lcquad2(path: Path, language: str = "en") -> Iterator[Mapping[str, Any] | Reject]:
    """Raw questions of a file of LC-QuAD 2, with the paraphrase as text where there is one.

    Raises QuestionFileError when it is no list of questions.
    """
    if _is_lines(path):
        return _read_lines(path)
    return convert_rows(path, numbered(read_list(path), "uid"), _second)


def read_lcquad1(path: Path, language: str = "en") -> Iterator[Mapping[str, Any] | Reject]:
    """Raw questions of a file of LC-QuAD 1.  Raises QuestionFileError when it is no list of questions."""
    if _is_lines(path):
        return _read_lines(path)
    return convert_rows(path, numbered(read_list(path), "_id"), _first)


def _is_lines(path: Path) -> bool:
    head = read_head(path)
    return head is not None and head.shape != "list"


def _second(value: Any) -> RawQuestion:
    row = object_of(value)
    return _question(row, row.get("uid"), _text(row), "sparql_wikidata")


def _first(value: Any) -> RawQuestion:
    row = object_of(value)
    return _question(row, row.get("_id"), read_text(row, "corrected_question"), "sparql_query")


def _linked(value: Any) -> RawQuestion:
    row = object_of(value)
    return _question(row, row.get("q_id"), read_text(row, "text"), "query")


def _text(row: Mapping[str, Any]) -> str:
    for name in TEXTS:
        text = row.get(name)
        if isinstance(text, str) and text.strip() and text.strip().casefold() not in ("n/a", "na"):
            return text.strip()
    raise ValueError(f"none of the fields {', '.join(TEXTS)} has a text")


def _question(row: Mapping[str, Any], own: Any, text: str, query: str) -> RawQuestion:
    if isinstance(own, bool) or not isinstance(own, str | int) or own == "":
        raise ValueError(f"its id must be a number or a text, but it is {own!r}")
    sparql = standard_count(read_text(row, query))
    template = row.get("template") or row.get("sparql_template_id")
    return {
        "id": str(own),
        "question": text,
        "topic_entities": entities_of_sparql(sparql),
        "answers": [],
        "sparql": sparql,
    } | ({"template": template} if template is not None else {})


def _read_lines(path: Path) -> Iterator[Mapping[str, Any] | Reject]:
    faults: list[str] = []
    lines = ((f"line {number}", value) for number, value in read_json_lines(path, faults))
    yield from convert_rows(path, lines, _linked)
    check_faults(path, faults)


def _is_linked(head: FileHead, wikidata: bool) -> bool:
    return (
        head.shape in ("lines", "object")
        and head.has("q_id", "text", "query")
        and wikidata is any(key.startswith("Q") for key in entities_of_sparql(str(head.first["query"])))
    )


def _recognise(*names: str, wikidata: bool) -> Callable[[FileHead], bool]:
    return lambda head: (head.shape == "list" and head.has(*names)) or _is_linked(head, wikidata)


LCQUAD2 = DatasetSpec(
    "LC-QuAD 2",
    "complex questions with SPARQL, some with qualifiers",
    "Wikidata, DBpedia",
    "30,226",
    "github: AskNowQA/LC-QuAD2.0",
    "see its page",
    ("lcquad2/**/*.json*", "LC-QuAD2*/**/*.json"),
    source="lcquad2",
    loader=OfficialFiles(
        "LC-QuAD 2",
        {
            "train": ("train.json", "dataset/train.json"),
            "test": ("test.json", "dataset/test.json", "**/lcquad2_test_validated.jsonl"),
        },
        read_lcquad2,
    ).loader(by_query, without_dev=True),
    recognise=_recognise("uid", "sparql_wikidata", wikidata=True),
    fields="a list with uid, question, sparql_wikidata",
)

LCQUAD1 = DatasetSpec(
    "LC-QuAD 1",
    "templates over DBpedia, paraphrased",
    "DBpedia",
    "5,000",
    "github: AskNowQA/LC-QuAD",
    "GPL-3.0",
    ("relation_linking/lcquad1/*.json*", "lcquad1/*.json", "LC-QuAD/*-data.json"),
    source="lcquad1",
    loader=OfficialFiles(
        "LC-QuAD 1",
        {"train": ("train-data.json",), "test": ("test-data.json", "lcquad1_test_validated.jsonl")},
        read_lcquad1,
    ).loader(by_query, without_dev=True),
    recognise=_recognise("_id", "corrected_question", "sparql_query", wikidata=False),
    fields="a list with _id, corrected_question, sparql_query",
)
