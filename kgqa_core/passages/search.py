"""A passage index, opened: dense, by words, or both."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kgqa_core.config import PassagesOptions
from kgqa_core.errors import ArtifactError
from kgqa_core.passages.bm25 import Bm25
from kgqa_core.passages.dense import Dense
from kgqa_core.passages.fuse import Ranked, reciprocal_rank
from kgqa_core.passages.index import META
from kgqa_core.passages.table import Passage, Passages
from kgqa_core.types import Question

DEPTH = 100
"""Passages of each ranking that a hybrid search joins, or k where that is more."""


class PassageSearch:
    """Finds the passages of an index that go with a text, by `options.retriever`.

    folder: a `passage_index` artifact.  cache: folder that keeps vectors for all runs.
    Raises ArtifactError when the index is damaged or was not made for this retriever, ModelError for another encoder.
    """

    def __init__(self, folder: Path, options: PassagesOptions, cache: Path | None = None) -> None:
        meta = _read_meta(folder)
        self.options, self.passages = options, Passages(folder, meta["passages"])
        self.parts: list[Dense | Bm25] = []
        for name in ("dense", "bm25"):
            if options.retriever in (name, "hybrid"):
                if name not in meta:
                    raise ArtifactError(
                        f"the passage index {folder} has no part for passages.retriever {options.retriever!r}; "
                        "run the pipeline again to build it"
                    )
                own = meta[name]
                self.parts.append(
                    Dense(folder, options, own["encoder"], cache) if name == "dense" else Bm25(folder, own["terms"])
                )

    def search(self, texts: Sequence[str]) -> list[Ranked]:
        """The k best passages of each text: fewer only where fewer are there, or share a word with it."""
        k = self.options.k
        if len(self.parts) == 1:
            return self.parts[0].search(texts, k)
        rankings = [part.search(texts, max(k, DEPTH)) for part in self.parts]
        return [reciprocal_rank(own, k) for own in zip(*rankings, strict=True)]

    def read(self, ranked: Ranked) -> list[Passage]:
        """The passages of a ranking, in its order."""
        found = self.passages.get(number for number, _ in ranked)
        return [found[number] for number, _ in ranked]


def query_of(question: Question, history: int) -> str:
    """What is searched for: the last query, then so many earlier turns, the latest first.

    An encoder that reads no further leaves out the oldest.
    """
    turns = question.dialogue[max(0, len(question.dialogue) - history) :] if history else ()
    return " ".join([question.text, *(text for _, text in reversed(turns))])


def _read_meta(folder: Path) -> dict[str, Any]:
    file = folder / META
    try:
        meta: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as fault:
        raise ArtifactError(f"{folder} is no passage index ({fault}); run the pipeline again to build it") from None
    return meta
