"""A trained retrieve-and-decode parser on disk: retriever/ and decoder/, each with weights, tokenizer and config."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import nn

from kgqa_core.config import DecodeOptions
from kgqa_core.errors import ArtifactError
from kgqa_core.nn.encoders import load_encoder
from kgqa_core.parsing.decode.fit import Decoder
from kgqa_core.parsing.decode.network import new_network
from kgqa_core.parsing.decode.pretrained import TextDecoder
from kgqa_core.parsing.decode.retriever import Retriever, TwoTower
from kgqa_core.parsing.decode.rows import Batcher, reader_of
from kgqa_core.parsing.decode.search import PointerDecoder

VERSION = 1
KIND = "decode"
WEIGHTS, CONFIG, TOKENIZER = "model.safetensors", "config.json", "tokenizer.json"


def save(folder: Path, network: nn.Module, tokenizer: Tokenizer, config: Mapping[str, Any]) -> None:
    """Writes weights, tokenizer and config into a new folder."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    (folder / TOKENIZER).write_text(tokenizer.to_str(pretty=False), encoding="utf-8")
    _write(folder, config)
    own = dict(network.named_parameters())
    save_file({name: own[name].detach().cpu().contiguous() for name in sorted(own)}, str(folder / WEIGHTS))


def read_config(folder: Path) -> dict[str, Any]:
    """The config of a stored part.  Raises ArtifactError when it is damaged, or of another version."""
    try:
        config: dict[str, Any] = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        if (config["kind"], config["version"]) != (KIND, VERSION):
            raise ArtifactError(
                f"{folder} holds a parser of kind {config['kind']!r} and layout {config['version']}, not {KIND!r} and "
                f"{VERSION}; train it again"
            )
    except (OSError, ValueError, KeyError, TypeError) as fault:
        raise ArtifactError(f"{folder} does not hold a trained parser ({fault}); train one first") from None
    return config


def load_retriever(folder: Path) -> Retriever:
    """The stored retriever.  Raises ArtifactError when it is damaged."""
    encoder, reader = load_encoder(folder, read_config(folder)["encoder"])
    network = TwoTower(encoder)
    _fill(network, folder)
    return Retriever(network, reader)


def save_decoder(folder: Path, decoder: Decoder, options: DecodeOptions, *, no_form: bool, longest: int) -> None:
    """Writes a trained decoder into a new folder.  no_form, longest: as of `Stored`."""
    config = {
        "no_form": no_form, "classes": options.classes, "longest": longest, "max_tokens": options.max_tokens,
        "network": decoder.shape,
    }  # fmt: skip
    if isinstance(decoder.network, TextDecoder):
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder, config)
        decoder.network.save(folder)
    else:
        assert decoder.tokenizer is not None
        save(folder, decoder.network, decoder.tokenizer, config)


@dataclass(frozen=True)
class Stored:
    """A decoder.

    no_form: whether it learnt from questions without form.  classes: types read of a question.  longest: of the forms
    that it learnt, in actions.
    """

    decoder: PointerDecoder | TextDecoder
    no_form: bool
    classes: int
    longest: int


def load_decoder(folder: Path, actions: int, device: torch.device) -> Stored:
    """The stored decoder.

    actions: beyond the fixed ones, of a question at most.  Raises ArtifactError when it is damaged.
    """
    config = read_config(folder)
    learnt = bool(config["no_form"]), int(config["classes"]), int(config["longest"])
    if config["network"] is None:
        return Stored(TextDecoder(folder / "model", device), *learnt)
    try:
        tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
    except Exception as fault:  # the tokenizers library raises bare Exception
        raise ArtifactError(f"{folder / TOKENIZER} cannot be read: {fault}; train the parser again") from None
    network = new_network(**config["network"])
    _fill(network, folder)
    batcher = Batcher(reader_of(tokenizer, config["max_tokens"]), actions)
    return Stored(PointerDecoder(network, batcher, device), *learnt)


def _write(folder: Path, config: Mapping[str, Any]) -> None:
    text = json.dumps({"kind": KIND, "version": VERSION, **config}, sort_keys=True, ensure_ascii=False, indent=1)
    (folder / CONFIG).write_text(text, encoding="utf-8")


def _fill(network: nn.Module, folder: Path) -> None:
    try:
        weights = load_file(str(folder / WEIGHTS))
        own = dict(network.named_parameters())
        if set(weights) != set(own):
            raise RuntimeError(f"{sorted(set(weights) ^ set(own))[:3]} are in one of them only")
        for name, parameter in own.items():
            parameter.data.copy_(weights[name])
    except (OSError, SafetensorError, RuntimeError) as fault:
        reason = str(fault).strip().splitlines()[0]
        raise ArtifactError(f"the weights in {folder} do not fit their config ({reason}); train it again") from None
