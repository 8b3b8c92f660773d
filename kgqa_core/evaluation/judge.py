"""A language model as judge: whether an output means a gold answer, whatever its words, language or spelling.

Every prompt goes through `paid.generate_cached`: cached, counted against the budget, sent once.  A reply that is no
verdict is a spent attempt and requested again, `llm.attempts` times at most; what stays without a verdict counts as not
correct, and how many there are is counted.  A judge is a model like any other: `agreement` measures it on labelled
outputs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import polars as pl

from kgqa_core.config import LlmOptions
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.errors import InputError
from kgqa_core.llm.budget import Budget
from kgqa_core.llm.cache import open_cache
from kgqa_core.llm.factory import load_model
from kgqa_core.llm.paid import PromptBatch, insist
from kgqa_core.llm.protocol import GenerationParams, LanguageModel
from kgqa_core.metrics.agreement import kappa
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.prompts import chat, without_thoughts
from kgqa_core.store.artifacts import write_json
from kgqa_core.store.shards import LOADING
from kgqa_core.store.tables import read_frame
from kgqa_core.workspace import Workspace

JUDGED: Final = "judged.parquet"
VERSION: Final = "1"
"""Version of the wording below; a changed wording gets a new one."""
SYSTEM: Final = (
    "You are given a question, its reference answers and a given answer. Decide whether the given answer means at "
    "least one of the reference answers, in whatever words, language or spelling, and does not contradict it. Take the "
    "reference answers as right, whatever you know. Reply with one word: yes or no."
)
USER: Final = "Question: <<<{question}>>>\nReference answers: <<<{references}>>>\nGiven answer: <<<{output}>>>"
NAMES = 5
"""Names of one reference answer that the judge is shown, its label first."""
REFERENCES = 30
"""Reference answers that the judge is shown."""
PARAMS: Final = GenerationParams(max_new_tokens=256)
"""A verdict is a word; the rest is for models that reason first."""
RETRY_TEMPERATURE: Final = 0.7

_YES = frozenset({"yes", "correct", "right", "true"})
_NO = frozenset({"no", "incorrect", "wrong", "false"})
_HEADS = frozenset({"verdict", "answer", "decision", "judgement", "judgment", "result"})


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """What is judged.  references: names of each gold answer, its label first."""

    question: str
    references: tuple[tuple[str, ...], ...]
    output: str


@dataclass(frozen=True, slots=True)
class LabelledAnswer:
    """A given answer and what a person says of it."""

    given: GivenAnswer
    correct: bool


@dataclass(frozen=True, slots=True)
class JudgeAgreement:
    """How far a judge agrees with people.

    accuracy: share of the same verdict, in [0, 1].  kappa: Cohen's, in [-1, 1]; None where chance alone would make them
    agree.  cells: both correct, people only, judge only, both incorrect.  unread: replies without a verdict, which
    count as incorrect.  verdicts: of the judge, in the order of the file; None for unread.
    """

    model: str
    answers: int
    accuracy: float
    kappa: float | None
    cells: tuple[int, int, int, int]
    unread: int
    verdicts: tuple[bool | None, ...]


def judge_prompt(given: GivenAnswer) -> str:
    """The chat prompt about one answer; line ends and outer blanks of each part are made single blanks."""
    shown = [" / ".join(" ".join(name.split()) for name in names[:NAMES]) for names in given.references[:REFERENCES]]
    values = {"question": given.question, "references": "; ".join(shown), "output": given.output}
    parts = re.split(r"\{(\w+)\}", USER)
    return chat(SYSTEM, "".join(_inner(values[part]) if index % 2 else part for index, part in enumerate(parts)))


def _inner(text: str) -> str:
    """A text on one line, without the signs that the prompt puts around it."""
    return " ".join(re.sub("<{3,}|>{3,}", " ", text).split())


def read_verdict(text: str) -> bool | None:
    """Whether a reply says yes; None where it does not say.

    The first word counts, after a head such as `Verdict:`; else the only kind of verdict that the reply has, unless it
    is negated.  Reasoning in `<think>` does not count.

    >>> read_verdict("**Yes**, in other words."), read_verdict('{"verdict": "no"}'), read_verdict("It depends.")
    (True, False, None)
    """
    words = re.findall(r"[^\W\d_]+(?:['’]t)?", without_thoughts(text).casefold())
    while words and words[0] in _HEADS:
        words.pop(0)
    if words and words[0] in _YES | _NO:
        return words[0] in _YES
    kinds = {word in _YES for word in words if word in _YES | _NO}
    negated = any(word == "not" or word.endswith(("'t", "’t")) for word in words)
    return kinds.pop() if len(kinds) == 1 and not negated else None


def verdicts(
    model: LanguageModel, given: Sequence[GivenAnswer], llm: LlmOptions, *, cache: Path | None = None,
    monitor: Monitor = QUIET, what: str = "verdicts",
) -> list[bool | None]:  # fmt: skip
    """Whether each answer is correct, in order; None where no reply says.

    An empty answer, and one to a question without references, is not correct and not sent.
    Raises BudgetReached after what was paid is cached, EndpointError, ModelError.
    """
    indices = [place for place, one in enumerate(given) if one.output.strip() and one.references]
    prompts = [judge_prompt(given[place]) for place in indices]
    batch = PromptBatch(
        prompts,
        PARAMS,
        cache=open_cache(cache) if cache is not None else None,
        attempts=llm.attempts,
        retry_temperature=RETRY_TEMPERATURE,
        validate=lambda place, text: None if read_verdict(text) is not None else "no verdict",
        monitor=monitor,
        what=what,
    )
    results: list[bool | None] = [False] * len(given)
    for place, outcome in zip(indices, insist(model, batch) if prompts else [], strict=True):
        completion = outcome.completion
        results[place] = None if completion is None or outcome.failed else read_verdict(completion.text)
    return results


def judge_answers(
    workspace: Workspace, *, questions: Path, answers: Path, model: str, llm: LlmOptions, name: str = ""
) -> dict[str, Any]:
    """Writes `judged.parquet` (question, retriever, format, model, judged) and meta.json, and returns counts.

    Rows are those of the answers; judged is true, false, or null where the judge gave no verdict.
    model: of the judge; that of the workspace is used instead of loading it.  name: what progress calls the experiment.
    Raises BudgetReached, EndpointError, ModelError, ArtifactError.
    """
    records = {record.id: record for record in read_questions(questions)}
    columns = ("question", "retriever", "format", "model", "output")
    frame = read_frame(answers / "answers.parquet", columns).sort(*columns)
    rows = [row for row in frame.select(columns).iter_rows() if row[0] in records]
    given = [
        GivenAnswer(records[row[0]].text, tuple(tuple(names) for names in records[row[0]].answer_names), row[4] or "")
        for row in rows
    ]
    results: list[bool | None] = [False] * len(given)
    if given:
        with LOADING:
            judge = workspace.model or load_model(model, llm, budget=workspace.budget)
        results = verdicts(
            judge, given, llm, cache=workspace.cache, monitor=workspace.monitor, what=f"verdicts {name}".strip()
        )
    schema = dict.fromkeys(columns[:4], pl.String) | {"judged": pl.Boolean}
    table = pl.DataFrame([(*row[:4], one) for row, one in zip(rows, results, strict=True)], schema=schema, orient="row")
    table.write_parquet(workspace.out / JUDGED, compression="zstd", statistics=False)
    write_json(workspace.out / "meta.json", {"judge": model, "prompt_version": VERSION})
    return {"answers": len(rows), "correct": sum(one is True for one in results), "unread": results.count(None)}


def read_judged(folder: Path) -> dict[str, dict[str, bool | None]]:
    """Experiment → question id → whether the judge found the answer correct, None without a verdict.

    Raises ArtifactError.
    """
    frame = read_frame(folder / JUDGED, ("question", "retriever", "format", "model", "judged"))
    verdicts_of: dict[str, dict[str, bool | None]] = {}
    for question, retriever, form, model, judged in frame.iter_rows():
        verdicts_of.setdefault(f"{retriever}/{form}/{model}", {})[question] = judged
    return verdicts_of


def read_labelled(text: str, name: str) -> list[LabelledAnswer]:
    """The rows of a document of labelled answers, JSON lines `{"question", "answers", "output", "correct"}`.

    answers: names of gold answers, or a list of names (label first) for each.  name: of the file.
    Raises InputError with the line.
    """
    rows = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            rows.append(_labelled(line, f"{name} line {number}"))
    if not rows:
        raise InputError(f"{name} has no labelled answers; a line is " + _EXAMPLE)
    return rows


_EXAMPLE = '{"question": "Where is it?", "answers": ["Oslo"], "output": "in Oslo", "correct": true}'


def _labelled(line: str, where: str) -> LabelledAnswer:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as fault:
        raise InputError(f"{where} is no JSON ({fault.msg}); a line is {_EXAMPLE}") from None
    if not isinstance(row, Mapping):
        raise InputError(f"{where} is no object; a line is {_EXAMPLE}")
    answers = row.get("answers")
    fields = {"question": str, "output": str, "correct": bool, "answers": list}
    wrong = [name for name, kind in fields.items() if not isinstance(row.get(name), kind)]
    if wrong:
        raise InputError(f"{where}: {', '.join(wrong)} is missing or of another kind; a line is {_EXAMPLE}")
    names = [tuple(answer) if isinstance(answer, list) else (answer,) for answer in answers or ()]
    if not names or not all(own and all(isinstance(name, str) for name in own) for own in names):
        raise InputError(f"{where}: answers is a list of names, or of lists of names; a line is {_EXAMPLE}")
    return LabelledAnswer(GivenAnswer(row["question"], tuple(names), row["output"]), row["correct"])


def agreement(
    labelled: Iterable[LabelledAnswer], model: str, llm: LlmOptions, *, cache: Path | None = None,
    budget: Budget | None = None,
) -> JudgeAgreement:  # fmt: skip
    """How far the judge `model` agrees with labelled answers.  Raises as `verdicts` does."""
    rows = list(labelled)
    judge = load_model(model, llm, budget=budget)
    results = verdicts(judge, [row.given for row in rows], llm, cache=cache)
    pairs = [(row.correct, one is True) for row, one in zip(rows, results, strict=True)]
    cells = tuple(pairs.count(pair) for pair in ((True, True), (True, False), (False, True), (False, False)))
    return JudgeAgreement(
        model=model, answers=len(rows), accuracy=(cells[0] + cells[3]) / len(rows), kappa=kappa(cells),
        cells=(cells[0], cells[1], cells[2], cells[3]), unread=results.count(None), verdicts=tuple(results),
    )  # fmt: skip
