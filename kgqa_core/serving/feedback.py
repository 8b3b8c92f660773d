"""What people said of answers: kept in the home, and turned into questions with answers that the next training uses.

A thumb up confirms an answer, a correction names the right one.  Either counts as soon as two people say the same, or
somebody who may confirms it; whoever contradicts must be outnumbered.  Kept is what was asked, answered and said, and
no more of the person than the digest of a random id of the browser's session.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from kgqa_core.errors import InputError, StorageError
from kgqa_core.metrics.normalise import normalise
from kgqa_core.store.sqlite import BUSY_SECONDS, write_ahead

FILE = "feedback.sqlite"
AGREE = 2
"""Sessions that must say the same before it counts unconfirmed."""
MOST = 2**63 - 1
"""The largest number that SQLite holds."""

Verdict = Literal["up", "down"]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS feedback (
    id INTEGER PRIMARY KEY, at TEXT NOT NULL, question TEXT NOT NULL, topics TEXT NOT NULL, answers TEXT NOT NULL,
    form TEXT, run TEXT, trace TEXT, verdict TEXT NOT NULL, correction TEXT, session TEXT NOT NULL,
    confirmed INTEGER NOT NULL DEFAULT 0
);
"""


@dataclass(frozen=True, slots=True)
class Feedback:
    """What somebody said of an answer.

    question, topics: as they were asked; topics are keys.  answers: what was answered, as names or values.  form: the
    logical form of that answer.  run, trace: which run answered, and its trace in MLflow.  verdict: `up`, or `down`.
    correction: the right answers, as keys, names or values; of a `down` only.  session: any text that tells people
    apart; its digest is kept.
    """

    question: str
    verdict: Verdict
    topics: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    correction: tuple[str, ...] | None = None
    form: str | None = None
    run: str | None = None
    trace: str | None = None
    session: str = ""

    def in_keys(self, keys: Mapping[str, str]) -> Feedback:
        """The same with keys for names, so that people who mean the same say the same.  keys: by name, where known."""
        answers = tuple(keys.get(text, text) for text in self.answers)
        right = None if self.correction is None else tuple(keys.get(text, text) for text in self.correction)
        return replace(self, answers=answers, correction=right)


@dataclass(frozen=True, slots=True)
class Lesson:
    """A question with the answers that people agree on.  by: how many sessions.  confirmed: by somebody who may."""

    question: str
    topics: tuple[str, ...]
    answers: tuple[str, ...]
    form: str | None
    by: int
    confirmed: bool

    def to_row(self) -> dict[str, Any]:
        """A row of a question file, which trains."""
        digest = hashlib.sha256(json.dumps([self.question, *self.topics]).encode()).hexdigest()[:12]
        row = {
            "id": f"feedback-{digest}", "question": self.question, "topic_entities": list(self.topics),
            "answers": list(self.answers), "split": "train",
        }  # fmt: skip
        return row | ({"s_expression": self.form} if self.form else {})


