"""The Atlas graph in memory: a small reader for the one file that build_graph.py writes, and path following."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kgqa_core.datasets.published.atlas import GRAPH
from kgqa_core.errors import KgInputError
from kgqa_core.types import INVERSE
from tools.atlas import vocabulary as v

_STATEMENT = re.compile(r'<([^>]*)> <([^>]*)> (?:<([^>]*)>|"((?:[^"\\]|\\.)*)"\S*) \.')


@dataclass
class AtlasGraph:
    """Atlas as adjacency lists.  Tails are entity keys or, for literals, lexical forms; every list is sorted.

    edges[relation key, inverse ones with `<inv>-`][entity key]: the tails.
    labels: entity or relation key to its English label.  triples: statements without labels and aliases.
    """

    edges: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    triples: int = 0

    @classmethod
    def read(cls, path: Path | None = None) -> AtlasGraph:
        """Reads the bundled graph, or another file that build_graph.py wrote.  Raises KgInputError."""
        graph = cls()
        for head, relation, entity, literal in _statements(path or GRAPH):
            if relation == v.RDFS_LABEL:
                graph.labels[head] = str(literal)
            elif relation != v.ALT_LABEL:
                graph._add(head, relation, entity, literal)
        for tails in (t for by_head in graph.edges.values() for t in by_head.values()):
            tails.sort()
        return graph

    def _add(self, head: str, relation: str, entity: str | None, literal: str | None) -> None:
        self.triples += 1
        forward = self.edges.setdefault(relation, {})
        forward.setdefault(head, []).append(entity if entity is not None else str(literal))
        if entity is not None:
            self.edges.setdefault(INVERSE + relation, {}).setdefault(entity, []).append(head)

    def follow(self, starts: Iterable[str], path: Iterable[str]) -> list[str]:
        """What a relation path reaches from the starts: sorted keys and lexical forms, without repetition."""
        reached = sorted(set(starts))
        for relation in path:
            step = self.edges.get(relation, {})
            reached = sorted({tail for key in reached for tail in step.get(key, ())})
        return reached

    def tails(self, key: str, name: str) -> list[str]:
        """Tails of one entity along a relation given by its local name, `<inv>-` allowed."""
        return self.edges.get(v.relation(name), {}).get(key, [])

    def number(self, key: str, name: str) -> float | None:
        """The one number that an entity has along a relation, or None."""
        tails = self.tails(key, name)
        return float(tails[0]) if len(tails) == 1 else None

    def of_kind(self, kind: str) -> list[str]:
        """Sorted keys of all entities of a kind: `country`, `city`, `subdivision`, `language`, …"""
        prefix = f"{v.NAMESPACE}{kind}:"
        return sorted(key for key in self.labels if key.startswith(prefix))


def _statements(path: Path) -> Iterator[tuple[str, str, str | None, str | None]]:
    try:
        with gzip.open(path, "rt", encoding="utf-8") as stream:
            for number, line in enumerate(stream, start=1):
                statement = _STATEMENT.match(line)
                if statement is None:
                    raise KgInputError(f"{path.name} line {number} is not a statement of the Atlas file: {line[:80]!r}")
                head, relation, entity, literal = statement.groups()
                if literal is not None and "\\" in literal:
                    literal = re.sub(r"\\(.)", r"\1", literal)
                yield head, relation, entity, literal
    except (OSError, EOFError, UnicodeDecodeError) as fault:
        raise KgInputError(f"{path.name} cannot be read ({fault}); build it again with build_graph.py") from None
