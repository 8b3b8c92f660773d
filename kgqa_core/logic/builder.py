"""One SQL query put together from common table expressions, with every value bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kgqa_core.logic.forms import Path, Step
from kgqa_core.logic.lookup import Ids


@dataclass(frozen=True, slots=True)
class Source:
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
        place = (type(value), value)
        if place not in self._places:
            self.parameters.append(value)
            self._places[place] = f"${len(self.parameters)}"
        return self._places[place]

    def table(self, sql: str) -> str:
        """The name of a table that this SQL makes; it may use those made before."""
        name = f"t{len(self._tables)}"
        self._tables.append(f"{name} AS MATERIALIZED ({sql})")
        return name

    def query(self, sql: str) -> str:
        """The whole query that ends so."""
        return (f"WITH {', '.join(self._tables)} " if self._tables else "") + sql

    def back(self, step: Step, to: Source, within: str | None, more: str = "") -> str:
        """Table (id) of what has `step` to a member of `to`; `more` is about the triple `t`."""
        near, _ = ends(step)
        inside = f" AND t.{near} IN (SELECT id FROM {within})" if within else ""
        return self.table(f"SELECT DISTINCT t.{near} AS id {self.triples_to(step, to)}{inside}{more}")

    def forth(self, step: Step, start: str) -> str:
        """Table (id) of what the members of `start(id)` have `step` to."""
        _, far = ends(step)
        return self.table(f"SELECT DISTINCT t.{far} AS id {self.triples_to(turned(step), Source(start))}")

    def triples_to(self, step: Step, to: Source, joins: str = "") -> str:
        """`FROM … WHERE …` of the triples `t` by which something has `step` to a member of `to`."""
        _, far = ends(step)
        table = self.ids.triples[far]
        join, test = ("", f"t.{far} = {to.constant} AND ")
        if to.constant is None:
            join, test = f" JOIN {to.name} x ON x.id = t.{far}", ""
        return f"FROM {table} t{join}{joins} WHERE {test}t.relation = {self.relation(step)}"

    def pairs(self, start: str, path: Path) -> str:
        """Table (id, node) of members of `start(id)` and what the path leads them to, each pair once."""
        if not path:
            return self.table(f"SELECT id, id AS node FROM {start}")
        joins, end = self._hops(path, "s.id")
        return self.table(f"SELECT DISTINCT s.id AS id, {end} AS node FROM {start} s {joins}")

    def relation(self, step: Step) -> str:
        """The place of the id of a step's relation."""
        return self.bind(self.ids.relation(step.relation))

    def prove_path(self, pairs: str, path: Path) -> None:
        """The triples on every way along the path from an `id` to a `node` of `pairs` are proof."""
        if not path:
            return
        joins, end = self._hops(path, "p.id")
        triples = ", ".join(f"h{number}.id" for number in range(len(path)))
        self.proofs.append(f"SELECT unnest([{triples}]) AS triple FROM {pairs} p {joins} WHERE {end} = p.node")

    def _hops(self, path: Path, at: str) -> tuple[str, str]:
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


def turned(step: Step) -> Step:
    """The step from the other end."""
    return Step(step.relation, not step.inverse)
