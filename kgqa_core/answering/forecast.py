"""Forecast of the calls of the answering stage: the same questions and prompts as `answer`, for `kgqa forecast`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from kgqa_core import prompts
from kgqa_core.answering.answer import answer_requests, read_contexts, unique_prompts
from kgqa_core.answering.registry import generation_params, model_spec
from kgqa_core.config import AgentOptions, Answerer, AnsweringOptions, Knowledge, LlmOptions
from kgqa_core.datasets.derived.splits import choose
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.llm.budget import Budget
from kgqa_core.llm.cache import open_cache
from kgqa_core.llm.factory import identify
from kgqa_core.llm.forecast import ANY, SECONDS_A_CALL, StagePlan, Wanted, ask_some, measure, opening_of, plan
from kgqa_core.llm.paid import peek
from kgqa_core.llm.tokens import counter
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.types import Question

STAGE = "answers"


def forecast_answers(
    *,
    questions: Path,
    knowledge: Path | None,
    name: str,
    options: AnsweringOptions,
    llm: LlmOptions,
    seed: int,
    cache: Path | None = None,
    texts: Mapping[str, str] | None = None,
    planned: set[str] | None = None,
) -> StagePlan:
    """The forecast of the experiment `name`, `retriever/format`, without what the cache holds.

    knowledge: its artifact, where it is made already.  texts: question id → text that stands for the knowledge until
    then; a question without one is planned without facts, and the forecast says that it rests on an assumption.
    planned: prompts of experiments that were forecast before for the same model; they are left out, and this one's are
    added, unless a text stands for its knowledge.  Raises as `answer` does.
    """
    read = Knowledge.parse(name)
    retriever, form = str(read.variant), read.format
    records = read_questions(questions)
    contexts = read_contexts(knowledge, retriever, form) if knowledge is not None else dict(texts or {})
    chosen = choose(records, options.split, options.limit, seed)
    requests = answer_requests(chosen, contexts if form != "none" else {}, options)
    pending = unique_prompts(requests)
    params, model = generation_params(options), model_spec(options.answerer)
    identity = identify(model, llm)
    count, _ = counter(model, llm)
    responses = open_cache(cache) if cache is not None else None
    opening = opening_of(prompts.BARE[options.template], "{question}")
    if form != "none":
        opening = opening_of(prompts.TEMPLATES[options.template], "{context}")
    exact = knowledge is not None or form == "none"
    expected, wanted = count(typical_answer(records)), Wanted()
    before = planned if planned is not None and exact else set()
    guessed = {} if exact else {each.prompt: count(contexts.get(each.question, "")) for each in requests}
    for prompt, held in zip(pending, peek(identity, pending, params, None, responses), strict=True):
        if held is not None or prompt in before:
            wanted.cached += 1
        else:
            wanted.add(count(prompt), max(1, expected), text=guessed.get(prompt, 0))
        before.add(prompt)
    measured = measure(responses, identity, opening, params, count)
    assumed = "answers as long as the median gold answer"
    stage = f"{STAGE} {retriever}/{form}"
    forecast = plan(stage, model, wanted, measured, llm, params, assumed=assumed, between=ANY)
    if not exact and forecast.calls:
        guess = "knowledge not written yet, its length is a guess"
        forecast = replace(forecast, assumptions=(*forecast.assumptions, guess))
    return forecast


def pilot_answers(
    *,
    questions: Path,
    knowledge: Path | None,
    name: str,
    options: AnsweringOptions,
    llm: LlmOptions,
    seed: int,
    cache: Path,
    number: int,
    budget: Budget | None = None,
    monitor: Monitor = QUIET,
) -> None:
    """Sends `number` of the prompts of an experiment to its answerer, where that is behind an endpoint; the cache keeps
    the responses.  knowledge: None for `none`.  Raises as `answer` does."""
    read = Knowledge.parse(name)
    contexts = read_contexts(knowledge, str(read.variant), read.format) if knowledge is not None else {}
    chosen = choose(read_questions(questions), options.split, options.limit, seed)
    ask_some(
        model_spec(options.answerer), unique_prompts(answer_requests(chosen, contexts, options)),
        generation_params(options), number, llm, seed=seed, cache=cache, budget=budget, monitor=monitor,
    )  # fmt: skip


def forecast_exploration(
    *,
    questions: Path,
    name: str,
    options: AnsweringOptions,
    agent: AgentOptions,
    llm: LlmOptions,
    seed: int,
) -> StagePlan:
    """The most that an agent can ask, by its limits for one question: what it needs depends on what it is answered.

    name: of the experiment, `retriever/format`.  What the cache holds is not known before, and counts here.
    Raises QuestionFileError when the split is empty.
    """
    chosen = choose(read_questions(questions), options.split, options.limit, seed)
    number = sum(bool(question.topic_entities) for question in chosen)
    model = str(Answerer.parse(options.answerer).model)
    written = min(agent.tokens, agent.calls * agent.max_new_tokens)
    read, price = agent.tokens - written, llm.prices.get(model)
    dearest = None
    if price is not None:
        dearest = number * agent.tokens * max(price.prompt, price.completion) / 1e6
    return StagePlan(
        f"{STAGE} {name}", model, number * agent.calls, number * read, number * written, cost=dearest,
        seconds=number * agent.calls * SECONDS_A_CALL / llm.concurrency, counted=False,
        assumptions=("the limits of the section agent, which few questions need",),
    )  # fmt: skip


def typical_answer(records: Sequence[Question]) -> str:
    """The gold answer of median length among the training questions, or among all where there is no training split."""
    names = [record.answer_names[0][0] for record in records if record.split == "train" and record.answer_names]
    names = names or [record.answer_names[0][0] for record in records if record.answer_names]
    return sorted(names, key=lambda name: (len(name), name))[len(names) // 2] if names else ""
