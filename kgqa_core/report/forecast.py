"""The table that `kgqa forecast` shows."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from kgqa_core.config import BudgetOptions
from kgqa_core.llm.forecast import Amount, StagePlan, at_endpoint
from kgqa_core.report.terminal import VisibleText

GUESSED = (
    "at least, at most: texts half and twice as long as assumed, answers of one token and of the longest length, none "
    "and a tenth rejected; --pilot 50 asks 50 questions of each stage, keeps the answers for the run, and measures"
)


def forecast_table(plans: Sequence[StagePlan], budget: BudgetOptions) -> Table:
    """One row per stage that uses a language model, rows of sums, and below them the assumptions and the budget.

    Sums of calls, tokens and money count endpoints only, for these are what a budget limits; time counts all.  Where
    something is guessed, the sums have a lowest and a highest value too.
    """
    table = Table(
        title="Requests that the run would send", title_justify="left", title_style="bold", caption_justify="left"
    )
    table.add_column("stage", no_wrap=True)
    table.add_column("model", overflow="fold")
    for name in ("calls", "cached", "tokens in", "out", "cost", "time"):
        table.add_column(name, justify="right", no_wrap=True)
    marks: dict[str, str] = {}
    for each in plans:
        notes = " ".join(marks.setdefault(text, f"{len(marks) + 1}") for text in each.assumptions)
        stage = VisibleText(each.stage).append(f" {notes}" if notes else "", style="dim")
        about = "" if each.counted else "~"
        table.add_row(
            stage, VisibleText(each.model), f"{each.calls:,}", f"{each.cached:,}", f"{about}{each.prompt_tokens:,}",
            f"{each.completion_tokens:,}", _money(each.cost), _time(each.seconds),
        )  # fmt: skip
    paid = [each for each in plans if at_endpoint(each.model)]
    total = _sum(paid)
    table.add_section()
    table.add_row(
        "at endpoints", "", f"{total.calls:,}", f"{sum(each.cached for each in paid):,}", *_tokens(total),
        _time(sum(each.seconds for each in plans)),
    )  # fmt: skip
    lines = [f"{mark}  {text}" for text, mark in marks.items()]
    most = total
    if any(each.low for each in paid):
        most = _sum([each.high or each for each in paid])
        least = _sum([each.low or each for each in paid])
        table.add_row("at least", "", f"{least.calls:,}", "", *_tokens(least), "", style="dim")
        table.add_row("at most", "", f"{most.calls:,}", "", *_tokens(most), "", style="dim")
        lines.append(GUESSED)
    lines += _limits(budget, total, most)
    table.caption = VisibleText("\n".join(lines))
    return table


def _sum(parts: Sequence[StagePlan | Amount]) -> Amount:
    priced = [each.cost for each in parts if each.cost is not None]
    return Amount(
        sum(each.calls for each in parts), sum(each.prompt_tokens for each in parts),
        sum(each.completion_tokens for each in parts), sum(priced) if priced else None,
    )  # fmt: skip


def _tokens(amount: Amount) -> tuple[str, str, str]:
    return f"{amount.prompt_tokens:,}", f"{amount.completion_tokens:,}", _money(amount.cost)


def _limits(budget: BudgetOptions, total: Amount, most: Amount) -> list[str]:
    """A line for each limit that the run would reach, or may."""
    limits = []
    for name, limit, value, highest in (
        ("max_calls", budget.max_calls, total.calls, most.calls),
        ("max_tokens", budget.max_tokens, total.prompt_tokens + total.completion_tokens,
         most.prompt_tokens + most.completion_tokens),
        ("max_cost", budget.max_cost, total.cost, most.cost),
    ):  # fmt: skip
        if limit is None or value is None or highest is None:
            continue
        subject = f"llm.budget.{name} is {limit:,}, the run"
        if value > limit:
            limits.append(f"{subject} would need about {value:,.6g}: it would stop before")
        elif highest > limit:
            limits.append(f"{subject} may need up to {highest:,.6g}: it may stop before")
    return limits


def _money(cost: float | None) -> str:
    if cost is None:
        return "–"
    return f"{cost:,.2f}" if cost >= 0.1 or not cost else f"{cost:.2g}"


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:,.0f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 5400 else f"{seconds / 3600:,.1f} h"
