"""What a corpus is going to ask: its own functions, which record their prompts, or send some of them for a pilot."""

from __future__ import annotations

from pathlib import Path

from kgqa_core.config import CorpusOptions, LlmOptions
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.dkg.csr import Dkg
from kgqa_core.kg.store import KgStore
from kgqa_core.llm.cache import open_cache
from kgqa_core.llm.factory import load_model
from kgqa_core.llm.forecast import Assumed, Pilot, Recorder, StagePlan, at_endpoint, recorded
from kgqa_core.llm.protocol import LanguageModel
from kgqa_core.monitor import QUIET
from kgqa_core.rewriting.corpus import feedback
from kgqa_core.rewriting.graphs import GoldGraph, draw
from kgqa_core.rewriting.teacher import TEMPLATE, one_each, write_texts
from kgqa_core.workspace import Workspace


def plan_corpus(
    kg: Path, dkg: Path, questions: Path, options: CorpusOptions, llm: LlmOptions, seed: int, cache: Path | None
) -> list[StagePlan]:
    """The plans of teacher and QA model, without what the cache holds; the teacher's is missing for `template`.

    An imported corpus sends no prompts.  Texts not yet written are assumed to be as long as those that the cache has of
    the same teacher, or as the template's.
    """
    if options.alpaca_file is not None:
        return []
    graphs, responses = _gold_graphs(kg, dkg, questions, options, seed), open_cache(cache)

    def record(end: int | None) -> list[Recorder]:
        teachers = []
        if options.teacher != TEMPLATE:
            assumed = Assumed(length="texts as long as the template's")
            teachers = [Recorder("corpus/teacher", options.teacher, llm, end, assumed)]
        assumed = Assumed(length="answers as long as the shortest gold answer")
        reader = Recorder("corpus/qa", options.qa_model, llm, end, assumed, reads=teachers)
        teacher = teachers[0] if teachers else None
        texts = write_texts(one_each(graphs, options), teacher, options, llm, seed=seed, cache=responses)
        feedback(graphs, texts, reader, options, responses, QUIET)
        return [*teachers, reader]

    return recorded(record)


def pilot_corpus(
    workspace: Workspace,
    kg: Path,
    dkg: Path,
    questions: Path,
    options: CorpusOptions,
    llm: LlmOptions,
    seed: int,
    number: int,
) -> None:
    """Sends `number` of the prompts of a corpus to the teacher, and of those with its texts to the QA model.

    Only models behind endpoints are asked, and a local teacher where the QA model is behind one.  The completions are
    those of `corpus.generate`, and the cache keeps them.  Raises as that does.
    """
    if options.alpaca_file is not None or not (at_endpoint(options.teacher) or at_endpoint(options.qa_model)):
        return
    graphs, responses = _gold_graphs(kg, dkg, questions, options, seed), open_cache(workspace.cache)

    def load(spec: str) -> LanguageModel:
        return Pilot(load_model(spec, llm, budget=workspace.budget), number, seed)

    teacher = None if options.teacher == TEMPLATE else load(options.teacher)
    texts = write_texts(
        one_each(graphs, options), teacher, options, llm, seed=seed, cache=responses, monitor=workspace.monitor
    )  # fmt: skip
    if at_endpoint(options.qa_model):
        best_only = options.model_copy(update={"candidates": 1})
        feedback(graphs, texts, load(options.qa_model), best_only, responses, workspace.monitor)


def _gold_graphs(kg: Path, dkg: Path, questions: Path, options: CorpusOptions, seed: int) -> tuple[GoldGraph, ...]:
    """The graphs that `corpus.generate` draws."""
    with KgStore.open(kg) as store:
        return draw(
            store, Dkg.open(dkg), read_questions(questions), size=options.size, max_triples=options.max_triples,
            seed=seed,
        ).graphs  # fmt: skip
