"""The table of killed commands of docs/operations.md, from benchmarks/results/kill_commands.json.

The results are those of `KGQA_COMMAND_OUTPUT=benchmarks/results/kill_commands.json pytest -m slow
tests/faults/test_kill_commands.py`, which adds to the file; `make bench-docs` puts the table into the page.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FIELDS = (
    "rows/*/*", "rows/*/codes/*", "?rows/*/notes/...", "series/*/*",
)  # fmt: skip
"""What the result file holds (benchmarks/results_file.py)."""
COLUMNS = {
    "survived": "survived",
    "half": "half results",
    "orphans": "processes left",
    "held": "stdout held",
    "left": "files left",
    "repeated": "sent again",
    "paid_twice": "paid twice",
    "lost": "replies lost",
}
PHASES = ("first 5 s", "while writing", "any time")


def section(results: Mapping[str, Any]) -> str:
    """The table, with the conditions under which it was measured."""
    commands: dict[str, list[Mapping[str, Any]]] = {}
    for row in results["rows"]:
        commands.setdefault(row["command"], []).append(row)
    head = ("command", "kills", *PHASES, *COLUMNS.values())
    lines = ["| " + " | ".join(head) + " |", "|---" + "|--:" * (len(head) - 1) + "|"]
    groups = [*sorted(commands.items()), ("all", list(results["rows"]))]
    for name, rows in groups:
        phases = [sum(row["kills"] for row in rows if row["phase"] == phase) for phase in PHASES]
        numbers = [sum(row[column] for row in rows) for column in COLUMNS]
        lines.append("| " + " | ".join(map(str, (name, sum(phases), *phases, *numbers))) + " |")
    signals: dict[str, int] = {}
    for row in results["rows"]:
        signals[row["signal"]] = signals.get(row["signal"], 0) + row["kills"]
    counted = ", ".join(f"{number} {name}" for name, number in sorted(signals.items()))
    series = results["series"]
    days = sorted({one["when"][:10] for one in series})
    loads = [one["load"] for one in series]
    seeds = ", ".join(map(str, sorted({one["seed"] for one in series})))
    lines += [
        "",
        f"Signals: {counted}. {days[0]}{' to ' + days[-1] if days[1:] else ''}, {series[0]['cores']} cores under load "
        f"{min(loads):.0f} to {max(loads):.0f}, seed {seeds}.",
    ]
    return "\n".join(lines) + "\n"
