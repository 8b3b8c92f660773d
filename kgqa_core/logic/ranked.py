"""Forms that look at values: the best, the n-th, the greater of two, counted comparisons and times.

Values of a path may be numbers of several dimensions and dates; those of the dimension that most members have are
ranked (of two, the first by name that both have), and the others are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kgqa_core.errors import FormError
from kgqa_core.logic.builder import QueryBuilder, ends
from kgqa_core.logic.forms import Arg, Compare, Greater, Nth, TimeConstraint
from kgqa_core.logic.measures import TIME, dated_sql, hi_sql, lo_sql, measure, measured_sql

_SIGNS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_BEST = {"max": ("max", "DESC"), "min": ("min", "ASC")}


@dataclass(frozen=True, slots=True)
class Ranked:
    """Table (id) of what was found; what proves members of another table; the members compared, where not those."""

    name: str
    prove: Callable[[str], None]
    compared: str | None = None


def ranked(builder: QueryBuilder, form: Arg | Nth, members: str, within: str | None) -> Ranked:
    """Members with the best value, or the n-th best distinct one, with all ties."""
    aggregate, order = _BEST[form.best]
    pairs = builder.pairs(members, form.path)
    values = _values(builder, pairs, form.counted)
    dimension = f"SELECT dim FROM {values} GROUP BY dim ORDER BY count(DISTINCT id) DESC, dim LIMIT 1"
    mine = builder.table(
        f"SELECT id, dim, {aggregate}(x) AS x FROM {values} WHERE dim = ({dimension}) GROUP BY id, dim",
    )
    place = builder.bind((form.n if isinstance(form, Nth) else 1) - 1)
    inside = f" AND id IN (SELECT id FROM {within})" if within else ""
    name = builder.table(
        f"SELECT id FROM {mine} WHERE x = (SELECT x FROM (SELECT DISTINCT x FROM {mine}) "
        f"ORDER BY x {order} LIMIT 1 OFFSET {place}::BIGINT){inside}"
    )

    def prove(needed: str) -> None:
        best = _best_pairs(builder, needed, mine, pairs, values, form.counted)
        builder.prove_path(best, form.path)

    return Ranked(name, prove)


def greater(builder: QueryBuilder, form: Greater, one: str, other: str, within: str | None) -> Ranked:
    """The members of the side whose best value is better, that have it; of both sides when they are equal."""
    aggregate, order = _BEST[form.best]
    both = builder.table(f"SELECT id FROM {one} UNION SELECT id FROM {other}")
    pairs = builder.pairs(both, form.path)
    values = _values(builder, pairs, form.counted)
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
        asked = builder.table(f"SELECT DISTINCT id FROM {shown} WHERE EXISTS (SELECT 1 FROM {needed})")
        builder.prove_path(_best_pairs(builder, asked, shown, pairs, values, form.counted), form.path)

    return Ranked(name, prove, compared=builder.table(f"SELECT DISTINCT id FROM {shown}"))


def counted_compare(builder: QueryBuilder, form: Compare, within: str | None) -> Ranked:
    """What the path leads from to so many nodes; what it leads nowhere from is left out."""
    found = measure(form.value)
    if found is None or found.dim != "":
        raise FormError(f"a count is compared with a plain number, and {form.value} is none")
    start = within
    if start is None:
        near, _ = ends(form.path[0])
        relation, triples = builder.relation(form.path[0]), builder.ids.triples[near]
        start = builder.table(f"SELECT DISTINCT t.{near} AS id FROM {triples} t WHERE t.relation = {relation}")
    pairs = builder.pairs(start, form.path)
    name = builder.table(
        f"SELECT id FROM {pairs} GROUP BY id HAVING count(*) {_SIGNS[form.op]} {builder.bind(found.lo)}"
    )

    def prove(needed: str) -> None:
        asked = builder.table(f"SELECT id, node FROM {pairs} WHERE id IN (SELECT id FROM {needed})")
        builder.prove_path(asked, form.path)

    return Ranked(name, prove)


def time_constraint(builder: QueryBuilder, form: TimeConstraint, members: str) -> Ranked:
    """Members with a node, where the path but for its last step leads, that has begun and not ended at the time."""
    found = measure(form.value)
    if found is None or found.dim != TIME:
        raise FormError(f"TC takes a date, and {form.value} is none; write its datatype, such as 2010^^xsd:gYear")
    way, last = form.path[:-1], form.path[-1]
    pairs = builder.pairs(members, way)
    near, far = ends(last)
    tests = [(builder.relation(last), f"{lo_sql('e')} < {builder.bind(found.hi)}")]
    end = builder.ids.ending(last.relation)
    if end is not None:
        tests.append((builder.bind(end), f"{hi_sql('e')} > {builder.bind(found.lo)}"))
    judged = [
        builder.table(
            f"SELECT t.id AS triple, t.{near} AS node, {test} AS holds FROM {builder.ids.triples[near]} t "
            f"JOIN entities e ON e.id = t.{far} "
            f"WHERE t.relation = {relation} AND {dated_sql('e')} AND t.{near} IN (SELECT node FROM {pairs})"
        )
        for relation, test in tests
    ]
    out = " OR ".join(f"node IN (SELECT node FROM {name} GROUP BY node HAVING NOT bool_or(holds))" for name in judged)
    kept = builder.table(f"SELECT id, node FROM {pairs} WHERE NOT ({out})")

    def prove(needed: str) -> None:
        asked = builder.table(f"SELECT id, node FROM {kept} WHERE id IN (SELECT id FROM {needed})")
        builder.prove_path(asked, way)
        for name in judged:
            builder.proofs.append(f"SELECT triple FROM {name} WHERE holds AND node IN (SELECT node FROM {asked})")

    return Ranked(builder.table(f"SELECT DISTINCT id FROM {kept}"), prove)


def _values(builder: QueryBuilder, pairs: str, counted: bool) -> str:
    """Table (id, node, dim, x) of the values at the end of a path; counted: one row an id, without a node."""
    if counted:
        return builder.table(f"SELECT id, NULL AS node, '' AS dim, count(*)::DOUBLE AS x FROM {pairs} GROUP BY id")
    return builder.table(measured_sql(pairs, builder.ids.measures))


def _best_pairs(builder: QueryBuilder, needed: str, best: str, pairs: str, values: str, counted: bool) -> str:
    """Pairs (id, node) of needed ids: the nodes with their best value `best(id, dim, x)`, or all that were counted."""
    if counted:
        return builder.table(f"SELECT id, node FROM {pairs} WHERE id IN (SELECT id FROM {needed})")
    return builder.table(
        f"SELECT DISTINCT v.id, v.node FROM {values} v JOIN {best} b USING (id, dim, x) "
        f"WHERE v.id IN (SELECT id FROM {needed})"
    )
