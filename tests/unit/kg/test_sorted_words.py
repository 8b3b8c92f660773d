"""Words come out sorted whatever fits in memory, and no file stays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kgqa_core.kg.ingest import sorted_words
from kgqa_core.kg.ingest.sorted_words import SortedWords

DRAW = np.random.default_rng(7)
WORDS = {
    "any": DRAW.integers(0, 2**64, 20_000, dtype=np.uint64),
    "few bits": DRAW.integers(0, 40, 20_000, dtype=np.uint64),
    "most of them one": np.where(
        DRAW.random(20_000) < 0.9, np.uint64(2**40 + 3), DRAW.integers(0, 2**41, 20_000)
    ).astype(np.uint64),
    "in order": np.sort(DRAW.integers(0, 2**30, 20_000, dtype=np.uint64)),
    "none": np.zeros(0, dtype=np.uint64),
}


@pytest.mark.parametrize("memory", [0, 8 * 500, 8 * 30_000])
@pytest.mark.parametrize("name", WORDS)
def test_words_come_out_sorted_in_pieces_and_no_file_stays(
    name: str, memory: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sorted_words, "LEAST", 100)
    words = WORDS[name]
    taken = SortedWords(len(words), 2**64, memory, tmp_path)
    for first in range(0, len(words), 3_000):
        part = words[first : first + 3_000]
        taken.add(part.copy(), ordered=bool(np.all(part[:-1] <= part[1:])))
    pieces = list(taken.pieces(700))
    assert all(0 < len(piece) <= 700 for piece in pieces) or not len(words)
    assert np.array_equal(np.concatenate([*pieces, WORDS["none"]]), np.sort(words))
    assert not list(tmp_path.iterdir())
