"""What making a corpus is going to ask of teacher and QA model: the same graphs and prompts as `corpus.generate`."""

from __future__ import annotations

from pathlib import Path

from kgqa_core.config import CorpusOptions, LlmOptions
from kgqa_core.datasets.question import read_questions
from kgqa_core.dkg.csr import Dkg
from kgqa_core.kg.store import KgStore
from kgqa_core.llm.cache import ResponseCache, open_cache
from kgqa_core.llm.factory import identify
from kgqa_core.llm.paid import peek
from kgqa_core.llm.plan import Measured, StagePlan, Wanted, measure, opening_of, plan
from kgqa_core.llm.protocol import Completion
from kgqa_core.llm.tokens import counter
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.prompts import READ_TEXT, REWRITE, REWRITE_CHINESE
from kgqa_core.rewriting import validate
from kgqa_core.rewriting.graphs import GoldGraph, draw
from kgqa_core.rewriting.teacher import (
    TEMPLATE,
    by_rule,
    instruction,
    language_of,
    one_each,
    qa_params,
    qa_prompt,
    teacher_params,
)

STAGE = "corpus"

ACCEPTANCE = 0.8
"""Assumed share of texts from which the QA model answers, for the calls of second and further candidates."""


def plan_corpus(
    kg: Path,
    dkg: Path,
    questions: Path,
    options: CorpusOptions,
    llm: LlmOptions,
    seed: int,
    cache: Path | None,
    monitor: Monitor = QUIET,
) -> list[StagePlan]:
    """The plans of teacher and QA model, without what the cache holds; the teacher's is missing for `template`.

    An imported corpus asks nothing.  Texts not yet written are taken to be as long as the template's.
    """
    if options.imported is not None:
        return []
    with KgStore.open(kg) as store:
        drawn = draw(
            store, Dkg.open(dkg), read_questions(questions), size=options.size, most_triples=options.most_triples,
            seed=seed, monitor=monitor,
        )  # fmt: skip
    responses = open_cache(cache) if cache is not None else None
    asked = one_each(drawn.graphs, options)
    texts: dict[str, list[Completion | None]] = {prompt: [] for prompt in asked}
    plans = []
    measured = Measured()
    if options.teacher != TEMPLATE:
        found, measured, texts = _teacher(asked, options, llm, responses)
        plans.append(found)
    plans.append(_qa(drawn.graphs, texts, measured, options, llm, seed, responses))
    return plans


def _teacher(
    asked: dict[str, GoldGraph], options: CorpusOptions, llm: LlmOptions, cache: ResponseCache | None
) -> tuple[StagePlan, Measured, dict[str, list[Completion | None]]]:
    count, _ = counter(options.teacher, llm)
    identity, params = identify(options.teacher, llm), teacher_params(options)
    pairs = [(prompt, number) for prompt in asked for number in range(options.candidates)]
    prompts = [prompt for prompt, _ in pairs]
    held = peek(
        identity, prompts, params, [number for _, number in pairs], cache, attempts=llm.attempts,
        retry_temperature=options.temperature,
    )  # fmt: skip
    chinese = any(language_of(graph.question, options).partition("-")[0] == "zh" for graph in asked.values())
    opening = opening_of(REWRITE_CHINESE if chinese else REWRITE, "{triples}")
    measured = measure(cache, identity, opening, params, count)
    wanted, texts = Wanted(), {prompt: list[Completion | None]() for prompt in asked}
    for (prompt, _), completion in zip(pairs, held, strict=True):
        texts[prompt].append(completion)
        if completion is None:
            wanted.add(count(prompt), count(by_rule(asked[prompt], options, 0)))
        else:
            wanted.cached += 1
    found = plan(
        STAGE + "/teacher", options.teacher, wanted, measured, llm, params, attempts=llm.attempts,
        assumed="texts as long as the template's",
    )  # fmt: skip
    return found, measured, texts


def _qa(
    graphs: tuple[GoldGraph, ...], texts: dict[str, list[Completion | None]], teacher: Measured,
    options: CorpusOptions, llm: LlmOptions, seed: int, cache: ResponseCache | None,
) -> StagePlan:  # fmt: skip
    """Texts that are there make exact prompts; others stand for the template's, longer or shorter by what is known."""
    count, _ = counter(options.qa_model, llm)
    identity, params = identify(options.qa_model, llm), qa_params()
    measured = measure(cache, identity, opening_of(READ_TEXT, "{context}"), params, count)
    lost = teacher.spent**llm.attempts if teacher.enough else 0.0
    exact: list[tuple[GoldGraph, str]] = []
    wanted = Wanted()
    for graph in graphs:
        gold = max(1, min((count(names[0]) for names in graph.question.answer_names if names), default=1))
        written = _best_first(graph, texts[instruction(graph, options)], options)
        weight = 1.0
        for number in range(options.candidates):
            known = written[number] if number < len(written) else None
            if known == "" or weight < 0.01:
                break
            if known is not None and number == 0:
                exact.append((graph, known))
            else:
                rule = by_rule(graph, options, seed + number)
                longer = teacher.base + teacher.slope * count(instruction(graph, options)) if teacher.enough else 0.0
                tokens = count(qa_prompt(graph.question, rule)) + (longer - count(rule) if longer else 0.0)
                wanted.add(tokens, gold, weight * (1.0 if known is not None else 1.0 - lost))
            weight *= 1.0 - ACCEPTANCE
    prompts = [qa_prompt(graph.question, text) for graph, text in exact]
    seen: set[str] = set()
    for (graph, _), prompt, completion in zip(
        exact, prompts, peek(identity, prompts, params, None, cache), strict=True
    ):
        if completion is not None:
            wanted.cached += 1
        elif prompt not in seen:
            gold = max(1, min((count(names[0]) for names in graph.question.answer_names if names), default=1))
            wanted.add(count(prompt), gold)
        seen.add(prompt)
    assumed = "answers as long as the shortest gold answer"
    if options.candidates > 1:
        assumed += f"; {ACCEPTANCE:.0%} of texts are answered from"
    return plan(STAGE + "/qa", options.qa_model, wanted, measured, llm, params, assumed=assumed)


def _best_first(
    graph: GoldGraph, completions: list[Completion | None], options: CorpusOptions
) -> list[str | None]:  # fmt: skip
    """The texts of a graph as the QA model will be asked: None is not written yet, empty means that none is left."""
    language = language_of(graph.question, options)
    if not completions:
        return []
    if any(completion is None for completion in completions):
        return [None] * len(completions)
    good = [
        " ".join(completion.text.split())
        for completion in completions
        if completion is not None and completion.finish not in ("error", "length")
    ]
    order = sorted(
        range(len(good)), key=lambda place: (-validate.faithfulness(good[place], graph.named, language), place)
    )
    return [*(good[place] for place in order), ""]
