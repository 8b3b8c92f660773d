"""Options of the semantic parsers."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, PositiveFloat, PositiveInt

from kgqa_core.config.base import Options, ScratchEncoderOptions, TrainingOptions


class GeneratorOptions(Options):
    """The generator of rank and generate: it reads a question and the best forms, and writes one (Ye et al. 2022)."""

    enabled: bool = False
    """Write forms; without, the ranker's order stands."""
    model: str = "scratch"
    """`scratch` (a small T5 learnt from the training questions), or a folder or hub id of a HF sequence-to-sequence or
    causal model."""
    input_forms: int = Field(default=10, ge=1)
    """Best forms that are read."""
    beam: int = Field(default=10, ge=1)
    """Width of the search, and forms that are written."""
    weight: float | None = Field(default=None, ge=0, le=1)
    """Weight of what the generator says beside the ranker.  Without a number the one with the best exact match on dev
    questions: 0, where the generator mends nothing."""
    executable_first: bool = False
    """Put the first form that finds something first, and never say that there is no form.  Off wherever abstention is
    measured, which it defeats."""
    epochs: int = Field(default=6, ge=1)
    """Passes over the training questions."""
    batch_size: int = Field(default=32, ge=1)
    """Questions in one step."""
    learning_rate: float = Field(default=1e-3, gt=0)
    """Peak learning rate of a scratch model."""
    encoder_learning_rate: float = Field(default=5e-5, gt=0)
    """Peak learning rate of a pretrained model."""
    width: int = Field(default=128, ge=16)
    """Width of a scratch model."""
    layers: int = Field(default=2, ge=1)
    """Layers of a scratch model's encoder, and of its decoder."""
    max_tokens: int = Field(default=320, ge=16)
    """Tokens that are read, question and forms."""


class DecodeOptions(ScratchEncoderOptions, TrainingOptions):
    """The parser retrieve and decode: schema items are retrieved, and a form is decoded that can only be one of the
    graph's (Chen et al. 2021)."""

    learn_unanswerable: bool = True
    """Learn from questions that the graph has no form for, too (A+U): "no form" is then one of the actions."""
    on_empty_result: Literal["auto", "no form", "keep", "weigh"] = "auto"
    """What is returned where the best form finds nothing: `no form`, that there is none, as the paper does, `keep`, the
    form itself, which is right where only its facts are missing, or `weigh`, the best form when each that finds nothing
    loses, and "no form" wins or loses, what suits dev questions best.  `auto` weighs where the parser has learnt to
    predict that there is no form (A+U), and does as the paper where it cannot otherwise (A)."""
    model: str = "scratch"
    """What decodes: `scratch` (a small T5 that points at slots, learnt from the training questions), or a folder or hub
    id of a HF sequence-to-sequence or causal model that writes actions as text."""
    encoder: str = "scratch"
    """What retrieves: `scratch` (learnt from the training questions), `minilm` (packaged), or a folder or hub id of a
    HF encoder.  A pretrained one does not learn; a scratch decoder reads its states too."""
    relations: int = Field(default=10, ge=1)
    """Relations of the graph that are retrieved for a question; those that its topics have come before others."""
    classes: int = Field(default=3, ge=0)
    """Types of the graph that are retrieved for a question; none where no gold form of the training names a type."""
    mentions: int = Field(default=4, ge=1, le=6)
    """Mentions of a question that are read as topics, the most confident ones."""
    candidates: int = Field(default=3, ge=1)
    """Entities of one mention that are tried."""
    beam: int = Field(default=5, ge=1)
    """Width of the search, and forms that are written down of a question."""
    max_actions: int = Field(default=24, ge=3)
    """Length of a form, in actions."""
    width: int = Field(default=96, ge=16)
    """Width of the scratch decoder."""
    layers: int = Field(default=2, ge=1)
    """Layers of the scratch decoder's encoder, and of its decoder."""
    heads: int = Field(default=4, ge=1)
    """Heads of each layer."""
    dropout: float = Field(default=0.1, ge=0, lt=1)
    """Share of the scratch decoder's values that are dropped in training, and of its words that are hidden."""
    missing_relation_rate: float = Field(default=0.2, ge=0, lt=1)
    """Share of the answerable questions that a step shows without a relation that they need, so that "no form" is right
    of them; only where unanswerable ones are learnt from too (A+U)."""
    retriever_epochs: int = Field(default=4, ge=1)
    """Largest number of passes in which the retriever learns."""
    epochs: PositiveInt = 20
    """Largest number of passes in which the decoder learns."""
    questions_per_wording: int = Field(default=2, ge=1)
    """Questions of one masked wording that a pass takes at most; each pass draws others of them."""
    patience: PositiveInt = 4
    """Passes without a better dev score before training stops."""
    learning_rate: PositiveFloat = 2e-3
    """Peak learning rate of what is learnt from nothing."""
    encoder_learning_rate: PositiveFloat = 5e-5
    """Peak learning rate of a pretrained encoder or model."""


