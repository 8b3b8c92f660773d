"""Answers are judged by a language model once for each setting, and the verdicts are a column of the scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from prefect import flow

from kgqa_core.config import make_profile
from kgqa_core.datasets.files.question import write_questions
from kgqa_core.evaluation.judge import read_judged
from kgqa_core.types import Question
from tasks.engine.run import tracked_run
from tasks.evaluation import judge_all
from tests.support.chat_server import ChatServer
from tests.support.made import made

QUESTIONS = [Question("q", "Where is it?", split="test", answer_names=(("Oslo",),))]


pytestmark = pytest.mark.usefixtures("prefect_server")


def write(out: Path, form: str, output: str) -> None:
    row = {"question": "q", "retriever": "rigel", "format": form, "model": "m", "output": output}
    pl.DataFrame([row]).write_parquet(out / "answers.parquet")


@flow(name="judging-answers")
def judging(profile: Any, outputs: dict[str, str]) -> Any:
    with tracked_run(profile) as run:
        questions = made(run, "questions", "questions", lambda out: write_questions(out, QUESTIONS))
        answers = {
            f"rigel/{form}": made(run, "answers", f"{form}-{output}", lambda out, f=form, o=output: write(out, f, o))
            for form, output in outputs.items()
        }
        return run, judge_all(questions, answers, profile.evaluation, profile.llm)


def test_answers_are_judged_once_and_nothing_is_asked_without_a_judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KGQA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    outputs = {"triples": "Norway's capital", "template": "Rome"}
    with ChatServer(lambda prompt: "yes" if "Norway" in prompt else "no") as server:
        given = {"kg": {"name": "toy"}, "llm": {"base_url": server.base_url}}
        assert judging(make_profile(given), outputs)[1] == {} and not server.prompts
        profile = make_profile({**given, "evaluation": {"judge": "openai:judge"}})
        run, judged = judging(profile, outputs)
        assert {name: read_judged(ref.folder) for name, ref in judged.items()} == {
            "rigel/triples": {"rigel/triples/m": {"q": 1.0}}, "rigel/template": {"rigel/template/m": {"q": 0.0}},
        }  # fmt: skip
        assert [stage.name for stage in run.stages][-2:] == ["judged/rigel/triples", "judged/rigel/template"]
        assert judging(profile, outputs)[1] == judged and len(server.prompts) == 2
