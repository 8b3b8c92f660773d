"""A trained decoder: beam search over its actions, and how retriever and decoder are saved and loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn
from transformers.modeling_outputs import BaseModelOutput

from kgqa_core.config import DecodeOptions
from kgqa_core.errors import ArtifactError
from kgqa_core.logic.forms import Form
from kgqa_core.nn.saved_model import load_config, load_tokenizer, load_weights, save_config, save_model
from kgqa_core.papers.grailqability.parsing.decode.actions import NUMBER, PAD
from kgqa_core.papers.grailqability.parsing.decode.automaton import Automaton
from kgqa_core.papers.grailqability.parsing.decode.fit import Decoder
from kgqa_core.papers.grailqability.parsing.decode.network import PointerT5, new_network
from kgqa_core.papers.grailqability.parsing.decode.rows import Batcher, DecoderRow, reader_of
from kgqa_core.papers.grailqability.parsing.decode.text_decoder import AllowedActions, TextDecoder, beam_search
from kgqa_core.papers.grailqability.parsing.frozen_reader import FrozenReader, FrozenWords


class PointerDecoder:
    """The scratch decoder with its vocabulary."""

    def __init__(self, network: PointerT5, batcher: Batcher, device: torch.device) -> None:
        self.network, self.batcher, self.device = network, batcher, device
        nn.Module.to(network, device)
        network.open(batcher.actions)

    @torch.inference_mode()
    def search(
        self, rows: Sequence[DecoderRow], automata: Sequence[Automaton], beams: int
    ) -> list[list[tuple[Form | None, float]]]:
        """The forms of each question with their log-probabilities, best first; None for NK."""
        self.network.eval()
        batch, _ = self.batcher.batch(rows, self.device)
        states, mask = self.network.encoded(batch)
        pieces = [[(action,) for action in range(automaton.slots.actions)] for automaton in automata]
        allowed = AllowedActions(automata, pieces, beams, 1, NUMBER[PAD])
        longest = 1 + max(automaton.limits.actions for automaton in automata)
        inputs = {"encoder_outputs": BaseModelOutput(last_hidden_state=states), "attention_mask": mask}
        return beam_search(self.network, allowed, longest, beams, inputs | self.network.pointers(states, batch))


VERSION = 4
KIND = "decode"


def save_decoder(folder: Path, decoder: Decoder, options: DecodeOptions, *, no_form: bool, longest: int) -> None:
    """Writes a trained decoder into a new folder.  no_form, longest: as of `SavedDecoder`."""
    config = {
        "no_form": no_form, "classes": options.classes, "longest": longest, "max_tokens": options.max_tokens,
        "network": decoder.shape,
    }  # fmt: skip
    if isinstance(decoder.network, TextDecoder):
        folder.mkdir(parents=True, exist_ok=True)
        save_config(folder, {"kind": KIND, "version": VERSION, **config})
        decoder.network.save(folder)
    else:
        assert decoder.tokenizer is not None
        weights = dict(decoder.network.named_parameters())
        save_model(folder, weights, decoder.tokenizer, {"kind": KIND, "version": VERSION, **config})


@dataclass(frozen=True)
class SavedDecoder:
    """A decoder.

    no_form: whether training had questions without form.  classes: types read of a question.  longest: actions of the
    longest form of training.
    """

    decoder: PointerDecoder | TextDecoder
    no_form: bool
    classes: int
    longest: int


def load_decoder(folder: Path, actions: int, device: torch.device, states: FrozenReader | None = None) -> SavedDecoder:
    """The stored decoder.

    actions: beyond the fixed ones, of a question at most.  states: by which the retriever beside it reads.
    Raises ArtifactError when it is damaged.
    """
    config = load_config(folder, KIND, VERSION, "parser", "no_form", "classes", "longest", "network")
    trained_with = bool(config["no_form"]), int(config["classes"]), int(config["longest"])
    if config["network"] is None:
        return SavedDecoder(TextDecoder(folder / "model", device), *trained_with)
    network = new_network(**config["network"])
    load_weights(folder, network)
    if isinstance(network.words, FrozenWords):
        if states is None:
            raise ArtifactError(f"{folder} reads by the pretrained encoder of a retriever, and there is none beside it")
        network.words.read_by(states)
    else:
        states = None
    batcher = Batcher(states or reader_of(load_tokenizer(folder), config["max_tokens"]), actions)
    return SavedDecoder(PointerDecoder(network, batcher, device), *trained_with)
