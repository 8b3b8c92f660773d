"""The path classifiers of Retrieve-Rewrite-Answer: how many hops, and which relation comes next.

    P(h | q)                     = softmax(W_h  encoder(q))
    P(r_t | q, r_1 … r_{t-1})    = softmax(W_r  encoder(q | r_1 | … | r_{t-1}))
    score of a path              = Π_t P(r_t | …)

One encoder and one relation layer serve all steps; the hop layer reads the encoding that the first step reads, or that
of a second encoder, which begins with the same weights (`hop_path.shared_encoder`; so in the published code).  The
classes are the directed relations of the gold paths in training, written with their labels: a relation that no gold
path of training has cannot be predicted.  Nothing here needs a graph.  Wu et al. 2023, section 3.1.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from kgqa_core.nn.device import device_of
from kgqa_core.nn.encoders import Encoder, Reader, load_encoder
from kgqa_core.nn.saved_model import load_config, load_weights

VERSION = 1
"""Version of the stored model's layout."""
KIND = "hop_path"
RETRIEVAL_OPTIONS = {"beam", "reasoning_paths", "gold_hops", "sampling", "named_first"}
"""Options of `hop_path` that are stored with a model, since they decide what is retrieved with it."""
SEPARATOR = " | "
"""Stands between the question and the relations of a path."""
BATCH = 128
"""Texts that are encoded at once."""
DECIMALS = 6
"""Digits of a log probability that count: what differs less is a tie."""


