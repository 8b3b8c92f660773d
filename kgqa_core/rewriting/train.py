"""Stage `train`: a LoRA rewriter from a KG-to-Text corpus (Wu et al. 2023, sections 3.2 and 4.1).

    torchrun --nproc-per-node 2 -m kgqa_core.rewriting.train --corpus DIR --out DIR [--set rewriter.rank=16]

A plain loop: AdamW, linear warm-up and cosine decay, effective batches by accumulation, loss on the target only.  The
loss of a step is divided by the target tokens of its whole effective batch, over all micro batches and processes, and
every micro batch has its own dropout seed: so N processes (started by torchrun or accelerate launch) compute what one
computes, up to the rounding of a sum, and a killed run that goes on from its checkpoint ends with the same bits.

The adapter that is kept is that of the epoch with the least dev loss; without dev pairs, the last.

Small models want other values, not other code.  For the builtin model (5 million weights):
`rank=64 alpha=128 dropout=0.0 learning_rate=3e-3 batch_size=32 micro_tokens=2048 epochs=4`; for a T5 or a causal model
of 60 to 500 million weights: `learning_rate=5e-4 batch_size=64`.  The defaults are those of the paper, for 7 billion.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import math
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import polars as pl
import torch
from torch import Tensor, nn

from kgqa_core.config import RewriterOptions, make_profile, parse_settings
from kgqa_core.errors import ConfigError, TrainingError
from kgqa_core.llm.hf import HFModel
from kgqa_core.llm.protocol import GenerationParams
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.rewriting import checkpoint
from kgqa_core.rewriting.batches import (
    CORPUS,
    IGNORED,
    Pairs,
    effective_batches,
    inputs,
    micro_batches,
    read_corpus,
    tokenise,
)
from kgqa_core.rewriting.lora import META, given_back, learning, load_base, put_lora, save_adapter, taken

log = logging.getLogger("kgqa.rewriter")

CLIP = 1.0
"""Largest norm of a step's gradient."""
LOG_EVERY = 10
"""Steps between entries of the training curve."""


def train(
    out: Path,
    *,
    corpus: Path,
    options: RewriterOptions,
    seed: int,
    monitor: Monitor = QUIET,
    work: Path | None = None,
) -> dict[str, Any]:
    """Writes adapter/ (as peft reads it), curves.parquet, samples.parquet and meta.json, and returns counts.

    Losses are nats per target token.  Under torchrun every process calls this with the same arguments; the first
    writes, and all read `work`.
    Raises TrainingError when no pair is left or the loss is not finite; ModelError when the base is no local model.
    """
    from accelerate import PartialState

    device = pick_device(options.device)
    crew = PartialState(cpu=device.type == "cpu")
    if crew.num_processes > 1 and device.type == "cuda":
        device = torch.device("cuda", crew.local_process_index)
    if not crew.is_main_process:
        monitor = QUIET
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        reader = load_base(options, device)
        frame = read_corpus(corpus)
        learn, left_out = tokenise(frame, "train", reader, options)
        develop, dev_left_out = tokenise(frame, "dev", reader, options)
        if not len(learn):
            raise TrainingError(
                f"the corpus has no pair to learn from ({len(left_out)} are empty or longer than max_length "
                f"{options.max_length}); build a larger one, or raise rewriter.max_length"
            )
        torch.manual_seed(seed)
        network = put_lora(reader, options)
        digest = hashlib.sha256((corpus / CORPUS).read_bytes()).hexdigest()
        key = _key(digest, reader.revision, options, seed)
        progress, weights = _Run(reader, network, options, seed, device, crew, monitor).fit(learn, develop, key, work)
        given_back(network, weights)
    counts = {
        "pairs": {"train": len(learn), "dev": len(develop)},
        "left_out": {"train": len(left_out), "dev": len(dev_left_out), "examples": (left_out + dev_left_out)[:20]},
        "parameters": sum(weight.numel() for weight in weights.values()),
        "epochs": progress.epoch,
        "best_epoch": progress.best_epoch,
        "dev_loss": None if progress.best is None else round(progress.best, 6),
    }
    if crew.is_main_process:
        out.mkdir(parents=True, exist_ok=True)
        save_adapter(out, network, options.base)
        _tables(out, progress)
        meta = {
            "base": options.base, "base_revision": reader.revision, "seq2seq": reader.seq2seq,
            "corpus_sha256": digest, "options": options.decisive(), "seed": seed, **counts,
        }  # fmt: skip
        (out / META).write_text(json.dumps(meta, indent=1, sort_keys=True, ensure_ascii=False) + "\n", "utf-8")
        if work is not None:
            (work / checkpoint.FILE).unlink(missing_ok=True)
    crew.wait_for_everyone()
    return counts


