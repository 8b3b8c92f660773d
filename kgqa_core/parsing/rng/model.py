"""A trained rank-and-generate parser on disk: the ranker's weights, its tokenizer and what it was trained with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from kgqa_core.errors import ArtifactError
from kgqa_core.nn.device import pick_device
from kgqa_core.nn.encoders import load_encoder
from kgqa_core.parsing.rng.ranker import Ranker, RankNetwork

KIND, VERSION = "rng", 1
WEIGHTS, CONFIG, TOKENIZER = "model.safetensors", "config.json", "tokenizer.json"


def save(folder: Path, ranker: Ranker, description: dict[str, Any], no_form: bool) -> None:
    """Writes model.safetensors, config.json and tokenizer.json into `folder`."""
    tokenizer = ranker.reader.tokenizer
    tokenizer.no_truncation()
    tokenizer.no_padding()
    (folder / TOKENIZER).write_text(tokenizer.to_str(pretty=False), encoding="utf-8")
    config = {"kind": KIND, "version": VERSION, "encoder": description, "no_form": no_form}
    (folder / CONFIG).write_text(json.dumps(config, sort_keys=True, ensure_ascii=False, indent=1), encoding="utf-8")
    weights = ranker.network.state_dict()
    save_file({name: weights[name].cpu().contiguous() for name in sorted(weights)}, str(folder / WEIGHTS))


def load(folder: Path, device: str = "cpu") -> tuple[Ranker, bool]:
    """The ranker stored in `folder`, and whether it ranks "no form" too.  Raises ArtifactError when it is damaged."""
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        if (config["kind"], config["version"]) != (KIND, VERSION):
            raise ArtifactError(
                f"{folder} holds a parser of kind {config['kind']!r} and layout {config['version']}, not {KIND!r} and "
                f"{VERSION}; train it again"
            )
        description, no_form = config["encoder"], bool(config["no_form"])
    except (OSError, ValueError, KeyError, TypeError) as fault:
        raise ArtifactError(f"{folder} does not hold a trained parser ({fault}); train one first") from None
    encoder, reader = load_encoder(folder, description)
    network = RankNetwork(encoder)
    try:
        network.load_state_dict(load_file(str(folder / WEIGHTS)))
    except (OSError, SafetensorError, RuntimeError) as fault:
        reason = str(fault).strip().splitlines()[0]
        raise ArtifactError(f"the weights in {folder} do not fit their config ({reason}); train it again") from None
    return Ranker(network, reader, pick_device(device, "parsing.rng")), no_form
