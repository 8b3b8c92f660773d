"""A question to the system gets the facts that the collect stage finds for it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from kgqa_core.config import HopPathOptions, KgOptions, Profile, RetrievalOptions
from kgqa_core.config.retrieval import baseline_names, retriever_names, retriever_sections
from kgqa_core.datasets.files.question import write_questions
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.export import export
from kgqa_core.errors import ArtifactError
from kgqa_core.kg.build import build
from kgqa_core.kg.store import KgStore
from kgqa_core.kg.verbalise import write_knowledge
from kgqa_core.llm import models
from kgqa_core.llm.protocol import Completion, GenerationParams
from kgqa_core.retrieval.api import RetrieverInputs, TrainingInputs
from kgqa_core.retrieval.collect import collect
from kgqa_core.retrieval.hop_path.classifier import PathPrediction
from kgqa_core.retrieval.hop_path.retriever import HopPathRetriever
from kgqa_core.retrieval.hop_path.train import train
from kgqa_core.retrieval.kaping.retriever import Kaping
from kgqa_core.retrieval.registry import RETRIEVERS, TRAINED, open_retriever
from kgqa_core.runs.finished import SystemParts
from kgqa_core.system import System
from kgqa_core.types import Question
from kgqa_core.workspace import Workspace
from tests.support.device import DEVICE

COUNTRIES = ("m.0aa", "m.0bb", *(f"realm {letter}" for letter in "ABCDEFGH"))
"""Two nodes without name and eight that have one, in the order of their ids."""
TEXT = "which money is used where Town is the capital in realm G"


class Silent:
    """A model that has nothing to say."""

    name = "silent"

    def generate(self, prompts: Sequence[str], params: GenerationParams) -> list[Completion]:
        return [Completion("nothing", "stop", 1, 1) for _ in prompts]


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Folders of a graph in which Town is the capital of every country, and of one question about it."""
    monkeypatch.setattr(models, "load_model", lambda spec, llm, budget: Silent())
    found = {name: tmp_path / name for name in ("kg", "dkg", "questions", "trained", "facts", "knowledge")}
    for folder in found.values():
        folder.mkdir()
    lines = [f"{name}\tcapital\tTown\n{name}\tcurrency\tMoney of {name}\n" for name in COUNTRIES]
    (tmp_path / "graph.tsv").write_text("".join(lines), encoding="utf-8")
    build(
        Workspace(found["kg"]),
        options=KgOptions(files=(str(tmp_path / "graph.tsv"),), format="delimited", delimiter="\t"),
    )
    export(Workspace(found["dkg"]), kg=found["kg"])
    with KgStore.open(found["kg"]) as store:
        [town] = store.resolve(["Town"])["Town"]
    write_questions(found["questions"], [Question("q", TEXT, topic_keys=("Town",), topic_entities=(town,))])
    return found


def test_asking_gives_the_facts_of_the_collect_stage(
    folders: dict[str, Path], world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    prediction = PathPrediction(2, (0.0, 1.0), ((("<inv>-capital", "currency"), 0.99),))
    monkeypatch.setattr(HopPathRetriever, "_predict", lambda self, questions, names: [prediction] * len(questions))
    kg, dkg, questions, trained, facts, knowledge = folders.values()
    options = HopPathOptions(encoder="scratch", epochs=1, scratch_width=16, device=DEVICE)
    train(Workspace(trained), TrainingInputs(world.dkg_folder, world.questions_folder, options, 7))

    collect(
        Workspace(facts),
        questions,
        "hop_path",
        RetrieverInputs(Dkg.open(dkg), RetrievalOptions(), 7, trained=trained, kg=kg),
    )
    write_knowledge(Workspace(knowledge), kg=kg, facts=facts, questions=questions)
    [text] = pl.read_parquet(knowledge / "knowledge.parquet")["text"]
    assert text.startswith("(Town, <inv>-capital, realm G), (realm G, currency, Money of realm G)")
    assert "(Town, <inv>-capital, CVT1), (CVT1, currency, Money of m.0aa)" in text

    reply = System.open(SystemParts(kg, dkg, "hop_path/triples", retriever=trained)).ask(TEXT, ["Town"])
    assert reply.text == text == ", ".join(fact.text for fact in reply.facts)
    rows = pl.read_parquet(facts / "facts.parquet").sort("rank").select("hop", "score", "direction").rows()
    assert [(fact.hop, fact.score, fact.direction) for fact in reply.facts] == rows
    assert reply.entities[0].name == "Money of realm G"


def test_the_folder_of_vectors_reaches_the_retriever(folders: dict[str, Path], tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    opened = System.open(SystemParts(folders["kg"], folders["dkg"], "kaping/triples", cache=cache))
    assert opened.retriever is not None
    retriever = opened.retriever
    assert isinstance(retriever, Kaping)
    assert (retriever.kg, retriever.cache) == (folders["kg"], cache)


def test_asking_without_knowledge_finds_nothing(folders: dict[str, Path]) -> None:
    reply = System.open(SystemParts(folders["kg"], folders["dkg"], "none/none")).ask(TEXT, ["Town"])
    assert (reply.facts, reply.text, reply.entities) == ((), "", ())


def test_a_missing_retriever_is_named_before_any_question(folders: dict[str, Path]) -> None:
    with pytest.raises(ArtifactError, match="'hop_path' needs a trained retriever"):
        open_retriever("hop_path", RetrieverInputs(Dkg.open(folders["dkg"]), RetrievalOptions(), kg=folders["kg"]))


def test_profiles_know_the_retrievers_of_the_registry() -> None:
    assert set(retriever_names()) == set(RETRIEVERS)
    assert set(baseline_names()) == {name for name, spec in RETRIEVERS.items() if spec.baseline}
    assert {name for section in retriever_sections() for name in section.trained} == set(TRAINED)
    profile = Profile()
    for name, spec in RETRIEVERS.items():
        options = spec.options(profile)
        assert options is None if spec.section is None else name in options.names
        assert (spec.train is None) == (spec.artifact is None) == (name not in TRAINED)
    assert len({spec.place for spec in RETRIEVERS.values()}) == len(RETRIEVERS)


def test_the_registry_loads_no_array_library() -> None:
    code = "import sys; import kgqa_core.retrieval.registry; print({'numpy', 'torch', 'numba'} & sys.modules.keys())"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "set()\n"