def pick_device(name: str) -> torch.device:
    """The device of an option `auto`, `cpu`, `cuda` or `cuda:N`.  Raises ConfigError when it is not there."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError(f"rewriter.device {name!r} is unknown; use 'auto', 'cpu', 'cuda' or 'cuda:N'") from None
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ConfigError(f"rewriter.device {name!r} is not on this machine; use 'auto' or 'cpu'")
    return device


class _Run:
    """One training run: the model that learns, and the processes that share the work."""

    def __init__(
        self,
        reader: HFModel,
        network: nn.Module,
        options: RewriterOptions,
        seed: int,
        device: torch.device,
        crew: Any,
        monitor: Monitor,
    ) -> None:
        self.reader, self.network, self.options, self.seed = reader, network, options, seed
        self.device, self.crew, self.monitor = device, crew, monitor
        self.parameters = list(learning(network).values())

    def fit(
        self, learn: Pairs, develop: Pairs, key: str, work: Path | None
    ) -> tuple[checkpoint.Progress, dict[str, Tensor]]:
        """The training loop; what was measured and the weights of the best epoch."""
        options, monitor = self.options, self.monitor
        optimizer = torch.optim.AdamW(self.parameters, lr=options.learning_rate, weight_decay=0.0)
        per_epoch = math.ceil(len(learn) / options.batch_size)
        total = per_epoch * options.epochs
        progress, best = checkpoint.Progress(key), taken(self.network)
        restored = checkpoint.restore(work, key, optimizer) if work is not None else None
        if restored is not None:
            progress, now, best = restored
            given_back(self.network, now)
            monitor.note(f"training goes on: epoch {progress.epoch + 1}, step {progress.step} of {per_epoch}")
        self.crew.wait_for_everyone()
        saved = time.monotonic()
        while progress.epoch < options.epochs:
            order = effective_batches(len(learn), options.batch_size, self.seed, progress.epoch)
            while progress.step < per_epoch:
                done = progress.epoch * per_epoch + progress.step
                optimizer.param_groups[0]["lr"] = options.learning_rate * _schedule(done, total, options.warmup)
                batch = order[progress.step]
                value = self._step(learn, batch, done, optimizer)
                tokens = learn.tokens(batch)
                progress.sums = [progress.sums[0] + value * tokens, progress.sums[1] + tokens]
                progress.step += 1
                if progress.step % LOG_EVERY == 0 or progress.step == per_epoch:
                    mean = progress.sums[0] / progress.sums[1]
                    progress.curve.append([done + 1, progress.epoch, "train", "loss", mean])
                    progress.sums = [0.0, 0.0]
                    monitor.metric("loss", mean, done + 1)
                if options.measure_steps and (done + 1) % options.measure_steps == 0 and progress.step < per_epoch:
                    self._note_loss(develop, done + 1, progress)
                if work is not None and time.monotonic() - saved >= options.checkpoint_seconds:
                    self._store(work, progress, best, optimizer)
                    saved = time.monotonic()
                monitor.progress(done + 1, total, "training steps")
            step = (progress.epoch + 1) * per_epoch
            loss = self._note_loss(develop, step, progress)
            progress.samples += self._samples(develop, progress.epoch)
            if loss is None or progress.best is None or loss < progress.best:
                progress.best, progress.best_epoch, best = loss, progress.epoch, taken(self.network)
            progress.epoch, progress.step = progress.epoch + 1, 0
            if work is not None:
                self._store(work, progress, best, optimizer)
                saved = time.monotonic()
        return progress, best

    def _step(self, pairs: Pairs, batch: list[int], number: int, optimizer: torch.optim.Optimizer) -> float:
        """One optimiser step on an effective batch; its loss per target token."""
        self.network.train()
        optimizer.zero_grad(set_to_none=False)
        tokens = pairs.tokens(batch)
        value = torch.zeros((), dtype=torch.float32, device=self.device)
        for place, part in self._mine(micro_batches(pairs, batch, self.options.micro_tokens)):
            torch.manual_seed(_seed_of(self.seed, number, place))
            loss = self._loss(pairs, part) / tokens
            loss.backward()  # type: ignore[no-untyped-call]
            value += loss.detach()
        self._add_up(value)
        if not math.isfinite(value.item()):
            raise TrainingError(f"the loss is not finite at step {number}; lower rewriter.learning_rate")
        nn.utils.clip_grad_norm_(self.parameters, CLIP)
        optimizer.step()
        return value.item()

    def _add_up(self, value: Tensor) -> None:
        """Sums gradients and the loss over the processes, in place, as one tensor."""
        for parameter in self.parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        if self.crew.num_processes == 1:
            return
        from accelerate.utils import reduce

        grads = [parameter.grad for parameter in self.parameters if parameter.grad is not None]
        flat = reduce(torch.cat([grad.flatten() for grad in grads] + [value[None]]), "sum")
        value.copy_(flat[-1])
        for grad, part in zip(grads, flat[:-1].split([grad.numel() for grad in grads]), strict=True):
            grad.copy_(part.view_as(grad))

    def _mine(self, parts: list[list[int]]) -> list[tuple[int, list[int]]]:
        """The micro batches that this process computes, with their places in the whole."""
        return list(enumerate(parts))[self.crew.process_index :: self.crew.num_processes]

    def _loss(self, pairs: Pairs, part: list[int]) -> Tensor:
        """Sum of the negative log likelihoods of the target tokens of a micro batch."""
        given, labels = inputs(pairs, part, self.reader, self.device)
        half = self.options.precision == "bf16"
        with torch.autocast(self.device.type, torch.bfloat16) if half else nullcontext():
            logits = self.reader.model(**given).logits
        wanted = labels != IGNORED
        return nn.functional.cross_entropy(logits[wanted].float(), labels[wanted], reduction="sum")

    def _note_loss(self, develop: Pairs, step: int, progress: checkpoint.Progress) -> float | None:
        """The dev loss, put down in the curve; None without dev pairs."""
        if not len(develop):
            return None
        loss = self._measure(develop)
        progress.curve.append([step, progress.epoch, "dev", "loss", loss])
        self.monitor.metric("dev_loss", loss, step)
        return loss

    @torch.no_grad()
    def _measure(self, pairs: Pairs) -> float:
        """Loss per target token, without dropout."""
        self.network.eval()
        every = list(range(len(pairs)))
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        for _, part in self._mine(micro_batches(pairs, every, self.options.micro_tokens)):
            total += self._loss(pairs, part).double()
        if self.crew.num_processes > 1:
            from accelerate.utils import reduce

            total = reduce(total, "sum")
        return total.item() / pairs.tokens(every)

    def _samples(self, pairs: Pairs, epoch: int) -> list[list[Any]]:
        """What the model writes now for a few dev pairs, the same ones after every epoch."""
        if not self.crew.is_main_process or not len(pairs) or not self.options.samples:
            return []
        self.network.eval()
        chosen = effective_batches(len(pairs), self.options.samples, self.seed, 0)[0]
        params = GenerationParams(max_new_tokens=self.options.max_new_tokens)
        written = self.reader.generate([pairs.instructions[index] for index in chosen], params)
        return [
            [epoch, pairs.ids[index], pairs.instructions[index], pairs.texts[index], completion.text.strip()]
            for index, completion in zip(chosen, written, strict=True)
        ]

    def _store(
        self, work: Path, progress: checkpoint.Progress, best: dict[str, Tensor], optimizer: torch.optim.Optimizer
    ) -> None:
        if self.crew.is_main_process:
            checkpoint.store(work, progress, taken(self.network), best, optimizer)


def _schedule(step: int, total: int, warmup: float) -> float:
    """Share of the peak learning rate at a step: linear rise, then half a cosine."""
    warm = round(warmup * total)
    if step < warm:
        return (step + 1) / (warm + 1)
    return 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, total - warm)))


def _seed_of(seed: int, step: int, place: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed} {step} {place}".encode()).digest()[:7], "big")


def _key(corpus: str, revision: str, options: RewriterOptions, seed: int) -> str:
    what = options.model_dump_json(exclude={"checkpoint_seconds", "device"})
    return hashlib.sha256(f"{corpus} {revision} {what} {seed} {torch.__version__}".encode()).hexdigest()


def _tables(out: Path, progress: checkpoint.Progress) -> None:
    curve = {"step": pl.Int64, "epoch": pl.Int32, "split": pl.String, "metric": pl.String, "value": pl.Float64}
    samples = {
        "epoch": pl.Int32, "pair": pl.String, "instruction": pl.String, "reference": pl.String, "text": pl.String
    }  # fmt: skip
    for name, rows, schema in (("curves", progress.curve, curve), ("samples", progress.samples, samples)):
        frame = pl.DataFrame(rows, schema=schema, orient="row")
        frame.write_parquet(out / f"{name}.parquet", compression="zstd", statistics=False)


class Teller:
    """A monitor that logs metrics and notes, for a run from a shell."""

    def progress(self, done: float, total: float | None, what: str) -> None:
        """Ignored; the metrics say where it is."""

    def metric(self, name: str, value: float, step: int | None = None) -> None:
        """One line."""
        log.info("step %s: %s %.4f", step, name, value)

    def note(self, message: str) -> None:
        """One line."""
        log.info("%s", message)


def main(arguments: list[str] | None = None) -> None:
    """Trains from a shell, alone or under torchrun; a run that was stopped goes on where it was."""
    parser = argparse.ArgumentParser(prog="python -m kgqa_core.rewriting.train", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--corpus", type=Path, required=True, help=f"folder with {CORPUS}")
    parser.add_argument("--out", type=Path, required=True, help="where the adapter goes")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--set", action="append", default=[], metavar="rewriter.KEY=VALUE")
    given = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    options = make_profile(parse_settings(given.set), origin="--set").rewriter
    counts = train(
        given.out, corpus=given.corpus, options=options, seed=given.seed, monitor=Teller(), work=given.out / "work"
    )
    log.info("%s", json.dumps(counts))

    from accelerate import PartialState

    PartialState().destroy_process_group()


if __name__ == "__main__":
    main()
