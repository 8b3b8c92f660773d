"""A tiny corpus and the training runs of the rewriter's tests, in this process or in others."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core.config import RewriterOptions

NAMES = "ann bob cat dan eve fay gus hal ida jon kim lea".split()
RELATIONS = "knows likes leads owns".split()


def save_corpus(folder: Path, *, pairs: int = 40, dev: int = 8) -> Path:
    """Pairs such as `tell: ann knows bob.` → `ann knows bob.`, some of them rejects."""
    folder.mkdir(parents=True, exist_ok=True)
    rows: list[tuple[str, str, str, str, str | None]] = []
    for number in range(pairs + dev):
        head, tail = NAMES[number % 12], NAMES[(number * 5 + 3 + number // 12) % 12]
        said = f"{head} {RELATIONS[number % 4]} {tail}" + f" and {NAMES[number % 7]}" * (number % 3)
        rows.append((f"p{number:03d}", f"tell: {said}.", f"{said}.", "kept", "train" if number < pairs else "dev"))
    rows.insert(3, ("r1", "tell: nobody.", "a wrong text.", "QA wrong", None))
    schema = ["pair", "instruction", "text", "verdict", "split"]
    pl.DataFrame(rows, schema=schema, orient="row").write_parquet(folder / "corpus.parquet")
    return folder


def options(base: Path | str, **given: Any) -> RewriterOptions:
    """Small numbers, and a checkpoint at every step.  base: a model's folder, or its name."""
    plain: dict[str, Any] = {
        "base": f"hf:{base}" if isinstance(base, Path) else base, "rank": 4, "alpha": 8, "dropout": 0.1,
        "learning_rate": 5e-3, "batch_size": 10, "micro_tokens": 150, "epochs": 2, "samples": 2, "max_new_tokens": 12,
        "device": "cpu", "checkpoint_seconds": 1e-9,
    }  # fmt: skip
    return RewriterOptions(**plain | given)


def command(corpus: Path, out: Path, chosen: RewriterOptions, *, processes: int = 1) -> list[str]:
    """The command of a training run; under torchrun when there are several processes."""
    settings = [f"rewriter.{key}={value}" for key, value in chosen.model_dump(mode="json").items()]
    launch = [sys.executable, "-W", "ignore"]
    if processes > 1:
        launch += ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    flags = [part for setting in settings for part in ("--set", setting)]
    return [*launch, "-m", "kgqa_core.rewriting.train", "--corpus", str(corpus), "--out", str(out), *flags]


def environment() -> dict[str, str]:
    """One thread for each process."""
    return os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
