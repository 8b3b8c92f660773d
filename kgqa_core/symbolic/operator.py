"""Which operation a question needs, as a classifier predicts it from the masked question.

    P(kind | q), P(best | q), P(order | q) = softmax(W encoder(q))

kind: one of KINDS.  best: whether the largest or the smallest is wanted, of what ranks or compares.  order: whether the
operands stand in the order in which the question names them.  The three are apart, so that what training shows for one
kind (`fewest` of a superlative) serves the others.  The place of an ordinal is read from the text (`question_reader`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from kgqa_core.errors import ArtifactError
from kgqa_core.logic.forms import BESTS, And, Arg, Count, Entity, Form, Greater, Holds, Minus, Nth, children
from kgqa_core.nn.encoders import Encoder, Reader, load_encoder
from kgqa_core.nn.saved_model import load_config, load_weights, save_model

KINDS = ("none", "count", "best", "nth", "compare", "intersect", "difference", "yes/no")
"""none: a relation path.  best: argmax and argmin.  nth: a place further down.  compare: the one of two with more."""

RANKED = frozenset({"best", "nth", "compare"})
"""Kinds that want the largest or the smallest."""
ORDERED = frozenset({"difference", "yes/no"})
"""Kinds whose operands may not change places."""
ORDERS = ("as said", "turned")

PHRASE, DROPOUT = 64, 0.3
"""Features of phrases of each length, and the share of them that is dropped in training."""
KIND, VERSION = "operator", 1
BATCH = 256


@dataclass(frozen=True, slots=True)
class Operation:
    """The operation of a question.  best: `max` or `min`.  turned: the operand named second comes first."""

    kind: str
    best: str = "max"
    turned: bool = False


@dataclass(frozen=True, slots=True)
class Guess:
    """Log probabilities of each head, in the order of KINDS, BESTS and ORDERS."""

    kinds: tuple[float, ...]
    bests: tuple[float, ...]
    orders: tuple[float, ...]

    @property
    def kind(self) -> str:
        """The likeliest kind."""
        return KINDS[max(range(len(KINDS)), key=lambda number: self.kinds[number])]


class OperatorNetwork(nn.Module):
    """From token ids to logits of kind, best and order; reads the state of the encoder and which phrases there are.

    A phrase is one to three tokens, seen wherever it stands (Kim 2014): `how many` is informative, and what a
    question begins with may be new.  vocabulary: number of tokens.
    """

    def __init__(self, encoder: Encoder, vocabulary: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.embeddings = nn.Embedding(vocabulary, PHRASE)
        self.phrases = nn.ModuleList(  # without bias, so that padding is 0
            nn.Conv1d(PHRASE, PHRASE, length, padding=length - 1, bias=False) for length in (1, 2, 3)
        )
        self.dropout = nn.Dropout(DROPOUT)
        width = encoder.width + PHRASE * len(self.phrases)
        self.heads = nn.ModuleList(nn.Linear(width, len(classes)) for classes in (KINDS, BESTS, ORDERS))

    def forward(self, ids: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
        """(kinds [batch, 8], bests [batch, 2], orders [batch, 2]) of ids [batch, length]."""
        tokens = (self.embeddings(ids) * mask.unsqueeze(-1)).transpose(1, 2)
        found = [torch.relu(phrase(tokens)).amax(2) for phrase in self.phrases]
        state = torch.cat([self.encoder(ids, mask), self.dropout(torch.cat(found, 1))], 1)
        return tuple(head(state) for head in self.heads)


@dataclass(frozen=True)
class OperatorModel:
    """A trained classifier with its reader."""

    network: OperatorNetwork
    reader: Reader

    def guess(self, texts: Sequence[str], device: torch.device | None = None) -> list[Guess]:
        """The predictions for masked texts, in their order; equal texts are encoded once."""
        distinct = sorted(set(texts))
        rows = self.reader.read(distinct)
        found: dict[str, Guess] = {}
        self.network.eval()
        with torch.inference_mode():
            for own, ids, mask in self.reader.by_length(rows, BATCH):
                logits = self.network(*(tensor.to(device) if device else tensor for tensor in (ids, mask)))
                logs = [torch.log_softmax(one, dim=-1).cpu().double().tolist() for one in logits]
                for number, *heads in zip(own, *logs, strict=True):
                    found[distinct[number]] = Guess(*(tuple(round(value, 6) for value in head) for head in heads))
        return [found[text] for text in texts]


def operation_of(form: Form, mentions: Sequence[str]) -> Operation:
    """The operation that a form does, that of its outermost part that does any.

    mentions: keys of the question's topics in the order of its text, by which operands are turned or not.
    """
    match form:
        case Holds(of=of, one=one):
            return Operation("yes/no", turned=_turned(of, one, mentions))
        case Count():
            return Operation("count")
        case Arg(best=best):
            return Operation("best", best)
        case Nth(best=best):
            return Operation("nth", best)
        case Greater(best=best):
            return Operation("compare", best)
        case Minus(of=of, without=without):
            return Operation("difference", turned=_turned(of, without, mentions))
        case And(parts=parts) if sum(bool(_named(part)) for part in parts) > 1:
            return Operation("intersect")
    inner = [found for part in children(form) if (found := operation_of(part, mentions)).kind != "none"]
    return inner[0] if inner else Operation("none")


def _turned(first: Form, second: Form, mentions: Sequence[str]) -> bool:
    places = [
        min((mentions.index(key) for key in _named(form) if key in mentions), default=0) for form in (first, second)
    ]
    return places[0] > places[1]


def _named(form: Form) -> list[str]:
    own = [form.key] if isinstance(form, Entity) else []
    return own + [key for part in children(form) for key in _named(part)]


def save(folder: Path, model: OperatorModel, encoder: dict[str, Any]) -> None:
    """Writes model.safetensors, config.json and tokenizer.json into `folder`."""
    config = {"kind": KIND, "version": VERSION, "kinds": KINDS, "bests": BESTS, "orders": ORDERS, "encoder": encoder}
    save_model(folder, model.network.state_dict(), model.reader.tokenizer, config)


def load(folder: Path) -> OperatorModel:
    """The classifier stored in `folder`.  Raises ArtifactError when it is missing, damaged or of another layout."""
    config = load_config(folder, KIND, VERSION, "classifier of operations", "kinds", "encoder")
    if tuple(config["kinds"]) != KINDS:
        raise ArtifactError(f"{folder} holds a classifier of other operations; train it again")
    encoder, reader = load_encoder(folder, config["encoder"])
    network = OperatorNetwork(encoder, reader.tokenizer.get_vocab_size())
    load_weights(folder, network)
    return OperatorModel(network, reader)
