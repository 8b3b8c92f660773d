"""Pairs as tokens: what the loss counts, where a target ends, and batches that follow from the seed alone."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
import torch

from kgqa_core.errors import ArtifactError
from kgqa_core.llm.hf import HFModel
from kgqa_core.rewriting.batches import (
    IGNORED,
    Pairs,
    effective_batches,
    inputs,
    micro_batches,
    read_corpus,
    target_ids,
    tokenise,
)
from tests.support.models import options, save_causal, save_corpus, save_seq2seq

CPU = torch.device("cpu")


@pytest.fixture(params=[save_causal, save_seq2seq], ids=["causal", "seq2seq"])
def reader(request: pytest.FixtureRequest, tmp_path: Path) -> HFModel:
    return HFModel(request.param(tmp_path / "model"), device="cpu")


def test_rejects_and_the_other_split_are_not_learnt(reader: HFModel, tmp_path: Path) -> None:
    frame = read_corpus(save_corpus(tmp_path / "c"))
    learn, _ = tokenise(frame, "train", reader, options(tmp_path))
    develop, _ = tokenise(frame, "dev", reader, options(tmp_path))
    assert (len(learn), len(develop)) == (40, 8)
    assert not {"r1"} & {*learn.ids, *develop.ids} and not set(learn.ids) & set(develop.ids)


def test_only_the_target_is_counted_and_it_ends_with_the_end_token(reader: HFModel, tmp_path: Path) -> None:
    learn, _ = tokenise(read_corpus(save_corpus(tmp_path / "c")), "train", reader, options(tmp_path))
    part = [0, 7, 20]
    given, labels = inputs(learn, part, reader, CPU)
    assert given["attention_mask"].shape == given["input_ids"].shape
    for row, index in enumerate(part):
        counted = labels[row][labels[row] != IGNORED].tolist()
        assert counted == learn.targets[index] and counted[-1] == reader.ends[0]
        assert reader.tokenizer.decode(counted, skip_special_tokens=True).strip() == learn.texts[index]


def test_the_loss_is_that_of_each_pair_alone(reader: HFModel, tmp_path: Path) -> None:
    learn, _ = tokenise(read_corpus(save_corpus(tmp_path / "c")), "train", reader, options(tmp_path))

    @torch.no_grad()
    def loss(part: list[int]) -> float:
        given, labels = inputs(learn, part, reader, CPU)
        logits = reader.model(**given).logits
        wanted = labels != IGNORED
        return float(torch.nn.functional.cross_entropy(logits[wanted], labels[wanted], reduction="sum"))

    @torch.no_grad()
    def alone(index: int) -> float:
        prompt, target = learn.prompts[index], learn.targets[index]
        if reader.seq2seq:
            out = reader.model(input_ids=torch.tensor([prompt]), labels=torch.tensor([target]))
        else:
            ids = torch.tensor([prompt + target])
            out = reader.model(input_ids=ids, labels=torch.tensor([[IGNORED] * len(prompt) + target]))
        return float(out.loss) * len(target)

    part = [1, 2, 12, 33]
    assert loss(part) == pytest.approx(sum(map(alone, part)), rel=1e-5)


def test_a_causal_model_is_asked_at_the_very_tokens_that_it_learnt_after(tmp_path: Path) -> None:
    reader = HFModel(save_causal(tmp_path / "m"), device="cpu")
    learn, _ = tokenise(read_corpus(save_corpus(tmp_path / "c")), "train", reader, options(tmp_path))
    assert [reader._encode(instruction, 8) for instruction in learn.instructions] == learn.prompts
    assert reader.tokenizer.decode(target_ids(reader, "ann  knows\nbob", " ")[:-1]) == " ann knows bob"


def test_pairs_that_are_too_long_or_empty_are_left_out_by_name(tmp_path: Path) -> None:
    reader = HFModel(save_causal(tmp_path / "m", positions=64), device="cpu")
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
    with pytest.raises(ArtifactError, match=r"(has no corpus.parquet|no column instruction)"):
        read_corpus(tmp_path)
