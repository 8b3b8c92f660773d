"""A trained network on disk: model.safetensors, config.json and, where it reads texts, tokenizer.json."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor, nn

from kgqa_core.errors import ArtifactError

WEIGHTS, CONFIG, TOKENIZER = "model.safetensors", "config.json", "tokenizer.json"
FIRST_KIND = "rigel"
"""What a config without a kind is of: Rigel was saved before there were others."""


def save_model(folder: Path, weights: Mapping[str, Tensor], tokenizer: Tokenizer, config: Mapping[str, Any]) -> None:
    """Writes weights, tokenizer and config into a folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    (folder / TOKENIZER).write_text(tokenizer.to_str(pretty=False), encoding="utf-8")
    save_config(folder, config)
    save_file({name: weights[name].detach().cpu().contiguous() for name in sorted(weights)}, folder / WEIGHTS)


def save_config(folder: Path, config: Mapping[str, Any]) -> None:
    """Writes everything beside the weights that a network is rebuilt from."""
    text = json.dumps(config, sort_keys=True, ensure_ascii=False, indent=1)
    (folder / CONFIG).write_text(text, encoding="utf-8")


def load_config(folder: Path, kind: str | None, version: int, what: str, *needed: str) -> dict[str, Any]:
    """The config of a saved network.  what: it is called in messages.  needed: keys beside kind, version and encoder.

    Raises ArtifactError when it is missing, damaged, or of another kind or version.
    """
    try:
        config: dict[str, Any] = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        own = config.get("kind"), config["version"]
        if own != (kind, version):
            raise ArtifactError(
                f"{folder} holds a model of kind {own[0] or FIRST_KIND!r} and layout {own[1]}, not the {what} of kind "
                f"{kind or FIRST_KIND!r} and layout {version}; train it again"
            )
        for key in needed:
            config[key]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as fault:
        raise ArtifactError(f"{folder} does not hold a trained {what} ({fault}); train one first") from None
    return config


def load_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer of a saved network.  Raises ArtifactError when it cannot be read."""
    try:
        return Tokenizer.from_file(str(folder / TOKENIZER))
    except Exception as fault:  # the tokenizers library raises bare Exception
        raise ArtifactError(f"{folder / TOKENIZER} cannot be read: {fault}; train the model again") from None


def load_weights(
    folder: Path, network: nn.Module, convert: Callable[[dict[str, Tensor]], dict[str, Tensor]] | None = None
) -> None:
    """Fills a network with saved weights and sets it to evaluation.  convert: saved weights to those of the network.

    Raises ArtifactError when they are damaged, or are not those that the network has.
    """
    try:
        weights = load_file(folder / WEIGHTS)
        loaded = network.load_state_dict(convert(weights) if convert else weights, strict=False)
        # Weights that are there under two names are saved under the first alone.
        names = {name for name, _ in (*network.named_parameters(), *network.named_buffers())}
        if wrong := sorted(names.intersection(loaded.missing_keys).union(loaded.unexpected_keys)):
            raise RuntimeError(f"{wrong[:3]} are in one of them only")
    except (OSError, SafetensorError, RuntimeError) as fault:
        reason = str(fault).strip().splitlines()[0]
        raise ArtifactError(f"the weights in {folder} do not fit their config ({reason}); train it again") from None
    network.eval()
