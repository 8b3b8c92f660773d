"""Runs a logical form on a graph: its answers or its value, the triples that prove them, and both as texts."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass

import duckdb

from kgqa_core.errors import FormError, FormTimeout
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.compile import NODE, PROOF, ROWS, VALUE, Query, compile_sql
from kgqa_core.logic.forms import Count, Form, Holds

SECONDS = 10.0
_AGAIN = 0.01
_SHOWN = 200
"""Letters of a form that an error shows which is about its length."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a form denotes in a graph.

    nodes: ids, ascending; empty for a value.  value: of COUNT a number, of HOLDS yes or no, else None.  proof: ids of
    the triples that the answers rest on, ascending: every triple on any way to any answer; what a form finds missing
    (the second part of MINUS, a HOLDS that is not so) and types have none.  truncated: there are more nodes or triples
    than `rows`; a count is never cut.
    """

    nodes: tuple[int, ...] = ()
    value: int | bool | None = None
    proof: tuple[int, ...] = ()
    truncated: bool = False

    @property
    def empty(self) -> bool:
        """Whether there is no answer; a count of 0 and a `no` are answers."""
        return self.value is None and not self.nodes


def execute(
    form: Form,
    store: KgStore,
    *,
    rows: int = ROWS,
    seconds: float = SECONDS,
    proof: bool = True,
    without_named: bool = False,
) -> Result:
    """The result of a form.

    rows: most nodes, and most triples of proof.  seconds: most time, after which the query is interrupted.
    without_named: entities that the form names are no answers.  The store's connection serves one thread at a time.
    Raises FormError for a form that does not fit the graph and FormTimeout.
    """
    query = compile_sql(form, store, rows=rows, proof=proof, without_named=without_named)
    result = run(query, store, seconds, str(form))
    nodes, triples = (sorted(i for kind, i in result if kind == wanted) for wanted in (NODE, PROOF))
    values = [i for kind, i in result if kind == VALUE]
    return Result(
        nodes=tuple(nodes[:rows]),
        value=None if not values else values[0] if isinstance(form, Count) else bool(values[0]),
        proof=tuple(triples[:rows]),
        truncated=len(nodes) > rows or len(triples) > rows,
    )


def run(query: Query, store: KgStore, seconds: float, shown: str) -> list[tuple[int, int]]:
    """The rows of a query, interrupted after so many seconds.

    Raises FormTimeout, and FormError for a form that needs too much memory or has more parts than one query may.
    """
    seconds, done = min(seconds, threading.TIMEOUT_MAX), threading.Event()
    watch = threading.Thread(target=interrupt_after, args=(store.connection, seconds, done), daemon=True)
    watch.start()
    try:
        return store.connection.execute(query.sql, list(query.parameters)).fetchall()
    except duckdb.InterruptException:
        raise FormTimeout(f"{shown} took longer than {seconds:g} s; begin it with an entity, or allow more") from None
    except duckdb.OutOfMemoryException:
        raise FormError(f"{shown} needs more memory than there is; begin it with an entity") from None
    except (duckdb.BinderException, duckdb.ParserException) as fault:
        if "expression depth" not in str(fault):
            raise
        cut = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
        raise FormError(f"{cut} has too many parts for one query; ask for some of them at a time") from None
    finally:
        done.set()
        watch.join()


def interrupt_after(connection: duckdb.DuckDBPyConnection, seconds: float, done: threading.Event) -> None:
    """Ends a query when its time is over; again and again, since one that has not begun yet is not ended by it."""
    over = done.wait(seconds)
    while not over:
        connection.interrupt()
        over = done.wait(_AGAIN)


NOTHING = "0"
"""Answer of a count that counts nothing (the published gold of an unanswerable count question)."""


def answer_texts(
    form: Form, result: Result | None, keys: Mapping[int, str], *, answerable: bool = True
) -> tuple[str, ...]:
    """Keys of entities and literals, a number, or `yes` or `no`; keys: of every node of the result.

    What cannot be answered has none; a count of it is `"0"`.
    """
    if not answerable:
        return (NOTHING,) if isinstance(form, Count) else ()
    assert result is not None
    if isinstance(form, Count):
        return (str(result.value),)
    if isinstance(form, Holds):
        return ("yes" if result.value else "no",)
    return tuple(dict.fromkeys(keys[node] for node in result.nodes))
