"""The two trainings: the retriever learns the items of the gold forms, the decoder their actions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

from kgqa_core.config import DecodeOptions
from kgqa_core.nn.checkpoint import TrainingState, key_of, restore_weights
from kgqa_core.nn.device import pick_device
from kgqa_core.nn.encoders import learn_tokenizer
from kgqa_core.nn.training import ModelRates, TrainingPlan, backward_of, train_encoder
from kgqa_core.papers.grailqability.parsing.decode.actions import NK, NUMBER, PAD
from kgqa_core.papers.grailqability.parsing.decode.network import PointerT5, new_network
from kgqa_core.papers.grailqability.parsing.decode.rows import (
    PLACEHOLDERS,
    READ,
    Batcher,
    DecoderRow,
    Orders,
    drop_random_items,
    reader_of,
    slot_actions,
)
from kgqa_core.papers.grailqability.parsing.decode.text_decoder import TextDecoder
from kgqa_core.papers.grailqability.parsing.frozen_reader import FrozenReader, FrozenWords
from kgqa_core.workspace import Workspace

SECTION = "parsing.decode"


@dataclass(frozen=True)
class Decoder:
    """A trained decoder.

    shape: what `new_network` made a scratch one of, and its vocabulary; none for a pretrained model.
    """

    network: PointerT5 | TextDecoder
    progress: TrainingState
    shape: dict[str, Any] | None = None
    tokenizer: Tokenizer | None = None


def fit_decoder(
    workspace: Workspace,
    learning: Sequence[DecoderRow],
    developing: Sequence[DecoderRow],
    options: DecodeOptions,
    seed: int,
    key: str,
    states: FrozenReader | None = None,
) -> Decoder:
    """The trained decoder; rows with their actions.  workspace: of the decoder, which is not written.

    states: of a pretrained encoder, by which a scratch decoder reads.
    """
    torch.manual_seed(seed)
    device = pick_device(options.device, SECTION)
    rates = ModelRates(options.model, options.learning_rate, options.encoder_learning_rate, options.checkpoint_seconds)
    network: PointerT5 | TextDecoder
    shape = tokenizer = None
    if options.model == "scratch":
        network, tokenizer, shape, loss, exact = _scratch(learning, options, device, states)
    else:
        network = decoder = TextDecoder(options.model, device)
        loss, exact = decoder.loss, decoder.exact

    def measure() -> dict[str, float]:
        if not developing:
            return {}
        right = sum(
            exact(developing[at : at + options.batch_size]) for at in range(0, len(developing), options.batch_size)
        )
        return {"exact": right / len(developing)}

    missing = options.missing_relation_rate if any(NUMBER[NK] in row.actions for row in learning) else 0.0

    def batch_loss(numbers: Tensor) -> Tensor:
        rows = [learning[i] for i in numbers.tolist()]
        return loss(drop_random_items(rows, missing) if missing else rows)

    orders = Orders(learning, options.batch_size, options.questions_per_wording, seed)
    plan = TrainingPlan(
        per_epoch=orders.per_epoch, epochs=options.epochs, patience=options.patience, batches=orders.of,
        backward=backward_of(batch_loss), measure=measure, score=lambda found: [found["exact"]], section=SECTION,
    )  # fmt: skip
    run_key = key_of(key, "decoder", options.decisive(), seed)
    progress, weights = train_encoder(network, plan, rates, run_key, workspace.monitor, workspace.work)
    restore_weights(network, weights)
    return Decoder(network, progress, shape, tokenizer)


Loss = Callable[[Sequence[DecoderRow]], Tensor]
Exact = Callable[[Sequence[DecoderRow]], int]


def _scratch(
    learning: Sequence[DecoderRow], options: DecodeOptions, device: torch.device, states: FrozenReader | None
) -> tuple[PointerT5, Tokenizer, dict[str, Any], Loss, Exact]:
    """A scratch decoder with its vocabulary, and its loss and measure for the loop."""
    texts = sorted({text for row in learning for text in (row.text, *row.labels)})
    if states is None:
        tokenizer = learn_tokenizer(texts, options.scratch_vocabulary, PLACEHOLDERS)
        words = {"words": tokenizer.get_vocab_size()}
    else:
        tokenizer, words = states.reader.tokenizer, {"words": states.first, "states": states.encoder.width}
    actions = slot_actions(options.mentions, options.candidates, options.classes, options.relations)
    shape: dict[str, Any] = {
        **words, "features": READ, "slots": actions, "width": options.width,
        "layers": options.layers, "heads": options.heads, "dropout": options.dropout,
    }  # fmt: skip
    network = new_network(**shape)
    nn.Module.to(network, device)
    if isinstance(network.words, FrozenWords) and states is not None:
        network.words.read_by(states)
    batcher = Batcher(states or reader_of(tokenizer, options.max_tokens), actions)
    batcher.tokens(texts)

    def loss(rows: Sequence[DecoderRow]) -> Tensor:
        return network.loss(*batcher.batch(rows, device, shuffle=True), hide=options.dropout)

    @torch.inference_mode()
    def exact(rows: Sequence[DecoderRow]) -> int:
        network.eval()
        batch, gold = batcher.batch(rows, device)
        predicted = network.teacher_forced_logits(batch, gold).argmax(-1)
        return int(((predicted == gold) | (gold == NUMBER[PAD])).all(1).sum())

    return network, tokenizer, shape, loss, exact
