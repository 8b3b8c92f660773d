"""What `kgqa ask` shows of an answer that was explored."""

from __future__ import annotations

import io

from rich.console import Console

from kgqa_core.answering.reply import Answer, AnswerTopic, Effort
from kgqa_core.report.console import ask_tables


def test_steps_calls_tokens_and_proof_of_an_exploration_are_shown() -> None:
    effort = Effort("answered", 4, 1_200, 34, ("relations_out(Avalonia): capital", "answer(Zweib)"))
    answer = Answer(
        "q", "What?", "Zweib", model="agent:openai:m", topics=(AnswerTopic("Q1", "Avalonia"),), operation="agent",
        computed="Zweib", answers=("Zweib",), proof=("(Avalonia, capital, Zweib)",), proof_rows=1, effort=effort,
    )  # fmt: skip
    console = Console(width=100, record=True, file=io.StringIO())
    for part in ask_tables({**answer.to_dict(), "seconds": 0.1}):
        console.print(part)
    text = console.export_text()
    assert "Zweib   about Avalonia" in text and "explored: answered, 4 calls, 1,234 tokens" in text
    assert "1. relations_out(Avalonia): capital" in text and "(Avalonia, capital, Zweib)" in text
    assert "no form of the operation" not in text
