"""The benchmark of `auto`: what counts as exact, which wordings are new, and a table that only repeats the JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from benchmarks.answers import auto_experiments as experiments
from benchmarks.answers import auto_figures as figures
from benchmarks.answers.people import among_ten, ece_of_chance, share
from kgqa_core.config import SymbolicOptions
from kgqa_core.logic.parser import parse
from kgqa_core.search.graph import LabelGraph
from kgqa_core.symbolic.auto import AutoSolver
from kgqa_core.symbolic.by_labels.model import LabelModel
from kgqa_core.symbolic.by_labels.scorer import LabelScorer
from kgqa_core.symbolic.tables import ComputedAnswer
from kgqa_core.types import Question
from tests.support.label_graph import Preferring, X, question_about

TWINS = Question("1", "Where is London?", answer_keys=("gb", "ca"), answer_names=(("London",), ("London",)))
AREA = Question("2", "How large is Malta?", answer_type="number", answer_keys=("316",), answer_names=(("316",),))


def test_an_entity_is_compared_by_key_and_the_whole_set_is_needed() -> None:
    assert figures.is_exact(TWINS, ("ca", "gb"), ("London",))
    assert not figures.is_exact(TWINS, ("gb",), ("London",))
    assert not figures.is_exact(TWINS, ("ca", "gb", "us"), ("London",))


@pytest.mark.parametrize(("answer", "exact"), [("316", True), ("316.0", True), ("3,16e2", False), ("317", False)])
def test_a_number_is_compared_by_its_value(answer: str, exact: bool) -> None:
    assert figures.is_exact(AREA, ("literal",), (answer,)) is exact


def test_nothing_is_neither_exact_nor_a_hit() -> None:
    nothing = Question("3", "?")
    assert not figures.is_exact(nothing, (), ()) and not figures.is_hit(nothing, ()) and not figures.is_hit(TWINS, ())


def test_calibration_error_by_chance_falls_with_the_number_of_answers() -> None:
    few, many = ece_of_chance([0.6, 0.9] * 10), ece_of_chance([0.6, 0.9] * 1000)
    assert few is not None and many is not None and 0.05 < few < 0.2 and many < 0.02
    assert ece_of_chance([]) is None and ece_of_chance([1.0] * 5) == 0


def test_only_the_first_answer_is_a_hit() -> None:
    assert figures.is_hit(TWINS, ("ca", "us"))
    assert not figures.is_hit(TWINS, ("us", "ca")) and figures.names_gold(TWINS, ("us", "ca"))


def test_a_form_has_the_gold_path_in_one_direction_only() -> None:
    question = Question("4", "Who was born in Paris?", relation_paths=(("<inv>-P19",),))
    assert figures.has_gold_path(question, parse("(JOIN P19 Q90)"))
    assert not figures.has_gold_path(question, parse("(JOIN (R P19) Q90)"))
    assert not figures.has_gold_path(question, parse("(AND (JOIN P19 Q90) (JOIN P20 Q90))"))
    assert not figures.has_gold_path(question, None)


def test_a_wording_is_that_of_the_sentence_with_most_words_of_its_own() -> None:
    seen, unseen = ["What is {x}?"], ["What is the seat of {x}?"]
    assert figures.wording_of("What is Peru?", seen, unseen) == figures.SEEN
    assert figures.wording_of("what is the seat of Peru?", seen, unseen) == figures.UNSEEN
    assert figures.wording_of("Where is Peru?", seen, unseen) is None


def test_figures_count_declined_questions_as_wrong_and_leave_them_out_of_the_calibration() -> None:
    solved = [
        ComputedAnswer("1", "none", answers=("London",), keys=("gb", "ca"), confidence=1.0),
        ComputedAnswer("2", "none", confidence=0.1),
    ]
    found = figures.figures([TWINS, AREA], solved, {"type": lambda question: question.answer_type})
    assert (found["exact"]["share"], found["declined"]["share"], found["exact_of_answered"]["share"]) == (0.5, 0.5, 1.0)
    assert found["ece"] == 0.0
    assert {kind: own["share"] for kind, own in found["exact_by_type"].items()} == {"entities": 1.0, "number": 0.0}


def test_the_table_shows_what_the_json_holds() -> None:
    part: dict[str, Any] = {
        "questions": 4, "exact": share([True, True, True, False]), "ece": None, "declined": share([False] * 4),
        "exact_by_type": {"yes/no": share([True])}, "random_candidate": share([False]),
        "milliseconds": {"p50": 12.5, "p99": 40.0, "n": 4},
    }  # fmt: skip
    results = {"atlas": {"parts": {"gold topics": part}}, "mintaka": {"parts": {"other": {"skipped": "no file"}}}}
    lines = figures.table(results, {"atlas/gold topics/exact": "≥ .9"}).splitlines()
    assert lines[2] == ("| atlas, gold topics: exact | .750 [.326, 1.000] | .000 [.000, .000] | ≥ .9 | 4 | 12.5 / 40 |")
    assert lines[3] == "| atlas, gold topics: yes/no | 1.000 [1.000, 1.000] | – | – | 1 | – |"
    assert lines[4].startswith("| atlas, gold topics: declined | .000")
    assert lines[-1] == "| mintaka, other: not measured, no file | – | – | – | – | – |"
    assert len(lines) == 6


def test_every_target_is_of_a_figure_that_the_table_shows() -> None:
    results: dict[str, Any] = {}
    for name in figures.TARGETS:
        experiment, part, place = name.split("/", 2)
        values = results.setdefault(experiment, {"parts": {}})["parts"].setdefault(part, {"questions": 4})
        *groups, figure = place.split("/")
        for group in groups:
            values = values.setdefault(group, {})
        values[figure] = 0.02 if figure == "ece" else share([True] * 4)
    cells = [[cell.strip() for cell in line.split("|")] for line in figures.table(results).splitlines()[2:]]
    shown = {f"{row[1]} {row[4]}" for row in cells if row[4] != "–"}
    assert len(shown) == len(figures.TARGETS) == 16
    assert "atlas, gold topics: unseen wording ≥ .90" in shown
    assert "metaqa, generated alone, 3 hops: Hits@1 ≥ .85" in shown
    assert "people_locked, locked, wikidata_mini: gold answer named ≥ .65" in shown
    for graph in ("atlas", "wikidata_mini"):
        for figure in ("declined of unanswerable ≥ .90", "wrongly declined ≤ .05", "ECE ≤ .08"):
            assert f"people_locked, locked, {graph}: {figure}" in shown


def test_every_target_is_of_a_part_that_its_experiment_has(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("Answering", "KgStore", "_scored", "_atlas", "_people"):
        monkeypatch.setattr(experiments, name, MagicMock(return_value=MagicMock()))
    monkeypatch.setattr(experiments, "_scored", lambda *args, **more: {"never_declining": {}})
    work = MagicMock(people_set="locked")
    for title in {name.split("/")[0] for name in figures.TARGETS}:
        parts = {part for part, _ in experiments.EXPERIMENTS[title.removesuffix("_locked")](work)}
        assert {name.split("/")[1] for name in figures.TARGETS if name.split("/")[0] == title} <= parts


def test_the_page_has_the_table_as_the_json_gives_it() -> None:
    root = Path(__file__).resolve().parents[3]
    results = json.loads((root / "benchmarks" / "results" / "auto.json").read_text(encoding="utf-8"))["results"]
    assert figures.table(results) in (root / "docs" / "auto.md").read_text(encoding="utf-8")


def test_a_right_answer_is_among_ten_where_any_of_the_plans_finds_it(graph: LabelGraph, scorer: LabelScorer) -> None:
    solver = AutoSolver(graph.store, SymbolicOptions(), LabelModel(scorer.network, 2))
    solver.parser = Preferring(solver.graph, scorer)
    question = question_about(solver.graph, "q", "what is the capital of Norland?", X + "c0")
    gold = [["Norland City"], ["Nowhere"], []]
    rows = [{"answerable": bool(names), "answers": names, "type": "direct"} for names in gold]
    assert among_ten(rows, solver, [question] * 3) == [True, False]
