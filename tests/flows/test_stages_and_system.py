"""What the stages of a run answer, `System` answers: for every answerer, from gold and from linked topics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from flows.pipeline import pipeline
from kgqa_core.answering.explored import read_efforts
from kgqa_core.answering.registry import ANSWERERS
from kgqa_core.config import Knowledge, make_profile
from kgqa_core.datasets.derived.splits import choose
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.errors import InputError
from kgqa_core.kg.store import KgStore
from kgqa_core.kg.verbalise import Wording
from kgqa_core.runs.records import newest_run, stage_artifact
from kgqa_core.store.artifacts import Home
from kgqa_core.system import System
from kgqa_core.types import Question
from tests.support.chat_server import ChatServer
from tests.support.prefect_server import on_shared_server
from tests.support.scripted_agent import ScriptedAgent
from tests.support.toy import write_graph, write_questions

RETRIEVERS = (
    "rigel", "hop_path", "transfernet", "kaping", "rank_llm", "rank_embedding", "rank_pair", "rank_amr", "random",
    "oracle",
)  # fmt: skip
BASELINES = ("random", "frequent", "oracle")
FEW = ("hop_path", "oracle")
ANSWERED_BY = {"builtin": "model", "openai:stub": "model", "auto": "auto"}
EXPLORED_BY = {"agent:openai:stub": "agent", "gcr:builtin": "gcr"}
"""Answerers that explore the graph from the topics, whatever is retrieved."""
QUESTIONS = 10
SMALL = {
    "rigel": {"encoder": "scratch", "scratch_width": 32, "epochs": 1, "min_steps": 40, "device": "cpu"},
    "hop_path": {"encoder": "scratch", "scratch_width": 32, "epochs": 2, "device": "cpu"},
    "transfernet": {"encoder": "scratch", "scratch_width": 32, "epochs": 1, "min_steps": 40, "device": "cpu"},
    "relation_ranking": {"encoder": "scratch", "scratch_width": 32, "epochs": 1, "triples": 100_000, "device": "cpu"},
    "label_parser": {"generated": 0, "examples": 60, "steps": 5, "batch_size": 4},
    "evaluation": {"bootstrap": 100},
}

Row = tuple[str, str, Sequence[tuple[str, int, float]]]
"""What is compared of an answer: the output, the text that was read, and the facts with hop and score."""


@dataclass(frozen=True)
class Road:
    """A finished run and the questions that it answered.  rows: of each, by retriever and question."""

    record: dict[str, Any]
    questions: list[Question]
    rows: Mapping[str, Mapping[str, Row]]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("roads")
    write_questions(folder / "own.jsonl", write_graph(folder / "register.tsv", 1000), 200)
    return folder / "home"


@pytest.fixture(scope="module")
def server() -> Iterator[ChatServer]:
    """A model behind an endpoint, which answers with the last name of the first triple that it reads."""
    with ChatServer(lambda prompt: prompt.partition(")")[0].rpartition(", ")[2]) as found, on_shared_server():
        yield found


def run(home: Path, server: ChatServer, answerer: str, retrievers: Sequence[str]) -> Road:
    """The road of `kgqa run`."""
    profile = make_profile(
        SMALL,
        {
            "kg": {"name": "register", "files": [str(home.parent / "register.tsv")]},
            "questions": {"name": "own", "source": "jsonl", "path": str(home.parent / "own.jsonl")},
            "retrieval": {"retrievers": list(retrievers), "topics": "both"},
            "answering": {"answerer": answerer, "knowledge": list(retrievers), "limit": QUESTIONS},
            "llm": {"base_url": server.base_url},
        },
    )
    summary = pipeline(profile)
    record = newest_run(Home(home), summary["run_id"])
    every = read_questions(stage_artifact(record, "questions").folder)
    chosen = choose(every, "test", QUESTIONS, profile.seed)
    assert len(chosen) == QUESTIONS and all(question.topic_keys for question in chosen)
    with KgStore.open(stage_artifact(record, "kg").folder) as store:
        answered = dict.fromkeys(str(Knowledge.parse(name).variant) for name in profile.knowledge)
        rows = {name: _rows(record, name, store) for name in answered}
    return Road(record, chosen, rows)


def _rows(record: dict[str, Any], name: str, store: KgStore) -> dict[str, Row]:
    """What a run answered from one retriever's facts."""
    answers, facts = (pl.read_parquet(_artifact(record, kind, name)) for kind in ("answers", "facts"))
    knowledge = pl.read_parquet(_artifact(record, "knowledge", name))
    texts = dict(knowledge.select("question", "text").rows())
    wording = Wording(store, facts["triple"].unique().to_list())
    found = {}
    for question, output in answers.select("question", "output").rows():
        own = facts.filter(pl.col("question") == question).sort("rank")
        told = wording.texts(own.select("triple", "direction").rows())
        pairs = zip(told, own.select("hop", "score").rows(), strict=True)
        found[question] = (output, texts[question], [(text, hop, score) for text, (hop, score) in pairs])
    return found


