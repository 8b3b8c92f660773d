"""What making a corpus is going to ask of teacher and QA model: the same graphs and prompts as `corpus.generate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kgqa_core.config import CorpusOptions, LlmOptions
from kgqa_core.datasets.question import read_questions
from kgqa_core.dkg.csr import Dkg
from kgqa_core.kg.store import KgStore
from kgqa_core.llm.cache import ResponseCache, open_cache
from kgqa_core.llm.factory import identify
from kgqa_core.llm.paid import peek
from kgqa_core.llm.plan import ANY, ENOUGH, Measured, StagePlan, Wanted, measure, opening_of, plan
from kgqa_core.llm.protocol import Completion
from kgqa_core.llm.tokens import Counter, counter
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.prompts import READ_TEXT, REWRITE, REWRITE_CHINESE
from kgqa_core.rewriting import validate
from kgqa_core.rewriting.graphs import GoldGraph, draw
from kgqa_core.rewriting.teacher import (
    TEMPLATE,
    by_rule,
    instruction,
    judged,
    language_of,
    one_each,
    qa_params,
    qa_prompt,
    teacher_params,
    write_texts,
)
from kgqa_core.types import Question

STAGE = "corpus"

ACCEPTANCE = 0.8
"""Assumed share of texts from which the QA model answers, for the calls of second and further candidates."""

BLANK = "."
"""Stands for a text whose length alone is known."""

Texts = Mapping[str, Sequence[str] | None]
"""Texts by instruction, in the order in which the QA model is asked about them; None where they are not written yet."""


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

    An imported corpus asks nothing.  Texts not yet written are taken to be as long as the cache's of the same teacher
    let expect, or as the template's.
    """
    if options.alpaca_file is not None:
        return []
    with KgStore.open(kg) as store:
        drawn = draw(
            store, Dkg.open(dkg), read_questions(questions), size=options.size, most_triples=options.most_triples,
            seed=seed, monitor=monitor,
        )  # fmt: skip
    responses = open_cache(cache) if cache is not None else None
    asked = one_each(drawn.graphs, options)
    if options.teacher == TEMPLATE:
        by_template = write_texts(asked, None, options, llm, seed=seed, monitor=monitor)
        texts = {key: [each.text for each in own if each.reason is None] for key, own in by_template.items()}
        return [_qa(drawn.graphs, texts, Measured(), options, llm, responses)]
    found, measured, written = _teacher(asked, options, llm, responses)
    return [found, _qa(drawn.graphs, written, measured, options, llm, responses)]


def _teacher(
    asked: dict[str, GoldGraph], options: CorpusOptions, llm: LlmOptions, cache: ResponseCache | None
) -> tuple[StagePlan, Measured, Texts]:
    count, _ = counter(options.teacher, llm)
    reader, _ = counter(options.qa_model, llm)
    identity, params = identify(options.teacher, llm), teacher_params(options)
    pairs = [(prompt, number) for prompt in asked for number in range(options.candidates)]
    prompts = [prompt for prompt, _ in pairs]
    held = peek(
        identity, prompts, params, [number for _, number in pairs], cache, attempts=llm.attempts,
        retry_temperature=options.temperature,
    )  # fmt: skip
    chinese = any(language_of(graph.question, options).partition("-")[0] == "zh" for graph in asked.values())
    opening = opening_of(REWRITE_CHINESE if chinese else REWRITE, "{triples}")
    measured = measure(cache, identity, opening, params, count, reader)
    wanted, candidates = Wanted(), {prompt: list[Completion | None]() for prompt in asked}
    for (prompt, _), completion in zip(pairs, held, strict=True):
        candidates[prompt].append(completion)
        if completion is None:
            wanted.add(count(prompt), count(by_rule(asked[prompt], options, 0)))
        else:
            wanted.cached += 1
    found = plan(
        STAGE + "/teacher", options.teacher, wanted, measured, llm, params, attempts=llm.attempts,
        assumed="texts as long as the template's",
    )  # fmt: skip
    return found, measured, {prompt: _best_first(asked[prompt], own, options) for prompt, own in candidates.items()}


