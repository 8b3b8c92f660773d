"""The examples of docs/mcp.md return what the page shows."""

from __future__ import annotations

import json

import pytest

from kgqa_core.answering.reply import Answer
from kgqa_core.serving.ask_record import AskResult
from kgqa_core.serving.graph_view import GraphView
from kgqa_core.serving.limits import MOST_FACTS, MOST_PATHS, MOST_SEARCHED, MOST_SHOWN
from kgqa_core.serving.mcp_server import mcp_server
from tests.support.mcp_page import EXAMPLE, PAGE, call, shown

EXAMPLES = list(EXAMPLE.finditer(PAGE.read_text(encoding="utf-8")))


def test_every_tool_has_an_example() -> None:
    tools = [example["tool"] for example in EXAMPLES]
    assert tools == ["schema", "search_entities", "entity", "neighbours", "paths", "query", "sql", "ask"]


@pytest.mark.parametrize("place", range(7), ids=lambda place: EXAMPLES[place]["tool"])
def test_an_example_returns_what_the_page_shows(view: GraphView, place: int) -> None:
    example = EXAMPLES[place]
    server = mcp_server(view, lambda *given: Answer("1", "", ""))
    assert shown(call(server, example["tool"], json.loads(example["arguments"]))) + "\n" == example["result"]


def test_the_example_of_ask_has_the_fields_of_its_record() -> None:
    result = json.loads(EXAMPLES[7]["result"])
    assert list(result) == list(AskResult.model_fields) and result["answers"] == ["Norland City"]


def test_the_limits_of_the_page_are_those_of_the_code() -> None:
    limits = f"| {MOST_SEARCHED} · {MOST_FACTS} · {MOST_SHOWN} · {MOST_PATHS} |"
    assert limits in PAGE.read_text(encoding="utf-8")
