"""Passages for questions: an opened index, and the stages that search it and write what a model reads.

Two rankings become one by the sum of reciprocal ranks (Cormack, Clarke and Büttcher 2009).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core.config import PASSAGES, PassagesOptions
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.errors import ArtifactError
from kgqa_core.kg.verbalise import KNOWLEDGE
from kgqa_core.passages.bm25 import Bm25Index
from kgqa_core.passages.dense import DenseIndex
from kgqa_core.passages.index import META
from kgqa_core.passages.table import Passage, Passages, RankedPassages
from kgqa_core.store.tables import read_frame
from kgqa_core.types import SPLITS, SPLITS_COLLECTED, Question
from kgqa_core.workspace import Workspace

CONSTANT = 60
"""Of reciprocal rank, as published."""


def reciprocal_rank(rankings: Sequence[RankedPassages], k: int) -> RankedPassages:
    """The k best of several rankings by the sum of 1 / (60 + rank), the first rank being 1; ties by passage.

    >>> reciprocal_rank([[(7, 0.9), (3, 0.1)], [(3, 4.2)]], 2)
    [(3, 0.032522), (7, 0.016393)]
    """
    total: dict[int, float] = defaultdict(float)
    for ranking in rankings:
        for rank, (passage, _) in enumerate(ranking, start=1):
            total[passage] += 1 / (CONSTANT + rank)
    rounded = ((passage, round(score, 6)) for passage, score in total.items())
    return sorted(rounded, key=lambda item: (-item[1], item[0]))[:k]


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
        self.parts: list[DenseIndex | Bm25Index] = []
        for name in ("dense", "bm25"):
            if options.retriever in (name, "hybrid"):
                if name not in meta:
                    raise ArtifactError(
                        f"the passage index {folder} has no part for passages.retriever {options.retriever!r}; "
                        "run the pipeline again to build it"
                    )
                part = meta[name]
                self.parts.append(
                    DenseIndex(folder, options, part["encoder"], cache, part.get("similarity", "cosine"))
                    if name == "dense"
                    else Bm25Index(folder, part["terms"])
                )

    def search(self, texts: Sequence[str]) -> list[RankedPassages]:
        """The k best passages of each text: fewer only where fewer are there, or share a word with it."""
        k = self.options.k
        if len(self.parts) == 1:
            return self.parts[0].search(texts, k)
        rankings = [part.search(texts, max(k, DEPTH)) for part in self.parts]
        return [reciprocal_rank(ranking, k) for ranking in zip(*rankings, strict=True)]

    def read(self, ranked: RankedPassages) -> list[Passage]:
        """The passages of a ranking, in its order."""
        passages = self.passages.get(number for number, _ in ranked)
        return [passages[number] for number, _ in ranked]


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


AT_ONCE = 256
"""Questions that are searched for together."""
SCHEMA = {
    "question": pl.String, "rank": pl.Int32, "passage": pl.Int64, "document": pl.String, "score": pl.Float64,
    "text": pl.String,
}  # fmt: skip
"""Columns of passages.parquet.  score: cosine or dot product, BM25, or the sum of reciprocal ranks.  text: as it is
read, with its title."""


def retrieve(
    workspace: Workspace, *, index: Path, questions: Path, options: PassagesOptions, training: bool = False
) -> dict[str, Any]:
    """Writes passages.parquet: the k best passages of each dev and test question, by question and rank.

    index, questions: artifact folders.  training: for training questions too, as `retrieval.training` has it for facts.
    Returns questions, passages (rows) and without: questions that no passage goes with.
    Raises ArtifactError, ModelError.
    """
    splits = SPLITS if training else SPLITS_COLLECTED
    selected = [question for question in read_questions(questions) if question.split in splits]
    selected.sort(key=lambda question: question.id)
    search = PassageSearch(index, options, workspace.cache or workspace.work)
    rows: list[tuple[Any, ...]] = []
    without = 0
    for start in range(0, len(selected), AT_ONCE):
        part = selected[start : start + AT_ONCE]
        rankings = search.search([query_of(question, options.history) for question in part])
        passages = search.passages.get(number for ranked in rankings for number, _ in ranked)
        for question, ranked in zip(part, rankings, strict=True):
            without += not ranked
            rows += [
                (question.id, rank, number, passages[number].document, score, passages[number].titled_text)
                for rank, (number, score) in enumerate(ranked)
            ]
        workspace.monitor.progress(start + len(part), len(selected), "questions")
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    frame.write_parquet(workspace.out / "passages.parquet", compression="zstd")
    return {"questions": len(selected), "passages": len(rows), "without": without}


def write_knowledge(
    workspace: Workspace, *, questions: Path, passages: Path, triples: Path | None = None, retriever: str = PASSAGES
) -> dict[str, Any]:
    """Writes knowledge.parquet, one row for every question: its passages, numbered, one a line.

    passages: a `passages` artifact.  triples: the `knowledge` artifact of a retriever's triples; its text then stands
    above the passages (format `both`).  Raises ArtifactError when one is damaged or holds another retriever's triples.
    """
    form = PASSAGES if triples is None else "both"
    texts: dict[str, list[str]] = {}
    for question, text in (
        read_frame(passages / "passages.parquet", ["question", "rank", "text"])
        .sort("question", "rank")
        .select("question", "text")
        .iter_rows()
    ):
        texts.setdefault(question, []).append(text)
    above: dict[str, tuple[str, list[int]]] = {}
    if triples is not None:
        frame = read_frame(triples / "knowledge.parquet", list(KNOWLEDGE))
        if there := set(frame.select("retriever", "format").unique().rows()) - {(retriever, "triples")}:
            raise ArtifactError(f"{triples} holds knowledge of {sorted(there)[0]}, not the triples of {retriever!r}")
        above = {
            question: (text, ids) for question, text, ids in frame.select("question", "text", "triples").iter_rows()
        }
    rows = []
    for question in sorted(record.id for record in read_questions(questions)):
        text, ids = above.get(question, ("", []))
        rows.append((question, retriever, form, below_text(text, texts.get(question, ())), ids))
    pl.DataFrame(rows, schema=KNOWLEDGE, orient="row").write_parquet(workspace.out / "knowledge.parquet")
    workspace.monitor.progress(len(rows), len(rows), "questions")
    return {
        "questions": len(rows),
        "with_passages": len(texts),
        "with_facts": sum(bool(ids) for _, _, _, _, ids in rows),
        "passages": sum(map(len, texts.values())),
    }


def below_text(text: str, passages: Iterable[str]) -> str:
    """Numbered passages below a text, which may be empty, as a model reads them."""
    return "\n".join([*([text] if text else []), *numbered(passages)])


def numbered(texts: Iterable[str]) -> list[str]:
    """Passages as a model reads them.

    >>> numbered(["Paris: It is old.", "Lyon: It is too."])
    ['[1] Paris: It is old.', '[2] Lyon: It is too.']
    """
    return [f"[{number}] {text}" for number, text in enumerate(texts, start=1)]
