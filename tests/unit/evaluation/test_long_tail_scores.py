"""Scores of long-tail questions on hand-made artifacts, and that other data sets keep the scores they had."""

import json
from pathlib import Path

import polars as pl
import pytest

from kgqa_core.config import EvaluationOptions
from kgqa_core.datasets.derived.splits import leakage, write_leakage
from kgqa_core.datasets.files.question import write_questions
from kgqa_core.evaluation.score import ScoringInputs, score
from kgqa_core.types import Question
from kgqa_core.workspace import Workspace
from tests.unit.evaluation.test_score import BERGEN, FRANCE, NORWAY, OSLO, PARIS, make_kg, write_answers

CITIES = (("Norway", "capital", "Oslo"), ("Norway", "capital", "Bergen"))
QUESTIONS = [
    Question("q1", "Which cities?", topic_entities=(NORWAY,), answers=(OSLO, BERGEN), level="I", gold_triples=CITIES,
             answer_names=(("Oslo", "Christiania"), ("Bergen",)), reference="Oslo and Bergen."),
    Question("q2", "Whose capital is it?", topic_entities=(PARIS,), answers=(FRANCE,), level="IV",
             gold_triples=(("France", "capital", "Paris"), ("Norway", "capital", "Oslo")),
             answer_names=(("France",),), reference="France."),
    Question("q3", "What is lost?", topic_entities=(FRANCE,), level="IV",
             gold_triples=(("Atlantis", "capital", "Paris"),),
             answer_names=(("Atlantis",),), reference="Atlantis.", unlinkable="'Atlantis' is not in this graph"),
    Question("q4", "What is said?", topic_entities=(FRANCE,), level="IV", reference="Much."),
]  # fmt: skip
JUDGED = {"nli_entailment": 0.75, "nli_contradiction": 0.25, "nli_overall": 0.5}


def write_facts(folder: Path, facts: list[tuple[str, int, int, int]]) -> None:
    schema = {"question": pl.String, "rank": pl.Int32, "triple": pl.Int64, "direction": pl.Int8}
    pl.DataFrame(facts, schema=schema, orient="row").write_parquet(folder / "facts.parquet")
    schema = {"question": pl.String, "rank": pl.Int32, "entity": pl.Int64}
    pl.DataFrame([], schema=schema, orient="row").write_parquet(folder / "entities.parquet")


def write_entailment(folder: Path, questions: tuple[str, ...], experiment: tuple[str, str, str]) -> None:
    columns = dict.fromkeys(("question", "retriever", "format", "model"), pl.String)
    rows = [(question, *experiment, *JUDGED.values()) for question in questions]
    pl.DataFrame(rows, schema=columns | dict.fromkeys(JUDGED, pl.Float64), orient="row").write_parquet(
        folder / "entailment.parquet"
    )


@pytest.fixture
def artifacts(tmp_path: Path) -> dict[str, Path]:
    folders = {name: tmp_path / name for name in ("questions", "facts", "answers", "judged", "out")}
    for folder in folders.values():
        folder.mkdir()
    return folders | {"kg": make_kg(tmp_path / "kg")}


def run(artifacts: dict[str, Path], questions: list[Question], retriever: str = "rigel", **extra: object) -> dict:
    write_questions(artifacts["questions"], questions)
    write_leakage(artifacts["questions"], leakage(questions))
    # triples: 0 France capital Paris, 1 Norway capital Oslo, 2 Norway capital Bergen
    write_facts(artifacts["facts"], [("q1", 0, 0, 1), ("q1", 1, 2, 1), ("q2", 0, 0, 1), ("q2", 1, 2, -1)])
    write_answers(artifacts["answers"], retriever, "triples", {"q1": "Christiania it was.", "q2": "It is France."})
    inputs = ScoringInputs(
        kg=artifacts["kg"],
        questions=artifacts["questions"],
        facts={retriever: artifacts["facts"]},
        answers={"x": artifacts["answers"]},
        **extra,
    )
    score(Workspace(artifacts["out"]), inputs, EvaluationOptions(bootstrap=100), 7)
    return json.loads((artifacts["out"] / "aggregates.json").read_text())


def value(cell: dict) -> tuple[float, int]:
    return cell["value"], cell["n"]


def test_knowledge_match_counts_the_questions_that_have_answers(artifacts: dict[str, Path]) -> None:
    cells = run(artifacts, QUESTIONS)["scores"]["rigel/triples/builtin"]["test"]
    # q1 names one of two, q2 its only one, q3 is not linked, q4 has no answers
    assert {name: value(cells[name]) for name in ("km", "rkm", "ekm")} == {
        "km": (0.666667, 3),
        "rkm": (0.5, 3),
        "ekm": (0.333333, 3),
    }
    assert cells["exact"]["n"] == 4


