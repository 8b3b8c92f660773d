"""What a language model writes reaches a client of the chat protocol and of `/ask` while it is being written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from kgqa_core.runs.graph_files import graph_record
from kgqa_core.serving.run import ServeOptions
from kgqa_core.store.artifacts import Home
from kgqa_core.system import System
from kgqa_core.types import Question
from tests.support.served import listening
from tests.support.token_server import TokenServer

PEOPLE = "name,boss,team\nAna,Dee,Red\nBo,Ana,Red\nCy,Ana,Blue\n"
TOKENS = ("The ", "boss ", "of ", "Cy ", "is ", "Ana.")
QUESTION = "Who is the boss of Cy?"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[TokenServer, str]]:
    """An endpoint that waits after three tokens, and a server whose answers it words."""
    (tmp_path / "people.csv").write_text(PEOPLE)
    with TokenServer(TOKENS, held=3) as endpoint:
        settings = {"answering": {"answerer": "auto:openai:m"}, "llm": {"base_url": endpoint.base_url}}
        home = Home(tmp_path / "home")
        record = graph_record(home, [tmp_path / "people.csv"], settings)
        with listening(ServeOptions(str(home.root), record=record).app()) as url:
            yield endpoint, url


def events(lines: Iterator[str]) -> Iterator[tuple[str, Any]]:
    name = ""
    for line in lines:
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: ") and line != "data: [DONE]":
            yield name, json.loads(line.removeprefix("data: "))


def test_a_chat_has_the_tokens_as_they_come_and_then_the_proof(served: tuple[TokenServer, str]) -> None:
    endpoint, url = served
    body = {"messages": [{"role": "user", "content": QUESTION}], "stream": True}
    pieces: list[str] = []
    with httpx.stream("POST", f"{url}/v1/chat/completions", json=body, timeout=40) as reply:
        for _, event in events(reply.iter_lines()):
            for choice in event["choices"]:
                pieces += filter(None, [choice["delta"].get("content")])
            if "".join(pieces).startswith("The boss of"):
                endpoint.more.set()  # else the endpoint writes no more
            last = event if "kgqa" in event else {}
    text = "".join(pieces)
    assert text.startswith("The boss of Cy is Ana. [1]") and "(Cy, boss, Ana)" in text and text.count("Ana.") == 1
    assert last["kgqa"]["wording"] == "The boss of Cy is Ana." and last["choices"][0]["finish_reason"] == "stop"
    whole = httpx.post(f"{url}/v1/chat/completions", json={**body, "stream": False}, timeout=40).json()
    assert whole["choices"][0]["message"]["content"] == text


def test_ask_has_them_as_events(served: tuple[TokenServer, str]) -> None:
    endpoint, url = served
    with httpx.stream("POST", f"{url}/ask", json={"question": QUESTION, "stream": True}, timeout=40) as reply:
        written, names = "", []
        for name, event in events(reply.iter_lines()):
            names.append(name)
            written += event["text"] if name == "written" else ""
            if written.startswith("The boss of"):
                endpoint.more.set()
    assert written == "The boss of Cy is Ana." and names.count("written") >= 2
    assert names[0] == "linked" and names[-3:] == ["answer", "proof", "done"]


def test_what_may_still_be_withheld_is_told_at_the_end_alone(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(PEOPLE)
    with TokenServer(TOKENS) as endpoint:
        told: list[tuple[str, Any]] = []

        def system(**answering: Any) -> System:
            settings = {"answering": {"answerer": "openai:m", **answering}, "llm": {"base_url": endpoint.base_url}}
            made = System.from_graph(tmp_path / "people.csv", home=tmp_path / "home", settings=settings)
            return replace(made, listeners={"ask": lambda *step: told.append(step)})

        free = system(knowledge=["none"])
        free.judge, free.retriever = None, None
        assert free.ask(QUESTION, ["Cy"]).answer == "The boss of Cy is Ana."
        assert "".join(step["text"] for name, step in told if name == "written") == "The boss of Cy is Ana."
        told.clear()
        judged = system()
        assert judged.ask(QUESTION).answer is None, "no retriever found a fact"
        assert [name for name, _ in told] == ["linked"], "which is known before the model has answered"
        assert judged.judge is not None
        judged.judge.abstainer = cast(Any, object())
        assert judged._surely_given([(Question("ask", QUESTION), [])], [], [None]) == [False], (
            "it may withhold anything"
        )
