"""Runs many forms in memory: a graph's triples as sorted arrays, where a hop costs the edges that it follows.

Results are those of `logic.execute`, without proof; tens of microseconds a form where a query of its own costs
milliseconds.  What needs qualifiers or TC is left to `execute`.  About 50 bytes a triple; an overlay's views are read
like tables.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgqa_core.errors import FormError, nearest
from kgqa_core.kg.store import KgStore
from kgqa_core.kg.vocabulary import XSD
from kgqa_core.logic import forms
from kgqa_core.logic.execute import execute
from kgqa_core.logic.forms import Form, Steps, children
from kgqa_core.logic.measures import DAY, TIME, hi_sql, measure, measured_sql, spans
from kgqa_core.logic.normalise import normalise
from kgqa_core.logic.result import Result, Values, aggregated, of_no_number, share, with_bounds

Ints = NDArray[np.int64]
NONE: Ints = np.empty(0, dtype=np.int64)

TESTS = {"eq": np.equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}
"""Comparisons by their names in forms."""


class MemoryGraph:
    """Triples and values of a graph that is open: head, relation, tail [triples]; dim, x, hi, number, unit
    [entities].

    dim: number of a node's dimension in `dimensions`, -1 for what is no number and no date.  x: the number in its base
    unit, or where the date begins; hi: where the date ends; number: in its own unit; unit: index in
    `units`, whose last is none.  literal [entities]: whether the node is one.
    """

    def __init__(self, store: KgStore) -> None:
        self.store = store
        run = store.connection.execute
        columns = run("SELECT head, relation, tail FROM triples").fetchnumpy()
        head, relation, tail = (np.asarray(columns[name], dtype=np.int64) for name in columns)
        rows = run("SELECT id, key FROM relations").fetchall()
        self.relation_ids: dict[str, int] = {key: i for i, key in rows}
        self.relations = max((i for i, _ in rows), default=0) + 1
        self.entities = int(run("SELECT coalesce(max(id), -1) + 1 FROM entities").fetchall()[0][0])
        self.index(head, relation, tail)
        self.literal: NDArray[np.bool_] = np.zeros(self.entities, dtype=np.bool_)
        self.literal[run("SELECT id FROM entities WHERE kind = 'literal'").fetchnumpy()["id"]] = True
        self._values()
        named = run("SELECT key, id FROM entities WHERE kind = 'entity' ORDER BY key").pl()
        self._keys, self._ids = named["key"], named["id"].to_numpy()
        self._types: dict[str, Ints] = {}

    def index(self, head: Ints, relation: Ints, tail: Ints) -> None:
        """Makes these triples those of the graph."""
        forward = head * self.relations + relation
        order = np.lexsort((tail, forward))
        self.head, self.relation, self.tail = head[order], relation[order], tail[order]
        self._forward = forward[order]
        self._back = np.lexsort((self.head, self.relation, self.tail))
        self._backward = (self.tail * self.relations + self.relation)[self._back]

    def _values(self) -> None:
        measured = measured_sql("(SELECT id, id AS node FROM entities)")
        result = self.store.connection.execute(
            f"SELECT m.id, m.dim, m.x, CASE WHEN m.dim = '{TIME}' THEN {hi_sql('e')} ELSE m.x END AS hi, "
            f"e.number, coalesce(e.unit, '') FROM ({measured}) m JOIN entities e ON e.id = m.id ORDER BY m.id"
        ).fetchall()
        self.dimensions: tuple[str, ...] = tuple(sorted({row[1] for row in result}))
        index = {dim: number for number, dim in enumerate(self.dimensions)}
        self.dim: NDArray[np.int16] = np.full(self.entities, -1, dtype=np.int16)
        self.x: NDArray[np.float64] = np.zeros(self.entities)
        self.hi: NDArray[np.float64] = np.zeros(self.entities)
        ids = np.array([row[0] for row in result], dtype=np.int64)
        self.dim[ids] = [index[row[1]] for row in result]
        self.x[ids] = [row[2] for row in result]
        self.hi[ids] = [row[3] for row in result]
        self.number: NDArray[np.float64] = np.zeros(self.entities)
        self.number[ids] = [row[4] for row in result]
        self.units, unit = np.unique([*(row[5] for row in result), ""], return_inverse=True)
        self.unit: NDArray[np.int32] = np.zeros(self.entities, dtype=np.int32)
        self.unit[ids] = unit[:-1]

    def know(self, keys: Any) -> dict[str, int]:
        """Ids of the entities with these keys; what the graph has not is left out."""
        indices = {key: bisect_left(self._keys, key) for key in keys}
        inside = {key: index for key, index in indices.items() if index < len(self._keys)}
        return {key: int(self._ids[index]) for key, index in inside.items() if self._keys[index] == key}

    def execute(self, form: Form) -> Result:
        """The result of a form, without proof.  Raises FormError as `logic.execute` does, FormTimeout where it runs."""
        form = normalise(form)
        if outside(form):
            return execute(form, self.store, proof=False)
        if isinstance(form, forms.Count):
            return Result(value=len(self.nodes(form.of)))
        if isinstance(form, forms.Holds):
            one = self.nodes(form.one)
            return Result(value=bool(len(one) and np.isin(one, self.nodes(form.of)).all()))
        if isinstance(form, forms.Share):
            of = self.nodes(form.of)
            return share(len(of), int(np.isin(of, self.nodes(form.one)).sum()))
        if isinstance(form, forms.Aggregate):
            result = self.aggregate(self.nodes(form.of), form)
            return of_no_number(form, self.execute) if result.empty else result
        return Result(nodes=tuple(self.nodes(form).tolist()))

    def aggregate(self, members: Ints, form: forms.Aggregate) -> Result:
        """What a form computes of the values of `members`, as it says it of its own."""
        if forms.is_computed(form):
            source, number = self.computed(members, form.path)
            node, dim = np.full(len(source), -1), np.full(len(source), "")
            x, unit = number, dim
        else:
            every_way = form.how in forms.EVERY_WAY
            source, node = self.pairs(members, form.path or form.by, every_way=every_way)
            if form.how in (*forms.REDUCTIONS, *forms.BEST_MEMBERS):
                source, node = source[self.dim[node] >= 0], node[self.dim[node] >= 0]
            dim, unit = np.array([*self.dimensions, ""])[self.dim[node]], self.units[self.unit[node]]
            number, x = self.number[node], self.x[node]
        key = np.full(len(node), -1) if form.path else node
        values = Values(members[source], key, node, dim, number, x, unit)
        if form.path and form.by:
            of, key = self.pairs(members, form.by)
            starts = np.searchsorted(source, of)
            lengths = np.searchsorted(source, of, "right") - starts
            values = values.at(joined_ranges(starts, lengths))._replace(key=np.repeat(key, lengths))
        return aggregated(form, values)

    def nodes(self, form: Form) -> Ints:
        """Ids of what a form of sets denotes, ascending."""
        match form:
            case forms.Entity(key=key):
                result = self.know([key])
                if not result:
                    raise FormError(f"entity {key!r} is not in this graph; `kgqa kg search` finds what is, by name")
                return np.array([result[key]], dtype=np.int64)
            case forms.Literal():
                return self._equal(form)
            case forms.Class(key=key):
                return self.members(key)
            case forms.Join(path=path, of=of):
                return self.back(self.nodes(of), path)
            case forms.And(parts=parts):
                sets = [self.nodes(part) for part in parts]
                both = sets[0]
                for other in sets[1:]:
                    both = np.intersect1d(both, other, assume_unique=True)
                return both
            case forms.Or(parts=parts):
                return np.unique(np.concatenate([self.nodes(part) for part in parts]))
            case forms.Minus(of=of, without=without):
                return np.setdiff1d(self.nodes(of), self.nodes(without), assume_unique=True)
            case forms.Arg(of=of) | forms.Nth(of=of):
                return self.ranked(self.nodes(of), form)
            case forms.Greater():
                return self._greater(form)
            case forms.Compare():
                return self._compared(form)
            case forms.CompareTo():
                return self._compared_to(form)
        raise FormError(f"{form} is a value or a table; these stand outermost")

    def hop(self, nodes: Ints, relation: int, *, backward: bool) -> tuple[Ints, Ints]:
        """(place in `nodes`, node reached) of a relation's triples out of `nodes`, or backward into them."""
        source, triples = self.edges(nodes, relation, backward=backward)
        return source, (self.head if backward else self.tail)[triples]

    def edges(self, nodes: Ints, relation: int, *, backward: bool) -> tuple[Ints, Ints]:
        """(place in `nodes`, place of the triple in `head`, `relation` and `tail`) of the same triples."""
        keys = nodes * self.relations + relation
        index = self._backward if backward else self._forward
        starts = np.searchsorted(index, keys, "left")
        lengths = np.searchsorted(index, keys, "right") - starts
        if not lengths.any():
            return NONE, NONE
        indices = joined_ranges(starts, lengths)
        return np.repeat(np.arange(len(nodes)), lengths), self._back[indices] if backward else indices

    def around(self, node: int) -> tuple[Ints, Ints]:
        """Relations of the triples that leave a node, and of those that lead to it, each once."""
        results = []
        for index in (self._forward, self._backward):
            first, last = np.searchsorted(index, [node * self.relations, (node + 1) * self.relations])
            results.append(once(index[first:last]) - node * self.relations)
        return results[0], results[1]

    def around_all(self, nodes: Ints) -> tuple[Ints, Ints]:
        """The same of all of some nodes together."""
        results = []
        for index in (self._forward, self._backward):
            starts, ends = (np.searchsorted(index, (nodes + more) * self.relations) for more in (0, 1))
            results.append(distinct(index[joined_ranges(starts, ends - starts)] % self.relations, self.relations))
        return results[0], results[1]

    def touching(self, nodes: Ints) -> Ints:
        """Places of the triples that leave any of some nodes or lead to it, ascending, each once."""
        runs = []
        for index in (self._forward, self._backward):
            starts, stops = (np.searchsorted(index, (nodes + more) * self.relations) for more in (0, 1))
            runs.append(joined_ranges(starts, stops - starts))
        return np.union1d(runs[0], self._back[runs[1]])

    def is_date(self, nodes: Ints) -> NDArray[np.bool_]:
        """Whether each node is a date."""
        return self.dim[nodes] == (self.dimensions.index(TIME) if TIME in self.dimensions else len(self.dimensions))

    def back(self, nodes: Ints, path: Steps) -> Ints:
        """What the path leads from to any of `nodes`, ascending."""
        for step in reversed(path):
            nodes = once(self.hop(nodes, self._relation(step.relation), backward=not step.inverse)[1])
        return nodes

    def pairs(self, nodes: Ints, path: Steps, *, every_way: bool = False) -> tuple[Ints, Ints]:
        """(place in `nodes`, node) of what the path leads each of them to, each pair once, or once for each way."""
        source, reached = np.arange(len(nodes)), nodes
        for step in path:
            index, reached = self.hop(reached, self._relation(step.relation), backward=step.inverse)
            source = source[index]
            if len(index) and not every_way:
                each = once(source * self.entities + reached)
                source, reached = each // self.entities, each % self.entities
        return source, reached

    def _relation(self, key: str) -> int:
        result = self.relation_ids.get(key)
        if result is None:
            known = sorted(self.relation_ids)
            raise FormError(f"relation {key!r} is not in this graph ({len(known):,} relations){nearest(key, known)}")
        return result

    def members(self, key: str) -> Ints:
        """Entities of a type or of one below it, ascending.  Raises FormError for a key that the graph has not."""
        if key not in self._types:
            if not self.know([key]):
                raise FormError(f"type {key!r} is not in this graph; `kgqa kg stats` shows the types there are")
            rows = self.store.connection.execute(
                "SELECT DISTINCT entity FROM types WHERE type = $1 "
                "OR type IN (SELECT type FROM supertypes WHERE super = $1) ORDER BY entity",
                [self.know([key])[key]],
            ).fetchnumpy()
            self._types[key] = np.asarray(rows["entity"], dtype=np.int64)
        return self._types[key]

    def _equal(self, form: forms.Literal) -> Ints:
        result = measure(form)
        if result is not None:
            return self.within("eq", form)
        rows = self.store.connection.execute(
            "SELECT id, datatype, number FROM entities WHERE kind = 'literal' AND key = $1 ORDER BY id", [form.text]
        ).fetchall()
        plain = form.datatype.endswith("#string")
        fits = [(x is None or kind == form.datatype) if plain else kind == form.datatype for _, kind, x in rows]
        return np.array([row[0] for row, fit in zip(rows, fits, strict=True) if fit], dtype=np.int64)

    def within(self, op: str, value: forms.Literal) -> Ints:
        """Literals that compare so with a number or a date."""
        result = measure(value)
        if result is None:
            raise FormError(f"{op} compares numbers and dates, and {value} is neither")
        if result.dim not in self.dimensions:
            return NONE
        near = self.dim == self.dimensions.index(result.dim)
        if result.dim == TIME:
            if op in ("eq", "ge", "gt"):
                near &= self.x >= (result.hi if op == "gt" else result.lo)
            if op in ("eq", "le", "lt"):
                near &= self.hi <= (result.lo if op == "lt" else result.hi)
            return np.flatnonzero(near)
        return np.flatnonzero(near & TESTS[op](self.x, result.lo))

    def _compared(self, form: forms.Compare) -> Ints:
        if not forms.is_computed(form):
            return self.back(self.within(form.op, form.value), form.path)
        result = measure(form.value)
        if result is None or result.dim != "":
            raise FormError(f"a count or a span of time is compared with a plain number, and {form.value} is none")
        first = form.path[0]
        own = self.relation == self._relation(first.relation)
        start = np.unique((self.tail if first.inverse else self.head)[own])
        source, number = self.computed(start, form.path)
        return start[once(source[TESTS[form.op](number, result.lo)])]

    def computed(self, nodes: Ints, path: Steps) -> tuple[Ints, NDArray[np.float64]]:
        """(place in `nodes`, number): how many nodes a path reaches, where it does, or each span of time."""
        source, begin = self.pairs(nodes, path)
        span = forms.span_of(path)
        if span is None:
            counts = np.bincount(source, minlength=len(nodes))
            some = np.flatnonzero(counts)
            return some, counts[some].astype(np.float64)
        of, end = self.pairs(nodes, (forms.Step(span.until),))
        starts, stops = (np.searchsorted(of, source, side) for side in ("left", "right"))
        source, begin = (np.repeat(own, stops - starts) for own in (source, begin))
        end = end[joined_ranges(starts, stops - starts)]
        sure = self.is_date(begin) & self.is_date(end) & (self.x[begin] <= self.x[end])
        if span.unit == "days":
            sure &= np.maximum(self.hi[begin] - self.x[begin], self.hi[end] - self.x[end]) <= DAY
        return source[sure], spans(span.unit, self.x[begin[sure]], self.x[end[sure]])

    def _compared_to(self, form: forms.CompareTo) -> Ints:
        if isinstance(form.one, forms.Aggregate):
            bounded = with_bounds(form, self.execute)
            return self.nodes(bounded) if isinstance(bounded, forms.Compare) else NONE
        _, dims, x = self._of(self.nodes(form.one), form)
        pick, found = np.max if form.best == "max" else np.min, [NONE]
        for dim in np.unique(dims):
            bound = pick(x[dims == dim])
            if forms.is_computed(form):
                number = forms.Literal(str(int(bound)), f"{XSD}integer")
                found.append(self._compared(forms.Compare(form.op, form.path, number, form.counted)))
            else:
                near = np.flatnonzero((self.dim == dim) & TESTS[form.op](self.x, bound))
                found.append(self.back(near, form.path))
        return np.unique(np.concatenate(found))

    def _of(
        self, nodes: Ints, form: forms.Arg | forms.Nth | forms.CompareTo | forms.Greater
    ) -> tuple[Ints, NDArray[np.int16], NDArray[np.float64]]:
        """(place in `nodes`, dimension, value) of what a form measures them by."""
        if forms.is_computed(form):
            some, number = self.computed(nodes, form.path)
            return some, np.zeros(len(some), dtype=np.int16), number
        source, reached = self.pairs(nodes, form.path)
        measured = self.dim[reached] >= 0
        reached = reached[measured]
        return source[measured], self.dim[reached], self.x[reached]

    def ranked(self, members: Ints, form: forms.Arg | forms.Nth) -> Ints:
        """The best of `members`, the n-th or the first n, as a form says it of its own."""
        source, dim, x = self._of(members, form)
        if not len(source):
            return NONE
        having = {int(d): len(np.unique(source[dim == d])) for d in np.unique(dim)}
        chosen = dim == max(having, key=lambda d: (having[d], -d))
        source, x = source[chosen], x[chosen]
        best = np.full(len(members), -np.inf if form.best == "max" else np.inf)
        (np.maximum if form.best == "max" else np.minimum).at(best, source, x)
        first = isinstance(form, forms.Nth) and form.first
        values = np.sort(best[np.unique(source)]) if first else np.unique(best[source])
        n = form.n if isinstance(form, forms.Nth) else 1
        if n > len(values) and not first:
            return NONE
        last = values[max(-n, -len(values))] if form.best == "max" else values[min(n, len(values)) - 1]
        return members[(TESTS["ge" if form.best == "max" else "le"] if first else np.equal)(best, last)]

    def _greater(self, form: forms.Greater) -> Ints:
        pick = np.max if form.best == "max" else np.min
        sides = []
        for part in (form.one, form.other):
            members = self.nodes(part)
            sides.append((members, *self._of(members, form)))
        shared = sorted({int(d) for d in sides[0][2]} & {int(d) for d in sides[1][2]})
        if not shared:
            return NONE
        values = [pick(x[dim == shared[0]]) for _, _, dim, x in sides]
        results = [
            members[source[(dim == shared[0]) & (x == value)]]
            for (members, source, dim, x), value in zip(sides, values, strict=True)
            if value == pick(values)
        ]
        return np.unique(np.concatenate(results))

    def is_certain(self, form: forms.Greater) -> bool:
        """Whether no date of one side of a comparison lies within a less precise one of the other."""
        if forms.is_computed(form):
            return True
        one, other = (self.pairs(self.nodes(part), form.path)[1] for part in (form.one, form.other))
        overlap = (self.x[one, None] < self.hi[other]) & (self.x[other] < self.hi[one, None])
        return not (overlap & ((self.x[one, None] != self.x[other]) | (self.hi[one, None] != self.hi[other]))).any()


def joined_ranges(starts: Ints, lengths: Ints) -> Ints:
    """The integers of ranges that begin at `starts`, one range after the other."""
    shifts = starts - np.concatenate(([0], np.cumsum(lengths)[:-1]))
    return np.asarray(np.repeat(shifts, lengths) + np.arange(int(lengths.sum())), dtype=np.int64)


def once(numbers: Ints) -> Ints:
    """Numbers, ascending, each once; of integers sooner than `numpy.unique`."""
    if len(numbers) < 2:
        return numbers
    ordered = np.sort(numbers)
    return ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))]


def distinct(numbers: Ints, size: int) -> Ints:
    """Numbers below `size`, ascending, each once."""
    if len(numbers) < size // 32:
        return once(numbers)
    seen = np.zeros(size, dtype=np.bool_)
    seen[numbers] = True
    return np.flatnonzero(seen)


def outside(form: Form) -> bool:
    """Whether a form needs what is not in memory: qualifiers, or TC."""
    if isinstance(form, (forms.TimeConstraint, forms.Qualifier)) or (isinstance(form, forms.Join) and form.where):
        return True
    return any(map(outside, children(form)))
