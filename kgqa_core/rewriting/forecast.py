"""Forecasts what a corpus and rewritten sentences will cost: the graphs, groups and prompts of their stages, unpaid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kgqa_core.config import CorpusOptions, LlmOptions, RewriterOptions
from kgqa_core.datasets.derived.splits import choose
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.dkg.csr import Dkg
from kgqa_core.kg.store import KgStore
from kgqa_core.llm.budget import Budget
from kgqa_core.llm.cache import ResponseCache, open_cache
from kgqa_core.llm.factory import identify, load_model
from kgqa_core.llm.forecast import (
    ANY,
    ENOUGH,
    Measured,
    StagePlan,
    Wanted,
    ask_some,
    at_endpoint,
    measure,
    opening_of,
    plan,
    some,
)
from kgqa_core.llm.paid import peek
from kgqa_core.llm.protocol import Completion
from kgqa_core.llm.tokens import Counter, counter
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.prompts import DESCRIBE, READ_TEXT, REWRITE, REWRITE_CHINESE
from kgqa_core.rewriting import validate
from kgqa_core.rewriting.describe import parameters, wording_of
from kgqa_core.rewriting.graphs import GoldGraph, draw
from kgqa_core.rewriting.groups import TripleGroup, read_groups
from kgqa_core.rewriting.teacher import (
    TEMPLATE,
    by_rule,
    instruction,
    judge,
    judged,
    language_of,
    one_each,
    qa_params,
    qa_prompt,
    teacher_params,
    write_texts,
)
from kgqa_core.rewriting.template import paragraph, sentences
from kgqa_core.rewriting.write import different
from kgqa_core.types import Question

CORPUS_STAGE = "corpus"

ACCEPTANCE = 0.8
"""Assumed share of texts from which the QA model answers, for the calls of second and further candidates."""

BLANK = "."
"""Stands for a text whose length alone is known."""

Texts = Mapping[str, Sequence[str] | None]
"""Texts by instruction, in the order in which they are sent to the QA model; None where they are not written yet."""


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

    An imported corpus sends no prompts.  Texts not yet written are assumed to be as long as those that the cache has of
    the same teacher, or as the template's.
    """
    if options.alpaca_file is not None:
        return []
    gold_graphs = _gold_graphs(kg, dkg, questions, options, seed, monitor)
    responses = open_cache(cache) if cache is not None else None
    graphs_by_prompt = one_each(gold_graphs, options)
    if options.teacher == TEMPLATE:
        by_template = write_texts(graphs_by_prompt, None, options, llm, seed=seed, monitor=monitor)
        texts = {key: [each.text for each in own if each.reason is None] for key, own in by_template.items()}
        return [_qa(gold_graphs, texts, Measured(), options, llm, responses)]
    found, measured, written = _teacher(graphs_by_prompt, options, llm, responses)
    return [found, _qa(gold_graphs, written, measured, options, llm, responses)]


def _gold_graphs(
    kg: Path, dkg: Path, questions: Path, options: CorpusOptions, seed: int, monitor: Monitor
) -> tuple[GoldGraph, ...]:
    """The graphs that `corpus.generate` draws."""
    with KgStore.open(kg) as store:
        return draw(
            store, Dkg.open(dkg), read_questions(questions), size=options.size, most_triples=options.most_triples,
            seed=seed, monitor=monitor,
        ).graphs  # fmt: skip


