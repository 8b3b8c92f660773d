"""The outputs of retrievers and language model for each question, in one place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from kgqa_core.datasets.files.answers import LIKELY
from kgqa_core.store.tables import read_frame
from kgqa_core.symbolic.tables import judges, read_computed
from kgqa_core.types import Fact, Question, Retrieved

RelationPath = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What an answerer says of its own answer.

    confidence: that it is right, None where not learnt or there is none; min_confidence: below which it declines.
    reason: why it declines, one of `types.REASONS`, and missing: what is not there, in words; None where it answers.
    """

    confidence: float | None = None
    min_confidence: float | None = None
    reason: str | None = None
    missing: str | None = None


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """What the language model answered.

    declined: its output is empty or states that it does not know.  log_probability, tokens: of
    `llm.protocol.Completion`.
    computed: an answer was computed from the graph, with rows that prove it: the output itself, or what the model read.
    judgement: the answerer's own, where it makes one (`auto`).
    """

    output: str
    declined: bool = False
    log_probability: float | None = None
    tokens: int = 0
    computed: bool = False
    judgement: Judgement | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that is known of one question when it is to be decided whether to answer it.

    question: with the topics that retrieval started from.  found: what each retriever found, by its name.
    paths: relation paths that the path retriever predicted, with their probabilities, best first.
    model_answer: None where no model was queried.
    """

    question: Question
    found: Mapping[str, Retrieved] = field(default_factory=dict)
    paths: tuple[tuple[RelationPath, float], ...] = ()
    model_answer: ModelAnswer | None = None


def read_evidence(
    questions: Sequence[Question], facts: Mapping[str, Path], answers: Iterable[Path], computed: Path | None = None
) -> list[Evidence]:
    """The evidence of the questions that a model answered, in their order.

    facts: artifact of each retriever, by its plain name.  answers: artifacts of several splits.  computed: what their
    answers were computed as, or what the model read as computed.  Raises ArtifactError when one is damaged.
    """
    proved = _proved(computed) if computed is not None else frozenset()
    judgements = _judgements(computed) if computed is not None else {}
    model_answer: dict[str, ModelAnswer] = {}
    for folder in answers:
        model_answer |= _model_answers(folder, proved)
    for question, judgement in judgements.items():
        if question in model_answer:
            model_answer[question] = replace(model_answer[question], judgement=judgement)
    found = {name: _retrieved(folder, model_answer.keys()) for name, folder in sorted(facts.items())}
    paths: dict[str, list[tuple[RelationPath, float]]] = {}
    for folder in facts.values():
        if (folder / "paths.parquet").is_file():
            for row in read_frame(folder / "paths.parquet").sort("question", "rank").iter_rows(named=True):
                paths.setdefault(row["question"], []).append((tuple(row["path"]), row["score"]))
    return [
        Evidence(
            question,
            {name: own.get(question.id, Retrieved(question.id)) for name, own in found.items()},
            tuple(paths.get(question.id, ())),
            model_answer[question.id],
        )
        for question in questions
        if question.id in model_answer
    ]


def _proved(computed: Path) -> frozenset[str]:
    """Questions for which something was computed."""
    rows = read_computed(computed, ("question", "answers")).iter_rows()
    return frozenset(question for question, answers in rows if answers)


def _judgements(computed: Path) -> dict[str, Judgement]:
    """What the answerer says of its own answers; nothing for one that does not judge them."""
    if not judges(computed):
        return {}
    columns = ("question", "road", "confidence", "min_confidence", "reason", "missing")
    return {
        question: Judgement(confidence, least, reason, missing)
        for question, road, confidence, least, reason, missing in read_computed(computed, columns).iter_rows()
        if road is not None or reason is not None
    }


def _model_answers(folder: Path, proved: Set[str]) -> dict[str, ModelAnswer]:
    """The outputs of the model by question.  proved: questions for which something was computed."""
    frame = read_frame(folder / "answers.parquet").select("question", "output", "abstained")
    likely: dict[str, tuple[float | None, int]] = {}
    if (folder / LIKELY).is_file():
        rows = read_frame(folder / LIKELY).select("question", "log_probability", "tokens").iter_rows()
        likely = {question: (value, tokens) for question, value, tokens in rows}
    return {
        question: ModelAnswer(output or "", declined, *likely.get(question, (None, 0)), question in proved)
        for question, output, declined in frame.iter_rows()
    }


def _retrieved(folder: Path, wanted: Iterable[str]) -> dict[str, Retrieved]:
    """What a `facts` artifact holds of some questions."""
    questions = pl.DataFrame({"question": list(wanted)}, schema={"question": pl.String})
    facts: dict[str, list[Fact]] = {}
    columns = ("question", "rank", "score", "hop", "triple", "direction", "path")
    for question, *row in _rows_of(folder / "facts.parquet", questions).select(columns).iter_rows():
        facts.setdefault(question, []).append(Fact(*row))
    entities: dict[str, list[tuple[int, float]]] = {}
    for question, entity, score in (
        _rows_of(folder / "entities.parquet", questions).select("question", "entity", "score").iter_rows()
    ):
        entities.setdefault(question, []).append((entity, score))
    meta = read_frame(folder / "facts_meta.parquet").join(questions, on="question", how="semi")
    return {
        question: Retrieved(
            question, tuple(facts.get(question, ())), tuple(entities.get(question, ())), truncated, tuple(attention)
        )
        for question, truncated, attention in meta.select("question", "truncated", "hop_attention").iter_rows()
    }


def _rows_of(path: Path, wanted: pl.DataFrame) -> pl.DataFrame:
    return read_frame(path).join(wanted, on="question", how="semi").sort("question", "rank")
