"""The summary of a graph has every path that the graph has, and what things have that are like others."""

from __future__ import annotations

import numpy as np
import pytest

from kgqa_core.logic.memory import MemoryGraph
from kgqa_core.search.graph import LabelGraph
from kgqa_core.search.summary import SummaryGraph
from tests.support.graphs import random_graph, small_graph, store_of


@pytest.mark.parametrize("seed", range(5))
def test_every_path_of_a_random_graph_is_one_of_its_summary(seed):
    with store_of(random_graph(seed)) as store:
        graph = LabelGraph(store)
        summary = SummaryGraph(store, graph.memory, types=False)
        assert len(summary.memory.head) <= len(graph.memory.head)
        for entity in np.flatnonzero(~graph.memory.literal).tolist():
            node = summary.node_of[[entity]]
            ways = graph.directed_relations(np.array([entity])).tolist()
            assert ways == summary.directed_relations(node).tolist()
            for way in ways:
                reached = summary.node_of[graph.follow(np.array([entity]), way)]
                assert set(reached.tolist()) <= set(summary.follow(node, way).tolist())


def test_a_thing_may_be_all_that_things_of_its_type_are():
    with small_graph() as store:
        summary = SummaryGraph(store, MemoryGraph(store), types=True)
        fr, es = summary.memory.know(["fr", "es"]).values()
        capital = summary.memory.relation_ids["capital"]
        assert capital not in summary.directed_relations(summary.node_of[[es]])
        assert capital in summary.directed_relations(summary.like(es, facts=False))
        assert summary.like(es, facts=True).tolist() == [summary.node_of[es]] != [summary.node_of[fr]]
        types = [summary.type_keys[index] for index in summary.end_types(summary.like(es, facts=False))]
        assert types[0] == "country"


def test_nodes_of_a_summary_are_not_taken_for_entities_of_the_same_number(monkeypatch):
    with small_graph() as store:
        summary = SummaryGraph(store, MemoryGraph(store), types=True)
        for looked_up in ("names", "entity_keys"):
            monkeypatch.setattr(store, looked_up, lambda ids: pytest.fail("the store has no such ids"))
        assert not any(summary.is_nameless(index) for index in range(len(summary.type_keys)))
        assert not summary.truths
