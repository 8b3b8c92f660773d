"""The answers of a form for people: by name, with the facts that prove them and why there are none.

A form may name things by a label, an alias or an id of another graph instead of the key (`by_key`).
"""

from __future__ import annotations

import re
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from itertools import accumulate
from typing import Any

from kgqa_core.errors import FormError, nearest
from kgqa_core.kg.look.show import described, unit_names
from kgqa_core.kg.store import REMOVED, KgStore
from kgqa_core.kg.verbalise import Wording
from kgqa_core.logic.compile import compile_sql
from kgqa_core.logic.execute import SECONDS, execute
from kgqa_core.logic.forms import Class, Entity, Form, Literal, Step, TimeSpan, Where, elements
from kgqa_core.logic.parser import parse
from kgqa_core.logic.result import Result, row_texts
from kgqa_core.logic.schema import Schema, types_of
from kgqa_core.logic.typed import typed

_SHOWN = 5
"""Meanings that an error names."""
_SPARQL = re.compile(
    r"\s*(?:#[^\n]*\n\s*)*(?:PREFIX|BASE|SELECT|ASK|CONSTRUCT|DESCRIBE|INSERT|DELETE)\b", re.IGNORECASE
)
_LONGEST, _DEEPEST = 5000, 24
"""Characters of a query in SPARQL, and brackets in brackets; deeper ones cost its parser minutes."""


def read_form(text: str) -> Form:
    """The form that an s-expression or a query in SPARQL writes.  Raises FormError, also for SPARQL beyond forms."""
    if not _SPARQL.match(text):
        return parse(text)
    depth = list(accumulate({"(": 1, "{": 1, ")": -1, "}": -1}.get(sign, 0) for sign in text))
    if len(text) > _LONGEST or max(depth, default=0) > _DEEPEST:
        raise FormError(f"a query in SPARQL may have {_LONGEST:,} characters and {_DEEPEST} brackets in each other")
    from kgqa_core.logic.sparql import from_sparql  # with rdflib
    from kgqa_core.logic.sparql_query import Outside

    try:
        return from_sparql(text)
    except RecursionError:
        raise FormError(
            "this SPARQL has too many patterns that hang on each other; leave some out, or use SQL"
        ) from None
    except Outside as fault:
        raise FormError(
            f"this SPARQL has {fault.reason}, which logical forms cannot say; ask for one variable by triple patterns, "
            "FILTER, UNION, MINUS, COUNT or ORDER BY with LIMIT, or use SQL"
        ) from None


def by_key(form: Form, store: KgStore) -> Form:
    """The form with the graph's keys for what it names otherwise; `<United States>` may stand for Q30.

    Raises FormError for a name that means nothing, with the nearest one, and for a name that means several things.
    """
    used = elements(form)
    relations = _relations(store, used.relations)
    renamed: Form = _renamed(form, _entities(store, {*used.entities, *used.classes}), relations)
    return renamed


def by_name(form: Form, store: KgStore) -> Form:
    """The form with names for keys; a key stays where its name may mean something else, so that `by_key` undoes it."""
    used = elements(form)
    ids = {key: found[0] for key, found in store.resolve([*used.entities, *used.classes]).items() if len(found) == 1}
    names = store.names(ids.values())
    meant = store.resolve(sorted(set(names.values())))
    entities = {key: key for key in (*used.entities, *used.classes)}
    entities |= {key: names[i] for key, i in ids.items() if meant[names[i]] == [i]}
    keys, labels = store.relation_keys(), store.relation_names()
    often = Counter((*keys, *(label for key, label in zip(keys, labels, strict=True) if label != key)))
    named = {key: label for key, label in zip(keys, labels, strict=True) if often[label] == 1}
    renamed: Form = _renamed(form, entities, {key: named.get(key, key) for key in used.relations})
    return renamed


def _entities(store: KgStore, names: set[str]) -> dict[str, str]:
    result = store.resolve(sorted(names))
    keys = store.entity_keys(i for ids in result.values() for i in ids)
    key_of: dict[str, str] = {}
    for name, ids in result.items():
        if not ids:
            near = store.suggest(name)
            hint = f"did you mean {near!r}?" if near else "`kgqa kg search` finds what is, by name"
            raise FormError(f"{name!r} is not in this graph; {hint}")
        key_of[name] = _only(name, [keys[i] for i in ids])
    return key_of


