"""Linked topics in the report: names of the variants, how well they were found, what they cost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kgqa_core.evaluation.labels import (
    LINKS,
    knowledge_label,
    knowledge_order,
    retriever_experiments,
    retriever_label,
)
from kgqa_core.report.comparison import costs_table, links_table
from kgqa_core.report.page import render
from kgqa_core.report.tables import chart_rows, score_tables

from .fake import cell, fake_report


def with_links(aggregates: dict[str, Any]) -> dict[str, Any]:
    """Aggregates with one linked variant beside what is there."""
    scores = dict(aggregates["scores"])
    scores["rigel@linked/-/-"] = scores["rigel/-/-"]
    scores["rigel@linked/triples/builtin"] = scores["rigel/triples/builtin"]
    names = ("link_precision", "link_recall", "link_f1", "link_recall_at_5")
    scores[LINKS] = {"test": {name: cell(0.97, 100) for name in names}}
    row = {
        "experiment": "rigel@linked/-/-", "against": "rigel/-/-", "metric": "hits_at_1", "split": "test", "gold": 0.953,
        "linked": 0.941, "loss": 0.012, "low": -0.0004, "high": 0.0221, "n": 100, "only_gold": 1402,
        "only_linked": 3, "p": 0.0132,
    }  # fmt: skip
    told = {**row, "experiment": "rigel@linked/triples/builtin", "against": "rigel/triples/builtin", "metric": "exact"}
    return {**aggregates, "scores": scores, "linking": [told, row]}


def test_variants_are_named_in_words_and_stand_after_their_plain_one() -> None:
    assert retriever_label("rigel@linked/-/-") == "Rigel, linked topics"
    assert knowledge_label("rigel@linked/triples/m") == "Rigel facts, linked topics"
    assert knowledge_label("hop_path@linked/template/m") == "HopPath facts (template), linked topics"
    names = ["rigel@linked/triples/m", "oracle/triples/m", "rigel/triples/m", "hop_path/triples/m"]
    assert sorted(names, key=knowledge_order) == [names[2], names[0], names[3], names[1]]
    assert retriever_experiments([LINKS, "random/-/-", "rigel@linked/-/-", "rigel/-/-"]) == [
        "rigel/-/-", "rigel@linked/-/-", "random/-/-",
    ]  # fmt: skip


def test_what_linking_costs_is_told_in_points_retrievers_first() -> None:
    grid = costs_table(with_links(fake_report().aggregates))
    assert [name for name, _ in grid.rows] == ["Rigel alone, Hits@1", "Rigel facts, Exact"]
    assert grid.rows[0][1] == ("95.3", "94.1", "1.2 [0.0, 2.2]", "1,402 / 3, p = 0.013")


def test_runs_without_linked_topics_have_neither_table() -> None:
    aggregates = fake_report().aggregates
    assert not links_table(aggregates).rows and not costs_table(aggregates).rows


def test_a_negative_loss_has_a_minus_sign() -> None:
    aggregates = with_links(fake_report().aggregates)
    aggregates["linking"] = [{**aggregates["linking"][1], "loss": -0.006, "low": -0.01, "high": 0.001, "p": None}]
    assert costs_table(aggregates).rows[0][1][2:] == ("−0.6 [−1.0, 0.1]", "1,402 / 3")


def test_console_and_page_show_both_tables() -> None:
    data = fake_report()
    aggregates = with_links(data.aggregates)
    titles = [str(table.title) for table in score_tables(aggregates)]
    assert titles.index("Linked topics") < titles.index("What linking costs")
    page = render(replace(data, aggregates=aggregates))
    for said in ("What linking costs", "Link F1", "Rigel, linked topics", "1.2 [0.0, 2.2]"):
        assert said in page
    assert "k-rigel@linked" not in page


def test_a_chart_draws_a_variant_in_the_colour_of_its_retriever() -> None:
    rows = chart_rows(with_links(fake_report().aggregates), "builtin", "exact")
    assert [key for key, label, _ in rows if "linked" in label] == ["rigel"]


def test_the_endpoint_of_an_answerer_makes_no_variant() -> None:
    assert knowledge_label("rigel/triples/openai:m@linked") == "Rigel facts"
