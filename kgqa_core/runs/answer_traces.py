"""Traces of questions that stages answered: the same as `System` makes, from the artifacts that the stages wrote.

Stages answer a file as a whole, so that each step has the seconds of its stage for all questions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core.answering.registry import answer_prompt, answerer_spec
from kgqa_core.answering.reply import Answer, AnswerFact, RankedEntity
from kgqa_core.answering.topics import answer_topics
from kgqa_core.answering.trace import question_trace
from kgqa_core.config import Profile
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.kg.store import KgStore
from kgqa_core.kg.verbalise import Wording
from kgqa_core.llm.protocol import Completion
from kgqa_core.store.tables import read_frame
from kgqa_core.tracing import QuestionTrace, StepClock
from kgqa_core.types import Question

STEPS = {
    "mentions": "linking", "linked": "linking", "facts": "retrieval", "passages": "knowledge",
    "knowledge": "knowledge", "computed_knowledge": "knowledge", "computed": "forms", "answers": "model",
    "wording": "wording",
}  # fmt: skip
"""Step of a question that a stage takes for all of them, by the stage's kind."""


def steps_of(stages: Iterable[tuple[str, float]], started: float) -> StepClock:
    """The clock of stages, given as (name, seconds) in order, as if each began when the one before it ended."""
    clock, now = StepClock(started), started
    for name, seconds in stages:
        step = STEPS.get(name.partition("/")[0])
        if step is not None:
            began, before = clock.steps.get(step, (now, 0.0))
            clock.steps[step] = (began, before + seconds)
        now += seconds
    return clock


def answer_traces(
    answers: Sequence[Answer],
    wanted: Collection[str],
    profile: Profile,
    knowledge: str,
    clock: StepClock,
    *,
    kg: Path,
    questions: Path,
    answered: Path,
    facts: Path | None = None,
) -> list[QuestionTrace]:
    """The traces of the wanted questions, in the order of the answers.

    answers: of all questions of a file.  wanted: ids.  knowledge: `retriever/format` that was read.  clock: of the
    stages.  kg, questions, answered, facts: artifact folders; answered is that of the stage `answers`.
    Raises ArtifactError when an artifact is damaged.
    """
    chosen = [one for one in answers if one.id in wanted]
    asked = {one.id: one for one in read_questions(questions) if one.id in wanted}
    reads = answerer_spec(profile.answering.answerer).reads
    columns = ("question", "model", "output", "finish", "prompt_tokens", "tokens")
    frame = read_frame(answered / "answers.parquet", columns).select(columns)
    rows = {row["question"]: row for row in frame.filter(pl.col("question").is_in(list(asked))).iter_rows(named=True)}
    with KgStore.open(kg) as store:
        found = _retrieved(store, facts, asked) if facts is not None else {}
        names = store.names([entity for question in asked.values() for entity in question.topic_entities])
        topics = {name: answer_topics(store, question, names) for name, question in asked.items()}
    traces = []
    for answer in chosen:
        row, question = rows.get(answer.id), asked[answer.id]
        model = row["model"] if row is not None else ""
        whole = replace(
            answer, model=model, knowledge=knowledge, topics=topics[answer.id], **found.get(answer.id, {})
        )  # fmt: skip
        read: dict[str, Any] = {}
        if reads and row is not None:
            completion = Completion(row["output"], row["finish"], row["prompt_tokens"], row["tokens"])
            read = {"prompt": answer_prompt(question, answer.text, profile.answering), "completion": completion}
        traces.append(question_trace(clock, question, (), whole, batch=len(answers), **read))
    return traces


def _retrieved(store: KgStore, facts: Path, asked: Mapping[str, Question]) -> dict[str, dict[str, Any]]:
    """facts and entities of each question, as an `Answer` has them."""
    columns = ("question", "rank", "score", "hop", "triple", "direction")
    own = pl.col("question").is_in(list(asked))
    frame = read_frame(facts / "facts.parquet", columns).filter(own).sort("question", "rank")
    wording = Wording(store, frame["triple"].unique().to_list())
    texts = wording.texts(frame.select("triple", "direction").rows())
    found: dict[str, dict[str, Any]] = {name: {"facts": (), "entities": ()} for name in asked}
    for text, (name, hop, score, direction) in zip(
        texts, frame.select("question", "hop", "score", "direction").iter_rows(), strict=True
    ):
        found[name]["facts"] += (AnswerFact(text, hop, round(score, 4), direction),)
    ranked = read_frame(facts / "entities.parquet", ("question", "rank", "entity", "score")).filter(own)
    ranked = ranked.filter(pl.col("rank") < 10).sort("question", "rank")
    names = store.names(ranked["entity"].unique().to_list())
    for name, entity, score in ranked.select("question", "entity", "score").iter_rows():
        found[name]["entities"] += (RankedEntity(names[entity], round(score, 4)),)
    return found
