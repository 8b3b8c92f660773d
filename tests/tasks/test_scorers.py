"""Metrics as scorers of MLflow: hand-computed values, of answers and of plain texts."""

from __future__ import annotations

from typing import Any

import pytest

from kgqa_core.errors import InputError
from tasks.tracking.scorers import ANSWERED, METRICS, gold_answers, output_text, predict_with, scorers

ANSWER = {"answer": "Suva, Lami", "answers": ["Suva", "Lami"]}
DECLINED = {"answer": None, "answers": []}


@pytest.mark.parametrize(
    ("outputs", "gold", "expected"),
    [
        (ANSWER, ["Suva", "Lami"], {"exact": 1, "contains": 1, "hits_at_1": 1, "f1": 1, ANSWERED: 1, "ekm": 1}),
        (ANSWER, ["Lami"], {"exact": 0, "contains": 1, "hits_at_1": 0, "f1": 2 / 3, ANSWERED: 1, "ekm": 1}),
        (ANSWER, [["Suva City", "Suva"], "Nadi"], {"exact": 0, "hits_at_1": 1, "f1": 0.5, "km": 1, "rkm": 0.5}),
        (DECLINED, ["Suva"], {"exact": 0, "contains": 0, "hits_at_1": 0, "f1": 0, ANSWERED: 0}),
        ("It is Suva.", ["Suva"], {"exact": 0, "contains": 1, "f1": 0, ANSWERED: 1}),
        ("I don't know.", ["Suva"], {"contains": 0, ANSWERED: 0}),
        (None, ["Suva"], {"contains": 0, ANSWERED: 0}),
    ],
)
def test_scorers_give_our_metrics(outputs: Any, gold: list[Any], expected: dict[str, float]) -> None:
    found = {one.name: one(outputs=outputs, expectations={"answers": gold}) for one in scorers(list(expected))}
    assert found == pytest.approx(expected)


def test_every_metric_of_a_text_is_a_scorer_and_an_unknown_one_is_named() -> None:
    assert [one.name for one in scorers(list(METRICS))] == list(METRICS)
    with pytest.raises(InputError, match=r"no metric 'f2'; there are .*; did you mean 'f1'"):
        scorers(["f2"])


@pytest.mark.parametrize("wrong", [None, {}, {"answers": []}, {"answers": "Suva"}])
def test_a_row_without_gold_answers_is_refused(wrong: Any) -> None:
    with pytest.raises(InputError, match="expectations.answers is"):
        gold_answers(wrong)


def test_a_system_is_asked_for_the_inputs_of_a_row() -> None:
    class Model:
        def predict(self, request: dict[str, Any]) -> dict[str, Any]:
            self.request = request
            return {"custom_outputs": {"answer": ANSWER}}

    model = Model()
    predict = predict_with(model)
    assert output_text(predict(question="Towns of Fiji?")) == "Suva, Lami"
    assert model.request == {"input": [{"role": "user", "content": "Towns of Fiji?"}]}
    predict(question="Towns?", topics=["Fiji"])
    assert model.request["custom_inputs"] == {"topics": ["Fiji"]}