class PathClassifier(nn.Module):
    """The network, from token ids to logits of hop counts (1 first) and of the relation classes.

    shared: whether both read the states of one encoder.
    """

    def __init__(self, encoder: Encoder, relations: int, hops: int, shared: bool = True) -> None:
        super().__init__()
        self.encoder = encoder
        self.hop_encoder: Encoder | None = None if shared else copy.deepcopy(encoder)
        self.hop_layer = nn.Linear(encoder.width, hops)
        self.relation_layer = nn.Linear(encoder.width, relations)

    def forward(self, ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """(hops [batch, H], relations [batch, C]) of ids [batch, length]."""
        state = self.encoder(ids, mask)
        of_hops = state if self.hop_encoder is None else self.hop_encoder(ids, mask)
        return self.hop_layer(of_hops), self.relation_layer(state)

    @property
    def encoders(self) -> list[Encoder]:
        """The encoders that it has."""
        return [self.encoder] if self.hop_encoder is None else [self.encoder, self.hop_encoder]


@dataclass(frozen=True)
class PathPrediction:
    """What the classifiers predict for a text.

    hops: the most probable number, the smallest of equal ones.  hop_probabilities: of 1, 2, … hops.
    paths: relation keys and score of each path of the beam, best first.
    """

    hops: int
    hop_probabilities: tuple[float, ...]
    paths: tuple[tuple[tuple[str, ...], float], ...]


@dataclass(frozen=True)
class PathModel:
    """Classifiers with their reader and the meaning of their classes.

    keys, labels: of each class, in the order that breaks ties.
    """

    network: PathClassifier
    reader: Reader
    keys: tuple[str, ...]
    labels: tuple[str, ...]

    @cached_property
    def max_hops(self) -> int:
        """The largest number of hops that can be predicted."""
        return self.network.hop_layer.out_features

    def rows(self, texts: Sequence[tuple[str, tuple[int, ...]]]) -> list[list[int]]:
        """Token ids of (question, classes of the path so far)."""
        return [
            encode_with_path(self.reader, text, [self.labels[number] for number in prefix]) if prefix else row
            for (text, prefix), row in zip(texts, self.reader.read([text for text, _ in texts]), strict=True)
        ]

    def predict(
        self,
        texts: Sequence[str],
        *,
        beam: int,
        hops: Sequence[int | None] | None = None,
        known: NDArray[np.bool_] | None = None,
    ) -> list[PathPrediction]:
        """Hop counts and paths of texts, in their order.

        beam: relations that continue each partial path, so that there are up to beam^h paths.
        hops: the number of hops where it is known, within the model's; None predicts it.
        known: [C] classes that may be predicted.  Ties go to the smaller class, step by step.
        """
        wanted = list(hops) if hops is not None else [None] * len(texts)
        queries = sorted({(text, count) for text, count in zip(texts, wanted, strict=True)}, key=str)
        answers = dict(zip(queries, self._predict(queries, beam, known), strict=True))
        return [answers[pair] for pair in zip(texts, wanted, strict=True)]

    def _predict(
        self, queries: Sequence[tuple[str, int | None]], beam: int, known: NDArray[np.bool_] | None
    ) -> list[PathPrediction]:
        hop_logs, relation_logs = self._logs([(text, ()) for text, _ in queries])
        hop_logs = hop_logs.round(DECIMALS)
        likely = (hop_logs.argmax(1) + 1).tolist()
        counts = [
            best if count is None else min(max(count, 1), self.max_hops)
            for (_, count), best in zip(queries, likely, strict=True)
        ]
        paths: list[list[tuple[tuple[int, ...], float]]] = [[((), 0.0)] for _ in queries]
        for step in range(max(counts, default=0)):
            prefixes = [
                (number, path, score)
                for number, own in enumerate(paths)
                if counts[number] > step
                for path, score in own
            ]
            if step:
                _, relation_logs = self._logs([(queries[number][0], path) for number, path, _ in prefixes])
            chosen = best_of(relation_logs if known is None else np.where(known, relation_logs, -np.inf), beam)
            longer: dict[int, list[tuple[tuple[int, ...], float]]] = {number: [] for number, _, _ in prefixes}
            for (number, path, score), own, logs in zip(prefixes, chosen, relation_logs, strict=True):
                longer[number] += [((*path, int(c)), round(score + float(logs[c]), DECIMALS)) for c in own]
            for number, own_paths in longer.items():
                paths[number] = own_paths
        return [
            PathPrediction(
                best,
                tuple(round(value, 6) for value in np.exp(logs).tolist()),
                tuple(
                    (tuple(self.keys[number] for number in path), float(np.exp(score)))
                    for path, score in sorted(own, key=lambda item: (-item[1], item[0]))
                ),
            )
            for own, best, logs in zip(paths, likely, hop_logs, strict=True)
        ]

    def _logs(self, texts: Sequence[tuple[str, tuple[int, ...]]]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Log probabilities of hops [n, H] and relations [n, C]; equal texts are encoded once, by length."""
        distinct = sorted(set(texts))
        rows = self.rows(distinct)
        hops = np.empty((len(rows), self.max_hops))
        relations = np.empty((len(rows), len(self.keys)))
        self.network.eval()
        device = device_of(self.network)
        with torch.inference_mode():
            for batch, ids, mask in self.reader.by_length(rows, BATCH):
                for outputs, target in zip(
                    self.network(ids.to(device), mask.to(device)), (hops, relations), strict=True
                ):
                    target[batch] = torch.log_softmax(outputs.double(), dim=-1).cpu().numpy()
        number_of = {text: number for number, text in enumerate(distinct)}
        numbers = [number_of[text] for text in texts]
        return hops[numbers], relations[numbers]


def best_of(logs: NDArray[np.float64], beam: int) -> list[NDArray[np.int64]]:
    """The classes of the greatest values of each row, at most `beam`, ties by class; impossible ones never."""
    rounded = logs.round(DECIMALS)
    order = np.argsort(-rounded, axis=1, kind="stable")[:, :beam]
    return [best[np.isfinite(row[best])] for best, row in zip(order, logs, strict=True)]


def encode_with_path(reader: Reader, question: str, labels: Sequence[str]) -> list[int]:
    """Token ids of `question | label | …`; where they are too many, the question's end is cut, not the path."""
    path = "".join(SEPARATOR + label for label in labels)
    reader.tokenizer.no_truncation()
    reader.tokenizer.no_padding()
    encoding = reader.tokenizer.encode(question + path)
    over = len(encoding.ids) - reader.max_tokens
    if over > 0:
        starts = [start for start, stop in encoding.offsets if start < stop <= len(question)]
        question = question[: starts[-over]] if over < len(starts) else ""
        return reader.read([question.rstrip() + path])[0]
    return encoding.ids or [reader.pad]


def describe(model: PathModel, encoder: dict[str, Any]) -> dict[str, Any]:
    """Everything beside the weights that a stored model is rebuilt from."""
    config = {
        "version": VERSION,
        "kind": KIND,
        "hops": model.max_hops,
        "relation_keys": list(model.keys),
        "relation_labels": list(model.labels),
        "encoder": encoder,
    }
    return config if model.network.hop_encoder is None else config | {"shared_encoder": False}


def load_model(folder: Path) -> tuple[PathModel, dict[str, Any]]:
    """The classifiers stored in `folder` and their config.  Raises ArtifactError when they are missing or damaged."""
    config = load_config(folder, KIND, VERSION, "path retriever", "relation_keys", "relation_labels", "hops", "encoder")
    keys, labels, hops = config["relation_keys"], config["relation_labels"], int(config["hops"])
    encoder, reader = load_encoder(folder, config["encoder"])
    network = PathClassifier(encoder, len(keys), hops, bool(config.get("shared_encoder", True)))
    load_weights(folder, network)
    return PathModel(network, reader, tuple(keys), tuple(labels)), config
