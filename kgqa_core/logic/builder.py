"""One SQL query put together from common table expressions, with every value bound, and its parts that read values.

Conditions on qualifiers hold for the triples that have one statement which fulfils them all.  Forms that rank or
compare are the best, the n-th, the greater of two, counted comparisons and times.  Values of a path may be numbers of
several dimensions and dates; those of the dimension that most members have are ranked (of two, the first by name that
both have), and the others are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kgqa_core.errors import FormError
from kgqa_core.logic.forms import (
    Aggregate,
    Arg,
    Compare,
    CompareTo,
    Entity,
    Greater,
    Nth,
    Step,
    Steps,
    TimeConstraint,
    Where,
    is_computed,
    span_of,
)
from kgqa_core.logic.lookup import Ids, ending
from kgqa_core.logic.measures import (
    TIME,
    Measure,
    compared_sql,
    dated_sql,
    equal_sql,
    hi_sql,
    lo_sql,
    measure,
    measured_sql,
    spans_sql,
)

TIMED_SQL = f"({dated_sql('e')} OR (e.number = floor(e.number) AND e.unit IS NULL AND abs(e.number) < 3000))"
"""Whether the value `e` of a qualifier is a date, or a number that may be a year."""


@dataclass(frozen=True, slots=True)
class NodeTable:
    """A table (id), and where it holds one node the place of its id."""

    name: str
    constant: str | None = None


class QueryBuilder:
    """Tables of a query that is being written, its parameters, and the triples that prove what it finds."""

    def __init__(self, ids: Ids) -> None:
        self.ids = ids
        self.parameters: list[Any] = []
        self.proofs: list[str] = []
        self._tables: list[str] = []
        self._places: dict[tuple[type, Any], str] = {}

    def bind(self, value: Any) -> str:
        """The place of a value among the parameters."""
        key = (type(value), value)
        if key not in self._places:
            self.parameters.append(value)
            self._places[key] = f"${len(self.parameters)}"
        return self._places[key]

    def table(self, sql: str) -> str:
        """The name of a table that this SQL makes; it may use those made before."""
        name = f"t{len(self._tables)}"
        self._tables.append(f"{name} AS MATERIALIZED ({sql})")
        return name

    def query(self, sql: str) -> str:
        """The whole query that ends so."""
        return (f"WITH {', '.join(self._tables)} " if self._tables else "") + sql

    def back(self, step: Step, to: NodeTable, within: str | None, more: str = "") -> str:
        """Table (id) of what has `step` to a member of `to`; `more` is about the triple `t`."""
        near, _ = ends(step)
        inside = f" AND t.{near} IN (SELECT id FROM {within})" if within else ""
        return self.table(f"SELECT DISTINCT t.{near} AS id {self.triples_to(step, to)}{inside}{more}")

    def forth(self, step: Step, start: str) -> str:
        """Table (id) of what the members of `start(id)` have `step` to."""
        _, far = ends(step)
        return self.table(f"SELECT DISTINCT t.{far} AS id {self.triples_to(inverse(step), NodeTable(start))}")

    def triples_to(self, step: Step, to: NodeTable, joins: str = "") -> str:
        """`FROM … WHERE …` of the triples `t` by which something has `step` to a member of `to`."""
        _, far = ends(step)
        table = self.ids.triples[far]
        join, test = ("", f"t.{far} = {to.constant} AND ")
        if to.constant is None:
            join, test = f" JOIN {to.name} x ON x.id = t.{far}", ""
        return f"FROM {table} t{join}{joins} WHERE {test}t.relation = {self.relation(step)}"

    def pairs(self, start: str, path: Steps, each: str = "DISTINCT") -> str:
        """Table (id, node) of members of `start(id)` and what the path leads them to, each pair once, or each way."""
        if not path:
            return self.table(f"SELECT id, id AS node FROM {start}")
        joins, end = self._hops(path, "s.id")
        return self.table(f"SELECT {each} s.id AS id, {end} AS node FROM {start} s {joins}")

    def relation(self, step: Step) -> str:
        """The place of the id of a step's relation."""
        return self.bind(self.ids.relation(step.relation))

    def prove_path(self, pairs: str, path: Steps) -> None:
        """The triples on every way along the path from an `id` to a `node` of `pairs` are proof."""
        if not path:
            return
        joins, end = self._hops(path, "p.id")
        if span := span_of(path):
            self.prove_path(self.pairs(pairs, (Step(span.until),)), (Step(span.until),))
        triples = ", ".join(f"h{number}.id" for number in range(len(path)))
        self.proofs.append(f"SELECT unnest([{triples}]) AS triple FROM {pairs} p {joins} WHERE {end} = p.node")

    def _hops(self, path: Steps, at: str) -> tuple[str, str]:
        """Joins of the triples `h0`, `h1` … along a path from the column `at`, and the column where it ends."""
        joins = []
        for number, step in enumerate(path):
            near, far = ends(step)
            table = self.ids.triples[near]
            joins.append(
                f"JOIN {table} h{number} ON h{number}.{near} = {at} AND h{number}.relation = {self.relation(step)}"
            )
            at = f"h{number}.{far}"
        return " ".join(joins), at


