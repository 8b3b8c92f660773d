"""For the verifier: what each drop took, from the list of drops alone, and what an ideal answer rests on, by SQL."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kgqa_core.builders.answerability.ideal import looked_at, ranking
from kgqa_core.builders.answerability.records import FACT, Drop
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.execute import Result, execute
from kgqa_core.logic.forms import Form, Steps
from kgqa_core.logic.lookup import endings

ROWS = 1_000_000
"""Nodes and proof triples of one form; a question with more cannot be verified."""


class Taken:
    """relations, entities: key → step that dropped it.  triples: id of a triple of the ideal graph → first step."""

    def __init__(self, drops: Sequence[Drop], store: KgStore) -> None:
        self._store = store
        self.relations = {key: drop.step for drop in drops for key in drop.relations}
        self.entities = {key: drop.step for drop in drops for key in drop.entities}
        keys = store.relation_keys()
        rows = store.connection.execute(
            "SELECT id, key FROM entities WHERE kind = 'entity' AND key IN (SELECT unnest($1::VARCHAR[]))",
            [sorted(self.entities)],
        ).fetchall()
        hidden = {i: self.entities[key] for i, key in rows}
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
                found = [step for step in steps if step is not None]
                if found:
                    self.triples[i] = min(found)

    def unnamed(self, form: Form, classes: Collection[str]) -> set[int]:
        """Steps that took what a form reads and does not name: types below its classes, ends of its times."""
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


class Rests:
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
