"""A logical form as one SQL query over the tables of a graph, with parameters bound and never pasted.

Every form becomes a table `(id)` of the nodes that it denotes, inside a set that is already known where there is one:
in (AND city (JOIN (R r) x)) the cities are looked for among the tails of x.  From the answer back, each form says which
triples prove it.  The tables read are `entities`, `triples`, `types`, `supertypes` and `qualifiers`, as the store's
connection finds them, so a view in their place is read instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kgqa_core.errors import FormError
from kgqa_core.kg.store import KgStore
from kgqa_core.logic import builder as tables
from kgqa_core.logic import forms
from kgqa_core.logic.builder import NodeTable, QueryBuilder, RankedTable
from kgqa_core.logic.forms import Form, elements
from kgqa_core.logic.lookup import Ids
from kgqa_core.logic.measures import compared_sql, equal_sql, measure
from kgqa_core.logic.normalise import normalise

ROWS = 10_000
NODE, PROOF, VALUE, ROW = 0, 1, 2, 3
"""What a row of a query is: (kind, id); of an aggregate (ROW, and the columns of `result.Values`); of a share two
VALUEs, how many members there are and how many are in the other set."""
MOST_VALUES = 1_000_000
"""Values that an aggregate reads."""


@dataclass(frozen=True, slots=True)
class Query:
    """SQL with places `$1`, `$2` … and what goes there; rows are (kind, id), kind being NODE, PROOF, VALUE or ROW."""

    sql: str
    parameters: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class CompiledSet:
    """A table of nodes, what proves those of another table that are in it, and the place of the id of a single node."""

    name: str
    prove: Callable[[str], None]
    constant: str | None = None

    @property
    def source(self) -> NodeTable:
        """Where steps lead to."""
        return NodeTable(self.name, self.constant)


def compile_sql(
    form: Form, store: KgStore, *, rows: int = ROWS, proof: bool = False, without_named: bool = False
) -> Query:
    """The query of a form: at most `rows` + 1 nodes, and with `proof` at most `rows` + 1 triples, each by id.

    Of an aggregate at most MOST_VALUES + 1 values.

    without_named: entities that the form names are no answers, as in GrailQA's SPARQL.  Raises FormError for a key that
    the graph has not, a value inside a form of sets, and a comparison with what is no number and no date.
    """
    form = normalise(form)
    used = elements(form)
    builder = QueryBuilder(Ids(store, used))
    build = _Compiler(builder)
    limit = rows + 1
    if isinstance(form, forms.Aggregate):
        parts = [_aggregate(build, form, proof)]
    elif isinstance(form, forms.Share):
        parts = [_share(build, form, proof)]
    elif isinstance(form, (forms.Count, forms.Holds)):
        answer = _count(build, form, proof) if isinstance(form, forms.Count) else _holds(build, form, proof)
        parts = [f"SELECT {VALUE} AS kind, id FROM {answer}"]
    else:
        result = build.set(form, None)
        named = [builder.ids.entity(key) for key in used.entities] if without_named else []
        out = f"WHERE id NOT IN ({', '.join(map(builder.bind, named))}) " if named else ""
        answer = f"SELECT id FROM {result.name} {out}ORDER BY id LIMIT {builder.bind(limit)}"
        answer = builder.table(answer) if proof else f"({answer})"
        parts = [f"SELECT {NODE} AS kind, id FROM {answer}"]
        if proof:
            result.prove(builder.table(f"SELECT id FROM {answer} ORDER BY id LIMIT {builder.bind(rows)}"))
    if builder.proofs:
        union = " UNION ".join(f"({sql})" for sql in builder.proofs)
        cut = builder.bind(limit)
        empty = ", NULL" * 6 if isinstance(form, forms.Aggregate) else ""
        parts.append(f"SELECT {PROOF}, triple{empty} FROM (SELECT triple FROM ({union}) ORDER BY triple LIMIT {cut})")
    return Query(builder.query(" UNION ALL ".join(parts)), tuple(builder.parameters))


def _count(build: _Compiler, form: forms.Count, proof: bool) -> str:
    result = build.set(form.of, None)
    if proof:
        result.prove(result.name)
    return build.builder.table(f"SELECT count(*) AS id FROM {result.name}")


def _holds(build: _Compiler, form: forms.Holds, proof: bool) -> str:
    one = build.set(form.one, None)
    of = build.set(form.of, one.name)
    if proof:
        one.prove(one.name)
        of.prove(of.name)
    inside, claimed = (f"(SELECT count(*) FROM {table.name})" for table in (of, one))
    return build.builder.table(f"SELECT ({inside} = {claimed} AND {claimed} > 0)::BIGINT AS id")


def _share(build: _Compiler, form: forms.Share, proof: bool) -> str:
    whole = build.set(form.of, None)
    part = build.set(form.one, whole.name)
    if proof:
        whole.prove(whole.name)
        part.prove(part.name)
    return " UNION ALL ".join(f"SELECT {VALUE} AS kind, count(*) AS id FROM {one.name}" for one in (whole, part))


def _aggregate(build: _Compiler, form: forms.Aggregate, proof: bool) -> str:
    """The values of members; the dimension of a text or an entity is empty."""
    builder, inner, path = build.builder, build.set(form.of, None), form.path or form.by
    computed = forms.is_computed(form)
    ways = form.how in forms.EVERY_WAY and not computed
    pairs = builder.pairs(inner.name, path, "ALL" if ways else "DISTINCT")
    values = f"(SELECT *, '' AS dim, 0 AS x FROM {pairs})"
    if computed or form.how in (*forms.REDUCTIONS, *forms.BEST_MEMBERS):
        values = tables.values_of(builder, pairs, form)
    groups = builder.pairs(inner.name, form.by) if form.path and form.by else None
    key, join = ("g.node", f"JOIN {groups} g USING (id) ") if groups else ("v.node" if form.by else "-1", "")
    if proof:
        shown = f"{pairs} v SEMI JOIN {values} USING (id)" if computed else f"{values} v {join}"
        used = builder.table(f"SELECT DISTINCT v.id, v.node FROM {shown}")
        builder.prove_path(used, path)
        inner.prove(builder.table(f"SELECT DISTINCT id FROM {used}"))
        if groups:
            builder.prove_path(groups, form.by)
    return (
        f"(SELECT {ROW} AS kind, v.id, {key} AS key, coalesce(v.node, -1), v.dim, coalesce(e.number, v.x), v.x, "
        f"coalesce(e.unit, '') FROM {values} v {join}LEFT JOIN entities e ON e.id = v.node "
        f"ORDER BY v.id, 3, 4 LIMIT {builder.bind(MOST_VALUES + 1)})"
    )


class _Compiler:
    """Tables of forms in one builder."""

    def __init__(self, builder: QueryBuilder) -> None:
        self.builder = builder

    def set(self, form: Form, within: str | None) -> CompiledSet:
        """The nodes that a form denotes, those in `within(id)` where there is such a table."""
        match form:
            case forms.Entity() | forms.Literal() | forms.Class():
                return self._leaf(form, within)
            case forms.Join(path=path, of=of):
                return self._join(form, within)
            case forms.Compare() if forms.is_computed(form):
                return self._ranked(tables.computed_compare(self.builder, form, within))
            case forms.Compare(op=op, path=path, value=value):
                if measure(value) is None:
                    raise FormError(f"{op} compares numbers and dates, and {value} is neither")
                return self._along(path, lambda inside: self._compared(op, value, inside), within, first=False)
            case forms.CompareTo(one=one):
                inner = self.set(one, None)
                return self._ranked(tables.compare_to(self.builder, form, inner.name, within), inner)
            case forms.And():
                return self._and(form, within)
            case forms.Or(parts=parts):
                named = [part.key for part in parts if isinstance(part, forms.Entity)]
                others = [self.set(part, within) for part in parts if not isinstance(part, forms.Entity)]
                return self._united([self._entities(named, within), *others] if named else others)
            case forms.Minus(of=of, without=without):
                whole = self.set(of, within)
                less = self.set(without, whole.name)
                name = self.builder.table(f"SELECT id FROM {whole.name} WHERE id NOT IN (SELECT id FROM {less.name})")
                return CompiledSet(name, whole.prove)
            case forms.Arg(of=of) | forms.Nth(of=of):
                inner = self.set(of, None)
                return self._ranked(tables.ranked(self.builder, form, inner.name, within), inner)
            case forms.TimeConstraint(of=of):
                inner = self.set(of, within)
                return self._ranked(tables.time_constraint(self.builder, form, inner.name), inner)
            case forms.Greater(one=one, other=other):
                sides = self.set(one, None), self.set(other, None)
                return self._ranked(tables.greater(self.builder, form, sides[0].name, sides[1].name, within), *sides)
            case forms.Qualifier():
                return self._qualifier(form, within)
        raise FormError(f"{form} is a value or a table; these stand outermost")

    def _leaf(self, form: forms.Entity | forms.Literal | forms.Class, within: str | None) -> CompiledSet:
        bind, ids = self.builder.bind, self.builder.ids
        inside = f" AND e.id IN (SELECT id FROM {within})" if within else ""
        if isinstance(form, forms.Entity):
            return self._entities([form.key], within)
        if isinstance(form, forms.Literal):
            sql = f"SELECT e.id FROM entities e WHERE {equal_sql(form, bind)}{inside}"
        else:
            wanted = bind(ids.type(form.key))
            below = f"SELECT type FROM supertypes WHERE super = {wanted} UNION SELECT {wanted}::INTEGER"
            inside = f" AND e.entity IN (SELECT id FROM {within})" if within else ""
            sql = f"SELECT DISTINCT e.entity AS id FROM types e WHERE e.type IN ({below}){inside}"
        return CompiledSet(self.builder.table(sql), lambda needed: None)

    def _entities(self, keys: Sequence[str], within: str | None) -> CompiledSet:
        """Entities by their keys, as one table."""
        placeholders = [self.builder.bind(self.builder.ids.entity(key)) for key in dict.fromkeys(keys)]
        rows = f"(VALUES {', '.join(f'({index}::INTEGER)' for index in placeholders)}) named(id)"
        if within:
            name = self.builder.table(f"SELECT id FROM {rows} WHERE id IN (SELECT id FROM {within})")
            return CompiledSet(name, lambda needed: None)
        return CompiledSet(
            f"(SELECT id FROM {rows})", lambda needed: None, placeholders[0] if len(placeholders) == 1 else None
        )

    def _compared(self, op: str, value: forms.Literal, within: str | None) -> CompiledSet:
        inside = f" AND e.id IN (SELECT id FROM {within})" if within else ""
        sql = f"SELECT e.id FROM entities e WHERE {compared_sql(op, value, self.builder.bind)}{inside}"
        return CompiledSet(self.builder.table(sql), lambda needed: None)

    def _join(self, form: forms.Join, within: str | None) -> CompiledSet:
        first = selective(form.of)
        return self._along(form.path, lambda inside: self.set(form.of, inside), within, first, form.where)

    def _along(
        self,
        path: tuple[Any, ...],
        of: Callable[[str | None], CompiledSet],
        within: str | None,
        first: bool,
        where: tuple[forms.Where, ...] = (),
    ) -> CompiledSet:
        """What the path leads from to a member of `of`.

        first: `of` is small, and found without `within`.  where: conditions on the statements of a path of one step.
        """
        inside: list[str | None] = [within]
        for step in path:
            start = inside[-1]
            inside.append(None if first or start is None else self.builder.forth(step, start))
        last = of(inside[-1])
        sets = [last.source]
        more = ""
        if where:
            stated = self.builder.table(f"SELECT t.id {self.builder.triples_to(path[0], last.source)}")
            more = f" AND t.id IN (SELECT id FROM {tables.qualified(self.builder, where, stated)})"
        for step, bound in zip(reversed(path), reversed(inside[:-1]), strict=True):
            sets.append(NodeTable(self.builder.back(step, sets[-1], bound, more)))
        sets.reverse()

        def prove(needed: str) -> None:
            for step, target in zip(path, sets[1:], strict=True):
                near, far = tables.ends(step)
                result = self.builder.triples_to(step, target, f" JOIN {needed} n ON n.id = t.{near}")
                used = self.builder.table(f"SELECT t.id AS triple, t.{far} AS id {result}{more}")
                self.builder.proofs.append(f"SELECT triple FROM {used}")
                needed = self.builder.table(f"SELECT DISTINCT id FROM {used}")
            last.prove(needed)

        return CompiledSet(sets[0].name, prove)

    def _qualifier(self, form: forms.Qualifier, within: str | None) -> CompiledSet:
        assert isinstance(form.of, forms.Join)
        build, step = self.builder, form.of.path[0]
        one = None if form.one is None else self.set(form.one, None)
        last = self.set(form.of.of, None)
        near = f" JOIN {one.name} n ON n.id = t.{tables.ends(step)[0]}" if one is not None else ""
        stated = build.table(f"SELECT t.id {build.triples_to(step, last.source, near)}")
        some = ""
        if form.of.where:
            some = f" AND (q.triple, q.statement) IN (FROM {tables.matching(build, form.of.where, stated)})"
        inside = f" AND q.value IN (SELECT id FROM {within})" if within else ""
        qualifier = build.bind(build.ids.relation(form.relation))
        pairs = build.table(
            f"SELECT q.triple, q.value FROM qualifiers q WHERE q.relation = {qualifier} "
            f"AND q.triple IN (SELECT id FROM {stated}){some}{inside}"
        )

        def prove(needed: str) -> None:
            build.proofs.append(f"SELECT triple FROM {pairs} WHERE value IN (SELECT id FROM {needed})")

        return CompiledSet(build.table(f"SELECT DISTINCT value AS id FROM {pairs}"), prove)

    def _and(self, form: forms.And, within: str | None) -> CompiledSet:
        results: list[CompiledSet] = []
        for part in sorted(form.parts, key=_cost):
            results.append(self.set(part, results[-1].name if results else within))

        def prove(needed: str) -> None:
            for part in results:
                part.prove(needed)

        return CompiledSet(results[-1].name, prove)

    def _united(self, sets: list[CompiledSet]) -> CompiledSet:
        if len(sets) == 1:
            return sets[0]

        def prove(needed: str) -> None:
            for part in sets:
                inside = f"SELECT id FROM {needed} WHERE id IN (SELECT id FROM {part.name})"
                part.prove(self.builder.table(inside))

        name = self.builder.table(" UNION ".join(f"SELECT id FROM {part.name}" for part in sets))
        return CompiledSet(name, prove)

    def _ranked(self, ranked: RankedTable, *inner: CompiledSet) -> CompiledSet:
        """What was found by values: its triples are proof, and so are those of the sets that were compared."""

        def prove(needed: str) -> None:
            ranked.prove(needed)
            for part in inner:
                inside = f"SELECT id FROM {ranked.compared or needed} WHERE id IN (SELECT id FROM {part.name})"
                part.prove(self.builder.table(inside))

        return CompiledSet(ranked.name, prove)


def selective(form: Form) -> bool:
    """Whether a form starts from entities or literals that it names, and not from a whole type or range."""
    match form:
        case forms.Entity() | forms.Literal() | forms.Greater():
            return True
        case forms.Class() | forms.Compare():
            return False
        case forms.And(parts=parts):
            return any(map(selective, parts))
        case forms.Or(parts=parts):
            return all(map(selective, parts))
        case forms.Join(of=of) | forms.Minus(of=of) | forms.Arg(of=of) | forms.Nth(of=of) | forms.TimeConstraint(of=of):
            return selective(of)
    return False


def _cost(form: Form) -> int:
    """The parts of an AND in the order in which they are looked up: what is named, then types, then ranges."""
    if selective(form):
        return 0 if isinstance(form, (forms.Entity, forms.Literal)) else 1
    return 2 if isinstance(form, forms.Class) else 3
