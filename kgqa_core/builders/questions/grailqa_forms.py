"""Forms as GrailQA writes them (Gu et al. 2021): every set has the type of its members, `(AND class …)`.

The type is one that all members of the set have, mostly the smallest of them; where no type has all, it is one that
most have, and the others are no answers.  Numbers have the datatypes of the graph.  A relation that the graph has both
ways (a border, a marriage) is written in one direction.  GrailQA's forms answer with
entities or a count: values as answers, differences, unions, ordinals, comparisons of two and yes/no are not written.
"""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np

from kgqa_core.datasets.derived.form_values import as_stored, datatypes, mapped
from kgqa_core.errors import FormError
from kgqa_core.logic.forms import And, Arg, Class, Compare, Count, Form, Join, Step
from kgqa_core.logic.memory import Ints, MemoryGraph
from kgqa_core.search.schema_profile import GraphProfile

_WIDER = 0.2
"""Share of the sets that get another than the smallest type."""
SYMMETRIC = 0.9
_PROBED = 64
"""Members of a set whose types are looked at."""


class GrailqaForms:
    """Writes forms of one graph with types; what is drawn is drawn by `rng`."""

    def __init__(self, graph: MemoryGraph, profile: GraphProfile, rng: random.Random) -> None:
        self.graph, self.rng = graph, rng
        self.datatypes = datatypes(graph.store)
        rows = graph.store.connection.execute(
            "SELECT y.entity, k.key FROM types y JOIN entities k ON k.id = y.type UNION "
            "SELECT y.entity, k.key FROM types y JOIN supertypes s ON s.type = y.type "
            "JOIN entities k ON k.id = s.super ORDER BY ALL"
        ).fetchall()
        self._types: dict[int, list[str]] = {}
        self._sizes: dict[str, int] = {}
        self._symmetric = symmetric(graph)
        for entity, key in rows:
            if key in profile.types:
                self._types.setdefault(entity, []).append(key)
                self._sizes[key] = self._sizes.get(key, 0) + 1

    def write(self, form: Form) -> Form | None:
        """The form with types; None where GrailQA writes none like it, or nothing in it has a type with a name."""
        try:
            written = self._write(form)
        except FormError:
            return None
        return None if written is None else as_stored(self._one_way(written), self.datatypes)

    def _one_way(self, form: Form) -> Form:
        def change(node: Form) -> Form | None:
            if not isinstance(node, Join) or node.where:
                return None
            path = tuple(Step(s.relation, s.inverse and s.relation not in self._symmetric) for s in node.path)
            return Join(path, mapped(node.of, change))

        return mapped(form, change)

    def _write(self, form: Form) -> Form | None:
        match form:
            case Count(of=of):
                inner = self._write(of)
                return None if inner is None else Count(inner)
            case Arg(of=of, counted=False):
                inner = self._write(of)
                return None if inner is None else replace(form, of=inner)
            case Class():
                return form
            case Join() | And():
                parts = form.parts if isinstance(form, And) else (form,)
                if not all(map(_is_condition, parts)):
                    return None
                if any(isinstance(part, Class) for part in parts):
                    return form
                kind = self._type_of(self.graph.nodes(form))
                return None if kind is None else And((Class(kind), *parts))
        return None

    def _type_of(self, nodes: Ints) -> str | None:
        """A type of the members of a set."""
        if not len(nodes) or self.graph.literal[nodes].any():
            return None
        probed = nodes if len(nodes) <= _PROBED else np.array(sorted(self.rng.sample(nodes.tolist(), _PROBED)))
        counts: dict[str, int] = {}
        for node in probed.tolist():
            for key in self._types.get(node, ()):
                counts[key] = counts.get(key, 0) + 1
        if not counts:
            return None
        most = max(counts.values())
        keys = sorted((key for key, count in counts.items() if count == most), key=lambda key: (self._sizes[key], key))
        return self.rng.choice(keys) if self.rng.random() < _WIDER else keys[0]


def symmetric(graph: MemoryGraph) -> frozenset[str]:
    """Relations that nine tenths of their triples have the other way round too."""
    size = graph.entities
    forward = (graph.relation * size + graph.head) * size + graph.tail
    both = np.isin(forward, (graph.relation * size + graph.tail) * size + graph.head)
    counts = np.bincount(graph.relation, minlength=graph.relations)
    shares = np.bincount(graph.relation, weights=both, minlength=graph.relations) / np.maximum(1, counts)
    return frozenset(key for key, i in graph.relation_ids.items() if counts[i] and shares[i] >= SYMMETRIC)


def _is_condition(part: Form) -> bool:
    """Whether GrailQA writes a part of an intersection: a type, a join, a comparison of a value that is not a count."""
    if isinstance(part, Join):
        return not part.where
    return isinstance(part, Class) or (isinstance(part, Compare) and not part.counted)
