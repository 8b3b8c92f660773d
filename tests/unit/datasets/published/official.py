"""Small hand-written files of benchmarks in their official formats."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kgqa_core.config import KgOptions, QuestionsOptions
from kgqa_core.datasets.load import load
from kgqa_core.kg.build import build
from kgqa_core.workspace import Workspace


def stored(path: Path, rows: Any) -> Path:
    """A JSON document at a path, or text as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(rows if isinstance(rows, str) else json.dumps(rows, ensure_ascii=False), encoding="utf-8")
    return path


def graph(folder: Path, triples: str) -> Path:
    """The folder of a graph of tab-separated triples."""
    source = folder / "graph.tsv"
    source.write_text(triples, encoding="utf-8")
    out = folder / "kg"
    out.mkdir()
    build(Workspace(out), options=KgOptions(files=(str(source),), format="delimited", delimiter="\t"))
    return out


def loaded(folder: Path, kg: Path, **options: Any) -> tuple[Path, dict[str, Any]]:
    """The folder of a `questions` artifact and its counts."""
    out = folder / "questions"
    out.mkdir()
    return out, load(Workspace(out), kg=kg, options=QuestionsOptions(**options), seed=7)
