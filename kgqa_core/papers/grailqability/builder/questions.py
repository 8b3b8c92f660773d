"""Questions of an answerability benchmark as its modified graph has them, to be linked, parsed and answered.

Retrievers learn from the answerable training questions alone, which have answers and relation paths; unanswerable ones
have neither, and only the abstainer learns from them.

Examples are for a semantic parser over the modified graph.  Trained on `A`, it sees answerable questions only; on
`A+U` it also sees that some have no form (NK), and the forms of those that find nothing (NA).  Test questions come
without forms, so that nothing can look at them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from kgqa_core.abstention.labels import ENTITY, FACT, RELATION, AnswerabilityLabel, write_labels
from kgqa_core.config import Training
from kgqa_core.datasets.derived.splits import leakage, write_leakage
from kgqa_core.datasets.files.jsonl import RawQuestion, canonical
from kgqa_core.datasets.files.link import link
from kgqa_core.datasets.files.question import read_questions, write_questions
from kgqa_core.errors import FormError, InputError
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.forms import elements
from kgqa_core.logic.parser import parse
from kgqa_core.logic.paths import to_paths
from kgqa_core.papers.grailqability.builder.records import TYPE, BenchmarkQuestion, IdealRecord, read_benchmark
from kgqa_core.papers.grailqability.parsing.examples import (
    ParseExample,
    Topic,
    gold_topics,
    linked_topics,
    write_examples,
)
from kgqa_core.types import SPLITS, Question
from kgqa_core.workspace import Workspace

SOURCE = "answerability"
NO_ANSWER = "the graph does not answer it"


def benchmark_questions(workspace: Workspace, *, benchmark: Path, kg: Path) -> dict[str, Any]:
    """Writes `questions.parquet` and returns counts.

    kg: the benchmark's modified graph.  Topics that were dropped are not there; what cannot be answered has no answers
    and is unlinkable.  Raises InputError when the folder is no benchmark.
    """
    entries = read_benchmark(benchmark).questions
    with KgStore.open(kg) as store:
        topics = store.entity_ids({key for entry in entries for key in entry.topic_entities})  # of those that are left
        made = link([_raw(entry, topics) for entry in entries], store, source=SOURCE, gold=False).questions
    questions = [_there(entry, topics, question) for entry, question in zip(entries, made, strict=True)]
    write_questions(workspace.out, questions)
    workspace.monitor.progress(len(questions), len(questions), "questions")
    return {
        "questions": dict(sorted(Counter(question.split for question in questions).items())),
        "answerable": sum(entry.answerable for entry in entries),
        "with_topics": sum(bool(question.topic_entities) for question in questions),
    }


def questions_and_labels(workspace: Workspace, *, benchmark: Path, kg: Path) -> dict[str, Any]:
    """Writes questions.parquet and labels.parquet, and returns counts.

    benchmark: folder that `kgqa answerability build` wrote.  kg: its modified graph.  Only answerable questions have
    answers, forms and relation paths, so that retrievers learn from these alone.  Raises InputError, ArtifactError.
    """
    counts = benchmark_questions(workspace, benchmark=benchmark, kg=kg)
    read = read_benchmark(benchmark)
    known = {entry.id: entry for entry in read.questions}
    questions = [_as_learnt(question, known[question.id]) for question in read_questions(workspace.out)]
    write_questions(workspace.out, questions)
    table = leakage(questions)
    write_leakage(workspace.out, table)
    there = {question.id: len(question.topic_entities) for question in questions}
    with KgStore.open(kg) as store:
        relations = set(store.relation_keys())
    labels = [
        _label(entry, ideal, there[entry.id], relations)
        for entry, ideal in zip(read.questions, read.ideal, strict=True)
    ]
    write_labels(workspace.out, labels)
    paths = sum(bool(question.relation_paths) for question in questions)
    return {**counts, "with_paths": paths, "leaked": table["counts"]["leaked"], "leakage": table["counts"]}


def _as_learnt(question: Question, entry: BenchmarkQuestion) -> Question:
    if not entry.answerable or entry.s_expression is None:
        return replace(question, s_expression=None)
    try:
        paths = to_paths(parse(entry.s_expression))
    except FormError:
        return question
    relation_paths = tuple(dict.fromkeys(path.relations for path in paths if path.relations))
    return replace(
        question, relation_paths=relation_paths, hops=question.hops or max(map(len, relation_paths), default=None)
    )


def _label(entry: BenchmarkQuestion, ideal: IdealRecord, there: int, relations: Collection[str]) -> AnswerabilityLabel:
    """With what is truly missing: a topic, else a relation or type, else facts.

    there: topics that are left.  relations: those of the modified graph; the published labels leave a question without
    a form where a dropped type took its answer, though the graph may have every relation of the form.
    """
    if entry.answerable:
        return AnswerabilityLabel(entry.id, True)
    gone = there < len(set(entry.topic_entities))
    form_there = entry.s_expression is not None
    if not form_there and not gone and ideal.drop == TYPE:
        used = elements(parse(ideal.s_expression))
        form_there = not used.classes and all(relation in relations for relation in used.relations)
    why = FACT if form_there else ENTITY if gone else RELATION
    return AnswerabilityLabel(entry.id, False, why, ideal.drop, ideal.level)


def _raw(entry: BenchmarkQuestion, topics: dict[str, int]) -> RawQuestion:
    return canonical(
        {
            "id": entry.id, "question": entry.question, "split": entry.split, "language": entry.language,
            "topic_entities": [key for key in entry.topic_entities if key in topics],
            "answers": list(entry.answers) if entry.answerable else [],
            "answer_type": entry.answer_type, "s_expression": entry.s_expression, "complexity": entry.complexity,
            "hops": entry.hops,
        },
        gold=False,
    )  # fmt: skip


def _there(entry: BenchmarkQuestion, topics: dict[str, int], question: Question) -> Question:
    entities = tuple(topics[key] for key in entry.topic_entities if key in topics)
    keys = tuple(key for key in entry.topic_entities if key in topics)
    lost = None if entry.answerable else NO_ANSWER
    return replace(question, topic_keys=keys, topic_entities=entities, unlinkable=lost)


TEST = SPLITS[2]


def benchmark_examples(
    workspace: Workspace, *, benchmark: Path, kg: Path, questions: Path, training: Training, linked: Path | None = None
) -> dict[str, Any]:
    """Writes examples.parquet and returns counts.

    kg: the modified graph.  questions: `benchmark_questions` of it.  linked: the same with linked topics, which then
    are the topics; an entity that was dropped cannot be found.  Raises InputError, ArtifactError.
    """
    entries = read_benchmark(benchmark).questions
    with KgStore.open(kg) as store:
        topics = _gold(questions, store) if linked is None else linked_topics(linked, store)
    missing = sorted({entry.id for entry in entries} - {question.id for question in read_questions(questions)})
    if missing:
        raise InputError(f"{len(missing)} questions of {benchmark} are not in {questions}, such as {missing[0]!r}")
    made = [_example(entry, topics.get(entry.id, ()), training) for entry in entries]
    write_examples(workspace.out, made)
    workspace.monitor.progress(len(made), len(made), "examples")
    return {
        "questions": len(made),
        "with_topics": sum(bool(example.topics) for example in made),
        "with_form": dict(sorted(Counter(example.split for example in made if example.form is not None).items())),
        "without_form": dict(
            sorted(Counter(example.split for example in made if example.known and example.form is None).items())
        ),
    }


def _gold(questions: Path, store: KgStore) -> dict[str, tuple[Topic, ...]]:
    every = read_questions(questions)
    ids = sorted({entity for question in every for entity in question.topic_entities})
    keys, names, labels = store.entity_keys(ids), store.surface_forms(ids), store.names(ids)
    return {question.id: gold_topics(question, keys, names, labels) for question in every}


def _example(entry: BenchmarkQuestion, topics: tuple[Topic, ...], training: Training) -> ParseExample:
    form, known = _shown(entry, training)
    return ParseExample(
        id=entry.id, text=entry.question, split=entry.split, language=entry.language, topics=topics, form=form,
        known=known,
    )  # fmt: skip


def _shown(entry: BenchmarkQuestion, training: Training) -> tuple[str | None, bool]:
    """The form that a parser is shown, and whether it gets any."""
    if entry.split == TEST or (training == "A" and not entry.answerable):
        return None, False
    return entry.s_expression, True