class FeedbackStore:
    """The feedback of a home, in one SQLite file that several processes write.

    Raises StorageError when it cannot be opened or written.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self._lock = threading.Lock()
        with self._faults():
            folder.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(
                self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            write_ahead(self._connection)
            self._connection.executescript(_SCHEMA)

    def close(self) -> None:
        """Lets the file go."""
        self._connection.close()

    def add(self, said: Feedback) -> int:
        """Keeps what somebody said; its number.  Raises InputError for a correction of a `up`, or an empty one."""
        if said.correction is not None and (said.verdict == "up" or not said.correction):
            raise InputError("a correction names at least one right answer, and comes with the verdict down")
        if said.verdict == "up" and not said.answers:
            raise InputError("a thumb up confirms answers; the feedback names none")
        row = (
            datetime.now(UTC).strftime("%Y-%m-%d"), said.question, _list(said.topics), _list(said.answers), said.form,
            said.run, said.trace, said.verdict, None if said.correction is None else _list(said.correction),
            hashlib.sha256(said.session.encode()).hexdigest()[:16],
        )  # fmt: skip
        with self._lock, self._faults():
            cursor = self._connection.execute(
                "INSERT INTO feedback (at, question, topics, answers, form, run, trace, verdict, correction, session) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                row,
            )
        return int(cursor.lastrowid or 0)

    def confirm(self, number: int) -> None:
        """Lets one entry count by itself.  Raises InputError where there is none of this number."""
        self._change("UPDATE feedback SET confirmed = 1 WHERE id = ?", number)

    def remove(self, number: int) -> None:
        """Forgets one entry.  Raises InputError where there is none of this number."""
        self._change("DELETE FROM feedback WHERE id = ?", number)

    def _change(self, sql: str, number: int) -> None:
        changed = 0
        if abs(number) <= MOST:
            with self._lock, self._faults():
                changed = self._connection.execute(sql, [number]).rowcount
        if not changed:
            raise InputError(f"there is no feedback {number}; `kgqa feedback list` shows the numbers")

    def rows(self) -> list[dict[str, Any]]:
        """All that was said, oldest first."""
        names = (
            "id", "at", "question", "topics", "answers", "form", "run", "trace", "verdict", "correction", "session",
            "confirmed",
        )  # fmt: skip
        with self._lock, self._faults():
            found = self._connection.execute(f"SELECT {', '.join(names)} FROM feedback ORDER BY id").fetchall()
        rows = [dict(zip(names, row, strict=True)) for row in found]
        for row in rows:
            row["confirmed"] = bool(row["confirmed"])
            for name in ("topics", "answers", "correction"):
                row[name] = None if row[name] is None else json.loads(row[name])
        return rows

    def lessons(self) -> list[Lesson]:
        """The questions with answers that count, in order of their first feedback."""
        return lessons(self.rows())

    @contextlib.contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.Error) as fault:
            raise StorageError(
                f"the feedback {self.path} cannot be used ({fault}); free space, or move the file away to begin anew"
            ) from None


def lessons(rows: Sequence[dict[str, Any]]) -> list[Lesson]:
    """The questions with answers that count, of rows as `FeedbackStore.rows` gives them, in order of the first.

    Questions are alike up to case and punctuation, with the same topics.  What most sessions hold for right counts,
    where they are at least `AGREE` and more than any others, or where one entry is confirmed: of several the last.
    """
    asked: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        asked[normalise(row["question"]), tuple(sorted(row["topics"]))].append(row)
    found = []
    for own in asked.values():
        said = [(row, right) for row in own if (right := _right(row)) is not None]
        latest = {(row["session"], row["id"] if not row["session"] else 0): right for row, right in said}
        votes = Counter(latest.values())
        confirmed = [right for row, right in said if row["confirmed"]]
        ranked = votes.most_common(2)
        agreed = bool(ranked) and ranked[0][1] >= AGREE and (len(ranked) == 1 or ranked[0][1] > ranked[1][1])
        if not confirmed and not agreed:
            continue
        chosen = confirmed[-1] if confirmed else ranked[0][0]
        first = own[0]
        form = next((row["form"] for row, right in said if right == chosen and row["verdict"] == "up"), None)
        found.append(Lesson(first["question"], tuple(first["topics"]), chosen, form, votes[chosen], bool(confirmed)))
    return found


def _right(row: dict[str, Any]) -> tuple[str, ...] | None:
    said = row["answers"] if row["verdict"] == "up" else row["correction"]
    return tuple(sorted(set(said))) if said else None


def _list(values: Sequence[str]) -> str:
    return json.dumps(list(values), ensure_ascii=False)


def write_lessons(folder: Path, found: Sequence[Lesson]) -> Path:
    """Writes lessons as a question file, whose name follows its content; its path.  Raises StorageError."""
    lines = [json.dumps(lesson.to_row(), ensure_ascii=False, sort_keys=True) + "\n" for lesson in found]
    text = "".join(sorted(lines))
    path = folder / f"lessons-{hashlib.sha256(text.encode()).hexdigest()[:12]}.jsonl"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".part")
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    except OSError as fault:
        raise StorageError(f"{path} cannot be written ({fault}); free space or make its folder writable") from None
    return path
