"""Pages in Prefect: tables of few columns, and no fault when there is nobody to show them to."""

from __future__ import annotations

from typing import Any

import pytest

from tasks.engine.prefect_pages import counted, link_line, plain, score_tables, show_page, table

ALONE = ("hits_at_1", "hits_at_5", "recall_of_answers")
READ = ("contains", "contains_substring", "exact", "f1", "hit_rra", "hit_rra_substring", "hits_at_1")


def measured(*metrics: str) -> dict[str, Any]:
    return {metric: {"value": 0.5, "low": 0.25, "high": 0.75, "n": 100} for metric in metrics}


def test_scores_are_two_tables_of_few_columns_in_percent() -> None:
    scores = {
        "rigel/-/-": {"dev": measured(*ALONE), "test": measured(*ALONE)},
        "none/none/openai:a/b": {"test": measured(*READ)},
    }
    first, alone, second, answers = score_tables({"scores": scores})
    assert (first, second) == ("### Retrievers alone", "### Answers")
    names = [cell.strip().replace("\\", "") for cell in alone.splitlines()[0].strip("|").split("|")]
    assert names == ["experiment", "split", *ALONE]
    assert alone.splitlines()[2].count("50.0 \\[25.0, 75.0\\]") == 3 and len(alone.splitlines()) == 4
    names = [cell.strip().replace("\\", "") for cell in answers.splitlines()[0].strip("|").split("|")]
    assert names == ["experiment", "split", "exact", "contains", "hit_rra", "f1", "hits_at_1"]


def test_a_kind_of_score_that_no_experiment_has_leaves_no_heading() -> None:
    parts = score_tables({"scores": {"rigel/-/-": {"test": measured(*ALONE)}}})
    assert parts[0] == "### Retrievers alone" and len(parts) == 2


def test_rows_with_other_columns_share_a_table_and_no_rows_make_none() -> None:
    assert table([{"a": 1}, {"b": 2000}]) == "| a | b |\n|---|---|\n| 1 | – |\n| – | 2,000 |"
    assert table([]) == ""


@pytest.mark.parametrize(("text", "left"), [
    ("hits_at_1 of a/b: 0.5 [0.4, 0.6]", "hits_at_1 of a/b: 0.5 [0.4, 0.6]"),
    ("[x](javascript:1)\n<b>`c`</b>", "[x]javascript:1) bc/b"),
])  # fmt: skip
def test_plain_text_keeps_words_and_loses_markup(text: str, left: str) -> None:
    assert plain(text) == left


def test_links_are_one_line_without_those_that_are_not_known() -> None:
    assert link_line({"stage": "http://a/#/1", "run": None, "report": "http://a/r"}) == (
        "[stage](http://a/#/1) · [report](http://a/r)"
    )
    assert link_line({"stage": None}) == ""


def test_counts_that_are_0_are_one_line_below_the_table() -> None:
    rows, none = counted({"entities": 720, "aliases": 0, "share": 0.5, "done": False, "type_names": 0})
    assert rows.splitlines()[2:] == ["| entities | 720 |", "| share | 0.5 |", "| done | False |"]
    assert none == "0: aliases, type\\_names"
    assert counted({"rejects": 0}) == ["", "0: rejects"] and counted({"triples": 3})[1] == ""


def test_outside_a_flow_no_page_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("nobody looks")

    monkeypatch.setattr("prefect.artifacts.create_markdown_artifact", refuse)
    show_page("a-key", ["text"], "what it is")


def test_a_lost_server_undoes_nothing_and_empty_parts_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = []

    def lost(text: str, **named: Any) -> None:
        heard.append((text, named))
        raise ConnectionError("no server")

    monkeypatch.setattr("prefect.artifacts.create_markdown_artifact", lost)
    monkeypatch.setattr("prefect.context.FlowRunContext.get", lambda: object())
    show_page("a-key", ["one", "", "two"], "what it is")
    assert heard == [("one\n\ntwo", {"key": "a-key", "description": "what it is"})]
