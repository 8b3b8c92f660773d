"""Trains the packaged reader from nothing: `python -m kgqa_core.llm.builtin.train --out DIR`.

Text is invented on the fly (corpus.py), step by step from the seed, so nothing is read from disk and a run that was
stopped continues where it was.  Loss is over the whole sequence, with the answers weighted more; samples are packed
into rows and do not see each other.  Muon (Jordan 2024) for the matrices of the blocks, AdamW for the rest; warm-up,
constant, linear decay.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor, nn
from transformers import LlamaConfig, LlamaForCausalLM

from kgqa_core.errors import TrainingError
from kgqa_core.llm.builtin import corpus, tokens
from kgqa_core.llm.builtin.batches import Recipe, attention_mask, held_out, make_batch, tokenizer_of

log = logging.getLogger("kgqa.builtin")


class Stepper(nn.Module):
    """The weighted next-token loss of a batch, in bfloat16 where the processor has it."""

    def __init__(self, model: LlamaForCausalLM) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor, positions: Tensor, mask: Tensor, weights: Tensor) -> Tensor:
        """Mean loss over the weights.  ids: [rows, length]."""
        with torch.autocast("cpu", torch.bfloat16):
            logits = self.model(ids, position_ids=positions, attention_mask=mask.bfloat16(), use_cache=False).logits
        losses = nn.functional.cross_entropy(
            logits[:, :-1].flatten(0, 1).float(), ids[:, 1:].flatten(), reduction="none"
        )
        share = weights[:, 1:].flatten()
        return (losses * share).sum() / share.sum()


def rate(recipe: Recipe, step: int) -> float:
    """Share of the peak learning rate at a step."""
    decay = recipe.steps * (1 - recipe.decay_share)
    if step < recipe.warmup:
        return (step + 1) / recipe.warmup
    return 1.0 if step < decay else max(0.02, (recipe.steps - step) / (recipe.steps - decay))


def optimisers(recipe: Recipe, model: nn.Module) -> list[torch.optim.Optimizer]:
    """Muon for the matrices of the blocks, AdamW for embeddings and gains."""
    blocks = [p for name, p in model.named_parameters() if p.ndim == 2 and ".layers." in name]
    chosen = {id(parameter) for parameter in blocks}
    others = [parameter for parameter in model.parameters() if id(parameter) not in chosen]
    return [
        torch.optim.Muon(blocks, lr=recipe.muon_rate, weight_decay=0.05, momentum=0.95, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(others, lr=recipe.adam_rate, weight_decay=0.0, betas=(0.9, 0.98)),
    ]


@torch.no_grad()
def accuracy(
    model: LlamaForCausalLM, tokenizer: Tokenizer, examples: list[tuple[str, corpus.Sample]]
) -> dict[str, float]:
    """Share of first questions per family (and `zh`) whose greedy answer is exactly right, in [0, 1], and `all`.

    Asked with the answer in place: greedy decoding writes it exactly when each of its tokens is the likeliest.
    """
    right: dict[str, list[bool]] = {}
    for family, sample in sorted(examples, key=lambda pair: len(pair[1].context)):
        before, answer = sample.prompt(), f" {sample.items[0][2]}{corpus.END}"
        known, ids = len(tokenizer.encode(before).ids), tokenizer.encode(before + answer).ids
        logits = model(torch.tensor([ids]), use_cache=False, logits_to_keep=len(ids) - known + 1).logits[0]
        hit = logits[:-1].argmax(-1).tolist() == ids[known:]
        right.setdefault("zh" if sample.chinese else family, []).append(hit)
        right.setdefault("all", []).append(hit)
    return {family: sum(hits) / len(hits) for family, hits in sorted(right.items())}


def save(folder: Path, tensors: dict[str, Tensor], facts: dict[str, Any], name: str) -> None:
    """Writes `name`.safetensors and `name`.json so that a kill leaves the old or the new pair."""
    folder.mkdir(parents=True, exist_ok=True)
    meta = {"facts": json.dumps(facts, sort_keys=True)}
    save_file(tensors, folder / f"{name}.tmp", metadata=meta)
    os.replace(folder / f"{name}.tmp", folder / f"{name}.safetensors")


def publish(folder: Path, model: LlamaForCausalLM, tokenizer: Tokenizer, facts: dict[str, Any]) -> None:
    """Writes the folder that the package ships: model.safetensors (bfloat16), config, tokenizer, training.json."""
    folder.mkdir(parents=True, exist_ok=True)
    end, pad = tokenizer.token_to_id(corpus.END), tokenizer.token_to_id(tokens.PAD)
    weights = {
        name: tensor.detach().to(torch.bfloat16).contiguous()
        for name, tensor in model.state_dict().items()
        if name != "lm_head.weight"
    }
    save_file(weights, folder / "model.tmp", metadata={"format": "pt"})
    (folder / "model.tmp").chmod(0o644)
    os.replace(folder / "model.tmp", folder / "model.safetensors")
    config = model.config.to_dict() | {
        "architectures": ["LlamaForCausalLM"], "eos_token_id": end, "bos_token_id": None, "pad_token_id": pad,
        "dtype": "bfloat16", "use_cache": True,
    }  # fmt: skip
    config.pop("_name_or_path", None)
    special = {
        "tokenizer_class": "PreTrainedTokenizerFast", "pad_token": tokens.PAD, "eos_token": corpus.END,
        "clean_up_tokenization_spaces": False, "model_max_length": model.config.max_position_embeddings,
    }  # fmt: skip
    for name, data in (("config.json", config), ("tokenizer_config.json", special), ("training.json", facts)):
        (folder / name).write_text(
            json.dumps(data, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8"
        )
    tokenizer.save(str(folder / "tokenizer.json"))


def train(
    out: Path,
    recipe: Recipe,
    *,
    compiled: bool = True,
    every: int = 250,
    each: int = 24,
    checkpoint_seconds: float = 60,
) -> dict[str, float]:
    """Trains, logs held-out accuracy every `every` steps, keeps `out/checkpoint` and publishes to `out/model`.

    Returns the last accuracies.  Raises TrainingError when the loss is not a number.
    """
    torch.manual_seed(recipe.seed)
    tokenizer = tokenizer_of(recipe)
    pieces = tokens.letter_pieces(tokenizer)
    config = LlamaConfig(
        vocab_size=tokenizer.get_vocab_size(), hidden_size=recipe.width, intermediate_size=recipe.inner,
        num_hidden_layers=recipe.layers, num_attention_heads=recipe.heads, num_key_value_heads=recipe.heads,
        max_position_embeddings=1024, tie_word_embeddings=True, initializer_range=0.02,
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    parameters = dict(model.named_parameters())
    makers = optimisers(recipe, model)
    examples = list(held_out(recipe, pieces, each))
    step, tokens_seen, scores, kept = 0, 0, dict[str, float](), out / "checkpoint"
    if (kept / "state.safetensors").exists():
        step, tokens_seen = _restore(kept, parameters, makers)
        log.info("continues at step %d", step)
    log.info("%d parameters; %s", sum(p.numel() for p in parameters.values()), asdict(recipe))
    stepper = cast(nn.Module, torch.compile(Stepper(model), dynamic=False)) if compiled else Stepper(model)
    began = saved = time.monotonic()
    running = math.nan
    while step < recipe.steps:
        batch = make_batch(recipe, step, tokenizer, pieces)
        for optimiser, peak in zip(makers, (recipe.muon_rate, recipe.adam_rate), strict=True):
            optimiser.param_groups[0]["lr"] = peak * rate(recipe, step)
        loss = stepper(batch.ids, batch.positions, attention_mask(batch.samples), batch.weights)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimiser in makers:
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
        value = float(loss.detach())
        if not math.isfinite(value):
            raise TrainingError(
                f"the loss is {value} at step {step}; try a lower learning rate than {recipe.muon_rate}"
            )
        running = value if math.isnan(running) else 0.98 * running + 0.02 * value
        step, tokens_seen = step + 1, tokens_seen + int((batch.weights > 0).sum())
        if step % 25 == 0:
            log.info("step %d loss %.4f %.0f s", step, running, time.monotonic() - began)
        last = step == recipe.steps
        if step % every == 0 or last:
            model.eval()
            scores = accuracy(model, tokenizer, examples)
            model.train()
            log.info("step %d held out %s", step, " ".join(f"{name}={score:.2f}" for name, score in scores.items()))
            facts = {
                "recipe": asdict(recipe),
                "step": step,
                "tokens": tokens_seen,
                "held_out": scores,
                "loss": round(running, 4),
            }
            publish(out / "model", model, tokenizer, facts)
        if last or time.monotonic() - saved > checkpoint_seconds:
            _keep(kept, parameters, makers, step, tokens_seen)
            saved = time.monotonic()
    return scores


def _keep(
    folder: Path, parameters: dict[str, nn.Parameter], makers: list[torch.optim.Optimizer], step: int, seen: int
) -> None:
    tensors = {f"model/{name}": parameter.detach().contiguous() for name, parameter in parameters.items()}
    for number, optimiser in enumerate(makers):
        for index, state in optimiser.state_dict()["state"].items():
            tensors |= {
                f"state/{number}/{index}/{key}": torch.as_tensor(value).contiguous() for key, value in state.items()
            }
    save(folder, tensors, {"step": step, "tokens": seen}, "state")


def _restore(folder: Path, parameters: dict[str, nn.Parameter], makers: list[torch.optim.Optimizer]) -> tuple[int, int]:
    from safetensors import safe_open

    with safe_open(folder / "state.safetensors", framework="pt") as file:
        facts = json.loads(file.metadata()["facts"])
    tensors = load_file(folder / "state.safetensors")
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(tensors[f"model/{name}"])
    for number, optimiser in enumerate(makers):
        held = optimiser.state_dict()
        state: dict[int, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            if name.startswith(f"state/{number}/"):
                _, _, index, key = name.split("/")
                state.setdefault(int(index), {})[key] = tensor
        optimiser.load_state_dict({"state": state, "param_groups": held["param_groups"]})
    return int(facts["step"]), int(facts["tokens"])


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder for the checkpoint and the model")
    for name, value in asdict(Recipe()).items():
        if not isinstance(value, tuple):
            parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value)
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out (no C++ compiler needed)")
    parser.add_argument("--every", type=int, default=250, help="steps between held-out scores")
    parser.add_argument("--each", type=int, default=24, help="held-out samples a family")
    given = vars(parser.parse_args())
    out, compiled, every, each = given.pop("out"), not given.pop("no_compile"), given.pop("every"), given.pop("each")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    train(out, Recipe(**given), compiled=compiled, every=every, each=each)


if __name__ == "__main__":
    main()
