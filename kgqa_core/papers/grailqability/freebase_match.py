"""When two forms of Freebase are the same query graph, as the published scripts of GrailQA and GrailQAbility decide it.

A form is drawn as a graph whose last node is the question's: an entity or a literal is a node, a relation is an edge
from its domain to its range with the inverse edge of a reverse property beside it.  Where two sets meet, a class that
the form names takes the place of the class that the ontology infers.  So `(AND c (JOIN r e))` and `(JOIN r e)` are the
same graph where `c` is the domain of `r`, and so are a relation and its reverse property read from the other end.
`logic.normalise.isomorphic` does not know the ontology and takes such pairs for different forms.

The scripts forget a node's function after its first comparison; that is not repeated here.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from kgqa_core.datasets.files.jsonl import read_lines
from kgqa_core.errors import InputError
from kgqa_core.papers.grailqability.builder.score import Evaluator, same_form
from kgqa_core.papers.grailqability.metrics import Rules

ROLES, TYPES, REVERSED = "fb_roles", "fb_types", "reverse_properties"
"""Files of the ontology that GrailQA's repository publishes."""

COMPARISONS = frozenset({"le", "ge", "lt", "gt"})
MAX_SYMBOLS = 200
"""Symbols and brackets of a form that is compared; a longer one equals nothing."""

_SYMBOL = re.compile(r"[()]|[^\s()]+")
Nested = str | list["Nested"]


@dataclass(frozen=True)
class Ontology:
    """roles: relation → domain and range.  above: class → its superclasses.  classes: all of them.  reverse: relation →
    the relation that says the same from the other end."""

    roles: Mapping[str, tuple[str, str]]
    above: Mapping[str, frozenset[str]]
    classes: frozenset[str]
    reverse: Mapping[str, str]

    @classmethod
    def read(cls, folder: Path) -> Ontology:
        """Of the files `fb_roles`, `fb_types` and `reverse_properties` of a folder.  Raises InputError."""
        roles = {row[1]: (row[0], row[2]) for row in _rows(folder / ROLES, 3)}
        above: dict[str, set[str]] = defaultdict(set)
        for row in _rows(folder / TYPES, 3):
            above[row[0]].add(row[2])
        reverse = {row[0]: row[1] for row in _rows(folder / REVERSED, 2)}
        classes = frozenset(above).union(*above.values())
        return cls(roles, {key: frozenset(value) for key, value in above.items()}, classes, reverse)


def _rows(path: Path, fields: int) -> list[list[str]]:
    if not path.is_file():
        raise InputError(
            f"{path} is not there; the folder of the ontology holds {ROLES}, {TYPES} and {REVERSED}, as GrailQA's "
            "repository has them"
        )
    rows = [line.decode("utf-8", errors="replace").split() for line in read_lines(path)]
    rows = [row for row in rows if row]
    for number, row in enumerate(rows, start=1):
        if len(row) < fields:
            raise InputError(f"{path} row {number} has {len(row)} fields, fewer than {fields}: {' '.join(row)[:80]!r}")
    return rows


@dataclass(frozen=True, slots=True)
class _QueryNode:
    key: str
    kind: str
    function: str = ""
    closure: tuple[str, ...] = ()

    def over(self, other: _QueryNode) -> _QueryNode:
        """This node in the place of another one, whose marks stay where this one has none."""
        return replace(self, function=self.function or other.function, closure=self.closure or other.closure)


_QueryEdge = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class _QueryGraph:
    """nodes: that of the question last.  edges: indices of both ends, and the relation."""

    nodes: tuple[_QueryNode, ...]
    edges: tuple[_QueryEdge, ...] = ()

    def marked(self, at: int, **marks: object) -> _QueryGraph:
        nodes = list(self.nodes)
        nodes[at] = replace(nodes[at], **marks)  # type: ignore[arg-type]
        return replace(self, nodes=tuple(nodes))


