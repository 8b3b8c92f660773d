"""A form asked of a graph, for people: its answers by name, the facts that prove them, and why there are none."""

from __future__ import annotations

import time
from typing import Any

from kgqa_core.errors import FormError
from kgqa_core.kg.look.show import told
from kgqa_core.kg.store import KgStore
from kgqa_core.kg.verbalise import Wording
from kgqa_core.logic.compile import compile_sql
from kgqa_core.logic.execute import SECONDS, execute
from kgqa_core.logic.forms import elements
from kgqa_core.logic.named import by_key
from kgqa_core.logic.parser import parse
from kgqa_core.logic.schema import Schema, types_of
from kgqa_core.logic.typed import typed


def look(store: KgStore, text: str, *, limit: int = 50, seconds: float = SECONDS) -> dict[str, Any]:
    """What an s-expression denotes: `{form, value, answers, proof, triples, more, why, seconds}`.

    form: with the graph's keys for what was named by label.  answers: `{entity, entity_key, text, unit}`, at most
    `limit`; of a value there are none.  proof: the facts behind them as triple-form text with their qualifiers, and
    triples their ids, at most `limit`.  more: there are more of either.  why: what cannot be, where there is no answer
    and the types of the graph say so.  Raises FormError and FormTimeout.
    """
    form = by_key(parse(text), store)
    start = time.perf_counter()
    found = execute(form, store, rows=limit, seconds=seconds)
    spent = time.perf_counter() - start
    named = told(store, found.nodes)
    why = None
    if found.empty:
        try:
            typed(form, Schema.read(store), types_of(store, elements(form).entities))
        except FormError as fault:
            why = str(fault)
    return {
        "form": str(form),
        "value": found.value,
        "answers": [named[i] for i in found.nodes],
        "proof": Wording(store, found.proof, qualifiers=True).texts([(triple, 1) for triple in found.proof]),
        "triples": list(found.proof),
        "more": found.truncated,
        "why": why,
        "seconds": round(spent, 4),
    }


def sql_of(store: KgStore, text: str, *, limit: int = 50) -> dict[str, Any]:
    """The query that `look` runs for an s-expression: `{form, sql, parameters}`; nothing is run."""
    form = by_key(parse(text), store)
    query = compile_sql(form, store, rows=limit, proof=True)
    return {"form": str(form), "sql": query.sql, "parameters": list(query.parameters)}
