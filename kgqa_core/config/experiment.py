"""Retriever variants, knowledge, answerers and experiments as values; only they know how each is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kgqa_core.errors import ConfigError

FORMATS = ("none", "triples", "template", "rewritten", "both")
"""Forms of knowledge: none, triple-form text, sentences by rule, sentences by the rewriter, triples and passages."""

PASSAGES = "passages"
"""Knowledge that comes from text: its name as retriever and as format."""

Topics = Literal["gold", "linked"]
"""Entities that a retriever starts from: those of the question file, or those that the tagger finds in the text."""

AUTO = "auto"
"""The answerer that computes without a language model, from the forms of all roads."""

AGENT, CONSTRAINED = "agent", "gcr"
"""The answerers in which a language model explores the graph itself: by operations on it, and by decoding its paths."""

TOPICS = "topics"
"""The retriever of no facts, from whose topics such answerers start."""

ANSWERER_KINDS = (AUTO, AGENT, CONSTRAINED)
"""Of `Answerer.kind`; what begins otherwise is the name of a language model."""

_LINKED = "@linked"


@dataclass(frozen=True, slots=True)
class _FromTopics:
    """What has a retriever and the topics that it starts from."""

    retriever: str
    topics: Topics = "gold"

    @property
    def variant(self) -> RetrieverVariant:
        """The retriever and its topics; facts are collected under this name."""
        return RetrieverVariant(self.retriever, self.topics)

    @property
    def linked(self) -> bool:
        """Whether the retriever starts from linked topics."""
        return self.topics == "linked"


@dataclass(frozen=True, slots=True)
class RetrieverVariant(_FromTopics):
    """A retriever and the topics that it starts from, written `rigel` or `rigel@linked`."""

    @classmethod
    def parse(cls, name: str) -> RetrieverVariant:
        """The variant of a written name; a name of neither form is a retriever's own."""
        return cls(name.removesuffix(_LINKED), "linked" if name.endswith(_LINKED) else "gold")

    def __str__(self) -> str:
        return self.retriever + (_LINKED if self.topics == "linked" else "")


@dataclass(frozen=True, slots=True)
class Knowledge(_FromTopics):
    """What a language model reads, written `rigel@linked/triples`: whose facts, from which topics, in which format."""

    format: str = "triples"

    @classmethod
    def parse(cls, name: str) -> Knowledge:
        """The value of an entry of `answering.knowledge`; a retriever alone means its triples.

        Raises ConfigError for a format that is unknown.

        >>> [str(Knowledge.parse(name)) for name in ("rigel@linked", "none", "passages")]
        ['rigel@linked/triples', 'none/none', 'passages/passages']
        """
        written, slash, form = name.partition("/")
        formats = {"none": "none", PASSAGES: PASSAGES}
        if not slash or (written == "none" and not form):
            form = formats.get(written, "triples")
        if (form not in (*FORMATS, PASSAGES)) or formats.get(written) != (form if form in formats.values() else None):
            raise ConfigError(
                f"answering.knowledge {name!r} has no known format; write none, passages, or retriever/format with a "
                f"format among {', '.join(FORMATS[1:])}"
            )
        variant = RetrieverVariant.parse(written)
        return cls(variant.retriever, variant.topics, form)

    def __str__(self) -> str:
        return f"{self.variant}/{self.format}"

    @property
    def short(self) -> str:
        """The name of its artifacts: a retriever's triples, and no knowledge, go without their format."""
        return str(self.variant) if self.format in ("triples", "none") else str(self)

    @property
    def graphless(self) -> bool:
        """Whether it holds no facts of the graph."""
        return self.retriever in ("none", PASSAGES)

    @property
    def holds_passages(self) -> bool:
        """Whether it holds passages of text."""
        return self.format in ("both", PASSAGES)


@dataclass(frozen=True, slots=True)
class Answerer:
    """How answers are made, written `builtin`, `openai:gpt@endpoint`, `auto`, `auto:MODEL`,
    `agent:openai:MODEL` or `gcr:hf:MODEL`.

    kind: `model` reads knowledge; the others are those of ANSWERER_KINDS: `auto` ranks what all roads propose, `agent`
    explores the graph by operations, `gcr` decodes paths of the graph.  model: the written name of the language model,
    None for `auto` alone; that of `auto` words the answer and does not change it.
    """

    kind: str
    model: str | None = None

    @classmethod
    def parse(cls, spec: str) -> Answerer:
        """The value of `answering.answerer`."""
        kind, _, model = spec.strip().partition(":")
        if kind not in ANSWERER_KINDS:
            return cls("model", spec)
        return cls(kind, model or (None if kind == AUTO else ""))

    def __str__(self) -> str:
        if self.model is None:
            return self.kind
        return self.model if self.kind == "model" else f"{self.kind}:{self.model}"

    @property
    def computes(self) -> bool:
        """Whether answers are computed from facts, without a language model that reads them."""
        return self.kind == AUTO

    @property
    def explores(self) -> bool:
        """Whether a language model explores the graph from the topics, so that no retriever's facts are read."""
        return self.kind in (AGENT, CONSTRAINED)


@dataclass(frozen=True, slots=True)
class Experiment(_FromTopics):
    """What a score belongs to, written `rigel@linked/triples/openai:gpt@endpoint`.

    format and answerer are `-` where a retriever is scored alone; `linked/-/-` is linking itself.
    """

    format: str = "-"
    answerer: str = "-"

    @classmethod
    def parse(cls, name: str) -> Experiment:
        """The value of a written name; the answerer's name may hold slashes, and what is not written is `-`."""
        written, form, answerer = ([*name.split("/", 2), "-", "-"])[:3]
        variant = RetrieverVariant.parse(written)
        return cls(variant.retriever, variant.topics, form, answerer)

    def __str__(self) -> str:
        return f"{self.variant}/{self.format}/{self.answerer}"

    @property
    def alone(self) -> bool:
        """Whether a retriever is scored, without an answerer."""
        return (self.format, self.answerer) == ("-", "-")

    @property
    def without_knowledge(self) -> bool:
        """Whether the model answers without knowledge."""
        return (self.retriever, self.format) == ("none", "none")
