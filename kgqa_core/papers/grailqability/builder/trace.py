"""What a form denotes in the graph in memory, and the triples on every way to it.

The builder asks thousands of times whether a question still has an answer; this is what it asks.  Sets (joins without
conditions, AND, OR, MINUS) are exact; ranks and comparisons count as their members that have a value at all, which
is where an answer may be.  `GraphWithDrops` has the last word on those, and the verifier asks SQL about everything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from kgqa_core.logic import forms
from kgqa_core.logic.forms import Form, Step, Steps, children
from kgqa_core.logic.memory import outside
from kgqa_core.papers.grailqability.builder.graph_with_drops import NONE, GraphWithDrops, Ints

Proof = Callable[[Ints, bool], list[Ints]]


@dataclass(frozen=True, slots=True)
class TracedNodes:
    """nodes: ids, ascending.  proof(kept, one): triples on the ways to some nodes; with `one` on a single way."""

    nodes: Ints
    proof: Proof

    def support(self) -> Ints:
        """The triples on every way to every node, ascending."""
        return _union(self.proof(self.nodes, False))

    def witness(self) -> Ints:
        """The triples of one way to one node; empty where there is none."""
        return _union(self.proof(self.nodes[:1], True))


def is_exact(form: Form) -> bool:
    """Whether `Tracer.denote` gives the very result of a form."""
    if isinstance(form, (forms.Arg, forms.Nth, forms.Greater, forms.Compare, forms.TimeConstraint, forms.Literal)):
        return False
    if isinstance(form, forms.Join) and form.where:
        return False
    return all(is_exact(child) for child in children(form))


class Tracer:
    """Forms of one graph, denoted in its arrays; keys that the graph has not denote nothing."""

    def __init__(self, graph: GraphWithDrops) -> None:
        self.graph, self.store, self.relation_ids, self.members = graph, graph.store, graph.relation_ids, graph.of_class
        rows = self.store.connection.execute("SELECT key, id FROM entities WHERE kind = 'entity'").fetchall()
        self.entity_ids: dict[str, int] = dict(rows)
        self._static: dict[Form, Ints] = {}

    def denote(self, form: Form) -> TracedNodes:
        """The nodes of a form; of COUNT those counted, of HOLDS those of which it holds."""
        match form:
            case forms.Entity(key=key):
                return self._there(np.array([self.entity_ids[key]] if key in self.entity_ids else [], dtype=np.int64))
            case forms.Class(key=key):
                of_class = self.members.of(self.entity_ids[key]) if key in self.entity_ids else NONE
                return TracedNodes(of_class, lambda kept_nodes, one: [])
            case forms.Literal() | forms.Compare():
                return self._valued(form)
            case forms.Join(path=path, of=of):
                joined = self._join(path, self.denote(of))
                return self._among(joined, self._result(form)) if form.where else joined
            case forms.And(parts=parts):
                return _all(self._each(parts))
            case forms.Or(parts=parts):
                return _any(self._each(parts))
            case forms.Minus(of=of, without=without):
                one = self.denote(of)
                return TracedNodes(np.setdiff1d(one.nodes, self.denote(without).nodes, assume_unique=True), one.proof)
            case forms.Arg(of=of, path=path) | forms.Nth(of=of, path=path):
                members = self._having(path, self.denote(of))
                enough = not isinstance(form, forms.Nth) or len(members.nodes) >= form.n
                return members if enough else TracedNodes(NONE, members.proof)
            case forms.TimeConstraint(of=of):
                return self._among(self.denote(of), self._result(form))
            case forms.Greater(one=one, other=other, path=path):
                sides = [self._having(path, self.denote(side)) for side in (one, other)]
                return _any(sides, always=True) if all(len(side.nodes) for side in sides) else _any([])
            case forms.Count(of=of):
                return self.denote(of)
            case forms.Holds(of=of, one=one):
                return _all(self._each((of, one)))
        raise AssertionError(form)

    def stands(self, form: Form) -> Ints | None:
        """Triples that are enough for a form to have an answer, none where any may matter; None where it has no answer.

        What needs qualifiers or TC counts as what it may have.
        """
        exact = is_exact(form)
        if not exact and not outside(form):
            result = self.graph.execute(form)
            return NONE if result.value or result.nodes else None
        traced = self.denote(form)
        wanted = len(self.denote(form.one).nodes) if isinstance(form, forms.Holds) else len(traced.nodes)
        if not len(traced.nodes) or len(traced.nodes) != wanted:
            return None
        return traced.witness() if exact else NONE

    def along(self, path: Steps, nodes: Ints) -> Ints:
        """The triples on every way along a path from some nodes, ascending."""
        runs = [NONE]
        for step in path:
            triples, _, nodes = self._follow(nodes, step, backward=step.inverse)
            runs.append(triples)
            nodes = np.unique(nodes)
        return _union(runs)

    def _each(self, parts: Sequence[Form]) -> list[TracedNodes]:
        return [self.denote(part) for part in parts]

    def _follow(self, nodes: Ints, step: Step, *, backward: bool) -> tuple[Ints, Ints, Ints]:
        """(triples, from, to) of a step's relation out of some nodes, or backward into them."""
        relation = self.relation_ids.get(step.relation)
        return (NONE, NONE, NONE) if relation is None else self.graph.follow(nodes, relation, backward=backward)

    def _there(self, nodes: Ints) -> TracedNodes:
        return TracedNodes(nodes[self.graph.there[nodes]], lambda kept_nodes, one: [])

    def _join(self, path: Steps, of: TracedNodes) -> TracedNodes:
        """Nodes that the path leads from to a member of `of`; each step is followed from its end."""
        nodes, levels = of.nodes, []
        for step in reversed(path):
            triples, start, end = self._follow(nodes, step, backward=not step.inverse)
            levels.append((triples, start, end))
            nodes = np.unique(end)
        return TracedNodes(nodes, _back(levels, of.proof))

    def _having(self, path: Steps, of: TracedNodes) -> TracedNodes:
        """The members that have something at the end of a path; its triples are part of their proof."""
        nodes = of.nodes
        levels: list[tuple[Ints, ...]] = []
        for step in path:
            levels.append(self._follow(nodes, step, backward=step.inverse))
            nodes = np.unique(levels[-1][2])
        for index in reversed(range(len(levels))):
            fits = np.isin(levels[index][2], nodes)
            levels[index] = tuple(column[fits] for column in levels[index])
            nodes = np.unique(levels[index][1])

        def proof(kept_nodes: Ints, one: bool) -> list[Ints]:
            proofs, here = of.proof(kept_nodes, one), kept_nodes
            for triples, start, end in levels:
                chosen = np.isin(start, here)
                if one and chosen.any():
                    chosen = np.arange(len(start)) == int(np.flatnonzero(chosen)[0])
                proofs.append(triples[chosen])
                here = np.unique(end[chosen])
            return proofs

        return TracedNodes(nodes, proof)

    def _valued(self, form: Form) -> TracedNodes:
        """A literal, or what has a value that compares so: found once in the whole graph, and still having it."""
        literals = self._there(self._result(form))
        return self._having(form.path, literals) if isinstance(form, forms.Compare) else literals

    def _result(self, form: Form) -> Ints:
        if form not in self._static:
            self._static[form] = np.array(self.graph.whole.execute(form).nodes, dtype=np.int64)
        return self._static[form]

    @staticmethod
    def _among(traced: TracedNodes, allowed: Ints) -> TracedNodes:
        return TracedNodes(np.intersect1d(traced.nodes, allowed, assume_unique=True), traced.proof)


