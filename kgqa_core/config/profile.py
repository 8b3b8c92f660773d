"""The profile: every parameter of a run, and what follows from several of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from pydantic import BaseModel, Field, model_validator

from kgqa_core.config.answerability import AbstentionOptions, AnswerabilityOptions
from kgqa_core.config.answering import AnsweringOptions, SymbolicOptions
from kgqa_core.config.base import Execution
from kgqa_core.config.evaluation import EvaluationOptions
from kgqa_core.config.experiment import PASSAGES, TOPICS, Answerer, Knowledge, RetrieverVariant
from kgqa_core.config.exploring import AgentOptions, ConstrainedOptions
from kgqa_core.config.kg import DkgOptions, KgOptions
from kgqa_core.config.label_parser import LabelParserOptions
from kgqa_core.config.linking import LinkingOptions
from kgqa_core.config.llm import LlmOptions
from kgqa_core.config.ltgen import LtgenOptions
from kgqa_core.config.operations import OperationsOptions
from kgqa_core.config.parsing import ParsingOptions
from kgqa_core.config.passages import PassagesOptions
from kgqa_core.config.questions import QuestionsOptions
from kgqa_core.config.retrieval import (
    RetrievalOptions,
    RetrieverSection,
    RetrieverSections,
    baseline_names,
    retriever_sections,
)
from kgqa_core.config.rewriting import CorpusOptions, RewriterOptions
from kgqa_core.config.tracking import TrackingOptions
from kgqa_core.errors import ConfigError


class Profile(RetrieverSections):
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
    further_questions: tuple[QuestionsOptions, ...] = ()
    """Further question sets over the same graph, each under a name of its own: one run answers and scores every set,
    and puts all of them into one table.  A list under `questions` is its first set and these."""
    sets: Execution[tuple[str, ...]] = ()
    """Names of those question sets of a list that a run takes; empty takes all of them."""
    questions_train: Literal["each", "union"] = "each"
    """Of several question sets `each` trains retrievers of its own, as the papers do; with `union` all sets share
    retrievers that are trained on the training questions of all, without those that any set tests."""
    trained_on: tuple[QuestionsOptions, ...] = ()
    """Filled in for one set of a run with `questions_train: union`: the sets that its retrievers are trained on."""
    linking: LinkingOptions = LinkingOptions()
    retrieval: RetrievalOptions = RetrievalOptions()
    passages: PassagesOptions = PassagesOptions()
    llm: LlmOptions = LlmOptions()
    corpus: CorpusOptions = CorpusOptions()
    rewriter: RewriterOptions = RewriterOptions()
    symbolic: SymbolicOptions = SymbolicOptions()
    label_parser: LabelParserOptions = LabelParserOptions()
    answering: AnsweringOptions = AnsweringOptions()
    agent: AgentOptions = AgentOptions()
    gcr: ConstrainedOptions = ConstrainedOptions()
    evaluation: EvaluationOptions = EvaluationOptions()
    operations: OperationsOptions = OperationsOptions()
    tracking: TrackingOptions = TrackingOptions()
    ltgen: LtgenOptions = LtgenOptions()
    parsing: ParsingOptions = ParsingOptions()
    answerability: AnswerabilityOptions = AnswerabilityOptions()
    abstention: AbstentionOptions = AbstentionOptions()

    @model_validator(mode="before")
    @classmethod
    def _retrievers_of_answerers(cls, given: Any) -> Any:
        """What explores the graph starts from the retriever `topics`, which is added to the retrievers.

        Where no retrievers are listed, those that learn and that no answerer reads are left out.
        """
        if not isinstance(given, Mapping):
            return given
        answering, retrieval = (_plain(given.get(name)) for name in ("answering", "retrieval"))
        listed = answering.get("answerers") or ()
        named = [answering.get("answerer"), *(answering.get("more") or ())]
        named += listed if isinstance(listed, list | tuple) else ()
        retrievers = retrieval.get("retrievers", RetrievalOptions().retrievers)
        if not isinstance(retrievers, list | tuple) or isinstance(given.get("retrieval"), str | list | tuple):
            return given
        answerers = [Answerer.parse(name) for name in named if isinstance(name, str)]
        read = list(retrievers)
        if "retrievers" not in retrieval and answerers and all(one.computes or one.explores for one in answerers):
            knowledge = answering.get("knowledge", AnsweringOptions().knowledge)
            names = [str(name).partition("/")[0].partition("@")[0] for name in knowledge or ()]
            computed = _retriever_of_auto(names) if any(one.computes for one in answerers) else ""
            read = [name for name in read if name in (computed, *baseline_names())]
        if any(one.explores for one in answerers) and TOPICS not in read:
            read.append(TOPICS)
        return given if read == list(retrievers) else {**given, "retrieval": {**retrieval, "retrievers": read}}

    @model_validator(mode="before")
    @classmethod
    def _listed_sets(cls, given: Any) -> Any:
        """`questions: [A, B]` is `questions: A` and `further_questions: [B]`."""
        listed = given.get("questions") if isinstance(given, Mapping) else None
        if not isinstance(listed, list | tuple):
            return given
        if not listed:
            raise ValueError("questions is an empty list; name a question set, or leave it out")
        if given.get("further_questions"):
            raise ValueError("questions lists all question sets, so leave out further_questions")
        wanted, names = given.get("sets"), [_plain(one).get("name") for one in listed]
        if isinstance(wanted, list | tuple) and wanted and all(name in names for name in wanted):
            listed = [one for one, name in zip(listed, names, strict=True) if name in wanted]
        return {**given, "questions": listed[0], "further_questions": tuple(listed[1:])}

    @model_validator(mode="after")
    def _sets_have_names(self) -> Profile:
        names = [options.name for options in (self.questions, *self.further_questions)]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"several question sets are named {', '.join(twice)}; give each a name of its own")
        if unknown := [name for name in self.sets if name not in names]:
            raise ValueError(f"sets names {unknown[0]!r}, which is none of {', '.join(names)}")
        return self

    @model_validator(mode="after")
    def _something_to_compute_from(self) -> Profile:
        for variant in self.each_answerer:
            if variant.computes and variant.answering.knowledge and not variant.knowledge:
                field = "answerer" if variant.answering.answerer == self.answering.answerer else "more"
                raise ValueError(
                    f"answering.{field} {variant.answering.answerer!r} computes from a retriever's facts, and "
                    f"answering.knowledge names only {', '.join(self.answering.knowledge)}; add rigel or hop_path to it"
                )
        return self

    @model_validator(mode="after")
    def _known_variants(self) -> Profile:
        for name in self.answering.knowledge:
            plain, at, variant = name.partition("/")[0].partition("@")
            if not at:
                continue
            if variant != "linked" or plain in (*baseline_names(), "none", PASSAGES):
                always = f"{plain} always starts from gold topics"
                why = always if variant == "linked" else "the one variant is @linked"
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
        if self.answering.more:
            return tuple(dict.fromkeys(name for item in self.each_answerer for name in item.knowledge))
        if Answerer.parse(self.answering.answerer).explores:
            return tuple(f"{variant}/triples" for variant in self.retrieval.variants(TOPICS))
        listed = [Knowledge.parse(name) for name in self.answering.knowledge]
        if self.computes:
            listed = _of_one_retriever([replace(item, format="triples") for item in listed if not item.graphless])
        chosen = self.retrieval.topics == "both" and any(item.variant.linked for item in listed)
        names: dict[str, None] = {}
        for item in listed:
            variants = (str(item.variant),) if chosen else self.retrieval.variants(str(item.variant))
            names.update(dict.fromkeys(f"{variant}/{item.format}" for variant in variants))
        return tuple(names)

    def check_knowledge(self) -> None:
        """Raise ConfigError when the language model is to be given facts that no configured retriever collects."""
        collected = sorted(self.retrieval.collected)
        for name in self.knowledge:
            knowledge = Knowledge.parse(name)
            if not knowledge.graphless and str(knowledge.variant) not in collected:
                raise ConfigError(
                    f"answering.knowledge asks for {name!r}, but retrieval.retrievers collects only "
                    f"{', '.join(collected)}; add it there or leave it out here"
                )

    @property
    def each_answerer(self) -> tuple[Profile, ...]:
        """This profile once for each of its answerers, the first one first; each has that answerer alone."""
        names = dict.fromkeys((self.answering.answerer, *self.answering.more))
        update = self.answering.model_copy
        return tuple(
            self.model_copy(update={"answering": update(update={"answerer": name, "more": ()})}) for name in names
        )

    @property
    def set_names(self) -> tuple[str, ...]:
        """Names of the question sets that a run answers, in their order."""
        return tuple(options.name for options in (self.questions, *self.further_questions))

    @property
    def each_set(self) -> tuple[Profile, ...]:
        """This profile once for each of its question sets, in their order; each has that set alone."""
        if not self.further_questions:
            return (self,)
        sets = (self.questions, *self.further_questions)
        trained_on = sets if self.questions_train == "union" else ()
        rest = {"further_questions": (), "trained_on": trained_on, "sets": ()}
        return tuple(self.model_copy(update={"questions": options, **rest}) for options in sets)

    @property
    def computes(self) -> bool:
        """Whether any answerer is `auto`, which needs a label parser."""
        return any(Answerer.parse(name).computes for name in (self.answering.answerer, *self.answering.more))

    @property
    def adapts(self) -> bool:
        """Whether the label parser may learn from the questions, as `label_parser.adapt` says."""
        options, own = self.label_parser, self.questions
        real = own.source != "generated" or own.path is not None or own.also_train is not None
        learns = options.adapt == "always" or options.start == "nothing" or (options.adapt == "auto" and real)
        return self.computes and options.adapt != "never" and learns

    @property
    def explores(self) -> bool:
        """Whether the first answerer explores the graph itself."""
        return Answerer.parse(self.answering.answerer).explores

    @property
    def links_topics(self) -> bool:
        """Whether any retriever starts from linked topics."""
        return any(RetrieverVariant.parse(name).linked for name in self.retrieval.collected)

    @property
    def reads_links(self) -> bool:
        """Whether anything starts or learns from linked topics, so that questions are linked."""
        return self.links_topics or self._starts_softly

    @property
    def links_training(self) -> bool:
        """Whether training questions are linked too: something learns from their links, or they are retrieved for."""
        return self._starts_softly or self.symbolic.parser != "none" or self.retrieval.training

    @property
    def _starts_softly(self) -> bool:
        return self.rigel.soft_start and "rigel" in self.retrieval.retrievers

    @property
    def rewrites(self) -> bool:
        """Whether any knowledge is put into sentences by a language model."""
        return any(Knowledge.parse(name).format == "rewritten" for name in self.answering.knowledge)

    @property
    def reads_passages(self) -> bool:
        """Whether any knowledge holds passages, so that their corpus is needed."""
        return any(Knowledge.parse(name).holds_passages for name in self.answering.knowledge)

    @property
    def learns(self) -> bool:
        """Whether a run trains anything on the questions."""
        trained = {name for section in retriever_sections() for name in section.trained}
        parser = self.adapts and self.label_parser.adapt == "always"
        return bool(trained & set(self.retrieval.retrievers)) or self.trains_rewriter or parser

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


def _plain(section: Any) -> dict[str, Any]:
    """The fields of a section that were given, as a mapping; empty for what is no section."""
    if isinstance(section, BaseModel):
        return {name: getattr(section, name) for name in section.model_fields_set}
    return dict(section) if isinstance(section, Mapping) else {}


def known_keys(model: type[BaseModel] = Profile, prefix: str = "") -> list[str]:
    """Every key of a profile in dotted form, `rigel.hops` for example."""
    keys: list[str] = []
    for name, info in model.model_fields.items():
        kind = info.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            keys += known_keys(kind, f"{prefix}{name}.")
        else:
            keys.append(prefix + name)
    return keys


def _of_one_retriever(listed: list[Knowledge]) -> list[Knowledge]:
    """What `auto` is given of several retrievers: the variants of the one that predicts paths, else of the first."""
    best = _retriever_of_auto([item.retriever for item in listed])
    return [item for item in listed if item.retriever == best]


def _retriever_of_auto(names: Sequence[str]) -> str:
    """The retriever whose facts `auto` reads, of those of its knowledge; empty where there is none."""
    facts = [name for name in names if name not in ("none", PASSAGES)]
    proper = [name for name in facts if name not in baseline_names()] or facts
    return "hop_path" if "hop_path" in proper else "".join(proper[:1])
