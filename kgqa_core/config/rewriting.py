"""Options of the KG-to-Text corpus and of the rewriter that learns from it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from kgqa_core.config.base import CheckpointOptions, Options


class CorpusOptions(Options):
    """The KG-to-Text corpus that the rewriter learns from (Wu et al. 2023, section 3.2)."""

    teacher: str = "template"
    """Who writes the sentences: `template` (rules over relation labels, no model), or a model's name."""
    qa_model: str = "builtin"
    """Who must find a gold answer in the text for a pair to be kept."""
    alpaca_file: str | None = None
    """An Alpaca file of pairs (`instruction`, `output`) that is read, with no teacher and no QA check."""
    size: int = Field(default=2000, ge=1)
    """Training questions that are used, drawn with the seed in equal shares of relation paths."""
    candidates: int = Field(default=1, ge=1)
    """Texts written for one graph; the best by QA feedback, then by faithfulness, is kept."""
    temperature: float = Field(default=0.7, ge=0)
    """Temperature of the teacher where it writes several candidates, or again after a rejected one; else 0."""
    max_triples: int = Field(default=20, ge=1)
    """Triples of one graph; gold paths of more keep those that lead to answers first."""
    max_new_tokens: int = Field(default=256, ge=1)
    """Longest text of the teacher in tokens."""
    language: str | None = None
    """Language of the instruction (`en`, `zh`); that of the questions when absent."""
    dev_share: float = Field(default=0.1, gt=0, lt=1)
    """Share of the pairs, by graph, that is held out for the rewriter's dev loss."""


class RewriterOptions(CheckpointOptions):
    """The language model that turns reasoning paths into sentences, and its LoRA training (Wu et al. 2023, 4.1)."""

    base: str = "builtin"
    """Model that is adapted: `builtin` or `hf:FOLDER_OR_ID`, causal or seq2seq."""
    adapt: bool = True
    """Train LoRA weights on the corpus; without, the base writes as it is: a data-to-text model, or an endpoint's."""
    lora_rank: int = Field(default=64, ge=1)
    """LoRA rank."""
    lora_alpha: float = Field(default=128, gt=0)
    """LoRA scale."""
    lora_dropout: float = Field(default=0.05, ge=0, lt=1)
    """LoRA dropout."""
    learning_rate: float = Field(default=1e-4, gt=0)
    """Peak learning rate; cosine decay."""
    warmup_ratio: float = Field(default=0.03, ge=0, lt=1)
    """Share of the steps in which the rate rises."""
    global_batch_size: int = Field(default=128, ge=1)
    """Pairs in one optimiser step, over all processes and by accumulation."""
    micro_batch_tokens: int = Field(default=4096, ge=64)
    """Tokens in one forward pass, padding included."""
    epochs: int = Field(default=10, ge=1)
    """Passes over the corpus."""
    max_length: int = Field(default=1024, ge=16)
    """Tokens of a prompt and its text; longer pairs are left out and counted."""
    precision: Literal["fp32", "bf16"] = "fp32"
    """Numbers of the forward and backward pass."""
    eval_steps: int = Field(default=0, ge=0)
    """Steps between further measurements of the dev loss, for its curve; 0 is after each pass only."""
    samples: int = Field(default=8, ge=0)
    """Dev pairs whose generated text is shown after each pass."""
    max_new_tokens: int = Field(default=256, ge=1)
    """Longest rewritten text in tokens."""
    wording: Literal["rra2023", "mvp2022"] = "rra2023"
    """Prompt of a model that rewrites untrained: T1, or what data-to-text models of the MVP type read.  A rewriter that
    is trained here always reads T1."""
    on_unfaithful: Literal["replace", "keep", "drop"] = "replace"
    """What happens to a sentence that names something that is in no triple: the triples stand in its place, it is kept,
    or it is left out.  A sentence that states none of the triples is left out unless everything is kept."""