def _relations(store: KgStore, names: tuple[str, ...]) -> dict[str, str]:
    """The key that each name stands for: a relation's own, else that of the one relation with this label."""
    labels: dict[str, list[str]] = defaultdict(list)
    keys = [key for key in store.relation_keys() if not key.startswith(REMOVED)]
    for key, label in zip(store.relation_keys(), store.relation_names(), strict=True):
        if not key.startswith(REMOVED):
            labels[label].append(key)
    labels.update((key, [key]) for key in keys)
    for name in names:
        if name not in labels:
            raise FormError(f"relation {name!r} is not in this graph{nearest(name, labels)}")
    return {name: _only(name, labels[name]) for name in names}


def _only(name: str, keys: list[str]) -> str:
    if len(keys) > 1:
        more = f" and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else ""
        raise FormError(f"{name!r} may be {', '.join(keys[:_SHOWN])}{more}; write the key of the one that is meant")
    return keys[0]


def _renamed(part: Any, entities: Mapping[str, str], relations: Mapping[str, str]) -> Any:
    """A form, or a part of one, with other keys."""

    def again(value: Any) -> Any:
        return _renamed(value, entities, relations)

    match part:
        case Literal():
            return part
        case Entity(key=key) | Class(key=key):
            return replace(part, key=entities[key])
        case TimeSpan(relation=relation, until=until):
            return replace(part, relation=relations[relation], until=relations[until])
        case Step(relation=relation):
            return replace(part, relation=relations[relation])
        case Where(relation=relation, value=value):
            return part._replace(relation=relations[relation], value=again(value))
        case tuple():
            return tuple(map(again, part))
    if not isinstance(part, Form):
        return part
    whole: Any = part
    return replace(whole, **{field.name: again(getattr(whole, field.name)) for field in fields(whole)})


@dataclass(frozen=True, slots=True)
class Lookup:
    """What an s-expression denotes.

    form: with the graph's keys for what was named by label.  why: what cannot be, where there is no answer and the
    types of the graph say so.  seconds: that the query took.  unit: name of the unit of the value.
    """

    form: Form
    result: Result
    why: str | None
    seconds: float
    unit: str | None = None


def tabled(store: KgStore, result: Result, named: Mapping[int, str]) -> list[tuple[int, str]]:
    """The id and the text of each answer; of a row of a table `name: value`.  named: text of each of `result.ids`."""
    if not result.rows:
        return [(node, named[node]) for node in result.nodes]
    units = unit_names(store, {row.unit for row in result.rows if row.unit})
    return [(row.key, text) for row, text in zip(result.rows, row_texts(result, named, units), strict=True)]


def look_up(store: KgStore, text: str, *, limit: int = 50, seconds: float = SECONDS) -> Lookup:
    """Read and run an s-expression, or a query in SPARQL that one can say.

    limit: most answers, and most triples of proof.  Raises FormError and FormTimeout.
    """
    form = by_key(read_form(text), store)
    start = time.perf_counter()
    result = execute(form, store, rows=limit, seconds=seconds)
    elapsed = time.perf_counter() - start
    why = None
    if result.empty:
        try:
            typed(form, Schema.read(store), types_of(store, elements(form).entities))
        except FormError as fault:
            why = str(fault)
    unit = result.unit and unit_names(store, {result.unit})[result.unit]
    return Lookup(form, result, why, round(elapsed, 4), unit)


def look(store: KgStore, text: str, *, limit: int = 50, seconds: float = SECONDS) -> dict[str, Any]:
    """What an s-expression denotes: `{form, value, unit, answers, proof, triples, more, why, seconds}`.

    form: with the graph's keys for what was named by label.  answers: `{entity, entity_key, text, unit}`, at most
    `limit`; of a value there are none, and of a table text is `name: value`.  proof: the facts behind them as
    triple-form text with their qualifiers, and triples their ids, at most `limit`.  more: there are more of either.
    why: what cannot be, where there is no answer and the types of the graph say so.  Raises FormError and FormTimeout.
    """
    outcome = look_up(store, text, limit=limit, seconds=seconds)
    result = outcome.result
    named = described(store, result.ids)
    answers = tabled(store, result, {i: one["text"] for i, one in named.items()})
    return {
        "form": str(outcome.form),
        "value": result.value,
        "unit": outcome.unit,
        "answers": [named[i] | {"text": text} for i, text in answers],
        "proof": Wording(store, result.proof, qualifiers=True).texts([(triple, 1) for triple in result.proof]),
        "triples": list(result.proof),
        "more": result.truncated,
        "why": outcome.why,
        "seconds": outcome.seconds,
    }


def sql_of(store: KgStore, text: str, *, limit: int = 50) -> dict[str, Any]:
    """The query that `look` runs for an s-expression: `{form, sql, parameters}`; nothing is run."""
    form = by_key(read_form(text), store)
    query = compile_sql(form, store, rows=limit, proof=True)
    return {"form": str(form), "sql": query.sql, "parameters": list(query.parameters)}
