"""The opening of a report: how many answers are right, what fails most, and what to do next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kgqa_core.config import Experiment
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.evaluation.labels import HEADLINE, knowledge_label, main_split, model_experiments, percent
from kgqa_core.store.tables import read_frame
from kgqa_core.types import Question

RIGHT = "exact"
"""Metric that says whether an answer is right."""
GROUPS, EXAMPLES, NAMES = 3, 3, 3
"""Groups of failures, examples of each, and gold names of an example that are shown."""
ENOUGH = 20
"""Questions with answers from which on training on them is advised."""
KINDS = {
    "generic": "one relation of one thing", "multi-hop": "several steps", "intersection": "two conditions at once",
    "difference": "a condition with “not”", "count": "how many", "comparative": "a comparison of two things",
    "superlative": "the largest, the first …", "ordinal": "the second, the third …", "yes/no": "yes or no",
}  # fmt: skip
"""Complexity types in plain words."""


@dataclass(frozen=True, slots=True)
class FailedQuestion:
    """A question, its gold names, and what was answered; "" where that was nothing."""

    text: str
    gold: tuple[str, ...]
    output: str


@dataclass(frozen=True, slots=True)
class Failures:
    """Questions of a complexity type that were declined, or answered wrongly: their number, and some of them.

    of: all questions of the type.
    """

    kind: str
    declined: bool
    n: int
    of: int
    examples: tuple[FailedQuestion, ...]


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What an experiment did with the questions of the split that tables show, and the failures, most frequent first.

    n, answered, right: numbers of questions.  next_steps: sentences of `next_steps`.
    """

    experiment: str
    n: int
    answered: int
    right: int
    failures: tuple[Failures, ...] = ()
    next_steps: tuple[str, ...] = ()

    @property
    def metrics(self) -> dict[str, float]:
        """The counts, and shares in [0, 1]: of the answered questions `right_of_answered`, of all the others."""
        shares = {"declined": self.n - self.answered, "right": self.right, "wrong": self.answered - self.right}
        return {
            **{name: count / max(self.n, 1) for name, count in shares.items()},
            "right_of_answered": self.right / max(self.answered, 1),
            "answered": self.answered,
            "questions": self.n,
        }

    @property
    def sentence(self) -> str:
        """How many of the answers are right, and how many questions are declined."""
        right, declined = (percent(self.metrics[name]) for name in ("right_of_answered", "declined"))
        return f"Of the questions that it answered {right} % are right; it declined {declined} %."

    @property
    def label(self) -> str:
        """The experiment in words."""
        return f"{Experiment.parse(self.experiment).answerer}, {knowledge_label(self.experiment)}"


def summarize(
    questions: Path, answers: Iterable[Path], scores: Path, *, run: str, generated: bool, more: Sequence[str] = ()
) -> RunSummary | None:
    """The summary of a run's first answerer, with the facts that it is served with; None where nothing was answered.

    questions, answers, scores: artifacts.  run: its id.  generated: whether its questions were made from the graph.
    more: further steps.
    """
    frame = read_frame(scores / "scores.parquet", ("experiment", "split", "question", "metric", "value"))
    frame = frame.filter(frame["metric"] == RIGHT)
    if (experiment := _experiment(frame["experiment"].unique().to_list())) is None:
        return None
    frame = frame.filter(frame["experiment"] == experiment)
    frame = frame.filter(frame["split"] == main_split(frame["split"].unique().to_list()))
    right = dict(frame.select("question", "value").iter_rows())
    outputs = _outputs(experiment, answers)
    records = [record for record in read_questions(questions) if record.id in right]
    counts = {
        "n": len(records),
        "answered": sum(record.id in outputs for record in records),
        "right": sum(record.id in outputs and right[record.id] >= 1 for record in records),
    }
    failures = _failures(records, right, outputs)
    declined, wrong = counts["n"] - counts["answered"], counts["answered"] - counts["right"]
    steps = next_steps(run, declined=declined, wrong=wrong, generated=generated)
    return RunSummary(experiment, **counts, failures=tuple(failures[:GROUPS]), next_steps=(*steps, *more))


def next_steps(run: str, *, declined: int, wrong: int, generated: bool) -> list[str]:
    """What to do about failures of a run: sentences, with commands between backticks."""
    steps = []
    if generated:
        steps.append("Ask it what you want to know: `kgqa serve`. These questions were made from the graph.")
    if declined or wrong or generated:
        asked = "asks again what you asked" if generated else "asks again what was declined"
        steps.append(f"`kgqa improve --run {run}` {asked} and gives the fix for each: a name, a synonym, a correction.")
    if generated or declined + wrong >= ENOUGH:
        steps.append(training_advice(0 if generated else declined + wrong))
    return steps


def training_advice(weak: int) -> str:
    """That questions with their answers train the system."""
    number = f"{weak:,} questions" if weak >= ENOUGH else f"{ENOUGH} or more questions of your own"
    return f"{number} with their answers in a file train the system: `kgqa run --questions FILE`"


def _experiment(experiments: Iterable[str]) -> str | None:
    """What a user gets: linked topics before gold ones, then the retriever that opens a report."""
    models = model_experiments(experiments)
    names = next(iter(models.values()), [])

    def place(name: str) -> tuple[bool, bool, int]:
        parsed = Experiment.parse(name)
        variant = str(parsed.variant)
        return parsed.without_knowledge, not parsed.linked, [*HEADLINE, variant].index(variant)

    return min(names, key=place, default=None)


def _outputs(experiment: str, answers: Iterable[Path]) -> dict[str, str]:
    """Question id → output of the questions that an experiment answered."""
    columns = ("question", "retriever", "format", "model", "output", "abstained")
    outputs: dict[str, str] = {}
    for folder in answers:
        frame = read_frame(folder / "answers.parquet", columns)
        for question, retriever, form, model, output, abstained in frame.select(columns).iter_rows():
            if f"{retriever}/{form}/{model}" == experiment and output and not abstained:
                outputs[question] = output
    return outputs


def _failures(records: Iterable[Question], right: Mapping[str, float], outputs: Mapping[str, str]) -> list[Failures]:
    """Groups of failed questions, the largest first."""
    groups: dict[tuple[str, bool], list[Question]] = {}
    totals: dict[str, int] = {}
    for record in records:
        kind = record.complexity or ""
        totals[kind] = totals.get(kind, 0) + 1
        if record.id not in outputs or right[record.id] < 1:
            groups.setdefault((kind, record.id not in outputs), []).append(record)
    return [
        Failures(
            kind,
            declined,
            len(members),
            totals[kind],
            tuple(
                FailedQuestion(
                    one.text, tuple(names[0] for names in one.answer_names[:NAMES] if names), outputs.get(one.id, "")
                )
                for one in members[:EXAMPLES]
            ),
        )
        for (kind, declined), members in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    ]