class FreebaseMatcher:
    """Compares forms over an ontology."""

    def __init__(self, ontology: Ontology) -> None:
        self.ontology = ontology
        self._graph_of = lru_cache(maxsize=65_536)(self._read)

    def same(self, form: str, other: str) -> bool:
        """Whether two forms, as text, are the same graph; False for what cannot be read."""
        first, second = self._graph_of(form), self._graph_of(other)
        return first is not None and second is not None and _isomorphic(first, second)

    def _read(self, text: str) -> _QueryGraph | None:
        try:
            return self._graph(_nested(text))
        except (ValueError, IndexError):
            return None

    def _graph(self, form: Nested) -> _QueryGraph:
        if isinstance(form, str):
            return self._symbol(form)
        head = form[0]
        if head == "R":
            graph = self._graph(form[1])
            last = len(graph.nodes) - 1
            return _QueryGraph(graph.nodes[::-1], tuple((last - a, last - b, name) for a, b, name in graph.edges))
        if head == "JOIN" or head in COMPARISONS:
            joined = self._joined(self._graph(form[1]), self._graph(form[2]))
            return joined if head == "JOIN" else joined.marked(0, function=head)
        if head == "AND":
            return _met(self._graph(form[1]), self._graph(form[2]))
        if head == "COUNT":
            return self._graph(form[1]).marked(-1, function="count")
        if head in ("ARGMAX", "ARGMIN"):
            by = self._graph(form[2]).marked(0, key="", kind="literal", function=str(head).lower())
            return _met(self._graph(form[1]), by)
        if head == "TC":
            return self._graph(form[1]).marked(-1, closure=(str(form[2]), str(form[3])))
        raise ValueError(f"{head!r} is no operator of GrailQA's forms")

    def _symbol(self, key: str) -> _QueryGraph:
        if "^^" in key:
            return _QueryGraph((_QueryNode(key, "literal"),))
        if key in self.ontology.classes:
            return _QueryGraph((_QueryNode(key, "class"),))
        if key not in self.ontology.roles:
            return _QueryGraph((_QueryNode(key, "entity"),))
        domain, values = self.ontology.roles[key]
        edges: list[_QueryEdge] = [(1, 0, key)]
        if key in self.ontology.reverse:
            edges.append((0, 1, self.ontology.reverse[key]))
        return _QueryGraph((_QueryNode(values, "class"), _QueryNode(domain, "class")), tuple(edges))

    def _joined(self, path: _QueryGraph, of: _QueryGraph) -> _QueryGraph:
        """A path whose first node is the question's node of a set."""
        start, end = path.nodes[0], of.nodes[-1]
        wider = end.key in self.ontology.above.get(start.key, ())
        if start.kind == end.kind == "class" and wider:
            end = replace(end, key=start.key)
        shift = len(of.nodes) - 1
        edges = tuple((a + shift, b + shift, name) for a, b, name in path.edges)
        return _QueryGraph((*of.nodes[:-1], end.over(start), *path.nodes[1:]), of.edges + edges)


def evaluator(ontology: Path | str | None, rules: Rules = "script") -> Evaluator:
    """What predictions are compared by: the ontology in a folder, or without one the shape of forms alone.

    Raises InputError where the folder lacks a file.
    """
    if ontology is None:
        return Evaluator(same_form, rules)
    return Evaluator(FreebaseMatcher(Ontology.read(Path(ontology).expanduser())).same, rules)


def _met(first: _QueryGraph, second: _QueryGraph) -> _QueryGraph:
    """Two sets with one question node; its class is that of the first."""
    own, other = first.nodes[-1], second.nodes[-1]
    if own.kind == other.kind == "class":
        other = replace(other, key=own.key)
    shift, last = len(second.nodes) - 1, len(first.nodes) + len(second.nodes) - 2
    edges = [(last if a == shift else a, last if b == shift else b, name) for a, b, name in second.edges]
    edges += [(a + shift, b + shift, name) for a, b, name in first.edges]
    return _QueryGraph((*second.nodes[:-1], *first.nodes[:-1], other.over(own)), tuple(edges))


def _nested(text: str) -> Nested:
    """The first expression of a text.  Raises ValueError."""
    symbols = _SYMBOL.findall(text)
    if len(symbols) > MAX_SYMBOLS:
        raise ValueError(f"the form has {len(symbols)} symbols, more than {MAX_SYMBOLS}")
    open_lists: list[list[Nested]] = [[]]
    for symbol in symbols:
        if symbol == "(":
            open_lists.append([])
        elif symbol == ")":
            closed = open_lists.pop()
            if not open_lists or not closed:
                raise ValueError("a bracket closes nothing")
            open_lists[-1].append(closed)
        else:
            open_lists[-1].append(symbol)
        if len(open_lists) == 1 and open_lists[0]:
            return open_lists[0][0]
    raise ValueError("a bracket is not closed")


def _isomorphic(first: _QueryGraph, second: _QueryGraph) -> bool:
    """Whether the nodes of one graph can be paired with those of another, marks and edges being equal."""
    if Counter(first.nodes) != Counter(second.nodes) or len(first.edges) != len(second.edges):
        return False
    edges, others = _between(first), _between(second)
    size = len(first.nodes)
    pairs: list[int] = []

    def fits(node: int, other: int) -> bool:
        return first.nodes[node] == second.nodes[other] and all(
            edges.get((node, before)) == others.get((other, pair))
            and edges.get((before, node)) == others.get((pair, other))
            for before, pair in [*enumerate(pairs), (node, other)]
        )

    def extend() -> bool:
        node = len(pairs)
        if node == size:
            return True
        for other in range(size):
            if other not in pairs and fits(node, other):
                pairs.append(other)
                if extend():
                    return True
                pairs.pop()
        return False

    return extend()


def _between(graph: _QueryGraph) -> dict[tuple[int, int], tuple[str, ...]]:
    relations: dict[tuple[int, int], tuple[str, ...]] = {}
    for start, end, name in graph.edges:
        relations[start, end] = tuple(sorted((*relations.get((start, end), ()), name)))
    return relations
