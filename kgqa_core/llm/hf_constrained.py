"""Beam search of a local model whose every token is one that a constraint allows: a logits processor of transformers.

A constraint knows nothing of models: it says which tokens may follow the tokens that were written.  What comes back
satisfies it whatever the weights are, since a sequence is returned only when the constraint accepts it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor
from transformers import LogitsProcessor, LogitsProcessorList

from kgqa_core.errors import ModelError
from kgqa_core.llm.protocol import Completion

if TYPE_CHECKING:
    from kgqa_core.llm.hf import HFModel


class TokenConstraint(Protocol):
    """Sequences of tokens that may be written, by their prefixes."""

    def allowed(self, prefix: tuple[int, ...]) -> Collection[int]:
        """Tokens that may follow a prefix, without an end token; empty where none may."""

    def accepts(self, written: tuple[int, ...]) -> bool:
        """Whether a sequence may end here."""


@dataclass(frozen=True, slots=True)
class ConstrainedSequence:
    """A sequence that the constraint accepts, without its end token.

    score: mean natural logarithm of the model's own probability of a token, the end token included.
    """

    ids: tuple[int, ...]
    score: float


class ConstrainedLogits(LogitsProcessor):
    """Sets the scores of all tokens to minus infinity but those that a constraint allows after what a row has written.

    constraint: of all rows.  skipped: tokens of a row that were there before.  ends: end tokens, of which the first one
    is allowed where the constraint accepts; a row that has left the constraint may only end.
    """

    def __init__(self, constraint: TokenConstraint, skipped: int, ends: tuple[int, ...]) -> None:
        self.constraint, self.skipped, self.end = constraint, skipped, ends[0]

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """scores: [rows, vocabulary], masked."""
        masked = torch.full_like(scores, float("-inf"))
        for row, written in enumerate(input_ids[:, self.skipped :].tolist()):
            prefix = tuple(written)
            allowed = list(self.constraint.allowed(prefix))
            if self.constraint.accepts(prefix) or not allowed:
                allowed.append(self.end)
            masked[row, allowed] = scores[row, allowed]
        return masked


class OneOf:
    """Lets one of some sequences be written."""

    def __init__(self, sequences: Collection[tuple[int, ...]]) -> None:
        self.sequences = sequences

    def allowed(self, prefix: tuple[int, ...]) -> Collection[int]:
        """The tokens behind the prefix in the sequences that begin with it."""
        size = len(prefix)
        return {own[size] for own in self.sequences if len(own) > size and own[:size] == prefix}

    def accepts(self, written: tuple[int, ...]) -> bool:
        """Whether it is one of the sequences."""
        return written in self.sequences


def choose_text(model: HFModel, prompt: str, choices: Sequence[str]) -> Completion:
    """The text of `choices` that the model writes behind a prompt, greedily, where it may write nothing else."""
    ids = model.tokenizer(list(choices), add_special_tokens=False)["input_ids"]
    texts = dict(zip(map(tuple, reversed(ids)), reversed(choices), strict=True))  # of equal sequences the first text
    longest = max(map(len, texts))
    [best], read = constrained_beams(model, prompt, OneOf(texts.keys()), 1, longest + 1)
    return Completion(texts[best.ids], "stop", read, len(best.ids) + 1)


@torch.inference_mode()
def constrained_beams(
    model: HFModel, prompt: str, constraint: TokenConstraint, beams: int, max_new_tokens: int
) -> tuple[list[ConstrainedSequence], int]:
    """At most so many accepted sequences behind a prompt, likeliest first, and how many tokens the prompt has.

    Fewer come back where the constraint has fewer, or where the likeliest are longer than max_new_tokens.
    Raises ModelError when the model has no end token.
    """
    if not model.ends:
        raise ModelError(f"model '{model.name}' has no end token, so that a path of the graph cannot end; add one")
    row = model.encode(prompt, max_new_tokens)
    ids = torch.tensor([row], device=model.model.get_input_embeddings().weight.device)
    skipped = 1 if model.seq2seq else ids.shape[1]
    processor = ConstrainedLogits(constraint, skipped, model.ends)
    how: dict[str, Any] = {
        "max_new_tokens": max_new_tokens, "max_length": None, "min_length": 0, "num_beams": beams,
        "num_return_sequences": beams, "do_sample": False, "temperature": None, "top_p": None, "top_k": None,
        "length_penalty": 1.0 if beams > 1 else None, "early_stopping": False, "pad_token_id": model.pad,
        "eos_token_id": list(model.ends), "forced_bos_token_id": None, "forced_eos_token_id": None,
        "return_dict_in_generate": True, "output_scores": True,
    }  # fmt: skip
    with model.base.using(model.adapter_name) as copies:
        network = copies[0]
        out = network.generate(
            input_ids=ids, attention_mask=torch.ones_like(ids), logits_processor=LogitsProcessorList([processor]), **how
        )
    results: dict[tuple[int, ...], float] = {}
    indices = getattr(out, "beam_indices", None)
    steps = network.compute_transition_scores(out.sequences, out.scores, indices, normalize_logits=False)
    for written, scores in zip(out.sequences[:, skipped:].tolist(), steps.tolist(), strict=True):
        end = next((index for index, token in enumerate(written) if token in model.ends), None)
        if end is None or not constraint.accepts(tuple(written[:end])):
            continue
        score = sum(scores[: end + 1]) / (end + 1)
        if score > float("-inf"):
            results.setdefault(tuple(written[:end]), round(score, 6))
    ranked = sorted(results.items(), key=lambda item: (-item[1], item[0]))
    return [ConstrainedSequence(own, score) for own, score in ranked], len(row)
