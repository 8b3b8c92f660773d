"""Folders of a small graph with its DKG and mention dictionary, as what serves a graph opens them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import duckdb

from kgqa_core.config import DkgOptions
from kgqa_core.dkg.export import export
from kgqa_core.linking.dictionary import build as build_mentions
from kgqa_core.serving.graph_view import GraphView
from kgqa_core.serving.limits import SECONDS
from kgqa_core.workspace import Workspace
from tests.support.graphs import file_of, graph_by_hand
from tests.support.hostile import CONTROLS, MARKUP
from tests.support.question_graph import RDFS, X, build_graph, triples

HOSTILE = f'Evil\n</script><img src=x onerror=alert(1)> {{{{7*7}}}} "\\" {CONTROLS} {MARKUP}'
"""A label with line breaks, markup, escapes and control characters."""


@dataclass(frozen=True)
class GraphFolders:
    """Folders of artifacts."""

    kg: Path
    dkg: Path
    mentions: Path

    def view(self, seconds: float = SECONDS) -> GraphView:
        """The graph, opened; close it."""
        return GraphView.open(self.kg, self.dkg, self.mentions, seconds=seconds)


def _folders(kg: Path) -> GraphFolders:
    folders = GraphFolders(kg, kg.parent / "dkg", kg.parent / "mentions")
    for folder in (folders.dkg, folders.mentions):
        folder.mkdir()
    export(Workspace(folders.dkg), kg=kg, options=DkgOptions())
    build_mentions(Workspace(folders.mentions), kg=kg)
    return folders


def films(folder: Path) -> GraphFolders:
    """The graph of films and countries, and one entity whose label is HOSTILE."""
    folder.mkdir(parents=True, exist_ok=True)
    label = "".join(f"\\u{ord(sign):04X}" for sign in HOSTILE)
    more = [f'<{X}evil> <{RDFS}label> "{label}"@en .', f"<{X}evil> <{X}borders> <{X}c0> ."]
    more += [f'<{X}p99> <{RDFS}label> "Zoltan Quibbler"@en .', f"<{X}p99> <{X}place_of_birth> <{X}city0> ."]
    return _folders(build_graph(folder, [*triples(), *more]))


def offices(folder: Path) -> GraphFolders:
    """The graph by hand of `tests.support.graphs`, with qualifiers and units."""
    (folder / "kg").mkdir(parents=True)
    graph = graph_by_hand()
    counts = {"entities": len(graph.entities), "triples": len(graph.triples)}
    with duckdb.connect(str(file_of(graph, folder / "kg" / "kg.duckdb"))) as connection:
        connection.execute("UPDATE meta SET value = ? WHERE key = 'counts'", [json.dumps(counts)])
    return _folders(folder / "kg")
