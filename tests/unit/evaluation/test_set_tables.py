"""One table over several question sets, and its paired tests, on answers that can be counted on the fingers."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from kgqa_core.errors import ArtifactError
from kgqa_core.evaluation.set_tables import FILE, compare_set, knowledge_pairs, model_pairs, tables
from kgqa_core.metrics.significance import holm
from kgqa_core.report import set_tables as report
from kgqa_core.store.artifacts import Home
from kgqa_core.workspace import Workspace
from tests.support.finished import publish, questions, score_frame

ASKED = questions([f"What is thing {n}?" for n in range(10)])
A, B, NONE, RANDOM = "rigel/triples/a", "rigel/triples/b", "none/none/a", "random/triples/a"
BITS = {A: "1111100000", B: "1111111110", NONE: "0000000000", RANDOM: "1000000000"}


def scored(bits: dict[str, str]) -> dict[str, dict[str, dict[str, float]]]:
    return {
        name: {one.id: {"exact": float(bit)} for one, bit in zip(ASKED, own, strict=True)} for name, own in bits.items()
    }


def frame(bits: dict[str, str]) -> pl.DataFrame:
    return score_frame(scored(bits), ASKED)


def test_models_that_read_the_same_are_tested_with_mcnemar_and_an_interval() -> None:
    [row] = compare_set(frame(BITS), model_pairs, seed=1)
    # b answers q5 to q8 more than a and loses none: p = 2 / 2 ** 4
    assert (row["experiment"], row["against"], row["metric"], row["split"]) == (B, A, "exact", "test")
    assert (row["before"], row["after"], row["value"]) == (0.5, 0.9, 0.4)
    assert (row["won"], row["lost"], row["n"], row["p"], row["p_holm"]) == (4, 0, 10, 0.125, 0.125)
    assert 0 < row["low"] < 0.4 < row["high"] < 1


def test_knowledge_is_tested_against_none_and_triples_and_corrected_together() -> None:
    rows = {(row["experiment"], row["against"]): row for row in compare_set(frame(BITS), knowledge_pairs)}
    assert set(rows) == {(RANDOM, NONE), (RANDOM, A), (A, NONE), (A, RANDOM)}
    # p by hand: 1 : 0 → 1; 0 : 4 → 2/16; 5 : 0 → 2/32.  Holm over 4: 4 × 0.0625, then 3 × 0.125 twice, then 1
    found = {pair: (row["p"], row["p_holm"]) for pair, row in rows.items()}
    assert found == {
        (A, NONE): (0.0625, 0.25), (A, RANDOM): (0.125, 0.375), (RANDOM, A): (0.125, 0.375), (RANDOM, NONE): (1.0, 1.0),
    }  # fmt: skip


def test_holm_is_the_step_down_correction() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.04, 0.01]) == pytest.approx([0.04, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0] and holm([]) == [] and holm([0.2]) == [0.2]


def test_questions_that_only_one_model_was_asked_are_not_compared() -> None:
    rows = scored(BITS)
    del rows[B]["q0000"]
    [row] = compare_set(score_frame(rows, ASKED), model_pairs)
    assert row["n"] == 9 and row["before"] == pytest.approx(4 / 9, abs=1e-6)


def cell(value: float) -> dict[str, float | int]:
    return {"value": value, "low": value, "high": value, "n": 10}


@pytest.fixture
def found(tmp_path: Path) -> dict:
    """The table of a set with both models and of one with model a alone; the second set has complexity types."""
    home = Home(tmp_path / "sets").prepare()
    refs: dict[str, dict[str, Path]] = {"scores": {}, "questions": {}}
    for name, bits in (("people", BITS), ("towns", {A: "1100000000", NONE: "1000000000"})):
        scores = {one: {"test": {"exact": cell(own.count("1") / 10)}} for one, own in bits.items()}
        scores["random/-/-"] = {"test": {"hits_at_1": cell(0.1)}}
        types = {A: {"generic": {"exact": cell(0.25)}}, NONE: {"generic": {"exact": cell(0.0)}}}
        aggregates = {
            "scores": scores, "by_complexity": types if name == "towns" else {}, "n_unlinkable": {"test": 2},
            "gain_over_no_knowledge": {A: {"exact": 100.0}} if name == "towns" else {}, "cost": {"not": "kept"},
        }  # fmt: skip
        files = {"scores.parquet": frame(bits).drop("text"), "aggregates.json": aggregates}
        refs["scores"][name] = publish(home, "scores", name, files, {}, "r").folder
        refs["questions"][name] = publish(home, "questions", name, {"questions.parquet": ASKED}, {}, "r").folder
    out = tmp_path / "out"
    out.mkdir()
    counts = tables(Workspace(out), scores=refs["scores"], questions=refs["questions"], seed=1)
    assert counts == {"sets": 2, "experiments": 5, "tests": {"models": 1, "knowledge": 5}}
    return json.loads((out / FILE).read_text(encoding="utf-8"))


def test_sets_are_columns_and_models_with_their_knowledge_rows(found: dict) -> None:
    grid = report.table_1(found, "exact")
    assert grid.columns == ("Model and knowledge", "people", "towns")
    assert [(name, [one and str(one) for one in cells]) for name, cells in grid.rows] == [
        ("a · No knowledge", ["0.0", "10.0"]), ("a · Random facts", ["10.0", None]),
        ("a · Rigel facts", ["50.0", "20.0"]), ("b · Rigel facts", ["90.0", None]),
    ]  # fmt: skip
    assert [name for name, _ in report.retrievers_table(found).rows] == ["Random"]
    by_type = report.table_2(found, "towns", "exact")
    assert by_type.columns == ("Type", "n", "a · No knowledge", "a · Rigel facts")
    assert [(name, cells[0], str(cells[2])) for name, cells in by_type.rows] == [("generic", 10, "25.0")]
    assert report.table_2(found, "people", "exact").rows == ()
    assert found["sets"]["people"].keys() == {
        "scores",
        "by_complexity",
        "n_unlinkable",
        "gain_over_no_knowledge",
        "cost",
    }


def test_the_page_shows_tables_tests_and_failed_sets_and_escapes_names(found: dict) -> None:
    hostile = "<script>x</script>"
    page = report.render(
        report.SetsData(
            title=hostile, description="", tables=found, runs={"people": "run-1", "towns": "run-2"},
            said={"people": "champion stays"}, failed={hostile: f"It burnt: {hostile}"}, environment={"seed": 7},
            configuration=f"name: {hostile}", created="2026",
        )
    )  # fmt: skip
    assert "<script" not in page and "&lt;script&gt;" in page
    for text in (
        'href="../run-1/report.html"', "<td>10 (test)</td><td>10</td><td>2</td>",
        "champion stays", "Failed:", "Table 1 · Exact", "people · Rigel facts: b − a",
        "+40.0 [", "4 / 0", "p = 0.12", "Table 2 · towns · Exact by complexity type", "Random facts", "+100 %",
    ):  # fmt: skip
        assert text in page, text


def test_scores_that_are_gone_are_named_with_their_set(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="question set 'people'"):
        tables(Workspace(tmp_path), scores={"people": tmp_path / "gone"}, questions={"people": tmp_path})
