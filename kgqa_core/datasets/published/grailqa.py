"""GrailQA: questions with s-expressions over Freebase, for three levels of generalisation (Gu et al. 2021).

`grailqa_v1.0_{train,dev,test_public}.json` are arrays.  A row has `qid`, `question`, `answer` (`answer_type` `Entity`
or `Value`, `answer_argument`, `entity_name`), `function`, `num_node`, `num_edge`, `graph_query`, `sparql_query`,
`domains`, `level` and `s_expression`; rows of test_public have `qid` and `question` alone, for their answers are not
published.  Such rows are read where questions come unscored; a scored run measures on dev (`questions.test_from: dev`).

Another array of such rows is read by the path of its file; its questions have no split, and get one by topic entity.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from kgqa_core.datasets.files.jsonl import RawQuestion
from kgqa_core.datasets.published.base import DatasetSpec, PublishedFiles, RowSource, folder_files
from kgqa_core.datasets.published.form_fields import form_fields
from kgqa_core.datasets.published.rows import Text, choose, list_rows
from kgqa_core.errors import FormError
from kgqa_core.logic.forms import Form
from kgqa_core.logic.graph_query import from_graph_query
from kgqa_core.logic.parser import parse
from kgqa_core.logic.paths import to_paths

SPLIT_FILES = {
    "train": ("grailqa_v1.0_train.json",),
    "dev": ("grailqa_v1.0_dev.json",),
    "test": ("grailqa_v1.0_test_public.json", "grailqa_v1.0_test.json"),
}

LEVELS = {"i.i.d.": "iid", "iid": "iid", "compositional": "compositional", "zero-shot": "zero-shot"}
"""Level of a row → one of `types.GENERALIZATION`."""


class GrailAnswer(Struct, frozen=True):
    """An answer: a Freebase id with its name, or a value without."""

    kind: Text = field(name="answer_type")
    argument: Text = field(name="answer_argument")
    name: Text | None = field(name="entity_name", default=None)

    def __post_init__(self) -> None:
        choose("answer_type", self.kind, ("Entity", "Value"))

    @property
    def entity(self) -> bool:
        """Whether it is an entity."""
        return self.kind == "Entity"


class GrailQuestion(Struct, frozen=True, kw_only=True):
    """A row of GrailQA.

    answers: None where they are not published.  function: `none`, `count`, `argmax`, `argmin` or a comparison.
    named_topics: of the sample of ToG, key → name.
    """

    id: Text = field(name="qid")
    text: Text = field(name="question")
    answers: tuple[GrailAnswer, ...] | None = field(name="answer", default=None)
    function: Text = Text("none")
    graph_query: dict[str, Any] | None = None
    sparql: Text | None = field(name="sparql_query", default=None)
    s_expression: Text | None = None
    level_name: Text | None = field(name="level", default=None)
    named_topics: Any = field(name="topic_entity", default=None)

    def __post_init__(self) -> None:
        if self.level_name is not None:
            choose("level", self.level_name, LEVELS)
        if self.s_expression is not None and self.answers is None:
            raise ValueError("field 'answer' is missing")

    @property
    def level(self) -> str | None:
        """One of `types.GENERALIZATION`."""
        return LEVELS[self.level_name] if self.level_name is not None else None

    @property
    def topics(self) -> tuple[str, ...]:
        """Entities of the query, in the order of the s-expression."""
        return topics_of(self.s_expression, self.graph_query, self.named_topics)


def form_of(s_expression: str | None, graph_query: Mapping[str, Any] | None) -> Form:
    """The form that a row gives: its s-expression, or where that is absent its graph query.  Raises FormError."""
    if s_expression is not None:
        return parse(s_expression)
    if graph_query is not None:
        return from_graph_query(graph_query)
    raise FormError("neither s_expression nor graph_query is given")


def topics_of(s_expression: str | None, graph_query: Mapping[str, Any] | None, named: Any = None) -> tuple[str, ...]:
    """Keys of the entities of a row, in the order of its form, then of its graph query and of `topic_entity`."""
    keys: list[str] = []
    with contextlib.suppress(FormError):
        keys += [path.topic for path in to_paths(form_of(s_expression, graph_query))]
    nodes = graph_query.get("nodes") if graph_query is not None else None
    for node in nodes if isinstance(nodes, list) else ():
        if isinstance(node, dict) and node.get("node_type") == "entity" and isinstance(node.get("id"), str):
            keys.append(node["id"])
    keys += named if isinstance(named, dict) and not keys else ()
    return tuple(dict.fromkeys(keys))


def raw_question(row: GrailQuestion, source: RowSource) -> RawQuestion | None:
    """A row as a raw question, with paths where its form has them.  Raises ValueError."""
    if row.answers is None and source.split not in ("test", None):
        raise ValueError("field 'answer' is missing")
    if row.answers is None and not source.options.unscored:
        return None
    return answered_question(row)


def answered_question(row: GrailQuestion) -> RawQuestion:
    """A row as a raw question, whether or not its answers are known."""
    answers, topics = row.answers or (), row.topics
    names: dict[str, list[str]] = {}
    for answer in answers:
        if answer.name and answer.name != answer.argument:
            names.setdefault(answer.argument, []).append(answer.name)
    raw: RawQuestion = {
        "id": row.id,
        "question": row.text,
        "topic_entities": list(topics),
        "answers": [answer.argument for answer in answers],
        "answer_aliases": names,
        "generalization": row.level,
        "sparql": row.sparql,
    }
    if row.function == "count":
        raw["answer_type"] = "number"
    elif answers and all(answer.entity for answer in answers):
        raw["answer_type"] = "entities"
    try:
        raw |= form_fields(form_of(row.s_expression, row.graph_query), topics)
    except FormError as fault:
        raw["without_form"] = f"s_expression: {fault}" if row.s_expression else None
    return raw


FILES = PublishedFiles(
    "GrailQA", folder_files("GrailQA", SPLIT_FILES), list_rows, GrailQuestion, raw_question, forms_given=True
)

GRAILQA = DatasetSpec(
    "GrailQA",
    "i.i.d., compositional and zero-shot generalisation, with s-expressions",
    "Freebase",
    "64,331",
    "dki-lab.github.io/GrailQA",
    "see its page",
    ("grailqa/*.json", "grailqa/tog/*.json", "GrailQA*/grailqa_*.json", "grailqa_*.json"),
    source="grailqa",
    loader=FILES.loader(),
    recognise=lambda head: head.shape == "list" and head.has("qid", "question") and not head.has("qType"),
    fields="a list with qid, question, answer, s_expression",
)
