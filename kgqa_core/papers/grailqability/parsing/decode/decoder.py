"""A trained decoder: beam search over its actions, and how retriever and decoder are saved and loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import LogitsProcessor, LogitsProcessorList
from transformers.modeling_outputs import BaseModelOutput

from kgqa_core.config import DecodeOptions
from kgqa_core.logic.forms import Form
from kgqa_core.nn.saved_model import load_config, load_tokenizer, load_weights, save_config, save_model
from kgqa_core.papers.grailqability.parsing.decode.actions import END, NUMBER, PAD, read
from kgqa_core.papers.grailqability.parsing.decode.automaton import Automaton, State
from kgqa_core.papers.grailqability.parsing.decode.fit import Decoder
from kgqa_core.papers.grailqability.parsing.decode.network import DecoderBatch, PointerT5, new_network
from kgqa_core.papers.grailqability.parsing.decode.rows import Batcher, DecoderRow, reader_of
from kgqa_core.papers.grailqability.parsing.decode.text_decoder import TextDecoder

_END, _PAD = NUMBER[END], NUMBER[PAD]


class Allowed(LogitsProcessor):  # type: ignore[misc]
    """Lets each row go on only as its question's automaton allows.

    The rows of a question stand together, as beam search has them.  Log-probabilities are not made to sum to 1 again,
    so that a form that the model would not have written alone scores low.
    """

    def __init__(self, automata: Sequence[Automaton], beams: int) -> None:
        self.automata, self.beams = automata, beams
        self._states: list[dict[tuple[int, ...], State | None]] = [{(): one.start} for one in automata]

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """scores [rows, actions] with -inf for what may not come after input_ids [rows, actions so far]."""
        rows: list[int] = []
        allowed: list[int] = []
        for row, actions in enumerate(input_ids[:, 1:].tolist()):
            number = row // self.beams
            state = self.state(number, tuple(actions))
            own = self.automata[number].allowed(state) if state is not None else (_PAD,)
            rows += [row] * len(own)
            allowed += own
        masked = torch.full_like(scores, float("-inf"))
        masked[rows, allowed] = scores[rows, allowed]
        return masked

    def state(self, number: int, actions: tuple[int, ...]) -> State | None:
        """Where a question's automaton is after some actions; None after what is not allowed, and after END."""
        known = self._states[number]
        if actions not in known:
            before, automaton = self.state(number, actions[:-1]), self.automata[number]
            fits = before is not None and actions[-1] != _END and actions[-1] in automaton.allowed(before)
            known[actions] = automaton.after(before, actions[-1]) if fits and before is not None else None
        return known[actions]


class PointerDecoder:
    """The scratch decoder with its vocabulary."""

    def __init__(self, network: PointerT5, batcher: Batcher, device: torch.device) -> None:
        self.network, self.batcher, self.device = network, batcher, device
        nn.Module.to(network, device)
        network.open(batcher.actions)

    def search(
        self, rows: Sequence[DecoderRow], automata: Sequence[Automaton], beams: int
    ) -> list[list[tuple[Form | None, float]]]:
        """The forms of each question with their log-probabilities, best first; None for NK."""
        return search(self.network, self.batcher.batch(rows, self.device)[0], automata, beams)


@torch.inference_mode()
def search(
    network: PointerT5, batch: DecoderBatch, automata: Sequence[Automaton], beams: int
) -> list[list[tuple[Form | None, float]]]:
    """The forms of each question with their log-probabilities, best first; None for NK."""
    network.eval()
    states, mask = network.encoded(batch)
    width = max(2, beams)  # one beam is no beam search, and has no scores
    longest = max(one.limits.actions for one in automata) + 1
    model: Any = network
    out = model.generate(
        encoder_outputs=BaseModelOutput(last_hidden_state=states),
        attention_mask=mask,
        logits_processor=LogitsProcessorList([Allowed(automata, width)]),
        num_beams=width,
        num_return_sequences=width,
        do_sample=False,
        length_penalty=0.0,
        max_new_tokens=longest,
        return_dict_in_generate=True,
        output_scores=True,
        **network.pointers(states, batch),
    )
    rows = out.sequences[:, 1:].tolist()
    scores = out.sequences_scores.tolist()
    found: list[list[tuple[Form | None, float]]] = []
    for number, automaton in enumerate(automata):
        own: dict[Form | None, float] = {}
        for place in range(number * width, (number + 1) * width):
            if scores[place] < -1e6 or _END not in rows[place]:
                continue  # there were fewer forms than beams
            form = read(rows[place][: rows[place].index(_END)], automaton.slots)
            own[form] = max(scores[place], own.get(form, float("-inf")))
        found.append(sorted(own.items(), key=lambda one: -one[1])[:beams])
    return found


VERSION = 2
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


def load_decoder(folder: Path, actions: int, device: torch.device) -> SavedDecoder:
    """The stored decoder.

    actions: beyond the fixed ones, of a question at most.  Raises ArtifactError when it is damaged.
    """
    config = load_config(folder, KIND, VERSION, "parser", "no_form", "classes", "longest", "network")
    trained_with = bool(config["no_form"]), int(config["classes"]), int(config["longest"])
    if config["network"] is None:
        return SavedDecoder(TextDecoder(folder / "model", device), *trained_with)
    network = new_network(**config["network"])
    load_weights(folder, network)
    batcher = Batcher(reader_of(load_tokenizer(folder), config["max_tokens"]), actions)
    return SavedDecoder(PointerDecoder(network, batcher, device), *trained_with)