def test_pair_recall_by_hand(artifacts: dict[str, Path]) -> None:
    aggregates = run(artifacts, QUESTIONS)
    # q1: one pair, held; q2: the inverse pair of Paris is held by France's triple, and Norway's by its second fact;
    # q3: its entity is not in the graph; q4 is not annotated
    assert value(aggregates["scores"]["rigel/-/-"]["test"]["pair_recall"]) == (0.666667, 3)
    frame = pl.read_parquet(artifacts["out"] / "scores.parquet").filter(pl.col("metric") == "pair_recall")
    assert dict(frame.select("question", "value").iter_rows()) == {"q1": 1.0, "q2": 1.0, "q3": 0.0}


def test_pairs_are_told_in_the_order_of_the_facts(artifacts: dict[str, Path]) -> None:
    steps = run(artifacts, QUESTIONS)["recall_by_k"]["rigel/-/-"]
    # q1 tells France's pair first, then Norway's; q2 France's, then Bergen's inverse one
    assert {k: value(cell) for k, cell in steps.items() if k in ("1", "2", "50")} == {
        "1": (0.166667, 3),
        "2": (0.666667, 3),
        "50": (0.666667, 3),
    }


def test_breakdowns_by_level_and_by_number_of_reference_triples(artifacts: dict[str, Path]) -> None:
    aggregates = run(artifacts, QUESTIONS)
    levels = aggregates["by_level"]["rigel/triples/builtin"]
    assert {name: value(cells["km"]) for name, cells in levels.items()} == {"I": (1.0, 1), "IV": (0.5, 2)}
    assert list(levels) == ["I", "IV"]
    alone = aggregates["by_triples"]["rigel/-/-"]
    assert {name: value(cells["pair_recall"]) for name, cells in alone.items()} == {"1": (0.0, 1), "2": (1.0, 2)}


def test_more_than_three_reference_triples_are_one_group_after_the_others(artifacts: dict[str, Path]) -> None:
    triples = tuple(("Norway", f"r{n}", "Oslo") for n in range(5))
    asked = [Question(f"q{n}", f"{n}?", topic_entities=(NORWAY,), gold_triples=triples[:n]) for n in range(1, 6)]
    groups = run(artifacts, asked)["by_triples"]["rigel/-/-"]
    assert [(name, cells["hits_at_1"]["n"]) for name, cells in groups.items()] == [
        ("1", 1), ("2", 1), ("3", 1), (">3", 2)
    ]  # fmt: skip


def test_judgements_are_scores_and_a_lost_answer_has_zeros(artifacts: dict[str, Path]) -> None:
    write_entailment(artifacts["judged"], ("q1", "q2", "q3"), ("rigel", "triples", "builtin"))
    aggregates = run(artifacts, QUESTIONS, entailment={"x": artifacts["judged"]})
    cells = aggregates["scores"]["rigel/triples/builtin"]["test"]
    # q3 is not linked, q4 has no answer: two of four
    assert {name: value(cells[name]) for name in JUDGED} == {name: (given / 2, 4) for name, given in JUDGED.items()}
    assert value(aggregates["by_level"]["rigel/triples/builtin"]["I"]["nli_overall"]) == (0.5, 1)


def test_other_data_sets_keep_the_scores_that_they_had(artifacts: dict[str, Path]) -> None:
    plain = [Question("q1", "?", topic_entities=(NORWAY,), answers=(OSLO,), answer_names=(("Oslo",),),
                      relation_paths=(("capital",),), complexity="generic", hops=1)]  # fmt: skip
    aggregates = run(artifacts, plain)
    assert set(aggregates["scores"]["rigel/triples/builtin"]["test"]) == {
        "contains", "contains_substring", "exact", "f1", "hit_rra", "hit_rra_substring", "hits_at_1"
    }  # fmt: skip
    assert "pair_recall" not in aggregates["scores"]["rigel/-/-"]["test"]
    assert not {"by_level", "by_triples", "recall_by_k"} & set(aggregates)


def test_rankers_of_relations_are_measured_by_the_paths_of_any_data_set(artifacts: dict[str, Path]) -> None:
    plain = [Question("q1", "?", topic_entities=(NORWAY,), answers=(OSLO,), relation_paths=(("capital",), ("city",)))]
    aggregates = run(artifacts, plain, retriever="rank_pair@linked")
    assert value(aggregates["scores"]["rank_pair@linked/-/-"]["test"]["pair_recall"]) == (0.5, 1)
