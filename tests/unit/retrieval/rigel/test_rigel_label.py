"""The decoder `label`: relations are texts, so that other relations, or the same in another order, need no training."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open

from kgqa_core.config import RetrievalOptions
from kgqa_core.datasets.files.question import write_questions
from kgqa_core.dkg.csr import Dkg
from kgqa_core.errors import ArtifactError, GraphMismatch
from kgqa_core.retrieval.api import RetrieverInputs
from kgqa_core.retrieval.collect import collect
from kgqa_core.retrieval.relation_texts import relation_texts, unlabelled
from kgqa_core.retrieval.rigel.network import LabelRigel, load
from kgqa_core.retrieval.rigel.retriever import RigelRetriever
from kgqa_core.retrieval.rigel.train import train
from kgqa_core.workspace import Workspace
from tests.support.models import Listener, content, runner
from tests.unit.retrieval.rigel.test_rigel import OPTIONS as LAYER_OPTIONS

OPTIONS = LAYER_OPTIONS.model_copy(update={"decoder": "label"})
run = runner(train, OPTIONS)
QUICK = OPTIONS.model_copy(update={"epochs": 3, "scratch_width": 16})
QUESTION = "what is the capital of [TOPIC]"


def graph(*names: str) -> Dkg:
    """Entity 0 with one neighbour by each relation."""
    count = len(names)
    return Dkg.from_triples(
        [0] * count,
        range(count),
        range(1, count + 1),
        count + 1,
        [f"k{number}" for number in range(count)],
        relation_names=names,
    )


@pytest.fixture(scope="module")
def trained(world: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("label") / "retriever"
    run(world, folder)
    return folder


def test_learns_one_and_two_hops_from_answers_alone(world: Any, trained: Path, tmp_path: Path) -> None:
    found = collect(
        Workspace(tmp_path),
        world.questions_folder,
        "rigel",
        RetrieverInputs(world.dkg, RetrievalOptions(), 7, trained=trained),
    )
    assert found["hits_at_1"]["test"] == 1.0


def test_no_weight_depends_on_the_number_of_relations(trained: Path) -> None:
    few, many = load(trained, graph("capital", "currency")), load(trained, graph(*[f"word {n}" for n in range(40)]))
    shapes = [{name: tuple(value.shape) for name, value in own.network.state_dict().items()} for own in (few, many)]
    assert shapes[0] == shapes[1]
    assert [own.plan([QUESTION]).relations[1].shape for own in (few, many)] == [(1, 4), (1, 80)]


def test_a_relation_added_later_is_chosen_without_training(trained: Path) -> None:
    # "capital city" was no relation in training; its words were read in questions.
    model = load(trained, graph("neighbour", "capital city", "currency"))
    first = model.plan(["name the capital city of [TOPIC]"]).relations[0][0]
    assert int(first.argmax()) == 1
    assert first[1] > 5 * first[2] and first[1] > 5 * first[0]


def test_relations_in_another_order_give_the_same_plan_in_that_order(trained: Path) -> None:
    names = ["capital", "currency", "neighbour", "mayor"]
    order = [2, 0, 3, 1]
    plain = load(trained, graph(*names)).plan([QUESTION])
    moved = load(trained, graph(*[names[number] for number in order])).plan([QUESTION])
    places = [*order, *(number + 4 for number in order)]
    for one, other in zip(plain.relations, moved.relations, strict=True):
        assert torch.allclose(one[:, places], other, atol=1e-6)
    assert torch.allclose(plain.attention, moved.attention, atol=1e-6)


def test_a_relation_that_an_update_removed_is_never_chosen(trained: Path) -> None:
    with_hole = Dkg.from_triples([0], [0], [1], 2, ["k0", "<removed>-1"], relation_names=["currency", "<removed>-1"])
    model = load(trained, with_hole)
    for relations in model.plan([QUESTION]).relations:
        assert relations[0, [1, 3]].tolist() == [0.0, 0.0]
        assert float(relations.sum()) == pytest.approx(1)


def test_a_layer_goes_on_when_relations_were_only_removed(world: Any, tmp_path: Path) -> None:
    run(world, tmp_path / "layer", QUICK.model_copy(update={"decoder": "layer", "epochs": 1}))
    left = Dkg.from_triples([0], [0], [1], 2, ["capital", "<removed>-1", "neighbour"])
    assert load(tmp_path / "layer", left).plan([QUESTION]).relations[0].shape == (1, 6)


def test_a_relation_and_its_inverse_differ(trained: Path) -> None:
    there, back = load(trained, graph("capital")).plan([QUESTION]).relations[0][0].tolist()
    assert abs(there - back) > 0.1


def test_what_the_first_hop_chose_decides_the_second(world: Any, trained: Path) -> None:
    model = load(trained, world.dkg)
    with torch.no_grad():
        state = torch.zeros(1, 32)
        vectors = model.network._vectors()  # type: ignore[union-attr]
        queries = [
            model.network.query_layers[1](torch.cat([state, vectors[number : number + 1]], dim=-1))  # type: ignore[union-attr]
            for number in range(2)
        ]
    assert not torch.allclose(*queries, atol=1e-3)


def test_retrieves_over_a_graph_with_a_new_relation(trained: Path, world: Any) -> None:
    heads, relations, tails = world.dkg.edges(np.arange(world.dkg.triples))
    grown = Dkg.from_triples(
        [*heads, 0], [*relations, 3], [*tails, 5], world.dkg.entities, [*world.dkg.relation_keys[:3], "mayor"]
    )
    question = next(question for question in world.questions if question.split == "test" and question.hops == 1)
    found = RigelRetriever(grown, load(trained, grown), RetrievalOptions()).retrieve([question])[0]
    assert found.entities[0][0] == question.answers[0]


@pytest.mark.slow
def test_a_layer_refuses_new_relations_and_names_the_decoder_that_does_not(world: Any, tmp_path: Path) -> None:
    run(world, tmp_path / "layer", QUICK.model_copy(update={"decoder": "layer", "epochs": 1}))
    with pytest.raises(GraphMismatch, match="rigel.decoder=label"):
        load(tmp_path / "layer", graph("capital", "currency"))
    assert "decoder" not in json.loads((tmp_path / "layer" / "config.json").read_text())


@pytest.mark.slow
def test_labels_are_read_as_words_and_bare_codes_are_counted(world: Any, tmp_path: Path) -> None:
    dkg = graph("starred_actors", "people.person.placeOfBirth", "P31", "举办地", "r12", "date of birth")
    assert relation_texts(dkg) == [
        "starred actors",
        "people person place Of Birth",
        "P31",
        "举办地",
        "r12",
        "date of birth",
    ]
    assert unlabelled(dkg) == ["P31", "r12"]
    heads, relations, tails = world.dkg.edges(np.arange(world.dkg.triples))
    bare = Dkg.from_triples(heads, relations, tails, world.dkg.entities, ["capital", "P38", "P47"])
    from tests.support.small_world import store_dkg

    listener = Listener()
    store_dkg(bare, tmp_path / "dkg")
    run(world, tmp_path / "r", QUICK.model_copy(update={"epochs": 1}), dkg=tmp_path / "dkg", monitor=listener)
    assert [note for note in listener.notes if note.startswith("2 of 3 relations have no label (P38, P47")]


def test_a_graph_of_codes_is_warned_of_when_it_is_opened(trained: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        load(trained, graph("capital", "P38"))
    assert "1 of 2 relations have no label" in caplog.text


def test_minilm_keeps_a_frozen_copy_for_labels_and_stores_what_they_share_once(world: Any, tmp_path: Path) -> None:
    (tmp_path / "questions").mkdir()
    few = [question for question in world.questions if question.hops == 1][:24]
    write_questions(tmp_path / "questions", [replace(question, split="train") for question in few])
    options = OPTIONS.model_copy(update={"encoder": "minilm", "epochs": 1, "min_steps": 1, "hops": 1})
    run(world, tmp_path / "r", options, questions=tmp_path / "questions")
    with safe_open(str(tmp_path / "r" / "model.safetensors"), framework="pt") as file:
        names = set(file.keys())
    assert "encoder.body.embeddings.word_embeddings.weight" in names
    assert "label_encoder.body.embeddings.word_embeddings.weight" not in names
    assert "label_encoder.body.encoder.layer.5.attention.self.query.weight" in names
    assert "label_encoder.body.encoder.layer.0.attention.self.query.weight" not in names, "a layer that does not learn"
    model = load(tmp_path / "r", graph("date of birth", "currency", "capital city"))
    assert isinstance(model.network, LabelRigel)
    first = model.plan(["in which money do people of [MASK] pay?"]).relations[0][0]
    assert int(first.argmax()) % 3 == 1
    again = load(tmp_path / "r", graph("date of birth", "currency", "capital city"))
    assert torch.equal(again.plan(["which city"]).relations[0], model.plan(["which city"]).relations[0])


def test_a_stored_retriever_without_its_weights_is_refused(trained: Path, world: Any, tmp_path: Path) -> None:
    for name, data in content(trained).items():
        (tmp_path / name).write_bytes(data if name != "model.safetensors" else data[:100])
    with pytest.raises(ArtifactError, match="do not fit"):
        load(tmp_path, world.dkg)