def _teacher(
    graphs_by_prompt: dict[str, GoldGraph], options: CorpusOptions, llm: LlmOptions, cache: ResponseCache | None
) -> tuple[StagePlan, Measured, Texts]:
    count, _ = counter(options.teacher, llm)
    reader, _ = counter(options.qa_model, llm)
    identity, params = identify(options.teacher, llm), teacher_params(options)
    pairs = [(prompt, number) for prompt in graphs_by_prompt for number in range(options.candidates)]
    prompts = [prompt for prompt, _ in pairs]
    held = peek(
        identity, prompts, params, [number for _, number in pairs], cache, attempts=llm.attempts,
        retry_temperature=options.temperature,
    )  # fmt: skip
    chinese = any(language_of(graph.question, options).partition("-")[0] == "zh" for graph in graphs_by_prompt.values())
    opening = opening_of(REWRITE_CHINESE if chinese else REWRITE, "{triples}")
    measured = measure(cache, identity, opening, params, count, reader)
    wanted, candidates = Wanted(), {prompt: list[Completion | None]() for prompt in graphs_by_prompt}
    for (prompt, _), completion in zip(pairs, held, strict=True):
        candidates[prompt].append(completion)
        if completion is None:
            wanted.add(count(prompt), count(by_rule(graphs_by_prompt[prompt], options, 0)))
        else:
            wanted.cached += 1
    found = plan(
        CORPUS_STAGE + "/teacher", options.teacher, wanted, measured, llm, params, attempts=llm.attempts,
        assumed="texts as long as the template's",
    )  # fmt: skip
    return (
        found,
        measured,
        {prompt: _best_first(graphs_by_prompt[prompt], own, options) for prompt, own in candidates.items()},
    )


@dataclass(frozen=True, slots=True)
class _OpenQuestion:
    """A graph that may be sent to the QA model once more.  chance: that it is; text: None where it is not written
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
            _OpenQuestion(graph, chances[graph.question.id], _text(texts[instruction(graph, options)], turn))
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
                    length = teacher.text_base + teacher.text_slope * t1(instruction(each.graph, options))
                    wanted.add(bare + length, _gold(question, count), each.chance, unsure=unsure)
                else:
                    length = count(by_rule(each.graph, options, turn))
                    wanted.add(bare + length, _gold(question, count), each.chance, text=length, unsure=unsure)
            elif each.text and (prompt := qa_prompt(question, each.text)) not in seen:
                wanted.add(count(prompt), _gold(question, count), each.chance, unsure=unsure)
                seen.add(prompt)
    assumed = "answers as long as the shortest gold answer"
    if options.candidates > 1 and guessed:
        assumed += f"; {ACCEPTANCE:.0%} of texts are answered from"
    return plan(CORPUS_STAGE + "/qa", options.qa_model, wanted, measured, llm, params, assumed=assumed, between=ANY)


def _gold(question: Question, count: Counter) -> int:
    """Tokens of the shortest gold answer."""
    return max(1, min((count(names[0]) for names in question.answer_names if names), default=1))


def _text(own: Sequence[str] | None, turn: int) -> str | None:
    """The text of a turn: None where it is not written yet, empty where there is none."""
    return None if own is None else own[turn] if turn < len(own) else ""


def _best_first(
    graph: GoldGraph, completions: Sequence[Completion | None], options: CorpusOptions
) -> list[str] | None:  # fmt: skip
    """The usable texts of a graph in the order of the QA model's prompts; None when one is not written yet."""
    if any(completion is None for completion in completions):
        return None
    language = language_of(graph.question, options)
    good = [
        " ".join(completion.text.split())
        for completion in completions
        if completion is not None and completion.finish not in ("error", "length")
    ]
    return sorted(good, key=lambda text: -validate.faithfulness(text, graph.named, language))


