"""Completions that were paid for, stored for every run of a home: one SQLite file, content-addressed.

The key of a completion is the digest of all that it depends on.  A completion that a caller's check rejected stays as
a spent attempt with its reason.  No key of an endpoint is ever in the file, and addresses are without user, password
and query.
"""

from __future__ import annotations

import hashlib
import json
import logging
import sqlite3
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from kgqa_core.errors import StorageError
from kgqa_core.llm.faults import UNREADABLE
from kgqa_core.llm.protocol import Completion, GenerationParams, clean_text
from kgqa_core.llm.store import ROW_FAULTS, open_store
from kgqa_core.store.artifacts import canonical_json
from kgqa_core.store.dates import SLACK

log = logging.getLogger("kgqa.llm")

FILE = "responses.sqlite"
"""Name of the file in a home's cache folder; the ledger of budgets is in it too."""

AT_ONCE = 500
"""Keys of one look-up."""

SCHEMA = """
CREATE TABLE IF NOT EXISTS responses (
    key TEXT PRIMARY KEY, state TEXT NOT NULL, reason TEXT, backend TEXT NOT NULL, endpoint TEXT NOT NULL,
    model TEXT NOT NULL, revision TEXT NOT NULL, params TEXT NOT NULL, prompt TEXT NOT NULL, sample INTEGER NOT NULL,
    attempt INTEGER NOT NULL, asked_with TEXT NOT NULL, text TEXT NOT NULL, finish TEXT NOT NULL,
    prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, stored REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS log_probabilities (
    key TEXT PRIMARY KEY, log_probability REAL NOT NULL, scored_tokens INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS repairs (
    key TEXT PRIMARY KEY, repairs TEXT NOT NULL, estimated INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS accounts (
    account TEXT PRIMARY KEY, calls INTEGER NOT NULL, tokens INTEGER NOT NULL, nanos INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS reservations (
    id INTEGER PRIMARY KEY, account TEXT NOT NULL, model TEXT NOT NULL, tokens INTEGER NOT NULL,
    nanos INTEGER NOT NULL, made REAL NOT NULL
)
"""
COLUMNS = (
    "key", "state", "reason", "backend", "endpoint", "model", "revision", "params", "prompt", "sample", "attempt",
    "asked_with", "text", "finish", "prompt_tokens", "completion_tokens", "stored",
)  # fmt: skip
INSERT = f"INSERT OR REPLACE INTO responses VALUES ({', '.join('?' * len(COLUMNS))})"
SCORED = ("log_probability", "scored_tokens")
"""Columns of a table of their own: what was kept before there was one has none, and earlier versions read the rest."""

REPAIRED = ("repairs", "estimated")
"""Columns of another such table: what was odd in a reply, as a JSON list, and whether a token count is an estimate."""

JOINED = "responses LEFT JOIN log_probabilities USING (key) LEFT JOIN repairs USING (key)"


@dataclass(frozen=True, slots=True)
class Identity:
    """Which model answers.  endpoint: address without user, password and query; empty for local models."""

    backend: str
    endpoint: str
    model: str
    revision: str


