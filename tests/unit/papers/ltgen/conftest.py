"""A small graph, a draw from it, and its subjects, made once."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgqa_core.config import WritingOptions
from kgqa_core.kg.store import KgStore
from kgqa_core.papers.ltgen.records import Subject, read_sample
from tests.support.ltgen import make_graph, make_sample


@pytest.fixture(scope="session")
def ltgen_kg(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The graph's folder."""
    return make_graph(tmp_path_factory.mktemp("ltgen"))


@pytest.fixture(scope="session")
def ltgen_sample(ltgen_kg: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A draw of at most five entities a level."""
    return make_sample(tmp_path_factory.mktemp("ltgen"), ltgen_kg, thresholds=(1, 9, 12, 15, 100), levels="absolute")


@pytest.fixture(scope="session")
def subjects(ltgen_kg: Path, ltgen_sample: Path) -> dict[str, Subject]:
    """The drawn entities by key."""
    with KgStore.open(ltgen_kg) as store:
        return {subject.end.key: subject for subject in read_sample(ltgen_sample, store, WritingOptions(), 7)}
