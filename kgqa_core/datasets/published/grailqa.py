"""GrailQA: questions with s-expressions over Freebase, for three levels of generalisation (Gu et al. 2021).

`grailqa_v1.0_{train,dev,test_public}.json` are arrays.  A row has `qid`, `question`, `answer` (`answer_type` `Entity`
or `Value`, `answer_argument`, `entity_name`), `function`, `num_node`, `num_edge`, `graph_query`, `sparql_query`,
`domains`, `level` and `s_expression`; rows of test_public have `qid` and `question` alone, for their answers are not
published.  Such rows are read where questions come unscored; a scored run measures on dev (`questions.test_from: dev`).

Another array of such rows is read by the path of its file; its questions have no split, and get one by topic entity.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from kgqa_core.config import QuestionSource
from kgqa_core.datasets.files.jsonl import RawQuestion, canonical
from kgqa_core.datasets.published.base import DatasetSpec, Reject
from kgqa_core.datasets.published.documents import read_list
from kgqa_core.datasets.published.form_fields import form_fields
from kgqa_core.datasets.published.json_rows import (
    SplitFiles,
    need_text,
    objects,
    optional_text,
    read_each,
    read_published,
    split_files,
    split_loader,
)
from kgqa_core.errors import FormError
from kgqa_core.logic.forms import Form
from kgqa_core.logic.graph_query import from_graph_query
from kgqa_core.logic.parser import parse
from kgqa_core.logic.paths import to_paths

NAMES = {
    "train": ("grailqa_v1.0_train.json",),
    "dev": ("grailqa_v1.0_dev.json",),
    "test": ("grailqa_v1.0_test_public.json", "grailqa_v1.0_test.json"),
}

LEVELS = {"i.i.d.": "iid", "iid": "iid", "compositional": "compositional", "zero-shot": "zero-shot"}


@dataclass(frozen=True, slots=True)
class GrailAnswer:
    """An answer: a Freebase id with its name, or a value without."""

    argument: str
    entity: bool
    name: str | None


@dataclass(frozen=True, slots=True)
class GrailQuestion:
    """A row of GrailQA.

    split: None where the file does not say it.  answers: None where they are not published.  function: `none`, `count`,
    `argmax`, `argmin` or a comparison.  level: one of `types.GENERALIZATION`.  topics: entities of the query, in the
    order of the s-expression.
    """

    id: str
    text: str
    split: str | None
    answers: tuple[GrailAnswer, ...] | None
    function: str
    nodes: int | None
    edges: int | None
    graph_query: Mapping[str, Any] | None
    sparql: str | None
    s_expression: str | None
    domains: tuple[str, ...]
    level: str | None
    topics: tuple[str, ...]


def question_files(path: Path) -> SplitFiles:
    """(split, file) of what is there.  Raises QuestionFileError when it is not GrailQA."""
    return split_files(path, NAMES, "GrailQA")


def read_records(path: Path) -> Iterator[GrailQuestion | Reject]:
    """The rows of a folder or file, in file order.  Raises QuestionFileError where a file is no array."""
    for split, file in question_files(path):
        yield from read_each(file, read_list(file), partial(read_row, split=split), "GrailQA")


def read_row(value: Mapping[str, Any], split: str | None) -> GrailQuestion:
    """One row.  Raises ValueError that names the field."""
    name = need_text(value, "qid", "the number of the question")
    text = need_text(value, "question", "its text")
    answers = None
    if value.get("answer") is not None or split not in ("test", None) or value.get("s_expression") is not None:
        answers = read_answers(value, "answer")
    level = optional_text(value, "level")
    if level is not None and level not in LEVELS:
        raise ValueError(f"field 'level' must be one of {', '.join(LEVELS)}, but it is {level!r}")
    graph_query = value.get("graph_query")
    if graph_query is not None and not isinstance(graph_query, dict):
        raise ValueError("field 'graph_query' must be an object with nodes and edges")
    s_expression = optional_text(value, "s_expression")
    domains = value.get("domains") or ()
    return GrailQuestion(
        name,
        text,
        split,
        answers,
        optional_text(value, "function") or "none",
        _number(value, "num_node"),
        _number(value, "num_edge"),
        graph_query,
        optional_text(value, "sparql_query"),
        s_expression,
        tuple(map(str, domains)) if isinstance(domains, list) else (),
        LEVELS[level] if level else None,
        topics_of(s_expression, graph_query, value.get("topic_entity")),
    )


def read_answers(value: Mapping[str, Any], field: str) -> tuple[GrailAnswer, ...]:
    """The answers of a row.  Raises ValueError."""
    found = []
    for answer in objects(value, field, "answers, objects with answer_type, answer_argument and entity_name"):
        kind = need_text(answer, "answer_type", "`Entity` or `Value`")
        if kind not in ("Entity", "Value"):
            raise ValueError(f"field '{field}': answer_type must be `Entity` or `Value`, but it is {kind!r}")
        argument = need_text(answer, "answer_argument", "a Freebase id or a value")
        found.append(GrailAnswer(argument, kind == "Entity", optional_text(answer, "entity_name")))
    return tuple(found)


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


def raw_question(record: GrailQuestion) -> RawQuestion:
    """A row as a canonical raw question, with paths where its form has them.  Raises ValueError."""
    answers = record.answers or ()
    names: dict[str, list[str]] = {}
    for answer in answers:
        if answer.name and answer.name != answer.argument:
            names.setdefault(answer.argument, []).append(answer.name)
    row: dict[str, Any] = {
        "id": record.id,
        "question": record.text,
        "topic_entities": list(record.topics),
        "answers": [answer.argument for answer in answers],
        "answer_aliases": names,
        "split": record.split,
        "generalization": record.level,
        "sparql": record.sparql,
    }
    if record.function == "count":
        row["answer_type"] = "number"
    elif answers and all(answer.entity for answer in answers):
        row["answer_type"] = "entities"
    without_form = None
    try:
        form = form_of(record.s_expression, record.graph_query)
    except FormError as fault:
        without_form = f"s_expression: {fault}" if record.s_expression else None
        row.pop("sparql")  # read again, it would make a form that the data set does not give
    else:
        row |= form_fields(form, record.topics)
    found = canonical(row)
    if record.sparql is not None:
        found["sparql"] = record.sparql
    if without_form is not None:
        found["without_form"] = without_form
    return found


def _number(value: Mapping[str, Any], name: str) -> int | None:
    found = value.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def read(options: QuestionSource) -> Iterator[RawQuestion | Reject]:
    """Canonical raw questions; rows without published answers only where questions are unscored."""
    return read_published(options, question_files, read_row, raw_question, "GrailQA")


GRAILQA = DatasetSpec(
    "GrailQA",
    "i.i.d., compositional and zero-shot generalisation, with s-expressions",
    "Freebase",
    "64,331",
    "dki-lab.github.io/GrailQA",
    "see its page",
    ("grailqa/*.json", "grailqa/tog/*.json", "GrailQA*/grailqa_*.json", "grailqa_*.json"),
    source="grailqa",
    loader=split_loader(question_files, read),
    recognise=lambda head: head.shape == "list" and head.has("qid", "question") and not head.has("qType"),
    fields="a list with qid, question, answer, s_expression",
)
