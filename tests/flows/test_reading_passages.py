"""A run that sets triples against passages and both, with the chat prompts, and questions to it afterwards."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from kgqa_core.store.home import read_run
from tests.support.chat_server import ChatServer
from tests.support.command import kgqa
from tests.support.passages import write_jsonl
from tests.support.toy import write_graph, write_questions

pytestmark = pytest.mark.slow


def test_settings_none_passages_triples_and_both_are_answered_and_reported(tmp_path: Path) -> None:
    triples = write_graph(tmp_path / "register.tsv", 3400)
    write_questions(tmp_path / "asked.jsonl", triples, 60)
    about: dict[str, list[str]] = {}
    for head, relation, tail in triples:
        about.setdefault(head, []).append(f"{relation.replace('_', ' ')} {tail}.")
    rows = [{"id": head, "title": head, "text": " ".join(told)} for head, told in sorted(about.items())]
    corpus = write_jsonl(tmp_path / "texts.jsonl", [*rows, {"id": "bad"}])
    with ChatServer(lambda prompt: "Agent: It is said.\nIn two lines.\nUser: more?") as server:
        settings = {
            "retrieval.retrievers": "[oracle]", "answering.knowledge": "[none, passages, oracle/both, oracle]",
            "answering.template": "ltgen2024", "answering.limit": "5", "answering.answerer": "openai:stub",
            "llm.base_url": server.base_url, "passages.retriever": "bm25", "passages.k": "3",
        }  # fmt: skip
        words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        graph = [
            "--kg",
            tmp_path / "register.tsv",
            "--questions",
            tmp_path / "asked.jsonl",
            "--home",
            tmp_path / "home",
        ]
        given = {"env": {"OPENAI_API_KEY": "none"}}

        lost = kgqa("run", *graph, *words, "--set", f"passages.corpus={tmp_path / 'text.jsonl'}", **given)
        assert lost.code == 2 and "did you mean 'texts.jsonl'" in lost.err, lost.err
        words += ["--set", f"passages.corpus={corpus}"]

        ahead = kgqa("forecast", "--json", *graph, *words, **given)
        assert ahead.code == 0, ahead.err[-4000:]
        assert [stage["stage"] for stage in ahead.json["stages"]] == [
            "answers none/none", "answers passages/passages", "answers oracle/both", "answers oracle/triples",
        ]  # fmt: skip
        assert all("length is a guess" not in str(stage["assumptions"]) for stage in ahead.json["stages"])

        ran = kgqa("run", "--json", "--answerer", "builtin", *graph, *words, **given)
        assert ran.code == 0, ran.err[-4000:]
        names = ("none/none", "passages/passages", "oracle/both", "oracle/triples")
        assert {f"{name}/openai:stub" for name in names} < set(ran.json["scores"])
        assert {"passage_index", "passages", "knowledge/passages", "knowledge/oracle/both"} <= set(ran.json["stages"])
        page = Path(ran.json["report"]).read_text(encoding="utf-8")
        assert "Oracle facts and passages" in page and "passages facts" not in page
        sent = [body["messages"] for body in server.bodies]
        assert {len(each) for each in sent} == {2} and {body["max_tokens"] for body in server.bodies} == {128}
        both = [user["content"] for _, user in sent if "\n[1] " in user["content"]]
        assert both and all(text.split("\n[1] ")[0].startswith("(") for text in both)
        assert all("Relevant knowledge" in system["content"] for system, user in sent if "[1]" in user["content"])

        record = read_run(tmp_path / "home", ran.json["run_id"]) or {}
        folders = {stage["name"]: Path(stage["artifact"]["path"]) for stage in record["stages"]}
        answers = pl.read_parquet(folders["answers/oracle/both"] / "answers.parquet")
        assert answers["output"].unique().to_list() == ["It is said. In two lines."]
        rejects = pl.read_parquet(folders["passage_index"] / "rejects.parquet")
        assert rejects["line"].to_list() == [len(rows) + 1]

        person = next(head for head, relation, _ in triples if relation == "lives_in")
        asked = kgqa("ask", f"Where does {person} live?", "--json", "--knowledge", "passages", *graph[-2:], **given)
        assert asked.code == 0, asked.err[-4000:]
        assert asked.json["passages"][0]["document"] == person and asked.json["facts"] == []
        assert asked.json["text"].startswith(f"[1] {person}") and asked.json["answer"] == "It is said. In two lines."

        out = tmp_path / "answers.jsonl"
        write_jsonl(tmp_path / "new.jsonl", [{"id": "n", "question": f"Where does {person} live?"}])
        file = kgqa(
            "answer", "--json", "--questions", tmp_path / "new.jsonl", "--out", out, "--knowledge", "passages",
            *graph[-2:], **given,
        )  # fmt: skip
        assert file.code == 0, file.err[-4000:]
        row = json.loads(out.read_text())
        assert row["answer"] == "It is said. In two lines." and row["facts"].startswith(f"[1] {person}")
