"""Drawings: labels do not overlap, nothing leaves the frame, names are shortened and escaped."""

import itertools
import random
import re

import polars as pl
import pytest

from kgqa_core.report.charts import nice_ticks, training_curves
from kgqa_core.report.data import ExampleFact
from kgqa_core.report.subgraph import WIDEST, draw_subgraph, shorten

RECT = re.compile(r'<rect x="([-\d.]+)" y="([-\d.]+)" width="([\d.]+)" height="([\d.]+)"')
FRAME = re.compile(r'viewBox="0 0 (\d+) (\d+)"')


def boxes(svg: str) -> list[tuple[float, ...]]:
    return [tuple(map(float, match)) for match in RECT.findall(svg)]


def random_facts(seed: int, hops: int) -> list[ExampleFact]:
    draw = random.Random(seed)
    names = ["Ö", "北京市人民政府大楼", "A" * 80, "Saint Helena, Ascension and Tristan da Cunha", "Paris", "<&>"]
    facts, frontier = [], [0]
    for hop in range(1, hops + 1):
        following = []
        for _ in range(draw.randint(3, 14)):
            head, tail = draw.choice(frontier), draw.randint(1, 30)
            direction = draw.choice((1, -1))
            ends = (head, tail) if direction > 0 else (tail, head)
            relation = draw.choice(["capital of", "shares border with and some more words than fit", "导演"])
            label = tuple(names[end % len(names)] for end in ends)
            facts.append(ExampleFact(ends[0], relation, ends[1], *label, draw.random(), hop, direction))
            following.append(tail)
        frontier = following
    return facts


@pytest.mark.parametrize("seed", range(20))
def test_labels_never_overlap_and_stay_in_the_frame(seed: int) -> None:
    svg = str(draw_subgraph(random_facts(seed, hops=1 + seed % 3), {0}, {5}))
    width, height = map(int, FRAME.search(svg).groups())
    found = boxes(svg)
    assert len(found) >= 3
    for left, right in itertools.combinations(found, 2):
        apart = (
            left[0] + left[2] <= right[0]
            or right[0] + right[2] <= left[0]
            or left[1] + left[3] <= right[1]
            or right[1] + right[3] <= left[1]
        )
        assert apart, (left, right)
    for x, y, w, h in found:
        assert x >= 0 and y >= 0 and x + w <= width + 1 and y + h <= height


def test_a_gold_answer_is_drawn_even_in_a_crowd() -> None:
    facts = [ExampleFact(0, "has part", i, "whole", f"part {i}", 1 - i / 100, 1, 1) for i in range(1, 40)]
    svg = str(draw_subgraph(facts, {0}, {39}))
    assert svg.count('class="n gold"') == 1
    assert "+ 33 more" in svg


def test_the_arrow_follows_the_stored_direction() -> None:
    fact = ExampleFact(1, "capital of", 2, "Paris", "France", 0.9, 1, -1)
    svg = str(draw_subgraph([fact], {2}, {1}))
    assert "← capital of" in svg
    assert svg.index(">France<") > 0 and 'class="n topic"' in svg


def test_names_in_drawings_are_escaped() -> None:
    fact = ExampleFact(1, "<script>", 2, "</svg><script>", '"><img>', 0.9, 1, 1)
    svg = str(draw_subgraph([fact], {1}, {2}))
    assert "<script" not in svg and "<img" not in svg
    assert svg.count("</svg>") == 1


def test_no_facts_no_drawing() -> None:
    assert draw_subgraph([], {1}, {2}) == ""


def test_shorten_counts_wide_characters() -> None:
    assert shorten("Paris")[0] == "Paris"
    latin, chinese = shorten("a" * 100)[0], shorten("北" * 100)[0]
    assert latin.endswith("…") and chinese.endswith("…")
    assert len(chinese) < len(latin)
    assert shorten("a" * 100)[1] <= WIDEST


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 0), (0.02, 0.98), (-3, 7), (1e-5, 2e-5), (0, 123456)])
def test_ticks_enclose_and_are_few(low: float, high: float) -> None:
    ticks = nice_ticks(low, high)
    assert ticks[0] <= low and ticks[-1] >= high
    assert 2 <= len(ticks) <= 7
    assert ticks == sorted(set(ticks))


def test_curves_have_a_panel_per_metric_and_a_line_per_split() -> None:
    frame = pl.DataFrame(
        {
            "epoch": [1, 2, 1, 2, 1],
            "split": ["train", "train", "dev", "dev", "dev"],
            "metric": ["loss", "loss", "loss", "loss", "hits_at_1"],
            "value": [1.0, 0.5, 1.1, float("nan"), 0.9],
        }
    )
    panels = dict(training_curves(frame))
    assert sorted(panels) == ["hits_at_1", "loss"]
    assert str(panels["loss"]).count("<g class=") == 2
    assert "nan" not in str(panels["loss"])
    assert {FRAME.search(str(svg)).groups() for svg in panels.values()} == {("340", "190")}, (
        "its frame, no other chart's"
    )
    assert training_curves(None) == []
    assert training_curves(frame.clear()) == []
