"""LoRA training: tokens and batches of pairs, what it learns, the same bytes after a kill, loading by plain peft."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from kgqa_core.config import LlmOptions
from kgqa_core.errors import ArtifactError, ModelError, TrainingError
from kgqa_core.llm.builtin.model import WEIGHTS
from kgqa_core.llm.hf import HFModel
from kgqa_core.llm.protocol import GenerationParams
from kgqa_core.rewriting.lora import load_rewriter
from kgqa_core.rewriting.train import (
    IGNORED,
    Pairs,
    effective_batches,
    inputs,
    micro_batches,
    read_corpus,
    target_ids,
    tokenise,
    train,
)
from kgqa_core.workspace import Workspace
from tests.support.device import DEVICE
from tests.support.models import Listener, options, save_causal, save_corpus, save_seq2seq

ON = torch.device(DEVICE)


BOTH = [pytest.param(save_causal, id="causal"), pytest.param(save_seq2seq, id="seq2seq", marks=pytest.mark.slow)]
"""Kinds of models that are trained."""


@pytest.fixture(params=[save_causal, save_seq2seq], ids=["causal", "seq2seq"])
def reader(request: pytest.FixtureRequest, tmp_path: Path) -> HFModel:
    return HFModel(request.param(tmp_path / "model"), device=DEVICE)


def test_rejects_and_the_other_split_are_not_learnt(reader: HFModel, tmp_path: Path) -> None:
    frame = read_corpus(save_corpus(tmp_path / "c"))
    learn, _ = tokenise(frame, "train", reader, options(tmp_path))
    develop, _ = tokenise(frame, "dev", reader, options(tmp_path))
    assert (len(learn), len(develop)) == (40, 8)
    assert not {"r1"} & {*learn.ids, *develop.ids} and not set(learn.ids) & set(develop.ids)


def test_only_the_target_is_counted_and_it_ends_with_the_end_token(reader: HFModel, tmp_path: Path) -> None:
    learn, _ = tokenise(read_corpus(save_corpus(tmp_path / "c")), "train", reader, options(tmp_path))
    part = [0, 7, 20]
    given, labels = inputs(learn, part, reader, ON)
    assert given["attention_mask"].shape == given["input_ids"].shape
    for row, index in enumerate(part):
        counted = labels[row][labels[row] != IGNORED].tolist()
        assert counted == learn.targets[index] and counted[-1] == reader.ends[0]
        assert reader.tokenizer.decode(counted, skip_special_tokens=True).strip() == learn.texts[index]


def test_the_loss_is_that_of_each_pair_alone(reader: HFModel, tmp_path: Path) -> None:
    learn, _ = tokenise(read_corpus(save_corpus(tmp_path / "c")), "train", reader, options(tmp_path))

    @torch.no_grad()
    def loss(part: list[int]) -> float:
        given, labels = inputs(learn, part, reader, ON)
        logits = reader.model(**given).logits
        wanted = labels != IGNORED
        return float(torch.nn.functional.cross_entropy(logits[wanted], labels[wanted], reduction="sum"))

    @torch.no_grad()
    def alone(index: int) -> float:
        prompt, target = learn.prompts[index], learn.targets[index]
        if reader.seq2seq:
            out = reader.model(input_ids=torch.tensor([prompt], device=ON), labels=torch.tensor([target], device=ON))
        else:
            ids = torch.tensor([prompt + target], device=ON)
            out = reader.model(input_ids=ids, labels=torch.tensor([[IGNORED] * len(prompt) + target], device=ON))
        return float(out.loss) * len(target)

    part = [1, 2, 12, 33]
    assert loss(part) == pytest.approx(sum(map(alone, part)), rel=1e-5)


def test_a_causal_model_is_asked_at_the_very_tokens_that_it_learnt_after(tmp_path: Path) -> None:
    reader = HFModel(save_causal(tmp_path / "m"), device=DEVICE)
    learn, _ = tokenise(read_corpus(save_corpus(tmp_path / "c")), "train", reader, options(tmp_path))
    assert [reader.encode(instruction, 8) for instruction in learn.instructions] == learn.prompts
    assert reader.tokenizer.decode(target_ids(reader, "ann  knows\nbob", " ")[:-1]) == " ann knows bob"


def test_pairs_that_are_too_long_or_empty_are_left_out_by_name(tmp_path: Path) -> None:
    reader = HFModel(save_causal(tmp_path / "m", positions=64), device=DEVICE)
    rows = [("fits", "a b", "c"), ("long", "a" * 50, "b" * 40), ("empty", "a", " "), ("limit", "a" * 31, "b" * 31)]
    frame = pl.DataFrame(
        [(*row, "kept", "train") for row in rows],
        schema=["pair", "instruction", "text", "verdict", "split"],
        orient="row",
    )
    pairs, left_out = tokenise(frame, "train", reader, options(tmp_path, max_length=1000))
    assert (pairs.ids, left_out) == (["fits", "limit"], ["long", "empty"])
    pairs, left_out = tokenise(frame, "train", reader, options(tmp_path, max_length=16))
    assert (pairs.ids, left_out) == (["fits"], ["long", "empty", "limit"])


def test_every_epoch_takes_every_pair_once_in_another_order() -> None:
    first, second = (effective_batches(23, 5, 7, epoch) for epoch in (0, 1))
    assert [len(batch) for batch in first] == [5, 5, 5, 5, 3]
    assert sorted(sum(first, [])) == sorted(sum(second, [])) == list(range(23))
    assert first != second and first == effective_batches(23, 5, 7, 0) != effective_batches(23, 5, 8, 0)


def test_micro_batches_stay_within_their_tokens_and_lose_nobody() -> None:
    lengths = [3, 9, 4, 30, 2, 2, 8, 7]
    pairs = Pairs([], [], [], [[1] * (length - 1) for length in lengths], [[1]] * 8)
    parts = micro_batches(pairs, list(range(8)), 20)
    assert sorted(sum(parts, [])) == list(range(8))
    for part in parts:
        assert len(part) == 1 or max(lengths[index] for index in part) * len(part) <= 20
    assert parts[0] == [3]


@pytest.mark.parametrize("fault", ["no file", "no column"])
def test_what_is_no_corpus_is_refused(fault: str, tmp_path: Path) -> None:
    if fault == "no column":
        pl.DataFrame({"pair": ["a"]}).write_parquet(tmp_path / "corpus.parquet")
    with pytest.raises(ArtifactError, match=r"(has no corpus.parquet|unable to find column)"):
        read_corpus(tmp_path)


FILES = ["adapter/adapter_model.safetensors", "adapter/adapter_config.json", "curves.parquet", "samples.parquet"]
LLM = LlmOptions(device=DEVICE)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_corpus(tmp_path_factory.mktemp("corpus"))


def _bytes(out: Path) -> list[bytes]:
    return [(out / name).read_bytes() for name in [*FILES, "meta.json"]]


@pytest.mark.slow
@pytest.mark.parametrize("save", BOTH)
def test_a_killed_run_ends_with_the_bytes_of_an_undisturbed_one(
    save: Callable[[Path], Path], corpus: Path, tmp_path: Path
) -> None:
    how = options(save(tmp_path / "m"), eval_steps=3)
    train(Workspace(tmp_path / "whole"), corpus=corpus, options=how, seed=3)
    for step in (1, 4, 6):
        with pytest.raises(KeyboardInterrupt):
            train(
                Workspace(tmp_path / "cut", tmp_path / "work", monitor=Listener(step)),
                corpus=corpus,
                options=how,
                seed=3,
            )
        assert not (tmp_path / "cut" / "meta.json").exists()
    torch.rand(5)
    train(Workspace(tmp_path / "cut", tmp_path / "work"), corpus=corpus, options=how, seed=3)
    assert _bytes(tmp_path / "cut") == _bytes(tmp_path / "whole")
    assert not list((tmp_path / "work").iterdir())
    train(Workspace(tmp_path / "other"), corpus=corpus, options=how, seed=4)
    assert _bytes(tmp_path / "other")[0] != _bytes(tmp_path / "whole")[0]


@pytest.mark.slow
def test_dropout_is_on_and_another_option_starts_anew(corpus: Path, tmp_path: Path) -> None:
    base = save_causal(tmp_path / "m")
    how = options(base, epochs=1)
    with pytest.raises(KeyboardInterrupt):
        train(Workspace(tmp_path / "a", tmp_path / "work", monitor=Listener(2)), corpus=corpus, options=how, seed=3)
    dry = options(base, epochs=1, lora_dropout=0.0)
    train(Workspace(tmp_path / "a", tmp_path / "work"), corpus=corpus, options=dry, seed=3)
    train(Workspace(tmp_path / "b"), corpus=corpus, options=dry, seed=3)
    train(Workspace(tmp_path / "c"), corpus=corpus, options=how, seed=3)
    a, b, c = (_bytes(tmp_path / name)[0] for name in "abc")
    assert a == b != c


@pytest.mark.slow
def test_accumulation_does_not_change_the_step(corpus: Path, tmp_path: Path) -> None:
    base = save_causal(tmp_path / "m")
    weights = []
    for micro in (64, 10_000):
        out = tmp_path / f"m{micro}"
        how = options(base, epochs=1, lora_dropout=0.0, micro_batch_tokens=micro)
        train(Workspace(out), corpus=corpus, options=how, seed=3)
        weights.append(load_file(out / FILES[0]))
    apart = torch.cat([(value - weights[1][name]).abs().flatten() for name, value in weights[0].items()])
    # Adam makes a whole step of a gradient that is nothing but rounding: a few weights may differ by less than one.
    assert float(apart.max()) < how.learning_rate / 5 and int((apart > 1e-5).sum()) <= len(apart) / 500


@pytest.mark.parametrize("save", BOTH)
def test_it_learns_keeps_the_best_epoch_and_shows_samples(
    save: Callable[[Path], Path], corpus: Path, tmp_path: Path
) -> None:
    counts = train(Workspace(tmp_path / "out"), corpus=corpus, options=options(save(tmp_path / "m"), epochs=3), seed=3)
    curve = pl.read_parquet(tmp_path / "out" / "curves.parquet")
    dev = curve.filter(pl.col("split") == "dev")["value"].to_list()
    assert len(dev) == counts["epochs"] == 3 and dev[-1] < dev[0]
    assert counts["dev_loss"] == pytest.approx(min(dev), abs=1e-6) and counts["best_epoch"] == dev.index(min(dev))
    assert counts["pairs"] == {"train": 40, "dev": 8}
    samples = pl.read_parquet(tmp_path / "out" / "samples.parquet")
    assert samples["epoch"].to_list() == [0, 0, 1, 1, 2, 2]
    assert samples["pair"].n_unique() == 2 and samples["pair"].str.starts_with("p04").all()
    meta = json.loads((tmp_path / "out" / "meta.json").read_text())
    assert meta["options"]["lora_rank"] == 4 and meta["pairs"]["train"] == 40 and len(meta["corpus_sha256"]) == 64


@pytest.mark.slow
def test_the_adapter_that_is_kept_is_that_of_the_best_epoch(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    losses = iter([3.0, 1.0, 1.0, 2.0])
    monkeypatch.setattr("kgqa_core.rewriting.train.AdapterTraining._measure", lambda run, pairs: next(losses))
    how = options(save_causal(tmp_path / "m"), epochs=4)
    counts = train(Workspace(tmp_path / "out"), corpus=corpus, options=how, seed=3)
    assert (counts["best_epoch"], counts["dev_loss"]) == (1, 1.0), "the first of equals"
    shown = pl.read_parquet(tmp_path / "out" / "samples.parquet")
    samples = [shown.filter(pl.col("epoch") == epoch)["text"].to_list() for epoch in range(4)]
    model = load_rewriter(tmp_path / "out", LLM)
    written = model.generate(shown["instruction"].to_list()[:2], GenerationParams(max_new_tokens=12))
    assert [completion.text.strip() for completion in written] == samples[1] not in (samples[0], samples[2], samples[3])


@pytest.mark.slow
def test_plain_peft_writes_what_our_rewriter_writes(corpus: Path, tmp_path: Path) -> None:
    how = options("builtin", epochs=3, global_batch_size=20, micro_batch_tokens=2000, samples=0)
    train(Workspace(tmp_path / "out"), corpus=corpus, options=how, seed=3)
    adapter = tmp_path / "out" / "adapter"
    ours = load_rewriter(tmp_path / "out", LLM)
    assert ours.name.startswith("builtin+")
    plain = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(WEIGHTS, dtype=torch.float32), adapter)
    tokenizer = AutoTokenizer.from_pretrained(WEIGHTS)
    prompts = [f"tell: {words}." for words in ("ann knows bob", "kim owns lea and ann", "Paris capital_of France")]
    bare = load_rewriter_base().generate(prompts, GenerationParams(max_new_tokens=12))
    completions = ours.generate(prompts, GenerationParams(max_new_tokens=12))
    assert [c.text for c in completions] != [c.text for c in bare]
    for prompt, completion in zip(prompts, completions, strict=True):
        ids = tokenizer(prompt, return_tensors="pt")
        with torch.inference_mode():
            out = plain.eval().generate(
                input_ids=ids["input_ids"], attention_mask=ids["attention_mask"], max_new_tokens=12, do_sample=False
            )
        assert completion.text == tokenizer.decode(out[0, ids["input_ids"].shape[1] :], skip_special_tokens=True)
    config = json.loads((adapter / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == "builtin"
    layers = "down_proj gate_proj k_proj o_proj q_proj up_proj v_proj".split()
    assert config["target_modules"] == layers and config["lora_alpha"] == 8 and config["r"] == 4


def load_rewriter_base() -> Any:
    from kgqa_core.llm.builtin.model import load_builtin

    return load_builtin(device=DEVICE)


def test_nothing_that_is_written_names_this_machine(corpus: Path, tmp_path: Path) -> None:
    base = save_seq2seq(tmp_path / "small-t5")
    train(Workspace(tmp_path / "out"), corpus=corpus, options=options(base, epochs=1), seed=3)
    adapter = tmp_path / "out" / "adapter"
    assert sorted(path.name for path in adapter.iterdir()) == ["adapter_config.json", "adapter_model.safetensors"]
    for path in adapter.iterdir():
        assert str(tmp_path).encode() not in path.read_bytes()
    config = json.loads((adapter / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == "small-t5"
    assert config["target_modules"] == ["q", "v"] and config["task_type"] == "SEQ_2_SEQ_LM"


def test_a_rewriter_is_not_laid_over_another_base(corpus: Path, tmp_path: Path) -> None:
    base = save_causal(tmp_path / "m")
    train(Workspace(tmp_path / "out"), corpus=corpus, options=options(base, epochs=1, samples=0), seed=3)
    moved = tmp_path / "elsewhere"
    base.rename(moved)
    assert load_rewriter(tmp_path / "out", LLM, base=f"hf:{moved}").revision.count("+") == 1
    save_causal(base, seed=99)
    with pytest.raises(ModelError, match="train the rewriter again"):
        load_rewriter(tmp_path / "out", LLM)
    with pytest.raises(ArtifactError, match="no trained rewriter"):
        load_rewriter(tmp_path / "nowhere", LLM)


@pytest.mark.slow
def test_half_precision_learns_too(corpus: Path, tmp_path: Path) -> None:
    how = options(save_causal(tmp_path / "m"), precision="bf16")
    train(Workspace(tmp_path / "out"), corpus=corpus, options=how, seed=3)
    curve = pl.read_parquet(tmp_path / "out" / "curves.parquet").filter(pl.col("split") == "dev")["value"]
    assert curve[1] < curve[0]
    assert {value.dtype for value in load_file(tmp_path / "out" / FILES[0]).values()} == {torch.float32}


def test_what_cannot_be_trained_is_refused(corpus: Path, tmp_path: Path) -> None:
    base = save_causal(tmp_path / "m")
    with pytest.raises(ModelError, match="behind an endpoint"):
        train(Workspace(tmp_path / "o"), corpus=corpus, options=options("openai:gpt"), seed=3)
    with pytest.raises(TrainingError, match="no pair to learn from"):
        train(Workspace(tmp_path / "o"), corpus=corpus, options=options(base, max_length=16), seed=3)
    with pytest.raises(TrainingError, match="not finite"):
        train(Workspace(tmp_path / "o"), corpus=corpus, options=options(base, learning_rate=1e30), seed=3)


@pytest.mark.slow
def test_without_dev_pairs_the_last_adapter_is_kept(tmp_path: Path) -> None:
    corpus = save_corpus(tmp_path / "c", pairs=12, dev=0)
    counts = train(Workspace(tmp_path / "out"), corpus=corpus, options=options(save_causal(tmp_path / "m")), seed=3)
    assert (counts["best_epoch"], counts["dev_loss"]) == (1, None)
    assert pl.read_parquet(tmp_path / "out" / "samples.parquet").is_empty()
