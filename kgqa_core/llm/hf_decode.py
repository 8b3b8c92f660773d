"""New tokens of one padded batch: our own loop for greedy and sampled text, transformers' `generate` for the rest.

A row's text depends on no other row: each has its own random generator, so that batches may be cut anywhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kgqa_core.llm.kv_cache import roomy_cache
from kgqa_core.llm.protocol import GenerationParams

RULES: dict[str, tuple[Any, ...]] = {
    "forced_bos_token_id": (None,), "no_repeat_ngram_size": (None, 0), "encoder_no_repeat_ngram_size": (None, 0),
    "repetition_penalty": (None, 1.0), "encoder_repetition_penalty": (None, 1.0), "min_length": (None, 0),
    "min_new_tokens": (None, 0), "bad_words_ids": (None, []), "suppress_tokens": (None, []),
    "begin_suppress_tokens": (None, []), "sequence_bias": (None, {}),
}  # fmt: skip
"""Settings that a model may bring along (BART's and MVP's do), with the values that switch them off."""


@dataclass(slots=True)
class Generated:
    """New token ids of a row with its end token, and the logarithm of their probability if requested."""

    ids: list[int]
    log_probability: float | None = None


@torch.inference_mode()
def decode(
    model: Any,
    rows: list[list[int]],
    params: GenerationParams,
    seeds: list[int],
    *,
    pad: int,
    ends: tuple[int, ...],
    on_ids: Callable[[int, list[int]], None] | None = None,
) -> list[Generated]:
    """What the model writes behind each row.

    seeds: of each row's sampling.  on_ids: is told a row's number and its new ids after each step of our own loop.
    Beams, and models with rules of their own (`RULES`), go through transformers.
    Raises FloatingPointError when a row's logits are not numbers.
    """
    seq2seq = bool(model.config.is_encoder_decoder)
    width = max(len(row) for row in rows)
    ids = torch.full((len(rows), width), pad)
    mask = torch.zeros_like(ids)
    for index, row in enumerate(rows):
        where = slice(0, len(row)) if seq2seq else slice(width - len(row), width)
        ids[index, where], mask[index, where] = torch.tensor(row), 1
    device = model.get_input_embeddings().weight.device
    ids, mask = ids.to(device), mask.to(device)
    if params.num_beams > 1 or has_rules(model):
        new, logs = _by_transformers(model, ids, mask, params, seeds[0], pad, ends)
    else:
        new, logs = _by_steps(model, ids, mask, params, seeds, ends, on_ids)
    written = [Generated(_until_end(row, ends)) for row in new]
    if logs is not None:
        for own, log in zip(written, logs, strict=True):
            own.log_probability = round(sum(log[: len(own.ids)]), 6)
    return written


def has_rules(model: Any) -> bool:
    """Whether the model's generation settings ask for more than the likeliest or a sampled token."""
    own = model.generation_config
    return any(getattr(own, key, empty[0]) not in empty for key, empty in RULES.items())


def choose(logits: Tensor, params: GenerationParams, generators: list[torch.Generator]) -> Tensor:
    """The next token of each row: the likeliest, or sampled from the nucleus.  logits: [rows, vocabulary].

    top_k and top_p both cut the same distribution, that of the temperature.
    Raises FloatingPointError when the logits of a row are not numbers.
    """
    if params.temperature <= 0:
        chosen = logits.argmax(-1)
        _check(logits.gather(-1, chosen[:, None]))
        return chosen
    _check(logits.amax(-1))
    share, order = torch.sort((logits / params.temperature).softmax(-1).cpu(), descending=True, stable=True)
    share = share.masked_fill(share.cumsum(-1) - share >= params.top_p, 0.0)
    if params.top_k > 0:
        share[:, params.top_k :] = 0.0
    heap = share.cumsum(-1)
    points = torch.stack([torch.rand(1, generator=generator) for generator in generators]) * heap[:, -1:]
    last = (share > 0).sum(-1, keepdim=True) - 1
    index = torch.searchsorted(heap, points, right=True).minimum(last)
    return order.gather(-1, index)[:, 0].to(logits.device)


def _check(values: Tensor) -> None:
    if not bool(torch.isfinite(values).all()):
        raise FloatingPointError("the model's scores are not numbers")


