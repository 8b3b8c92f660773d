"""The path classifiers: what they read, what the beam keeps, how they learn, stop, resume and are stored."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

from kgqa_core.config import HopPathOptions
from kgqa_core.datasets.files.question import write_questions
from kgqa_core.dkg.csr import Dkg
from kgqa_core.errors import ArtifactError, ConfigError, GraphMismatch, ModelError, TrainingError
from kgqa_core.retrieval.hop_path.classifier import PathModel, best_of, encode_with_path, load_model
from kgqa_core.retrieval.hop_path.retriever import load
from kgqa_core.retrieval.hop_path.train import PathExample, as_row, directed_labels, fit, measure, train
from tests.support.device import DEVICE
from tests.support.models import Listener, content, runner

OPTIONS = HopPathOptions(
    encoder="scratch", epochs=12, patience=12, batch_size=8, learning_rate=5e-3, scratch_width=32, device=DEVICE
)
run = runner(train, OPTIONS)
QUICK = OPTIONS.model_copy(update={"epochs": 3, "scratch_width": 16})
GOLD = {"capital": ("capital",), "money": ("currency",), "where": ("<inv>-capital", "currency")}


@pytest.fixture(scope="module")
def trained(world: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "hop_path"
    counts = run(world, folder)
    assert (counts["dev_path_at_1"], counts["dev_hop_accuracy"], counts["dev_path_at_5"]) == (1.0, 1.0, 1.0)
    return folder


@pytest.fixture(scope="module")
def model(trained: Path) -> PathModel:
    return load_model(trained)[0]


def log_probabilities(model: PathModel, text: str, prefix: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Of hops and relations, by the definition."""
    with torch.inference_mode():
        hops, relations = model.network(*model.reader.batch(model.rows([(text, prefix)])))
    return torch.log_softmax(hops[0].double(), 0).numpy(), torch.log_softmax(relations[0].double(), 0).numpy()


def test_the_classes_are_the_directed_relations_of_gold_paths_in_training(model: PathModel) -> None:
    assert model.keys == ("capital", "currency", "<inv>-capital")  # of six; neighbour is on no path
    assert model.labels == ("capital", "currency", "<inv>-capital")
    assert model.max_hops == 2


def test_a_path_scores_the_product_of_its_steps_and_the_best_stand_first(model: PathModel) -> None:
    text = "which money is used where [TOPIC] is the capital"
    (prediction,) = model.predict([text], beam=3)
    assert prediction.hops == 2 and prediction.paths[0][0] == GOLD["where"]
    _, first = log_probabilities(model, text, ())
    expected = {
        (model.keys[a], model.keys[b]): np.exp(first[a] + log_probabilities(model, text, (a,))[1][b])
        for a, b in itertools.product(range(3), repeat=2)
    }
    assert dict(prediction.paths) == pytest.approx(expected, abs=1e-5)
    scores = [score for _, score in prediction.paths]
    assert (
        len(prediction.paths) == 9
        and scores == sorted(scores, reverse=True)
        and sum(scores) == pytest.approx(1, abs=1e-4)
    )
    assert sum(prediction.hop_probabilities) == pytest.approx(1, abs=1e-4)


def test_the_beam_keeps_the_best_relations_of_every_partial_path(model: PathModel) -> None:
    text = "what currency has the country governed from [TOPIC]"
    (prediction,) = model.predict([text], beam=2)
    _, first = log_probabilities(model, text, ())
    expected_paths = {
        (model.keys[a], model.keys[b])
        for a in np.argsort(-first)[:2]
        for b in np.argsort(-log_probabilities(model, text, (int(a),))[1])[:2]
    }
    assert {path for path, _ in prediction.paths} == expected_paths
    assert len(prediction.paths) == 4


