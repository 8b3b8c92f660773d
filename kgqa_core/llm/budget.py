"""What a run may spend at endpoints, booked before each request leaves and never exceeded.

A request is reserved with the largest output that it can have; what it did not need is given back when it is settled.
A reservation that nobody settles, because the process was killed, stays spent.  The ledger is in the file of the
responses, so that restarts and several processes count together.
"""

from __future__ import annotations

import logging
import math
import secrets
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kgqa_core.config import BudgetOptions, Price
from kgqa_core.errors import BudgetReached, ModelError
from kgqa_core.llm.cache import AT_ONCE, SCHEMA
from kgqa_core.llm.store import CompletionStore, FailedWrite, open_store

log = logging.getLogger("kgqa.llm")

NANO = 10**9
"""Parts of the currency's unit in which the ledger counts; a request's cost is rounded up."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """Room for one request.  tokens, nanos: what it may cost at most."""

    id: int
    account: str
    model: str
    tokens: int
    nanos: int


@dataclass(frozen=True, slots=True)
class Spent:
    """What is booked: requests, tokens and money, reservations in full."""

    calls: int = 0
    tokens: int = 0
    cost: float = 0.0


class Budget:
    """Limits that all accounts opened here share.

    prices: of models, by name (`openai:MODEL` or `openai:MODEL@ENDPOINT`).  ledger: SQLite file, or None for memory.
    account: whom new requests are booked on, such as the key of a stage; its earlier spending counts.
    """

    def __init__(
        self,
        options: BudgetOptions,
        prices: Mapping[str, Price] | None = None,
        ledger: Path | None = None,
        account: str = "",
    ) -> None:
        self.options, self.prices, self.account = options, dict(prices or {}), account
        self._store: CompletionStore = open_store(ledger, SCHEMA)
        self._accounts = {account: None}

    def open(self, account: str) -> Budget:
        """A budget that books on another account and shares these limits; what the account spent before counts."""
        other = object.__new__(Budget)
        other.options, other.prices, other.account = self.options, self.prices, account
        other._store, other._accounts = self._store, self._accounts
        self._accounts[account] = None
        return other

    @property
    def accounts(self) -> tuple[str, ...]:
        """The accounts that are open here."""
        return tuple(self._accounts)

    def spent(self) -> Spent:
        """What all accounts that are open here have spent and reserved."""
        return _sum(self._store.submit(self._totals).result())

    def reserve(self, model: str, prompt_tokens: int, max_new_tokens: int) -> Reservation:
        """Room for a request of at most so many tokens, on disk when this returns.

        Raises BudgetReached when a limit would be exceeded, ModelError when max_cost is set and the model has no price.
        """
        request = self._request(model, prompt_tokens, max_new_tokens)
        (made,) = self._store.submit(lambda connection: self._reserve(connection, [request])).result()
        if isinstance(made, FailedWrite):
            raise made.fault
        return made

    async def reserve_soon(self, model: str, prompt_tokens: int, max_new_tokens: int) -> Reservation:
        """`reserve` for an event loop."""
        made: Reservation = await self._store.run(self._reserve, self._request(model, prompt_tokens, max_new_tokens))
        return made

    def settle(
        self, reservation: Reservation, prompt_tokens: int = 0, completion_tokens: int = 0, *, paid: bool = True
    ) -> None:
        """Books what a request did cost and gives the rest back; returns at once.

        paid: False for one that the server did not work on; it costs no tokens, but the call stays booked.  A request
        whose cost is unknown, after a time-out or without usage in the reply, is not settled and stays spent in full.
        """
        tokens = prompt_tokens + completion_tokens if paid else 0
        nanos = self._nanos(reservation.model, prompt_tokens, completion_tokens) if paid else 0
        if tokens > reservation.tokens:
            log.warning(
                "%s counted %d tokens for a request of at most %d; the budget may be exceeded by the difference",
                reservation.model, tokens, reservation.tokens,
            )  # fmt: skip
        self._store.post(_settle, (reservation, tokens, nanos))

    def flush(self) -> None:
        """Waits until all bookings are on disk."""
        self._store.flush()

    def _request(self, model: str, prompt_tokens: int, max_new_tokens: int) -> Reservation:
        nanos = self._nanos(model, prompt_tokens, max_new_tokens)
        return Reservation(secrets.randbits(63), self.account, model, prompt_tokens + max_new_tokens, nanos)

    def _reserve(
        self, connection: sqlite3.Connection, request: Sequence[Reservation]
    ) -> list[Reservation | FailedWrite]:
        """Books those that have room, in order."""
        calls, tokens, nanos = before = self._totals(connection)
        made: list[Reservation] = []
        results: list[Reservation | FailedWrite] = []
        for each in request:
            try:
                self._check((calls, tokens, nanos), each.tokens, each.nanos)
            except BudgetReached as reached:
                results.append(FailedWrite(reached))
                continue
            calls, tokens, nanos = calls + 1, tokens + each.tokens, nanos + each.nanos
            made.append(each)
            results.append(each)
        if made:
            connection.execute(
                "INSERT INTO accounts VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET calls = calls + excluded.calls, "
                "tokens = tokens + excluded.tokens, nanos = nanos + excluded.nanos",
                (self.account, calls - before[0], tokens - before[1], nanos - before[2]),
            )
            now = time.time()
            connection.executemany(
                "INSERT INTO reservations VALUES (?, ?, ?, ?, ?, ?)",
                [(each.id, each.account, each.model, each.tokens, each.nanos, now) for each in made],
            )
        return results

    def _totals(self, connection: sqlite3.Connection) -> tuple[int, int, int]:
        accounts = list(self._accounts)
        row = connection.execute(
            "SELECT coalesce(sum(calls), 0), coalesce(sum(tokens), 0), coalesce(sum(nanos), 0) FROM accounts "
            f"WHERE account IN ({', '.join('?' * len(accounts))})",
            accounts,
        ).fetchone()
        return int(row[0]), int(row[1]), int(row[2])

    def _check(self, spent: tuple[int, int, int], tokens: int, nanos: int) -> None:
        limits = self.options
        if limits.max_calls is not None and spent[0] + 1 > limits.max_calls:
            raise BudgetReached("max_calls", f"{spent[0]:,} of {limits.max_calls:,} calls", "1")
        if limits.max_tokens is not None and spent[1] + tokens > limits.max_tokens:
            raise BudgetReached("max_tokens", f"{spent[1]:,} of {limits.max_tokens:,} tokens", f"{tokens:,}")
        if limits.max_cost is not None and spent[2] + nanos > math.floor(limits.max_cost * NANO):
            limit = f"{spent[2] / NANO:.4f} of {limits.max_cost:.4f} of the currency of llm.prices"
            raise BudgetReached("max_cost", limit, f"{nanos / NANO:.6f}")

    def _nanos(self, model: str, prompt_tokens: int, completion_tokens: int) -> int:
        price = self.prices.get(model)
        if price is None:
            if self.options.max_cost is not None:
                raise ModelError(
                    f"llm.budget.max_cost is set and '{model}' has no price; put it into llm.prices (0 if it is free)"
                )
            return 0
        return math.ceil((prompt_tokens * price.prompt + completion_tokens * price.completion) * (NANO // 10**6))


def _settle(connection: sqlite3.Connection, settled: Sequence[tuple[Reservation, int, int]]) -> Sequence[None]:
    """Books the real costs; a reservation that was settled before is left."""
    for start in range(0, len(settled), AT_ONCE):
        part = {each[0].id: each for each in settled[start : start + AT_ONCE]}
        marks = ", ".join("?" * len(part))
        back: dict[str, tuple[int, int]] = {}
        for (number,) in connection.execute(
            f"DELETE FROM reservations WHERE id IN ({marks}) RETURNING id", list(part)
        ).fetchall():
            reservation, tokens, nanos = part[number]
            more = back.get(reservation.account, (0, 0))
            back[reservation.account] = (
                more[0] + tokens - reservation.tokens, more[1] + nanos - reservation.nanos
            )  # fmt: skip
        connection.executemany(
            "UPDATE accounts SET tokens = tokens + ?, nanos = nanos + ? WHERE account = ?",
            [(*difference, account) for account, difference in back.items()],
        )
    return [None] * len(settled)


def _sum(totals: tuple[int, int, int]) -> Spent:
    return Spent(totals[0], totals[1], totals[2] / NANO)
