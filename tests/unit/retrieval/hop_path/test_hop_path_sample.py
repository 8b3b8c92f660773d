"""Reasoning paths: how the places are divided, which chains get them, and what is made of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.config import HopPathOptions, KgOptions, RetrievalOptions
from kgqa_core.datasets.files.masking import is_mentioned
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.export import export
from kgqa_core.kg.build import build
from kgqa_core.kg.store import KgStore
from kgqa_core.retrieval.api import RetrieverInputs
from kgqa_core.retrieval.hop_path.classifier import PathPrediction
from kgqa_core.retrieval.hop_path.retriever import HopPathRetriever, load
from kgqa_core.retrieval.hop_path.sampling import ends_of, ground_all, sample, sample_sequential
from kgqa_core.retrieval.hop_path.train import train
from kgqa_core.retrieval.registry import open_retriever
from kgqa_core.types import Question
from kgqa_core.workspace import Workspace
from tests.support.device import DEVICE
from tests.support.models import runner

# 0 leads to 2…9 by r0 and to 10…12 by r1; 1 leads to 8, 9 and 13 by r0; 2…9 lead to 20…27 by r2, and 9 to 20 too.
HUB = Dkg.from_triples(
    [0] * 8 + [0] * 3 + [1] * 3 + [*range(2, 10), 9],
    [0] * 8 + [1] * 3 + [0] * 3 + [2] * 9,
    [*range(2, 10), 10, 11, 12, 8, 9, 13, *range(20, 28), 20],
    30,
    3,
)


def nobody(entity: int) -> int:
    return 0


def sampled(
    paths: list[tuple[tuple[int, ...], float]], most: int, topics: tuple[int, ...] = (0,)
) -> list[tuple[int, int]]:
    found = ground_all(HUB, topics, paths, most, 1_000)
    return [(number, chain.entities[-1]) for number, chain in sample(found, most, nobody)]


def test_a_path_that_is_sure_takes_every_place_as_in_the_paper() -> None:
    assert sampled([((0,), 0.9), ((1,), 0.1)], 5) == [(0, 2), (0, 3), (0, 4), (0, 5), (0, 6)]


def test_places_that_it_cannot_fill_go_to_the_next() -> None:
    assert sampled([((1,), 0.99), ((0,), 0.01)], 5) == [(0, 10), (0, 11), (0, 12), (1, 2), (1, 3)]


def test_paths_of_no_weight_get_a_place_only_where_no_better_path_has_a_chain() -> None:
    assert sampled([((1,), 0.999), ((0,), 0.0001)], 5) == [(0, 10), (0, 11), (0, 12)]
    assert sampled([((2,), 0.999), ((0,), 0.0001)], 2) == [(1, 2), (1, 3)]


def test_doubtful_paths_share_the_places_and_stay_in_order_of_score() -> None:
    assert sampled([((0,), 0.5), ((1,), 0.3)], 5) == [(0, 2), (0, 3), (0, 4), (1, 10), (1, 11)]
    assert sampled([((0,), 0.5), ((1,), 0.5)], 3) == [(0, 2), (0, 3), (1, 10)]
    assert [number for number, _ in sampled([((0,), 0.4), ((0, 2), 0.35), ((1,), 0.25)], 4)] == [0, 0, 1, 2]


def test_paths_that_can_have_no_place_are_not_grounded() -> None:
    paths = [((0,), 0.9), ((1,), 0.05), ((0, 2), 0.01)]
    assert len(ground_all(HUB, (0,), paths, 5, 1_000).chains) == 1
    assert len(ground_all(HUB, (0,), paths[1:], 5, 1_000).chains) == 2


def test_the_entity_that_is_named_between_topic_and_end_comes_first() -> None:
    found = ground_all(HUB, (0,), [((0, 2), 0.9)], 2, 1_000)
    assert found.between() == set(range(2, 10))
    chains = sample(found, 2, lambda entity: {7: 6, 5: 9}.get(entity, 0))
    assert [chain.entities for _, chain in chains] == [(0, 5, 23), (0, 7, 25)]
    ends = ends_of(HUB, found, 4, 1_000, lambda entity: {7: 6, 5: 9}.get(entity, 0))
    assert ends == [(23, 0.9), (25, 0.9), (20, 0.9), (21, 0.9)]  # 20 is reached by two chains


def test_of_several_topics_a_shared_end_comes_first_and_then_they_take_turns() -> None:
    found = ground_all(HUB, (1, 0), [((0,), 0.9)], 6, 1_000)
    chains = [chain.entities for _, chain in sample(found, 6, nobody)]
    assert chains == [(1, 8), (0, 8), (1, 9), (0, 9), (1, 13), (0, 2)]
    assert [entity for entity, _ in ends_of(HUB, found, 3, 1_000, nobody)] == [8, 9, 2]


def test_a_chain_that_joins_two_topics_comes_first() -> None:
    found = ground_all(HUB, (0, 7), [((0,), 0.9)], 2, 1_000)
    assert [chain.entities for _, chain in sample(found, 2, nobody)] == [(0, 7), (0, 2)]


@pytest.mark.parametrize("scores", [(0.5, 0.3), (0.5, 0.5), (0.9, 0.0001)])
def test_as_published_the_best_path_takes_every_place_that_it_can_fill(scores: tuple[float, float]) -> None:
    found = ground_all(HUB, (0,), [((1,), scores[0]), ((0,), scores[1])], 5, 1_000)
    chains = sample_sequential(found, 5, nobody)
    assert [(number, chain.entities[-1]) for number, chain in chains] == [(0, 10), (0, 11), (0, 12), (1, 2), (1, 3)]
    found = ground_all(HUB, (0,), [((0,), scores[0]), ((1,), scores[1])], 5, 1_000)
    assert [chain.entities[-1] for _, chain in sample_sequential(found, 5, nobody)] == [2, 3, 4, 5, 6]


def test_sequential_sampling_keeps_the_rule_of_named_entities_apart() -> None:
    found = ground_all(HUB, (0,), [((0, 2), 0.9)], 2, 1_000)
    by_name = sample_sequential(found, 2, lambda entity: {7: 6}.get(entity, 0))
    assert [chain.entities[1] for _, chain in by_name] == [7, 2]
    assert [chain.entities[1] for _, chain in sample_sequential(found, 2, nobody)] == [2, 3]


def test_the_same_topic_twice_is_one() -> None:
    assert sampled([((1,), 0.9)], 5, (0, 0)) == [(0, 10), (0, 11), (0, 12)]


@pytest.mark.parametrize(
    ("text", "form", "there"),
    [("the Rowing of [TOPIC]", "rowing", True), ("the rowings", "rowing", False), ("杭州龙舟比赛", "龙舟", True)],
)
def test_a_mention_is_a_whole_word_where_words_have_spaces(text: str, form: str, there: bool) -> None:
    assert is_mentioned(text, form) is there


@pytest.fixture(scope="module")
def trained(world: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "hop_path"
    options = HopPathOptions(
        encoder="scratch", epochs=12, patience=12, batch_size=8, learning_rate=5e-3, scratch_width=32, device=DEVICE
    )
    runner(train, options)(world, folder)
    return folder


def test_retrieved_facts_are_the_chains_and_the_paths_are_returned(world: Any, trained: Path) -> None:
    retriever = HopPathRetriever(world.dkg, load(trained, world.dkg), RetrievalOptions())
    question = next(question for question in world.questions if question.hops == 2 and question.split == "test")
    found, empty = retriever.retrieve([question, replace(question, id="none", topic_entities=())])
    assert [(fact.rank, fact.path, fact.hop) for fact in found.facts] == [
        (rank, rank // 2, rank % 2 + 1) for rank in range(len(found.facts))
    ]
    first = found.facts[:2]
    heads, relations, tails = world.dkg.edges([fact.triple for fact in first])
    assert [fact.direction for fact in first] == [-1, 1]
    assert relations.tolist() == [0, 1]
    country, answer = int(heads[1]), question.answers[0]
    assert (int(tails[0]), int(heads[0]), int(tails[1])) == (question.topic_entities[0], country, answer)
    paths = found.paths
    assert paths[0][0] == question.relation_paths[0] and len(paths) == 9
    assert first[0].score == first[1].score == paths[0][1]
    assert found.entities[0] == (answer, paths[0][1])
    assert sum(found.hop_attention) == pytest.approx(1, abs=1e-4)
    assert (empty.facts, empty.entities, empty.truncated) == ((), (), 0)
    assert empty.paths == paths  # a path can be predicted without an entity to start from


def test_every_test_question_of_the_world_is_answered(world: Any, trained: Path) -> None:
    questions = [question for question in world.questions if question.split == "test"]
    retriever = HopPathRetriever(world.dkg, load(trained, world.dkg), RetrievalOptions())
    found = retriever.retrieve(questions)
    assert [one.entities[0][0] in question.answers for one, question in zip(found, questions, strict=True)] == [
        True
    ] * len(questions)
    assert all(max(fact.path for fact in one.facts) < 5 for one in found)
    cut = HopPathRetriever(world.dkg, load(trained, world.dkg), RetrievalOptions(edge_budget=1)).retrieve(questions)
    assert any(one.truncated for one in cut)


def test_names_between_come_from_the_store(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prediction = PathPrediction(2, (0.0, 1.0), ((("<inv>-capital", "currency"), 0.99),))
    monkeypatch.setattr(HopPathRetriever, "_predict", lambda self, questions, names: [prediction] * len(questions))
    lines = [f"Land {event}\tcapital\tTown\nLand {event}\tcurrency\tMoney {event}\n" for event in "ABCDEFGH"]
    (tmp_path / "graph.tsv").write_text("".join(lines), encoding="utf-8")
    for part in ("kg", "dkg"):
        (tmp_path / part).mkdir()
    options = KgOptions(files=(str(tmp_path / "graph.tsv"),), format="delimited", delimiter="\t")
    build(Workspace(tmp_path / "kg"), options=options)
    export(Workspace(tmp_path / "dkg"), kg=tmp_path / "kg")
    dkg = Dkg.open(tmp_path / "dkg")
    with KgStore.open(tmp_path / "kg") as store:
        ids = {key: found[0] for key, found in store.resolve(["Town", "Money G", "Money A"]).items()}
    text = "which money is used where Town is the capital in Land G"
    question = Question("q", text, topic_keys=("Town",), topic_entities=(ids["Town"],), answers=(ids["Money G"],))
    collected = open_retriever(
        "hop_path", RetrieverInputs(dkg, RetrievalOptions(), trained=trained, kg=tmp_path / "kg")
    )
    assert collected.retrieve([question])[0].entities[0][0] == ids["Money G"]
    without = HopPathRetriever(dkg, load(trained, dkg), RetrievalOptions())
    assert without.retrieve([question])[0].entities[0][0] == ids["Money A"]
    published = replace(load(trained, dkg), sampling="sequential", named_first=False)
    found = HopPathRetriever(dkg, published, RetrievalOptions(), kg=tmp_path / "kg").retrieve([question])[0]
    assert found.entities[0][0] == ids["Money A"], "the rule of named entities is ours"
