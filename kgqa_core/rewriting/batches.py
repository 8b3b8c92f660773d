"""Pairs of the corpus as tokens, and the batches of an epoch: a function of the seed, not of the machine.

An effective batch is one optimiser step.  It is cut into micro batches of similar length that fit into memory; they
are dealt to the processes, so that the same micro batches are computed however many processes there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import polars as pl
import torch
from torch import Tensor

from kgqa_core.config import RewriterOptions
from kgqa_core.errors import ArtifactError
from kgqa_core.llm.hf import HFModel

CORPUS: Final = "corpus.parquet"
COLUMNS: Final = ("pair", "instruction", "text", "verdict", "split")
IGNORED: Final = -100
"""Label of a token that is no part of the loss."""


@dataclass(frozen=True)
class Pairs:
    """Prompts and targets as token ids; a target ends with the end token."""

    ids: list[str]
    instructions: list[str]
    texts: list[str]
    prompts: list[list[int]]
    targets: list[list[int]]

    def __len__(self) -> int:
        return len(self.ids)

    def tokens(self, batch: list[int]) -> int:
        """Target tokens of some pairs: what a loss is divided by."""
        return sum(len(self.targets[index]) for index in batch)


def read_corpus(folder: Path) -> pl.DataFrame:
    """The kept pairs of a corpus artifact, in its order.  Raises ArtifactError when it is not one."""
    path = folder / CORPUS
    if not path.is_file():
        raise ArtifactError(f"{folder} has no {CORPUS}; build the corpus first (kgqa corpus, or `corpus.alpaca_file`)")
    frame = pl.read_parquet(path, glob=False)
    missing = [name for name in COLUMNS if name not in frame.columns]
    if missing:
        raise ArtifactError(f"{path} has no column {', '.join(missing)}; build the corpus again")
    return frame.filter(pl.col("verdict") == "kept")


def tokenise(frame: pl.DataFrame, split: str, reader: HFModel, options: RewriterOptions) -> tuple[Pairs, list[str]]:
    """The pairs of a split, and the ids of those that are empty or longer than `max_length` or the model's limit."""
    rows = frame.filter(pl.col("split") == split)
    pairs, left_out = Pairs([], [], [], [], []), []
    between = blank(reader)
    for pair, instruction, text in zip(rows["pair"], rows["instruction"], rows["text"], strict=True):
        prompt = reader.tokenizer(instruction, add_special_tokens=True, verbose=False)["input_ids"]
        target = target_ids(reader, text, between)
        length = len(prompt) + len(target)
        longest = max(len(prompt), len(target)) if reader.seq2seq else length
        if not text.strip() or length > options.max_length or longest > reader.limit:
            left_out.append(str(pair))
            continue
        pairs.ids.append(str(pair))
        pairs.instructions.append(instruction)
        pairs.texts.append(text)
        pairs.prompts.append(prompt)
        pairs.targets.append(target)
    return pairs, left_out


def blank(reader: HFModel) -> str:
    """What stands between a prompt and its text: a blank, unless the tokenizer of a causal model puts one itself."""
    first = reader.tokenizer.tokenize("a", add_special_tokens=False)[:1]
    return "" if reader.seq2seq or (first and first[0].startswith("▁")) else " "


def target_ids(reader: HFModel, text: str, between: str) -> list[int]:
    """Tokens of a text with the end token, as the model has to write them after the prompt."""
    text = " ".join(text.split())
    if reader.seq2seq:
        ids: list[int] = reader.tokenizer(text_target=text, add_special_tokens=True, verbose=False)["input_ids"]
    else:
        ids = reader.tokenizer(between + text, add_special_tokens=False, verbose=False)["input_ids"]
    return ids if ids and ids[-1] in reader.ends else [*ids, *reader.ends[:1]]


def effective_batches(count: int, size: int, seed: int, epoch: int) -> list[list[int]]:
    """Pairs of each optimiser step of an epoch, shuffled by the seed and the epoch; the last may be smaller."""
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed * 1_000_003 + epoch)).tolist()
    return [order[start : start + size] for start in range(0, count, size)]


def micro_batches(pairs: Pairs, batch: list[int], micro_tokens: int) -> list[list[int]]:
    """A batch cut into parts of at most `micro_tokens` tokens, padding included; longest pairs first."""

    def length(index: int) -> int:
        return len(pairs.prompts[index]) + len(pairs.targets[index])

    parts: list[list[int]] = []
    for index in sorted(batch, key=lambda index: (-length(index), index)):
        if parts and length(parts[-1][0]) * (len(parts[-1]) + 1) <= micro_tokens:
            parts[-1].append(index)
        else:
            parts.append([index])
    return parts


def inputs(pairs: Pairs, part: list[int], reader: HFModel, device: torch.device) -> tuple[dict[str, Any], Tensor]:
    """What the model is called with, and the label of each of its scores: [rows, scores], IGNORED outside targets.

    Causal: prompt and target in one row, scores from the first target on.  Seq2seq: prompt to the encoder.
    """
    prompts, targets = [pairs.prompts[index] for index in part], [pairs.targets[index] for index in part]
    if reader.seq2seq:
        labels = _padded(targets, IGNORED)
        ids = _padded(prompts, reader.pad)
        mask = _padded([[1] * len(prompt) for prompt in prompts], 0)
        given: dict[str, Any] = {"labels": labels}
    else:
        rows = [prompt + target for prompt, target in zip(prompts, targets, strict=True)]
        ids = _padded(rows, reader.pad)
        mask = _padded([[1] * len(row) for row in rows], 0)
        after = [[IGNORED] * (len(prompt) - 1) + target for prompt, target in zip(prompts, targets, strict=True)]
        first = min(len(prompt) for prompt in prompts) - 1
        labels = _padded(after, IGNORED)[:, first:]
        labels = torch.nn.functional.pad(labels, (0, 1), value=IGNORED)
        given = {"logits_to_keep": ids.shape[1] - first, "use_cache": False}
    given |= {"input_ids": ids, "attention_mask": mask}
    moved = {name: value.to(device) if isinstance(value, Tensor) else value for name, value in given.items()}
    return moved, labels.to(device)


def _padded(rows: list[list[int]], value: int) -> Tensor:
    width = max(len(row) for row in rows)
    out = torch.full((len(rows), width), value)
    for place, row in enumerate(rows):
        out[place, : len(row)] = torch.tensor(row)
    return out
