"""Options of the label parser, which the answerer `auto` ranks forms with."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from kgqa_core.config.base import CheckpointOptions
from kgqa_core.config.generated_questions import NoiseOptions


class LabelParserOptions(CheckpointOptions):
    """A ranker of forms by the labels of their relations and types; it starts from what other graphs taught it."""

    adapt: Literal["auto", "always", "never"] = "auto"
    """`auto` trains where questions of one's own are there to learn from, and keeps what was learnt where the dev
    questions gain by more than chance; `always` trains and keeps it, on generated questions alone, too; with `never`
    the packaged head start answers, with the confidence that it comes with."""
    start: Literal["packaged", "nothing"] = "packaged"
    """What training starts from: the packaged head start, or the packaged sentence encoder alone, which is always
    trained."""
    hops: int = Field(default=2, ge=1, le=3)
    """Relations in a row that a candidate may follow from a mention."""
    generated: int = Field(default=1500, ge=0)
    """Questions made from the graph that are learnt from beside the training questions; 0 makes none."""
    unanswerable: float = Field(default=0.25, ge=0, lt=1)
    """Share of these that the graph cannot answer, so that declining and the confidence are learnt."""
    examples: int = Field(default=3000, ge=1)
    """Training questions that are learnt from at most, drawn with the seed, kinds alike."""
    also_train_steps: int = Field(default=20, ge=0)
    """Further steps, a quarter of whose questions are those of `questions.also_train`; more where these are many, and
    none without them.  They are the last, so that what people corrected is not averaged away."""
    noise: NoiseOptions = NoiseOptions()
    """How English questions of train and dev are changed to read as people type."""
    steps: int = Field(default=300, ge=0)
    """Steps of training; with 0 the starting point answers, its confidence calibrated on the dev questions."""
    batch_size: int = Field(default=16, ge=1)
    """Questions in one step."""
    candidates: int = Field(default=8, ge=2)
    """Candidates of a question in one step."""
    learning_rate: float = Field(default=1e-3, gt=0)
    """Peak learning rate of what stands on the encoder."""
    encoder_learning_rate: float = Field(default=2e-4, gt=0)
    """Peak learning rate of the encoder's adapters."""
    missing_relation_rate: float = Field(default=0.08, ge=0, lt=1)
    """Share of training questions that lose their relation from the candidates, so that declining is learnt."""
    calibration_questions: int = Field(default=300, ge=20)
    """Dev questions, and generated ones that are not trained on, that confidence is calibrated on at most."""
    threshold: float = Field(default=0.35, ge=0, le=1)
    """Confidence below which a question is declined, unless `abstention.min_confidence` is set."""
