"""The answerers, and the formats of the knowledge that they read.

An answerer is a record of ANSWERERS, a format one of KNOWLEDGE_FORMATS; the stages of a run and `System` both read here
which artifacts they need, what is read of a question and how a batch is answered.  The spellings in a profile are those
of `config.Answerer` and `config.Knowledge`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kgqa_core import prompts
from kgqa_core.config import (
    AGENT,
    AUTO,
    CONSTRAINED,
    PASSAGES,
    Answerer,
    AnsweringOptions,
    Knowledge,
    LlmOptions,
    Options,
    Profile,
)
from kgqa_core.errors import ModelError
from kgqa_core.llm.factory import check_chat, parse_spec
from kgqa_core.llm.protocol import Completion, GenerationParams, LanguageModel
from kgqa_core.types import Question

if TYPE_CHECKING:
    from kgqa_core.symbolic.tables import ComputedAnswer


@dataclass(frozen=True, slots=True)
class AnswerInput:
    """What an answerer reads of one question: its knowledge as text, and what was computed where it computes."""

    question: Question
    text: str
    computed: ComputedAnswer | None = None


@dataclass(frozen=True, slots=True)
class AnswererSpec:
    """An answerer.

    name: as in `Answerer.kind`.  label: for people.  computes: it needs a label parser and knowledge with facts.
    reads: a language model writes the answer from the knowledge.  explores: the kinds of language models with which it
    explores the graph from the topics, by the options of its own section; what it finds is written as computed answers
    (`answering.explore`).  explorer: module and class that does so, loaded when named.  needs_why: what it does with
    its model, for who names a model of another kind.  complete: the completions of a batch, in its order; the model is
    None where `reads` is False.
    """

    name: str
    label: str
    computes: bool
    reads: bool
    complete: Callable[[Sequence[AnswerInput], LanguageModel | None, AnsweringOptions], list[Completion]]
    explores: tuple[str, ...] = ()
    explorer: str = ""
    needs_why: str = ""

    def section(self, profile: Profile) -> Options:
        """Its own options in a profile, where it explores."""
        own: Options = getattr(profile, self.name)
        return own


def answer_prompt(question: Question, text: str, options: AnsweringOptions) -> str:
    """The prompt of a question in the wording of options.template; a blank text is no knowledge."""
    return prompts.answer_prompt(question.text, text if text.strip() else None, options.template, question.dialogue)


def generation_params(options: AnsweringOptions) -> GenerationParams:
    """How answers are written: greedily."""
    return GenerationParams(max_new_tokens=options.max_new_tokens, log_probabilities=options.log_probabilities)


def _complete_with_model(
    batch: Sequence[AnswerInput], model: LanguageModel | None, options: AnsweringOptions
) -> list[Completion]:
    assert model is not None
    written = [answer_prompt(one.question, one.text, options) for one in batch]
    unique = list(dict.fromkeys(written))
    completions = dict(zip(unique, model.generate(unique, generation_params(options)), strict=True))
    return [completions[prompt] for prompt in written]


def _complete_with_results(
    batch: Sequence[AnswerInput], model: LanguageModel | None, options: AnsweringOptions
) -> list[Completion]:
    from kgqa_core.symbolic.answer import listed

    return [Completion(listed(one.computed.answers) if one.computed is not None else "", "stop") for one in batch]


ANSWERERS: Mapping[str, AnswererSpec] = {
    spec.name: spec
    for spec in (
        AnswererSpec("model", "a language model", False, True, _complete_with_model),
        AnswererSpec(AUTO, "all roads", True, False, _complete_with_results),
        AnswererSpec(
            AGENT,
            "an agent over the graph",
            False,
            False,
            _complete_with_results,
            ("openai",),
            "kgqa_core.papers.peers.agent.explorer:GraphAgent",
            "calls tools of an endpoint",
        ),  # fmt: skip
        AnswererSpec(
            CONSTRAINED,
            "graph-constrained decoding",
            False,
            False,
            _complete_with_results,
            ("hf", "builtin"),
            "kgqa_core.papers.peers.constrained.explorer:ConstrainedReasoner",
            "masks the tokens of a local model",
        ),
    )
}
"""By `Answerer.kind`."""


def answerer_spec(answerer: str) -> AnswererSpec:
    """The record of an answerer as a profile names it, such as `auto:openai:m`."""
    return ANSWERERS[Answerer.parse(answerer).kind]


def check_explorer(answerer: str, llm: LlmOptions) -> None:
    """Raise ModelError where the model of an answerer cannot explore, by its kind or its endpoint; others pass."""
    parsed = Answerer.parse(answerer)
    kinds, why = ANSWERERS[parsed.kind].explores, ANSWERERS[parsed.kind].needs_why
    if kinds and parse_spec(str(parsed.model), llm)[0] not in kinds:
        raise ModelError(
            f"answerer {answerer!r} {why}, and {parsed.model!r} is none; write {parsed.kind}:{kinds[0]}:MODEL"
        )
    if kinds:
        check_chat(str(parsed.model), llm)


def model_spec(answerer: str) -> str:
    """The name of the language model of an answerer; that of one without a model is its own."""
    return Answerer.parse(answerer).model or answerer


def wording_model(answerer: str) -> str | None:
    """The language model that puts computed answers into words, that of `auto:MODEL`; None for all others."""
    parsed = Answerer.parse(answerer)
    return parsed.model if parsed.kind == AUTO else None


def answerer_name(answerer: str, model: str) -> str:
    """How experiments name an answerer with the model that it loaded; what words the answers of `auto` is left out.

    >>> answerer_name("auto:builtin", ""), answerer_name("builtin", "builtin"), answerer_name("agent:openai:m", "")
    ('auto', 'builtin', 'agent:openai:m')
    """
    parsed = Answerer.parse(answerer)
    return AUTO if parsed.computes else str(parsed) if parsed.explores else model


@dataclass(frozen=True, slots=True)
class KnowledgeSpec:
    """A format of knowledge.

    label: what tables put behind the name of its retriever.  facts, passages: whether it holds a retriever's facts, and
    passages of a corpus.  sentences: the facts are written as sentences.  rewriter: by a language model.  extra: of
    kgqa that it needs (`extras.EXTRAS`).
    """

    name: str
    label: str = ""
    facts: bool = False
    passages: bool = False
    sentences: bool = False
    rewriter: bool = False
    extra: str | None = None


KNOWLEDGE_FORMATS: Mapping[str, KnowledgeSpec] = {
    spec.name: spec
    for spec in (
        KnowledgeSpec("none"),
        KnowledgeSpec(PASSAGES, passages=True, extra="passages"),
        KnowledgeSpec("triples", facts=True),
        KnowledgeSpec("template", " (template)", facts=True, sentences=True),
        KnowledgeSpec("rewritten", " (rewritten)", facts=True, sentences=True, rewriter=True),
        KnowledgeSpec("both", " and passages", facts=True, passages=True, extra="passages"),
    )
}
"""Formats by name, in the order of the tables."""


def knowledge_spec(knowledge: str) -> KnowledgeSpec:
    """The format of `retriever/format`.  Raises ConfigError for an unknown one."""
    return KNOWLEDGE_FORMATS[Knowledge.parse(knowledge).format]
