"""Stage `train`: a LoRA rewriter from a KG-to-Text corpus (Wu et al. 2023, sections 3.2 and 4.1).

    torchrun --nproc-per-node 2 -m kgqa_core.rewriting.train --corpus DIR --out DIR [--set rewriter.lora_rank=16]

A plain loop: AdamW, linear warm-up and cosine decay, effective batches by accumulation, loss on the target only.  The
loss of a step is divided by the target tokens of its whole effective batch, over all micro batches and processes, and
every micro batch has its own dropout seed: so N processes (started by torchrun or accelerate launch) compute what one
computes, up to the rounding of a sum, and a killed run that goes on from its checkpoint ends with the same bits.

The adapter that is kept is that of the epoch with the least dev loss; without dev pairs, the last.

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
from pathlib import Path
from typing import Any

import polars as pl
import torch

from kgqa_core.config import RewriterOptions, make_profile, parse_settings, recorded_options
from kgqa_core.errors import TrainingError
from kgqa_core.monitor import QUIET, Log, Monitor
from kgqa_core.nn.checkpoint import key_of
from kgqa_core.nn.curves import dev_of_best, write_curves
from kgqa_core.nn.device import pick_device
from kgqa_core.nn.weights import given_back
from kgqa_core.rewriting.batches import CORPUS, read_corpus, tokenise
from kgqa_core.rewriting.loop import CHECKPOINT, Run
from kgqa_core.rewriting.lora import META, load_base, put_lora, save_adapter

log = logging.getLogger("kgqa.rewriter")


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

    device = pick_device(options.device, "rewriter")
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
        key = key_of(digest, reader.revision, options.decisive(), seed)
        progress, weights = Run(reader, network, options, seed, device, crew, monitor).fit(learn, develop, key, work)
        given_back(network, weights)
    counts = {
        "pairs": {"train": len(learn), "dev": len(develop)},
        "left_out": {"train": len(left_out), "dev": len(dev_left_out), "examples": (left_out + dev_left_out)[:20]},
        "parameters": sum(weight.numel() for weight in weights.values()),
        "epochs": progress.epoch,
        "best_epoch": progress.best_epoch,
        "dev_loss": dev_of_best(progress).get("dev_loss"),
    }
    if crew.is_main_process:
        out.mkdir(parents=True, exist_ok=True)
        save_adapter(out, network, options.base)
        write_curves(out, progress)
        _write_samples(out, progress.samples)
        meta = {
            "base": options.base, "base_revision": reader.revision, "seq2seq": reader.seq2seq,
            "corpus_sha256": digest, "options": recorded_options("rewriter", options), "seed": seed, **counts,
        }  # fmt: skip
        (out / META).write_text(json.dumps(meta, indent=1, sort_keys=True, ensure_ascii=False) + "\n", "utf-8")
        if work is not None:
            (work / CHECKPOINT).unlink(missing_ok=True)
    crew.wait_for_everyone()
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
        given.out, corpus=given.corpus, options=options, seed=given.seed, monitor=Log(), work=given.out / "work"
    )
    log.info("%s", json.dumps(counts))

    from accelerate import PartialState

    PartialState().destroy_process_group()


if __name__ == "__main__":
    main()
