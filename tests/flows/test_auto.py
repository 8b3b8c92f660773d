"""The answerer `auto` from a graph alone, through `run`, `ask` and `answer`."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pytest

from kgqa_core.report.page import GENERATED_SCORES
from kgqa_core.system import System
from tests.flows.test_answerability import metrics
from tests.support.films_home import films_home
from tests.support.forked_command import forked_kgqa


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a run over a graph of films and countries, without a question file."""
    return films_home(tmp_path_factory, "auto")


def test_the_report_the_aggregates_and_the_tracker_say_which_road_answered(home: Path) -> None:
    shown = forked_kgqa("report", "--home", home)
    assert shown.code == 0 and "Answered by  auto, HopPath facts" in shown.out, shown.err[-3000:]
    [folder] = (home / "runs").iterdir()
    record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    [(experiment, roads)] = record["aggregates"]["by_road"].items()
    assert experiment.endswith("/auto") and roads["labels"]["exact"]["n"] >= 1
    assert sum(own["share"]["value"] for own in roads.values()) == pytest.approx(1, abs=1e-5)
    assert all(own["share"]["n"] == 12 for own in roads.values()), "answering.limit"
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Which road answered" in page and GENERATED_SCORES in page
    assert "<b><bdi>auto</bdi></b> · HopPath facts" in page and "<b><bdi>builtin</bdi></b> · HopPath facts" in page
    value = metrics(home, record["run_id"])[f"{experiment.replace('@', '_')}/road labels/exact"]
    assert value == roads["labels"]["exact"]["value"]


def test_the_answers_of_both_answerers_are_among_the_predictions(home: Path) -> None:
    [folder] = (home / "runs").iterdir()
    table = pl.read_parquet(folder / "predictions.parquet").filter(
        pl.col("experiment").str.contains("hop_path.*/triples/")
    )
    answers = dict(table.group_by("experiment").agg(pl.col("answer").is_not_null().sum()).iter_rows())
    assert {name.rpartition("/")[2]: n for name, n in answers.items()} == {"auto": 12, "builtin": 12}


def test_a_question_in_own_words_is_answered_with_proof_and_confidence(home: Path) -> None:
    asked = forked_kgqa("ask", "hey, whats the capital of norland", "--home", home, "--json")
    assert asked.code == 0, asked.err[-3000:]
    reply = asked.json
    assert reply["answers"] == ["Norland City"] and reply["answer"] == "Norland City" and reply["model"] == "auto"
    assert reply["proof"] and reply["road"] in ("labels", "retriever") and 0.5 <= reply["confidence"] <= 1


def test_threads_that_ask_a_run_get_what_they_get_one_after_the_other(home: Path) -> None:
    asked = pl.read_parquet(next((home / "runs").iterdir()) / "predictions.parquet")["question"].unique().to_list()[:4]
    system = System.from_run(home)
    alone = [system.ask(text) for text in asked]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(system.ask, asked * 2)) == alone * 2


def test_a_question_that_the_graph_cannot_answer_is_declined_with_the_reason(home: Path) -> None:
    asked = forked_kgqa("ask", "Who is the president of Norland?", "--home", home, "--json")
    assert asked.code == 0, asked.err[-3000:]
    assert asked.json["answer"] is None and asked.json["answers"] == [] and asked.json["answerable"] is False
    assert asked.json["readings"] if asked.json["reason"] == "not sure" else "president" in asked.json["missing"]
