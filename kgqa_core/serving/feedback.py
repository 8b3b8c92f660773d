"""Verdicts of clients on answers, kept in the home; those that its owner confirms train.

A verdict names an answer by the id that the server issued with it: what was asked and answered is read from the
server's own record.  However many clients say the same, nothing trains unconfirmed, since nobody can tell them apart.
"""

from __future__ import annotations

import contextlib
import hashlib
import ipaddress
import json
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from kgqa_core.errors import InputError, StorageError
from kgqa_core.metrics.normalise import normalise
from kgqa_core.serving import limits
from kgqa_core.serving.addresses import is_loopback
from kgqa_core.serving.feedback_examples import TrainingExample, example_of, fault_of, training_fault
from kgqa_core.serving.limits import SERVE_FOLDER
from kgqa_core.store.artifacts import Home
from kgqa_core.store.sqlite import BUSY_SECONDS, write_ahead
from kgqa_core.types import Question

FILE = "feedback.sqlite"
MOST = 2**63 - 1
"""The largest number that SQLite holds."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS answers (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, day TEXT NOT NULL, record TEXT NOT NULL,
    client TEXT NOT NULL DEFAULT ''
);
CREATE INDEX IF NOT EXISTS answers_day ON answers (day);
CREATE TABLE IF NOT EXISTS verdicts (
    id INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT NOT NULL, question TEXT NOT NULL, topics TEXT NOT NULL,
    answers TEXT NOT NULL, form TEXT, run TEXT, trace TEXT, verdict TEXT NOT NULL, correction TEXT,
    client TEXT NOT NULL, answer_id TEXT, state TEXT NOT NULL DEFAULT 'new', turn INTEGER,
    earlier_turns INTEGER NOT NULL DEFAULT 0, UNIQUE (client, answer_id)
);
CREATE TABLE IF NOT EXISTS posts (client TEXT, minute INTEGER, count INTEGER, PRIMARY KEY (client, minute));
"""
_FORGET = """
DELETE FROM answers WHERE number IN (
    SELECT number FROM (SELECT number, row_number() OVER (PARTITION BY client ORDER BY number DESC) AS age FROM answers)
    ORDER BY age DESC, number LIMIT ?)
"""
"""Forgets the oldest answers of the clients that have most."""
_COLUMNS = (
    "id", "at", "question", "topics", "answers", "form", "run", "trace", "verdict", "correction", "client",
    "answer_id", "state", "turn", "earlier_turns",
)  # fmt: skip


