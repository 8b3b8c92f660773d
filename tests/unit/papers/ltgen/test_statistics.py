"""The tables of a benchmark fit a terminal of 80 characters."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from kgqa_core.papers.ltgen.card import rows
from kgqa_core.report.console import rows_table
from kgqa_core.types import LEVELS


@pytest.mark.parametrize(
    ("kind", "heads"),
    [("qa", ["entities", "asked", "questions"]), ("conv", ["entities", "dialogues", "turns"])],
)
def test_heads_and_numbers_stay_whole_on_a_narrow_terminal(kind: str, heads: list[str]) -> None:
    counted = ("entities", "entities_asked", "questions", "dialogues", "turns")
    row: dict[str, Any] = dict.fromkeys(counted, 12_345) | {"by_triples": dict.fromkeys(("1", "2", "3", ">3"), 12_345)}
    found = rows({"kind": kind, "levels": dict.fromkeys(LEVELS, row), "total": row})
    assert list(found[0]) == ["level", *heads, "1 triple", "2", "3", ">3"]
    shown = io.StringIO()
    Console(file=shown, width=80).print(rows_table("LTGen", found))
    lines = shown.getvalue().splitlines()
    assert all(head in lines[2] for head in found[0]) and lines[-2].count("12,345") == 7
    assert len(lines) == len(found) + 5, "nothing is broken over two lines"
