"""Texts for gold graphs, by rule or by a language model, each checked; and the QA model's word on them.

Both passes ask through `paid.generate_cached`, so that a killed stage pays for nothing twice.  Equal prompts are sent
once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kgqa_core.config import CorpusOptions, LlmOptions
from kgqa_core.llm.cache import ResponseCache
from kgqa_core.llm.faults import UNREADABLE
from kgqa_core.llm.paid import Expected, Outcome, PromptBatch, insist
from kgqa_core.llm.protocol import Completion, GenerationParams, LanguageModel
from kgqa_core.metrics.text import GoldAnswers, hit_rra
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.prompts import answer_prompt, rewrite_prompt
from kgqa_core.rewriting import validate
from kgqa_core.rewriting.graphs import GoldGraph
from kgqa_core.rewriting.template import paragraph, sentences
from kgqa_core.types import Question

TEMPLATE = "template"
"""Name of the teacher that is no model."""

READ = "rra2023"
"""The template of the QA prompt, T2."""

ANSWER_TOKENS = 32
"""Longest answer of the QA model."""

_REASONS = {"empty": validate.EMPTY, "refused": validate.REFUSED, UNREADABLE: validate.FAILED}
"""Reasons of `ask` in the words of the corpus."""


@dataclass(frozen=True, slots=True)
class TeacherText:
    """A teacher's text for a graph.

    reason: why it was rejected, or None.  faithfulness: in [0, 1].  spent: reasons of rejected attempts before it.
    """

    number: int
    text: str
    reason: str | None
    faithfulness: float = 0.0
    spent: tuple[str, ...] = ()
    prompt_tokens: int = 0
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Judged:
    """What the QA model answered from a text.  hit: whether a gold answer is in it; failed: it gave none."""

    answer: str
    hit: bool
    failed: bool = False
    prompt_tokens: int = 0
    tokens: int = 0


def language_of(question: Question, options: CorpusOptions) -> str:
    """The language in which a question's graph is described."""
    return options.language or question.language


def instruction(graph: GoldGraph, options: CorpusOptions) -> str:
    """The T1 prompt of a graph."""
    return rewrite_prompt(graph.text, language_of(graph.question, options))


def teacher_params(options: CorpusOptions) -> GenerationParams:
    """How the teacher writes: greedy, unless there are several candidates."""
    temperature = options.temperature if options.candidates > 1 else 0.0
    return GenerationParams(max_new_tokens=options.max_new_tokens, temperature=temperature)


def one_each(graphs: Sequence[GoldGraph], options: CorpusOptions) -> dict[str, GoldGraph]:
    """The first graph of each instruction, by instruction: the teacher's prompts."""
    results: dict[str, GoldGraph] = {}
    for graph in graphs:
        results.setdefault(instruction(graph, options), graph)
    return results


def by_rule(graph: GoldGraph, options: CorpusOptions, variant: int) -> str:
    """The text that the template teacher writes."""
    language = language_of(graph.question, options)
    return paragraph(sentences(graph.named, language, variant), language)


def write_texts(
    graphs: dict[str, GoldGraph], model: LanguageModel | None, options: CorpusOptions, llm: LlmOptions, *, seed: int,
    cache: ResponseCache | None = None, monitor: Monitor = QUIET,
) -> dict[str, list[TeacherText]]:  # fmt: skip
    """The candidates of each instruction, best first: accepted ones by faithfulness, then by number, then rejects.

    graphs: by instruction.  model: the teacher, or None for the template.  Raises BudgetReached, EndpointError.
    """
    pairs = [(prompt, number) for prompt in graphs for number in range(options.candidates)]
    outcomes: list[Outcome | None] = [None] * len(pairs)
    if model is not None:
        batch = PromptBatch(
            [prompt for prompt, _ in pairs], teacher_params(options), samples=[number for _, number in pairs],
            cache=cache, attempts=llm.attempts, monitor=monitor, what="texts",
            validate=lambda index, text: _reject(text, graphs[pairs[index][0]], options),
            retry_temperature=options.temperature,
            expected=Expected(lambda index: by_rule(graphs[pairs[index][0]], options, 0)),
        )  # fmt: skip
        outcomes = list(insist(model, batch))
    results: dict[str, list[TeacherText]] = {prompt: [] for prompt in graphs}
    for index, ((prompt, number), outcome) in enumerate(zip(pairs, outcomes, strict=True), start=1):
        graph = graphs[prompt]
        results[prompt].append(
            _by_rule(graph, options, seed, number) if outcome is None else _by_model(graph, options, number, outcome)
        )
        if outcome is None and (index % 200 == 0 or index == len(pairs)):
            monitor.progress(index, len(pairs), "texts")
    for candidates in results.values():
        candidates.sort(key=lambda each: (each.reason is not None, -each.faithfulness, each.number))
    return results


def judge(
    model: LanguageModel, wanted: Sequence[tuple[Question, str]], *, cache: ResponseCache | None = None,
    monitor: Monitor = QUIET, what: str = "QA answers",
) -> list[Judged]:  # fmt: skip
    """What the QA model answers to each question from its text, in order.

    A hit is hit@1 of Wu et al. (2023): the lower-cased answer contains the lower-cased name of at least one gold
    answer, here on word boundaries (`metrics.text.hit_rra`).
    """
    prompts = [answer_prompt(question.text, text, READ) for question, text in wanted]
    expected = Expected(
        lambda index: min((names[0] for names in wanted[index][0].answer_names if names), key=len, default=""),
        lambda index, completion: judged(wanted[index][0], completion).hit,
    )
    params = GenerationParams(max_new_tokens=ANSWER_TOKENS)
    batch = PromptBatch(prompts, params, cache=cache, monitor=monitor, what=what, expected=expected)
    return [
        judged(question, outcome.completion)
        for (question, _), outcome in zip(wanted, insist(model, batch), strict=True)
    ]


def judged(question: Question, completion: Completion | None) -> Judged:
    """What a completion of the T2 prompt answers to a question."""
    if completion is None or completion.finish == "error":
        return Judged("", False, failed=True)
    answer = next((line.strip() for line in completion.text.splitlines() if line.strip()), "")
    hit = completion.finish != "refusal" and hit_rra(GoldAnswers(question.answer_names), answer) > 0
    return Judged(answer, hit, False, completion.prompt_tokens, completion.completion_tokens)


def _reject(text: str, graph: GoldGraph, options: CorpusOptions) -> str | None:
    return validate.reject(text, graph.named, language_of(graph.question, options))


def _by_rule(graph: GoldGraph, options: CorpusOptions, seed: int, number: int) -> TeacherText:
    text = by_rule(graph, options, seed + number)
    reason = _reject(text, graph, options)
    language = language_of(graph.question, options)
    return TeacherText(number, text, reason, validate.faithfulness(text, graph.named, language))


def _by_model(graph: GoldGraph, options: CorpusOptions, number: int, outcome: Outcome) -> TeacherText:
    spent = tuple(_REASONS.get(reason.partition(":")[0], reason) for reason in outcome.spent)
    completion = outcome.completion
    if completion is None:
        return TeacherText(number, "", spent[-1] if spent else validate.FAILED, spent=spent)
    if completion.finish == "error":
        return TeacherText(number, "", validate.FAILED, spent=spent)
    text = " ".join(completion.text.split())
    reason = validate.TRUNCATED if completion.finish == "length" else None
    value = validate.faithfulness(text, graph.named, language_of(graph.question, options))
    return TeacherText(number, text, reason, value, spent, completion.prompt_tokens, completion.completion_tokens)
