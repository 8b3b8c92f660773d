"""Which facts are put into words, in which form, and for which questions."""

from __future__ import annotations

from kgqa_core.config.base import Options


class SentenceRequest(Options):
    """What `write.write` is to write; part of the stage's key."""

    retriever: str
    """Whose facts; a column of the result."""
    format: str
    """`template` (rules, no model) or `rewritten`."""
    language: str | None = None
    """Of the prompts; each question's own when None."""
    split: str | None = None
    """Only the facts of the questions that `splits.choose` draws of it are written; the others have an empty text."""
    limit: int | None = None
    """Most questions that are drawn."""
    seed: int = 0
    """Of the draw."""
