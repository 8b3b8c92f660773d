"""The documented training command: it learns, resumes to the same weights and publishes a loadable folder."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from kgqa_core.errors import TrainingError
from kgqa_core.llm.hf import HFModel
from kgqa_core.llm.protocol import GenerationParams
from tools.builtin_reader import train as module
from tools.builtin_reader.batches import Recipe
from tools.builtin_reader.corpus import samples
from tools.builtin_reader.tokens import learn

TINY = Recipe(steps=6, rows=2, length=256, vocabulary=700, width=32, layers=1, heads=2, inner=48, warmup=2)


@pytest.fixture(autouse=True)
def small_tokenizer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        module, "tokenizer_of", lambda recipe: learn((sample.text() for sample in samples(1, 0, 60)), recipe.vocabulary)
    )


@pytest.mark.slow
def test_a_resumed_run_ends_in_the_weights_of_an_undisturbed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module.train(tmp_path / "whole", TINY, compiled=False, every=100, each=1)
    real, calls = module.make_batch, []

    def dies(recipe: Recipe, step: int, *rest: object) -> object:
        calls.append(step)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return real(recipe, step, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "make_batch", dies)
    with pytest.raises(KeyboardInterrupt):
        module.train(tmp_path / "killed", TINY, compiled=False, every=100, each=1, checkpoint_seconds=0.0)
    module.train(tmp_path / "killed", TINY, compiled=False, every=100, each=1)
    assert calls == [0, 1, 2, 3, 3, 4, 5]
    whole, resumed = (load_file(tmp_path / name / "model" / "model.safetensors") for name in ("whole", "killed"))
    assert whole.keys() == resumed.keys()
    assert all(torch.equal(whole[key], resumed[key]) for key in whole)


def test_the_published_folder_is_a_model(tmp_path: Path) -> None:
    scores = module.train(tmp_path, TINY, compiled=False, every=100, each=1)
    assert set(scores) >= {"all", "1-hop"} and all(0 <= score <= 1 for score in scores.values())
    model = HFModel(tmp_path / "model", device="cpu")
    assert len(model.generate(["Question: a? Answer:"], GenerationParams(max_new_tokens=3))) == 1
    assert sorted(path.suffix for path in (tmp_path / "checkpoint").iterdir()) == [".safetensors"]


@pytest.mark.slow
def test_the_second_phase_starts_from_published_weights_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module.train(tmp_path / "first", TINY, compiled=False, every=100, each=1)
    base = tmp_path / "first" / "model"
    recipe = replace(TINY, phase=2, steps=0, context_weight=0.0, long_every=2)
    kept = dict[str, torch.Tensor]()
    monkeypatch.setattr(module, "optimisers", lambda _, model: kept.update(model.state_dict()) or [])
    module.train(tmp_path / "start", recipe, base=base, compiled=False, each=1)
    for name, tensor in load_file(base / "model.safetensors").items():
        assert torch.equal(kept[name], tensor.float())
    monkeypatch.undo()
    scores = module.train(tmp_path / "second", replace(recipe, steps=2), base=base, compiled=False, every=100, each=1)
    assert {"rewrite", "sentences 2-hop zh", "triples yes/no"} <= set(scores)
    facts = json.loads((tmp_path / "second" / "model" / "training.json").read_text("utf-8"))
    assert facts["recipe"]["phase"] == 2 and facts["base"]["recipe"]["phase"] == 1
    assert (base / "tokenizer.json").read_bytes() == (tmp_path / "second/model/tokenizer.json").read_bytes()


@pytest.mark.slow
def test_weights_of_another_shape_are_no_start(tmp_path: Path) -> None:
    module.train(tmp_path, TINY, compiled=False, every=100, each=1)
    with pytest.raises(TrainingError, match="not of the shape"):
        module.train(tmp_path / "second", replace(TINY, width=64), base=tmp_path / "model", compiled=False, each=1)


def test_the_learning_rate_warms_up_holds_and_decays() -> None:
    recipe = Recipe(steps=100, warmup=10, decay_share=0.3)
    rates = [module.rate(recipe, step) for step in range(100)]
    assert rates[0] == 0.1 and rates[9] == rates[50] == rates[69] == 1.0
    assert all(a > b for a, b in zip(rates[70:], rates[71:], strict=False)) and rates[-1] >= 0.02


def test_a_diverging_run_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.Stepper, "forward", lambda self, *_: self.model.lm_head.weight.sum() * float("nan"))
    with pytest.raises(TrainingError, match="lower learning rate"):
        module.train(tmp_path, TINY, compiled=False, each=1)
