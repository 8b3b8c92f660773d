"""Entailment scores with a small classifier that each test makes and saves."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kgqa_core.errors import ModelError
from kgqa_core.evaluation.nli import batches, check_folder, fetch, label_positions, open_judge, runs
from kgqa_core.metrics.registry import measure
from tests.support.device import DEVICE
from tests.support.models import ALPHABET, save_classifier

ORDERS = [("entailment", "neutral", "contradiction"), ("CONTRADICTION", "ENTAILMENT", "NEUTRAL")]
PAIRS = [("the cat is on the mat", "a cat is there"), ("no", "yes"), ("rain all day", "it was dry"), ("no", "no")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_classifier(tmp_path_factory.mktemp("nli") / "model")


def by_hand(folder: Path, premise: str, hypothesis: str) -> list[float]:
    """Softmax of one pair, straight from transformers."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    model = AutoModelForSequenceClassification.from_pretrained(folder, use_safetensors=True, trust_remote_code=False)
    with torch.inference_mode():
        return torch.softmax(model(**tokenizer(premise, hypothesis, return_tensors="pt")).logits[0], -1).tolist()


def test_scores_are_the_models_own_probabilities_in_the_order_of_the_pairs(folder: Path) -> None:
    found = open_judge(str(folder), device=DEVICE).scores(PAIRS)
    for pair, (entails, contradicts) in zip(PAIRS, found, strict=True):
        e, _, c = by_hand(folder, *pair)
        assert (entails, contradicts) == pytest.approx((e, c), abs=1e-5)
    assert len({tuple(row) for row in found.tolist()}) == len(PAIRS)


def test_the_premise_comes_first(folder: Path) -> None:
    judge = open_judge(str(folder), device=DEVICE)
    there, back = judge.scores([("rain all day", "it was dry"), ("it was dry", "rain all day")])
    assert not np.allclose(there, back, atol=1e-3)


def test_the_order_of_the_labels_is_read_from_the_config(tmp_path: Path) -> None:
    first, second = (save_classifier(tmp_path / str(n), labels=labels) for n, labels in enumerate(ORDERS))
    one, other = (open_judge(str(folder), device=DEVICE) for folder in (first, second))
    assert (one.places, other.places) == ((0, 2), (1, 0))
    raw = by_hand(first, *PAIRS[0])
    assert one.scores(PAIRS[:1])[0] == pytest.approx([raw[0], raw[2]], abs=1e-5)
    assert other.scores(PAIRS[:1])[0] == pytest.approx([raw[1], raw[0]], abs=1e-5)


def test_a_deberta_is_read_alike(tmp_path: Path) -> None:
    saved = save_classifier(tmp_path / "model", kind="deberta-v2")
    e, _, c = by_hand(saved, *PAIRS[0])
    assert open_judge(str(saved), device=DEVICE).scores(PAIRS)[0] == pytest.approx([e, c], abs=1e-5)


def save_deberta(folder: Path) -> Path:
    """A classifier of DeBERTa v3's kind: relative attention in buckets, shared keys, SentencePiece, fp16."""
    from transformers import DebertaV2Config, DebertaV2ForSequenceClassification, DebertaV2Tokenizer

    marks = ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
    pieces = [
        "▁",
        *(f"▁{word}" for word in "the cat is on mat rain all day it was dry no yes a".split()),
        *ALPHABET[:26],
    ]
    vocabulary = [(mark, 0.0) for mark in marks] + [(piece, -float(n + 1)) for n, piece in enumerate(pieces)]
    tokenizer = DebertaV2Tokenizer(vocab=vocabulary, unk_id=3)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(3)
    labels = ("entailment", "neutral", "contradiction")
    config = DebertaV2Config(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=3, num_attention_heads=4, intermediate_size=48,
        relative_attention=True, position_buckets=8, norm_rel_ebd="layer_norm", share_att_key=True,
        pos_att_type=["p2c", "c2p"], position_biased_input=False, type_vocab_size=0, max_relative_positions=-1,
        max_position_embeddings=64, pooler_hidden_size=32, pooler_hidden_act="gelu", initializer_range=0.3,
        id2label=dict(enumerate(labels)), label2id={label: n for n, label in enumerate(labels)},
    )  # fmt: skip
    DebertaV2ForSequenceClassification(config).half().save_pretrained(folder)
    return folder


def test_a_deberta_v3_scores_batches_as_transformers_scores_each_pair(tmp_path: Path) -> None:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder = save_deberta(tmp_path / "model")
    judge = open_judge(str(folder), device=DEVICE)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    pieces = tokenizer.convert_ids_to_tokens(tokenizer("the cat is dry", "a cat")["input_ids"])
    assert pieces == ["[CLS]", "▁the", "▁cat", "▁is", "▁dry", "[SEP]", "▁a", "▁cat", "[SEP]"]
    model = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32).eval()
    long = "the cat is on the mat and it was dry all day"
    pairs = [*PAIRS, (long, "rain"), (long, long)]
    scores = judge.scores(pairs)
    for (premise, hypothesis), row in zip(pairs, scores, strict=True):
        with torch.inference_mode():
            logits = model(**tokenizer(premise, hypothesis, return_tensors="pt")).logits[0]
        assert row.tolist() == pytest.approx(torch.softmax(logits, -1)[[0, 2]].tolist(), abs=1e-5)
    assert np.ptp(scores[:, 0]) > 0.01 and judge.limit == 62


