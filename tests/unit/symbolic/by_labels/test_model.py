"""The label parser on disk: it scores the same after a round trip, is small, and a damaged one is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from kgqa_core.errors import ArtifactError, ModelError
from kgqa_core.search.graph import LabelGraph
from kgqa_core.symbolic.by_labels import model as module
from kgqa_core.symbolic.by_labels.calibrate import INPUTS, Calibration
from kgqa_core.symbolic.by_labels.model import LabelModel, average, learned, load, save, untrained
from kgqa_core.symbolic.by_labels.parser import LabelParser
from kgqa_core.symbolic.by_labels.scorer import LabelScorer, ScoreNetwork
from tests.support.label_graph import X, question_about, same_weights

CALIBRATION = Calibration(tuple(n / 10 for n in range(INPUTS)), -0.25, 0.4)


@pytest.fixture(scope="module")
def model() -> LabelModel:
    """A model whose weights are all drawn."""
    network = untrained(5)
    torch.manual_seed(5)
    with torch.no_grad():
        for value in learned(network).values():
            value.add_(torch.randn_like(value) * 0.01)
    return LabelModel(network, 3, CALIBRATION)


@pytest.fixture(scope="module")
def folder(model: LabelModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("model") / "new"
    save(out, model)
    return out


def scores(graph: LabelGraph, network: ScoreNetwork) -> list[float]:
    question = question_about(graph, "q", "what is the capital of Norland", X + "c0")
    [ranked] = LabelParser(graph, LabelScorer(network)).parse([question])
    return [*ranked.scores, ranked.none]


def copied(folder: Path, out: Path) -> Path:
    for file in folder.iterdir():
        (out / file.name).write_bytes(file.read_bytes())
    return out


def test_loaded_model_has_the_scores_of_the_saved_one(graph: LabelGraph, model: LabelModel, folder: Path) -> None:
    expected = scores(graph, model.network)
    plain, merged = load(folder, merge=False), load(folder)
    assert scores(graph, plain.network) == pytest.approx(expected, abs=1e-4)
    assert scores(graph, merged.network) == pytest.approx(expected, abs=1e-2)
    assert (plain.hops, plain.calibration) == (3, CALIBRATION)
    assert same_weights(learned(plain.network), learned(model.network))


def test_model_is_below_ten_megabytes_and_the_same_bytes_each_time(
    model: LabelModel, folder: Path, tmp_path: Path
) -> None:
    assert sum(file.stat().st_size for file in folder.iterdir()) < 10_000_000
    save(tmp_path, model)
    assert all((tmp_path / file.name).read_bytes() == file.read_bytes() for file in folder.iterdir())


def test_model_without_a_calibration_has_that_of_the_head_start(tmp_path: Path) -> None:
    save(tmp_path, LabelModel(untrained(1), 2))
    calibration = load(tmp_path).calibration
    assert calibration is not None and calibration == load(None).calibration


def test_merged_model_is_not_saved_without_its_adapters(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="load it with merge=False"):
        save(tmp_path, load(folder))


def test_missing_or_cut_files_are_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="does not hold a trained label parser"):
        load(tmp_path)
    weights = copied(folder, tmp_path) / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(ArtifactError, match="do not fit"):
        load(tmp_path)


@pytest.mark.parametrize("name", ["tower.weight", "encoder.upper_layers.0.query.b"])
def test_model_that_lacks_weights_is_refused(folder: Path, tmp_path: Path, name: str) -> None:
    weights = load_file(copied(folder, tmp_path) / "model.safetensors")
    del weights[name]
    save_file(weights, tmp_path / "model.safetensors")
    with pytest.raises(ArtifactError, match=name):
        load(tmp_path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kind": "rigel"}, "'rigel'"),
        ({"version": 99}, "layout 99"),
        ({"kinds": ["count"]}, "its kinds differs"),
        ({"features": 3}, "its features differs"),
        ({"calibration": {"weights": [1.0], "bias": 0.0, "threshold": 0.5}}, f"does not have {INPUTS} weights"),
        ({"calibration": {"bias": "x"}}, f"does not have {INPUTS} weights"),
    ],
)
def test_model_of_another_kind_or_version_is_refused(
    folder: Path, tmp_path: Path, change: dict[str, object], said: str
) -> None:
    config = copied(folder, tmp_path) / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | change))
    with pytest.raises(ArtifactError, match=said):
        load(tmp_path)


def test_head_start_is_used_where_there_is_one(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HEAD_START", folder)
    assert same_weights(learned(load(None, merge=False).network), learned(load(folder, merge=False).network))
    monkeypatch.setattr(module, "HEAD_START", tmp_path / "nowhere")
    bare = load(None)
    assert bare.calibration is None and bare.network.encoder.adapter()
    assert same_weights(learned(bare.network), learned(load(None).network))


def test_untrained_networks_differ_by_seed_and_leave_the_generator_alone() -> None:
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    one, other = untrained(1), untrained(2)
    assert torch.equal(torch.rand(2), expected)
    assert not same_weights(learned(one), learned(other))


def test_average_is_the_weighted_mean_of_what_is_learnt() -> None:
    one, other = untrained(1), untrained(2)
    with torch.no_grad():
        for number, network in enumerate((one, other)):
            for name, value in learned(network).items():
                value.fill_(number + len(name))
    fixed = {name: value.clone() for name, value in one.state_dict().items() if name not in learned(one)}
    average(one, {name: value.clone() for name, value in learned(other).items()}, 0.25)
    assert all((value == len(name) + 0.25).all() for name, value in learned(one).items())
    assert all(torch.equal(one.state_dict()[name], value) for name, value in fixed.items())
