"""The table that `kgqa forecast` shows."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from kgqa_core.config import BudgetOptions
from kgqa_core.llm.plan import StagePlan


def forecast_table(plans: Sequence[StagePlan], budget: BudgetOptions) -> Table:
    """One row a stage that asks a language model, a row of sums, and below what was assumed and what the budget says.

    Sums of calls, tokens and money count endpoints only, for these are what a budget limits; time counts all.
    """
    table = Table(title="What the run would ask", title_justify="left", title_style="bold", caption_justify="left")
    table.add_column("stage", no_wrap=True)
    table.add_column("model", overflow="fold")
    for name in ("calls", "kept", "tokens in", "out", "cost", "time"):
        table.add_column(name, justify="right", no_wrap=True)
    marks: dict[str, str] = {}
    for each in plans:
        notes = " ".join(marks.setdefault(text, f"{len(marks) + 1}") for text in each.assumptions)
        stage = Text(each.stage).append(f" {notes}" if notes else "", style="dim")
        about = "" if each.counted else "~"
        table.add_row(
            stage, Text(each.model), f"{each.calls:,}", f"{each.cached:,}", f"{about}{each.prompt_tokens:,}",
            f"{each.completion_tokens:,}", _money(each.cost), _time(each.seconds),
        )  # fmt: skip
    paid = [each for each in plans if each.model.startswith("openai:")]
    priced = [each.cost for each in paid if each.cost is not None]
    calls = sum(each.calls for each in paid)
    tokens = sum(each.prompt_tokens + each.completion_tokens for each in paid)
    table.add_section()
    table.add_row(
        "at endpoints", "", f"{calls:,}", f"{sum(each.cached for each in paid):,}",
        f"{sum(each.prompt_tokens for each in paid):,}", f"{sum(each.completion_tokens for each in paid):,}",
        _money(sum(priced) if priced else None), _time(sum(each.seconds for each in plans)),
    )  # fmt: skip
    lines = [f"{mark}  {text}" for text, mark in marks.items()]
    lines += _limits(budget, calls, tokens, sum(priced) if priced else None)
    table.caption = Text("\n".join(lines))
    return table


def _limits(budget: BudgetOptions, calls: int, tokens: int, cost: float | None) -> list[str]:
    """A line for each limit that the run would reach."""
    found = []
    wanted = (("max_calls", budget.max_calls, calls), ("max_tokens", budget.max_tokens, tokens),
              ("max_cost", budget.max_cost, cost))  # fmt: skip
    for name, limit, value in wanted:
        if limit is not None and value is not None and value > limit:
            found.append(f"llm.budget.{name} is {limit:,}, the run would need about {value:,.6g}: it would stop before")
    return found


def _money(cost: float | None) -> str:
    if cost is None:
        return "–"
    return f"{cost:,.2f}" if cost >= 0.1 or not cost else f"{cost:.2g}"


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:,.0f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 5400 else f"{seconds / 3600:,.1f} h"
