"""Describes triples in sentences with a language model: which one, how it writes, and a batch of questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from kgqa_core.config import LlmOptions, RewriterOptions
from kgqa_core.errors import StorageError
from kgqa_core.kg.store import KgStore
from kgqa_core.llm.budget import Budget
from kgqa_core.llm.factory import load_model
from kgqa_core.llm.models import Models
from kgqa_core.llm.paid import Outcome
from kgqa_core.llm.protocol import Completion, GenerationParams, LanguageModel
from kgqa_core.rewriting.groups import TripleGroup, group_facts
from kgqa_core.rewriting.paragraphs import GroupDraft, WrittenText, align, assemble, by_model, by_rule, join
from kgqa_core.store.shards import join_rows
from kgqa_core.types import Retrieved


def load_writer(
    rewriter: Path | None, options: RewriterOptions, llm: LlmOptions, budget: Budget | None
) -> LanguageModel:
    """The trained rewriter, or `options.base` as it is."""
    if rewriter is None:
        return load_model(options.base, llm, budget=budget)
    from kgqa_core.rewriting.lora import load_rewriter

    return load_rewriter(rewriter, llm, base=options.base)


def parameters(options: RewriterOptions) -> GenerationParams:
    """How the rewriter writes: greedily."""
    return GenerationParams(max_new_tokens=options.max_new_tokens)


def wording_of(options: RewriterOptions, *, trained: bool) -> str:
    """The wording of the prompts: a rewriter that was trained here reads T1, whatever `options.wording` says."""
    return "rra2023" if trained else options.wording


OUTCOMES_FILE = "told.parquet"

OUTCOMES: dict[str, pl.DataType] = {
    "prompt": pl.String(),
    "cached": pl.Boolean(),
    "text": pl.String(),
    "finish": pl.String(),
    "prompt_tokens": pl.Int32(),
    "completion_tokens": pl.Int32(),
    "error": pl.String(),
}
"""Columns of told.parquet: prompts in the order of sending, with their completions, null where all were
rejected."""


def save_outcomes(out: Path, outcomes: Mapping[str, Outcome]) -> None:
    """Writes the outcomes of a part's prompts.  Raises StorageError."""
    names = list(OUTCOMES)[2:]  # a rewriter returns no probabilities
    rows = [
        (prompt, outcome.cached, *(getattr(outcome.completion, name, None) for name in names))
        for prompt, outcome in outcomes.items()
    ]
    try:
        pl.DataFrame(rows, schema=OUTCOMES, orient="row").write_parquet(out / OUTCOMES_FILE)
    except OSError as fault:
        raise StorageError(f"cannot write to {out}: {fault}; free space or choose another --home") from fault


def read_outcomes(parts: Sequence[Path]) -> dict[str, Outcome]:
    """The outcomes of all parts, in the order in which they would have been sent without parts.

    Raises ArtifactError when a part is damaged.
    """
    return {
        prompt: Outcome(None if rest[1] is None else Completion(*rest), cached=cached)
        for prompt, cached, *rest in join_rows(parts, OUTCOMES_FILE, by=()).iter_rows()
    }


@dataclass(frozen=True)
class Describer:
    """Writes what the `write` stage would.

    writer: the rewriter, or None for sentences by rule.  wording: of its prompts.
    """

    store: KgStore
    writer: LanguageModel | None
    options: RewriterOptions
    language: str
    wording: str = "rra2023"

    @classmethod
    def open(
        cls,
        store: KgStore,
        form: str,
        rewriter: Path | None,
        options: RewriterOptions,
        models: Models,
        language: str,
    ) -> Describer:
        """Open a rewriter, or none for the format `template`.  Raises ModelError."""
        writer = None
        if form == "rewritten":
            writer = models.cached(load_writer(rewriter, options, models.llm, models.budget))
        return cls(store, writer, options, language, wording_of(options, trained=rewriter is not None))

    def describe(self, batch: Sequence[Retrieved]) -> list[str]:
        """The facts of each question as a paragraph; empty where there are none."""
        groups = [group_facts(self.store, retrieved.facts) for retrieved in batch]
        if self.writer is None:
            drafts = [[by_rule(group, self.language) for group in own] for own in groups]
        else:
            prompts = {group: group.prompt(self.language, self.wording) for own in groups for group in own}
            unique = list(dict.fromkeys(prompts.values()))
            completions = self.writer.generate(unique, parameters(self.options)) if unique else []
            written = dict(zip(unique, map(WrittenText.of, completions), strict=True))
            drafts = [[self._draft(group, written[prompts[group]]) for group in own] for own in groups]
        return [join(assemble(own), self.language) for own in drafts]

    def _draft(self, group: TripleGroup, text: WrittenText) -> GroupDraft:
        return by_model(group, text, align(group, text, self.language), self.options.on_unfaithful)
