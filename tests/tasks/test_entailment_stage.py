"""Responses are judged once for each setting, and a classifier that cannot be had costs one message."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from prefect import flow

from kgqa_core.config import EvaluationOptions, make_profile
from kgqa_core.datasets.files.question import write_questions
from kgqa_core.errors import ModelError
from kgqa_core.evaluation.long_tail import read_entailment
from kgqa_core.types import Question
from tasks.engine.run import tracked_run
from tasks.evaluation import entail_all
from tests.support.made import made
from tests.support.models import save_classifier

ASKED = [Question("q", "Where is it?", reference="It is there.")]
OFFLINE = "somebody/model-that-is-not-here"


pytestmark = pytest.mark.usefixtures("prefect_server")


@flow(name="judging")
def judging(options: EvaluationOptions, questions: list[Question], outputs: dict[str, str]) -> Any:
    with tracked_run(make_profile({"kg": {"name": "toy"}})) as run:
        asked = made(run, "questions", f"questions{len(questions)}", lambda out: write_questions(out, questions))
        answers = {
            name: made(
                run,
                "answers",
                f"{name}-{output}".replace(" ", "-").replace("/", "-"),
                lambda out, n=name, o=output: write(out, n, o),
            )
            for name, output in outputs.items()
        }
        return run, entail_all(asked, answers, options)


def write(out: Path, name: str, output: str) -> None:
    retriever, form = name.replace("-", "/").split("/")[:2]
    row = {"question": "q", "retriever": retriever, "format": form, "model": "m", "output": output}
    pl.DataFrame([row]).write_parquet(out / "answers.parquet")


def test_a_setting_is_judged_once(tmp_path: Path) -> None:
    options = EvaluationOptions(nli=str(save_classifier(tmp_path / "model")))
    run, judged = judging(options, ASKED, {"none-none": "It is there."})
    assert set(read_entailment(judged["none-none"].folder)) == {"none/none/m"}
    again, both = judging(options, ASKED, {"none-none": "It is there.", "rigel-triples": "No."})
    assert [stage.status for stage in run.stages] == ["computed"]
    assert [stage.status for stage in again.stages] == ["cached", "computed"]
    assert both["none-none"] == judged["none-none"]


@pytest.mark.slow
def test_other_weights_under_the_same_name_judge_anew(tmp_path: Path) -> None:
    options = EvaluationOptions(nli=str(save_classifier(tmp_path / "model")))
    _, judged = judging(options, ASKED, {"none-none": "It is there."})
    save_classifier(tmp_path / "model", seed=5)
    run, other = judging(options, ASKED, {"none-none": "It is there."})
    assert [stage.status for stage in run.stages] == ["computed"]
    assert other["none-none"].digest != judged["none-none"].digest


def test_a_classifier_that_cannot_be_had_is_said_once_and_fails_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "kgqa"):
        run, judged = judging(EvaluationOptions(nli=OFFLINE), ASKED, {"none-none": "a", "rigel-triples": "b"})
    assert judged == {} and run.stages == []
    said = [record.getMessage() for record in caplog.records if "entailment" in record.getMessage()]
    assert len(said) == 1 and f"{OFFLINE} is not on this machine" in said[0] and "left out" in said[0]
    assert run.decisions["nli"].startswith("left out")


@pytest.mark.slow
def test_without_references_nothing_is_judged_or_fetched(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "kgqa"):
        _, judged = judging(
            EvaluationOptions(nli=OFFLINE), [Question("q", "?"), Question("p", "?")], {"none-none": "a"}
        )
    assert judged == {} and "no question has a reference" in caplog.text
    assert judging(EvaluationOptions(), ASKED, {"none-none": "a"})[1] == {}


def test_a_folder_that_is_no_classifier_is_the_users_fault(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no config"):
        judging(EvaluationOptions(nli=str(tmp_path)), ASKED, {"none-none": "a"})


@pytest.mark.slow
def test_answers_of_two_answerers_with_the_same_knowledge_are_judged_apart(tmp_path: Path) -> None:
    options = EvaluationOptions(nli=str(save_classifier(tmp_path / "model")))
    outputs = {"rigel/triples": "It is there.", "rigel/triples/auto": "No."}
    run, judged = judging(options, ASKED, outputs)
    assert [stage.title.split()[-1] for stage in run.stages] == list(outputs)
    assert set(judged) == set(outputs) and len({ref.path for ref in judged.values()}) == 2
