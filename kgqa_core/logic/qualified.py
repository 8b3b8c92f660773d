"""Conditions on qualifiers: the triples that have one statement which fulfils them all."""

from __future__ import annotations

from collections.abc import Sequence

from kgqa_core.errors import FormError
from kgqa_core.logic.builder import QueryBuilder
from kgqa_core.logic.forms import Entity, Literal, Where
from kgqa_core.logic.lookup import ending
from kgqa_core.logic.measures import TIME, compared_sql, dated_sql, equal_sql, hi_sql, lo_sql, measure


def qualified(builder: QueryBuilder, conditions: Sequence[Where], triples: str) -> str:
    """Table (id) of those among `triples(id)` that have a statement for which every condition holds.

    Raises FormError.
    """
    found = [_statements(builder, Where(*condition), triples) for condition in conditions]
    both = " INTERSECT ".join(f"SELECT triple, statement FROM {name}" for name in found)
    return builder.table(f"SELECT DISTINCT triple AS id FROM ({both})")


def _statements(builder: QueryBuilder, condition: Where, triples: str) -> str:
    relation, op, value = condition
    qualifier = builder.bind(builder.ids.relation(relation))
    among = f"q.triple IN (SELECT id FROM {triples})"
    if isinstance(value, Entity):
        if op != "eq":
            raise FormError(f"{op} compares numbers and dates, and {value} is an entity")
        entity = builder.bind(builder.ids.entity(value.key))
        return builder.table(
            f"SELECT triple, statement FROM qualifiers q WHERE relation = {qualifier} AND value = {entity} AND {among}"
        )
    if op == "at":
        return _at(builder, condition, value, among)
    if op != "eq" and measure(value) is None:
        raise FormError(f"{op} compares numbers and dates, and {value} is neither")
    test = equal_sql(value, builder.bind) if op == "eq" else compared_sql(op, value, builder.bind)
    return builder.table(
        "SELECT DISTINCT q.triple, q.statement FROM qualifiers q JOIN entities e ON e.id = q.value "
        f"WHERE q.relation = {qualifier} AND {among} AND {test}"
    )


def _at(builder: QueryBuilder, condition: Where, value: Literal, among: str) -> str:
    """Statements that say when they hold, by a beginning, an end or a point in time, and hold at some time of `value`.

    What begins must have begun before the value's end, and what ends must end after its beginning; one may be open.
    """
    found = measure(value)
    if found is None or found.dim != TIME:
        raise FormError(f"at asks for a date, and {value} is none; write its datatype, such as 2010^^xsd:gYear")
    begin, end = builder.bind(builder.ids.relation(condition.relation)), builder.ids.ending(condition.relation)
    begun, lasts = f"{lo_sql('e')} < {builder.bind(found.hi)}", f"{hi_sql('e')} > {builder.bind(found.lo)}"
    if ending(condition.relation) is None:
        test, relations = f"bool_or({begun} AND {lasts})", begin
    else:
        other = builder.bind(end if end is not None else -1)
        test = (
            f"coalesce(bool_or({begun}) FILTER (q.relation = {begin}), true) "
            f"AND coalesce(bool_or({lasts}) FILTER (q.relation = {other}), true)"
        )
        relations = f"{begin}, {other}"
    return builder.table(
        "SELECT q.triple, q.statement FROM qualifiers q JOIN entities e ON e.id = q.value "
        f"WHERE q.relation IN ({relations}) AND {among} AND {dated_sql('e')} "
        f"GROUP BY q.triple, q.statement HAVING {test}"
    )
