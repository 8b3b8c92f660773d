"""A few questions of a corpus, asked before the rest is forecast."""

from __future__ import annotations

from pathlib import Path

from kgqa_core.config import CorpusOptions, LlmOptions
from kgqa_core.datasets.question import read_questions
from kgqa_core.dkg.csr import Dkg
from kgqa_core.kg.store import KgStore
from kgqa_core.llm.budget import Budget
from kgqa_core.llm.cache import open_cache
from kgqa_core.llm.factory import load_model
from kgqa_core.llm.pilot import at_endpoint, some
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.rewriting.graphs import draw
from kgqa_core.rewriting.teacher import TEMPLATE, instruction, judge, one_each, write_texts


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

    The questions are drawn with the seed from those that `corpus.generate` will ask about; the completions are the
    same, and the cache keeps them.  A local teacher writes too where the QA model is behind an endpoint.
    Raises as `corpus.generate` does.
    """
    paid = [model for model in (options.teacher, options.qa_model) if at_endpoint(model)]
    if options.alpaca_file is not None or not paid:
        return
    with KgStore.open(kg) as store:
        drawn = draw(
            store, Dkg.open(dkg), read_questions(questions), size=options.size, most_triples=options.most_triples,
            seed=seed, monitor=monitor,
        )  # fmt: skip
    graphs, responses = some(drawn.graphs, number, seed), open_cache(cache)
    teacher = None if options.teacher == TEMPLATE else load_model(options.teacher, llm, budget=budget)
    texts = write_texts(
        one_each(graphs, options), teacher, options, llm, seed=seed, cache=responses, monitor=monitor
    )  # fmt: skip
    if at_endpoint(options.qa_model):
        best = [(graph.question, texts[instruction(graph, options)][0]) for graph in graphs]
        told = [(question, candidate.text) for question, candidate in best if candidate.reason is None]
        judge(
            load_model(options.qa_model, llm, budget=budget), told, llm, cache=responses, monitor=monitor,
            what="pilot answers",
        )  # fmt: skip
