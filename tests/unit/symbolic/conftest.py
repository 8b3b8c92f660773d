"""A graph with labels, read once for all tests of the label parser and of `auto`, and the encoder, loaded once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from kgqa_core.kg.store import KgStore
from kgqa_core.logic.lookup import index
from kgqa_core.search.graph import LabelGraph
from kgqa_core.symbolic.by_labels.encoder import TextEncoder
from kgqa_core.symbolic.by_labels.scorer import LabelScorer, ScoreNetwork
from tests.support.label_graph import label_graph


@pytest.fixture(scope="session")
def label_kg(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the graph of `label_graph`."""
    return label_graph(tmp_path_factory.mktemp("label_graph"))


@pytest.fixture(scope="session")
def graph(label_kg: Path) -> Iterator[LabelGraph]:
    """That graph, open."""
    with KgStore.open(label_kg) as store:
        index(store)
        yield LabelGraph(store)


@pytest.fixture(scope="session")
def untyped_graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabelGraph]:
    """The same graph without types, open."""
    with KgStore.open(label_graph(tmp_path_factory.mktemp("untyped_graph"), typed=False)) as store:
        index(store)
        yield LabelGraph(store)


@pytest.fixture(scope="session")
def scorer() -> LabelScorer:
    """A scorer that was never trained; tests do not change it."""
    torch.manual_seed(7)
    return LabelScorer(ScoreNetwork(TextEncoder()).eval())
