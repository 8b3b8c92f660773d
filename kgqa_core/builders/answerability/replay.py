"""For the verifier: the drops made once more, in their order, on the ideal graph in memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kgqa_core.builders.answerability.arrays import Graph, Ints, Living, Members
from kgqa_core.builders.answerability.records import Drop
from kgqa_core.builders.answerability.taken import Taken
from kgqa_core.errors import FormError
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.forms import Count, Form, Holds, elements
from kgqa_core.logic.memory import MemoryGraph, outside


class Replay:
    """The ideal graph from which the drops are taken one by one.  taken: what each of them took."""

    def __init__(self, store: KgStore, drops: Sequence[Drop], taken: Taken) -> None:
        self._graph = Graph.read(store)
        self._memory = MemoryGraph(store)
        self._living = Living(self._memory, self._graph, Members(store, self._graph.there))
        self._gone: set[str] = set()
        triples = np.fromiter(taken.triples, dtype=np.int64, count=len(taken.triples))
        steps = np.fromiter(taken.triples.values(), dtype=np.int64, count=len(triples))
        self._by_step: dict[int, Ints] = {drop.step: triples[steps == drop.step] for drop in drops}

    def make(self, drop: Drop) -> None:
        """Takes what a drop took."""
        self._graph.alive[self._by_step[drop.step]] = False
        self._graph.there[sorted(self._memory.know(drop.entities).values())] = False
        self._gone.update((*drop.relations, *drop.entities))

    def can(self, form: Form) -> bool:
        """Whether a form can be followed; qualifiers and TC cannot."""
        return not outside(form)

    def answers(self, form: Form, ideal: Sequence[str]) -> bool:
        """Whether the graph as it is now answers a question; ideal: the answers of the ideal graph."""
        used = elements(form)
        if self._gone.intersection((*used.relations, *used.entities, *used.classes)):
            return False
        try:
            found = self._living.execute(form)
            if not isinstance(form, Holds):
                return bool(found.value if isinstance(form, Count) else found.nodes)
            if tuple(ideal) == ("yes",):
                return found.value is True
            return found.value is False and bool(len(self._living.nodes(form.of)))
        except FormError:
            return False
