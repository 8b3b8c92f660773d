"""Questions as semantic parsers read them: their text, the entities found in it, and the gold form to learn from.

One Parquet file, a row a question, sorted by id; whoever makes the artifact (`of_questions` here, or a benchmark above)
says which entities a parser starts from and which form is gold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core.datasets.derived.gold_forms import FormCandidate, candidates
from kgqa_core.datasets.files.masking import is_mentioned, key_forms
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.errors import ArtifactError, FormError, FormTimeout
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.forms import Count, Form, Holds
from kgqa_core.logic.memory import MemoryGraph
from kgqa_core.monitor import Monitor
from kgqa_core.store.tables import read_frame
from kgqa_core.types import Question
from kgqa_core.workspace import Workspace

FILE = "examples.parquet"

_TOPIC = pl.Struct({"key": pl.String, "mention": pl.String, "rho": pl.Float64, "number": pl.Int32})

SCHEMA: dict[str, Any] = {
    "id": pl.String, "text": pl.String, "split": pl.String, "language": pl.String, "topics": pl.List(_TOPIC),
    "form": pl.String, "known": pl.Boolean,
}  # fmt: skip
"""Columns of examples.parquet."""


@dataclass(frozen=True, slots=True)
class Topic:
    """An entity that a question may be about.

    key: in the graph.  mention: the words that name it in the text, or its name where they are not known.  rho: the
    linker's confidence in [0, 1], 1 for the annotation of the question file.  number: of the mention; candidates of
    one mention share it.
    """

    key: str
    mention: str
    rho: float = 1.0
    number: int = 0


@dataclass(frozen=True, slots=True)
class ParseExample:
    """A question for a semantic parser.

    form: the gold form, as text, in the graph that the parser works on; None where there is none or it is not known.
    known: whether `form` is certain: a None that is known means that this graph has no form for the question (NK); a
    question with one that is not known is not learnt from.
    """

    id: str
    text: str
    split: str = "test"
    language: str = "en"
    topics: tuple[Topic, ...] = ()
    form: str | None = None
    known: bool = False


def write_examples(folder: Path, examples: Iterable[ParseExample]) -> Path:
    """Writes `examples.parquet` into `folder`, rows sorted by id, and returns its path."""
    rows = [asdict(example) for example in sorted(examples, key=lambda one: one.id)]
    path = folder / FILE
    pl.DataFrame(rows, schema=SCHEMA, orient="row").write_parquet(path, compression="zstd")
    return path


def read_examples(folder: Path) -> list[ParseExample]:
    """The questions of an `examples` artifact, in order of id.  Raises ArtifactError."""
    path = folder / FILE
    frame = read_frame(path)
    if dict(frame.schema) != SCHEMA:
        raise ArtifactError(f"{path} has other columns than this version writes; delete its folder and run again")
    return [
        ParseExample(**{**row, "topics": tuple(Topic(**topic) for topic in row["topics"])})
        for row in frame.iter_rows(named=True)
    ]


LINKS = "links.parquet"
WRONG = "no form leads to an annotated answer"
NOT_COMPUTED = "no form of its type computes the annotated answer"
PROGRESS_EVERY = 500
"""Questions between two words on the progress."""


def examples(workspace: Workspace, *, kg: Path, questions: Path, linked: Path | None = None) -> dict[str, Any]:
    """Writes examples.parquet and returns counts.

    linked: the same questions with linked topics, whose mentions then are the topics, each with every candidate; gold
    forms always start from the annotated ones.  A question without a gold form has `known` False.
    Raises ArtifactError when the questions or their links are damaged.
    """
    selected = read_questions(questions)
    with KgStore.open(kg) as store:
        graph = MemoryGraph(store)
        used = sorted({entity for question in selected for entity in question.topic_entities})
        keys = store.entity_keys(used)
        gold, left_out = _gold_forms(selected, graph, keys, workspace.monitor)
        if linked is None:
            names, labels = store.surface_forms(used), store.names(used)
            topics = {question.id: gold_topics(question, keys, names, labels) for question in selected}
        else:
            topics = linked_topics(linked, store)
    write_examples(
        workspace.out,
        (
            ParseExample(
                id=question.id,
                text=question.text,
                split=question.split,
                language=question.language,
                topics=topics.get(question.id, ()),
                form=gold.get(question.id),
                known=question.id in gold,
            )
            for question in selected
        ),
    )
    return {
        "questions": len(selected),
        "with_form": len(gold),
        "without_form": dict(sorted(Counter(reason.partition(":")[0] for reason in left_out.values()).items())),
        "left_out": dict(sorted(left_out.items())[:20]),
        "with_topics": sum(bool(topics.get(question.id)) for question in selected),
        "by_split": dict(sorted(Counter(question.split for question in selected if question.id in gold).items())),
    }


def gold_topics(
    question: Question, keys: Mapping[int, str], names: Mapping[int, Sequence[str]], labels: Mapping[int, str]
) -> tuple[Topic, ...]:
    """The annotated topics, each by the longest of its names that stands in the text, or by its label.

    keys, names, labels: of the topic entities, by id.
    """
    numbers = question.topic_mentions or tuple(range(len(question.topic_entities)))
    weights = question.topic_weights or (1.0,) * len(question.topic_entities)
    paired = len(question.topic_keys) == len(question.topic_entities)
    topics = []
    for index, (entity, rho, number) in enumerate(zip(question.topic_entities, weights, numbers, strict=True)):
        if entity not in keys:
            continue
        forms = {*names.get(entity, ()), *(key_forms(question.topic_keys[index]) if paired else ())}
        mentioned = [form for form in forms if form.strip() and is_mentioned(question.text, form)]
        best = max(mentioned, key=lambda form: (len(form), form in question.text, form), default="")
        topics.append(Topic(keys[entity], best or labels.get(entity, keys[entity]), rho, number))
    return tuple(topics)


def linked_topics(linked: Path, store: KgStore) -> dict[str, tuple[Topic, ...]]:
    """Topics by question id: every mention in the order of the text, with all its candidates, best first.

    Mentions that the linker did not select are among them: a word for a type (`influenza`) may be the entity of a form.
    Raises ArtifactError when the links are damaged.
    """
    indices = ["question", "turn", "start", "end"]
    rows = read_frame(linked / LINKS, [*indices, "rank", "entity", "mention", "rho"]).sort(*indices, "rank")
    keys = store.entity_keys(rows["entity"].unique().to_list())
    by_question: dict[str, list[Topic]] = {}
    for (question, *_), mention_rows in rows.group_by(indices, maintain_order=True):
        topics = by_question.setdefault(str(question), [])
        number = topics[-1].number + 1 if topics else 0
        for entity, mention, rho in mention_rows.select("entity", "mention", "rho").iter_rows():
            if entity in keys:
                topics.append(Topic(keys[entity], mention, rho, number))
    return {question: tuple(topics) for question, topics in by_question.items()}


def _gold_forms(
    questions: Sequence[Question], graph: MemoryGraph, keys: Mapping[int, str], monitor: Monitor
) -> tuple[dict[str, str], dict[str, str]]:
    """Gold form by question id, and of the others the reason why there is none."""
    graph.know(keys.values())
    gold, left_out = {}, {}
    for number, question in enumerate(questions, start=1):
        try:
            if question.unlinkable:
                raise FormError("cannot be linked: " + question.unlinkable.partition("(")[0].strip())
            topics = [keys[i] for i in question.topic_entities if i in keys]
            gold[question.id] = str(_best(question, candidates(question, topics), graph))
        except (FormError, FormTimeout) as fault:
            left_out[question.id] = str(fault)
        if number % PROGRESS_EVERY == 0 or number == len(questions):
            monitor.progress(number, len(questions), "gold forms")
    return gold, left_out


def _best(question: Question, made: Sequence[FormCandidate], graph: MemoryGraph) -> Form:
    best, form = 0.0, None
    fault = NOT_COMPUTED if all(candidate.exact for candidate in made) else WRONG
    for candidate in made:
        result = graph.execute(candidate.form)
        like = likeness(question, candidate.form, result.nodes, result.value)
        if like is None:
            like = float(not question.answer_keys)
        if like == 1.0:
            return candidate.form
        if like > best and not candidate.exact:
            best, form = like, candidate.form
    if form is None:
        raise FormError(fault)
    return form


def likeness(question: Question, form: Form, nodes: Sequence[int], value: float | bool | None) -> float | None:
    """F1 of a form's result and the annotated answer, in [0, 1]; None where no answer is annotated in the graph."""
    if isinstance(form, (Count, Holds)):
        if not question.answer_keys:
            return None
        annotated = question.answer_keys[0].casefold()
        if isinstance(form, Holds):
            return float(annotated in (("yes", "true") if value else ("no", "false")))
        return float(annotated.replace(",", "").removesuffix(".0") == str(value))
    if not question.answers:
        return None
    common = len(set(nodes) & set(question.answers))
    return 2 * common / (len(nodes) + len(question.answers)) if common else 0.0
