"""Batches of the reader's training: the recipe, and invented text packed into rows, step by step from the seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import torch
from tokenizers import Tokenizer
from torch import Tensor

from tools.builtin_reader import corpus, mixture, tokens
from tools.builtin_reader.names import Names

FIRST_TOKEN = 4.0
"""Weight of the first token of an answer in the second phase: it decides between the names."""
REWRITTEN, REWRITTEN_LATER = 0.7, 0.9
"""Weight of the tokens of a rewriting, until step `told_from` and after; the other tokens of answers have 1.5."""
TELLING_LATER = 0.5
"""Share of the samples that tell facts from step `told_from`."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that decides what a run yields.

    phase: 1 learns the text of corpus.py from nothing, 2 that of mixture.py from the weights of phase 1.
    long_every: every so many steps half the rows are twice as long, for long contexts; 0 is never.
    told_from: step from which the second phase has more rewriting, with more weight.
    """

    seed: int = 11
    steps: int = 4000
    rows: int = 8
    length: int = 512
    vocabulary: int = 5120
    width: int = 256
    layers: int = 4
    heads: int = 8
    inner: int = 768
    muon_rate: float = 3e-3
    adam_rate: float = 3e-3
    warmup: int = 60
    decay_share: float = 0.3
    context_weight: float = 0.5
    level_steps: tuple[int, int] = (500, 1200)
    phase: int = 1
    long_every: int = 0
    told_from: int = 0


SECOND = Recipe(
    steps=1650, muon_rate=1.5e-3, adam_rate=1.5e-3, warmup=40, decay_share=0.7, context_weight=0.2,
    level_steps=(200, 600), phase=2, long_every=8, told_from=700,
)  # fmt: skip
"""The second phase, which made the shipped weights from those of the first."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Packed rows.  ids, positions, samples: int64 [rows, length]; weights of each token's loss: float32, likewise."""

    ids: Tensor
    positions: Tensor
    samples: Tensor
    weights: Tensor


def tokenizer_of(recipe: Recipe) -> Tokenizer:
    """The tokenizer of a recipe, learnt from 12,000 samples."""
    return tokens.learn((sample.text() for sample in corpus.samples(recipe.seed, -1, 12_000)), recipe.vocabulary)


def encode(
    sample: corpus.Sample,
    tokenizer: Tokenizer,
    limit: int,
    context_weight: float,
    first_token: float = 1.5,
    rewritten: float = REWRITTEN,
) -> tuple[list[int], list[float]]:
    """Token ids of a sample and the weight of each, cut to whole questions in `limit` tokens (empty if none fits)."""
    end, text = tokenizer.token_to_id(corpus.END), sample.text()
    ids = tokenizer.encode(text).ids
    stops = [place + 1 for place, token in enumerate(ids) if token == end and place < limit]
    if not stops:
        return [], []
    ids = ids[: stops[-1]]
    weights, start = [context_weight] * len(ids), 0
    for stop, (family, _, answer) in zip(stops, sample.items, strict=False):
        size = len(tokenizer.encode(" " + answer).ids) + 1
        weight, begin = rewritten if family == mixture.REWRITE else 1.5, max(start, stop - size)
        weights[begin:stop] = [weight] * (stop - begin)
        if family != mixture.REWRITE:
            weights[begin] = first_token
        start = stop
    return ids, weights


def make_batch(recipe: Recipe, step: int, tokenizer: Tokenizer, pieces: tuple[str, ...]) -> Batch:
    """The batch of one step: samples put into the first row with room, until eight in a row found none."""
    random = Random(f"{recipe.seed}/step {step}")
    names = Names(random, pieces)
    long = bool(recipe.long_every) and step % recipe.long_every == recipe.long_every - 1
    count, length = (recipe.rows // 2, recipe.length * 2) if long else (recipe.rows, recipe.length)
    rows: list[list[tuple[list[int], list[float]]]] = [[] for _ in range(count)]
    room, misses = [length] * count, 0
    while misses < 8:
        roll, level = random.random(), sum(step >= bound for bound in recipe.level_steps)
        level = max(0, level - (1 if roll < 0.25 else 0) - (1 if roll < 0.08 else 0))
        if recipe.phase == 1:
            sample = corpus.draw_sample(random, names, level)
            ids, weights = encode(sample, tokenizer, length, recipe.context_weight)
        else:
            later = step >= recipe.told_from
            share, weight = (TELLING_LATER, REWRITTEN_LATER) if later else (None, REWRITTEN)
            sample = mixture.draw(random, names, level, long=long and roll < 0.7, telling=share)
            ids, weights = encode(sample, tokenizer, length, recipe.context_weight, FIRST_TOKEN, weight)
        row = next((row for row in range(count) if ids and len(ids) <= room[row]), None)
        if row is None:
            misses += 1
            continue
        rows[row].append((ids, weights))
        room[row] -= len(ids)
    shape = (count, length)
    ids_, weights_ = torch.zeros(shape, dtype=torch.int64), torch.zeros(shape)
    positions, samples = torch.zeros(shape, dtype=torch.int64), torch.full(shape, -1)
    for row, parts in enumerate(rows):
        start = 0
        for number, (ids, weights) in enumerate(parts):
            stop = start + len(ids)
            ids_[row, start:stop], weights_[row, start:stop] = torch.tensor(ids), torch.tensor(weights)
            positions[row, start:stop], samples[row, start:stop] = torch.arange(len(ids)), number
            weights_[row, start] = 0.0
            start = stop
    return Batch(ids_, positions, samples, weights_)


def attention_mask(samples: Tensor) -> Tensor:
    """Float mask [rows, 1, length, length]: each token sees the tokens before it in its own sample."""
    length = samples.shape[1]
    seen = (samples[:, :, None] == samples[:, None, :]) & torch.ones(length, length, dtype=torch.bool).tril()
    return torch.zeros(seen.shape).masked_fill(~seen, -1e4)[:, None]


def scored(recipe: Recipe, pieces: tuple[str, ...], each: int) -> list[tuple[str, corpus.Sample]]:
    """The held-out samples of a recipe's phase by the name under which they are scored."""
    if recipe.phase == 1:
        return [("zh" if sample.chinese else name, sample) for name, sample in held_out(recipe, pieces, each)]
    return list(mixture.held_out(recipe.seed, pieces, each))


def held_out(recipe: Recipe, pieces: tuple[str, ...], each: int) -> Iterator[tuple[str, corpus.Sample]]:
    """`each` samples of every family that no step of the training draws, English and Chinese as they come."""
    for family in corpus.FAMILIES:
        random = Random(f"{recipe.seed}/held out/{family}")
        names = Names(random, pieces)
        for _ in range(each):
            yield family, corpus.draw_sample(random, names, 2, family)
