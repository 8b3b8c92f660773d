"""The graph of the tests of the label parser, for those of the search."""

from __future__ import annotations

from tests.unit.symbolic.conftest import graph, label_kg, scorer, untyped_graph

__all__ = ["graph", "label_kg", "scorer", "untyped_graph"]
