"""The profile: every parameter of a run, and what follows from several of them."""

from __future__ import annotations

from pydantic import BaseModel, Field, model_validator

from kgqa_core.config.answerability import AbstentionOptions, AnswerabilityOptions
from kgqa_core.config.answering import AnsweringOptions, OperatorOptions, SymbolicOptions
from kgqa_core.config.base import Options
from kgqa_core.config.evaluation import EvaluationOptions
from kgqa_core.config.experiment import LINKED, PASSAGES, SYMBOLIC, split_answerer, split_knowledge
from kgqa_core.config.kg import DkgOptions, KgOptions
from kgqa_core.config.linking import LinkingOptions
from kgqa_core.config.llm import LlmOptions
from kgqa_core.config.ltgen import LtgenOptions
from kgqa_core.config.operations import OperationsOptions
from kgqa_core.config.parsing import ParsingOptions
from kgqa_core.config.passages import PassagesOptions
from kgqa_core.config.questions import QuestionsOptions
from kgqa_core.config.retrieval import (
    HopPathOptions,
    RelationRankingOptions,
    RetrievalOptions,
    RetrieverOptions,
    RetrieverSection,
    baseline_names,
    retriever_sections,
)
from kgqa_core.config.rewriting import CorpusOptions, RewriterOptions


class Profile(Options):
    """Every parameter of a run."""

    name: str = "run"
    """Name of the profile."""
    description: str = ""
    """One sentence on what the profile is for."""
    seed: int = Field(default=7, ge=0)
    """Seed of everything that draws."""
    kg: KgOptions = KgOptions()
    dkg: DkgOptions = DkgOptions()
    questions: QuestionsOptions = QuestionsOptions()
    retriever: RetrieverOptions = RetrieverOptions()
    hop_path: HopPathOptions = HopPathOptions()
    linking: LinkingOptions = LinkingOptions()
    retrieval: RetrievalOptions = RetrievalOptions()
    relation_ranking: RelationRankingOptions = RelationRankingOptions()
    passages: PassagesOptions = PassagesOptions()
    llm: LlmOptions = LlmOptions()
    corpus: CorpusOptions = CorpusOptions()
    rewriter: RewriterOptions = RewriterOptions()
    operator: OperatorOptions = OperatorOptions()
    symbolic: SymbolicOptions = SymbolicOptions()
    answering: AnsweringOptions = AnsweringOptions()
    evaluation: EvaluationOptions = EvaluationOptions()
    operations: OperationsOptions = OperationsOptions()
    ltgen: LtgenOptions = LtgenOptions()
    parsing: ParsingOptions = ParsingOptions()
    answerability: AnswerabilityOptions = AnswerabilityOptions()
    abstention: AbstentionOptions = AbstentionOptions()

    @model_validator(mode="after")
    def _something_to_compute_from(self) -> Profile:
        if self.computes and self.answering.knowledge and not self.knowledge:
            raise ValueError(
                f"answering.answerer {self.answering.answerer!r} computes from a retriever's facts, and "
                f"answering.knowledge names only {', '.join(self.answering.knowledge)}; add rigel or hop_path to it"
            )
        return self

    @model_validator(mode="after")
    def _known_variants(self) -> Profile:
        for name in self.answering.knowledge:
            retriever = name.partition("/")[0]
            plain, at, variant = retriever.partition("@")
            if not at:
                continue
            if at + variant != LINKED or plain in (*baseline_names(), "none", PASSAGES):
                why = (
                    f"{plain} always starts from gold topics"
                    if at + variant == LINKED
                    else f"the one variant is {LINKED}"
                )
                raise ValueError(f"answering.knowledge {name!r} names no retriever: {why}; write {plain!r}")
            if self.retrieval.topics == "gold":
                raise ValueError(
                    f"answering.knowledge {name!r} needs linked topics; set retrieval.topics to linked or both"
                )
        return self

    @property
    def knowledge(self) -> tuple[str, ...]:
        """What the answering model reads, each `retriever/format` once, in the variants that `retrieval.topics` wants.

        Where both variants are collected, a list that names any with `@linked` itself is read as it stands.
        """
        listed = [split_knowledge(name) for name in self.answering.knowledge]
        if self.computes:
            listed = [(retriever, form) for retriever, form in listed if retriever not in ("none", PASSAGES)]
        if self.answering.answerer == SYMBOLIC:
            listed = [(retriever, "triples") for retriever, _ in listed]
        chosen = self.retrieval.topics == "both" and any(name.endswith(LINKED) for name, _ in listed)
        found: dict[str, None] = {}
        for retriever, form in listed:
            names = (retriever,) if chosen else self.retrieval.variants(retriever)
            found.update(dict.fromkeys(f"{name}/{form}" for name in names))
        return tuple(found)

    @property
    def computes(self) -> bool:
        """Whether answers are computed, alone or for a language model to read."""
        return split_answerer(self.answering.answerer)[0] != "model"

    @property
    def links_topics(self) -> bool:
        """Whether any retriever starts from linked topics."""
        return any(name.endswith(LINKED) for name in self.retrieval.collected)

    @property
    def reads_links(self) -> bool:
        """Whether anything starts or learns from linked topics, so that questions are linked."""
        return self.links_topics or (self.retriever.soft_start and "rigel" in self.retrieval.retrievers)

    @property
    def rewrites(self) -> bool:
        """Whether any knowledge is put into sentences by a language model."""
        return any(split_knowledge(name)[1] == "rewritten" for name in self.answering.knowledge)

    @property
    def reads_passages(self) -> bool:
        """Whether any knowledge holds passages, so that their corpus is needed."""
        return any(split_knowledge(name)[1] in (PASSAGES, "both") for name in self.answering.knowledge)

    @property
    def learns(self) -> bool:
        """Whether a run trains anything on the questions."""
        trained = {name for section in retriever_sections() for name in section.trained}
        return bool(trained & set(self.retrieval.retrievers)) or self.trains_rewriter or self.computes

    @property
    def hop_limits(self) -> list[tuple[str, int | None]]:
        """The largest numbers of hops of the retrievers that a run trains, by key; None is not set."""
        sections = {key: getattr(self, key) for key in type(self).model_fields}
        return [
            limit
            for key, section in sections.items()
            if isinstance(section, RetrieverSection)
            for limit in section.hop_limits(key, self.retrieval.retrievers)
        ]

    @property
    def needed_splits(self) -> dict[str, str]:
        """The splits in which a run needs questions, each with what for."""
        needs = (
            {"train": "models learn from it", "dev": "it chooses the best pass of a training"} if self.learns else {}
        )
        return needs | {self.answering.split: "its questions are answered and scored"}

    @property
    def trains_rewriter(self) -> bool:
        """Whether the model that puts knowledge into sentences is trained for it, so that a corpus is needed."""
        return self.rewrites and self.rewriter.adapt


def known_keys(model: type[BaseModel] = Profile, prefix: str = "") -> list[str]:
    """Every key of a profile in dotted form, `retriever.hops` for example."""
    keys: list[str] = []
    for name, info in model.model_fields.items():
        kind = info.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            keys += known_keys(kind, f"{prefix}{name}.")
        else:
            keys.append(prefix + name)
    return keys
