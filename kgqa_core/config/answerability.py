"""Options of the answerability benchmark and of abstention."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from kgqa_core.config.base import Execution, Options

Training = Literal["A", "A+U"]
"""What a parser is trained on: answerable questions, or also those that have no answer."""


class AnswerabilityOptions(Options):
    """The answerability benchmark that is built from a graph and questions (`kgqa answerability build`)."""

    p_u: float = Field(default=0.33, gt=0, lt=1)
    """Share of the questions that the modified graph cannot answer."""
    drop_shares: tuple[float, float, float, float] = (0.25, 0.25, 0.25, 0.25)
    """Parts of `p_u` that drops of types, relations, entities and facts make; what one cannot fill goes to the next."""
    split_shares: tuple[float, float, float] = (0.7, 0.1, 0.2)
    """Shares of train, dev and test; each has its share `p_u`."""
    zero_shot: float = Field(default=0.5, ge=0, le=1)
    """Share of the unanswerable questions of dev and test that miss something that no training question touches."""
    full_zero_shot: float = Field(default=0.25, ge=0, le=1)
    """Share of the zero-shot ones of whose relations and types, and of what they miss, training has nothing."""
    labels: Literal["published", "ours"] = "published"
    """Label of the form of a question that a dropped type made unanswerable: `published` is always NK, for the type
    that is asked for is no part of the schema any more; `ours` keeps a form of which the graph has every element."""
    largest_drop_share: float = Field(default=0.5, gt=0, le=1)
    """Largest share of its quota that one type or relation may take, so that there are several of a kind."""
    limit: int | None = Field(default=None, ge=10)
    """Questions that are drawn with the seed where there are more; none draws all."""
    parsers: Execution[tuple[Literal["rng", "decode"], ...]] = ("rng", "decode")
    """Parsers that `kgqa answerability evaluate` trains and scores: rank and generate, retrieve and decode."""
    training: Execution[tuple[Training, ...]] = ("A", "A+U")
    """What each is trained on: answerable questions, or also those that the graph cannot answer."""
    topics: Execution[Literal["gold", "linked"]] = "linked"
    """Entities that parsers start from: those that the tagger finds in the modified graph, or the annotated ones that
    are left, which give away what was dropped."""

    published: bool = False
    """The questions are those of GrailQAbility's own files over the graph that its authors changed: `kgqa run` trains
    the parsers on them and scores these by the rules of the published evaluation, in place of the pipeline."""
    ontology: str | None = None
    """Folder with Freebase's `fb_roles`, `fb_types` and `reverse_properties`, as GrailQA's repository has them: forms
    are then equal where the published script says so.  Without it, where they have the same shape."""

    @field_validator("drop_shares", "split_shares")
    @classmethod
    def _some_share(cls, shares: tuple[float, ...]) -> tuple[float, ...]:
        if min(shares) < 0 or not sum(shares):
            raise ValueError(f"shares must be 0 or more, and not all 0; they are {list(shares)}")
        return shares


class AbstentionOptions(Options):
    """When a question is not answered because the graph does not hold the answer, where retriever and language model
    answer; learnt from an answerability benchmark (`kgqa answerability abstain`)."""

    knowledge: Execution[str] = "rigel"
    """What the language model reads, `retriever/format`; `ask` learns when not to answer from the same."""
    topics: Execution[Literal["linked", "gold"]] = "linked"
    """Whether retrievers start from the topics that are found in the questions or from those that are given."""
    training_questions: int = Field(default=4000, ge=10)
    """Training questions that it learns from, drawn with the seed; each is sent to the language model."""
    features: tuple[Literal["links", "facts", "model", "wording"], ...] = ("links", "facts", "model", "wording")
    """What it reads of a question: how sure linking is; what the retrievers found and whether they agree; what the
    language model answered and how surely; how near the wording is to answerable training questions."""
    min_confidence: float | None = Field(default=None, ge=0, le=1)
    """A question is not answered where the confidence that the graph holds the answer is below; without a number it is
    the one that decides most dev questions rightly."""
    coverage: float | None = Field(default=None, gt=0, lt=1)
    """Share of the answerable questions that is to be answered: the threshold is then the largest that guarantees it
    for questions like those of dev (conformal prediction), and not the one that decides most of them rightly."""
