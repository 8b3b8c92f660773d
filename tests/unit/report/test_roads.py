"""Which road answered: the table of the report, the road of an example, and the line on the console."""

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from kgqa_core.report.data import ExampleOutput
from kgqa_core.report.page import render
from kgqa_core.report.roads import road_line, road_tables
from tests.support.hostile import EVIL, Dangers, dangers
from tests.unit.report.fake import cell, currency, fake_aggregates, fake_report
from tests.unit.report.test_examples import folders, gather

__all__ = ["folders"]  # a fixture

AUTO = "rigel/triples/auto"


def fake_roads(*more: str) -> dict:
    """Aggregates of a run whose `auto` answered 60 + 20 of 120 questions."""
    roads = {
        "labels": {"share": cell(0.5, 120), "exact": cell(0.85, 60), "confidence": cell(0.9, 60)},
        "retriever": {"share": cell(20 / 120, 120), "exact": cell(0.7, 20), "confidence": cell(0.75, 20)},
        "declined": {"share": cell(40 / 120, 120), "confidence": cell(0.2, 40)},
    }
    shares = dict(zip(roads, (0.05, 0.0, 0.25), strict=True))
    roads = {name: own | {"not_in_graph": cell(shares[name], own["confidence"]["n"])} for name, own in roads.items()}
    return fake_aggregates(("auto", "builtin")) | {"by_road": dict.fromkeys((AUTO, *more), roads)}


def test_the_table_has_a_row_for_each_road_and_one_for_what_was_declined() -> None:
    [grid] = road_tables(fake_roads())
    assert grid.title == "auto, Rigel facts"
    assert grid.columns == ("Road", "n", "Share of questions", "Exact", "Mean confidence", "Not in the graph")
    shown = [(road, *(None if one is None else str(one) for one in cells)) for road, cells in grid.rows]
    assert shown == [
        ("labels", "60", "50.0", "85.0", "90.0", "3"),
        ("retriever", "20", "16.7", "70.0", "75.0", "0"),
        ("declined", "40", "33.3", None, "20.0", "10"),
    ]


def test_rows_have_the_order_of_the_roads_though_files_have_that_of_the_names() -> None:
    aggregates = json.loads(json.dumps(fake_roads(), sort_keys=True))
    assert list(aggregates["by_road"][AUTO]) == ["declined", "labels", "retriever"]
    [grid] = road_tables(aggregates)
    assert [road for road, _ in grid.rows] == ["labels", "retriever", "declined"]


def test_questions_that_are_all_in_the_graph_need_no_column() -> None:
    aggregates = fake_roads()
    for own in aggregates["by_road"][AUTO].values():
        del own["not_in_graph"]
    [grid] = road_tables(aggregates)
    assert grid.columns[-1] == "Mean confidence" and all(len(cells) == 4 for _, cells in grid.rows)


def test_each_experiment_has_its_table() -> None:
    titles = [grid.title for grid in road_tables(fake_roads("rigel@linked/triples/auto"))]
    assert titles == ["auto, Rigel facts", "auto, Rigel facts, linked topics"]


def test_the_page_has_the_section_and_the_road_of_an_example() -> None:
    outputs = (ExampleOutput(AUTO, "Danish krone", True, "labels"), ExampleOutput("oracle/triples/auto", "", False))
    data = replace(fake_report(), aggregates=fake_roads(), examples=[replace(currency(), outputs=outputs)])
    text = render(data)
    assert '<a href="#roads">' in text
    section = text.split('id="roads"')[1].split("<h2")[0]
    assert "<h2>Which road answered</h2>" in text and "85.0" in section and '<th scope="row">declined</th>' in section
    example = text.split('id="examples"')[1].split("<h2")[0]
    assert example.count(">by labels</span>") == 1


def test_a_run_without_roads_has_neither_section_nor_line() -> None:
    text = render(fake_report())
    assert 'id="roads"' not in text and "#roads" not in text and "proposed the answer" not in text
    assert road_tables(fake_aggregates()) == [] and road_line(fake_aggregates()) == ""


@pytest.mark.parametrize("evil", EVIL)
def test_names_of_roads_and_experiments_stay_text(evil: str) -> None:
    aggregates = fake_roads()
    aggregates["by_road"] = {f"rigel/triples/{evil}": {evil: aggregates["by_road"][AUTO]["labels"]}}
    outputs = (ExampleOutput(AUTO, "x", True, evil),)
    text = render(replace(fake_report(), aggregates=aggregates, examples=[replace(currency(), outputs=outputs)]))
    assert not dangers(text) and Dangers(text).text.count(evil) == 3


def test_the_console_has_one_line_of_it() -> None:
    line = road_line(fake_roads("rigel@linked/triples/auto"))
    assert line == "auto, Rigel facts: labels 60 (85.0 % exact), retriever 20 (70.0 % exact); 40 declined"


def test_an_example_says_by_which_road_it_was_answered(folders: dict[str, Path]) -> None:
    assert all(output.road is None for example in gather(folders) for output in example.outputs)
    answers = pl.read_parquet(folders["facts"] / "answers.parquet")
    right = pl.col("output") == "Paris"
    roads = pl.when(right).then(pl.lit("labels"))
    answers = answers.with_columns(model=pl.lit("auto"), road=roads, confidence=pl.lit(0.8))
    answers.write_parquet(folders["facts"] / "answers.parquet")
    shown = [output for example in gather(folders) for output in example.outputs]
    assert {(one.experiment, one.text, one.road) for one in shown} == {
        (AUTO, "Paris", "labels"), (AUTO, "Rome", None),
        ("none/none/builtin", "Paris", None), ("none/none/builtin", "Rome", None),
    }  # fmt: skip
    text = render(replace(fake_report(), examples=gather(folders)))
    assert "<b><bdi>auto</bdi></b> · Rigel facts</td>" in text and "<b><bdi>builtin</bdi></b> · No knowledge" in text


def test_one_answerer_needs_no_name_in_an_example() -> None:
    outputs = (ExampleOutput(AUTO, "Danish krone", True, "labels"),)
    text = render(replace(fake_report(), examples=[replace(currency(), outputs=outputs)]))
    assert "<td>Rigel facts</td>" in text and "<bdi>auto</bdi></b> ·" not in text
