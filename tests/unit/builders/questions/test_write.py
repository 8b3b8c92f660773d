"""What a language model writes is taken only where it still asks the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kgqa_core.builders.questions import write
from kgqa_core.config import LlmOptions
from kgqa_core.config.generated_questions import GeneratedQuestionsOptions
from kgqa_core.llm.paid import Outcome, PromptBatch
from kgqa_core.llm.protocol import Completion
from kgqa_core.workspace import Workspace

ROW: dict[str, Any] = {
    "question": "Which films directed by Ada Stone were released after 1990?", "mentions": ["Ada Stone"],
    "answers": ["f1"], "answer_names": ["Night Hawk"], "answer_type": "entities", "s_expression": "(…)",
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("what did ada stone direct after 1990", None),
        ('"What did Ada Stone direct after 1990?"\nIt is Night Hawk.', None),
        ("", "empty"),
        ("what did she direct after 1990", "name lost: Ada Stone"),
        ("what did Ada Stone direct recently", "number lost"),
        ("what did Ada Stone not direct after 1990", "negation changed"),
        ("Ada Stone directed Night Hawk after 1990?", "answer in the question: Night Hawk"),
        ("Ada Stone 1990 " * 40, "too long"),
    ],
)
def test_a_completion_is_checked(text: str, reason: str | None) -> None:
    assert write.fault(ROW, text) == reason


def test_a_question_that_nothing_passes_for_keeps_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    class Echo:
        name = "echo"
        texts = iter(["films of Ada Stone after 1990", "no idea", "still none", "nothing"])

    def answer(model: Any, batch: PromptBatch) -> list[Outcome]:
        assert batch.validate is not None
        texts = [next(model.texts) for _ in batch.prompts]
        good = [batch.validate(index, text) is None for index, text in enumerate(texts)]
        return [Outcome(Completion(text, 1, 1) if ok else None) for text, ok in zip(texts, good, strict=True)]  # type: ignore[arg-type]

    monkeypatch.setattr(write, "load_model", lambda *args, **more: Echo())
    monkeypatch.setattr("kgqa_core.llm.paid.generate_cached", answer)
    rows = [dict(ROW), dict(ROW)]
    counts = write.paraphrase(Workspace(Path()), rows, GeneratedQuestionsOptions(writer="openai:m"), LlmOptions())
    assert counts == {"written": 1, "not_written": 1}
    assert [row["question"] for row in rows] == ["films of Ada Stone after 1990", ROW["question"]]
    assert "Ada Stone" in write.prompt(ROW) and "{" not in write.prompt(ROW)