def test_a_known_number_of_hops_takes_the_place_of_the_predicted_one(model: PathModel) -> None:
    text = "what is the capital of [TOPIC]"
    plain, one, two, many = model.predict([text] * 4, beam=1, hops=[None, 1, 2, 9])
    assert [len(prediction.paths[0][0]) for prediction in (plain, one, two, many)] == [1, 1, 2, 2]
    assert plain == one
    assert two.hops == 1  # the prediction is still returned


def test_relations_that_may_not_be_predicted_are_on_no_path(model: PathModel) -> None:
    (prediction,) = model.predict(["what is the capital of [TOPIC]"], beam=3, known=np.array([False, True, True]))
    assert {path for path, _ in prediction.paths} == {("currency",), ("<inv>-capital",)}
    (none,) = model.predict(["what is the capital of [TOPIC]"], beam=3, known=np.zeros(3, dtype=bool))
    assert none.paths == ()


def test_other_questions_of_a_batch_do_not_change_the_paths_of_a_question(model: PathModel) -> None:
    texts = ["what is the capital of [TOPIC]", "name the capital city of [TOPIC]", "how do people pay in [TOPIC]"]
    together = model.predict(texts, beam=3)
    assert [prediction.paths[0][0] for prediction in together] == [GOLD["capital"], GOLD["capital"], GOLD["money"]]
    for text, prediction in zip(texts, together, strict=True):
        (alone,) = model.predict([text], beam=3)
        assert [path for path, _ in alone.paths] == [path for path, _ in prediction.paths]


def test_equal_scores_go_to_the_smaller_class() -> None:
    logs = np.array([[-1.0, -0.5, -0.5, -1.0 + 1e-9], [-np.inf, -2.0, -np.inf, -1.0]])
    assert [own.tolist() for own in best_of(logs, 3)] == [[1, 2, 0], [3, 1]]


def test_a_long_question_gives_way_to_the_path(model: PathModel) -> None:
    reader = replace(model.reader, max_tokens=12)
    full = encode_with_path(model.reader, "name the capital city of [TOPIC]", ["<inv>-capital"])
    path = encode_with_path(model.reader, "", ["<inv>-capital"])
    assert full[-len(path) :] == path
    cut = encode_with_path(reader, "name the capital city of [TOPIC] " * 9, ["<inv>-capital"])
    assert len(cut) <= 12 and cut[-len(path) :] == path
    assert cut[: len(cut) - len(path)] == full[: len(cut) - len(path)]
    assert encode_with_path(replace(reader, max_tokens=3), "name the capital", ["<inv>-capital"] * 4)


def test_training_stops_when_dev_paths_get_no_better() -> None:
    def rows(token: str) -> tuple[list[PathExample], list[PathExample]]:
        learn = [PathExample(f"{word} of {token} {n}", ((word,),), (1.0,)) for word in ("a", "b") for n in range(12)]
        return learn, [PathExample(f"a of {token}", (("b",),), (1.0,)), PathExample(f"b of {token}", (("a",),), (1.0,))]

    fitted = fit(rows, {"a": "a", "b": "b"}, OPTIONS.model_copy(update={"epochs": 40, "patience": 2}), 7)
    assert fitted.progress.epoch == fitted.progress.best_epoch + 3 < 40
    assert {row[3] for row in fitted.progress.curve if row[2] == "dev"} == {
        "hop_accuracy",
        "path_at_1",
        "path_at_5",
        "loss",
    }


def test_gold_paths_are_searched_where_none_is_annotated_and_the_choice_is_recorded(world: Any, tmp_path: Path) -> None:
    bare = [replace(q, relation_paths=() if q.hops == 2 else q.relation_paths) for q in world.questions]
    (tmp_path / "questions").mkdir()
    write_questions(tmp_path / "questions", bare)
    counts = run(world, tmp_path / "r", questions=tmp_path / "questions")
    gold = pl.read_parquet(tmp_path / "r" / "gold_paths.parquet")
    assert set(gold.filter(origin="annotated")["path"].list.len()) == {1}
    searched = gold.filter(origin="searched")
    assert set(searched["question"]) == {q.id for q in world.questions if q.hops == 2 and q.split != "test"}
    assert ["<inv>-capital", "currency"] in searched["path"].to_list()
    assert (
        searched["f1"].min() > 0 and searched.filter(rank=0)["f1"].to_list() == [1.0] * searched.filter(rank=0).height
    )
    assert set(gold["split"]) == {"train", "dev"}
    assert counts["gold_paths"]["train"]["searched"] == 28
    assert counts["dev_path_at_1"] == 1.0


