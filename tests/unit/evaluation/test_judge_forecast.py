"""What judging would cost is said before anything is answered."""

from __future__ import annotations

from pathlib import Path

from kgqa_core.config import AnsweringOptions, LlmOptions
from kgqa_core.datasets.files.question import write_questions
from kgqa_core.evaluation.judge_forecast import forecast_verdicts
from kgqa_core.types import Question


def test_every_question_with_answers_is_one_call_for_each_experiment(tmp_path: Path) -> None:
    questions = [Question(f"q{n}", "Where?", split="test", answer_names=(("Oslo",),) if n else ()) for n in range(5)]
    write_questions(tmp_path, [*questions, Question("t", "Where?", split="train", answer_names=(("Rome",),))])
    given = {"questions": tmp_path, "experiments": 3, "model": "openai:m", "llm": LlmOptions(), "seed": 7}
    plan = forecast_verdicts(**given, options=AnsweringOptions())
    assert (plan.stage, plan.model, plan.calls) == ("judged", "openai:m", 12)
    assert plan.prompt_tokens > 12 * 50 and any("not written yet" in one for one in plan.assumptions)
    assert forecast_verdicts(**given, options=AnsweringOptions(limit=2)).calls in (3, 6)
