"""Runs a logical form on a graph: its answers or its value, the triples that prove them, and both as texts."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import duckdb
import numpy as np

from kgqa_core.errors import FormError, FormTimeout
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.compile import MOST_VALUES, NODE, PROOF, ROW, ROWS, VALUE, Query, compile_sql
from kgqa_core.logic.forms import Aggregate, Count, Form, Share
from kgqa_core.logic.normalise import normalise
from kgqa_core.logic.result import Result, Values, aggregated, of_no_number, result_texts, share, with_bounds

SECONDS = 10.0
_AGAIN = 0.01
_SHOWN = 200
"""Letters of a form that an error shows which is about its length."""


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

    rows: most nodes or rows, and most triples of proof.  seconds: most time, after which the query is interrupted.
    without_named: entities that the form names are no answers.  The store's connection serves one thread at a time.
    Raises FormError for a form that does not fit the graph and FormTimeout.
    """
    form = with_bounds(form, lambda other: execute(other, store, seconds=seconds, proof=False))
    query = compile_sql(form, store, rows=rows, proof=proof, without_named=without_named)
    result = run(query, store, seconds, str(form))
    nodes, triples, values = ([row[1] for row in result if row[0] == kind] for kind in (NODE, PROOF, VALUE))
    made = Result(tuple(sorted(nodes)))
    if isinstance(form, Aggregate):
        table = [row[1:] for row in result if row[0] == ROW]
        if len(table) > MOST_VALUES:
            raise FormError(f"{form} is computed of more than {MOST_VALUES:,} values; name fewer members")
        if table:
            made = aggregated(form, Values(*map(np.array, zip(*table, strict=True))))
        else:
            form = replace(form, of=normalise(form.of))
            made = of_no_number(form, lambda other: execute(other, store, seconds=seconds, proof=False))
    elif isinstance(form, Share):
        made = share(*values)
    elif values:
        made = Result(value=values[0] if isinstance(form, Count) else bool(values[0]))
    cut = max(len(made.nodes), len(made.rows), len(triples)) > rows
    proved = tuple(sorted(triples)[:rows])
    return replace(made, nodes=made.nodes[:rows], rows=made.rows[:rows], proof=proved, truncated=cut)


def run(query: Query, store: KgStore, seconds: float, shown: str) -> list[tuple[Any, ...]]:
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
    """Keys of entities and literals, a number, `yes` or `no`, or `key: value`; keys: of all `ids` of the result.

    What cannot be answered has none; a count of it is `"0"`.
    """
    if not answerable:
        return (NOTHING,) if isinstance(form, Count) else ()
    assert result is not None
    return result_texts(result, keys)
