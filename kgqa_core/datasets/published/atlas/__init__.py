"""Atlas: the bundled graph of countries, cities, languages and currencies, and its questions (docs/atlas.md)."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from kgqa_core.datasets.files.jsonl import canonical
from kgqa_core.datasets.published.base import DatasetSpec, Loader

DATA = Path(__file__).with_name("data")
GRAPH, QUESTIONS = DATA / "atlas.nt.gz", DATA / "questions.jsonl.gz"


def rows() -> Iterator[dict[str, Any]]:
    """The rows of the packaged question file, sorted by id, which `python -m tools.atlas.questions` made."""
    with gzip.open(QUESTIONS) as lines:
        yield from map(msgspec.json.decode, lines)


ATLAS = DatasetSpec(
    "Atlas",
    "nine complexity types over countries, cities, languages and currencies",
    "bundled",
    "12,000 and more",
    "in this package (`kgqa demo`)",
    "CC BY 4.0 (GeoNames)",
    (),
    source="atlas",
    loader=Loader(lambda options: [], lambda options, seed: map(canonical, rows())),
)
