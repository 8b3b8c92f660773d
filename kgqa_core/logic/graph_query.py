"""GrailQA's `graph_query` (Gu et al. 2021, section 3): nodes and edges with one question node, as a logical form.

Nodes are entities, literals or classes; a class away from the question node is a variable, and its type is written in
the form only where it has no other condition.  A literal with the function argmax or argmin is the value that is
ranked, along the path from the question node to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from kgqa_core.errors import FormError
from kgqa_core.logic.forms import And, Arg, Class, Compare, Count, Entity, Form, Join, Literal, Step, Steps
from kgqa_core.logic.parser import parse

_OPS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


def from_graph_query(query: Mapping[str, Any]) -> Form:
    """The form of a graph query.

    Raises FormError when it is no tree, has no question node, a function that is not known, or a field is missing.
    """
    try:
        return _GraphQueryReader(query).read()
    except (KeyError, TypeError, AttributeError) as fault:
        raise FormError(f"this is no graph query ({type(fault).__name__}: {fault})") from None


class _GraphQueryReader:
    def __init__(self, query: Mapping[str, Any]) -> None:
        self.nodes: dict[int, Mapping[str, Any]] = {node["nid"]: node for node in query["nodes"]}
        self.neighbours: dict[int, list[tuple[Step, int]]] = defaultdict(list)
        for edge in query["edges"]:
            start, end, relation = edge["start"], edge["end"], edge["relation"]
            self.neighbours[start].append((Step(relation), end))
            self.neighbours[end].append((Step(relation, inverse=True), start))
        if len(query["edges"]) != len(self.nodes) - 1:
            raise FormError(
                f"this graph query is no tree: {len(self.nodes)} nodes, {len(query['edges'])} edges; "
                "a form is a tree, so that a node that two paths share cannot be written"
            )
        self.ranked: tuple[str, Steps] | None = None

    def read(self) -> Form:
        questions = [nid for nid, node in self.nodes.items() if node.get("question_node")]
        if len(questions) != 1:
            raise FormError(f"a graph query has one question node, and this has {len(questions)}")
        root = questions[0]
        form = self._node(root, None, ())
        if form is None:
            raise FormError("the question node is the value that is ranked; the query has no answer node")
        if self.ranked is not None:
            best, path = self.ranked
            form = Arg(best, form, path)
        function = self.nodes[root].get("function", "none")
        if function == "count":
            return Count(form)
        if function != "none":
            raise FormError(f"function {function!r} of the question node is not known; count is")
        return form

    def _node(self, nid: int, came_from: int | None, way: Steps) -> Form | None:
        """The form of a node; None for a value that is ranked, which `ranked` then holds."""
        node = self.nodes[nid]
        kind, function = node["node_type"], node.get("function", "none")
        if kind == "literal" and function in ("argmax", "argmin"):
            if self.ranked is not None:
                raise FormError("two values are ranked in this graph query; a form ranks one")
            self.ranked = function[3:], way
            return None
        parts: list[Form] = []
        for step, other in self.neighbours[nid]:
            if other != came_from:
                part = self._edge(nid, step, other, way)
                if part is not None:
                    parts.append(part)
        if kind == "class":
            if came_from is None or not parts:
                parts.insert(0, Class(node["id"]))
        elif kind == "entity":
            parts.insert(0, Entity(node["id"]))
        elif kind == "literal":
            parts.insert(0, _literal(node["id"]))
        else:
            raise FormError(f"node type {kind!r} is not known; class, entity and literal are")
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _edge(self, nid: int, step: Step, other: int, way: Steps) -> Form | None:
        function = self.nodes[other].get("function", "none")
        if function in _OPS:
            return Compare(_OPS[function], (step,), _literal(self.nodes[other]["id"]))
        of = self._node(other, nid, (*way, step))
        if of is None:
            return None
        ranked_only = self.ranked is not None and self.ranked[1][: len(way) + 1] == (*way, step)
        if ranked_only and isinstance(of, Class) and len(self.neighbours[other]) == 2:
            return None
        return Join((step,), of)


def _literal(text: str) -> Literal:
    literal = parse(text)
    if not isinstance(literal, Literal):
        raise FormError(f"{text!r} is no literal; a value and its datatype are written 5^^xsd:integer")
    return literal
