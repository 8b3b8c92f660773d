"""Tiny language models, trainings that stop at a step, and the rewriter's corpus and training command."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from peft import LoraConfig, TaskType, get_peft_model
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

from kgqa_core.config import Options, RewriterOptions
from kgqa_core.retrieval.api import TrainingInputs
from kgqa_core.workspace import Workspace
from tests.support.device import DEVICE

ALPHABET = "abcdefghijklmnopqrstuvwxyz ?.:"


def save_tokenizer(folder: Path, *, pad: bool = True, end_after: bool = False) -> int:
    """A tokenizer of single characters; the size of its vocabulary."""
    vocabulary = {token: number for number, token in enumerate(["<pad>", "<end>", "<unk>", *ALPHABET])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.decoder = decoders.Fuse()
    if end_after:
        tokenizer.post_processor = processors.TemplateProcessing(single="$A <end>", special_tokens=[("<end>", 1)])
    given = {"pad_token": "<pad>"} if pad else {}
    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>", unk_token="<unk>", **given)
    wrapped.save_pretrained(folder)
    return len(vocabulary)


def save_causal(folder: Path, *, seed: int = 0, positions: int = 128, width: int = 32) -> Path:
    """A Llama of two layers."""
    size = save_tokenizer(folder)
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=size, hidden_size=width, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=positions, eos_token_id=1, pad_token_id=0,
        bos_token_id=None, initializer_range=0.6,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def save_seq2seq(folder: Path, *, seed: int = 1) -> Path:
    """A T5 of two layers."""
    size = save_tokenizer(folder, end_after=True)
    torch.manual_seed(seed)
    config = T5Config(
        vocab_size=size, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, eos_token_id=1, pad_token_id=0,
        decoder_start_token_id=0, initializer_factor=10.0,
    )  # fmt: skip
    T5ForConditionalGeneration(config).save_pretrained(folder)
    return folder


def save_lora(model: Path, folder: Path, *, seed: int = 0) -> Path:
    """A LoRA adapter of the model in a folder, with random weights that change what it writes."""
    config = AutoConfig.from_pretrained(model)
    kind = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
    task = TaskType.SEQ_2_SEQ_LM if config.is_encoder_decoder else TaskType.CAUSAL_LM
    torch.manual_seed(seed)
    network = get_peft_model(
        kind.from_pretrained(model), LoraConfig(task_type=task, r=4, lora_alpha=8, target_modules="all-linear")
    )
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if "lora_B" in name:
                parameter.normal_(std=0.5)
    network.save_pretrained(str(folder), save_embedding_layers=False)
    return folder


def save_classifier(
    folder: Path,
    *,
    labels: Sequence[str] = ("entailment", "neutral", "contradiction"),
    kind: str = "bert",
    seed: int = 2,
    positions: int = 128,
) -> Path:
    """A sequence-pair classifier of two layers that reads words of a small vocabulary, others by their letters."""
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *ALPHABET.replace(" ", ""), *"éABCDEFGHIJ.,!0123456789"]
    words = ["the", "a", "cat", "mat", "rain", "all", "day", "it", "was", "dry", "yes", "no", "is", "on", "there"]
    vocabulary = list(dict.fromkeys([*vocabulary, *(f"##{letter}" for letter in vocabulary[5:]), *words]))
    tokenizer = Tokenizer(models.WordPiece({token: n for n, token in enumerate(vocabulary)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [("[CLS]", 2), ("[SEP]", 3)]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ends
    )
    marks = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, mask_token="[MASK]", **marks).save_pretrained(folder)
    torch.manual_seed(seed)
    names = {"id2label": dict(enumerate(labels)), "label2id": {label: n for n, label in enumerate(labels)}}
    config = AutoConfig.for_model(
        kind, vocab_size=len(vocabulary), hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=4, max_position_embeddings=positions, initializer_range=0.6, pad_token_id=0,
        num_labels=len(labels), **names,
    )  # fmt: skip
    AutoModelForSequenceClassification.from_config(config).save_pretrained(folder)
    return folder


class Listener:
    """Remembers training steps, metrics and notes, and raises at a step when asked to: the test's SIGKILL."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.stop_at = stop_at
        self.steps: list[float] = []
        self.metrics: list[tuple[str, int | None]] = []
        self.notes: list[str] = []

    def progress(self, done: float, total: float | None, what: str) -> None:
        if what != "training steps":
            return
        self.steps.append(done)
        if self.stop_at is not None and done >= self.stop_at:
            raise KeyboardInterrupt

    def metric(self, name: str, value: float, step: int | None = None) -> None:
        self.metrics.append((name, step))

    def note(self, message: str) -> None:
        self.notes.append(message)


class Stopper(Listener):
    """Raises at the n-th training step of the whole training, whatever its part."""

    def __init__(self, stop_at: int) -> None:
        super().__init__()
        self.left = stop_at

    def progress(self, done: float, total: float | None, what: str) -> None:
        super().progress(done, total, what)
        if what == "training steps":
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt


def runner(train: Callable[..., dict[str, Any]], usual: Options) -> Callable[..., dict[str, Any]]:
    """`run(world, out)`: a retriever's training on the small world; `usual` options and seed 7 where none are given."""

    def run(world: Any, out: Path, options: Options = usual, **more: Any) -> dict[str, Any]:
        out.mkdir(parents=True)
        given = {"dkg": world.dkg_folder, "questions": world.questions_folder, "options": options, "seed": 7} | more
        workspace = Workspace(out, **{name: given.pop(name) for name in ("work", "monitor", "cache") if name in given})
        return train(workspace, TrainingInputs(**given))

    return run


def resumed(
    run: Callable[..., Any], world: Any, folder: Path, options: Options, stop_at: int, **given: Any
) -> tuple[Listener, dict[str, bytes]]:
    """Kill a training at a step and run it again: what the second try reported, and the files that it wrote."""
    often, work = options.model_copy(update={"checkpoint_seconds": 1e-9}), folder / "work"
    with pytest.raises(KeyboardInterrupt):
        run(world, folder / "first", often, work=work, monitor=Listener(stop_at), **given)
    again = Listener()
    run(world, folder / "second", often, work=work, monitor=again, **given)
    return again, content(folder / "second")


def ignores_checkpoints(run: Callable[..., Any], world: Any, folder: Path, options: Options) -> list[dict[str, bytes]]:
    """The files of two trainings beside a checkpoint: one of another seed, and one that is damaged."""
    often, work = options.model_copy(update={"checkpoint_seconds": 1e-9}), folder / "work"
    with pytest.raises(KeyboardInterrupt):
        run(world, folder / "first", often, work=work, monitor=Listener(9), seed=99)
    run(world, folder / "second", options, work=work)
    (work / "checkpoint.safetensors").write_bytes(b"half a file")
    run(world, folder / "third", options, work=work)
    return [content(folder / "second"), content(folder / "third")]


def content(folder: Path) -> dict[str, bytes]:
    """The files of a folder, by name."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


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
        "base": f"hf:{base}" if isinstance(base, Path) else base, "lora_rank": 4, "lora_alpha": 8, "lora_dropout": 0.1,
        "learning_rate": 5e-3, "global_batch_size": 10, "micro_batch_tokens": 150, "epochs": 2, "samples": 2,
        "max_new_tokens": 12, "device": DEVICE, "checkpoint_seconds": 1e-9,
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
