"""Options of retrieval, and a class of options for each retriever."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, PositiveInt, field_validator, model_validator

from kgqa_core.config.base import EncoderOptions, Execution, LayeredEncoderOptions, Options, TrainingOptions
from kgqa_core.config.experiment import TOPICS, RetrieverVariant
from kgqa_core.errors import nearest


class RetrieverSection(Options):
    """Options of one or several retrievers; `kgqa_core.retrieval.registry` has the same names.

    names: of the retrievers.  trained: those of them that a run trains on its questions.  baseline: they start from the
    gold topics, whatever `retrieval.topics` says.  hop_limit: the field that limits the hops of a trained one.
    """

    names: ClassVar[tuple[str, ...]] = ()
    trained: ClassVar[tuple[str, ...]] = ()
    baseline: ClassVar[bool] = False
    hop_limit: ClassVar[str | None] = None

    def hop_limits(self, key: str, retrievers: Collection[str]) -> list[tuple[str, int | None]]:
        """The largest number of hops by its key, where one of some retrievers has one.  key: of the section."""
        if self.hop_limit is None or not set(self.trained) & set(retrievers):
            return []
        return [(f"{key}.{self.hop_limit}", getattr(self, self.hop_limit))]


def retriever_sections() -> tuple[type[RetrieverSection], ...]:
    """The classes of options of all retrievers."""
    return tuple(RetrieverSection.__subclasses__())


def retriever_names() -> list[str]:
    """Names of all retrievers."""
    return [name for section in retriever_sections() for name in section.names]


def baseline_names() -> list[str]:
    """Names of the retrievers that always start from gold topics."""
    return [name for section in retriever_sections() if section.baseline for name in section.names]


class BaselineOptions(RetrieverSection):
    """The baselines, which have no options of their own: random facts, those of the relation most frequent in training,
    and those of gold paths."""

    names = ("random", "frequent", "oracle")
    baseline = True


class TopicsOptions(RetrieverSection):
    """The topics alone, without facts, for answerers that explore the graph themselves; it has no options."""

    names = (TOPICS,)


class RigelOptions(RetrieverSection, LayeredEncoderOptions, TrainingOptions):
    """The Rigel retriever and its training."""

    names = trained = ("rigel",)
    hop_limit = "hops"

    decoder: Literal["layer", "label"] = "layer"
    """`layer` has one output for each relation of the graph it is trained on; `label` scores relations by the encoded
    text of their labels, so that relations added later can be used without training."""
    hops: int | None = Field(default=None, ge=1, le=4)
    """Largest number of hops; without a number, what the training questions need (their annotated relation paths, else
    the distance to their answers), at least 2 and at most 4."""
    loss: Literal["bce", "normalised"] = "bce"
    """`bce` is the paper's; `normalised` maximises the share of the answers in the retrieved mass."""
    exclude_topic: bool = False
    """Take the topic entities out of the entity set after each hop."""
    soft_start: bool = False
    """Learn from linked questions: start at the candidates of their mentions, with weights that are learnt from the
    linker's confidence, the question, and the candidate's popularity, types and description.  Topics that are given
    for certain keep the weight 1."""
    candidates: int = Field(default=3, ge=1)
    """Candidates of a mention that a soft start begins at, best first."""
    intersect: Literal["none", "product", "min"] = "none"
    """Follow each topic of a question apart, with relations of its own, and mix the union of what they lead to with the
    intersection: the product of the entities' weights or the smallest; how much of each is learnt."""
    mix: dict[str, float] = {}
    """How often a pass takes each question of a set of `questions.more`, by the set's name: 0.5 draws half of them, 2
    takes each twice; 1 where a set is not named."""
    feedback: Execution[str | None] = None
    """An earlier run of the home whose right answers speak for relation paths: its id or the beginning of it.  Only
    answers to training questions count (`retrieval.training=true answering.split=train` in that run)."""
    feedback_weight: float = Field(default=0.3, ge=0)
    """Weight in the loss of the paths that `feedback` speaks for."""
    encoder_learning_rate: float = Field(default=1.5e-4, gt=0)
    """Peak learning rate of a pretrained encoder; 5e-5 serves where all layers learn."""
    epochs: PositiveInt = 6
    """Largest number of passes over the training questions; more where they make less than `min_steps` steps."""
    min_steps: int = Field(default=300, ge=1)
    """Steps that a small question set trains for, by further passes; patience grows alike."""
    batch_size: PositiveInt = 32
    """Questions in one step."""

    @model_validator(mode="after")
    def _legs_need_a_mask(self) -> Self:
        if self.intersect != "none" and not self.mask_topic:
            raise ValueError(
                f"intersect={self.intersect} reads a question once for each topic, told apart by what stands for its "
                "mention; set mask_topic=true or intersect=none"
            )
        return self


