"""WebQuestions: questions asked to a search engine, with the names of their answers in Freebase (Berant et al. 2013).

`webquestions.examples.{train,test}.json` are arrays.  A row has `url`, the page of the topic in Freebase, `utterance`,
the question, and `targetValue`, its answers as `(list (description "Jazmyn Bieber") (description Jaxon))`.  The file
has neither ids nor queries: ids are `WebQTrn-0`, `WebQTest-0` and so on by the place of the row, as WebQSP numbers the
same questions, and the topic is the name that its page has in its address.  There is no dev file: `load` holds out a
tenth of train.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from kgqa_core.config import QuestionSource
from kgqa_core.datasets.files.jsonl import RawQuestion, canonical
from kgqa_core.datasets.published.base import DatasetSpec, Reject, path_of
from kgqa_core.datasets.published.documents import read_list
from kgqa_core.datasets.published.json_rows import (
    SplitFiles,
    need_text,
    optional_text,
    read_each,
    split_files,
    split_loader,
)
from kgqa_core.kg.store import KgStore
from kgqa_core.types import Question

NAMES = {split: (f"webquestions.examples.{split}.json",) for split in ("train", "test")}

PREFIX = {"train": "WebQTrn", "test": "WebQTest", None: "WebQ"}
"""Split → first part of its ids."""

_DESCRIPTION = re.compile(r'\(description (?:"((?:[^"\\]|\\.)*)"|([^()"]+))\)')
_KEY_CHARACTER = re.compile(r"\$([0-9A-F]{4})")


def question_files(path: Path) -> SplitFiles:
    """(split, file) of what is there.  Raises QuestionFileError when it is not WebQuestions."""
    return split_files(path, NAMES, "WebQuestions")


def answers_of(target: str) -> list[str]:
    """The names that a `targetValue` lists.  Raises ValueError for anything else.

    >>> answers_of('(list (description "Jazmyn Bieber") (description Stay))')
    ['Jazmyn Bieber', 'Stay']
    """
    inner = re.fullmatch(r"\(list\s*(.*)\)", target.strip(), re.DOTALL)
    names = _DESCRIPTION.findall(inner[1]) if inner else []
    if inner is None or _DESCRIPTION.sub("", inner[1]).strip():
        raise ValueError(f"field 'targetValue' must be `(list (description NAME) …)`, but it is {target!r}")
    return [re.sub(r"\\(.)", r"\1", quoted) if quoted else bare.strip() for quoted, bare in names]


def topic_of(url: str) -> str | None:
    """The name of the topic in the address of its page, as Freebase's keys write it; None for another address.

    >>> topic_of("http://www.freebase.com/view/en/justin_bieber")
    'justin bieber'
    >>> topic_of("http://www.freebase.com/view/en/st_john$0027s")
    "st john's"
    """
    page = re.search(r"/view/(?:en/)?([^/?#]+)/?$", url)
    if page is None:
        return None
    name = _KEY_CHARACTER.sub(lambda found: chr(int(found[1], 16)), unquote(page[1]))
    return name.replace("_", " ").strip() or None


def read(options: QuestionSource) -> Iterator[RawQuestion | Reject]:
    """Canonical raw questions.  Raises QuestionFileError where a file is no array."""
    for split, file in question_files(path_of(options)):
        rows = [
            {**value, "id": f"{PREFIX[split]}-{place}"} if isinstance(value, dict) else value
            for place, value in enumerate(read_list(file))
        ]
        yield from read_each(file, rows, partial(_row, split=split), "WebQuestions")


def _row(value: Mapping[str, Any], split: str | None) -> RawQuestion:
    topic = topic_of(optional_text(value, "url") or "")
    text = need_text(value, "utterance", "the question")
    answers = answers_of(need_text(value, "targetValue", "the answers, `(list (description NAME) …)`"))
    return canonical(
        {
            "id": value["id"],
            "question": text,
            "topic_entities": [topic] if topic else [],
            "answers": answers,
            "split": split,
        }
    )


def complete(questions: Sequence[Question], store: KgStore) -> list[Question]:
    """The questions with topics by label or alias without regard to case, for addresses are written small.

    Those that have a topic already stay as they are.
    """
    wanted = sorted({question.topic_keys[0] for question in questions if _without_topic(question)})
    rows = store.connection.execute(
        """
        WITH wanted AS (SELECT unnest(?::VARCHAR[]) AS name),
             named AS (SELECT lower(label) AS name, id FROM labels
                       UNION ALL SELECT lower(alias), id FROM aliases)
        SELECT name, list(DISTINCT id ORDER BY id) FROM wanted JOIN named USING (name) GROUP BY name""",
        [wanted],
    ).fetchall()
    entities = {name: tuple(ids) for name, ids in rows}
    return [
        _with_topics(question, entities.get(question.topic_keys[0], ())) if _without_topic(question) else question
        for question in questions
    ]


def _without_topic(question: Question) -> bool:
    return bool(question.topic_keys) and not question.topic_entities


def _with_topics(question: Question, topics: tuple[int, ...]) -> Question:
    if not topics:
        return question
    reason = None
    if not question.answer_keys:
        reason = "no gold answer is given"
    elif question.answer_type == "entities" and not question.answers:
        reason = f"answer '{question.answer_keys[0]}' is not in the graph"
    return replace(question, topic_entities=topics, unlinkable=reason)


WEBQUESTIONS = DatasetSpec(
    "WebQuestions",
    "questions asked to a search engine",
    "Freebase",
    "5,810",
    "nlp.stanford.edu/software/sempre",
    "CC BY 4.0",
    ("webquestions/*.json", "WebQuestions/*.json"),
    source="webquestions",
    loader=split_loader(question_files, read, complete, without_dev=True),
    recognise=lambda head: head.shape == "list" and head.has("utterance", "targetValue"),
    fields="a list with url, utterance, targetValue",
)
