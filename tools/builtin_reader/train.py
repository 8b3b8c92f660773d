"""Trains the packaged reader: `python -m tools.builtin_reader.train --out DIR`, then again with `--from FOLDER`.

The first phase starts from nothing and learns the text of corpus.py, the second from the weights of a published folder
and learns that of mixture.py.  Text is invented on the fly, step by step from the seed, so no corpus is read from disk
and a run that was stopped continues where it was.  Loss is over the whole sequence, with the answers weighted more;
samples are packed into rows and do not see each other.  Muon (Jordan 2024) for the matrices of the blocks, AdamW for
the rest; warm-up, constant, linear decay.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import os
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor, nn
from transformers import LlamaConfig, LlamaForCausalLM

from kgqa_core.errors import TrainingError
from tools.builtin_reader import corpus, tokens
from tools.builtin_reader.batches import SECOND, Recipe, attention_mask, make_batch, scored, tokenizer_of

log = logging.getLogger("kgqa.builtin")


class Stepper(nn.Module):
    """The weighted next-token loss of a batch, in bfloat16 where the processor has it.

    compiled: compile all but the output layer, which sees only the tokens that count.
    """

    def __init__(self, model: LlamaForCausalLM, *, compiled: bool = False) -> None:
        super().__init__()
        self.model = model
        self.body = cast(nn.Module, torch.compile(model.model, dynamic=False)) if compiled else model.model

    def forward(self, ids: Tensor, positions: Tensor, mask: Tensor, weights: Tensor) -> Tensor:
        """Mean loss over the weights.  ids: [rows, length]."""
        with torch.autocast("cpu", torch.bfloat16):
            states = self.body(ids, position_ids=positions, attention_mask=mask.bfloat16(), use_cache=False)
            counted = weights[:, 1:] > 0
            logits = self.model.lm_head(states.last_hidden_state[:, :-1][counted])
        losses = nn.functional.cross_entropy(logits.float(), ids[:, 1:][counted], reduction="none")
        share = weights[:, 1:][counted]
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
    """Share of first questions per name whose greedy answer is exactly right, in [0, 1], and `all`.

    Asked with the answer in place: greedy decoding writes it exactly when each of its tokens is the likeliest.
    """
    right: dict[str, list[bool]] = {}
    for family, sample in sorted(examples, key=lambda pair: len(pair[1].context)):
        before, answer = sample.prompt(), f" {sample.items[0][2]}{corpus.END}"
        known, ids = len(tokenizer.encode(before).ids), tokenizer.encode(before + answer).ids
        logits = model(torch.tensor([ids]), use_cache=False, logits_to_keep=len(ids) - known + 1).logits[0]
        hit = logits[:-1].argmax(-1).tolist() == ids[known:]
        right.setdefault(family, []).append(hit)
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
    base: Path | None = None,
    compiled: bool = True,
    every: int = 250,
    each: int = 24,
    checkpoint_seconds: float = 60,
) -> dict[str, float]:
    """Trains, logs held-out accuracy every `every` steps, keeps `out/checkpoint` and publishes to `out/model`.

    base: a published folder whose weights and tokenizer are the start; its training.json is copied into the new one.
    Returns the last accuracies.  Raises TrainingError when the loss is not a number or the base is another shape.
    """
    torch.manual_seed(recipe.seed)
    tokenizer = Tokenizer.from_file(str(base / "tokenizer.json")) if base else tokenizer_of(recipe)
    pieces = tokens.letter_pieces(tokenizer)
    config = LlamaConfig(
        vocab_size=tokenizer.get_vocab_size(), hidden_size=recipe.width, intermediate_size=recipe.inner,
        num_hidden_layers=recipe.layers, num_attention_heads=recipe.heads, num_key_value_heads=recipe.heads,
        max_position_embeddings=1024, tie_word_embeddings=True, initializer_range=0.02,
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    if base:
        _start_from(base, model)
    parameters = dict(model.named_parameters())
    makers = optimisers(recipe, model)
    examples = scored(recipe, pieces, each)
    step, tokens_seen, scores, checkpoint = 0, 0, dict[str, float](), out / "checkpoint"
    if (checkpoint / "state.safetensors").exists():
        step, tokens_seen = _restore(checkpoint, parameters, makers)
        log.info("continues at step %d", step)
    log.info("%d parameters; %s", sum(p.numel() for p in parameters.values()), asdict(recipe))
    stepper = Stepper(model, compiled=compiled)
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
            if base:
                facts["base"] = json.loads((base / "training.json").read_text(encoding="utf-8"))
            publish(out / "model", model, tokenizer, facts)
        if last or time.monotonic() - saved > checkpoint_seconds:
            _keep(checkpoint, parameters, makers, step, tokens_seen)
            saved = time.monotonic()
    return scores


def _start_from(base: Path, model: LlamaForCausalLM) -> None:
    """Copies the weights of a published folder into a model of the same shape."""
    held, own = load_file(base / "model.safetensors"), model.state_dict()
    shapes = {name: tuple(tensor.shape) for name, tensor in own.items() if name != "lm_head.weight"}
    if {name: tuple(tensor.shape) for name, tensor in held.items()} != shapes:
        raise TrainingError(f"the weights in {base.name}/ are not of the shape that the recipe says")
    model.load_state_dict({name: tensor.float() for name, tensor in held.items()}, strict=False)


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
    parser.add_argument("--from", dest="base", type=Path, help="published folder to start from: the second phase")
    for name, value in asdict(Recipe()).items():
        if not isinstance(value, tuple) and name != "phase":
            parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), help="else that of the phase's recipe")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out (no C++ compiler needed)")
    parser.add_argument("--every", type=int, default=250, help="steps between held-out scores")
    parser.add_argument("--each", type=int, default=24, help="held-out samples a family")
    given = vars(parser.parse_args())
    out, base, compiled = given.pop("out"), given.pop("base"), not given.pop("no_compile")
    every, each = given.pop("every"), given.pop("each")
    changed = {name: value for name, value in given.items() if value is not None}
    recipe = replace(SECOND if base else Recipe(), **changed)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    train(out, recipe, base=base, compiled=compiled, every=every, each=each)


if __name__ == "__main__":
    main()
