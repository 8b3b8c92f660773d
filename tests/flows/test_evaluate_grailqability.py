"""`kgqa evaluate --benchmark grailqability`: predictions on the published files, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command import Outcome
from tests.support.forked_command import forked_kgqa
from tests.unit.datasets.published.test_grailqability import FORM, files, question


@pytest.fixture
def predictions(tmp_path: Path) -> Path:
    """Of the dev questions 3 (right), 4 (another form that finds nothing) and 5 (missing), and of another question."""
    rows = {
        "3": {"logical_form": FORM, "answer": ["m.02"]},
        "4": {"logical_form": "(JOIN film.actor.film m.07)", "answer": []},
        "77": {"logical_form": "", "answer": []},
    }
    path = tmp_path / "predictions.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    return path


def evaluate(*words: object) -> Outcome:
    return forked_kgqa("evaluate", "--benchmark", "grailqability", *words)


def test_rows_are_those_of_the_groups_and_what_does_not_count_is_said(tmp_path: Path, predictions: Path) -> None:
    data = files(tmp_path / "data")
    (data / "GrailQAbility_v1.0_test_a_na_reference.json").write_text(json.dumps([question(8, qType="X"), question(9)]))
    done = evaluate("--data", data, "--predictions", predictions, "--split", "dev", "--json")
    assert done.code == 0, done.err
    rows = {row["group"]: row for row in done.json["scores"]}
    assert (rows["all"]["questions"], rows["all"]["F1(R)"], rows["all"]["EM"]) == (3, 66.67, 33.33)
    assert (rows["A"]["EM"], rows["U"]["F1(L)"], rows["NK"]["EM"], rows["type drop"]["EM"]) == (100.0, 50.0, 0.0, 0.0)
    assert (done.json["without_prediction"], done.json["other_predictions"], len(done.json["rejects"])) == (1, 1, 1)
    assert "left out: " in done.err and "row 1 (8): field 'qType' must be one of A" in done.err
    assert "1 predictions are of no dev question" in done.err and "--ontology DIR" in done.err


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (("--split", "tests"), "--split 'tests' is not known"),
        (("--rules", "papers"), "--rules 'papers' is not known"),
        (("--split", "train"), "no prediction is of the 2 train questions"),
        (("--ontology", "nowhere"), "fb_roles is not there"),
        (("--questions", "q.jsonl"), "takes --data, not --questions or --kg: 'q.jsonl'"),
    ],
)
def test_bad_options_are_refused(tmp_path: Path, predictions: Path, words: tuple[str, ...], fault: str) -> None:
    more = ("--split", "dev") if "--split" not in words else ()
    done = evaluate("--data", files(tmp_path / "data"), "--predictions", predictions, *more, *words)
    assert (done.code, fault in done.err) == (2, True), done.err


def test_a_benchmark_that_is_not_known_and_data_that_is_not_given_are_refused(predictions: Path) -> None:
    done = forked_kgqa("evaluate", "--benchmark", "grailqa", "--predictions", predictions)
    assert done.code == 2 and "--benchmark 'grailqa' is not known" in done.err
    done = evaluate("--predictions", predictions)
    assert done.code == 2 and "needs --data" in done.err
