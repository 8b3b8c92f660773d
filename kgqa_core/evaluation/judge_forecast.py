"""Forecast of the calls of the judge, whose prompts hold answers that are not written yet, for `kgqa forecast`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from kgqa_core.answering.forecast import typical_answer
from kgqa_core.config import AnsweringOptions, LlmOptions
from kgqa_core.datasets.derived.splits import choose
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.evaluation.judge import PARAMS, GivenAnswer, judge_prompt
from kgqa_core.llm.cache import open_cache
from kgqa_core.llm.factory import identify
from kgqa_core.llm.forecast import ANY, StagePlan, Wanted, measure, opening_of, plan
from kgqa_core.llm.tokens import counter


def forecast_verdicts(
    *,
    questions: Path,
    experiments: int,
    options: AnsweringOptions,
    model: str,
    llm: LlmOptions,
    seed: int,
    cache: Path | None = None,
) -> StagePlan:
    """The plan of judging every answer of so many experiments; what the cache holds is not known, so nothing is cached.

    Answers that several experiments share are judged once, so that this is the most it can be but for retries.
    Raises ModelError for a name that is none.
    """
    records = read_questions(questions)
    answer, count = typical_answer(records), counter(model, llm)[0]
    wanted = Wanted()
    for record in choose(records, options.split, options.limit, seed):
        if record.answer_names:
            given = GivenAnswer(record.text, tuple(tuple(names) for names in record.answer_names), answer)
            for _ in range(experiments):
                wanted.add(count(judge_prompt(given)), 1)
    responses = open_cache(cache) if cache is not None else None
    opening = opening_of(judge_prompt(GivenAnswer("\0", (), "")), "\0")
    measured = measure(responses, identify(model, llm), opening, PARAMS, count)
    found = plan(
        "judged", model, wanted, measured, llm, PARAMS, attempts=llm.attempts, assumed="verdicts of one token",
        between=ANY,
    )  # fmt: skip
    guess = "answers not written yet, as long as the median gold answer and all different"
    return replace(found, assumptions=(*found.assumptions, guess)) if found.calls else found
