"""A small graph with labels, an ambiguous name and literals, and a writer of question files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.config import KgOptions
from kgqa_core.kg.build import build
from kgqa_core.kg.store import KgStore
from kgqa_core.workspace import Workspace

TRIPLES = """\
<http://x/France> <http://x/capital> <http://x/Paris> .
<http://x/Texas> <http://x/has_city> <http://x/Paris_TX> .
<http://x/Spain> <http://x/capital> <http://x/Madrid> .
<http://x/Italy> <http://x/capital> <http://x/Rome> .
<http://x/France> <http://x/borders> <http://x/Spain> .
<http://x/Paris> <http://x/population> "2138551"^^<http://www.w3.org/2001/XMLSchema#integer> .
<http://x/Paris> <http://x/founded> "1889-03-31"^^<http://www.w3.org/2001/XMLSchema#date> .
<http://x/France> <http://x/regions> "4"^^<http://www.w3.org/2001/XMLSchema#integer> .
<http://x/Paris> <http://x/calling_code> "4" .
<http://x/Paris> <http://www.w3.org/2000/01/rdf-schema#label> "Paris"@en .
<http://x/Paris> <http://www.w3.org/2004/02/skos/core#altLabel> "City of Light"@en .
<http://x/Paris_TX> <http://www.w3.org/2000/01/rdf-schema#label> "Paris"@en .
<http://x/France> <http://www.w3.org/2000/01/rdf-schema#label> "France"@en .
<http://x/Spain> <http://www.w3.org/2000/01/rdf-schema#label> "Spain"@en .
<http://x/Madrid> <http://www.w3.org/2000/01/rdf-schema#label> "Madrid"@en .
"""


@pytest.fixture(scope="session")
def kg(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a kg artifact made from TRIPLES."""
    folder = tmp_path_factory.mktemp("kg")
    source = folder / "graph.nt"
    source.write_text(TRIPLES, encoding="utf-8")
    out = folder / "out"
    out.mkdir()
    build(Workspace(out), options=KgOptions(files=(str(source),)))
    return out


@pytest.fixture
def store(kg: Path) -> Iterator[KgStore]:
    """The graph, opened."""
    with KgStore.open(kg) as opened:
        yield opened


@pytest.fixture
def question_file(tmp_path: Path) -> Callable[..., Path]:
    """Writes rows (mappings, or lines as they are) to a question file."""

    def write(*rows: dict[str, Any] | str, name: str = "questions.jsonl") -> Path:
        path = tmp_path / name
        lines = [row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    return write
