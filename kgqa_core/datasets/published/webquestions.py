"""WebQuestions: questions asked to a search engine, with the names of their answers in Freebase (Berant et al. 2013).

`webquestions.examples.{train,test}.json` are arrays.  A row has `url`, the page of the topic in Freebase, `utterance`,
the question, and `targetValue`, its answers as `(list (description "Jazmyn Bieber") (description Jaxon))`.  The file
has neither ids nor queries: ids are `WebQTrn-0`, `WebQTest-0` and so on by the place of the row, as WebQSP numbers the
same questions, and the topic is the name that its page has in its address.  There is no dev file: `load` holds out a
tenth of train.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import unquote

from msgspec import Struct, field

from kgqa_core.datasets.files.jsonl import RawQuestion
from kgqa_core.datasets.published.base import DatasetSpec, PublishedFiles, RowSource, folder_files
from kgqa_core.datasets.published.rows import Text, list_rows
from kgqa_core.kg.store import KgStore
from kgqa_core.types import Question

PREFIX = {"train": "WebQTrn", "test": "WebQTest", None: "WebQ"}
"""Split → first part of its ids."""

_DESCRIPTION = re.compile(r'\(description (?:"((?:[^"\\]|\\.)*)"|([^()"]+))\)')
_KEY_CHARACTER = re.compile(r"\$([0-9A-F]{4})")


class WebQuestion(Struct, frozen=True):
    """A row of WebQuestions."""

    text: Text = field(name="utterance")
    target: Text = field(name="targetValue")
    url: Text = Text()


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
    name = _KEY_CHARACTER.sub(lambda code: chr(int(code[1], 16)), unquote(page[1]))
    return name.replace("_", " ").strip() or None


def raw_question(row: WebQuestion, source: RowSource) -> RawQuestion:
    """A row as a raw question.  Raises ValueError."""
    topic = topic_of(row.url)
    return {
        "id": f"{PREFIX[source.split]}-{source.number - 1}",
        "question": row.text,
        "topic_entities": [topic] if topic else [],
        "answers": answers_of(row.target),
    }


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


FILES = PublishedFiles(
    "WebQuestions",
    folder_files("WebQuestions", {split: (f"webquestions.examples.{split}.json",) for split in ("train", "test")}),
    list_rows,
    WebQuestion,
    raw_question,
)

WEBQUESTIONS = DatasetSpec(
    "WebQuestions",
    "questions asked to a search engine",
    "Freebase",
    "5,810",
    "nlp.stanford.edu/software/sempre",
    "CC BY 4.0",
    ("webquestions/*.json", "WebQuestions/*.json"),
    source="webquestions",
    loader=FILES.loader(complete, without_dev=True),
    recognise=lambda head: head.shape == "list" and head.has("utterance", "targetValue"),
    fields="a list with url, utterance, targetValue",
)