def _back(levels: Sequence[tuple[Ints, Ints, Ints]], before: Proof) -> Proof:
    """Proof of a chain: from the nodes that are kept back to those it began with."""

    def proof(kept_nodes: Ints, one: bool) -> list[Ints]:
        proofs: list[Ints] = []
        for triples, start, end in reversed(levels):
            chosen = np.isin(end, kept_nodes)
            if one and chosen.any():
                chosen = np.arange(len(end)) == int(np.flatnonzero(chosen)[0])
            proofs.append(triples[chosen])
            kept_nodes = np.unique(start[chosen])
        return proofs + before(kept_nodes, one)

    return proof


def _all(parts: list[TracedNodes]) -> TracedNodes:
    nodes = parts[0].nodes
    for part in parts[1:]:
        nodes = np.intersect1d(nodes, part.nodes, assume_unique=True)
    return TracedNodes(
        nodes, lambda kept_nodes, one: [triples for part in parts for triples in part.proof(kept_nodes, one)]
    )


def _any(parts: list[TracedNodes], *, always: bool = False) -> TracedNodes:
    """The union; always: whatever is kept, every part is part of the proof."""
    nodes = _union([part.nodes for part in parts])

    def proof(kept_nodes: Ints, one: bool) -> list[Ints]:
        proofs = []
        for part in parts:
            own = part.nodes if always else np.intersect1d(part.nodes, kept_nodes, assume_unique=True)
            proofs += part.proof(own[:1] if one else own, one) if len(own) else []
            if one and proofs and not always:
                break
        return proofs

    return TracedNodes(nodes, proof)


def _union(arrays: list[Ints]) -> Ints:
    return np.unique(np.concatenate(arrays)) if arrays else NONE
