"""Options of the answerers: of `auto`, and of those by a language model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from kgqa_core.config.base import Execution, Options


class SymbolicOptions(Options):
    """How the answerer `auto` computes."""

    parser: Execution[Literal["none", "rng", "decode"]] = "none"
    """A semantic parser of the section `parsing` whose forms are ranked with the others: rank
    and generate, or retrieve and decode.  A run trains it; `kgqa ask` and `kgqa answer` do without."""
    max_answers: int = Field(default=200, ge=1)
    """Names that an answer lists; a count is never cut."""
    timeout_seconds: float = Field(default=10.0, gt=0)
    """Longest run of one form; one that takes longer counts as having found nothing."""
    current_facts: bool = True
    """Answer questions in the present tense from facts that have not ended by their qualifiers, as `end time`."""
    chooser: str | None = None
    """A language model, `openai:MODEL`, `openai:MODEL@ENDPOINT` or `hf:FOLDER_OR_ID`, that reads each question with its
    ten best plans and some names of what they find, and chooses one or none; one call a question.  None asks nobody."""

    @field_validator("chooser")
    @classmethod
    def _can_choose(cls, given: str | None) -> str | None:
        if given is not None and not re.match(r"(openai|hf):\s*\S", given):
            raise ValueError(f"{given!r} cannot choose plans; write openai:MODEL, openai:MODEL@ENDPOINT or hf:FOLDER")
        return given


LTGEN_TOKENS = 128
"""Longest response in tokens of the template `ltgen2024` (Huang et al. 2024)."""


class AnsweringOptions(Options):
    """The language model that answers, what it reads, and which questions it answers."""

    answerer: str = "builtin"
    """A language model: `builtin`, `hf:FOLDER_OR_ID`, `openai:MODEL` or `openai:MODEL@ENDPOINT`.  `auto` ranks the
    forms that all roads propose, and declines what the graph does not hold; it reads the facts of one retriever of
    `knowledge`, and `auto:MODEL` has the model word the answer.
    `agent:openai:MODEL` explores the graph by operations (section `agent`), `gcr:hf:MODEL` decodes paths of the graph
    (section `gcr`): both start from the topics and read no `knowledge`."""
    more: Execution[tuple[str, ...]] = ()
    """Further answerers of the same run, compared with the first in all tables; `kgqa ask` uses the first."""
    knowledge: Execution[tuple[str, ...]] = ("none", "random", "rigel", "hop_path", "oracle")
    """What is put before the model: `retriever/format` with a retriever of `retrieval.retrievers` and a format among
    triples, template, rewritten and both; a retriever alone means its triples, `none` asks without facts, `passages`
    are those of the section `passages`, which `both` puts below the triples."""
    template: Literal["sen2023", "rra2023", "ltgen2024"] = "sen2023"
    """Wording of the prompt with knowledge, the same for every format; `ltgen2024` is a chat that shows the earlier
    turns of a dialogue and takes responses of several sentences."""
    qualifiers: bool = False
    """Triples are written with the qualifiers of their statement, `(head, relation, tail; qualifier: value)`."""
    split: Literal["test", "dev", "train"] = "test"
    """Questions that are answered; `train` needs `retrieval.training` and serves `rigel.feedback`."""
    limit: int | None = Field(default=None, ge=1)
    """Answer only so many questions, drawn with the seed; all when absent."""
    max_new_tokens: int = Field(default=32, ge=1)
    """Longest answer in tokens; of the template `ltgen2024` 128 unless set."""
    log_probabilities: bool = False
    """Return how likely the model finds its answer, which abstention reads.  Completions without it are sent anew."""

    @model_validator(mode="before")
    @classmethod
    def _listed_answerers(cls, given: Any) -> Any:
        """`answerers: [A, B, C]` is `answerer: A` and `more: [B, C]`."""
        if not isinstance(given, Mapping) or "answerers" not in given:
            return given
        rest = {name: value for name, value in given.items() if name != "answerers"}
        listed = given["answerers"]
        if not isinstance(listed, list | tuple) or not listed or not all(isinstance(name, str) for name in listed):
            raise ValueError(f"answerers {listed!r} must be a list of answerers, such as [builtin, auto]")
        if named := sorted({"answerer", "more"} & rest.keys()):
            raise ValueError(f"answerers lists all of them, so leave out {' and '.join(named)}")
        return {**rest, "answerer": listed[0], "more": tuple(listed[1:])}

    @model_validator(mode="before")
    @classmethod
    def _length_of_template(cls, given: Any) -> Any:
        if isinstance(given, Mapping) and given.get("template") == "ltgen2024" and "max_new_tokens" not in given:
            return {**given, "max_new_tokens": LTGEN_TOKENS}
        return given