def ends(step: Step) -> tuple[str, str]:
    """The columns of a triple where a step comes from and where it leads."""
    return ("tail", "head") if step.inverse else ("head", "tail")


def inverse(step: Step) -> Step:
    """The step from the other end."""
    return Step(step.relation, not step.inverse)


def qualified(builder: QueryBuilder, conditions: Sequence[Where], triples: str) -> str:
    """Table (id) of those among `triples(id)` that have a statement for which every condition holds.

    Raises FormError.
    """
    return builder.table(f"SELECT DISTINCT triple AS id FROM {matching(builder, conditions, triples)}")


def matching(builder: QueryBuilder, conditions: Sequence[Where], triples: str) -> str:
    """Table (triple, statement) of the statements among `triples(id)` for which every condition holds."""
    results = [_statements(builder, Where(*condition), triples) for condition in conditions]
    return builder.table(" INTERSECT ".join(f"SELECT triple, statement FROM {name}" for name in results))


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
    if op in ("at", "current"):
        span = measure(value)
        if span is None or span.dim != TIME:
            raise FormError(f"{op} asks for a date, and {value} is none; write its datatype, such as 2010^^xsd:gYear")
        written = re.match(r"[+-]?\d+", value.text)
        year = builder.bind(int(written[0]) if written else 0)
        make, inside = (_at, among) if op == "at" else (_current, triples)
        return builder.table(make(builder, relation, span, year, inside))
    if op in ("first", "last"):
        if not value.text.isascii() or not value.text.isdigit() or len(value.text) > 9:
            raise FormError(f"{op} takes a place, a whole number from 1, and {value} is none")
        order, best = ("ASC", "min") if op == "first" else ("DESC", "max")
        when = f"{best}(CASE WHEN {dated_sql('e')} THEN {lo_sql('e')} ELSE e.number END)"
        return builder.table(
            f"SELECT triple, statement FROM (SELECT q.triple, q.statement, "
            f"dense_rank() OVER (ORDER BY {when} {order}) AS n "
            f"FROM qualifiers q JOIN entities e ON e.id = q.value WHERE q.relation = {qualifier} AND {among} AND "
            f"e.number IS NOT NULL GROUP BY ALL) WHERE n = {builder.bind(int(value.text))}"
        )
    if op != "eq" and measure(value) is None:
        raise FormError(f"{op} compares numbers and dates, and {value} is neither")
    test = equal_sql(value, builder.bind) if op == "eq" else compared_sql(op, value, builder.bind)
    return builder.table(
        "SELECT DISTINCT q.triple, q.statement FROM qualifiers q JOIN entities e ON e.id = q.value "
        f"WHERE q.relation = {qualifier} AND {among} AND {test}"
    )


