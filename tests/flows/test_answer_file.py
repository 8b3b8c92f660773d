"""`kgqa answer`: a file is answered in batches and shards, traced, and taken up again without paying twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flows.answer import answer_file
from kgqa_core import question_file
from kgqa_core.config import make_profile
from kgqa_core.dkg.export import export
from kgqa_core.errors import BudgetReached
from kgqa_core.kg.build import build
from kgqa_core.runs.finished import mentions_of_graph, system_parts, with_mentions
from kgqa_core.store.artifacts import Home, verify
from kgqa_core.system import System
from kgqa_core.tracing import QuestionTrace
from kgqa_core.workspace import Workspace
from tasks import answering
from tests.support.chat_server import ChatServer, Fault
from tests.support.prefect_server import on_shared_server
from tests.support.toy import write_graph, write_questions

ASKED = 20


@pytest.fixture(scope="module")
def server() -> Iterator[ChatServer]:
    with ChatServer(lambda prompt: f"answer {len(prompt)}") as served, on_shared_server():
        yield served


@pytest.fixture(scope="module")
def finished(server: ChatServer, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A folder with a home and a question file, and the record of the home's run, of which only the graph is there."""
    folder = tmp_path_factory.mktemp("answered")
    write_questions(folder / "own.jsonl", write_graph(folder / "register.tsv", 300), 60)
    rows = [json.loads(line) for line in (folder / "own.jsonl").read_text().splitlines()[:ASKED]]
    lines = [
        {"id": row["id"], "question": row["question"]} | ({} if n % 2 else {"topic_entities": row["topic_entities"]})
        for n, row in enumerate(rows)
    ]
    lines += [
        {"id": "lost", "question": "Where is Atlantis?", "topic_entities": ["Atlantis"]},
        {"id": "empty", "question": "How late is it?"}, {"id": "long", "question": "a" * 5000},
    ]  # fmt: skip
    (folder / "new.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    profile = make_profile(
        {
            "kg": {"name": "register", "files": [str(folder / "register.tsv")]},
            "retrieval": {"retrievers": ["kaping"]},
            "kaping": {"hops": 1},
            "answering": {"answerer": "openai:m", "knowledge": ["kaping"]},
            "llm": {"base_url": server.base_url, "retries": 0},
        }
    )
    home = Home(folder / "home").prepare()
    kg, _ = home.compute("kg", "a" * 64, lambda out, work: build(Workspace(out), options=profile.kg), {})
    dkg, _ = home.compute("dkg", "b" * 64, lambda out, work: export(Workspace(out), kg=kg.folder), {})
    made = {"kg": kg, "dkg": dkg}
    stages = [{"name": name, "artifact": ref.model_dump()} for name, ref in made.items()]
    return folder, {"run_id": "r", "profile": profile.model_dump(mode="json"), "stages": stages}


