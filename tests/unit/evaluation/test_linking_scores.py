"""What linking finds and costs, on scores whose every number is known."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from kgqa_core.config import EvaluationOptions
from kgqa_core.datasets.derived.splits import leakage, write_leakage
from kgqa_core.datasets.files.question import write_questions
from kgqa_core.evaluation.experiment_tables import linking_costs, score_links
from kgqa_core.evaluation.labels import LINKS
from kgqa_core.evaluation.score import ScoringInputs, score
from kgqa_core.types import Question
from kgqa_core.workspace import Workspace

from .test_score import BERGEN, CAPITAL, FRANCE, NORWAY, OSLO, PARIS, make_kg, question, write_answers, write_facts

QUESTIONS = [
    question("train1", "Paris", PARIS, FRANCE, split="train", relation_paths=CAPITAL),
    question("q1", "Paris", PARIS, FRANCE),
    question("q2", "Oslo", OSLO, NORWAY),
    question("q3", "Oslo", OSLO, NORWAY),
    Question(id="q4", text="?", answer_names=(("Atlantis",),), unlinkable="topic entity 'Atlantis' is not there"),
]
FOUND = {"q1": (FRANCE,), "q2": (FRANCE, NORWAY), "q3": (), "q4": (PARIS,), "train1": (FRANCE,)}


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """A `linked` artifact: q1 right, q2 half right, q3 found only below the threshold."""
    folder = tmp_path / "linked"
    folder.mkdir()
    write_questions(folder, [Question(id=name, text="?", topic_entities=own) for name, own in FOUND.items()])
    rows = [(name, entity, 0.5) for name, own in FOUND.items() for entity in own]
    rows += [("q3", PARIS, 0.2), ("q3", NORWAY, 0.1)]
    schema = {"question": pl.String, "entity": pl.Int64, "rho": pl.Float64}
    pl.DataFrame(rows, schema=schema, orient="row").write_parquet(folder / "links.parquet")
    return folder


def test_links_by_hand(linked: Path) -> None:
    scores = score_links(linked, QUESTIONS)
    assert set(scores) == {"q1", "q2", "q3"}  # q4 has no gold topic in the graph, training questions are not scored
    assert scores["q1"] == dict.fromkeys(("link_precision", "link_recall", "link_f1", "link_recall_at_5"), 1.0)
    assert scores["q2"] == {
        "link_precision": 0.5, "link_recall": 1.0, "link_f1": pytest.approx(2 / 3), "link_recall_at_5": 1.0,
    }  # fmt: skip
    assert scores["q3"] == {"link_precision": 0.0, "link_recall": 0.0, "link_f1": 0.0, "link_recall_at_5": 1.0}


def test_the_loss_is_gold_less_linked_with_its_interval() -> None:
    asked = [Question(id=f"q{n}", text="?") for n in range(40)]
    gold = {one.id: {"hits_at_1": 1.0} for one in asked}
    found = {one.id: {"hits_at_1": float(n >= 4)} for n, one in enumerate(asked)}
    [row] = linking_costs({"rigel/-/-": gold, "rigel@linked/-/-": found, "random/-/-": gold}, asked)
    assert (row["experiment"], row["against"], row["split"]) == ("rigel@linked/-/-", "rigel/-/-", "test")
    assert (row["gold"], row["linked"], row["loss"], row["n"]) == (1.0, 0.9, pytest.approx(0.1), 40)
    assert (row["only_gold"], row["only_linked"]) == (4, 0)
    assert 0 < row["low"] < 0.1 < row["high"] < 0.3
    assert row["p"] == pytest.approx(0.125)


def test_a_linked_experiment_without_its_gold_one_is_compared_with_nothing() -> None:
    asked = [Question(id="q", text="?")]
    assert linking_costs({"rigel@linked/-/-": {"q": {"hits_at_1": 1.0}}}, asked) == []


def test_scores_hold_links_and_costs_beside_the_experiments(tmp_path: Path, linked: Path) -> None:
    folders = {name: tmp_path / name for name in ("questions", "gold", "found", "told", "told_linked", "out", "plain")}
    for folder in folders.values():
        folder.mkdir()
    write_questions(folders["questions"], QUESTIONS)
    write_leakage(folders["questions"], leakage(QUESTIONS))
    best = [("q1", 0, PARIS), ("q2", 0, OSLO), ("q3", 0, OSLO)]
    write_facts(folders["gold"], facts=[("q1", 0)], entities=best)
    write_facts(folders["found"], facts=[("q1", 0)], entities=[*best[:1], ("q2", 0, BERGEN)])
    outputs = {"q1": "Paris", "q2": "Oslo", "q3": "Oslo"}
    write_answers(folders["told"], "rigel", "triples", outputs)
    write_answers(folders["told_linked"], "rigel@linked", "triples", {**outputs, "q2": "Bergen"})
    given = {
        "kg": make_kg(tmp_path / "kg"),
        "questions": folders["questions"],
        "facts": {"rigel": folders["gold"], "rigel@linked": folders["found"]},
        "answers": {"rigel/triples": folders["told"], "rigel@linked/triples": folders["told_linked"]},
    }
    options = EvaluationOptions(bootstrap=100)
    score(Workspace(folders["out"]), ScoringInputs(**given, linked=linked), options, 7)
    found = json.loads((folders["out"] / "aggregates.json").read_text())
    assert found["scores"][LINKS]["test"]["link_recall"] == {
        **found["scores"][LINKS]["test"]["link_recall"], "value": pytest.approx(2 / 3, abs=1e-6), "n": 3,
    }  # fmt: skip
    losses = {(row["experiment"], row["metric"]): row for row in found["linking"]}
    assert losses["rigel@linked/-/-", "hits_at_1"]["loss"] == pytest.approx(0.5)
    assert losses["rigel@linked/triples/builtin", "exact"]["loss"] == pytest.approx(0.25)
    frame = pl.read_parquet(folders["out"] / "scores.parquet").filter(pl.col("experiment") == LINKS)
    assert frame.height == 12

    score(Workspace(folders["plain"]), ScoringInputs(**given), options, 7)
    plain = json.loads((folders["plain"] / "aggregates.json").read_text())
    assert "linking" not in plain and LINKS not in plain["scores"]
    assert plain["scores"].items() <= found["scores"].items()
