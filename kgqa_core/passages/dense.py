"""Vectors of passages in a FAISS index.

Vectors are whole numbers (fixed point), and what FAISS finds is compared again exactly: ranks do not depend on the
order of sums.  A text is encoded once in a home: its vector is cached by its content, so that a build that was killed
goes on, and a corpus that grew costs only what is new.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kgqa_core.config import PassagesOptions
from kgqa_core.errors import ArtifactError, ModelError
from kgqa_core.extras import require_extra
from kgqa_core.monitor import Monitor
from kgqa_core.nn.device import pick_device
from kgqa_core.nn.sentence_encoder import CachedEncoder, SentenceEncoder
from kgqa_core.nn.vectors import ONE, Vectors, dots, open_vectors
from kgqa_core.passages.table import RankedPassages, distinct
from kgqa_core.store.shards import LOADING
from kgqa_core.workspace import Workspace

FILE = "dense.faiss"
FLAT = 500_000
"""Passages up to which `auto` compares all vectors; beyond, a question would take a tenth of a second a core."""
BLOCK = 512
"""Passages that are encoded and added at once."""
TRAINED_ON = 64
"""Vectors of a cell that the cells are learnt from."""
CELLS_PER_PROBE = 8
"""One of so many cells is searched for a question."""
SLACK = 16
"""Further passages that are compared exactly."""


def open_encoder(options: PassagesOptions) -> SentenceEncoder:
    """The encoder of passages and questions.  Raises ModelError, ConfigError."""
    device = pick_device(options.device, "passages")
    with LOADING:
        return SentenceEncoder(
            options.encoder, section="passages", max_tokens=options.max_tokens, similarity=options.similarity,
            device=device,
        )  # fmt: skip


def cells(passages: int) -> int:
    """Cells of an `ivf` index, 4 √n, and fewer where passages are too few to learn so many from.

    >>> cells(1_000), cells(1_000_000)
    (15, 4000)
    """
    return max(1, min(round(4 * passages**0.5), passages // TRAINED_ON))


def build(
    workspace: Workspace,
    blocks: Iterable[Sequence[str]],
    count: int,
    encoder: SentenceEncoder,
    options: PassagesOptions,
    *,
    seed: int,
) -> dict[str, Any]:
    """Writes `dense.faiss`; returns index (`flat` or `ivf`), cells, width, similarity, encoded: texts not yet known.

    blocks: texts in order of their numbers, `count` in all.  Vectors are kept in the workspace's cache for all runs, or
    else in its `work` for this build.  A kill loses the vectors of some hundred texts.
    """
    faiss = _faiss()
    kind = options.index if options.index != "auto" else "flat" if count <= FLAT else "ivf"
    scratch = workspace.work or workspace.out
    file = scratch / "vectors.raw"
    rows = np.memmap(file, dtype=np.int16, mode="w+", shape=(max(1, count), encoder.width))
    done = 0
    with open_vectors(workspace.cache or scratch, encoder.digest, encoder.width) as store:
        cached = CachedEncoder(encoder, store)
        for texts in blocks:
            different, which = distinct(texts)
            rows[done : done + len(texts)] = cached.vectors(different)[which]
            done += len(texts)
            workspace.monitor.progress(done, count, "passages encoded")
    index = _index(kind, rows[:count], seed, workspace.monitor)
    for start in range(0, count, BLOCK):
        index.add(rows[start : min(count, start + BLOCK)].astype(np.float32))
    faiss.write_index(index, str(workspace.out / FILE))
    del rows
    file.unlink()
    made = {"index": kind, "width": encoder.width, "encoder": encoder.weights, "encoded": cached.encoded}
    made |= {"similarity": encoder.similarity}
    return made | ({"cells": index.nlist} if kind == "ivf" else {})


def _index(kind: str, rows: Vectors, seed: int, monitor: Monitor) -> Any:
    faiss, width = _faiss(), rows.shape[1]
    if kind == "flat" or not len(rows):
        return faiss.IndexFlatIP(width)
    number = cells(len(rows))
    index = faiss.IndexIVFScalarQuantizer(
        faiss.IndexFlatIP(width), width, number, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT, False
    )
    index.cp.seed = seed + 1  # 0 would be replaced by a random one
    index.nprobe = max(min(number, 16), number // CELLS_PER_PROBE)
    sample = np.random.default_rng(seed).choice(len(rows), min(len(rows), number * TRAINED_ON), replace=False)
    monitor.note(f"learning {number:,} cells of the passage index from {len(sample):,} vectors")
    index.train(rows[np.sort(sample)].astype(np.float32))
    return index


class DenseIndex:
    """Finds passages by the cosine or the dot product of their vectors with a question's.

    weights, similarity: of the encoder that the index was made with.  Raises ArtifactError when the index is damaged,
    ModelError when the encoder is another one or compares otherwise.
    """

    def __init__(
        self,
        folder: Path,
        options: PassagesOptions,
        weights: str,
        cache: Path | None = None,
        similarity: str = "cosine",
    ) -> None:
        try:
            self.index = _faiss().read_index(str(folder / FILE))
        except RuntimeError as fault:
            first = str(fault).strip().splitlines()[-1]
            raise ArtifactError(f"{folder / FILE} cannot be read ({first}); build the passage index again") from None
        self.encoder, self.cache = open_encoder(options), cache
        if self.encoder.weights != weights or self.encoder.width != self.index.d:
            raise ModelError(
                f"passages.encoder {options.encoder!r} is not the one that the passage index was made with; name that "
                "one, or build the index again"
            )
        if self.encoder.similarity != similarity:
            raise ModelError(
                f"the passage index was made to be compared by {similarity}, not by {self.encoder.similarity}; set "
                f"passages.similarity={similarity}, or build the index again"
            )

    def search(self, texts: Sequence[str], k: int) -> list[RankedPassages]:
        """The k most similar passages of each text, by falling cosine in [0, 1], or by falling dot product."""
        if not texts or not self.index.ntotal:
            return [[] for _ in texts]
        different, which = distinct(texts)
        with open_vectors(self.cache, self.encoder.digest, self.encoder.width) as store:
            queries = CachedEncoder(self.encoder, store).vectors(different)
        wanted = min(self.index.ntotal, k + SLACK)
        _, nearest, vectors = self.index.search_and_reconstruct(queries.astype(np.float32), wanted)
        ranked = []
        for query, numbers, rows in zip(queries, nearest, vectors, strict=True):
            there = numbers >= 0
            exact = np.rint(np.clip(rows[there], -ONE, ONE)).astype(np.int16)  # half precision makes 32,768 of 32,767
            scores = dots(exact, query[None])[:, 0]
            order = np.lexsort((numbers[there], -scores))[:k]
            ranked.append([(int(numbers[there][index]), self._score(int(scores[index]))) for index in order])
        return [ranked[index] for index in which]

    def _score(self, dot: int) -> float:
        if self.encoder.similarity == "dot":
            return round(dot * self.encoder.span**2 / ONE**2, 6)
        return round(min(1.0, max(0.0, dot / ONE**2)), 6)


def _faiss() -> Any:
    require_extra("passages", "an index of vectors of passages")
    import faiss

    return faiss