def pilot_corpus(
    kg: Path,
    dkg: Path,
    questions: Path,
    options: CorpusOptions,
    llm: LlmOptions,
    seed: int,
    cache: Path | None,
    number: int,
    budget: Budget | None = None,
    monitor: Monitor = QUIET,
) -> None:
    """Asks teacher and QA model, where they are behind endpoints, about `number` of the questions of a corpus.

    The questions are drawn with the seed from those that `corpus.generate` will send; the completions are the
    same, and the cache keeps them.  A local teacher writes too where the QA model is behind an endpoint.
    Raises as `corpus.generate` does.
    """
    paid = [model for model in (options.teacher, options.qa_model) if at_endpoint(model)]
    if options.alpaca_file is not None or not paid:
        return
    gold_graphs = _gold_graphs(kg, dkg, questions, options, seed, monitor)
    graphs, responses = some(gold_graphs, number, seed), open_cache(cache)
    teacher = None if options.teacher == TEMPLATE else load_model(options.teacher, llm, budget=budget)
    texts = write_texts(
        one_each(graphs, options), teacher, options, llm, seed=seed, cache=responses, monitor=monitor
    )  # fmt: skip
    if at_endpoint(options.qa_model):
        best = [(graph.question, texts[instruction(graph, options)][0]) for graph in graphs]
        pairs = [(question, candidate.text) for question, candidate in best if candidate.reason is None]
        judge(
            load_model(options.qa_model, llm, budget=budget), pairs, llm, cache=responses, monitor=monitor,
            what="pilot answers",
        )  # fmt: skip


SENTENCES_STAGE = "knowledge"


@dataclass(frozen=True)
class Rewriting:
    """What `write` will ask about the facts of a retriever.

    trained: a rewriter is trained on the base, which then reads T1.  split, limit, seed: the questions, as `write`
    draws them.  cache: folder of the response cache.  Methods raise as `write` does.
    """

    kg: Path
    questions: Path
    facts: Path
    retriever: str
    options: RewriterOptions
    llm: LlmOptions
    language: str | None = None
    trained: bool = False
    split: str | None = None
    limit: int | None = None
    seed: int = 0
    cache: Path | None = None

    def plan(self) -> StagePlan:
        """Each different prompt once, less what the cache holds; texts as long as its texts, or as the template's."""
        groups, options = self._groups(), self.options
        texts = {group.prompt(language, self._wording): paragraph(sentences(group.named, language), language)
                 for group, language in groups}  # fmt: skip
        count, _ = counter(options.base, self.llm)
        prompts, params, wanted = different(groups, self._wording), parameters(options), Wanted()
        identity = None if self.trained else identify(options.base, self.llm)
        responses = open_cache(self.cache) if self.cache is not None else None
        for prompt, held in zip(prompts, peek(identity, prompts, params, None, responses), strict=True):
            if held is None:
                wanted.add(count(prompt), count(texts[prompt]))
            else:
                wanted.cached += 1
        chinese = any(language.partition("-")[0] == "zh" for _, language in groups)
        template = DESCRIBE if self._wording == "mvp2022" else REWRITE_CHINESE if chinese else REWRITE
        measured = Measured()
        if identity is not None:
            measured = measure(responses, identity, opening_of(template, "{triples}"), params, count)
        stage, assumed = f"{SENTENCES_STAGE} {self.retriever}/rewritten", "texts as long as the template's"
        return plan(stage, options.base, wanted, measured, self.llm, params, assumed=assumed)

    def pilot(self, number: int, budget: Budget | None = None, monitor: Monitor = QUIET) -> None:
        """Asks the base, where it is behind an endpoint, for `number` of the texts, which the cache keeps."""
        if not self.trained:
            prompts = different(self._groups(), self._wording)
            ask_some(
                self.options.base, prompts, parameters(self.options), number, self.llm, seed=self.seed,
                cache=self.cache, budget=budget, monitor=monitor,
            )  # fmt: skip

    @property
    def _wording(self) -> str:
        return wording_of(self.options, trained=self.trained)

    def _groups(self) -> list[tuple[TripleGroup, str]]:
        found = read_groups(self.kg, self.questions, self.facts, self.retriever, self.language)
        wanted = {question for question, _, _ in found}
        if self.split is not None:
            chosen = choose(read_questions(self.questions), self.split, self.limit, self.seed)
            wanted = {question.id for question in chosen}
        return [(group, language) for question, language, own in found if question in wanted for group in own]