class HopPathOptions(RetrieverSection, LayeredEncoderOptions, TrainingOptions):
    """The path retriever of Retrieve-Rewrite-Answer and its training (Wu et al. 2023, section 3.1)."""

    names = trained = ("hop_path",)
    hop_limit = "max_hops"

    encoder_learning_rate: float = Field(default=1.5e-4, gt=0)
    """Peak learning rate of a pretrained encoder; 5e-5 serves where all layers learn."""
    max_hops: int | None = Field(default=None, ge=1, le=4)
    """Largest number of hops; without a number, what the training questions need, as for `rigel.hops`."""
    gold_hops: bool = False
    """Take the number of hops from the question where it is given, as the paper does on MetaQA."""
    beam: int = Field(default=5, ge=1)
    """Relations kept for every partial path (K)."""
    reasoning_paths: int = Field(default=5, ge=1)
    """Grounded paths kept of a question (M)."""
    sampling: Literal["proportional", "sequential"] = "proportional"
    """How these places are filled: `proportional` divides them between the predicted relation paths by their scores;
    `sequential`, as published, takes the chains of the best path, then those of the next, until there are enough."""
    named_first: bool = True
    """Among the chains of a path, and among the entities that it leads to, those behind an entity that the question
    names come first.  The paper has no such rule."""
    searched_paths: int = Field(default=3, ge=0)
    """Gold paths searched in the graph for a training question that has answers and no annotated path; 0 searches
    none."""
    shared_encoder: bool = True
    """Whether the classifiers of hops and of relations read the states of one encoder; with false each has its own, as
    in the published code."""


class TransferNetOptions(RetrieverSection, EncoderOptions, TrainingOptions):
    """The TransferNet retriever and its training (Shi et al. 2021)."""

    names = trained = ("transfernet",)
    hop_limit = "hops"

    hops: int | None = Field(default=None, ge=1, le=4)
    """Number of steps (T); without a number, what the training questions need, as for `rigel.hops`."""
    relation_scores: Literal["softmax", "sigmoid"] = "softmax"
    """`softmax` has a step's relations share a weight of 1, as the published model of MetaQA does; `sigmoid` scores
    each by itself, as that of larger graphs does, and follows many more edges."""
    exclude_topic: bool = False
    """Take the topic entities out of the entity set after each step."""
    epochs: PositiveInt = 12
    """Largest number of passes over the training questions; more where they make less than `min_steps` steps."""
    min_steps: int = Field(default=300, ge=1)
    """Steps that a small question set trains for, by further passes; patience grows alike."""
    batch_size: PositiveInt = 32
    """Questions in one step."""


class KapingOptions(RetrieverSection):
    """KAPING: the triples near the topic that are most similar to the question (Baek et al. 2023)."""

    names = ("kaping",)

    encoder: str = "minilm"
    """`minilm` (packaged), or a folder or hub id of a HF sentence encoder with mean pooling."""
    hops: int = Field(default=2, ge=1, le=2)
    """Neighbourhood of the topic entities whose triples are compared."""
    max_triples: int = Field(default=2_000, ge=1)
    """Triples compared for a question: those of one hop first, then of two, within a hop the relations taking turns in
    order of id; the rest counts as truncated."""


