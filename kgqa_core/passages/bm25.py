"""BM25 over passages by the library `bm25s` (Lucene's formula, k1 = 1.5, b = 0.75), stored as arrays and JSON."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kgqa_core.errors import ArtifactError
from kgqa_core.extras import require_extra
from kgqa_core.passages.table import UNSPACED, RankedPassages
from kgqa_core.workspace import Workspace

FOLDER = "bm25"
LONGEST = 64
"""Characters of a token that count."""

_RUN = re.compile(rf"[{UNSPACED}]+|[^\W_{UNSPACED}]+")
_IS_UNSPACED = re.compile(f"[{UNSPACED}]")


def tokens(text: str) -> list[str]:
    """Words of a text, folded in case and width; runs of scripts without blanks as pairs of characters.

    No word is left out or stemmed.

    >>> tokens("The U.S. Navy, 1943")
    ['the', 'u', 's', 'navy', '1943']
    >>> tokens("北京大学 A")
    ['北京', '京大', '大学', 'a']
    """
    words: list[str] = []
    for run in _RUN.findall(unicodedata.normalize("NFKC", text).casefold()):
        if _IS_UNSPACED.match(run) and len(run) > 1:
            words += [run[index : index + 2] for index in range(len(run) - 1)]
        else:
            words.append(run[:LONGEST])
    return words


def build(workspace: Workspace, blocks: Iterable[Sequence[str]], count: int) -> dict[str, Any]:
    """Writes the folder `bm25` and returns terms: how many different tokens there are.

    blocks: texts in order of their numbers, `count` in all.
    """
    require_extra("passages", "an index of words over passages")
    import bm25s
    from bm25s.tokenization import Tokenized

    terms: dict[str, int] = {}
    rows: list[Any] = []
    for texts in blocks:
        rows += [
            np.array([terms.setdefault(token, len(terms)) for token in tokens(text)], dtype=np.int32) for text in texts
        ]
        workspace.monitor.progress(len(rows), count, "passages split into words")
    (workspace.out / FOLDER).mkdir()
    if terms:
        index = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
        index.index(Tokenized(ids=rows, vocab=terms), create_empty_token=False, show_progress=False)
        index.save(workspace.out / FOLDER, show_progress=False)
    return {"terms": len(terms)}


class Bm25Index:
    """Finds passages by the words that they share with a question.  Raises ArtifactError when the index is damaged."""

    def __init__(self, folder: Path, terms: int) -> None:
        require_extra("passages", "an index of words over passages")
        import bm25s

        self.index: Any = None
        if not terms:
            return
        try:
            self.index = bm25s.BM25.load(folder / FOLDER, mmap=True, show_progress=False)
        except (OSError, ValueError, KeyError, TypeError) as fault:
            raise ArtifactError(f"{folder / FOLDER} cannot be read ({fault}); build the passage index again") from None

    def search(self, texts: Sequence[str], k: int) -> list[RankedPassages]:
        """The k passages of each text that score highest, of those that share a word with it."""
        return [self._search(text, k) for text in texts]

    def _search(self, text: str, k: int) -> RankedPassages:
        known = (
            [self.index.vocab_dict[token] for token in tokens(text) if token in self.index.vocab_dict]
            if self.index is not None
            else []
        )
        if not known:
            return []
        scores = np.round(self.index.get_scores_from_ids(known).astype(np.float64), 5)
        candidates = np.flatnonzero(scores > 0)
        if len(candidates) > k:
            least = np.partition(scores[candidates], len(candidates) - k)[len(candidates) - k]
            candidates = candidates[scores[candidates] >= least]
        order = np.lexsort((candidates, -scores[candidates]))[:k]
        return [(int(candidates[index]), float(scores[candidates[index]])) for index in order]
