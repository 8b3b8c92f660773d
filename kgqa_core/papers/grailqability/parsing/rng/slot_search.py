"""The form search under the paper's limits, over the summary of a graph: forms with slots that are possible, never run.

Sets are what paths of one and two relations lead to from a topic (three, where `parsing.rng.hops` says so), what
fulfils a condition on a value, two of these sets at once, and what one more relation leads to from those.  Of sets come
COUNT, ARGMAX, ARGMIN and the n-th by a number or date; of two topics MINUS, GREATER, LESS and HOLDS.  Where conditions
on types are tried, as GrailQA writes them, each set is also one with a type: those that the question names of all at
the end of its path, and the most common ones there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from types import SimpleNamespace

import numpy as np

from kgqa_core.config import RngOptions
from kgqa_core.datasets.derived.gold_forms import PLACES
from kgqa_core.logic import forms
from kgqa_core.logic.forms import BESTS, OPS, Form, Literal
from kgqa_core.logic.memory import NONE, Ints
from kgqa_core.papers.grailqability.parsing.rng.slots import ENTITIES, STRING
from kgqa_core.search.candidates import KINDS, LabelQuery, among
from kgqa_core.search.search import BEAM, FormSearch, Plan, PlanSearch
from kgqa_core.search.summary import SummaryGraph
from kgqa_core.search.words import Floats, WordCover, WordIndex

ALL = forms.Entity("")
"""Stands for everything."""
FEW = 2
"""Types at the end of a path that are tried in sets which are counted, ranked or of two conditions."""


class SlotSearch(PlanSearch):
    """The search for the forms of one reading of a question.

    starts: nodes of what each topic may be.  values: slots of a value by the nodes that it may equal.  named: types
    that the question names.  likeness: of each directed relation to it, where not all are tried; None for all.
    """

    graph: SummaryGraph

    def __init__(
        self, owner: FormSearch, starts: Sequence[Ints], values: Mapping[Literal, Ints], named: Iterable[int],
        options: RngOptions, *, types: bool, likeness: Floats | None,
    ) -> None:  # fmt: skip
        self.starts, self.values, self.options, self.types = starts, values, options, types
        self.all = likeness is None
        self.named = frozenset(named)
        query = LabelQuery("", (), () if starts else tuple((index, 1.0) for index in named), None, tuple(values))
        ways = 2 * owner.graph.relations
        cover = WordCover(WordIndex(owner.graph, ()), query, np.zeros((ways, 0)))
        fit = SimpleNamespace(likeness=np.zeros(ways) if likeness is None else likeness, cover=cover)
        super().__init__(owner, query, fit, (0.0,) * len(KINDS))
        self.followed = (len(self.graph.triples) ** 2 if self.all else options.likely_paths), 0

    def slotted(self) -> Iterator[Form]:
        """The forms that use all topics, and the value where there is one, those of fewer relations first."""
        self.run()
        for plan in sorted(self.plans.values(), key=lambda plan: (len(plan.relations), -plan.score * (not self.all))):
            if plan.chain and len(plan.slots) == len(self.starts) and (plan.kind == "value" or not self.values):
                yield plan.form

    def _items(self) -> list[Plan]:
        items = [
            self._plan(forms.Entity(slot), nodes, self.none, slots=(number,), chain=0)
            for number, (slot, nodes) in enumerate(zip(ENTITIES, self.starts, strict=False))
        ]
        things, chain = np.flatnonzero(~self.graph.memory.literal), self.owner.hops - 1 or -1
        for form, nodes, relation in () if self.starts else self._conditions(things, Plan(ALL, things, self.none)):
            last = self.graph.inverse(relation)
            more = {"relations": (last,), "chain": chain, "kind": "value", "last": last}
            items.append(self._plan(form, nodes, self.none, **more))
        return items if self.starts or self.values else self.classes

    def _keep(self, plan: Plan) -> bool:
        return self.plans.setdefault(plan.form, plan) is plan

    def _select(self, plans: list[Plan]) -> list[Plan]:
        """Sets that are extended: those without a type, which are not ranked."""
        plain = [plan for plan in plans if not (plan.ranked or plan.texts)]
        return plain if self.all else sorted(plain, key=lambda plan: -plan.score)[: 2 * BEAM]

    def _follow(self, beam: list[Plan]) -> Iterator[Plan]:
        return super()._follow([plan for plan in beam if plan.chain >= 0 or len(plan.relations) == 2])

    def _absent(self, beam: list[Plan]) -> Iterator[Plan]:
        return iter(())

    def _back(self, last: int, then: int, plan: Plan) -> bool:
        return then == self.graph.inverse(last) and not self.graph.many[then]

    def _several(self, plan: Plan) -> bool:
        """Whether a set is one of things, of which there may be several."""
        return plan.things and plan.chain != 0 and bool(len(plan.relations) != 1 or self.graph.many[plan.last])

    def _typed(self, plan: Plan, most: int) -> Iterator[Plan]:
        """The things of a type in a set, for each type that is tried."""
        if not self.types or not plan.things or plan.last < 0 or plan.chain == 0:
            return
        ends = self.graph.end_types(plan.nodes)
        tried = {**dict.fromkeys(index for index in ends if index in self.named), **dict.fromkeys(ends[:most])}
        for index in tried:
            nodes = plan.nodes[among(plan.nodes, self.graph.members(index))]
            made = self._extended(
                plan, forms.And((forms.Class(self.graph.type_keys[index]), plan.form)), nodes, plan.cover
            )
            made.texts = frozenset((0,))
            yield made

    def _narrow(self, plan: Plan) -> Iterator[Plan]:
        few = plan.kind not in ("none", "value") or (len(plan.relations) > 1 and not self.all)
        return self._typed(plan, FEW if few else self.options.types_tried)

    def _rank(self, plan: Plan) -> Iterator[Plan]:
        if self.values or len(self.starts) > 1 or not self._several(plan):
            return
        long = len(plan.relations) > 1
        for of in (plan, *self._typed(plan, FEW)) if self.types or not long else ():
            ways = self.graph.directed_relations(of.nodes).tolist()
            measures: list[tuple[int, ...]] = [(way,) for way in ways if self.graph.is_measure(way)]
            for by, best in product(measures + self.graph.long_measures(of.last) * len(of.texts), BESTS):
                steps = tuple(map(self.graph.step, by))
                ranked: list[Form] = [forms.Arg(best, of.form, steps)]
                if len(by) == 1 and not long and (plan.relations or self.named):
                    ranked += [forms.Nth(n, best, of.form, steps) for n in PLACES]
                for form in ranked:
                    yield self._extended(of, form, of.nodes, of.cover, by[-1], ranked=True)

    def _conditions(self, nodes: Ints, plan: Plan, *, empty: bool = False) -> Iterator[tuple[Form, Ints, int]]:
        graph = self.graph
        ways = np.intersect1d(graph.directed_relations(nodes), graph.valued)
        for relation in ways.tolist() if plan.kind == "none" else ():
            source, reached = graph.memory.hop(nodes, relation, backward=False)
            steps = (graph.step(relation),)
            for literal, equal in self.values.items():
                own = nodes[np.unique(source[among(reached, equal)])]
                for op in () if not len(own) else ("eq",) if literal.datatype == STRING else ("eq", *OPS):
                    yield forms.Join(steps, literal) if op == "eq" else forms.Compare(op, steps, literal), own, relation

    def _join(self, beam: list[Plan]) -> Iterator[Plan]:
        paths = [plan for plan in self.plans.values() if plan.chain > 0 and plan.things]
        latest, most = set(map(id, beam)), self.owner.hops + 1
        for p, q in product(*([plan for plan in paths if plan.slots == (number,)] for number in (0, 1))):
            if p.chain + q.chain > most or (id(p) not in latest and id(q) not in latest):
                continue
            nodes = p.nodes[among(p.nodes, q.nodes)]
            if len(nodes):
                yield self._joined(forms.And((p.form, q.form)), nodes, p, q, "intersect")
                if p.chain == q.chain == 1:
                    for one, other in ((p, q), (q, p)):
                        yield self._joined(forms.Minus(one.form, other.form), nodes, one, other, "difference")

    def _finals(self) -> Iterator[Plan]:
        sets = [plan for plan in self.plans.values() if not plan.ranked and not plan.texts]
        for plan in sets if not self.values else ():
            if self._several(plan) and plan.kind != "difference":
                for of in (plan, *self._typed(plan, FEW)):
                    if len(self.starts) < 2 or of.texts:
                        yield self._extended(of, forms.Count(of.form), NONE, of.cover, kind="count", value=1)
        if len(self.starts) == 2 and not self.values:
            yield from self._compare()
            for plan in (one for one in sets if one.chain > 0 and one.things):
                other = 1 - plan.slots[0]
                if among(self.starts[other], plan.nodes).any():
                    made = self._extended(
                        plan, forms.Holds(plan.form, forms.Entity(ENTITIES[other])), NONE, plan.cover, value=True
                    )
                    made.slots, made.chain = (0, 1), -1
                    yield made

    def _compare(self) -> Iterator[Plan]:
        graph = self.graph
        first, second = map(forms.Entity, ENTITIES)
        one, other = map(graph.directed_relations, self.starts)
        for way in np.intersect1d(one, other).tolist():
            counted = not graph.is_measure(way)
            if not counted or (graph.many[way] and graph.to_entities(way)):
                for best in BESTS:
                    form = forms.Greater(first, second, (graph.step(way),), best, counted)
                    yield self._plan(form, NONE, self.none, relations=(way,), slots=(0, 1), value=True)