@pytest.fixture(autouse=True)
def small_batches(finished: tuple[Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KGQA_HOME", str(finished[0] / "home"))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setattr(question_file, "BATCH", 6)


def changed(record: dict[str, Any], **sections: dict[str, Any]) -> dict[str, Any]:
    """The record, as if its profile had other options."""
    copy = json.loads(json.dumps(record))
    for name, options in sections.items():
        copy["profile"][name] |= options
    return copy


def test_a_stopped_file_is_taken_up_without_answering_or_paying_twice(
    finished: tuple[Path, dict[str, Any]], server: ChatServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, record = finished
    out, asked, batches = tmp_path / "out.jsonl", len(server.prompts), list[int]()
    real = System.answer

    def counted(self: System, questions: Any, traces: Any = None) -> Any:
        batches.append(len(questions))
        return real(self, questions, traces)

    monkeypatch.setattr(System, "answer", counted)
    used = record["profile"]["llm"]["budget"]
    small = changed(record, llm={"budget": used | {"max_calls": 9}})
    with pytest.raises(BudgetReached, match="9 of 9 calls"):
        answer_file(small, folder / "new.jsonl", out)
    assert not out.exists() and batches == [5, 6], "the second batch ends at the limit"
    batches.clear()
    result = answer_file(record, folder / "new.jsonl", out)
    assert batches == [6, 6, 4], "of the first batch nothing is answered again; one topic is not in the graph"
    prompts = server.prompts[asked:]
    assert len(prompts) == len(set(prompts)) > 9
    rows = {row["id"]: row for row in map(json.loads, out.read_text().splitlines())}
    assert result["answered"] == ASKED + 1 == sum(row["reject"] is None for row in rows.values())
    reasons = {one["id"]: one["reason"] for one in result["rejects"]}
    assert "'Atlantis' is not in the graph" in reasons["lost"] and "5,000 characters" in reasons["long"]
    assert len(reasons) == 2 and result["declined"]["not in this graph"] >= 1
    assert (rows["empty"]["declined"], rows["empty"]["reason"]) == ("not in this graph", "entity not found")
    answer_file(record, folder / "new.jsonl", out, force=True)
    assert len(server.prompts) == asked + len(prompts) and batches == [6, 6, 4], "answers are in the home"
    answer_file(record, folder / "new.jsonl", out, min_confidence=0.0, force=True)
    [row] = [row for row in map(json.loads, out.read_text().splitlines()) if row["id"] == "empty"]
    assert row["reject"] is None and row["answer"], "everything is answered where that is asked for"


class Tracer:
    """Keeps all traces."""

    def __init__(self) -> None:
        self.traces: list[QuestionTrace] = []

    def wants(self) -> bool:
        return True

    def record(self, trace: QuestionTrace) -> None:
        self.traces.append(trace)


@pytest.mark.parametrize("kind", ["thread", pytest.param("process", marks=pytest.mark.slow)])
def test_shards_on_a_runner_write_what_the_system_says_and_trace_it(
    finished: tuple[Path, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    folder, record = finished
    lines = (folder / "new.jsonl").read_text().splitlines(keepends=True)[: 17 if kind == "thread" else 18]
    (tmp_path / "new.jsonl").write_text("".join(lines))
    tracer = Tracer()
    monkeypatch.setattr(answering, "open_tracer", lambda home, share, run, command: tracer)
    divided = changed(record, operations={"runner": {"kind": kind, "shards": 3, "workers": 2}})
    answer_file(divided, tmp_path / "new.jsonl", tmp_path / "out.jsonl", trace_share=1.0)
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    parts = system_parts(Home.current(), record)
    system = System.open(with_mentions(parts, mentions_of_graph(Home.current(), verify(parts.kg))))
    for line, row in zip(map(json.loads, lines), rows, strict=True):
        assert system.ask(line["question"], line.get("topic_entities", ())).to_row() | {"id": line["id"]} == row
    if kind == "thread":
        assert sorted(trace.outputs["text"] for trace in tracer.traces) == sorted(row["facts"] for row in rows)
        assert {span.name for span in tracer.traces[0].spans} == {"linking", "retrieval", "knowledge", "model"}


def test_what_the_model_failed_on_is_rejected_and_asked_again_by_the_same_command(
    finished: tuple[Path, dict[str, Any]], server: ChatServer, tmp_path: Path
) -> None:
    folder, record = finished
    asked = json.loads((folder / "new.jsonl").read_text().splitlines()[0])
    (tmp_path / "new.jsonl").write_text(
        "".join(json.dumps(asked | {"id": f"n{n}", "question": f"{asked['question']} {n}"}) + "\n" for n in range(3))
    )
    server.fail(f"{asked['question']} 1", Fault(status=404))
    words = (record, tmp_path / "new.jsonl", tmp_path / "out.jsonl")
    [reject] = answer_file(*words)["rejects"]
    assert reject["id"] == "n1" and "the language model failed: " in reject["reason"]
    before = len(server.prompts)
    assert answer_file(*words, force=True)["rejects"] == [] and len(server.prompts) == before + 1
