"""The training loop of a LoRA rewriter, in plain steps, shared by any number of processes."""

from __future__ import annotations

import hashlib
import math
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from kgqa_core.config import RewriterOptions
from kgqa_core.errors import TrainingError
from kgqa_core.llm.hf import HFModel
from kgqa_core.llm.protocol import GenerationParams
from kgqa_core.monitor import Monitor
from kgqa_core.nn import checkpoint
from kgqa_core.nn.weights import learning, taken
from kgqa_core.rewriting.batches import IGNORED, Pairs, effective_batches, inputs, micro_batches

CLIP = 1.0
"""Largest norm of a step's gradient."""
LOG_EVERY = 10
"""Steps between entries of the training curve."""
CHECKPOINT = "rewriter.safetensors"
"""File of a run\'s state in `work`."""


class Run:
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
        per_epoch = math.ceil(len(learn) / options.global_batch_size)
        total = per_epoch * options.epochs
        progress, best = checkpoint.Progress(key), taken(self.network)
        restored = checkpoint.restore(work / CHECKPOINT, key, self.network, optimizer) if work is not None else None
        if restored is not None:
            progress, best = restored
            monitor.note(f"training goes on: epoch {progress.epoch + 1}, step {progress.step} of {per_epoch}")
        self.crew.wait_for_everyone()
        saved = time.monotonic()
        while progress.epoch < options.epochs:
            order = effective_batches(len(learn), options.global_batch_size, self.seed, progress.epoch)
            while progress.step < per_epoch:
                done = progress.epoch * per_epoch + progress.step
                optimizer.param_groups[0]["lr"] = options.learning_rate * _schedule(done, total, options.warmup_ratio)
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
                if options.eval_steps and (done + 1) % options.eval_steps == 0 and progress.step < per_epoch:
                    self._note_loss(develop, done + 1, progress)
                if work is not None and time.monotonic() - saved >= options.checkpoint_seconds:
                    self._store(work, progress, best, optimizer)
                    saved = time.monotonic()
                monitor.progress(done + 1, total, "training steps")
            step = (progress.epoch + 1) * per_epoch
            loss = self._note_loss(develop, step, progress)
            progress.samples += self._samples(develop, progress.epoch)
            standing = [float(progress.epoch)] if loss is None else [-loss]
            if not progress.best or standing > progress.best:
                progress.best, progress.best_epoch, best = standing, progress.epoch, taken(self.network)
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
        for place, part in self._mine(micro_batches(pairs, batch, self.options.micro_batch_tokens)):
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
        for _, part in self._mine(micro_batches(pairs, every, self.options.micro_batch_tokens)):
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
            checkpoint.store(work / CHECKPOINT, progress, self.network, optimizer, best)


def _schedule(step: int, total: int, warmup: float) -> float:
    """Share of the peak learning rate at a step: linear rise, then half a cosine."""
    warm = round(warmup * total)
    if step < warm:
        return (step + 1) / (warm + 1)
    return 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, total - warm)))


def _seed_of(seed: int, step: int, place: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed} {step} {place}".encode()).digest()[:7], "big")
