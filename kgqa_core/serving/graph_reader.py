"""Reads nodes, facts and names of one graph into records, for one call of a view."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from kgqa_core.dkg.csr import Dkg
from kgqa_core.errors import InputError, nearest
from kgqa_core.kg.look.search import resolve_all
from kgqa_core.kg.look.show import RANKS, described
from kgqa_core.kg.store import KgStore
from kgqa_core.linking.fold import fold
from kgqa_core.linking.mentions import MentionDictionary
from kgqa_core.serving.graph_records import (
    FactPage,
    FactRecord,
    NodeRecord,
    QualifierRecord,
    RelationCount,
    RelationRecord,
)

MOST_RELATIONS = 200
"""Relations with their counts that a page of facts holds."""
SHOWN = 5
"""Keys that an error names."""

Side = Literal["out", "in"]


@dataclass(frozen=True)
class GraphArrays:
    """What all calls share and only read.  relation_keys, relation_names: of the forward relations, by id."""

    dkg: Dkg
    mentions: MentionDictionary
    relation_keys: Sequence[str]
    relation_names: Sequence[str]

    def row(self, entity: int) -> tuple[int, int]:
        """Where the edges of an entity start and stop; no edges lead out of most literals."""
        starts, stops = self.dkg.row_bounds([entity])
        return int(starts[0]), int(stops[0])

    def degree(self, entity: int) -> int:
        """Triples that an entity is head or tail of; 0 of a literal."""
        start, stop = self.row(entity)
        return 0 if self.is_literal(entity) else stop - start

    def is_literal(self, node: int) -> bool:
        """Whether a node is a literal."""
        return bool(self.dkg.is_literal([node])[0])

    def types(self, entity: int) -> list[int]:
        """Types of an entity, by id."""
        known = entity < len(self.mentions.keys) and not self.is_literal(entity)
        return self.mentions.types_of(entity) if known else []

    def type_names(self, entity: int) -> tuple[str, ...]:
        """Names of its types."""
        return tuple(self.mentions.labels[kind] for kind in self.types(entity))

    def relation(self, number: int) -> RelationRecord:
        """A directed relation by its id."""
        index, inverse = number % self.dkg.relations, number >= self.dkg.relations
        return RelationRecord(self.relation_keys[index], self.relation_names[index], inverse)

    def count(self, number: int, count: int) -> RelationCount:
        """A directed relation with a count."""
        relation = self.relation(number)
        return RelationCount(relation.key, relation.name, relation.inverse, count)

    def find_relation(self, text: str) -> int:
        """The id of the relation with a key, or else with a name.

        Raises InputError with the nearest one, or with the keys of several that have the name.
        """
        for names in (self.relation_keys, self.relation_names):
            indices = [index for index, name in enumerate(names) if name == text]
            if len(indices) == 1:
                return indices[0]
            if indices:
                keys = ", ".join(repr(self.relation_keys[index]) for index in indices[:SHOWN])
                raise InputError(
                    f"{text!r} names {len(indices)} relations ({keys}); give the key of the one that is meant"
                )
        known = [*self.relation_keys, *self.relation_names]
        raise InputError(f"relation {text!r} is not in this graph{nearest(text, known)}")


@dataclass(frozen=True)
class GraphReader:
    """Reads for one call, through a connection that no other thread uses."""

    store: KgStore
    arrays: GraphArrays

    def resolve(self, text: str) -> tuple[int, list[int]]:
        """The node with a key, label, alias or literal text, and the others that it may mean, best connected first.

        A name may differ in case, accents and punctuation where none is written so.  Raises InputError with the
        nearest name.
        """
        stripped = text.strip()
        matches = self.store.resolve([text, stripped])
        ids = matches[text] or matches[stripped]
        if not ids and (number := self.arrays.mentions.find_whole(fold(text))) >= 0:
            whole = self.arrays.mentions.whole_candidates(number)
            ids = [entity for entity, _ in self.arrays.mentions.candidates(number)[:whole]]
        if not ids:
            ids = resolve_all(self.store, text)
        order = sorted(ids, key=lambda i: (self.arrays.is_literal(i), -self.arrays.degree(i), i))
        return order[0], order[1:]

    def nodes(self, ids: Iterable[int]) -> dict[int, NodeRecord]:
        """Nodes by id."""
        wanted = sorted(set(ids))
        literals = [i for i, literal in zip(wanted, self.arrays.dkg.is_literal(wanted), strict=True) if literal]
        rows = self.store.connection.execute(
            "SELECT id, datatype FROM (SELECT unnest($1::BIGINT[]) AS id) JOIN entities USING (id)", [literals]
        )
        datatypes = dict(rows.fetchall())
        return {
            i: NodeRecord(
                id=i,
                key=description["entity_key"],
                name=description["text"],
                kind="literal" if i in datatypes else "entity",
                unit=description["unit"],
                datatype=datatypes.get(i),
            )
            for i, description in described(self.store, wanted).items()
        }

    def facts(self, triples: Sequence[int]) -> tuple[FactRecord, ...]:
        """Triples in their order."""
        rows = self.store.connection.execute(
            "WITH wanted AS (SELECT unnest($1::BIGINT[]) AS id) "
            "SELECT t.id, head, relation, tail, rank FROM wanted JOIN triples t USING (id)",
            [list(triples)],
        ).fetchall()
        stated = {triple: columns for triple, *columns in rows}
        qualifiers = self.store.qualifiers(triples)
        pairs = [pair for sets in qualifiers.values() for statement in sets for pair in statement]
        nodes = self.nodes(i for i in [*(i for h, _, t, _ in stated.values() for i in (h, t)), *(v for _, v in pairs)])
        relation = self.arrays.relation
        return tuple(
            FactRecord(
                triple,
                nodes[head],
                relation(number),
                nodes[tail],
                RANKS[rank],
                tuple(
                    tuple(QualifierRecord(relation(by), nodes[value]) for by, value in statement)
                    for statement in qualifiers.get(triple, ())
                ),
            )
            for triple, (head, number, tail, rank) in ((triple, stated[triple]) for triple in triples)
        )

    def page(self, node: int, direction: Side, relation: int | None, limit: int, offset: int) -> FactPage:
        """Facts that a node is the head (`out`) or the tail (`in`) of."""
        if self.arrays.is_literal(node):
            return self._page_of_literal(node, direction, relation, limit, offset)
        dkg, (start, stop) = self.arrays.dkg, self.arrays.row(node)
        row = dkg.rel[start:stop]
        first = 0 if direction == "out" else dkg.relations
        low, high = (start + int(np.searchsorted(row, bound)) for bound in (first, first + dkg.relations))
        numbers, counts = np.unique(dkg.rel[low:high], return_counts=True)
        if relation is not None:
            low, high = (start + int(np.searchsorted(row, first + relation + more)) for more in (0, 1))
        edges = np.arange(min(low + offset, high), min(low + offset + limit, high))
        facts = self.facts(dkg.triple_of(edges).tolist())
        return self._paged(high - low, offset, facts, dict(zip(numbers.tolist(), counts.tolist(), strict=True)))

    def _page_of_literal(self, node: int, direction: Side, relation: int | None, limit: int, offset: int) -> FactPage:
        if direction == "out":
            return FactPage(0, offset, (), (), 0)
        run, dkg = self.store.connection.execute, self.arrays.dkg
        counts = dict(run("SELECT relation, count(*) FROM triples WHERE tail = ? GROUP BY ALL", [node]).fetchall())
        rows = run(
            "SELECT id FROM triples WHERE tail = $1 AND ($2 IS NULL OR relation = $2) ORDER BY relation, head "
            "LIMIT $3 OFFSET $4",
            [node, relation, limit, offset],
        ).fetchall()
        total = sum(counts.values()) if relation is None else counts.get(relation, 0)
        facts = self.facts([i for (i,) in rows])
        return self._paged(total, offset, facts, {number + dkg.relations: n for number, n in counts.items()})

    def _paged(self, total: int, offset: int, facts: tuple[FactRecord, ...], counts: dict[int, int]) -> FactPage:
        order = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        shown = tuple(self.arrays.count(*item) for item in order[:MOST_RELATIONS])
        return FactPage(total, offset, facts, shown, max(0, len(order) - MOST_RELATIONS))
