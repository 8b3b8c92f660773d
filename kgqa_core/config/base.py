"""What all sections of a profile share: frozen groups of options, and the blocks of an encoder and of a training."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator


class _NotDecisive:
    """Marks a field that says where, how fast or under what name work is done, and so is no part of a cache key."""


_T = TypeVar("_T")
Execution = Annotated[_T, _NotDecisive()]
"""`device: Execution[str]` is a field of type str that does not decide the outcome."""


class Options(BaseModel):
    """A frozen group of parameters that refuses names it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    def decisive(self) -> dict[str, Any]:
        """The fields that decide what comes out, as plain values: all but those of type `Execution`, at any depth."""
        fields = type(self).model_fields.items()
        execution = {name for name, field in fields if any(isinstance(mark, _NotDecisive) for mark in field.metadata)}
        plain = self.model_dump(mode="json", exclude=execution)
        parts = {name: part for name in plain if isinstance(part := getattr(self, name), Options)}
        return plain | {name: part.decisive() for name, part in parts.items()}


class EncoderOptions(Options):
    """The block of a section that has a trained text encoder."""

    encoder: str = "minilm"
    """`minilm` (packaged), `scratch` (learnt from the training questions), or a folder or hub id of a HF encoder."""
    max_tokens: int = Field(default=64, ge=8)
    """Tokens of a question, and of what it is compared with, that the encoder reads."""
    scratch_vocabulary: int = Field(default=6000, ge=100)
    """Tokens of the vocabulary learnt for a scratch encoder."""
    scratch_width: int = Field(default=256, ge=16)
    """Width of a scratch encoder's state."""


class LayeredEncoderOptions(EncoderOptions):
    """The same block of a retriever: which parts of a pretrained encoder learn, what it reads and how long."""

    encoder_layers: int = Field(default=3, ge=0)
    """Last layers of a pretrained BERT that learn; the states of the others are computed once.  `minilm` has six.
    With 0 all learn, as those of encoders of another type do."""
    train_embeddings: bool = False
    """Whether the input embeddings of a pretrained encoder learn too, as in the papers; all of its layers have to then
    (`encoder_layers: 0`).  Those of a scratch encoder always do."""
    pooling: Literal["mean", "cls", "pooler"] = "mean"
    """How a pretrained encoder's states become the vector of a question: the mean over its tokens, the state of the
    first token, or that state through the pooling layer that BERT has (a linear map and tanh), as classifiers of
    Transformers read it.  A scratch encoder takes the mean."""
    mask_topic: bool = True
    """Whether the mention of the topic is replaced by a neutral token before the encoder reads a question; the papers
    leave it in."""
    max_steps: int | None = Field(default=None, ge=1)
    """Steps of a training in place of `epochs`, and of `min_steps` where there is one; the last pass is cut.  Training
    still ends after `patience` passes without a better dev score."""

    @model_validator(mode="after")
    def _embeddings_need_all_layers(self) -> Self:
        if self.train_embeddings and self.encoder_layers and self.encoder != "scratch":
            raise ValueError(
                f"train_embeddings needs all layers to learn, and encoder_layers is {self.encoder_layers}: the states "
                "below the last layers are computed once; set encoder_layers=0"
            )
        return self


class ScratchEncoderOptions(EncoderOptions):
    """The same block where a small encoder is learnt from the training questions unless another is named."""

    encoder: str = "scratch"
    """`scratch` (learnt from the training questions), `minilm` (packaged), or a folder or hub id of a HF encoder."""
    scratch_vocabulary: int = Field(default=3000, ge=100)
    """Tokens of the vocabulary learnt for a scratch encoder."""
    scratch_width: int = Field(default=128, ge=16)
    """Width of a scratch encoder's state."""


class CheckpointOptions(Options):
    """The block of a section whose training survives its process."""

    checkpoint_seconds: Execution[float] = Field(default=30.0, gt=0)
    """Seconds between checkpoints."""
    device: Execution[str] = "auto"
    """`auto`, `cpu`, `cuda` or `cuda:N`."""


class TrainingOptions(CheckpointOptions):
    """The block of a section that is trained until the dev score no longer improves."""

    epochs: int = Field(default=10, ge=1)
    """Largest number of passes over the training questions."""
    patience: int = Field(default=2, ge=1)
    """Passes without a better dev score before training stops."""
    batch_size: int = Field(default=64, ge=1)
    """Questions in one step."""
    learning_rate: float = Field(default=1e-3, gt=0)
    """Peak learning rate of what is learnt from nothing: a scratch encoder, and all that stands on an encoder."""
    encoder_learning_rate: float = Field(default=5e-5, gt=0)
    """Peak learning rate of a pretrained encoder."""