def test_questions_without_topic_or_gold_path_are_left_out_and_counted(world: Any, tmp_path: Path) -> None:
    questions = [
        replace(q, topic_entities=()) if q.id == "q00-capital-0" else replace(q, relation_paths=(), answers=())
        if q.id == "q01-capital-0" else replace(q, relation_paths=(("mayor",),), answers=())
        if q.id == "q14-capital-0" else q
        for q in world.questions
    ]  # fmt: skip
    (tmp_path / "questions").mkdir()
    write_questions(tmp_path / "questions", questions)
    counts = run(world, tmp_path / "r", QUICK.model_copy(update={"epochs": 1}), questions=tmp_path / "questions")
    assert counts["left_out"] == {"train": 2, "dev": 1, "examples": ["q00-capital-0", "q01-capital-0"]}
    assert counts["gold_paths"]["dev"]["dropped"] == 1
    short = run(world, tmp_path / "short", QUICK.model_copy(update={"epochs": 1, "max_hops": 1}))
    assert short["gold_paths"]["train"]["too_long"] == short["left_out"]["train"] == 28


def test_without_any_gold_path_training_says_what_to_give(world: Any, tmp_path: Path) -> None:
    (tmp_path / "questions").mkdir()
    write_questions(tmp_path / "questions", [replace(q, relation_paths=(), answers=()) for q in world.questions])
    with pytest.raises(TrainingError, match=r"none of the 112 training questions.*relation_path"):
        run(world, tmp_path / "r", questions=tmp_path / "questions")
    with pytest.raises(TrainingError, match="no training question has a gold relation path"):
        fit(lambda token: ([], []), {}, QUICK, 7)


def test_several_gold_paths_share_the_weight_by_their_f1(world: Any) -> None:
    from kgqa_core.datasets.derived.gold_paths import GoldPath

    found = [
        GoldPath(0, ("a",), "searched", 1.0),
        GoldPath(1, ("a",), "searched", 0.4),
        GoldPath(0, ("b",), "searched", 0.5),
    ]
    row = as_row("text", found, 1)
    assert row.paths == (("a",), ("b",)) and row.weights == pytest.approx((2 / 3, 1 / 3))
    plain = as_row("text", [GoldPath(0, ("a",), "annotated", None), GoldPath(0, ("b",), "annotated", 0.0)], None)
    assert plain.weights == (0.5, 0.5)


def test_classifiers_learn_without_a_graph_and_are_measured(tmp_path: Path) -> None:
    wordings = {("a.b.speaks",): "language of {}", ("a.b.born", "c.d.place"): "birthplace town of {}"}

    def rows(token: str) -> tuple[list[PathExample], list[PathExample]]:
        learn = [
            PathExample(f"{text.format(token)} {n}", (path,), (1.0,))
            for path, text in wordings.items()
            for n in range(12)
        ]
        return learn, [*learn[:1], learn[-1]]

    labels = {key: key.replace(".", " ") for key in ("a.b.born", "a.b.speaks", "c.d.place", "e.f.never")}
    fitted = fit(rows, labels, OPTIONS, 7)
    assert fitted.model.keys == ("a.b.born", "a.b.speaks", "c.d.place")
    test = [
        PathExample("language of [TOPIC]", (("a.b.speaks",),), (1.0,)),
        PathExample("birthplace town of [TOPIC]", (("a.b.born", "c.d.place"),), (1.0,)),
        PathExample("language of [TOPIC]", (("e.f.never",),), (1.0,)),
        PathExample("language of [TOPIC]", (("e.f.never", "a.b.born"), ("c.d.place",)), (0.5, 0.5)),
    ]
    assert measure(fitted.model, test, OPTIONS) == {"hop_accuracy": 1.0, "path_at_1": 0.5, "path_at_5": 0.75}
    assert measure(fitted.model, [], OPTIONS)["path_at_1"] == 0.0