@dataclass(frozen=True, slots=True)
class _Open:
    """A graph about which the QA model may be asked once more.  chance: that it is; text: None where it is not written
    yet."""

    graph: GoldGraph
    chance: float
    text: str | None


def _qa(
    graphs: Sequence[GoldGraph], texts: Texts, teacher: Measured, options: CorpusOptions, llm: LlmOptions,
    cache: ResponseCache | None,
) -> StagePlan:  # fmt: skip
    """Turn by turn as the stage asks.  Texts that are there make exact prompts; others are as long as the teacher's so
    far, or as the template's."""
    (count, _), (t1, _) = counter(options.qa_model, llm), counter(options.teacher, llm)
    identity, params = identify(options.qa_model, llm), qa_params()
    measured = measure(cache, identity, opening_of(READ_TEXT, "{context}"), params, count)
    lost = teacher.spent**llm.attempts if teacher.enough else 0.0
    wanted, acceptance, guessed = Wanted(), ACCEPTANCE, True
    chances = {graph.question.id: 1.0 if texts[instruction(graph, options)] is not None else 1.0 - lost
               for graph in graphs}  # fmt: skip
    seen: set[str] = set()
    for turn in range(options.candidates):
        turns = [
            _Open(graph, chances[graph.question.id], _text(texts[instruction(graph, options)], turn))
            for graph in graphs
            if chances[graph.question.id] >= 0.01
        ]
        written = [each for each in turns if each.text]
        prompts = [qa_prompt(each.graph.question, each.text or "") for each in written]
        answers = dict(zip(prompts, peek(identity, prompts, params, None, cache), strict=True))
        hits = {each.graph.question.id: judged(each.graph.question, answer).hit
                for each, prompt in zip(written, prompts, strict=True)
                if (answer := answers[prompt]) is not None}  # fmt: skip
        if turn == 0 and len(hits) >= ENOUGH:
            acceptance, guessed = sum(hits.values()) / len(hits), False
        for each in turns:
            question = each.graph.question
            unsure = guessed and turn > 0 and each.chance < 1.0
            if question.id in hits:
                wanted.cached += 1
                chances[question.id] *= not hits[question.id]
                continue
            chances[question.id] *= (1.0 - acceptance) if each.text != "" else 0.0
            if each.text is None:
                bare = count(qa_prompt(question, BLANK)) - count(BLANK)
                if teacher.enough:
                    told = teacher.text_base + teacher.text_slope * t1(instruction(each.graph, options))
                    wanted.add(bare + told, _gold(question, count), each.chance, unsure=unsure)
                else:
                    told = count(by_rule(each.graph, options, turn))
                    wanted.add(bare + told, _gold(question, count), each.chance, text=told, unsure=unsure)
            elif each.text and (prompt := qa_prompt(question, each.text)) not in seen:
                wanted.add(count(prompt), _gold(question, count), each.chance, unsure=unsure)
                seen.add(prompt)
    assumed = "answers as long as the shortest gold answer"
    if options.candidates > 1 and guessed:
        assumed += f"; {ACCEPTANCE:.0%} of texts are answered from"
    return plan(STAGE + "/qa", options.qa_model, wanted, measured, llm, params, assumed=assumed, between=ANY)


def _gold(question: Question, count: Counter) -> int:
    """Tokens of the shortest gold answer."""
    return max(1, min((count(names[0]) for names in question.answer_names if names), default=1))


def _text(own: Sequence[str] | None, turn: int) -> str | None:
    """The text of a turn: None where it is not written yet, empty where there is none."""
    return None if own is None else own[turn] if turn < len(own) else ""


def _best_first(
    graph: GoldGraph, completions: Sequence[Completion | None], options: CorpusOptions
) -> list[str] | None:  # fmt: skip
    """The usable texts of a graph in the order in which the QA model is asked; None when one is not written yet."""
    if any(completion is None for completion in completions):
        return None
    language = language_of(graph.question, options)
    good = [
        " ".join(completion.text.split())
        for completion in completions
        if completion is not None and completion.finish not in ("error", "length")
    ]
    return sorted(good, key=lambda text: -validate.faithfulness(text, graph.named, language))