class FeedbackRefused(InputError):
    """Feedback that is not kept.  status: of HTTP, which says why."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class IssuedAnswer:
    """An answer that the server gave.

    question, topics: as they were asked; topics are keys.  answers: names or values.  form: the logical form of the
    answer.  run, trace: which run answered, and its trace in MLflow.  earlier_turns: of the dialogue before it.
    """

    question: str
    topics: Sequence[str] = ()
    answers: Sequence[str] = ()
    form: str | None = None
    run: str | None = None
    trace: str | None = None
    earlier_turns: int = 0


@dataclass(frozen=True, slots=True)
class Feedback:
    """A verdict on the answer of an id.

    correction: the right answers, as keys, names or values; of a `down` only.  number, trace: its own, and that of the
    answer in MLflow, once it is kept.
    """

    answer_id: str
    verdict: Literal["up", "down"]
    correction: tuple[str, ...] | None = None
    number: int = 0
    trace: str | None = None


def confirmed_questions(home: Home) -> list[Question]:
    """The hundred questions of a home that were confirmed last, with right answers; of one asked twice the last."""
    rows = []
    with contextlib.suppress(sqlite3.Error):  # there is no feedback
        address = f"{(home.root / SERVE_FOLDER / FILE).resolve().as_uri()}?mode=ro"
        with contextlib.closing(sqlite3.connect(address, uri=True, timeout=BUSY_SECONDS)) as connection:
            rows = FeedbackStore._rows(connection, "state = 'confirmed'")
    examples = [example_of(row) for row in sorted(rows, key=lambda row: row["turn"]) if row["fault"] is None]
    last = [*{normalise(one.question): one for one in examples}.values()][-100:]
    return [
        Question("", one.question, topic_keys=one.topics, answer_keys=one.answers, s_expression=one.form)
        for one in last
    ]


def client_of(host: str, token: str | None) -> str:
    """Who counts as one client: all that have the server's token, all of this machine, or an address, as a digest.

    Of IPv6 the first half counts: the rest is the client's to choose.
    """
    if token is not None:
        return "token"
    if is_loopback(host):
        return "loopback"
    with contextlib.suppress(ValueError):
        if (address := ipaddress.ip_address(host)).version == 6 and address.ipv4_mapped is None:
            host = str(ipaddress.ip_network((host, 64), strict=False))
    return hashlib.sha256(host.encode("utf-8", "replace")).hexdigest()[:16]


class FeedbackStore:
    """The feedback of a home, in one SQLite file that several processes write.

    Raises StorageError when it cannot be opened or written.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self._lock = threading.Lock()
        with self._faults():
            folder.mkdir(parents=True, exist_ok=True)
            self.path.touch(mode=0o600)  # questions and ids of answers are nobody else's
            self._connection = sqlite3.connect(
                self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            write_ahead(self._connection)
            self._connection.execute("PRAGMA synchronous = NORMAL")
            self._connection.executescript(_SCHEMA)
            self._inode = self.path.stat().st_ino

    def close(self) -> None:
        """Lets the file go."""
        self._connection.close()

    def issue(self, answers: Sequence[IssuedAnswer], client: str = "") -> list[str | None]:
        """Ids of answers that a client is given now, known for `ISSUED_DAYS`; None for one that is too long.

        Of an answer with a long list only the question is remembered: it can be corrected, and not confirmed.  Beyond
        `ISSUED_ANSWERS` those who have most lose their oldest, so that no client makes the server forget another's.
        """
        rows: list[tuple[str, str, str, str] | None] = []
        for answer in answers:
            records = (json.dumps(asdict(candidate)) for candidate in (answer, replace(answer, answers=())))
            record = next((text for text in records if len(text) <= limits.FEEDBACK_CHARACTERS), None)
            rows.append(None if record is None else (secrets.token_urlsafe(18), _day(), record, client))
        with self._writing() as connection:
            insert = "INSERT INTO answers (id, day, record, client) VALUES (?, ?, ?, ?)"
            connection.executemany(insert, filter(None, rows))
            connection.execute("DELETE FROM answers WHERE day < ?", [_day(-limits.ISSUED_DAYS)])
            [count] = connection.execute("SELECT count(*) FROM answers").fetchone()
            if count > limits.ISSUED_ANSWERS + limits.ISSUED_ANSWERS // 20:  # not each time: it sorts them all
                connection.execute(_FORGET, [count - limits.ISSUED_ANSWERS])
        return [row and row[0] for row in rows]

    def add(self, feedback: Feedback, client: str) -> Feedback:
        """Keeps a verdict, in place of the client's former one on the same answer; the verdict with its number.

        A verdict that changes gets another number, so that nobody confirms what he has not seen.
        Raises FeedbackRefused (404, 409, 413, 429), and InputError for what contradicts itself or cannot train.
        """
        right = None if feedback.correction is None else _list(feedback.correction)
        if right is not None and len(right) > limits.FEEDBACK_CHARACTERS:
            raise FeedbackRefused(
                413, f"a correction may have {limits.FEEDBACK_CHARACTERS:,} characters; name fewer answers"
            )
        with self._writing() as connection:
            _issued(connection, feedback.answer_id)  # what names no answer uses up nothing of what others may say
            self._count(connection, client)
        with self._writing() as connection:
            answer = _issued(connection, feedback.answer_id)
            _check(feedback, answer)
            former = connection.execute(
                "SELECT id, state, verdict, correction FROM verdicts WHERE client = ? AND answer_id = ?",
                [client, feedback.answer_id],
            ).fetchone()
            if former is not None and former[1] != "new":
                raise FeedbackRefused(409, "your feedback on this answer was decided on and does not change any more")
            if former is not None and former[2:] == (feedback.verdict, right):
                return replace(feedback, number=former[0], trace=answer.trace)
            connection.execute("DELETE FROM verdicts WHERE client = ? AND answer_id = ?", [client, feedback.answer_id])
            [pending] = connection.execute("SELECT count(*) FROM verdicts WHERE state = 'new'").fetchone()
            if pending >= limits.FEEDBACK_PENDING:
                raise FeedbackRefused(429, f"{pending:,} verdicts wait for the owner of this graph; give yours later")
            row = {
                **asdict(answer), "topics": _list(answer.topics), "answers": _list(answer.answers), "at": _day(),
                "verdict": feedback.verdict, "correction": right, "client": client, "answer_id": feedback.answer_id,
            }  # fmt: skip
            names, marks = ", ".join(row), ", ".join(f":{name}" for name in row)
            cursor = connection.execute(f"INSERT INTO verdicts ({names}) VALUES ({marks})", row)
        return replace(feedback, number=int(cursor.lastrowid or 0), trace=answer.trace)

    def admit(self, client: str) -> None:
        """Counts one more change by a client that is no verdict.  Raises FeedbackRefused (429)."""
        with self._writing() as connection:
            self._count(connection, client)

    @staticmethod
    def _count(connection: sqlite3.Connection, client: str) -> None:
        """Counts one more verdict of a client.  Raises FeedbackRefused (429) where there are too many."""
        minute = int(time.time() // 60)
        connection.execute("DELETE FROM posts WHERE minute <= ?", [minute - 24 * 60])
        counts = (
            ("client = ? AND minute = ?", (client, minute)), ("client = ?", (client,)), ("minute = ?", (minute,)),
        )  # fmt: skip
        for (condition, values), (limit, span) in zip(counts, limits.FEEDBACK_LIMITS, strict=True):
            [count] = connection.execute(f"SELECT total(count) FROM posts WHERE {condition}", values).fetchone()
            if count >= limit:
                raise FeedbackRefused(429, f"there may be {limit:,} verdicts and names {span}; give this one later")
        connection.execute(
            "INSERT INTO posts VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET count = count + 1", [client, minute]
        )

    def confirm(self, number: int) -> TrainingExample:
        """Lets one entry train; the example that it is.

        Raises InputError where there is none of this number, or it cannot train.
        """
        with self._writing() as connection:
            rows = self._rows(connection, "id = ?", [number]) if abs(number) <= MOST else []
            if not rows:
                raise InputError(_none([number]))
            example, fault = example_of(rows[0]), rows[0]["fault"]
            if fault is not None or not example.answers:
                raise InputError(f"feedback {number} cannot train: {fault or 'it names no right answer'}")
            connection.execute(
                "UPDATE verdicts SET state = 'confirmed', "
                "turn = coalesce(turn, (SELECT coalesce(max(turn), 0) + 1 FROM verdicts)) WHERE id = ?",
                [number],
            )
        return example

    def confirm_examples(self, examples: Sequence[TrainingExample]) -> None:
        """Keeps questions of the owner's file as confirmed, in place of former ones of a file in the same words."""
        with self._writing() as connection:
            for one in examples:
                row = {
                    "at": _day(), "question": one.question, "topics": _list(one.topics), "answers": _list(one.answers),
                    "form": one.form, "verdict": "up", "client": "file", "answer_id": one.to_row()["id"],
                    "state": "confirmed",
                }  # fmt: skip
                connection.execute(
                    f"INSERT OR REPLACE INTO verdicts ({', '.join(row)}, turn) VALUES "
                    f"({', '.join(f':{name}' for name in row)}, (SELECT coalesce(max(turn), 0) + 1 FROM verdicts))",
                    row,
                )

    def remove(self, numbers: Sequence[int] = (), **conditions: str | None) -> int:
        """Forgets the entries that `quarantine` would take, and the answers that they are on; how many."""
        forget = "DELETE FROM answers WHERE id IN (SELECT answer_id FROM verdicts WHERE {})"
        return self._change((forget, "DELETE FROM verdicts WHERE {}"), numbers, **conditions)

    def quarantine(self, numbers: Sequence[int] = (), **conditions: str | None) -> int:
        """Takes entries out of training until they are confirmed again; how many.

        numbers: theirs.  conditions: `client`, and `since` and `until`, the first and the last day; all must hold.
        Raises InputError where neither is given, or where there is no such entry.
        """
        return self._change(("UPDATE verdicts SET state = 'quarantined' WHERE {}",), numbers, **conditions)

    def _change(
        self,
        statements: Sequence[str],
        numbers: Sequence[int],
        client: str | None = None,
        since: str | None = None,
        until: str | None = None,
    ) -> int:
        ids = [number for number in numbers if abs(number) <= MOST]
        given: list[tuple[str, list[Any]]] = [(f"id IN ({', '.join('?' * len(ids))})", ids)] if numbers else []
        for sql, value in (("client = ?", client), ("at >= ?", since), ("at <= ?", until)):
            given += [] if value is None else [(sql, [value])]
        if not given:
            raise InputError("name the entries: their numbers, --client, --since or --until")
        where, values = " AND ".join(sql for sql, _ in given), [value for _, some in given for value in some]
        with self._writing() as connection:
            changed = [connection.execute(sql.format(where), values).rowcount for sql in statements]
        if not changed[-1]:
            conditions = {"client": client, "since": since, "until": until}
            raise InputError(_none(numbers, {name: value for name, value in conditions.items() if value is not None}))
        return changed[-1]

    def rows(self) -> list[dict[str, Any]]:
        """All verdicts, oldest first; `fault` says why one cannot train."""
        with self._lock, self._faults():
            return self._rows(self._connection)

    def questions(self) -> list[str]:
        """Questions without earlier turns that were answered lately, oldest first, each once."""
        with self._lock, self._faults():
            records = self._connection.execute("SELECT record FROM answers ORDER BY number").fetchall()
        answers = (json.loads(record) for (record,) in records)
        return [*dict.fromkeys(one["question"] for one in answers if not one["earlier_turns"])]

    @staticmethod
    def _rows(connection: sqlite3.Connection, where: str = "TRUE", values: Sequence[Any] = ()) -> list[dict[str, Any]]:
        cells = connection.execute(f"SELECT {', '.join(_COLUMNS)} FROM verdicts WHERE {where} ORDER BY id", values)
        rows = [dict(zip(_COLUMNS, row, strict=True)) for row in cells.fetchall()]
        for row in rows:
            for name in ("topics", "answers", "correction"):
                row[name] = None if row[name] is None else json.loads(row[name])
            row["fault"] = training_fault(row)
        return rows

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction beside which no other process writes."""
        with self._lock, self._faults():
            if os.stat(self.path).st_ino != self._inode:
                raise OSError("another file is in its place")
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.Error) as fault:
            raise StorageError(
                f"the feedback {self.path} cannot be used ({fault}); free space, or move the file away to begin anew"
            ) from None


def _issued(connection: sqlite3.Connection, answer_id: str) -> IssuedAnswer:
    row = connection.execute("SELECT record FROM answers WHERE id = ?", [answer_id]).fetchone()
    if row is None:
        raise FeedbackRefused(
            404, "the server gave no answer of this answer_id, or long ago; ask again and name the id of the new answer"
        )
    return IssuedAnswer(**json.loads(row[0]))


def _check(feedback: Feedback, answer: IssuedAnswer) -> None:
    """Raises InputError for a verdict that contradicts itself, or that no question file could hold."""
    if feedback.correction is not None and (feedback.verdict == "up" or not feedback.correction):
        raise InputError("a correction names at least one right answer, and comes with the verdict down")
    if feedback.verdict == "up" and not answer.answers:
        raise InputError("a thumb up confirms answers; this answer names none, or more than are remembered")
    if fault := fault_of({**asdict(answer), "verdict": feedback.verdict, "correction": feedback.correction}):
        raise InputError(f"this feedback cannot be kept: {fault}")


def _none(numbers: Sequence[int], conditions: Mapping[str, str] | None = None) -> str:
    which = f"feedback {', '.join(map(str, numbers))}" if numbers else "feedback"
    given = " and ".join(f"{name} {value!r}" for name, value in (conditions or {}).items())
    return (
        f"there is no {which}{f' with {given}' if given else ''}; `kgqa feedback list` shows numbers, days and clients"
    )


def _list(values: Sequence[str]) -> str:
    return json.dumps(list(values), ensure_ascii=False)


def _day(ahead: int = 0) -> str:
    return (datetime.now(UTC) + timedelta(days=ahead)).strftime("%Y-%m-%d")
