"""What goes wrong in a batch costs as little as it can: memory that is not enough, a prompt that cannot be read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from kgqa_core.llm.hf import HFModel
from kgqa_core.llm.protocol import GenerationParams
from tests.support.device import DEVICE
from tests.support.models import save_causal, save_seq2seq

PROMPTS = [letter * (3 + place % 7) for place, letter in enumerate("abcdefghijklmnopqrst")]
PARAMS = GenerationParams(max_new_tokens=6)


def _small_memory(model: HFModel, rows: int, fault: Callable[[], Exception]) -> list[int]:
    """Makes the model fail above so many rows; the rows of every call that it got."""
    seen: list[int] = []
    inner = model.model.forward

    def forward(*args: Any, **given: Any) -> Any:
        ids = given.get("input_ids", given.get("decoder_input_ids"))
        seen.append(len(ids))
        if len(ids) > rows:
            raise fault()
        return inner(*args, **given)

    model.model.forward = forward
    return seen


@pytest.mark.parametrize("save", [save_causal, save_seq2seq], ids=["causal", "seq2seq"])
@pytest.mark.parametrize(
    "fault",
    [
        lambda: torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        lambda: RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 99 bytes"),
        lambda: MemoryError(),
    ],
    ids=["gpu", "cpu", "python"],
)
def test_out_of_memory_halves_the_batch_and_goes_on(
    save: Callable[[Path], Path], fault: Callable[[], Exception], tmp_path: Path
) -> None:
    folder = save(tmp_path / "m")
    expected = HFModel(folder, device=DEVICE).generate(PROMPTS, PARAMS)
    model = HFModel(folder, device=DEVICE)
    seen = _small_memory(model, 3, fault)
    places: list[int] = []
    assert model.generate(PROMPTS, PARAMS, on_result=lambda place, _: places.append(place)) == expected
    assert seen[0] == len(PROMPTS)
    assert sorted(places) == list(range(len(PROMPTS)))


def test_a_size_that_did_not_fit_is_not_tried_again(tmp_path: Path) -> None:
    model = HFModel(save_causal(tmp_path / "m"), device=DEVICE)
    seen = _small_memory(model, 5, lambda: torch.OutOfMemoryError("CUDA out of memory"))
    model.generate(PROMPTS, PARAMS)
    failures = sum(rows > 5 for rows in seen)
    assert 0 < failures <= 4
    seen.clear()
    model.generate([prompt + "z" for prompt in PROMPTS], PARAMS)
    assert not [rows for rows in seen if rows > 5]


def test_a_prompt_that_does_not_fit_alone_becomes_an_error_and_the_others_are_answered(tmp_path: Path) -> None:
    folder = save_causal(tmp_path / "m")
    expected = HFModel(folder, device=DEVICE).generate(["a", "bb"], PARAMS)
    model = HFModel(folder, device=DEVICE)
    inner = model.model.forward

    def forward(**given: Any) -> Any:
        if given["input_ids"].shape[1] > 30:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return inner(**given)

    model.model.forward = forward
    out = model.generate(["a", "c" * 40, "bb"], PARAMS)
    assert [out[0], out[2]] == expected
    assert (out[1].finish, out[1].text, out[1].completion_tokens) == ("error", "", 0)
    assert out[1].error is not None and "out of memory" in out[1].error


def test_a_prompt_that_the_tokenizer_refuses_does_not_lose_the_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = HFModel(save_causal(tmp_path / "m"), device=DEVICE)
    expected = model.generate(["a", "b"], PARAMS)
    inner = model.encode

    def encode(prompt: str, new: int) -> list[int]:
        if prompt == "bad":
            raise UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed")
        return inner(prompt, new)

    monkeypatch.setattr(model, "encode", encode)
    out = model.generate(["a", "bad", "b", "bad"], PARAMS)
    assert [out[0], out[2]] == expected
    assert out[1] == out[3] and out[1].finish == "error" and "surrogates" in str(out[1].error)


def test_a_lone_surrogate_does_not_lose_the_batch(tmp_path: Path) -> None:
    model = HFModel(save_causal(tmp_path / "m"), device=DEVICE)
    for params in (PARAMS, GenerationParams(max_new_tokens=6, temperature=1.0)):
        out = model.generate(["a", "x\ud800y", "b"], params)
        assert [out[0], out[2]] == model.generate(["a", "b"], params)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_scores_that_are_no_numbers_are_an_error_of_their_row_only(tmp_path: Path, temperature: float) -> None:
    params = GenerationParams(max_new_tokens=6, temperature=temperature)
    folder = save_causal(tmp_path / "m")
    expected = HFModel(folder, device=DEVICE).generate(PROMPTS, params)
    model = HFModel(folder, device=DEVICE)
    bad = model.tokenizer("q")["input_ids"][0]
    inner = model.model.forward

    def forward(**given: Any) -> Any:
        out = inner(**given)
        out.logits[(given["input_ids"] == bad).any(-1)] = float("nan")
        return out

    model.model.forward = forward
    out = model.generate(PROMPTS, params)
    broken = [place for place, prompt in enumerate(PROMPTS) if "q" in prompt]
    assert all(out[place].finish == "error" and "not numbers" in str(out[place].error) for place in broken)
    rest = [place for place in range(len(PROMPTS)) if place not in broken]
    fine = [place for place in rest if "q" not in expected[place].text]
    assert [out[place] for place in fine] == [expected[place] for place in fine] and len(fine) > 10
