"""The packaged reader as a language model: an `HFModel` of the folder `weights` beside this file."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kgqa_core.errors import ModelError
from kgqa_core.llm.hf import HFModel
from kgqa_core.prompts import single_question

WEIGHTS: Final = Path(__file__).parent / "weights"
"""Folder with model.safetensors, config.json, tokenizer.json and training.json."""


class Builtin(HFModel):
    """The packaged reader: of a dialogue it reads the knowledge and the last query, worded as it was trained."""

    def _worded(self, prompt: str) -> tuple[str, bool]:
        return single_question(prompt), False


def load_builtin(
    *, batch_tokens: int = 8192, device: str = "auto", dtype: str = "auto", adapter: Path | None = None
) -> HFModel:
    """The packaged reader, with a LoRA adapter where one is given.

    Raises ModelError when its weights are not installed or the adapter is not one of it.
    """
    if not (WEIGHTS / "model.safetensors").is_file():
        raise ModelError(
            f"the weights of the builtin model are not in {WEIGHTS.name}/ of this installation; install the package "
            "again, or train them with python -m tools.builtin_reader.train --out DIR"
        )
    return Builtin(WEIGHTS, batch_tokens=batch_tokens, device=device, dtype=dtype, name="builtin", adapter=adapter)
