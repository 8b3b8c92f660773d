"""SimpleQuestions mapped to Wikidata: one fact a question (Bordes et al. 2015, Diefenbach et al. 2017).

A line of `annotated_wd_data_{train,valid,test}_answerable.txt` is `topic<TAB>relation<TAB>object<TAB>question`; a
relation `P19` is followed forward, `R19` against its direction (`<inv>-P19`).

The annotation names one object where the graph often holds many (of 19,481 training questions about a quarter ask
"who was born in …").  The graph of these questions is closed, so every object that the relation leads to from the topic
is gold: `complete` adds them.  The annotated one stays first in `answer_keys`, so that scores against it alone can be
distinguished.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import polars as pl
from msgspec import Struct

from kgqa_core.datasets.files.jsonl import RawQuestion
from kgqa_core.datasets.published.base import DatasetSpec, PublishedFiles, RowSource, folder_files
from kgqa_core.datasets.published.documents import FileHead
from kgqa_core.datasets.published.rows import tabbed_rows
from kgqa_core.kg.sql import registered
from kgqa_core.kg.store import KgStore
from kgqa_core.types import INVERSE, Question

SPLIT_FILES = {
    "train": ("annotated_wd_data_train_answerable.txt",),
    "dev": ("annotated_wd_data_valid_answerable.txt",),
    "test": ("annotated_wd_data_test_answerable.txt",),
}


class SimpleQuestion(Struct, frozen=True):
    """A line of SimpleQuestions, over Wikidata or Freebase."""

    line: int
    topic: str
    relation: str
    object: str
    question: str


def relation_key(text: str) -> str:
    """`P19` for `P19`, `<inv>-P19` for `R19`.  Raises ValueError for anything else."""
    if len(text) < 2 or text[0] not in "PR" or not text[1:].isascii() or not text[1:].isdigit():
        raise ValueError(f"relation {text!r} is neither P and a number nor R and a number")
    return ("" if text[0] == "P" else INVERSE) + "P" + text[1:]


def raw_question(row: SimpleQuestion, source: RowSource) -> RawQuestion:
    """A line as a raw question.  Raises ValueError."""
    name = f"sq-{source.split}-{row.line:05d}" if source.split else f"sq-{row.line:05d}"
    return fact_question(name, row.question, row.topic, relation_key(row.relation), row.object)


def fact_question(name: str, text: str, topic: str, relation: str, answer: str) -> RawQuestion:
    """The raw question of one fact."""
    return {
        "id": name,
        "question": text,
        "topic_entities": [topic],
        "answers": [answer],
        "answer_type": "entities",
        "relation_path": [relation],
        "complexity": "generic",
        "hops": 1,
    }


def complete(questions: Sequence[Question], store: KgStore) -> list[Question]:
    """The questions with every entity that their relation leads to from their topic as an answer.

    Added answers follow the annotated one, in order of id.  A question without topic or relation in the graph stays
    as it is.
    """
    queries = pl.DataFrame(
        [
            (number, question.topic_entities[0], path[0].removeprefix(INVERSE), path[0].startswith(INVERSE))
            for number, question in enumerate(questions)
            for path in question.relation_paths[:1]
            if len(path) == 1 and question.topic_entities
        ],
        schema={"question": pl.Int64, "topic": pl.Int64, "relation": pl.String, "inverse": pl.Boolean},
        orient="row",
    )
    with registered(store.connection, queries=queries):
        # A topic and relation that many questions share are looked up once.
        rows = store.connection.execute(
            """
            WITH starts AS (SELECT DISTINCT topic, r.id AS relation, queries.relation AS key, inverse
                            FROM queries JOIN relations r ON r.key = queries.relation),
                 ends AS (SELECT s.topic, s.key, s.inverse, t.tail AS entity FROM starts s
                          JOIN triples t ON t.head = s.topic AND t.relation = s.relation WHERE NOT s.inverse
                          UNION SELECT s.topic, s.key, s.inverse, t.head FROM starts s
                          JOIN triples t ON t.tail = s.topic AND t.relation = s.relation WHERE s.inverse)
            SELECT ends.topic, ends.key, ends.inverse, list(ends.entity ORDER BY ends.entity) FROM ends
            GROUP BY ALL"""
        ).fetchall()
    reached = {(topic, key, inverse): tuple(entities) for topic, key, inverse, entities in rows}
    every = sorted({entity for entities in reached.values() for entity in entities})
    keys, names = store.entity_keys(every), store.surface_forms(every)
    forms = {entity: tuple(names[entity]) for entity in every}
    completed = list(questions)
    for number, topic, key, inverse in queries.iter_rows():
        question = questions[number]
        more = [entity for entity in reached.get((topic, key, inverse), ()) if entity not in question.answers]
        completed[number] = replace(
            question,
            answers=tuple(sorted([*question.answers, *more])),
            answer_keys=(*question.answer_keys, *(keys[entity] for entity in more)),
            answer_names=(*question.answer_names, *(forms[entity] for entity in more)),
        )
    return completed


def _recognise(head: FileHead) -> bool:
    columns = head.columns if head.shape == "table" and len(head.columns) == 4 else ("",) * 4
    return all(re.fullmatch(form, one) for form, one in zip((r"Q\d+", r"[PR]\d+"), columns, strict=False))


FILES = PublishedFiles(
    "SimpleQuestions",
    folder_files("SimpleQuestions", SPLIT_FILES),
    tabbed_rows("topic", "relation", "object", "question"),
    SimpleQuestion,
    raw_question,
    strict=True,
)

SIMPLEQUESTIONS = DatasetSpec(
    "SimpleQuestions-Wikidata",
    "one fact each, mapped from Freebase",
    "Wikidata",
    "27,924 answerable",
    "github: askplatypus/wikidata-simplequestions",
    "CC BY 3.0",
    ("simplequestions_wikidata/annotated_wd_data_*.txt", "annotated_wd_data_*.txt"),
    source="simplequestions",
    loader=FILES.loader(complete),
    recognise=_recognise,
    fields="lines of subject, relation, object as ids of Wikidata, and question",
)
