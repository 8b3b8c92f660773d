"""What each drop took of the ideal graph, worked out from the list of drops alone, for the verifier."""

from __future__ import annotations

from collections.abc import Sequence

from kgqa_core.benchmarks.grailqability.records import FACT, Drop
from kgqa_core.kg.store import KgStore


class Taken:
    """relations, entities: key → step that dropped it.  triples: id of a triple of the ideal graph → first step."""

    def __init__(self, drops: Sequence[Drop], store: KgStore) -> None:
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
