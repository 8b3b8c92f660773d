"""The table of `kgqa forecast`: sums of endpoints, their range, and what the budget says to both."""

from __future__ import annotations

import io

from rich.console import Console

from kgqa_core.config import BudgetOptions
from kgqa_core.llm.forecast import Amount, StagePlan
from kgqa_core.report.forecast import forecast_table

GUESS = StagePlan(
    "corpus/teacher", "openai:m", 100, 5_000, 3_000, 7, 1.5, 60, True, ("texts as long as the template's",),
    Amount(100, 4_000, 1_500, 1.0), Amount(110, 6_000, 9_000, 4.25),
)  # fmt: skip
SURE = StagePlan("answers none/none", "openai:m", 20, 400, 40, 0, 0.25, 10)
LOCAL = StagePlan("answers oracle/triples", "builtin", 9, 90, 9, 0, None, 1, True, (), Amount(9, 9, 9), Amount(9, 9, 9))


def shown(plans: list[StagePlan], **limits: float) -> list[str]:
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(forecast_table(plans, BudgetOptions.model_validate(limits)))
    return [" ".join(line.replace("│", " ").split()) for line in console.export_text().splitlines()]


def test_sums_count_endpoints_and_have_a_range_where_something_is_guessed() -> None:
    lines = shown([GUESS, SURE, LOCAL])
    assert "at endpoints 120 7 5,400 3,040 1.75 71 s" in lines
    assert "at least 120 4,400 1,540 1.25" in lines and "at most 130 6,400 9,040 4.50" in lines
    assert any("--pilot" in line for line in lines)


def test_what_is_measured_has_no_range() -> None:
    lines = shown([SURE, LOCAL])
    assert not any("at most" in line or "--pilot" in line for line in lines)


def test_a_limit_between_the_sum_and_its_highest_may_be_reached() -> None:
    text = " ".join(shown([GUESS, SURE], max_calls=119, max_tokens=9_000, max_cost=5))
    assert "max_calls is 119, the run would need about 120" in text
    assert "max_tokens is 9,000, the run may need up to 15,440" in text
    assert "max_cost" not in text
