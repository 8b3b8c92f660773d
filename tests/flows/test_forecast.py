"""`kgqa forecast` with a pilot: a few questions are asked, kept and booked, and nothing is guessed any more."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgqa_core.prompts import REWRITE
from tests.support.chat_server import ChatServer
from tests.support.command import Outcome, kgqa
from tests.support.toy import write_graph, write_questions
from tests.support.writing_runs import reply

pytestmark = pytest.mark.slow


def test_a_pilot_asks_a_few_questions_of_each_stage_once(tmp_path: Path) -> None:
    triples = write_graph(tmp_path / "register.tsv", 1300)
    write_questions(tmp_path / "asked.jsonl", triples, 200)

    opening = REWRITE.split("{triples}")[0]
    with ChatServer(lambda prompt: reply(prompt) if prompt.startswith(opening) else "Nobody.") as server:

        def forecast(*more: str) -> Outcome:
            settings = (
                "corpus.teacher=openai:stub", "corpus.qa_model=openai:stub", "answering.answerer=openai:stub",
                "answering.knowledge=[none, random, oracle/rewritten]", "retrieval.retrievers=[random, oracle]",
                f"llm.base_url={server.base_url}", "llm.retries=0", "llm.attempts=2", *more,
            )  # fmt: skip
            words = [word for setting in settings if "=" in setting for word in ("--set", setting)]
            words += [word for word in more if "=" not in word]
            return kgqa(
                "forecast", "--kg", tmp_path / "register.tsv", "--questions", tmp_path / "asked.jsonl", "--home",
                tmp_path / "home", "--json", *[word for word in words if word], env={"OPENAI_API_KEY": "none"},
            )  # fmt: skip

        cold = forecast()
        assert cold.code == 0, cold.err[-4000:]
        stages = {each["stage"]: each for each in cold.json["stages"]}
        paid = {name: each for name, each in stages.items() if each["model"] == "openai:stub"}
        assert set(paid) == {
            "corpus/teacher", "corpus/qa", "answers none/none", "answers random/triples", "answers oracle/rewritten",
        }  # fmt: skip
        assert server.stats()["requests"] == 0 and "--pilot" in cold.err and "at most" in cold.err
        assert all(each["low"]["completion_tokens"] < each["high"]["completion_tokens"] for each in paid.values())

        stopped = forecast("--pilot", "25", "llm.budget.max_calls=10")
        assert stopped.code != 0 and "llm.budget.max_calls" in stopped.err and "Traceback" not in stopped.err
        assert server.stats()["requests"] == 10

        warm = forecast("--pilot", "25")
        assert warm.code == 0, warm.err[-4000:]
        asked = server.stats()["requests"]
        assert 10 < asked <= 10 + 25 * 2 + 25 + 25 + 25
        after = {each["stage"]: each for each in warm.json["stages"]}
        assert {name: each["cached"] > 0 for name, each in after.items() if name in paid} == {
            name: name != "answers oracle/rewritten" for name in paid
        }
        assert after["answers random/triples"]["calls"] == stages["answers random/triples"]["calls"] - 25
        assert all(after[name]["low"] is None for name in ("corpus/teacher", "answers none/none"))
        assert after["answers oracle/rewritten"]["low"] is not None, "its texts are not written yet"
