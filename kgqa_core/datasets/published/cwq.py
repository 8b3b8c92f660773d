"""ComplexWebQuestions: compositions and conjunctions made of WebQSP's queries (Talmor and Berant 2018).

`ComplexWebQuestions_{train,dev,test}.json` are arrays.  A row has `ID`, `question`, `machine_question`, `sparql`,
`compositionality_type`, `webqsp_ID`, `webqsp_question` and `answers`, objects with `answer`, `answer_id` and `aliases`.
The first release of test has no answers; its rows are read only where questions come unscored.

Topics are the entities of the query, in its order.  The form is made of the query where the fragment of forms allows
(`logic.sparql`), and the relation paths are those of the form.  Some answers are values, without an id; some have no
name.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct, field

from kgqa_core.datasets.files.jsonl import RawQuestion
from kgqa_core.datasets.published.base import DatasetSpec, PublishedFiles, RowSource, folder_files
from kgqa_core.datasets.published.form_fields import form_fields
from kgqa_core.datasets.published.iris import entities_of_sparql
from kgqa_core.datasets.published.rows import Text, choose, list_rows
from kgqa_core.errors import FormError
from kgqa_core.logic.paths import to_paths
from kgqa_core.types import SPLITS

COMPLEXITY = {
    "composition": "multi-hop",
    "conjunction": "intersection",
    "superlative": "superlative",
    "comparative": "comparative",
}
"""Type of composition → type of `types.COMPLEXITY_TYPES`."""


class ComplexAnswer(Struct, frozen=True):
    """An answer: its Freebase id, or None of a value; its name, or None; further names."""

    id: Text | None = field(name="answer_id", default=None)
    name: Text | None = field(name="answer", default=None)
    aliases: tuple[Text, ...] = ()

    def __post_init__(self) -> None:
        if self.id is None and self.name is None:
            raise ValueError("it has neither answer_id nor answer; give it one")

    @property
    def key(self) -> str:
        """The id, or else the value."""
        return self.id or self.name or ""

    @property
    def is_entity(self) -> bool:
        """Whether it is an entity of Freebase."""
        return self.id is not None and re.match(r"[mg]\.", self.id) is not None


class ComplexQuestion(Struct, frozen=True):
    """A row of ComplexWebQuestions.  answers: None where they are not published."""

    id: Text = field(name="ID")
    text: Text = field(name="question")
    answers: tuple[ComplexAnswer, ...] | None = None
    sparql: Text | None = None
    composition: Text | None = field(name="compositionality_type", default=None)
    webqsp_id: Text | None = field(name="webqsp_ID", default=None)
    webqsp_question: Text | None = None
    machine_question: Text | None = None

    def __post_init__(self) -> None:
        if self.composition is not None:
            choose("compositionality_type", self.composition, COMPLEXITY)


def raw_question(row: ComplexQuestion, source: RowSource) -> RawQuestion | None:
    """A row as a raw question.  Raises ValueError."""
    if row.answers is None and source.split not in ("test", None):
        raise ValueError("field 'answers' is missing")
    if row.answers is None and not source.options.unscored:
        return None
    answers = row.answers or ()
    names: dict[str, dict[str, None]] = {}
    for answer in answers:
        others = (name for name in (answer.name, *answer.aliases) if name and name != answer.key)
        names.setdefault(answer.key, {}).update(dict.fromkeys(others))
    raw: RawQuestion = {
        "id": row.id,
        "question": row.text,
        "topic_entities": entities_of_sparql(row.sparql or ""),
        "answers": [answer.key for answer in answers],
        "answer_type": "entities" if answers and all(answer.is_entity for answer in answers) else None,
        "answer_aliases": {key: list(aliases) for key, aliases in names.items()},
        "sparql": row.sparql,
    }
    if row.sparql is not None:
        try:
            raw |= _of_query(row.sparql, raw["topic_entities"])
        except (FormError, RecursionError) as fault:
            raw["without_form"] = f"sparql: {fault}"
    if row.composition is not None:
        raw["complexity"] = COMPLEXITY[row.composition]
    return raw


def _of_query(sparql: str, entities: list[str]) -> dict[str, Any]:
    from kgqa_core.logic.sparql import from_sparql  # rdflib takes 0.2 s to import

    form = from_sparql(sparql)
    topics = list(dict.fromkeys([*(path.topic for path in to_paths(form)), *entities]))
    return {"topic_entities": topics, **form_fields(form, topics)}


FILES = PublishedFiles(
    "ComplexWebQuestions",
    folder_files("ComplexWebQuestions", {split: (f"ComplexWebQuestions_{split}.json",) for split in SPLITS}),
    list_rows,
    ComplexQuestion,
    raw_question,
    forms_given=True,
)

CWQ = DatasetSpec(
    "CWQ",
    "ComplexWebQuestions: compositions, conjunctions, superlatives, comparatives",
    "Freebase",
    "34,689",
    "tau-nlp.sites.tau.ac.il/compwebq",
    "see its page",
    ("cwq/ComplexWebQuestions_*.json", "ComplexWebQuestions_*.json"),
    source="cwq",
    loader=FILES.loader(),
    recognise=lambda head: head.shape == "list" and head.has("ID", "question", "webqsp_ID"),
    fields="a list with ID, question, sparql, answers, webqsp_ID",
)
