"""Trains the scorer of the label parser on questions with gold forms, of one graph or of many.

    loss = -log Σ_{f right} softmax([scores of candidates, none])_f + cross-entropies of the heads

A share of the answerable questions loses every candidate with one of its right form's relations, as if the graph did
not have that relation, and "none" becomes right: so the model learns to decline in the words of real questions.
"""

from __future__ import annotations

import hashlib
import math
import random
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.nn import checkpoint
from kgqa_core.nn.checkpoint import TrainingState
from kgqa_core.nn.training import CHECKPOINT, CLIP, WEIGHT_DECAY
from kgqa_core.symbolic.by_labels.examples import LabelExample
from kgqa_core.symbolic.by_labels.parser import HEAD_FEATURES, NO_CLASS, none_features
from kgqa_core.symbolic.by_labels.scorer import FEATURES, HEADS, LIKENESS, LabelScorer, ScoreNetwork

HEAD_WEIGHTS = (0.5, 0.3, 0.3, 0.3, 0.3)
"""Weight of each head's loss."""
REPORTED = 25
"""Steps between two words on the progress."""


@dataclass(frozen=True)
class FitOptions:
    """How the scorer is trained.

    candidates: of a question in a batch.  dropped: share of questions that lose the relations of their right form.
    """

    steps: int = 600
    batch_size: int = 16
    candidates: int = 8
    learning_rate: float = 2e-4
    head_rate: float = 2e-3
    dropped: float = 0.12
    warmup: float = 0.06
    checkpoint_seconds: float = 30.0


@dataclass
class _LabelBatch:
    texts: list[str]
    phrases: list[str]
    nouns: list[str]
    pairs: Tensor
    features: Tensor
    sizes: list[int]
    right: list[Tensor]
    wanted: Tensor
    classes: Tensor
    weights: Tensor


