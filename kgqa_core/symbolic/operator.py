"""Which operation a question needs, as a classifier predicts it from the masked question.

    P(kind | q), P(best | q), P(order | q) = softmax(W encoder(q))

kind: one of `operations.KINDS`.  best: whether the largest or the smallest is wanted, of what ranks or compares.
order: whether the operands stand in the order in which the question names them.  The three are apart, so that what
training shows for one kind (`fewest` of a superlative) serves the others.  The place of an ordinal is read from the
text (`question_reader`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from kgqa_core.errors import ArtifactError
from kgqa_core.logic.forms import BESTS
from kgqa_core.nn.encoders import Encoder, Reader, load_encoder
from kgqa_core.nn.saved_model import load_config, load_weights, save_model
from kgqa_core.symbolic.operations import KINDS, ORDERS, OperationScores

PHRASE, DROPOUT = 64, 0.3
"""Features of phrases of each length, and the share of them that is dropped in training."""
KIND, VERSION = "operator", 1
BATCH = 256


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
        results = [torch.relu(phrase(tokens)).amax(2) for phrase in self.phrases]
        state = torch.cat([self.encoder(ids, mask), self.dropout(torch.cat(results, 1))], 1)
        return tuple(head(state) for head in self.heads)


@dataclass(frozen=True)
class OperatorModel:
    """A trained classifier with its reader."""

    network: OperatorNetwork
    reader: Reader

    def guess(self, texts: Sequence[str], device: torch.device | None = None) -> list[OperationScores]:
        """The predictions for masked texts, in their order; equal texts are encoded once."""
        distinct = sorted(set(texts))
        rows = self.reader.read(distinct)
        results: dict[str, OperationScores] = {}
        self.network.eval()
        with torch.inference_mode():
            for own, ids, mask in self.reader.by_length(rows, BATCH):
                logits = self.network(*(tensor.to(device) if device else tensor for tensor in (ids, mask)))
                logs = [torch.log_softmax(logit, dim=-1).cpu().double().tolist() for logit in logits]
                for number, *heads in zip(own, *logs, strict=True):
                    results[distinct[number]] = OperationScores(
                        *(tuple(round(value, 6) for value in head) for head in heads)
                    )
        return [results[text] for text in texts]


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
