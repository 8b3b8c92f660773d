"""LoRA adapters over one copy of the weights: which is on, what it is called, and that the base comes back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM

from kgqa_core.config import LlmOptions
from kgqa_core.errors import ModelError
from kgqa_core.llm.factory import load_model
from kgqa_core.llm.hf import HFModel
from kgqa_core.llm.protocol import GenerationParams
from tests.support.device import DEVICE
from tests.support.models import save_causal, save_lora, save_seq2seq

PROMPTS = ["what is it?", "a", "who was the king of the hill in the long story: tell me.", "where is b?", "zz top"]
PARAMS = GenerationParams(max_new_tokens=12)


@pytest.mark.parametrize("save", [save_causal, save_seq2seq], ids=["causal", "seq2seq"])
def test_adapters_are_swapped_over_one_base_and_the_base_comes_back(save, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    folder = save(tmp_path / "m")
    base = HFModel(folder, device=DEVICE, name="builtin")
    bare = base.generate(PROMPTS, PARAMS)
    one, two = (base.adapter(save_lora(folder, tmp_path / f"a{seed}", seed=seed)) for seed in (1, 2))
    assert one.model is two.model is base.model, "no second copy of the weights"
    first, second = one.generate(PROMPTS, PARAMS), two.generate(PROMPTS, PARAMS)
    assert [c.text for c in bare] != [c.text for c in first] != [c.text for c in second] != [c.text for c in bare]
    assert base.generate(PROMPTS, PARAMS) == bare
    assert one.generate(PROMPTS, PARAMS) == first
    assert one.adapter(None).generate(PROMPTS, PARAMS) == bare


def test_weights_that_an_adapter_was_added_to_come_back_bit_by_bit(tmp_path: Path) -> None:
    folder = save_causal(tmp_path / "m")
    model = HFModel(folder, device=DEVICE, adapter=save_lora(folder, tmp_path / "a", seed=1))
    before = {name: value.clone() for name, value in model.model.state_dict().items()}
    with model.base.using(model.adapter_name):
        changed = [name for name, value in model.model.state_dict().items() if not torch.equal(value, before[name])]
        assert changed
    after = model.model.state_dict()
    assert after.keys() == before.keys() and all(torch.equal(value, before[name]) for name, value in after.items())


def test_an_adapter_over_large_weights_writes_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = save_causal(tmp_path / "m")
    model = HFModel(folder, device=DEVICE, adapter=save_lora(folder, tmp_path / "a", seed=1))
    added = model.generate(PROMPTS, PARAMS)
    monkeypatch.setattr("kgqa_core.llm.hf_load.MERGED", 0)
    assert [one.text for one in model.generate(PROMPTS, PARAMS)] == [one.text for one in added]


def test_name_and_revision_say_which_adapter_is_on(tmp_path: Path) -> None:
    folder = save_causal(tmp_path / "m")
    base = HFModel(folder, device=DEVICE, name="builtin")
    one, again, two = (
        base.adapter(save_lora(folder, tmp_path / name, seed=seed))
        for name, seed in (("x", 1), ("same elsewhere", 1), ("y", 2))
    )
    assert base.name == "builtin" and one.name.startswith("builtin+")
    assert one.revision == again.revision and one.name == again.name
    assert len({base.revision, one.revision, two.revision}) == len({base.name, one.name, two.name}) == 3
    assert one.revision.partition("+")[0] == base.revision
    assert two.adapter(None).revision == base.revision
    assert "same elsewhere" not in again.name and str(tmp_path) not in again.name


def test_writes_what_plain_peft_writes(tmp_path: Path) -> None:
    folder = save_causal(tmp_path / "m")
    ours = HFModel(folder, device=DEVICE, adapter=save_lora(folder, tmp_path / "a"))
    plain = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(folder), tmp_path / "a").eval()
    for prompt, completion in zip(PROMPTS, ours.generate(PROMPTS, PARAMS), strict=True):
        ids = ours.tokenizer(prompt, return_tensors="pt")
        with torch.inference_mode():
            out = plain.generate(
                input_ids=ids["input_ids"], attention_mask=ids["attention_mask"], max_new_tokens=12, do_sample=False
            )
        assert completion.text == ours.tokenizer.decode(out[0, ids["input_ids"].shape[1] :], skip_special_tokens=True)


def test_batched_equals_one_by_one_with_an_adapter_and_on_two_copies(tmp_path: Path) -> None:
    folder = save_causal(tmp_path / "m")
    adapter = save_lora(folder, tmp_path / "a")
    model = HFModel(folder, device=DEVICE, adapter=adapter)
    together = model.generate(PROMPTS, PARAMS)
    assert together == [model.generate([prompt], PARAMS)[0] for prompt in PROMPTS]
    copies = HFModel(folder, device="cpu,cpu", batch_tokens=80, adapter=adapter)
    assert copies.generate(PROMPTS, PARAMS) == together
    assert copies.adapter(save_lora(folder, tmp_path / "b", seed=5)).generate(PROMPTS, PARAMS) != together
    assert copies.generate(PROMPTS, PARAMS) == together


def test_a_spec_takes_an_adapter(tmp_path: Path) -> None:
    folder = save_causal(tmp_path / "m")
    adapter = save_lora(folder, tmp_path / "a")
    model = load_model(f"hf:{folder}", LlmOptions(device=DEVICE), adapter=adapter)
    assert model.revision == HFModel(folder, device=DEVICE, adapter=adapter).revision


@pytest.mark.parametrize("fault", ["no folder", "no weights", "other shape", "other layers", "broken"])
def test_an_adapter_that_does_not_fit_is_refused_with_the_way_out(fault: str, tmp_path: Path) -> None:
    folder = save_causal(tmp_path / "m")
    adapter = save_lora(folder, tmp_path / "a")
    base = HFModel(folder, device=DEVICE)
    bare = base.generate(PROMPTS, PARAMS)
    if fault == "no folder":
        adapter = tmp_path / "nowhere"
    elif fault == "no weights":
        (adapter / "adapter_model.safetensors").unlink()
    elif fault == "broken":
        (adapter / "adapter_model.safetensors").write_bytes(b"nothing")
    elif fault == "other layers":
        config = json.loads((adapter / "adapter_config.json").read_text())
        (adapter / "adapter_config.json").write_text(json.dumps(config | {"target_modules": ["unheard_of"]}))
    else:
        adapter = save_lora(save_causal(tmp_path / "wide", width=64), tmp_path / "b")
    with pytest.raises(ModelError, match=r"(peft saved|trained on)"):
        base.adapter(adapter)
    assert base.generate(PROMPTS, PARAMS) == bare, "a failed adapter leaves the base as it was"
    good = base.adapter(save_lora(folder, tmp_path / "good", seed=9))
    written = good.generate(PROMPTS, PARAMS)
    assert written != bare
    with pytest.raises(ModelError):
        base.adapter(adapter)
    assert good.generate(PROMPTS, PARAMS) == written and base.generate(PROMPTS, PARAMS) == bare
