"""For the verifier: what each drop removed, worked out a second time, and what an ideal answer rests on, by SQL.

`RemovedByDrops` goes by the list of drops alone; `Replay` makes the drops once more, in order, on the ideal graph.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from kgqa_core.errors import FormError
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.execute import Result, execute
from kgqa_core.logic.forms import Count, Form, Holds, Steps, elements
from kgqa_core.logic.lookup import endings
from kgqa_core.logic.memory import outside
from kgqa_core.papers.grailqability.builder.graph_with_drops import GraphWithDrops, Ints
from kgqa_core.papers.grailqability.builder.ideal import looked_at, ranking
from kgqa_core.papers.grailqability.builder.records import FACT, Drop

ROWS = 1_000_000
"""Nodes and proof triples of one form; a question with more cannot be verified."""


class RemovedByDrops:
    """relations, entities: key → step that dropped it.  triples: id of a triple of the ideal graph → first step."""

    def __init__(self, drops: Sequence[Drop], store: KgStore) -> None:
        self._store = store
        self.relations = {key: drop.step for drop in drops for key in drop.relations}
        self.entities = {key: drop.step for drop in drops for key in drop.entities}
        keys = store.relation_keys()
        hidden = {i: self.entities[key] for key, i in store.entity_ids(self.entities).items()}
        relations = {i: self.relations[key] for i, key in enumerate(keys) if key in self.relations}
        facts = {drop.element: drop.step for drop in drops if drop.kind == FACT}
        self.triples: dict[int, int] = {}
        triples = store.connection.execute(
            "SELECT t.id, t.head, t.relation, t.tail, h.key, e.key FROM triples t JOIN entities h ON h.id = t.head "
            "JOIN entities e ON e.id = t.tail ORDER BY t.id"
        )
        while batch := triples.fetchmany(100_000):
            for i, head, relation, tail, head_key, tail_key in batch:
                steps = [hidden.get(head), relations.get(relation), hidden.get(tail)]
                steps.append(facts.get((head_key, keys[relation], tail_key)))
                removing = [step for step in steps if step is not None]
                if removing:
                    self.triples[i] = min(removing)

    def unnamed(self, form: Form, classes: Collection[str]) -> set[int]:
        """Steps that removed what a form reads and does not name: types below its classes, ends of its times."""
        gone = [self.relations[key] for key in endings(form) if key in self.relations]
        return {*gone, *(self.entities[key] for key in self._below(classes) if key in self.entities)}

    def members(self, classes: Collection[str]) -> set[int]:
        """Steps that dropped members of some classes."""
        rows = self._store.connection.execute(
            "SELECT DISTINCT e.key FROM types t JOIN entities y ON y.id = t.type JOIN entities e ON e.id = t.entity "
            "WHERE y.key IN (SELECT unnest($1::VARCHAR[]))",
            [sorted({*classes, *self._below(classes)})],
        ).fetchall()
        return {self.entities[key] for (key,) in rows if key in self.entities}

    def _below(self, classes: Collection[str]) -> set[str]:
        if not classes:
            return set()
        rows = self._store.connection.execute(
            "SELECT DISTINCT b.key FROM supertypes s JOIN entities a ON a.id = s.super "
            "JOIN entities b ON b.id = s.type WHERE a.key IN (SELECT unnest($1::VARCHAR[]))",
            [sorted(classes)],
        ).fetchall()
        return {key for (key,) in rows}


class ProofBySql:
    """`ideal.rests_on` by SQL, over one open graph."""

    def __init__(self, store: KgStore) -> None:
        self._store = store
        self._relations = {key: number for number, key in enumerate(store.relation_keys())}

    def run(self, form: Form) -> Result:
        """The result of a form with its whole proof.  Raises FormError."""
        return execute(form, self._store, rows=ROWS, seconds=60)

    def of(self, form: Form, found: Result | None = None) -> set[int]:
        """The triples that a form rests on; found: its result, where it is known."""
        looked = looked_at(form)
        triples = set() if looked else set((found or self.run(form)).proof)
        for part, path in looked:
            result = self.run(part)
            triples |= self.of(part, result) | self._along(path, result.nodes)
        for part in () if looked else ranking(form):
            triples |= self.of(part)
        return triples

    def _along(self, path: Steps, nodes: Sequence[int]) -> set[int]:
        triples: set[int] = set()
        for step in path:
            near, far = ("tail", "head") if step.inverse else ("head", "tail")
            rows = self._store.connection.execute(
                f"SELECT id, {far} FROM triples WHERE relation = $1 AND {near} IN (SELECT unnest($2::BIGINT[]))",
                [self._relations.get(step.relation, -1), sorted(set(nodes))],
            ).fetchall()
            triples.update(i for i, _ in rows)
            nodes = [node for _, node in rows]
        return triples


class Replay:
    """The ideal graph, on which the drops are made one by one."""

    def __init__(self, store: KgStore, drops: Sequence[Drop], removed: RemovedByDrops) -> None:
        self._graph = GraphWithDrops(store)
        self._gone: set[str] = set()
        triples = np.fromiter(removed.triples, dtype=np.int64, count=len(removed.triples))
        steps = np.fromiter(removed.triples.values(), dtype=np.int64, count=len(triples))
        self._by_step: dict[int, Ints] = {drop.step: triples[steps == drop.step] for drop in drops}

    def make(self, drop: Drop) -> None:
        """Removes what a drop removed."""
        self._graph.alive[self._by_step[drop.step]] = False
        self._graph.there[sorted(self._graph.know(drop.entities).values())] = False
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
            result = self._graph.execute(form)
            if not isinstance(form, Holds):
                return bool(result.value if isinstance(form, Count) else result.nodes)
            if tuple(ideal) == ("yes",):
                return result.value is True
            return result.value is False and bool(len(self._graph.nodes(form.of)))
        except FormError:
            return False
