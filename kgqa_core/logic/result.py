"""What a form denotes, as an object and as texts; and what is computed of the values of members."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum, inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgqa_core.kg.vocabulary import XSD
from kgqa_core.logic import forms
from kgqa_core.logic.forms import Form
from kgqa_core.logic.measures import TIME

PERCENT = "%"
"""The unit of a share."""


class Row(NamedTuple):
    """A row of a table: the id that it is about, and the id of a value, or a number with the key of its unit."""

    key: int
    node: int | None = None
    number: float | None = None
    unit: str | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """What a form denotes in a graph.

    nodes: ids, ascending; empty for a value; of a table the first column.  value: of COUNT, SUM, AVG and SHARE a
    number, of HOLDS yes or no, else None.  unit: the key of the number's unit, `%` of a share.  rows: of a table, those
    of the largest numbers first.  proof: ids of the triples that the answers rest on, ascending: every triple on any
    way to any answer, and to every value that was added or compared; what a form finds missing (the second part of
    MINUS, a HOLDS that is not so) and types have none.  truncated: there are more nodes, rows or triples than `rows`; a
    value is never cut.
    """

    nodes: tuple[int, ...] = ()
    value: float | bool | None = None
    proof: tuple[int, ...] = ()
    truncated: bool = False
    unit: str | None = None
    rows: tuple[Row, ...] = ()

    @property
    def ids(self) -> tuple[int, ...]:
        """Every node that the texts of the result name."""
        return (*self.nodes, *(row.node for row in self.rows if row.node is not None))

    @property
    def empty(self) -> bool:
        """Whether there is no answer; a number of 0 and a `no` are answers."""
        return self.value is None and not self.nodes


class Values(NamedTuple):
    """Values of members [rows]: the member, the group, the node (-1: none), its dimension, the number in its own unit
    and in the base unit, and the unit; `""` where there is none."""

    member: NDArray[np.int64]
    key: NDArray[np.int64]
    node: NDArray[np.int64]
    dim: NDArray[Any]
    number: NDArray[np.float64]
    x: NDArray[np.float64]
    unit: NDArray[Any]

    def at(self, index: NDArray[Any]) -> Values:
        """The rows at an index or where a mask is true."""
        return Values(*(column[index] for column in self))


def aggregated(form: forms.Aggregate, values: Values) -> Result:
    """What an aggregate computes of the values of its members."""
    if form.how == "values":
        rows = [Row(m, None, tidy(x)) if n < 0 else Row(m, n) for m, n, x in zip(
            *(values[i].tolist() for i in (0, 2, 5)), strict=True)]  # fmt: skip
        return _table(rows)
    if form.how in forms.ARITHMETIC:
        values = values.at(values.dim != TIME)
    if form.how != "count" and len(values.dim) and (values.dim != values.dim[0]).any():
        dims, index = np.unique(values.dim, return_inverse=True)
        having = [len(np.unique(values.member[index == number])) for number in range(len(dims))]
        values = values.at(index == int(np.argmax(having)))
    order = np.argsort(values.key, kind="stable")
    keys, cuts = np.unique(values.key[order], return_index=True)
    rows = []
    for key, own in zip(keys.tolist(), np.split(order, cuts[1:]), strict=False):
        rows += _reduced(form, key, values.at(own))
    if form.pick:
        best = (max if form.pick == "max" else min)(row.number or 0 for row in rows) if rows else 0
        return Result(tuple(sorted(row.key for row in rows if row.number == best)))
    if form.by:
        return _table(rows)
    if rows and rows[0].node is None:
        return Result(value=rows[0].number, unit=rows[0].unit)
    return Result(tuple(row.node for row in rows if row.node is not None))


def _reduced(form: forms.Aggregate, key: int, own: Values) -> list[Row]:
    """The row of a group; of largest values one for each literal that is equal."""
    one = bool((own.unit == own.unit[0]).all())
    numbers, unit = (own.number, own.unit[0]) if one else (own.x, own.dim[0])
    if form.how == "count":
        return [Row(key, None, len(np.unique(own.member)))]
    if form.how in forms.BEST_MEMBERS:
        best = own.x == (own.x.max() if form.how == "argmax" else own.x.min())
        return [Row(key, member) for member in np.unique(own.member[best]).tolist()]
    if form.how in ("max", "min"):
        best = own.x == (own.x.max() if form.how == "max" else own.x.min())
        if not forms.is_computed(form):
            return [Row(key, node) for node in np.unique(own.node[best]).tolist()]
        return [Row(key, None, tidy(own.x[best][0]))]
    if form.how == "median":
        return [Row(key, None, tidy(float(np.median(numbers))), str(unit) or None)]
    if form.how == "range":
        return [Row(key, None, tidy(numbers.max() - numbers.min()), str(unit) or None)]
    whole = fsum(numbers.tolist())
    return [Row(key, None, tidy(whole if form.how == "sum" else whole / len(numbers)), str(unit) or None)]


def _table(rows: Sequence[Row]) -> Result:
    """The result that is a table."""
    order = sorted(rows, key=lambda row: (inf if row.number is None else -row.number, row.key, row.node or 0))
    return Result(tuple(sorted({row.key for row in rows})), rows=tuple(order))


def share(members: int, inside: int) -> Result:
    """The result that is a share in percent; none of no members."""
    return Result(value=tidy(100 * inside / members), unit=PERCENT) if members else Result()


def tidy(x: float) -> float:
    """A number without the digits that depend on the order of a sum; an int where it is whole."""
    x = float(f"{x:.15g}")
    return int(x) if x.is_integer() and abs(x) < 2**53 else x


def of_no_number(form: forms.Aggregate, run: Callable[[Form], Result]) -> Result:
    """The sum over no member: 0 where others of the kind have the measure; else none, as all other aggregates."""
    of = form.of
    while isinstance(of, (forms.And, forms.Minus, forms.Arg, forms.Nth)):
        of = (
            of.of
            if not isinstance(of, forms.And)
            else min(of.parts, key=lambda part: not isinstance(part, forms.Class))
        )
    if isinstance(of, forms.Join):
        of = forms.Compare("ge", of.path[:1], forms.Literal("1", XSD + "integer"), counted=True)
    if form.how != "sum" or form.by or of == form.of or run(forms.Count(form.of)).value:
        return Result()
    other = run(replace(form, of=of))
    return Result(value=None if other.value is None else 0, unit=other.unit)


def with_bounds(form: Form, run: Callable[[Form], Result]) -> Form:
    """A form in which a comparison with an aggregate, as with an average, is one with its value; an empty set where
    there is none."""
    if not isinstance(form, forms.CompareTo) or not isinstance(form.one, forms.Aggregate):
        return forms.with_children(form, lambda part: with_bounds(part, run))
    found = run(form.one)
    if found.value is None or isinstance(found.value, bool):
        return forms.Minus(form.one.of, form.one.of)
    value = forms.Literal(str(found.value), f"{XSD}decimal", found.unit)
    return forms.Compare(form.op, form.path, value, form.counted)


def result_texts(result: Result, names: Mapping[int, str]) -> tuple[str, ...]:
    """A result as texts, each once: a number, `yes` or `no`, names, or `name: value`.  names: of all `ids`."""
    if result.value is not None:
        return (value_text(result.value),)
    return tuple(dict.fromkeys(row_texts(result, names) if result.rows else (names[node] for node in result.nodes)))


def row_texts(result: Result, names: Mapping[int, str], units: Mapping[str, str] | None = None) -> list[str]:
    """The rows of a table as texts.  units: names of units, where they are to be shown."""
    return [
        f"{names[k]}: {names[n] if n is not None else value_text(x or 0)} {(units or {}).get(u or '', '')}".rstrip()
        for k, n, x, u in result.rows
    ]


def value_text(value: float | bool) -> str:
    """`yes`, `no`, or a number without more digits than people read.

    >>> value_text(False), value_text(12), value_text(200 / 3), value_text(1 / 3)
    ('no', '12', '66.67', '0.333')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value) if isinstance(value, int) else f"{value:.3g}" if abs(value) < 1 else str(round(value, 2))