def test_the_direction_is_part_of_a_label(world: Any) -> None:
    labels = directed_labels(world.dkg)
    assert list(labels) == world.dkg.relation_keys
    assert (labels["capital"], labels["<inv>-capital"]) == ("capital", "<inv>-capital")


def test_a_stored_model_opens_on_graphs_that_have_some_of_its_relations(
    world: Any, trained: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    opened = load(trained, world.dkg)
    assert opened.relations.tolist() == [0, 1, 3]
    assert (opened.beam, opened.reasoning_paths, opened.gold_hops) == (5, 5, False)
    assert (opened.sampling, opened.named_first) == ("proportional", True)
    other = Dkg.from_triples([0], [1], [1], 2, ["mayor", "currency"])
    assert load(trained, other).relations.tolist() == [-1, 1, -1]
    assert "2 relations of training are not in this graph: capital" in caplog.text
    with pytest.raises(GraphMismatch, match="has none of them"):
        load(trained, Dkg.from_triples([0], [0], [1], 2, ["mayor"]))


def test_a_folder_that_holds_no_path_retriever_is_named(world: Any, trained: Path, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="does not hold a trained path retriever"):
        load_model(tmp_path)
    for name, data in content(trained).items():
        (tmp_path / name).write_bytes(data)
    config = (tmp_path / "config.json").read_text()
    (tmp_path / "config.json").write_text(config.replace('"beam"', '"width"'))
    with pytest.raises(ArtifactError, match="does not say how to retrieve"):
        load(tmp_path, world.dkg)
    earlier = json.loads(config)
    for switch in ("sampling", "named_first"):
        del earlier["retrieval"][switch]
    (tmp_path / "config.json").write_text(json.dumps(earlier))
    assert load(tmp_path, world.dkg).sampling == "proportional", "as models of earlier versions retrieve"
    (tmp_path / "config.json").write_text(config)
    (tmp_path / "model.safetensors").write_bytes(b"short")
    with pytest.raises(ArtifactError, match="do not fit their config"):
        load_model(tmp_path)
    (tmp_path / "config.json").write_text('{"version": 1, "relation_keys": []}')
    with pytest.raises(ArtifactError, match="kind 'rigel'"):
        load_model(tmp_path)


def test_minilm_trains_and_names_its_options_where_it_cannot_read(world: Any, tmp_path: Path) -> None:
    chinese = [replace(question, text="马振霞是哪里人" + question.text[:4]) for question in world.questions[:8]]
    (tmp_path / "questions").mkdir()
    write_questions(tmp_path / "questions", chinese)
    listener = Listener()
    options = OPTIONS.model_copy(update={"encoder": "minilm", "epochs": 1})
    counts = run(world, tmp_path / "r", options, questions=tmp_path / "questions", monitor=listener)
    assert counts["unknown_token_share"] > 0.05
    assert any("hop_path.encoder=scratch" in note for note in listener.notes)
    model, _ = load_model(tmp_path / "r")
    assert len(model.predict(["what is the capital of [MASK]?"], beam=2)[0].paths) >= 1
    for change, error, word in (
        ({"encoder": str(tmp_path / "a" / "b" / "c")}, ModelError, "hop_path.encoder"),
        ({"device": "tpux"}, ConfigError, "hop_path.device 'tpux'"),
    ):
        with pytest.raises(error, match=word):
            run(world, tmp_path / word.replace(" ", "_"), OPTIONS.model_copy(update=change))