def _by_steps(
    model: Any,
    ids: Tensor,
    mask: Tensor,
    params: GenerationParams,
    seeds: list[int],
    ends: tuple[int, ...],
    on_ids: Callable[[int, list[int]], None] | None = None,
) -> tuple[list[list[int]], list[list[float]] | None]:
    """New tokens of each row, and of each the logarithm of its probability where that is requested."""
    seq2seq = bool(model.config.is_encoder_decoder)
    device = ids.device
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    new: list[list[int]] = [[] for _ in seeds]
    logs: list[list[float]] | None = [[] for _ in seeds] if params.log_probabilities else None
    live = list(range(len(seeds)))
    extra: dict[str, Any]
    if seq2seq:
        encoder = model.get_encoder()(input_ids=ids, attention_mask=mask)
        start = model.generation_config.decoder_start_token_id
        start = model.config.decoder_start_token_id if start is None else start
        step = torch.full((len(seeds), 1), int(start), device=device)
        extra = {"encoder_outputs": encoder, "attention_mask": mask}
    else:
        step = ids
        extra = {"attention_mask": mask, "position_ids": (mask.cumsum(-1) - 1).clamp(min=0), "logits_to_keep": 1}
    cache: Any = None if seq2seq else roomy_cache(model.config)
    for _ in range(params.max_new_tokens):
        given = {"decoder_input_ids": step} if seq2seq else {"input_ids": step}
        out = model(**given, past_key_values=cache, use_cache=True, **extra)
        cache = out.past_key_values
        logits = out.logits[:, -1].float()
        chosen = choose(logits, params, generators).to(device)
        if logs is not None:
            log = logits.gather(-1, chosen[:, None])[:, 0] - logits.logsumexp(-1)
            for index, value in zip(live, log.tolist(), strict=True):
                logs[index].append(value)
        going = []
        for index, token in zip(live, chosen.tolist(), strict=True):
            new[index].append(token)
            going.append(token not in ends)
            if on_ids is not None:
                on_ids(index, new[index])
        if not any(going):
            break
        keep = None
        if not seq2seq and going.count(False) * 8 >= len(live):
            remaining = [row for row, goes in enumerate(going) if goes]
            keep = torch.tensor(remaining, device=device)
            live, generators = [live[row] for row in remaining], [generators[row] for row in remaining]
            cache.batch_select_indices(keep)
            chosen = chosen[keep]
        step = chosen[:, None]
        if not seq2seq:
            extra = _next(extra, keep)
    return new, logs


def _next(extra: dict[str, Any], keep: Tensor | None) -> dict[str, Any]:
    mask, positions = extra["attention_mask"], extra["position_ids"][:, -1:] + 1
    if keep is not None:
        mask, positions = mask[keep], positions[keep]
    one = torch.ones_like(mask[:, :1])
    return extra | {"attention_mask": torch.cat([mask, one], dim=1), "position_ids": positions}


def _by_transformers(
    model: Any, ids: Tensor, mask: Tensor, params: GenerationParams, seed: int, pad: int, ends: tuple[int, ...]
) -> tuple[list[list[int]], list[list[float]] | None]:
    """Beams, which do not sample, or a model's own rules; there samples depend on the batch, by its first row's seed.

    Length penalty and early stopping are the model's own, and so are the rules that its probabilities follow.
    """
    sampled = params.temperature > 0 and params.num_beams == 1
    how: dict[str, Any] = {
        "max_new_tokens": params.max_new_tokens, "max_length": None, "num_beams": params.num_beams,
        "num_return_sequences": 1, "do_sample": sampled, "pad_token_id": pad, "eos_token_id": list(ends) or None,
        "forced_eos_token_id": None, "temperature": params.temperature if sampled else None,
        "top_p": params.top_p if sampled else None, "top_k": params.top_k if sampled else None,
    }  # fmt: skip
    if params.num_beams == 1:
        how |= {"early_stopping": False, "length_penalty": None}
    with torch.random.fork_rng(devices=[ids.device] if ids.device.type == "cuda" else []):
        torch.manual_seed(seed)
        if params.log_probabilities:
            how |= {"return_dict_in_generate": True, "output_scores": True}
        out = model.generate(input_ids=ids, attention_mask=mask, **how)
    skipped = 1 if model.config.is_encoder_decoder else ids.shape[1]
    if not params.log_probabilities:
        plain: list[list[int]] = out[:, skipped:].tolist()
        return plain, None
    beams = getattr(out, "beam_indices", None)
    steps = model.compute_transition_scores(out.sequences, out.scores, beams, normalize_logits=beams is None)
    new: list[list[int]] = out.sequences[:, skipped:].tolist()
    logs: list[list[float]] = steps.tolist()
    return new, logs


def _until_end(ids: list[int], ends: tuple[int, ...]) -> list[int]:
    end = next((index for index, token in enumerate(ids) if token in ends), None)
    return ids if end is None else ids[: end + 1]


def is_out_of_memory(fault: BaseException) -> bool:
    """Whether an exception says that the memory was not enough, of a GPU or of the machine."""
    message = str(fault)
    return isinstance(fault, torch.OutOfMemoryError | MemoryError) or (
        isinstance(fault, RuntimeError) and ("can't allocate memory" in message or "out of memory" in message)
    )


def seed_of(text: str, seed: int | None) -> int:
    """The seed of one prompt's sampling: of the prompt and the seed of the request, whatever stands beside it."""
    return int.from_bytes(hashlib.sha256(f"{seed or 0}\n{text}".encode("utf-8", "replace")).digest()[:7], "big")
