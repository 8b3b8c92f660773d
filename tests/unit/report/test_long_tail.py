"""The long tail in a report: one table of settings, breakdowns, and charts that say what the aggregates say."""

import json
import re
from dataclasses import replace
from html import unescape

import pytest

from kgqa_core.evaluation.labels import percent
from kgqa_core.report.charts import ChartPoint, Series, lines, spots
from kgqa_core.report.grid import Cell
from kgqa_core.report.long_tail import groups_table, long_tail_part, retrieval_table, settings_table
from kgqa_core.report.page import render
from kgqa_core.report.tables import score_tables
from tests.support.hostile import EVIL, dangers
from tests.unit.report.fake import fake_aggregates, fake_report
from tests.unit.report.fake_long_tail import (
    LEVELS,
    RETRIEVERS,
    SETTINGS,
    STEPS,
    fake_long_tail,
    long_tail_report,
    responses,
)

HALF = Cell(0.5, 0.4, 0.6, 10)
"""A score."""


def column(grid, name: str) -> dict[str, object]:
    place = grid.columns.index(name) - 1
    return {row: cells[place] for row, cells in grid.rows}


def test_the_table_of_settings_says_what_is_read_from_which_entities() -> None:
    grid = settings_table(fake_long_tail())
    assert grid.columns == (
        "Setting", "Facts of", "Entities", "KM", "rKM", "eKM", "E", "C", "E − C", "Prompt tokens"
    )  # fmt: skip
    told = [(name, *cells[:2], str(cells[2]), cells[-1]) for name, cells in grid.rows]
    assert told == [
        ("None", None, None, "40.5", 96),
        ("Passages", None, None, "51.0", 1403),
        ("Triples", "Pair ranking", "gold", "77.1", 412),
        ("Triples", "Pair ranking", "linked", "70.2", 398),
        ("Triples and passages", "Pair ranking", "gold", "79.0", 1790),
        ("Triples and passages", "Pair ranking", "linked", "74.1", 1755),
    ]


def test_several_answerers_share_the_table() -> None:
    grid = settings_table(fake_long_tail(("builtin", "openai:gpt")))
    assert len(grid.rows) == 2 * len(SETTINGS)
    assert set(column(grid, "Answerer").values()) <= {"builtin", "openai:gpt"}


def test_what_was_not_measured_has_no_column_and_no_chart() -> None:
    aggregates = fake_long_tail(judged=False)
    assert "E − C" not in settings_table(aggregates).columns
    part = long_tail_part(aggregates)
    assert part is not None
    assert [name for figure in part.figures for name, _ in figure.panels] == [
        "KM by level", "KM by number of reference triples", "Pair recall by level", "Pair recall by pairs read",
        "KM against tokens of the prompt",
    ]  # fmt: skip


def test_a_run_without_long_tail_shows_nothing_of_it() -> None:
    assert long_tail_part(fake_aggregates()) is None
    assert "long-tail" not in render(fake_report())
    assert "rKM" not in render(fake_report())


def test_levels_are_columns_and_settings_rows() -> None:
    grid = groups_table(fake_long_tail(), "by_level", "builtin", "km")
    assert grid.columns == ("Knowledge", "Level I", "Level II", "Level III", "Level IV")
    assert str(column(grid, "Level IV")["No knowledge"]) == percent(0.405 * LEVELS["IV"])
    grid = groups_table(fake_long_tail(), "by_triples", "builtin", "nli_overall")
    assert grid.columns == ("Knowledge", "1", "2", "3", ">3")


def test_recall_of_pairs_is_told_by_level() -> None:
    grid = retrieval_table(fake_long_tail())
    assert len(grid.rows) == len(RETRIEVERS)
    assert str(column(grid, "All")["Pair ranking, linked topics"]) == "67.0"


@pytest.mark.parametrize("models", [("builtin",), ("builtin", "openai:gpt")])
def test_every_chart_marks_every_score_at_its_height(models: tuple[str, ...]) -> None:
    part = long_tail_part(fake_long_tail(models))
    assert part is not None
    heights = re.compile(r'translate\(([\d.-]+) ([\d.-]+)\)[^"]*" d="[^"]+"><title>([^<]*): (−?[\d.]+) \(')
    for figure in part.figures:
        for title, drawing in figure.panels:
            found = heights.findall(str(drawing))
            wanted = len(SETTINGS) * (len(models) if figure.points else len(LEVELS))
            if title.startswith("Pair recall"):
                wanted = len(RETRIEVERS) * (len(STEPS) if title.endswith("read") else len(LEVELS))
            assert len(found) == wanted, title
            by_value = sorted((float(value.replace("−", "-")), -float(y)) for _, y, _, value in found)
            assert [y for _, y in by_value] == pytest.approx(sorted(y for _, y in by_value), abs=0.6), title