@dataclass(frozen=True)
class Request:
    """One completion that may be requested.

    sample: number of the candidate.  attempt: tries of this candidate that were rejected before.  group: digest of the
    prompts sent together where the model's answer may depend on them, else empty.
    """

    identity: Identity
    params: GenerationParams
    prompt: str
    sample: int = 0
    attempt: int = 0
    group: str = ""

    @cached_property
    def key(self) -> str:
        """SHA-256 of all that the completion depends on, in hex."""
        identity = self.identity
        depends = [
            identity.backend, identity.endpoint, identity.model, identity.revision, _settings(self.params),
            [{"role": "user", "content": self.prompt}], self.sample, self.attempt, self.group,
        ]  # fmt: skip
        return hashlib.sha256(canonical_json(depends).encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class CachedCompletion:
    """A completion from the cache.  reason: why its caller rejected it, None when it was accepted."""

    completion: Completion
    reason: str | None


@dataclass(frozen=True, slots=True)
class StoredCompletion:
    """A completion with its prompt.  accepted: by its caller's check.  stored: when, in seconds since the epoch."""

    prompt: str
    text: str
    prompt_tokens: int
    completion_tokens: int
    max_new_tokens: int
    accepted: bool
    stored: float


class ResponseCache:
    """Completions on disk, or in memory without a path; safe for several threads and processes.

    Raises StorageError when the file cannot be used; a damaged one is moved aside, never overwritten.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._store = open_store(path, SCHEMA)

    def get(self, requests: Iterable[Request]) -> dict[str, CachedCompletion]:
        """The cached completions of some requests, by their keys."""
        keys = [request.key for request in requests]
        results: dict[str, CachedCompletion] = {}
        for start in range(0, len(keys), AT_ONCE):
            part = keys[start : start + AT_ONCE]
            rows = self._store.read(
                f"SELECT key, text, finish, prompt_tokens, completion_tokens, reason, "
                f"{', '.join(SCORED + REPAIRED)} FROM {JOINED} WHERE key IN ({', '.join('?' * len(part))})",
                part,
            )
            for key, text, finish, prompt_tokens, completion_tokens, reason, scored, tokens, repairs, marked in rows:
                completion = Completion(
                    text, finish, prompt_tokens, completion_tokens, reason if finish == "unreadable" else None,
                    scored, tokens or 0, tuple(json.loads(repairs or "[]")), bool(marked),
                )  # fmt: skip
                results[key] = CachedCompletion(completion, reason)
        return results

    def put(self, request: Request, completion: Completion, reason: str | None = None) -> None:
        """Keeps a completion: accepted, or spent for a reason.  Returns at once; `flush` waits for the disk.

        One that the file cannot store becomes a spent attempt without text, with that reason.
        """
        self._store.post(_insert, (request, completion, reason, time.time()))

    def flush(self) -> None:
        """Waits until everything put here is on disk.  Raises StorageError when the disk refused some of it."""
        self._store.flush()

    def stats(self) -> dict[str, Any]:
        """Counts: entries, accepted, spent, repaired (replies that were odd), prompt_tokens, completion_tokens, bytes,
        and entries by model."""
        self.flush()
        rows = self._store.read(
            "SELECT backend, model, endpoint, count(*), sum(state = 'spent'), sum(prompt_tokens), "
            "sum(completion_tokens) FROM responses GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
        )
        size = sum(file.stat().st_size for file in _files(self.path)) if self.path is not None else 0
        return {
            "entries": sum(row[3] for row in rows),
            "accepted": sum(row[3] - row[4] for row in rows),
            "spent": sum(row[4] for row in rows),
            "repaired": self._store.read("SELECT count(*) FROM repairs")[0][0],
            "prompt_tokens": sum(row[5] for row in rows),
            "completion_tokens": sum(row[6] for row in rows),
            "bytes": size,
            "models": [
                dict(zip(("backend", "model", "endpoint", "entries", "spent"), row[:5], strict=True)) for row in rows
            ],
        }

    def latest(self, identity: Identity, opening: str, most: int) -> list[StoredCompletion]:
        """At most so many completions of a model, of any revision, to prompts that begin with `opening`, newest first.

        A completion dated in the future comes last.  What was put here since the last `flush` may be missing.
        """
        rows = self._store.read(
            "SELECT prompt, text, prompt_tokens, completion_tokens, params, state, stored FROM responses WHERE "
            "backend = ? AND endpoint = ? AND model = ? AND substr(prompt, 1, ?) = ? "
            "ORDER BY stored > ?, stored DESC LIMIT ?",
            [identity.backend, identity.endpoint, identity.model, len(opening), opening, time.time() + SLACK, most],
        )
        return [
            StoredCompletion(
                prompt,
                text,
                prompt_tokens,
                completion_tokens,
                json.loads(params)["max_new_tokens"],
                state == "accepted",
                stored,
            )
            for prompt, text, prompt_tokens, completion_tokens, params, state, stored in rows
        ]

    def export(self, path: Path) -> int:
        """Writes all entries as JSON lines, sorted by key, and returns their number."""
        self.flush()
        columns = (*COLUMNS, *SCORED, *REPAIRED)
        rows = self._store.read(f"SELECT {', '.join(columns)} FROM {JOINED} ORDER BY key")
        try:
            with path.open("w", encoding="utf-8") as file:
                for row in rows:
                    entry = dict(zip(columns, row, strict=True))
                    if entry["log_probability"] is None:
                        for name in SCORED:
                            del entry[name]
                    if entry["repairs"] is None:
                        for name in REPAIRED:
                            del entry[name]
                    else:
                        entry |= {
                            "repairs": json.loads(entry["repairs"]), "estimated": bool(entry["estimated"])
                        }  # fmt: skip
                    entry["params"] = json.loads(entry["params"])
                    file.write(json.dumps(entry, ensure_ascii=False) + "\n")
        except OSError as fault:
            raise StorageError(f"cannot write {path}: {fault}; choose another file") from fault
        return len(rows)

    def clear(self, *, model: str | None = None, spent_only: bool = False) -> int:
        """Forgets entries: all, those of one model, or only rejected ones; returns how many.  Spending stays booked."""
        where = ["1"]
        values: list[str] = []
        if model is not None:
            where.append("model = ?")
            values.append(model)
        if spent_only:
            where.append("state = 'spent'")
        sql = f"DELETE FROM responses WHERE {' AND '.join(where)}"

        def forget(connection: sqlite3.Connection) -> int:
            number = connection.execute(sql, values).rowcount
            for table in ("log_probabilities", "repairs"):
                connection.execute(f"DELETE FROM {table} WHERE key NOT IN (SELECT key FROM responses)")
            return number

        return self._store.submit(forget).result()


def open_cache(cache: Path | None) -> ResponseCache:
    """The cache in a folder, or one in memory without a folder."""
    return ResponseCache(None if cache is None else cache / FILE)


_Put = tuple[Request, Completion, str | None, float]


def _insert(connection: sqlite3.Connection, items: Sequence[_Put]) -> Sequence[None]:
    """Writes completions; one that cannot be written, alone in a write, becomes a spent attempt."""
    try:
        _write(connection, items)
    except ROW_FAULTS as fault:
        if len(items) > 1:
            raise
        [(request, completion, _, stored)] = items
        reason = f"{UNREADABLE}: it cannot be stored ({type(fault).__name__})"
        log.warning(
            "a completion of %s cannot be stored: %s; it is kept as a spent attempt", request.identity.model, fault
        )
        _write(connection, [(request, Completion("", "unreadable"), reason, stored)])
    return [None] * len(items)


def _write(connection: sqlite3.Connection, items: Sequence[_Put]) -> None:
    connection.executemany(INSERT, [_row(*item) for item in items])
    for table, own in (("log_probabilities", _scored), ("repairs", _repaired)):
        rows = [row for request, completion, _, _ in items if (row := own(request, completion)) is not None]
        connection.executemany(f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?)", rows)


def _row(request: Request, completion: Completion, reason: str | None, stored: float) -> tuple[Any, ...]:
    identity = request.identity
    return (
        request.key, "accepted" if reason is None else "spent", reason and clean_text(reason), identity.backend,
        identity.endpoint, identity.model, identity.revision, _settings(request.params), clean_text(request.prompt),
        request.sample, request.attempt, request.group, clean_text(completion.text), completion.finish,
        completion.prompt_tokens, completion.completion_tokens, stored,
    )  # fmt: skip


def _scored(request: Request, completion: Completion) -> tuple[Any, ...] | None:
    known = completion.log_probability is not None
    return (request.key, completion.log_probability, completion.scored_tokens) if known else None


def _repaired(request: Request, completion: Completion) -> tuple[Any, ...] | None:
    odd = completion.repairs or completion.estimated
    return (request.key, json.dumps(completion.repairs), int(completion.estimated)) if odd else None


@lru_cache(maxsize=64)
def _settings(params: GenerationParams) -> str:
    """Generation settings as canonical JSON; keys without log-probabilities or choices are as they always were."""
    settings = asdict(params)
    for name in ("log_probabilities", "choices"):
        if not settings[name]:
            del settings[name]
    return canonical_json(settings)


def _files(path: Path) -> list[Path]:
    return [file for suffix in ("", "-wal") if (file := path.with_name(path.name + suffix)).exists()]
