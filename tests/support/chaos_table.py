"""The chaos table: what each fault cost, counted home by home, and what must be true when a home has settled."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.chaos import CONCURRENCY, Try, World, finished, last_digests, left_over, marked, wait_for


@dataclass
class Measured:
    """The undisturbed run: what it makes, what it asks, how long it takes from the opening of the run."""

    digests: dict[str, str]
    replies: int
    seconds: list[float] = field(default_factory=list)


@dataclass
class Row:
    """A line of the table.

    kills.  went_on: tries that ended well although they were hit.  survived: kills after which the run, or the same
    command again, ended with the digests of an undisturbed run.  lost: kills after which finished work was gone.
    asked_again: replies that had been given before, because they were under way at a kill; paid_twice: those beyond.
    """

    fault: str
    kills: int = 0
    went_on: int = 0
    survived: int = 0
    lost: int = 0
    asked_again: int = 0
    paid_twice: int = 0
    homes: int = 0
    seconds: float = 0.0
    during: Counter[str] = field(default_factory=Counter)
    said: Counter[str] = field(default_factory=Counter)


class Table:
    """The chaos table, written into a folder after each row as JSON and as Markdown."""

    def __init__(self, folder: Path, conditions: Mapping[str, Any]) -> None:
        self.folder, self.conditions, self.rows = folder, dict(conditions), list[Row]()
        folder.mkdir(parents=True, exist_ok=True)

    def row(self, fault: str) -> Row:
        """A new row."""
        self.rows.append(Row(fault))
        return self.rows[-1]

    def write(self) -> str:
        """Both files; the Markdown."""
        head = ("fault", "kills", "survived", "of these without a rerun", "lost", "asked again", "paid twice")
        lines = ["| " + " | ".join(head) + " |", "|---" + "|--:" * (len(head) - 1) + "|"]
        total = Row("all")
        for row in self.rows:
            for name in ("kills", "survived", "went_on", "lost", "asked_again", "paid_twice"):
                setattr(total, name, getattr(total, name) + getattr(row, name))
        for row in (*self.rows, total):
            cells = (row.fault, row.kills, row.survived, row.went_on, row.lost, row.asked_again, row.paid_twice)
            lines.append("| " + " | ".join(map(str, cells)) + " |")
        lines += ["", "Killed while: " + "; ".join(f"{row.fault}: {_counts(row.during)}" for row in self.rows)]
        lines += ["", "Said: " + "; ".join(f"{row.fault}: {_counts(row.said)}" for row in self.rows if row.said)]
        text = "\n".join(lines) + "\n"
        (self.folder / "chaos.md").write_text(text, encoding="utf-8")
        told = {"conditions": self.conditions, "rows": [vars(row) for row in self.rows]}
        (self.folder / "chaos.json").write_text(json.dumps(told, indent=1), encoding="utf-8")
        return text


@dataclass
class Home:
    """One home of a row: what is counted while its tries are hit, and what must be true in the end."""

    world: World
    row: Row
    expected: Measured
    runner: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.path, self.paid, self.kills, self.tries = self.world.home(), self.world.model.count(), 0, list[Try]()
        self.whole, self.began = set[str](), time.monotonic()
        self.row.homes += 1

    def start(self) -> Try:
        self.tries.append(self.world.start(self.path, **self.runner))
        return self.tries[-1]

    def hit(self, during: str) -> None:
        """A kill, and what the run was at."""
        self.kills += 1
        self.row.kills += 1
        self.row.during[during] += 1
        whole = finished(self.path)
        if not self.whole <= whole:
            self.row.lost += 1
        self.whole = whole

    def settle(self, *, done: bool = False) -> None:
        """The same command once more, unless the last try did it; then everything that must be true."""
        if not done:
            self.tries.append(self.world.start(self.path, **self.runner))
            outcome = self.tries[-1].end()
            assert outcome.code == 0, f"the rerun failed after {self.row}:\n{outcome.err[-4000:]}"
        assert last_digests(self.path) == self.expected.digests
        assert self.whole <= finished(self.path), "finished work went away"
        assert left_over(self.path, self.world.servers) == []
        wait_for(lambda: not marked(str(self.path), "KGQA_HOME"), f"processes live on for {self.path}", 600)
        for one in self.tries:
            wait_for(lambda one=one: not marked(one.mark), f"orphans: {one.orphans()}", 600)
        again = self.world.model.twice(self.paid)
        asked = self.world.model.count() - self.paid
        self.row.survived += self.kills
        self.row.asked_again += again
        self.row.paid_twice += max(0, again - self.kills * CONCURRENCY)
        self.row.seconds += time.monotonic() - self.began
        assert asked - again == self.expected.replies, "each text was asked for"
        assert self.row.paid_twice == 0, f"{again} replies came twice after {self.kills} kills"
        assert self.row.lost == 0


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in counter.most_common())