def test_linked_entities_have_the_colour_of_gold_ones_and_are_dashed() -> None:
    part = long_tail_part(fake_long_tail())
    assert part is not None
    legend = {label: style for style, label, _ in part.figures[0].legend}
    gold, linked = legend["Pair ranking facts"], legend["Pair ranking facts, linked topics"]
    assert linked == f"{gold} dashed"
    plain = [style for label, style in legend.items() if "linked" not in label]
    assert len(set(plain)) == len(plain)
    assert legend["No knowledge"] == "s0"


def test_a_negative_score_lies_below_the_line_of_zero() -> None:
    series = [Series("a", (Cell(-0.4, -0.5, -0.3, 9), Cell(0.2, 0.1, 0.3, 9)), 0)]
    drawing = str(lines(series, ("I", "II"), "level", "x"))
    [zero] = re.findall(r'class="grid zero" d="M[\d.]+ ([\d.]+)H', drawing)
    below, above = (float(y) for y in re.findall(r"translate\([\d.]+ ([\d.]+)\)", drawing))
    assert above < float(zero) < below
    assert "−40.0" in drawing


def test_a_group_without_questions_is_a_gap_and_everything_stays_in_the_frame() -> None:
    drawing = str(lines([Series("a", (HALF, None, HALF), 0), Series("b", (None,) * 3, 1)], "xyz", "axis", "title"))
    assert drawing.count("<title>") == 2
    many = [Series(f"s{n}", (HALF,) * 12, n, n % 2 == 0, n) for n in range(30)]
    drawing = str(lines(many, [str(n) for n in range(12)], "axis", "title"))
    points = [tuple(map(float, pair)) for pair in re.findall(r"translate\(([\d.-]+) ([\d.-]+)\)", drawing)]
    assert len(points) == 360
    assert all(0 < x < 480 and 0 < y < 270 for x, y in points)
    drawing = str(spots([ChartPoint("a", 0.0, HALF, 0), ChartPoint("b", 123_456.0, HALF, 1)], "tokens", "title"))
    points = [tuple(map(float, pair)) for pair in re.findall(r"translate\(([\d.-]+) ([\d.-]+)\)", drawing)]
    assert all(0 < x < 480 and 0 < y < 270 for x, y in points)


@pytest.mark.parametrize("evil", EVIL)
def test_names_of_the_worst_kind_are_shown_and_never_read_as_markup(evil: str) -> None:
    name = evil.replace("/", "|")  # a slash ends the name of a retriever
    written, quoted = json.dumps(fake_long_tail()), json.dumps(name)[1:-1]
    for old in ("rank_pair@linked", "IV", "builtin"):
        written = written.replace(f'"{old}', f'"{quoted}').replace(f"/{old}", f"/{quoted}")
    page = render(replace(long_tail_report(), aggregates=json.loads(written)))
    assert not dangers(page)
    part = page[page.index('id="long-tail"') :]
    assert unescape(part).count(name) > 20


def test_the_page_and_the_terminal_show_it() -> None:
    text = render(long_tail_report(("builtin", "openai:gpt")))
    assert 'id="long-tail"' in text and "By level of popularity" not in text
    assert text.count('<svg class="chart"') >= 8
    tables = {str(table.title): table for table in score_tables(fake_long_tail(("builtin", "openai:gpt")))}
    assert {"Settings · builtin", "Settings · openai:gpt"} <= set(tables)
    first = [str(cell) for cell in tables["Settings · builtin"].columns[0].cells]
    assert first[2:4] == ["Triples, Pair ranking", "Triples, Pair ranking linked"]


def test_somebody_elses_predictions_are_a_setting_as_given() -> None:
    aggregates = {"scores": {"-/-/predictions": {"test": responses(0.5, 100, judged=False)}}}
    [(name, (facts, entities, *_))] = settings_table(aggregates).rows
    assert (name, facts, entities) == ("As given", None, None)
    assert "Settings · predictions" in [str(table.title) for table in score_tables(aggregates)]