def _artifact(record: dict[str, Any], kind: str, name: str) -> Path:
    return stage_artifact(record, f"{kind}/{name}").folder / f"{kind}.parquet"


def compare(road: Road, home: Path, retrievers: Sequence[str]) -> None:
    """The system of a run, alone and in a batch, gives what the run gave by each retriever but the baselines."""
    for retriever in retrievers:
        if retriever in BASELINES:
            assert len(road.rows[retriever]) == QUESTIONS
            with pytest.raises(InputError, match="oracle and random need gold paths or a seed"):
                System.from_run(Home(home), road.record["run_id"], knowledge=retriever)
            continue
        system = System.from_run(Home(home), road.record["run_id"], knowledge=retriever)
        for variant, linked in ((retriever, False), (f"{retriever}@linked", True)):
            asked = [Question(one.id, one.text, topic_keys=() if linked else one.topic_keys) for one in road.questions]
            for question, answer in zip(asked, system.answer(asked), strict=True):
                output, text, facts = road.rows[variant][question.id]
                assert (answer.output, answer.text) == (output, text)
                assert [(fact.text, fact.hop) for fact in answer.facts] == [fact[:2] for fact in facts]
                assert [fact.score for fact in answer.facts] == pytest.approx([fact[2] for fact in facts], abs=2e-4)
            alone = system.ask(asked[0].text, asked[0].topic_keys)
            assert (alone.output, alone.text) == road.rows[variant][asked[0].id][:2]


def test_every_answerer_of_the_registry_is_in_the_matrix() -> None:
    assert {*ANSWERED_BY.values(), *EXPLORED_BY.values()} == set(ANSWERERS)


def test_auto_answers_alike_in_stages_and_in_a_system(
    home: Path, server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KGQA_HOME", str(home))
    road = run(home, server, "auto", FEW)
    assert set(road.rows) == {"hop_path", "hop_path@linked"}, "auto is given the paths of one retriever"
    compare(road, home, ["hop_path"])


@pytest.mark.slow
@pytest.mark.parametrize("answerer", ["agent:openai:stub", "gcr:builtin"])
def test_explorer_answers_alike_in_stages_and_in_a_system(
    home: Path, monkeypatch: pytest.MonkeyPatch, answerer: str
) -> None:
    monkeypatch.setenv("KGQA_HOME", str(home))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with ChatServer(act=ScriptedAgent()) as server, on_shared_server():
        road = run(home, server, answerer, ("random",))
        assert set(road.rows) == {"topics", "topics@linked"}
        assert (server.stats()["requests"] > QUESTIONS) == answerer.startswith("agent")
        compare(road, home, ["topics"])
        assert any(output for output, _, _ in road.rows["topics"].values())
    computed = stage_artifact(road.record, "computed/topics").folder
    efforts, proof = read_efforts(computed), pl.read_parquet(computed / "proof.parquet")
    answered = {name for name, (output, _, _) in road.rows["topics"].items() if output}
    assert len(efforts) == QUESTIONS and answered <= set(proof["question"])
    answers = pl.read_parquet(_artifact(road.record, "answers", "topics"))
    assert dict(answers.select("question", "prompt_tokens").rows()) == {
        question: effort.prompt_tokens for question, effort in efforts.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize("answerer", [name for name in ANSWERED_BY if name != "auto"])
def test_every_retriever_and_answerer_answers_alike_in_stages_and_in_a_system(
    home: Path, server: ChatServer, monkeypatch: pytest.MonkeyPatch, answerer: str
) -> None:
    monkeypatch.setenv("KGQA_HOME", str(home))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    compare(run(home, server, answerer, RETRIEVERS), home, RETRIEVERS)
