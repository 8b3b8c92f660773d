"""Local models: causal and seq2seq, order, batching, and folders that hold no model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from kgqa_core.errors import ModelError
from kgqa_core.llm.hf import HFModel
from kgqa_core.llm.hf_decode import choose
from kgqa_core.llm.protocol import GenerationParams
from tests.support.device import DEVICE
from tests.support.models import save_causal, save_lora, save_seq2seq, save_tokenizer

PROMPTS = ["what is it?", "a", "who was the king of the hill in the long story: tell me.", "where is b?", "a", "zz top"]
PARAMS = GenerationParams(max_new_tokens=12)


@pytest.mark.parametrize("save", [save_causal, save_seq2seq], ids=["causal", "seq2seq"])
def test_batches_write_what_single_prompts_write(save: Callable[[Path], Path], tmp_path: Path) -> None:
    folder = save(tmp_path / "m")
    model = HFModel(folder, batch_tokens=4096, device=DEVICE)
    together = model.generate(PROMPTS, PARAMS)
    alone = [model.generate([prompt], PARAMS)[0] for prompt in PROMPTS]
    assert together == alone
    assert len({completion.text for completion in together}) > 2, "the model should tell prompts apart"
    assert together[1] == together[4]


@pytest.mark.parametrize("save", [save_causal, save_seq2seq], ids=["causal", "seq2seq"])
def test_agrees_with_generate_of_transformers(save: Callable[[Path], Path], tmp_path: Path) -> None:
    model = HFModel(save(tmp_path / "m"), device=DEVICE)
    for prompt, completion in zip(PROMPTS, model.generate(PROMPTS, PARAMS), strict=True):
        ids = model.tokenizer(prompt, return_tensors="pt").to(DEVICE)
        out = model.model.generate(
            input_ids=ids["input_ids"], attention_mask=ids["attention_mask"], max_new_tokens=12, do_sample=False
        )
        new = out[0, 1:] if model.seq2seq else out[0, ids["input_ids"].shape[1] :]
        assert completion.text == model.tokenizer.decode(new, skip_special_tokens=True)


def test_kind_is_read_from_the_configuration(tmp_path: Path) -> None:
    assert not HFModel(save_causal(tmp_path / "c"), device=DEVICE).seq2seq
    assert HFModel(save_seq2seq(tmp_path / "s"), device=DEVICE).seq2seq


def test_equal_prompts_are_computed_once_and_every_place_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = HFModel(save_causal(tmp_path / "m"), batch_tokens=64, device=DEVICE)
    rows: list[int] = []
    inner = model._batch
    monkeypatch.setattr(model, "_batch", lambda on, batch, *rest: (rows.append(len(batch)), inner(on, batch, *rest))[1])
    results: dict[int, str] = {}
    out = model.generate(PROMPTS * 2, PARAMS, on_result=lambda place, done: results.update({place: done.text}))
    assert sum(rows) == len(set(PROMPTS))
    assert [results[place] for place in range(len(PROMPTS) * 2)] == [completion.text for completion in out]


@pytest.mark.parametrize("beams", [1, 3])
def test_batches_stay_within_the_token_budget_with_room_for_the_output(tmp_path: Path, beams: int) -> None:
    model = HFModel(save_causal(tmp_path / "m"), batch_tokens=90, device=DEVICE)
    params = GenerationParams(max_new_tokens=5, num_beams=beams)
    lengths = [3, 50, 7, 12, 12, 39, 1]
    encoded = [[5] * length for length in lengths]
    batches = list(model._batches(encoded, params))
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    assert max(map(len, batches)) > 1
    for batch in batches:
        assert len(batch) == 1 or len(batch) * (max(lengths[index] for index in batch) + 5) * beams <= 90


def test_a_longer_output_makes_smaller_batches(tmp_path: Path) -> None:
    model = HFModel(save_causal(tmp_path / "m"), batch_tokens=100, device=DEVICE)
    sizes = [
        max(map(len, model._batches([[5] * 10] * 20, GenerationParams(max_new_tokens=new)))) for new in (1, 10, 90)
    ]
    assert sizes == [9, 5, 1]


def test_a_model_without_a_padding_token_works(tmp_path: Path) -> None:
    folder = save_causal(tmp_path / "m")
    padded = HFModel(folder, device=DEVICE).generate(PROMPTS, PARAMS)
    save_tokenizer(folder, pad=False)
    bare = HFModel(folder, device=DEVICE)
    assert bare.pad == bare.ends[0]
    texts = [completion.text.replace("<pad>", "") for completion in bare.generate(PROMPTS, PARAMS)]
    assert texts == [completion.text for completion in padded]


def test_a_prompt_that_is_too_long_keeps_its_beginning_and_its_end(tmp_path: Path) -> None:
    model = HFModel(save_causal(tmp_path / "m", positions=64), device=DEVICE)
    ids = model.encode("a" * 60 + "b" * 60 + "c" * 40, 12)
    assert len(ids) == 64 - 12
    text = model.tokenizer.decode(ids)
    assert text.startswith("aaaa") and text.endswith("cccc")
    assert model.generate(["a" * 500], PARAMS)[0].prompt_tokens == 52


def test_finish_says_why_it_ended(tmp_path: Path) -> None:
    model = HFModel(save_causal(tmp_path / "m"), device=DEVICE)
    full = model.generate(["what is it?"], GenerationParams(max_new_tokens=6))[0]
    assert (full.finish, full.completion_tokens) == ("length", 6) or full.finish == "stop"
    letter = full.text[1]
    cut = model.generate(["what is it?"], GenerationParams(max_new_tokens=6, stop=(letter,)))[0]
    assert cut.text == full.text[: full.text.find(letter)] and cut.finish in ("stop", "empty")
    model.ends = tuple(range(model.model.config.vocab_size))
    first = model.generate(["what is it?"], PARAMS)[0]
    assert (first.finish, first.completion_tokens) == ("stop", 1)


def test_sampling_follows_its_seed_and_the_nucleus(tmp_path: Path) -> None:
    model = HFModel(save_causal(tmp_path / "m"), device=DEVICE)
    draws = [
        [each.text for each in model.generate(PROMPTS, GenerationParams(max_new_tokens=8, temperature=5.0, seed=seed))]
        for seed in (1, 1, 2)
    ]
    assert draws[0] == draws[1] != draws[2]


def test_samples_of_a_prompt_do_not_depend_on_its_neighbours(tmp_path: Path) -> None:
    model = HFModel(save_causal(tmp_path / "m"), device=DEVICE)
    params = GenerationParams(max_new_tokens=8, temperature=2.0, top_p=0.9, top_k=7, seed=3)
    together = model.generate(PROMPTS, params)
    assert together == [model.generate([prompt], params)[0] for prompt in PROMPTS]
    assert together[1] == together[4], "equal prompts get equal completions"


def test_top_p_and_top_k_leave_only_the_likeliest_tokens() -> None:
    logits = torch.tensor([[0.0, 3.0, 1.0, -1.0]]).repeat(400, 1)
    generators = [torch.Generator().manual_seed(seed) for seed in range(400)]

    def drawn(**how: float) -> set[int]:
        return set(choose(logits, GenerationParams(temperature=4.0, **how), generators).tolist())

    assert drawn() == {0, 1, 2, 3}
    assert drawn(top_k=2) == {1, 2}
    assert drawn(top_p=1e-6) == {1}
    assert drawn(top_k=1, top_p=0.9) == {1}


def test_draws_follow_the_distribution() -> None:
    logits = torch.tensor([[0.0, 2.0, 1.0]]).repeat(4000, 1)
    generators = [torch.Generator().manual_seed(seed) for seed in range(4000)]
    share = choose(logits, GenerationParams(temperature=1.0), generators).bincount(minlength=3) / 4000
    assert torch.allclose(share, logits[0].softmax(-1), atol=0.03)


@pytest.mark.parametrize("save", [save_causal, save_seq2seq], ids=["causal", "seq2seq"])
def test_beams_write_what_transformers_writes_in_any_batch(save: Callable[[Path], Path], tmp_path: Path) -> None:
    model = HFModel(save(tmp_path / "m"), device=DEVICE)
    params = GenerationParams(max_new_tokens=10, num_beams=4)
    together = model.generate(PROMPTS, params)
    assert together == [model.generate([prompt], params)[0] for prompt in PROMPTS]
    if not model.seq2seq:  # this T5 is so sure of itself that no beam finds better
        assert together != model.generate(PROMPTS, GenerationParams(max_new_tokens=10))
    ids = model.tokenizer(PROMPTS[0], return_tensors="pt").to(DEVICE)
    out = model.model.generate(
        input_ids=ids["input_ids"], attention_mask=ids["attention_mask"], max_new_tokens=10, num_beams=4,
        do_sample=False,
    )  # fmt: skip
    new = out[0, 1:] if model.seq2seq else out[0, ids["input_ids"].shape[1] :]
    assert together[0].text == model.tokenizer.decode(new, skip_special_tokens=True)


def test_rules_that_a_model_brings_along_are_kept(tmp_path: Path) -> None:
    model = HFModel(save_seq2seq(tmp_path / "m"), device=DEVICE)
    plain = model.generate(PROMPTS, PARAMS)
    first = model.tokenizer.convert_tokens_to_ids("q")
    model.model.generation_config.forced_bos_token_id = first
    forced = model.generate(PROMPTS, PARAMS)
    assert not all(completion.text.startswith("q") for completion in plain)
    assert all(completion.text.startswith("q") for completion in forced)


def test_numbers_are_those_asked_for(tmp_path: Path) -> None:
    folder = save_causal(tmp_path / "m")
    assert HFModel(folder, device=DEVICE).model.dtype == torch.float32
    half = HFModel(folder, device=DEVICE, dtype="bf16")
    assert half.model.dtype == torch.bfloat16
    assert len(half.generate(PROMPTS, PARAMS)) == len(PROMPTS)


def test_int8_rounds_the_linear_layers_and_is_another_model_to_the_cache(tmp_path: Path) -> None:
    folder = save_causal(tmp_path / "m")
    whole, rounded = HFModel(folder, device="cpu"), HFModel(folder, device="cpu", dtype="int8")
    with rounded.base.using(None) as copies:
        kinds = {type(layer).__module__ for layer in copies[0].modules() if type(layer).__name__ == "Linear"}
    assert len(kinds) == 1 and "quantized" in kinds.pop()
    assert rounded.model.dtype == torch.float32
    written = rounded.generate(PROMPTS, PARAMS)
    assert written == rounded.generate(PROMPTS, PARAMS)
    assert all(completion.finish != "error" for completion in written)
    assert (rounded.name, rounded.revision) == (whole.name, whole.revision) and rounded.numbers != whole.numbers


def test_int8_leaves_a_model_with_an_adapter_as_it_is(tmp_path: Path) -> None:
    folder = save_causal(tmp_path / "m")
    adapter = save_lora(folder, tmp_path / "a", seed=1)
    whole = HFModel(folder, device="cpu", adapter=adapter)
    rounded = HFModel(folder, device="cpu", dtype="int8", adapter=adapter)
    assert rounded.generate(PROMPTS, PARAMS) == whole.generate(PROMPTS, PARAMS)
    assert rounded.adapter(None).generate(PROMPTS, PARAMS) == HFModel(folder, device="cpu", dtype="int8").generate(
        PROMPTS, PARAMS
    )


def test_int8_of_a_gpu_is_refused_before_anything_is_loaded(tmp_path: Path) -> None:
    folder = save_causal(tmp_path / "m")
    with pytest.raises(ModelError, match="int8 is for a CPU, not for 'cuda'; use bf16"):
        HFModel(folder, device="cuda", dtype="int8")


def test_copies_on_several_devices_write_the_same_in_the_same_order(tmp_path: Path) -> None:
    folder = save_causal(tmp_path / "m")
    one = HFModel(folder, batch_tokens=64, device=DEVICE)
    two = HFModel(folder, batch_tokens=64, device=f"{DEVICE},{DEVICE}")
    assert len(two.base.copies) == 2
    prompts = [f"{prompt} {letter}" for prompt in PROMPTS for letter in "abcde"]
    places: list[int] = []
    assert two.generate(prompts, PARAMS, on_result=lambda place, _: places.append(place)) == one.generate(
        prompts, PARAMS
    )
    assert sorted(places) == list(range(len(prompts)))


def test_revision_follows_the_weights(tmp_path: Path) -> None:
    one, same, other = (HFModel(save_causal(tmp_path / f"{n}", seed=n // 2), device=DEVICE).revision for n in (0, 1, 2))
    assert one == same != other


@pytest.mark.parametrize("make", ["empty", "no weights", "broken", "missing", "file"])
def test_a_folder_that_is_no_model_is_named_with_the_way_out(make: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    if make != "missing":
        folder.mkdir()
    if make in ("no weights", "broken"):
        save_causal(folder)
        if make == "no weights":
            (folder / "model.safetensors").unlink()
        else:
            (folder / "model.safetensors").write_bytes(b"not weights")
    if make == "file":
        folder = folder / "config.json"
        folder.write_text("{}")
    with pytest.raises(ModelError) as caught:
        HFModel(folder, device=DEVICE)
    assert str(folder) in str(caught.value)
    assert "config.json" in str(caught.value) or "kgqa models convert" in str(caught.value)