def _at(builder: QueryBuilder, relation: str, span: Measure, year: str, among: str) -> str:
    """Statements with a beginning, an end or a point in time that hold at some time of `span`; year: its year.

    What begins must have begun before its end, and what ends must end after its beginning; one may be open.
    """
    begin, end = builder.bind(builder.ids.relation(relation)), builder.ids.ending(relation)
    begun = f"CASE WHEN {dated_sql('e')} THEN {lo_sql('e')} < {builder.bind(span.hi)} ELSE e.number <= {year} END"
    lasts = f"CASE WHEN {dated_sql('e')} THEN {hi_sql('e')} > {builder.bind(span.lo)} ELSE e.number >= {year} END"
    if ending(relation) is None:
        test, relations = f"bool_or({begun} AND {lasts})", begin
    else:
        other = builder.bind(end if end is not None else -1)
        test = (
            f"coalesce(bool_or({begun}) FILTER (q.relation = {begin}), true) "
            f"AND coalesce(bool_or({lasts}) FILTER (q.relation = {other}), true)"
        )
        relations = f"{begin}, {other}"
    return (
        "SELECT q.triple, q.statement FROM qualifiers q JOIN entities e ON e.id = q.value "
        f"WHERE q.relation IN ({relations}) AND {among} AND {TIMED_SQL} "
        f"GROUP BY q.triple, q.statement HAVING {test}"
    )


def _current(builder: QueryBuilder, relation: str, span: Measure, year: str, triples: str) -> str:
    """Statements that do not say that they ended before a date; one without qualifiers says nothing."""
    ended = f"CASE WHEN {dated_sql('e')} THEN {hi_sql('e')} <= {builder.bind(span.lo)} ELSE e.number < {year} END"
    return (
        f"SELECT s.id AS triple, q.statement FROM {triples} s LEFT JOIN qualifiers q ON q.triple = s.id LEFT JOIN "
        f"entities e ON e.id = q.value AND q.relation = {builder.bind(builder.ids.relation(relation))} AND {TIMED_SQL} "
        f"GROUP BY s.id, q.statement HAVING NOT coalesce(bool_or({ended}), false)"
    )


_SIGNS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_BEST = {"max": ("max", "DESC"), "min": ("min", "ASC")}


@dataclass(frozen=True, slots=True)
class RankedTable:
    """Table (id) of what was found; what proves members of another table; the members compared, where not those."""

    name: str
    prove: Callable[[str], None]
    compared: str | None = None


def ranked(builder: QueryBuilder, form: Arg | Nth, members: str, within: str | None) -> RankedTable:
    """Members with the best value, or the n-th best distinct one, with all ties."""
    aggregate, order = _BEST[form.best]
    pairs = builder.pairs(members, form.path)
    values = values_of(builder, pairs, form)
    dimension = f"SELECT dim FROM {values} GROUP BY dim ORDER BY count(DISTINCT id) DESC, dim LIMIT 1"
    values_table = builder.table(
        f"SELECT id, dim, {aggregate}(x) AS x FROM {values} WHERE dim = ({dimension}) GROUP BY id, dim",
    )
    place = "rank" if isinstance(form, Nth) and form.first else "dense_rank"
    test = f"{'<=' if place == 'rank' else '='} {builder.bind(form.n if isinstance(form, Nth) else 1)}"
    inside = f" WHERE id IN (SELECT id FROM {within})" if within else ""
    places = f"SELECT id FROM {values_table} QUALIFY {place}() OVER (ORDER BY x {order}) {test}"
    name = builder.table(f"SELECT id FROM ({places}){inside}")

    def prove(needed: str) -> None:
        best = _best_pairs(builder, needed, values_table, pairs, values, is_computed(form))
        builder.prove_path(best, form.path)

    return RankedTable(name, prove)


