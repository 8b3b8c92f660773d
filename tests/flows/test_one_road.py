"""The same twenty questions are answered alike by `run`, `ask` and `answer`.

One home: a run for each answerer, over the same graph, with every retriever from gold and from linked topics.  `ask` is
`System.ask` on what the run made, and `answer` the flow of `kgqa answer` on a file.  What ranks relations draws no
triples here, since the draw depends on a question's id.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from flows.answer import answer_file
from flows.pipeline import pipeline
from kgqa_core.answering.explored import read_efforts
from kgqa_core.answering.registry import ANSWERERS
from kgqa_core.answering.reply import Answer
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
ANSWERED_BY = {"builtin": "model", "symbolic": "symbolic", "hybrid": "hybrid", "openai:stub": "model", "auto": "auto"}
EXPLORED_BY = {"agent:openai:stub": "agent", "gcr:builtin": "gcr"}
"""Answerers that explore the graph from the topics, whatever is retrieved."""
TOPICS = {"gold": (False,), "linked": (True,), "both": (False, True)}
"""Whether the topics of a question are linked, by what a profile calls that."""
QUESTIONS = 20
SMALL = {
    "rigel": {"encoder": "scratch", "scratch_width": 32, "epochs": 1, "min_steps": 40, "device": "cpu"},
    "hop_path": {"encoder": "scratch", "scratch_width": 32, "epochs": 2, "device": "cpu"},
    "transfernet": {"encoder": "scratch", "scratch_width": 32, "epochs": 1, "min_steps": 40, "device": "cpu"},
    "relation_ranking": {"encoder": "scratch", "scratch_width": 32, "epochs": 1, "triples": 100_000, "device": "cpu"},
    "operation_classifier": {"encoder": "scratch", "scratch_width": 32, "epochs": 4, "device": "cpu"},
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
    write_questions(folder / "own.jsonl", write_graph(folder / "register.tsv", 2000), 200)
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
    hybrid = any(stage["name"] == f"computed_knowledge/{name}/triples" for stage in record["stages"])
    if hybrid:
        folder = stage_artifact(record, f"computed_knowledge/{name}/triples").folder
        knowledge = pl.read_parquet(folder / "knowledge.parquet")
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


def compare(road: Road, home: Path, out: Path, retriever: str, topics: Sequence[str]) -> None:
    """`ask` and `answer` give what `run` gave, by one retriever, whatever topics the run's profile names."""
    out.mkdir()
    lines = [
        {"id": f"{question.id}/{linked}", "question": question.text}
        | ({} if linked else {"topic_entities": list(question.topic_keys)})
        for question in road.questions
        for linked in (False, True)
    ]
    lines.append({"id": "long", "question": "a" * 5000})
    (out / "own.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for word in topics:
        record = json.loads(json.dumps(road.record))
        record["profile"]["retrieval"]["topics"] = word
        (home / "runs" / record["run_id"] / "run.json").write_text(json.dumps(record))
        system = System.from_run(Home(home), record["run_id"], knowledge=retriever)
        answer_file(record, out / "own.jsonl", out / "answers.jsonl", retriever, force=True)
        rows = {row["id"]: row for row in map(json.loads, (out / "answers.jsonl").read_text().splitlines())}
        assert "5,000 characters" in rows.pop("long")["reject"]
        for linked in TOPICS[word]:
            given = [question.topic_keys if not linked else () for question in road.questions]
            pairs = list(zip(road.questions, given, strict=True))
            alone = [system.ask(question.text, keys) for question, keys in pairs]
            batch = system.answer([Question(question.id, question.text, topic_keys=keys) for question, keys in pairs])
            for question, one, other in zip(road.questions, alone, batch, strict=True):
                row = road.rows[f"{retriever}@linked" if linked else retriever][question.id]
                assert (one.output, one.text) == row[:2]
                facts = [(fact.text, fact.hop) for fact in one.facts]
                assert facts == [fact[:2] for fact in row[2]]
                assert [fact.score for fact in one.facts] == pytest.approx([fact[2] for fact in row[2]], abs=2e-4)
                assert (other.output, other.text, other.answer) == (one.output, one.text, one.answer)
                assert other.confidence == pytest.approx(one.confidence, abs=1e-4)
                agrees(rows[f"{question.id}/{linked}"], one)


def agrees(row: Mapping[str, Any], one: Answer) -> None:
    """A row of `kgqa answer` says what `ask` does; a question without topics is a reject there."""
    shown = one.to_row()
    names = ["answer", "model_answer", "answerable", "calibrated", "min_confidence", "reason", "missing", "nearest"]
    names += ["operation", "form", "computed", "proof", "proof_rows"]
    assert {name: row.get(name) for name in names} == {name: shown.get(name) for name in names}
    assert row["confidence"] == pytest.approx(one.confidence, abs=1e-4)
    if not one.model.startswith("hybrid"):  # whose rows have the knowledge without the computed results
        assert row["facts"] == one.text


def compare_all(road: Road, home: Path, out: Path, retrievers: Sequence[str], topics: Sequence[str]) -> int:
    """The number of combinations that gave the same answers; baselines answer no user's question."""
    for retriever in retrievers:
        if retriever not in BASELINES:
            compare(road, home, out / retriever, retriever, topics)
            continue
        assert len(road.rows[retriever]) == QUESTIONS
        with pytest.raises(InputError, match="oracle and random need gold paths or a seed"):
            System.from_run(Home(home), road.record["run_id"], knowledge=retriever)
        with pytest.raises(InputError, match="oracle and random need gold paths or a seed"):
            answer_file(road.record, home.parent / "own.jsonl", out / "refused.jsonl", retriever)
    return len(retrievers) * len(topics)


def test_every_answerer_of_the_registry_is_in_the_matrix() -> None:
    assert {*ANSWERED_BY.values(), *EXPLORED_BY.values()} == set(ANSWERERS)


@pytest.mark.slow
def test_run_ask_and_answer_give_the_same_answers(
    home: Path, server: ChatServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KGQA_HOME", str(home))
    road = run(home, server, "hybrid", FEW)
    assert compare_all(road, home, tmp_path, FEW, ("both",)) == 2


def test_auto_answers_alike_through_run_ask_and_answer(
    home: Path, server: ChatServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KGQA_HOME", str(home))
    road = run(home, server, "auto", FEW)
    assert set(road.rows) == {"hop_path", "hop_path@linked"}, "auto is given the paths of one retriever"
    compare(road, home, tmp_path / "auto", "hop_path", ("both",))


@pytest.mark.slow
@pytest.mark.parametrize("answerer", ["agent:openai:stub", "gcr:builtin"])
def test_explorer_answers_alike_through_run_ask_and_answer(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answerer: str
) -> None:
    monkeypatch.setenv("KGQA_HOME", str(home))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with ChatServer(act=ScriptedAgent()) as server, on_shared_server():
        road = run(home, server, answerer, ("random",))
        assert set(road.rows) == {"topics", "topics@linked"}
        assert (server.stats()["requests"] > QUESTIONS) == answerer.startswith("agent")
        compare(road, home, tmp_path / "explorer", "topics", ("both",))
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
def test_the_whole_matrix_gives_the_same_answers(
    home: Path,
    server: ChatServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Any,
    answerer: str,
) -> None:
    monkeypatch.setenv("KGQA_HOME", str(home))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    road = run(home, server, answerer, RETRIEVERS)
    count = compare_all(road, home, tmp_path, RETRIEVERS, list(TOPICS))
    record_property("combinations", count)
    assert count == len(RETRIEVERS) * len(TOPICS) == 30