@pytest.mark.parametrize(
    "labels",
    [
        ("LABEL_0", "LABEL_1", "LABEL_2"),
        ("entailment", "not_entailment"),
        ("entailment", "contradiction", "entailment"),
        ("positive", "negative"),
    ],
)
def test_labels_that_cannot_be_told_are_named_with_the_way_out(labels: tuple[str, ...], tmp_path: Path) -> None:
    saved = save_classifier(tmp_path / "model", labels=labels)
    with pytest.raises(ModelError, match=f"cannot be told.*{labels[-1]}.*id2label"):
        open_judge(str(saved), device=DEVICE)
    with pytest.raises(ModelError, match="cannot be told"):
        check_folder(saved)


def test_labels_are_told_in_any_case() -> None:
    assert label_positions({0: "Neutral", 1: "contradiction", 2: " ENTAILMENT "}) == (2, 1)


def test_weights_without_a_trained_head_are_refused(folder: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    saved = tmp_path / "headless"
    saved.mkdir()
    for file in folder.iterdir():
        (saved / file.name).write_bytes(file.read_bytes())
    weights = {
        name: value for name, value in load_file(saved / "model.safetensors").items() if "classifier" not in name
    }
    save_file(weights, saved / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"no trained classifier.*classifier\."):
        open_judge(str(saved), device=DEVICE)


def test_pickled_weights_are_refused(folder: Path, tmp_path: Path) -> None:
    saved = tmp_path / "pickled"
    saved.mkdir()
    (saved / "config.json").write_bytes((folder / "config.json").read_bytes())
    torch.save({}, saved / "pytorch_model.bin")
    with pytest.raises(ModelError, match=r"no \*\.safetensors"):
        open_judge(str(saved), device=DEVICE)


def test_a_folder_without_a_model_and_a_path_of_nothing_are_told_apart_from_a_hub_id(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no config\.json"):
        fetch(str(tmp_path))
    with pytest.raises(ModelError, match="neither a folder nor a hub id"):
        fetch(str(tmp_path / "gone"))
    with pytest.raises(FileNotFoundError, match="cached"):
        fetch("default")


def test_a_damaged_config_is_told(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{")
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(ModelError, match="cannot be read"):
        check_folder(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"id2label": {"0": "entailment", "1": "contradiction"}}))
    with pytest.raises(ModelError, match="cannot be loaded"):
        open_judge(str(tmp_path))


def test_what_is_too_long_for_the_model_is_cut_and_still_scored(folder: Path) -> None:
    judge = open_judge(str(folder), max_tokens=32, device=DEVICE)
    assert judge.limit == 32 and judge.room == 29
    found = judge.scores([("rain " * 60, "it was dry"), ("no", "no")])
    assert np.isfinite(found).all() and (found > 0).all() and (found.sum(axis=1) < 1).all()


@given(st.lists(st.integers(1, 30)).map(sorted), st.integers(1, 60))
def test_batches_hold_every_row_once_within_the_budget(lengths: list[int], budget: int) -> None:
    found = list(batches(lengths, budget))
    assert [place for part in found for place in range(part.start, part.stop)] == list(range(len(lengths)))
    for part in found:
        rows = lengths[part]
        assert len(rows) == 1 or max(rows) * len(rows) <= budget


@given(st.lists(st.integers(1, 30)), st.integers(1, 60))
def test_runs_hold_every_sentence_once_and_fit_unless_they_are_one_sentence(lengths: list[int], room: int) -> None:
    found = runs(lengths, room)
    assert [place for first, last in found for place in range(first, last)] == list(range(len(lengths)))
    assert all(last - first == 1 or sum(lengths[first:last]) <= room for first, last in found)


def test_sentences_are_combined_by_hand() -> None:
    # two runs of the prediction, two sentences of the reference: the best run of each, then the mean
    scores = np.array([[[0.9, 0.05], [0.1, 0.2]], [[0.2, 0.7], [0.3, 0.1]]])
    found = measure("entailment", scores)
    assert found["nli_entailment"] == pytest.approx((0.9 + 0.3) / 2)
    assert found["nli_contradiction"] == pytest.approx((0.7 + 0.2) / 2)
    assert found["nli_overall"] == pytest.approx(0.6 - 0.45)


def test_one_sentence_each_has_the_models_own_scores_and_silence_zeros() -> None:
    assert measure("entailment", np.array([[[0.75, 0.125]]])) == {
        "nli_entailment": 0.75,
        "nli_contradiction": 0.125,
        "nli_overall": 0.625,
    }
    assert set(measure("entailment", np.zeros((0, 2, 2))).values()) == {0.0}


def test_a_long_pair_never_leaves_the_positions_of_the_model(tmp_path: Path) -> None:
    saved = save_classifier(tmp_path / "model", kind="roberta", positions=66)
    judge = open_judge(str(saved), max_tokens=512, device=DEVICE)
    assert judge.limit == 64
    assert np.isfinite(judge.scores([("rain " * 200, "it was dry " * 80)])).all()