class RelationRankingOptions(RetrieverSection, EncoderOptions, TrainingOptions):
    """Retrieval by relation ranking: how relations are ranked, and the training of rankers (Huang et al. 2024)."""

    names = ("rank_llm", "rank_embedding", "rank_pair", "rank_amr")
    trained = ("rank_pair", "rank_amr")

    relations: int = Field(default=5, ge=1)
    """Relations kept of each topic entity."""
    triples: int = Field(default=10, ge=1)
    """Triples of each pair of an entity and a relation, drawn with the seed where there are more."""
    max_relations: int = Field(default=200, ge=1)
    """Relations of one entity that are ranked, followed and against their direction: those of most triples."""
    model: str = "builtin"
    """Language model of `rank_llm`."""
    max_new_tokens: int = Field(default=64, ge=8)
    """Longest ranking of the language model in tokens."""
    sentence_encoder: str = "minilm"
    """Of `rank_embedding`: `minilm` (packaged), or a folder or hub id of a HF sentence encoder with mean pooling."""
    training_sets: Execution[tuple[str, ...]] = ()
    """Files of relation linking, JSON lines of `source` and `target`, that rankers learn from beside the annotated
    training questions."""
    amr_graphs: Execution[str | None] = None
    """A file of AMR graphs by question: blocks of PENMAN with `# ::snt`, or JSON from question to PENMAN."""
    amr_parser: Execution[str | None] = None
    """Parser of questions that the file has not: `amrlib:FOLDER` with a local model.  `rank_amr` is trained where there
    are graphs, by file or parser; without any it is `rank_pair`."""
    encoder: str = "minilm"
    """Of `rank_pair` and `rank_amr`: `minilm` (packaged), `scratch` (learnt from the training pairs), or a folder or
    hub id of a HF encoder."""
    negatives: int = Field(default=7, ge=1)
    """Relations of the entity that are no gold ones, drawn anew in every pass for each question and entity."""
    heads: int = Field(default=4, ge=1)
    """Heads of the graph attention and of the attention from a pair to the nodes; they divide the encoder's width."""
    epochs: PositiveInt = 4
    """Largest number of passes over the training questions."""
    batch_size: PositiveInt = 8
    """Questions, each with one entity, in one step."""
    max_tokens: int = Field(default=64, ge=16)
    """Tokens of question, entity and relation read by the encoder; of a longer one the question's end gives way."""


class RetrieverSections(Options):
    """The sections of a profile that belong to one retriever each."""

    rigel: RigelOptions = RigelOptions()
    hop_path: HopPathOptions = HopPathOptions()
    transfernet: TransferNetOptions = TransferNetOptions()
    kaping: KapingOptions = KapingOptions()
    relation_ranking: RelationRankingOptions = RelationRankingOptions()


class RetrievalOptions(Options):
    """What is kept of each question's graph neighbourhood."""

    retrievers: Execution[tuple[str, ...]] = ("rigel", "hop_path", "random", "oracle")
    """Retrievers whose facts are collected and compared."""
    topics: Execution[Literal["gold", "linked", "both"]] = "gold"
    """Entities that retrieval starts from: `gold` are those of the question file, `linked` those that the tagger finds
    in the text; `both` compares the two, named `RETRIEVER` and `RETRIEVER@linked`.  Random, frequent and oracle always
    start from the gold ones, and so does training."""
    training: bool = False
    """Collect facts for training questions too, so that a model can answer them (`answering.split=train`)."""
    k: int = Field(default=10, ge=1)
    """Triples kept per hop (k = 10 in the paper), and in all for random facts."""
    candidates: int = Field(default=50, ge=1)
    """Ranked entities kept per question."""
    edge_budget: int = Field(default=50_000, ge=1)
    """Edges followed per question and hop, heaviest sources first; the rest is cut and counted as truncated.  With
    50,000 a question of two hops takes some 10 ms at most, however large the graph."""

    @field_validator("retrievers", mode="before")
    @classmethod
    def _plain_names(cls, given: Any) -> Any:
        for name in given if isinstance(given, list | tuple) else ():
            if isinstance(name, str) and "@" in name:
                plain = name.partition("@")[0]
                raise ValueError(f"{name!r} is no plain name; list {plain!r} and set retrieval.topics")
            if name not in (known := retriever_names()):
                raise ValueError(f"{name!r} is no retriever{nearest(str(name), known)}; known: {', '.join(known)}")
        return given

    @property
    def collected(self) -> tuple[str, ...]:
        """Names that facts are collected under: each retriever as `topics` wants it."""
        return tuple(variant for name in self.retrievers for variant in self.variants(name))

    def variants(self, name: str) -> tuple[str, ...]:
        """The names that a retriever goes by: plain, with `@linked`, or both."""
        if self.topics == "gold" or name in baseline_names() or name not in self.retrievers:
            return (name,)
        linked = str(RetrieverVariant(name, "linked"))
        return (name, linked) if self.topics == "both" else (linked,)
