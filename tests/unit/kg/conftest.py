from __future__ import annotations

import gzip
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.config import KgOptions
from kgqa_core.kg.build import build
from kgqa_core.kg.store import KgStore
from kgqa_core.workspace import Workspace

GRAPH = """\
# a small graph, counted by hand
<http://x/Paris> <http://www.w3.org/2000/01/rdf-schema#label> "Paris"@en .
<http://x/Paris> <http://www.w3.org/2000/01/rdf-schema#label> "Paris"@fr .
<http://x/Paris> <http://www.w3.org/2000/01/rdf-schema#label> "Paname"@FR .
<http://x/Paris> <http://www.w3.org/2004/02/skos/core#altLabel> "City of Light"@en .
<http://x/Paris> <http://schema.org/description> "capital of France"@en .
<http://x/Paris> <http://x/population> "2102650"^^<http://www.w3.org/2001/XMLSchema#integer> .
<http://x/Paris> <http://x/founded> "-0250"^^<http://www.w3.org/2001/XMLSchema#gYear> .
<http://x/Paris> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://x/City> .

<http://x/City> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <http://x/Place> .
<http://x/France> <http://x/capital_of%20it> <http://x/Paris> . # a comment
<http://x/France> <http://x/capital_of%20it> <http://x/Paris> .
<http://x/capital_of%20it> <http://www.w3.org/2000/01/rdf-schema#label> "capital"@en .
<http://x/France> <http://x/borders> <http://x/New_Spain%21> .
<http://x/France> <http://x/motto> "Libert\\u00E9,\\t\\"égalité\\""@fr .
<http://x/France> <http://x/motto> "none" .
_:b1 <http://x/borders> <http://x/France> .
"""


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., tuple[KgStore, dict[str, Any]]]]:
    """Builds a graph from text or bytes; returns the open store and the counts."""
    stores: list[KgStore] = []
    numbers = itertools.count()

    def _make(text: str | bytes, name: str = "graph.nt", **options: Any) -> tuple[KgStore, dict[str, Any]]:
        folder = tmp_path / f"g{next(numbers)}"
        (folder / "in").mkdir(parents=True)
        (folder / "out").mkdir()
        data = text.encode() if isinstance(text, str) else text
        path = folder / "in" / name
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        counts = build(Workspace(folder / "out"), options=KgOptions(files=(str(path),), **options))
        assert sorted(p.name for p in (folder / "out").iterdir()) == ["kg.duckdb", "volatile"]
        stores.append(KgStore.open(folder / "out"))
        return stores[-1], counts

    yield _make
    for store in stores:
        store.close()