def greater(builder: QueryBuilder, form: Greater, one: str, other: str, within: str | None) -> RankedTable:
    """The members of the side whose best value is better, that have it; of both sides when they are equal."""
    aggregate, order = _BEST[form.best]
    both = builder.table(f"SELECT id FROM {one} UNION SELECT id FROM {other}")
    pairs = builder.pairs(both, form.path)
    values = values_of(builder, pairs, form)
    sides = builder.table(
        f"SELECT side, dim, {aggregate}(x) AS x FROM ("
        f"SELECT 0 AS side, v.* FROM {values} v WHERE id IN (SELECT id FROM {one}) "
        f"UNION ALL SELECT 1, v.* FROM {values} v WHERE id IN (SELECT id FROM {other})) GROUP BY side, dim"
    )
    chosen = builder.table(
        f"SELECT a.dim, a.x AS x0, b.x AS x1 FROM {sides} a JOIN {sides} b ON a.dim = b.dim "
        "WHERE a.side = 0 AND b.side = 1 ORDER BY a.dim LIMIT 1"
    )
    shown = builder.table(
        f"SELECT DISTINCT v.id, v.dim, v.x FROM {values} v JOIN {chosen} c ON c.dim = v.dim WHERE "
        f"(v.x = c.x0 AND v.id IN (SELECT id FROM {one})) OR (v.x = c.x1 AND v.id IN (SELECT id FROM {other}))"
    )
    inside = f" AND id IN (SELECT id FROM {within})" if within else ""
    name = builder.table(
        f"SELECT DISTINCT id FROM {shown} WHERE x = (SELECT {aggregate}(x) FROM {shown}){inside}",
    )

    def prove(needed: str) -> None:
        proved = builder.table(f"SELECT DISTINCT id FROM {shown} WHERE EXISTS (SELECT 1 FROM {needed})")
        builder.prove_path(_best_pairs(builder, proved, shown, pairs, values, is_computed(form)), form.path)

    return RankedTable(name, prove, compared=builder.table(f"SELECT DISTINCT id FROM {shown}"))


def computed_compare(builder: QueryBuilder, form: Compare, within: str | None) -> RankedTable:
    """What the path leads from to so many nodes, or what lasts so long; without what has neither."""
    result = measure(form.value)
    if result is None or result.dim != "":
        raise FormError(f"a count or a span of time is compared with a plain number, and {form.value} is none")
    pairs = builder.pairs(within or _starts(builder, form.path), form.path)
    values = values_of(builder, pairs, form)
    name = builder.table(f"SELECT DISTINCT id FROM {values} WHERE x {_SIGNS[form.op]} {builder.bind(result.lo)}")

    def prove(needed: str) -> None:
        proved = builder.table(f"SELECT id, node FROM {pairs} WHERE id IN (SELECT id FROM {needed})")
        builder.prove_path(proved, form.path)

    return RankedTable(name, prove)


def compare_to(builder: QueryBuilder, form: CompareTo, one: str, within: str | None) -> RankedTable:
    """What has a value that compares so with the best of `one`, of the same dimension."""
    pairs, own = (builder.pairs(start, form.path) for start in (within or _starts(builder, form.path), one))
    values, own_values = (values_of(builder, table, form) for table in (pairs, own))
    bounds = builder.table(f"SELECT dim, {form.best}(x) AS x FROM {own_values} GROUP BY dim")
    test = f"JOIN {bounds} b ON b.dim = v.dim WHERE v.x {_SIGNS[form.op]} b.x"
    compared = builder.table(f"SELECT DISTINCT v.id, v.dim, v.x FROM {own_values} v JOIN {bounds} b USING (dim, x)")

    def prove(needed: str) -> None:
        found = builder.table(f"SELECT v.id, v.dim, v.x FROM {values} v {test} AND v.id IN (SELECT id FROM {needed})")
        for best, ways, told in ((found, pairs, values), (compared, own, own_values)):
            proved = builder.table(f"SELECT DISTINCT id FROM {best} WHERE EXISTS (SELECT 1 FROM {needed})")
            builder.prove_path(_best_pairs(builder, proved, best, ways, told, is_computed(form)), form.path)

    return RankedTable(
        builder.table(f"SELECT DISTINCT v.id FROM {values} v {test}"),
        prove,
        compared=builder.table(f"SELECT DISTINCT id FROM {compared}"),
    )