def _batch(examples: Sequence[LabelExample], options: FitOptions, chooser: random.Random) -> _LabelBatch:
    phrases: dict[str, int] = {}
    nouns: dict[str, int] = {}
    pairs, features, sizes, right, classes = [], [], [], [], []
    answerable = []
    for number, one in enumerate(examples):
        indices = list(range(len(one.texts)))
        good = [p for p in indices if one.right[p]]
        dropped = bool(good) and chooser.random() < options.dropped
        if dropped:
            gone = set().union(*(one.relations[p] for p in good))
            gone = {chooser.choice(sorted(gone))} if gone else gone
            indices = [p for p in indices if not one.right[p] and not one.relations[p] & gone]
            good = []
        answerable.append(bool(good))
        wrong = [p for p in indices if not one.right[p]]
        near = wrong[: options.candidates // 2]
        rest = wrong[options.candidates // 2 :]
        chosen = good[:2] + near
        chosen += chooser.sample(rest, min(len(rest), max(options.candidates - len(chosen), 0)))
        sizes.append(len(chosen))
        for p in chosen:
            noun = nouns.setdefault(one.nouns[p], len(nouns))
            pairs.append((number, phrases.setdefault(one.texts[p], len(phrases)), noun))
            features.append(one.features[p])
            classes.append(one.classes[p])
        right.append(torch.tensor([bool(one.right[p]) and bool(good) for p in chosen] + [not good]))
    return _LabelBatch(
        [example.query.text for example in examples],
        list(phrases),
        list(nouns),
        torch.tensor(pairs, dtype=torch.long).reshape(-1, 3),
        torch.from_numpy(np.array(features, dtype=np.float32).reshape(len(pairs), FEATURES)),
        sizes,
        right,
        torch.tensor([example.wanted for example in examples]),
        torch.from_numpy(np.array(classes, dtype=np.int64).reshape(-1, len(HEADS))),
        torch.tensor([example.weight for example in examples]),
    )


def loss_of(scorer: LabelScorer, examples: Sequence[LabelExample], batch: _LabelBatch) -> tuple[Tensor, int]:
    """The loss of a batch, and for how many of its questions the best choice is right."""
    network = scorer.network
    question = network.encode(batch.texts, 0)
    logits = [head(question.pooled) for head in network.heads]
    logs = [torch.log_softmax(logit, -1).detach() for logit in logits]
    features = batch.features.clone()
    own = batch.pairs[:, 0]
    for index, (column, log) in enumerate(zip(HEAD_FEATURES, logs, strict=True)):
        known = batch.classes[:, index] >= 0
        value = log[own, batch.classes[:, index].clamp(min=0)].clamp(min=-8) / 4
        features[:, column] = torch.where(known, value, torch.zeros_like(value))
    likeness = features.new_zeros(0, LIKENESS)
    if len(own):
        phrase, nouns = network.encode(batch.phrases, 1), network.encode(batch.nouns, 1).vectors
        likeness = network.compare(question.rows(own), phrase.rows(batch.pairs[:, 1]), nouns[batch.pairs[:, 2]])
    scores = network.score(likeness, features)
    total, hits, start = scores.sum() * 0, 0, 0
    for number, size in enumerate(batch.sizes):
        own_rows = slice(start, start + size)
        mine, like = scores[own_rows], likeness[own_rows]
        start += size
        more = none_features(mine.detach(), like.detach(), features[own_rows], examples[number].query)
        none = network.none(more).reshape(1)
        log = torch.log_softmax(torch.cat([mine, none]), 0)
        right = batch.right[number]
        total = total - batch.weights[number] * torch.logsumexp(log[right], 0)
        hits += int(right[log.argmax()])
    total = total / max(len(batch.sizes), 1)
    for head, wanted, weight in zip(logits, batch.wanted.T, HEAD_WEIGHTS, strict=True):
        if (wanted != NO_CLASS).any():
            total = total + weight * nn.functional.cross_entropy(head, wanted, ignore_index=NO_CLASS)
    return total, hits


def fit(
    scorer: LabelScorer,
    examples: Sequence[LabelExample],
    options: FitOptions,
    seed: int,
    monitor: Monitor = QUIET,
    work: Path | None = None,
    *,
    keep: bool = False,
) -> dict[str, float]:
    """Trains the scorer's parameters that want a gradient, in place; returns loss and accuracy of the last tenth.

    work: folder of the checkpoint from which a killed training goes on, to the same weights.  keep: leaves there what
    was reached in the end, for more is to follow before anything is published.  Raises ValueError where
    there is no example.
    """
    if not examples:
        raise ValueError("a label parser learns from at least one example")
    network = scorer.network
    encoder = {id(p) for p in network.encoder.parameters()}
    own = [p for p in network.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in own if id(p) in encoder], "lr": options.learning_rate},
        {"params": [p for p in own if id(p) not in encoder], "lr": options.head_rate},
    ]
    optimizer = torch.optim.AdamW(groups, weight_decay=WEIGHT_DECAY)
    peak = [group["lr"] for group in optimizer.param_groups]
    torch.manual_seed(seed)
    key = _key(network, examples, options, seed)
    restored = checkpoint.restore(work / CHECKPOINT, key, network, optimizer) if work is not None else None
    state = restored[0] if restored is not None else TrainingState(key)
    remembered = network.encoder.remembers
    network.encoder.remember(states=True)
    saved = time.monotonic()
    for step in range(state.step, options.steps):
        chooser = random.Random(f"{seed} {step}")
        some = [examples[index] for index in _places(len(examples), options.batch_size, seed, step)]
        batch = _batch(some, options, chooser)
        rate = _rate(step, options)
        for group, top in zip(optimizer.param_groups, peak, strict=True):
            group["lr"] = top * rate
        loss, right = loss_of(scorer, some, batch)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(own, CLIP)
        optimizer.step()
        state.step = step + 1
        state.curve.append([step, 0, "train", float(loss.detach()), right / len(some)])
        if work is not None and time.monotonic() - saved >= options.checkpoint_seconds:
            checkpoint.store(work / CHECKPOINT, state, network, optimizer, {})
            saved = time.monotonic()
        if state.step % REPORTED == 0 or state.step == options.steps:
            monitor.progress(state.step, options.steps, "steps")
    network.encoder.remember(states=remembered)
    scorer.clear()
    if work is not None and keep:
        checkpoint.store(work / CHECKPOINT, state, network, optimizer, {})
    elif work is not None:
        (work / CHECKPOINT).unlink(missing_ok=True)
    last = state.curve[-max(1, options.steps // 10) :]
    return {
        "loss": sum(row[3] for row in last) / max(len(last), 1),
        "accuracy": sum(row[4] for row in last) / max(len(last), 1),
    }


def _places(count: int, size: int, seed: int, step: int) -> list[int]:
    """The examples of a step: every pass takes each once, in an order of its own."""
    places: list[int] = []
    for number in range(step * size, (step + 1) * size):
        turn, index = divmod(number, count)
        places.append(_order(count, seed, turn)[index])
    return places


@lru_cache(maxsize=4)
def _order(count: int, seed: int, turn: int) -> list[int]:
    order = list(range(count))
    random.Random(f"{seed} pass {turn}").shuffle(order)
    return order


def _rate(step: int, options: FitOptions) -> float:
    """Share of the peak learning rate: it rises over `warmup` of the steps and falls as a cosine."""
    rising = min(1.0, (step + 1) / max(1, options.warmup * options.steps))
    return rising * 0.5 * (1 + math.cos(math.pi * step / options.steps))


def _key(network: ScoreNetwork, examples: Sequence[LabelExample], options: FitOptions, seed: int) -> str:
    """Identifies a training by what decides its weights."""
    sha = hashlib.sha256()
    for name, value in sorted(checkpoint.trainable_weights(network).items()):
        sha.update(name.encode())
        sha.update(value.contiguous().numpy().tobytes())
    for example in examples:
        texts = example.question, example.query.text, example.texts, example.nouns
        sha.update(repr((*texts, example.wanted, example.weight)).encode())
        sha.update(example.features.tobytes())
        sha.update(example.right.tobytes())
    decisive = {name: value for name, value in asdict(options).items() if name != "checkpoint_seconds"}
    return checkpoint.key_of(sha.hexdigest(), decisive, seed)