class RngOptions(ScratchEncoderOptions, TrainingOptions):
    """The parser rank and generate: forms are enumerated, ranked and, if wanted, written (Ye et al. 2022, as
    GrailQAbility uses it)."""

    learn_unanswerable: bool = True
    """Learn from questions that the graph has no form for, too (A+U): "no form" is then ranked with the forms."""
    hops: int = Field(default=2, ge=1, le=3)
    """Longest path from a topic."""
    starts: Literal["schema", "facts"] = "schema"
    """Relations that a path may start with: those that things of the topic's types have, so that a form whose facts are
    missing is found, or the topic's own only, as RnG-KBQA."""
    types_tried: int = Field(default=6, ge=1)
    """Most common types of what a path leads to that are tried, besides those that the question names."""
    max_paths: int = Field(default=400, ge=10)
    """Paths of a topic, of one relation and of two, that are all tried; a topic whose schema has more is `likely_paths`
    of them."""
    likely_paths: int = Field(default=60, ge=10)
    """Paths that are tried of a topic that has too many: those whose relations' words the question has most of, and
    those that the graph has from the topic."""
    retriever_epochs: int = Field(default=8, ge=0)
    """Largest number of passes in which a retriever learns which relations and types a question speaks of, where some
    topic has more than `max_paths`; likely paths are then made of what it finds too.  0: of words alone."""
    max_forms: int = Field(default=4_000, ge=10)
    """Candidate forms of one reading of a question (about one of its entities, or two)."""
    mentions: int = Field(default=4, ge=1)
    """Mentions of a question that are read as topics, the most confident ones."""
    candidates: int = Field(default=3, ge=1)
    """Entities of one mention that are tried."""
    negatives: int = Field(default=95, ge=1)
    """Wrong forms beside the right one."""
    missing_relation_rate: float = Field(default=0.2, ge=0, le=1)
    """Share of the answerable questions that are also learnt without the forms that use some relation of the right one,
    so that "no form" is right of them; only where unanswerable ones are learnt from too (A+U)."""
    hard_negatives: float = Field(default=0.5, ge=0, le=1)
    """Share of hard negatives among them in the later phase: those that the model of the first phase scores highest."""
    preselected_forms: int = Field(default=100, ge=2)
    """Forms that are left to the ranker by the cheap first stage."""
    num_forms: int = Field(default=10, ge=1)
    """Forms that are written down of a question."""
    epochs: PositiveInt = 3
    """Largest number of passes with random wrong forms."""
    hard_negative_epochs: int = Field(default=1, ge=0)
    """Largest number of passes of the later phase."""
    patience: PositiveInt = 2
    """Passes without a better dev score before a phase stops."""
    batch_size: PositiveInt = 16
    """Questions in one step; equal wordings are one."""
    learning_rate: PositiveFloat = 8e-3
    """Peak learning rate of a scratch encoder and of what compares."""
    encoder_learning_rate: PositiveFloat = 3e-5
    """Peak learning rate of a pretrained encoder."""
    generator: GeneratorOptions = GeneratorOptions()


class ParsingOptions(Options):
    """The semantic parsers."""

    rng: RngOptions = RngOptions()
    """Rank and generate."""
    decode: DecodeOptions = DecodeOptions()
    """Retrieve and decode."""
