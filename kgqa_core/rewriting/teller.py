"""Facts of one question as sentences, for a system that answers while somebody waits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kgqa_core.config import LlmOptions, RewriterOptions
from kgqa_core.kg.store import KgStore
from kgqa_core.llm.protocol import LanguageModel
from kgqa_core.rewriting.groups import group_facts
from kgqa_core.rewriting.paragraphs import Written, align, assemble, by_model, by_rule, join
from kgqa_core.rewriting.write import load_writer, parameters, wording_of
from kgqa_core.types import Retrieved


@dataclass(frozen=True)
class Teller:
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
        llm: LlmOptions,
        language: str,
    ) -> Teller:
        """Open a rewriter, or none for the format `template`.  Raises ModelError."""
        writer = load_writer(rewriter, options, llm, None) if form == "rewritten" else None
        return cls(store, writer, options, language, wording_of(options, trained=rewriter is not None))

    def tell(self, retrieved: Retrieved) -> str:
        """The facts of a question as a paragraph; empty where there are none."""
        groups = group_facts(self.store, retrieved.facts)
        if self.writer is None:
            drafts = [by_rule(group, self.language) for group in groups]
        else:
            prompts = [group.prompt(self.language, self.wording) for group in groups]
            completions = self.writer.generate(prompts, parameters(self.options)) if prompts else []
            drafts = [
                by_model(group, written, align(group, written, self.language), self.options.on_unfaithful)
                for group, written in zip(groups, map(Written.of, completions), strict=True)
            ]
        return join(assemble(drafts), self.language)
