"""Stage `train`: a LoRA rewriter from a KG-to-Text corpus (Wu et al. 2023, sections 3.2 and 4.1).

    torchrun --nproc-per-node 2 -m kgqa_core.rewriting.train --corpus DIR --out DIR [--set rewriter.lora_rank=16]

A plain loop: AdamW, linear warm-up and cosine decay, effective batches by accumulation, loss on the target only.  The
loss of a step is divided by the target tokens of its whole effective batch, over all micro batches and processes, and
every micro batch has its own dropout seed: so N processes (started by torchrun or accelerate launch) compute what one
computes, up to the rounding of a sum, and a killed run that goes on from its checkpoint ends with the same bits.

An effective batch is one optimiser step.  It is cut into micro batches of similar length that fit into memory; they
are dealt to the processes, so that the same micro batches are computed however many processes there are.  The batches
of an epoch are a function of the seed, not of the machine.

The adapter that is saved is that of the epoch with the least dev loss; without dev pairs, the last.

Small models want other values, not other code; the defaults are those of the paper, for 7 billion weights.  What served
the builtin model (5 million weights): `lora_dropout=0.0 learning_rate=2e-3 global_batch_size=16
micro_batch_tokens=1024`, and few epochs: after 1,000 pairs of WebQSP its loss was down from 4.0 to 1.1 nats per token.
A T5 or a causal model of 60 to 500 million weights wants something between, `learning_rate=5e-4 global_batch_size=64`
to begin with; that was not tried here.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import math
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import polars as pl
import torch
from torch import Tensor, nn

from kgqa_core.config import RewriterOptions, make_profile, parse_settings
from kgqa_core.errors import ArtifactError, TrainingError
from kgqa_core.llm.hf import HFModel
from kgqa_core.llm.protocol import GenerationParams
from kgqa_core.monitor import QUIET, Log, Monitor
from kgqa_core.nn.checkpoint import TrainingState, key_of, restore_weights, trainable
from kgqa_core.nn.device import pick_device, seeded
from kgqa_core.nn.products import speed_up
from kgqa_core.nn.training import CHECKPOINT, TrainingPlan, cosine, dev_of_best, run, write_curves
from kgqa_core.rewriting.lora import META, load_base, put_lora, save_adapter
from kgqa_core.store.tables import read_frame
from kgqa_core.workspace import Workspace

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
    return read_frame(path, COLUMNS).filter(pl.col("verdict") == "kept")


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
    rows = prompts if reader.seq2seq else [prompt + target for prompt, target in zip(prompts, targets, strict=True)]
    ids, mask = _padded(rows, reader.pad), _padded([[1] * len(row) for row in rows], 0)
    if reader.seq2seq:
        labels = _padded(targets, IGNORED)
        given: dict[str, Any] = {"labels": labels}
    else:
        after = [[IGNORED] * (len(prompt) - 1) + target for prompt, target in zip(prompts, targets, strict=True)]
        first = min(len(prompt) for prompt in prompts) - 1
        labels = _padded(after, IGNORED)[:, first:]
        labels = torch.nn.functional.pad(labels, (0, 1), value=IGNORED)
        given = {"logits_to_keep": ids.shape[1] - first, "use_cache": False}
    given |= {"input_ids": ids, "attention_mask": mask}
    moved = {name: value.to(device) if isinstance(value, Tensor) else value for name, value in given.items()}
    return moved, labels.to(device)


def _padded(rows: list[list[int]], value: int) -> Tensor:
    tensors = [torch.tensor(row, dtype=torch.long) for row in rows]
    return torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True, padding_value=value)


LOG_STEPS = 10
"""Steps between entries of the training curve."""


class AdapterTraining:
    """One training run: the model that learns, and the processes that share the work."""

    def __init__(
        self,
        reader: HFModel,
        network: nn.Module,
        options: RewriterOptions,
        seed: int,
        device: torch.device,
        processes: Any,
        monitor: Monitor,
    ) -> None:
        self.reader, self.network, self.options, self.seed = reader, network, options, seed
        self.device, self.processes, self.monitor = device, processes, monitor
        self.parameters = list(trainable(network).values())

    def fit(self, learn: Pairs, develop: Pairs, key: str, work: Path | None) -> tuple[TrainingState, dict[str, Tensor]]:
        """Trains the adapter; returns what was measured and the weights of the best epoch."""
        options = self.options
        optimizer = torch.optim.AdamW(self.parameters, lr=options.learning_rate, weight_decay=0.0)
        plan = TrainingPlan(
            per_epoch=math.ceil(len(learn) / options.global_batch_size),
            epochs=options.epochs,
            batches=lambda epoch: effective_batches(len(learn), options.global_batch_size, self.seed, epoch),
            backward=lambda batch, step: self._backward(learn, batch, step),
            measure=lambda: {"loss": self._measure(develop)} if len(develop) else {},
            score=lambda measured: [-measured["loss"]],
            section="rewriter",
            schedule=lambda step, total: _schedule(step, total, options.warmup_ratio),
            clip=lambda _, most: nn.utils.clip_grad_norm_(self.parameters, most),
            measure_steps=options.eval_steps,
            log_steps=LOG_STEPS,
            sample=lambda epoch: self._samples(develop, epoch),
            main=self.processes.is_main_process,
        )
        seconds = options.checkpoint_seconds
        return run(self.network, plan, optimizer, key, self.monitor, work, checkpoint_seconds=seconds)

    def _backward(self, pairs: Pairs, batch: list[int], step: int) -> tuple[float, float]:
        """Gradients of an effective batch, summed over all processes; its loss per target token, and those tokens."""
        tokens = pairs.tokens(batch)
        value = torch.zeros((), dtype=torch.float32, device=self.device)
        for index, part in self._own(micro_batches(pairs, batch, self.options.micro_batch_tokens)):
            seed = hashlib.sha256(f"{self.seed} {step} {index}".encode()).digest()[:7]
            torch.manual_seed(int.from_bytes(seed, "big"))
            loss = self._loss(pairs, part) / tokens
            loss.backward()  # type: ignore[no-untyped-call]
            value += loss.detach()
        self._add_up(value)
        return value.item(), tokens

    def _add_up(self, value: Tensor) -> None:
        """Sums gradients and the loss over the processes, in place, as one tensor."""
        for parameter in self.parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        if self.processes.num_processes == 1:
            return
        from accelerate.utils import reduce

        grads = [parameter.grad for parameter in self.parameters if parameter.grad is not None]
        flat = reduce(torch.cat([grad.flatten() for grad in grads] + [value[None]]), "sum")
        value.copy_(flat[-1])
        for grad, part in zip(grads, flat[:-1].split([grad.numel() for grad in grads]), strict=True):
            grad.copy_(part.view_as(grad))

    def _own(self, parts: list[list[int]]) -> list[tuple[int, list[int]]]:
        """The micro batches that this process computes, with their places in the whole."""
        return list(enumerate(parts))[self.processes.process_index :: self.processes.num_processes]

    def _loss(self, pairs: Pairs, part: list[int]) -> Tensor:
        """Sum of the negative log likelihoods of the target tokens of a micro batch."""
        given, labels = inputs(pairs, part, self.reader, self.device)
        half = self.options.precision == "bf16"
        with torch.autocast(self.device.type, torch.bfloat16) if half else nullcontext():
            logits = self.reader.model(**given).logits
        wanted = labels != IGNORED
        return nn.functional.cross_entropy(logits[wanted].float(), labels[wanted], reduction="sum")

    @torch.no_grad()
    def _measure(self, pairs: Pairs) -> float:
        """Loss per target token, without dropout."""
        self.network.eval()
        every = list(range(len(pairs)))
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        for _, part in self._own(micro_batches(pairs, every, self.options.micro_batch_tokens)):
            total += self._loss(pairs, part).double()
        if self.processes.num_processes > 1:
            from accelerate.utils import reduce

            total = reduce(total, "sum")
        return total.item() / pairs.tokens(every)

    def _samples(self, pairs: Pairs, epoch: int) -> list[list[Any]]:
        """What the model writes now for a few dev pairs, the same ones after every epoch."""
        if not self.processes.is_main_process or not len(pairs) or not self.options.samples:
            return []
        self.network.eval()
        chosen = effective_batches(len(pairs), self.options.samples, self.seed, 0)[0]
        params = GenerationParams(max_new_tokens=self.options.max_new_tokens)
        written = self.reader.generate([pairs.instructions[index] for index in chosen], params)
        return [
            [epoch, pairs.ids[index], pairs.instructions[index], pairs.texts[index], completion.text.strip()]
            for index, completion in zip(chosen, written, strict=True)
        ]


def _schedule(step: int, total: int, warmup: float) -> float:
    """Share of the peak learning rate at a step: linear rise, then half a cosine."""
    warm = round(warmup * total)
    if step < warm:
        return (step + 1) / (warm + 1)
    return cosine(step, warm, total)


log = logging.getLogger("kgqa.rewriter")


def train(workspace: Workspace, *, corpus: Path, options: RewriterOptions, seed: int) -> dict[str, Any]:
    """Writes adapter/ (as peft reads it), curves.parquet, samples.parquet and meta.json, and returns counts.

    Losses are nats per target token.  Under torchrun every process calls this with the same arguments; the first
    writes, and all read `work`.
    Raises TrainingError when no pair is left or the loss is not finite; ModelError when the base is no local model.
    """
    monitor = workspace.monitor
    from accelerate import PartialState

    device = pick_device(options.device, "rewriter")
    processes = PartialState(cpu=device.type == "cpu")
    if processes.num_processes > 1 and device.type == "cuda":
        device = torch.device("cuda", processes.local_process_index)
    if not processes.is_main_process:
        monitor = QUIET
    with seeded(device, seed):
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
        speed_up(network)
        digest = hashlib.sha256((corpus / CORPUS).read_bytes()).hexdigest()
        key = key_of(digest, reader.revision, options.decisive(), seed)
        training = AdapterTraining(reader, network, options, seed, device, processes, monitor)
        progress, weights = training.fit(learn, develop, key, workspace.work)
        restore_weights(network, weights)
    counts = {
        "pairs": {"train": len(learn), "dev": len(develop)},
        "left_out": {"train": len(left_out), "dev": len(dev_left_out), "examples": (left_out + dev_left_out)[:20]},
        "parameters": sum(weight.numel() for weight in weights.values()),
        "epochs": progress.epoch,
        "best_epoch": progress.best_epoch,
        "dev_loss": dev_of_best(progress).get("dev_loss"),
    }
    if processes.is_main_process:
        workspace.out.mkdir(parents=True, exist_ok=True)
        save_adapter(workspace.out, network, options.base)
        write_curves(workspace.out, progress)
        _write_samples(workspace.out, progress.samples)
        meta = {
            "base": options.base, "base_revision": reader.revision, "seq2seq": reader.seq2seq,
            "corpus_sha256": digest, "options": options.decisive(), "seed": seed, **counts,
        }  # fmt: skip
        (workspace.out / META).write_text(
            json.dumps(meta, indent=1, sort_keys=True, ensure_ascii=False) + "\n", "utf-8"
        )
        if workspace.work is not None:
            (workspace.work / CHECKPOINT).unlink(missing_ok=True)
    processes.wait_for_everyone()
    return counts


def _write_samples(out: Path, rows: list[list[Any]]) -> None:
    schema = dict.fromkeys(("pair", "instruction", "reference", "text"), pl.String)
    frame = pl.DataFrame(rows, schema={"epoch": pl.Int32, **schema}, orient="row")
    frame.write_parquet(out / "samples.parquet", compression="zstd", statistics=False)


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
        Workspace(given.out, given.out / "work", monitor=Log()), corpus=given.corpus, options=options, seed=given.seed
    )
    log.info("%s", json.dumps(counts))

    from accelerate import PartialState

    PartialState().destroy_process_group()


if __name__ == "__main__":
    main()
