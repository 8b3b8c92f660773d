"""Options of evaluation."""

from __future__ import annotations

from pydantic import Field

from kgqa_core.config.base import Execution, Options


class EntailmentOptions(Options):
    """How responses are compared with their references by `evaluation.nli`."""

    max_tokens: int = Field(default=256, ge=32)
    """Tokens of a response and its reference together; longer responses are read in runs of sentences."""
    device: Execution[str] = "auto"
    """`auto`, `cpu`, `cuda` or `cuda:N`."""


class EvaluationOptions(Options):
    """Scores and their intervals."""

    bootstrap: int = Field(default=1000, ge=100)
    """Bootstrap samples behind each 95 % interval."""
    examples: int = Field(default=8, ge=0)
    """Worked examples in the report."""
    nli: Execution[str | None] = None
    """Classifier that decides whether a response entails its reference, where questions have one: a folder or hub id of
    any HF sequence-pair classifier with the labels entailment and contradiction; `default` is that of Huang et al. 2024
    (1.7 GB).  None leaves these scores out, and so does a hub id that cannot be had."""
    entailment: Execution[EntailmentOptions] = EntailmentOptions()
    """How that classifier reads."""
    judge: Execution[str | None] = None
    """Language model that decides whether each answer means a gold answer (metric `judged`): `openai:MODEL`,
    `openai:MODEL@ENDPOINT` or `hf:FOLDER_OR_ID`.  None leaves the metric out."""
