"""Grids that compare forms of knowledge, and grids that are transposed to fit."""

from kgqa_core.report.comparison import (
    cost_table,
    formats_table,
    groups_table,
    helpful_groups_table,
    helpful_table,
)
from kgqa_core.report.grid import Cell, Grid, PairedCell
from kgqa_core.report.tables import table_1

from .fake import FORMATS, fake_aggregates

MODELS = ("builtin", "openai:m")
AGGREGATES = fake_aggregates(MODELS, FORMATS)


def test_formats_are_rows_and_answerers_columns() -> None:
    grid = formats_table(AGGREGATES)
    assert grid.columns == ("Knowledge", *MODELS)
    assert [name for name, _ in grid.rows] == [
        "No knowledge", "Random facts", "KAPING facts", "Rigel facts", "Rigel facts (template)", "HopPath facts",
        "HopPath facts (template)", "HopPath facts (rewritten)", "Oracle facts", "Oracle facts (rewritten)",
    ]  # fmt: skip
    assert [str(cell) for cell in dict(grid.rows)["HopPath facts (rewritten)"]] == ["77.8", "70.1"]


def test_an_answerer_that_lacks_a_format_has_a_gap() -> None:
    scores = {name: by for name, by in AGGREGATES["scores"].items() if name != "hop_path/rewritten/openai:m"}
    cells = dict(formats_table({"scores": scores}).rows)["HopPath facts (rewritten)"]
    assert str(cells[0]) == "77.8" and cells[1] is None


def test_helpful_and_harmful_stand_against_every_baseline_or_the_rows_own() -> None:
    every = helpful_table(AGGREGATES, "builtin")
    assert every.columns[1:] == (
        "No knowledge", "Random facts", "KAPING facts", "Rigel facts", "HopPath facts", "Oracle facts",
    )  # fmt: skip
    row = dict(every.rows)["HopPath facts (rewritten)"]
    assert row[4] == PairedCell(208, 119, 2412, 1.3e-9) and str(row[4]) == "+208 −119  p < 0.001"
    own = helpful_table(AGGREGATES, "builtin", every=False)
    assert own.columns[1:] == ("against no knowledge", "against its own triples")
    assert dict(own.rows)["HopPath facts (rewritten)"] == (row[0], row[4])
    assert dict(own.rows)["HopPath facts"][1] is None and "No knowledge" not in dict(own.rows)


def test_without_sentences_there_is_no_column_of_own_triples() -> None:
    triples = {name: value for name, value in FORMATS.items() if name.endswith(("none", "triples"))}
    grid = helpful_table(fake_aggregates(experiments=triples), "builtin", every=False)
    assert grid.columns[1:] == ("against no knowledge",)


def test_groups_have_scores_and_counts() -> None:
    assert groups_table(AGGREGATES, "by_hops", "builtin").columns == ("Knowledge", "1 hop", "2 hops")
    assert groups_table(AGGREGATES, "by_complexity", "builtin").columns[-1] == "generic + multi-hop"
    grid = helpful_groups_table(AGGREGATES, "by_hops", "builtin", "triples")
    assert [name for name, _ in grid.rows] == [
        "Rigel facts (template)", "HopPath facts (template)", "HopPath facts (rewritten)", "Oracle facts (rewritten)",
    ]  # fmt: skip
    assert dict(grid.rows)["HopPath facts (rewritten)"][0] == PairedCell(104, 59, 1206)


def test_cost_has_only_the_columns_that_were_measured() -> None:
    free, paid = (cost_table(AGGREGATES, model) for model in MODELS)
    assert "Cost of 1,000" in paid.columns and "Cost of 1,000" not in free.columns
    row = dict(zip(free.columns[1:], dict(free.rows)["HopPath facts (rewritten)"], strict=True))
    assert (row["Words"], row["Characters"], row["Prompt tokens"]) == ("74.2", "453", "140")
    assert row["Unfinished"] == "11 cut off, 1 failed" and str(row["Hit (RRA)"]) == "77.8"
    assert cost_table({"scores": AGGREGATES["scores"]}, "builtin").rows == ()


def test_a_wide_grid_is_turned_and_a_narrow_one_is_not() -> None:
    grid = table_1(AGGREGATES, "exact")
    assert len(grid.columns) == 11
    transposed = grid.fitted("Knowledge")
    assert transposed.columns == ("Knowledge", *MODELS) and len(transposed.rows) == 10 and not transposed.compact
    assert dict(transposed.rows)["Rigel facts"] == tuple(dict(grid.rows)[model][3] for model in MODELS)
    narrow = table_1(fake_aggregates(), "exact")
    assert narrow.fitted("Knowledge") == narrow


def test_turning_twice_gives_the_grid_back() -> None:
    cell = Cell(0.5, 0.4, 0.6, 10)
    grid = Grid("t", ("a", "x", "y", "z"), (("r", (cell, None, 3)), ("s", ("w", PairedCell(1, 2, 9), None))))
    assert grid.transposed("b").transposed("a") == grid
