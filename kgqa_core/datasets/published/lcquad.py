"""LC-QuAD 1 and 2: questions written from templates and paraphrased, with SPARQL.

LC-QuAD 1 (Trivedi et al. 2017), `{train,test}-data.json`: a list with _id, corrected_question,
intermediary_question, sparql_query and sparql_template_id, over DBpedia.  LC-QuAD 2 (Dubey et al. 2019),
`{train,test}.json`: a list with uid, question, paraphrased_question, NNQT_question, sparql_wikidata,
sparql_dbpedia18, template and subgraph.  Both are also read from the JSON Lines of IBM's relation linking (q_id, text,
query).

No file has answers: they are the result of the query.  `gold_answers.by_query` runs its form, or itself, on the graph.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct, field

from kgqa_core.datasets.derived.gold_answers import by_query
from kgqa_core.datasets.files.jsonl import RawQuestion
from kgqa_core.datasets.published.base import DatasetSpec, PublishedFiles, RowSource, folder_files
from kgqa_core.datasets.published.documents import FileHead
from kgqa_core.datasets.published.iris import entities_of_sparql
from kgqa_core.datasets.published.rows import Text, list_or_line_rows
from kgqa_core.logic.sparql_dialect import standard_count


class LinkedQuestion(Struct, frozen=True):
    """A line of IBM's relation linking; the rows of LC-QuAD have other fields instead."""

    id: Text | None = field(name="q_id", default=None)
    text: Text | None = None
    query: Text | None = None


class LcQuad2Question(LinkedQuestion, frozen=True):
    """A row of LC-QuAD 2."""

    uid: Text | None = None
    paraphrase: Text | None = field(name="paraphrased_question", default=None)
    question: Text | None = None
    draft: Text | None = field(name="NNQT_question", default=None)
    sparql: Text | None = field(name="sparql_wikidata", default=None)


class LcQuad1Question(LinkedQuestion, frozen=True):
    """A row of LC-QuAD 1."""

    uid: Text | None = field(name="_id", default=None)
    question: Text | None = field(name="corrected_question", default=None)
    sparql: Text | None = field(name="sparql_query", default=None)


def raw_question(row: LcQuad2Question | LcQuad1Question, source: RowSource) -> RawQuestion:
    """A row as a raw question, with the paraphrase as text where there is one.  Raises ValueError."""
    texts = [row.text, row.question]
    if isinstance(row, LcQuad2Question):
        texts = [row.text, row.paraphrase, row.question, row.draft]
    text = next((text for text in texts if text is not None and text.casefold() not in ("n/a", "na")), None)
    identity, query = row.uid or row.id, row.sparql or row.query
    for what, value in (("id", identity), ("text", text), ("query", query)):
        if value is None:
            raise ValueError(f"it has no {what} in any of the fields of LC-QuAD")
    sparql = standard_count(query or "")
    return {
        "id": identity,
        "question": text,
        "topic_entities": entities_of_sparql(sparql),
        "answers": [],
        "sparql": sparql,
    }


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
    loader=PublishedFiles(
        "LC-QuAD 2",
        folder_files(
            "LC-QuAD 2",
            {
                "train": ("train.json", "dataset/train.json"),
                "test": ("test.json", "dataset/test.json", "**/lcquad2_test_validated.jsonl"),
            },
        ),
        list_or_line_rows,
        LcQuad2Question,
        raw_question,
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
    loader=PublishedFiles(
        "LC-QuAD 1",
        folder_files(
            "LC-QuAD 1",
            {"train": ("train-data.json",), "test": ("test-data.json", "lcquad1_test_validated.jsonl")},
        ),
        list_or_line_rows,
        LcQuad1Question,
        raw_question,
    ).loader(by_query, without_dev=True),
    recognise=_recognise("_id", "corrected_question", "sparql_query", wikidata=False),
    fields="a list with _id, corrected_question, sparql_query",
)
