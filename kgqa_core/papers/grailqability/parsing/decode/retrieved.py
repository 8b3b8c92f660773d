"""Which relations and types a question gets as slots, and which relations its topics have."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping

import torch
from torch import Tensor

from kgqa_core.kg.store import KgStore
from kgqa_core.papers.grailqability.parsing.item_retriever import Items

Near = Mapping[str, Mapping[str, tuple[bool, bool]]]
"""Entity → relation → whether the entity is a head of it, and whether it is a tail of it."""


def near(store: KgStore, keys: Iterable[str]) -> Near:
    """The relations that each entity has, in either direction."""
    rows = store.connection.execute(
        "WITH wanted AS (SELECT id, key FROM entities WHERE kind = 'entity' AND key IN "
        "(SELECT unnest($1::VARCHAR[]))) "
        "SELECT w.key, r.key, bool_or(t.side = 0), bool_or(t.side = 1) FROM wanted w JOIN ("
        "SELECT DISTINCT head AS id, relation, 0 AS side FROM triples WHERE head IN (SELECT id FROM wanted) "
        "UNION ALL SELECT DISTINCT tail, relation, 1 FROM triples WHERE tail IN (SELECT id FROM wanted)) t "
        "ON t.id = w.id JOIN relations r ON r.id = t.relation GROUP BY 1, 2 ORDER BY 1, 2",
        [sorted(set(keys))],
    ).fetchall()
    nearby: dict[str, dict[str, tuple[bool, bool]]] = {}
    for entity, relation, head, tail in rows:
        nearby.setdefault(entity, {})[relation] = (bool(head), bool(tail))
    return nearby


def chosen(
    scores: Tensor, items: Items, anchored: Collection[str], relations: int, classes: int
) -> tuple[list[str], list[str]]:
    """The relations and types of a question, best first.

    scores: [items] of the question.  Two thirds of the relations are the best of the graph; then come those that the
    topics have (`anchored`), then the next best.
    """
    order = torch.argsort(scores[: len(items.relations)], descending=True, stable=True).tolist()
    ranked = [items.relations[index] for index in order]
    sure = math.ceil(relations * 2 / 3)
    chosen_relations = [*ranked[:sure], *sorted(ranked[sure:], key=lambda key: key not in anchored)][:relations]
    of_classes = torch.argsort(scores[len(items.relations) :], descending=True, stable=True)[:classes].tolist()
    return chosen_relations, [items.classes[index] for index in of_classes]
