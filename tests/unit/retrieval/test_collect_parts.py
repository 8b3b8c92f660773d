"""Facts that are collected in parts are those that are collected at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.config import HopPathOptions, RetrievalOptions, RigelOptions
from kgqa_core.dkg.csr import Dkg
from kgqa_core.retrieval.api import RetrieverInputs, TrainingInputs
from kgqa_core.retrieval.collect import collect, merge
from kgqa_core.retrieval.hop_path import retriever as hop_path_retriever
from kgqa_core.retrieval.hop_path import train as hop_path_train
from kgqa_core.retrieval.rigel import retriever as rigel_retriever
from kgqa_core.retrieval.rigel import train
from kgqa_core.workspace import Workspace
from tests.support.device import DEVICE
from tests.support.divided import World, divided, make_world, whole

TRAININGS: dict[str, tuple[Any, Any]] = {
    "rigel": (train.train, RigelOptions(encoder="scratch", epochs=1, min_steps=1, scratch_width=16, device=DEVICE)),
    "hop_path": (hop_path_train.train, HopPathOptions(encoder="scratch", epochs=1, scratch_width=16, device=DEVICE)),
}
OPTIONS = RetrievalOptions(k=5, edge_budget=60)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("world"), questions=300)


@pytest.fixture(scope="module")
def filled(
    world: World, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], tuple[Path, str, RetrieverInputs]]:
    """Arguments of `collect` for a retriever, trained where it learns."""
    trained: dict[str, Path] = {}
    dkg = Dkg.open(world.dkg)

    def arguments(name: str) -> tuple[Path, str, RetrieverInputs]:
        if name in TRAININGS and name not in trained:
            trained[name] = tmp_path_factory.mktemp(name)
            learn, options = TRAININGS[name]
            learn(Workspace(trained[name]), TrainingInputs(world.dkg, world.questions, options, 7, kg=world.kg))
        return world.questions, name, RetrieverInputs(dkg, OPTIONS, trained=trained.get(name), kg=world.kg)

    return arguments


@pytest.mark.parametrize(
    "name", ["rigel", "hop_path", "random", "frequent", "oracle", pytest.param("kaping", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("parts", [5, *(pytest.param(parts, marks=pytest.mark.slow) for parts in (2, 40))])
def test_facts_in_any_number_of_parts_are_those_of_the_whole(
    filled: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, parts: int
) -> None:
    monkeypatch.setattr(rigel_retriever, "BATCH", 8)
    monkeypatch.setattr(hop_path_retriever, "BATCH", 8)
    arguments = filled(name)

    def fill(out: Path, part: Any = None) -> Any:
        return collect(Workspace(out, cache=tmp_path, part=part), *arguments)

    def joined(out: Path, folders: Any) -> Any:
        return merge(Workspace(out), folders, name=name, options=OPTIONS)

    once = whole(tmp_path / "whole", fill)
    assert divided(tmp_path / "parts", fill, joined, parts) == once
    assert once.counts["questions"] > 80 and set(once.counts["hits_at_1"]) == {"dev", "test"}


@pytest.mark.parametrize("retriever", ["rigel", pytest.param("hop_path", marks=pytest.mark.slow)])
def test_parts_take_whole_batches(filled: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, retriever: str) -> None:
    kind: Any = {"rigel": rigel_retriever.RigelRetriever, "hop_path": hop_path_retriever.HopPathRetriever}[retriever]
    inner = {"rigel": "_batch", "hop_path": "_predict"}[retriever]
    batches: list[tuple[str, ...]] = []
    real = getattr(kind, inner)

    def listening(self: Any, questions: Any, *more: Any) -> Any:
        batches.append(tuple(question.id for question in questions))
        return real(self, questions, *more)

    for module in (rigel_retriever, hop_path_retriever):
        monkeypatch.setattr(module, "BATCH", 8)
    monkeypatch.setattr(kind, inner, listening)
    arguments = filled(retriever)
    whole(tmp_path / "whole", lambda out: collect(Workspace(out), *arguments))
    once, batches[:] = list(batches), []
    for number in range(3):
        whole(tmp_path / str(number), lambda out, number=number: collect(Workspace(out, part=(number, 3)), *arguments))
    assert batches == once and len(once) > 6
