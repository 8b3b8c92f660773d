"""The outputs of retrievers and language model for each question, in one place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kgqa_core.datasets.files.answers import LIKELY
from kgqa_core.retrieval.retrieved import read_retrieved
from kgqa_core.store.tables import read_frame
from kgqa_core.types import Question, Retrieved

RelationPath = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What an answerer says of its own answer.

    confidence: that it is right, None where not learnt or there is none; min_confidence: below which it declines.
    reason: why it declines, as of `Answer`, and missing: what is not there, in words; None where it answers.
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

    question: with the topics that retrieval started from.  retrieved: what each retriever gave, by its name.
    paths: relation paths that the path retriever predicted, with their probabilities, best first.
    model_answer: None where no model was queried.
    """

    question: Question
    retrieved: Mapping[str, Retrieved] = field(default_factory=dict)
    paths: tuple[tuple[RelationPath, float], ...] = ()
    model_answer: ModelAnswer | None = None

    @classmethod
    def of(cls, question: Question, retrieved: Mapping[str, Retrieved], model_answer: ModelAnswer) -> Evidence:
        """With the paths of the first retriever that predicts some."""
        return cls(
            question, retrieved, next((result.paths for result in retrieved.values() if result.paths), ()), model_answer
        )


def read_evidence(questions: Sequence[Question], facts: Mapping[str, Path], answers: Iterable[Path]) -> list[Evidence]:
    """The evidence of the questions that a model answered, in their order.

    facts: artifact of each retriever, by its plain name.  answers: artifacts of several splits.
    Raises ArtifactError when one is damaged.
    """
    model_answer: dict[str, ModelAnswer] = {}
    for folder in answers:
        model_answer |= _model_answers(folder)
    retrieved = {name: read_retrieved(folder, model_answer.keys()) for name, folder in sorted(facts.items())}
    return [
        Evidence.of(
            question,
            {name: by_question.get(question.id, Retrieved(question.id)) for name, by_question in retrieved.items()},
            model_answer[question.id],
        )
        for question in questions
        if question.id in model_answer
    ]


def _model_answers(folder: Path) -> dict[str, ModelAnswer]:
    """The outputs of the model by question."""
    frame = read_frame(folder / "answers.parquet").select("question", "output", "abstained")
    likely: dict[str, tuple[float | None, int]] = {}
    if (folder / LIKELY).is_file():
        rows = read_frame(folder / LIKELY).select("question", "log_probability", "tokens").iter_rows()
        likely = {question: (value, tokens) for question, value, tokens in rows}
    return {
        question: ModelAnswer(output or "", declined, *likely.get(question, (None, 0)))
        for question, output, declined in frame.iter_rows()
    }