def _starts(builder: QueryBuilder, path: tuple[Step, ...]) -> str:
    """What the first step of a path leads from."""
    near, _ = ends(path[0])
    relation, triples = builder.relation(path[0]), builder.ids.triples[near]
    return builder.table(f"SELECT DISTINCT t.{near} AS id FROM {triples} t WHERE t.relation = {relation}")


def time_constraint(builder: QueryBuilder, form: TimeConstraint, members: str) -> RankedTable:
    """Members with a node, where the path but for its last step leads, that has begun and not ended at the time."""
    result = measure(form.value)
    if result is None or result.dim != TIME:
        raise FormError(f"TC takes a date, and {form.value} is none; write its datatype, such as 2010^^xsd:gYear")
    way, last = form.path[:-1], form.path[-1]
    pairs = builder.pairs(members, way)
    near, far = ends(last)
    tests = [(builder.relation(last), f"{lo_sql('e')} < {builder.bind(result.hi)}")]
    end = builder.ids.ending(last.relation)
    if end is not None:
        tests.append((builder.bind(end), f"{hi_sql('e')} > {builder.bind(result.lo)}"))
    judged = [
        builder.table(
            f"SELECT t.id AS triple, t.{near} AS node, {test} AS holds FROM {builder.ids.triples[near]} t "
            f"JOIN entities e ON e.id = t.{far} "
            f"WHERE t.relation = {relation} AND {dated_sql('e')} AND t.{near} IN (SELECT node FROM {pairs})"
        )
        for relation, test in tests
    ]
    out = " OR ".join(f"node IN (SELECT node FROM {name} GROUP BY node HAVING NOT bool_or(holds))" for name in judged)
    holding = builder.table(f"SELECT id, node FROM {pairs} WHERE NOT ({out})")

    def prove(needed: str) -> None:
        proved = builder.table(f"SELECT id, node FROM {holding} WHERE id IN (SELECT id FROM {needed})")
        builder.prove_path(proved, way)
        for name in judged:
            builder.proofs.append(f"SELECT triple FROM {name} WHERE holds AND node IN (SELECT node FROM {proved})")

    return RankedTable(builder.table(f"SELECT DISTINCT id FROM {holding}"), prove)


def values_of(builder: QueryBuilder, pairs: str, form: Arg | Nth | Compare | CompareTo | Greater | Aggregate) -> str:
    """Table (id, node, dim, x) of what a form measures; without a node where it is computed.

    pairs: table (id, node) of what its path leads to.
    """
    if span := span_of(form.path):
        end = builder.pairs(pairs, (Step(span.until),))
        rows = f"(SELECT p.id, p.node, q.node AS end FROM {pairs} p JOIN {end} q USING (id)) p"
        return builder.table(
            spans_sql(span.unit, f"{rows} JOIN entities b ON b.id = p.node JOIN entities e ON e.id = p.end")
        )
    if form.counted:
        return builder.table(f"SELECT id, NULL AS node, '' AS dim, count(*)::DOUBLE AS x FROM {pairs} GROUP BY id")
    return builder.table(measured_sql(pairs, builder.ids.measures))


def _best_pairs(builder: QueryBuilder, needed: str, best: str, pairs: str, values: str, computed: bool) -> str:
    """Pairs (id, node) of needed ids: the nodes with their best value `best(id, dim, x)`; of what is computed all."""
    if computed:
        return builder.table(f"SELECT id, node FROM {pairs} WHERE id IN (SELECT id FROM {needed})")
    return builder.table(
        f"SELECT DISTINCT v.id, v.node FROM {values} v JOIN {best} b USING (id, dim, x) "
        f"WHERE v.id IN (SELECT id FROM {needed})"
    )
