"""The graph of `question_graph` with codes, a hub and types above types, and what tests of the label parser share."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from kgqa_core.logic.parser import parse
from kgqa_core.search.candidates import KINDS, Candidate, LabelQuery, Slot
from kgqa_core.search.graph import LabelGraph
from kgqa_core.search.search import FormSearch
from kgqa_core.search.words import WordCover, WordIndex
from kgqa_core.symbolic.by_labels.examples import candidate_of
from kgqa_core.symbolic.by_labels.parser import SCORED, LabelParser, Prepared, Ranked, RelationFit
from kgqa_core.symbolic.by_labels.scorer import LIKENESS
from kgqa_core.types import Question
from tests.support.question_graph import RDFS, TYPE, XSD, X, build_graph, triples

TOWNS = 70
"""Towns of the hub, more than those whose relations are looked up one by one."""


def label_graph(folder: Path, *, typed: bool = True) -> Path:
    """Folder of a kg artifact: `question_graph`, stations with call signs, and a region of many towns.

    typed: whether the graph says of what type a thing is.
    """
    lines = triples()
    for key, name, kind in (("s0", "Radio North", "station"), ("s1", "Radio South", "station")):
        lines += [f'<{X}{key}> <{RDFS}label> "{name}"@en .', f"<{X}{key}> <{TYPE}> <{X}{kind}> ."]
    lines += [
        f'<{X}s0> <{X}call_sign> "KX12" .',
        f'<{X}s1> <{X}call_sign> "WQQ" .',
        f"<{X}s0> <{X}located_in> <{X}hub> .",
    ]
    lines.append(f'<{X}hub> <{RDFS}label> "Farland"@en .')
    for i in range(TOWNS):
        lines += [f"<{X}t{i}> <{X}located_in> <{X}hub> .", f"<{X}t{i}> <{TYPE}> <{X}town> ."]
    lines.append(f"<{X}t1> <{X}twin_town> <{X}t2> .")
    lines += [f"<{X}city> <{RDFS}subClassOf> <{X}place> .", f"<{X}town> <{RDFS}subClassOf> <{X}place> ."]
    lines += [f'<{X}{kind}> <{RDFS}label> "{kind}"@en .' for kind in ("place", "town", "station")]
    return build_graph(folder, [line for line in lines if typed or f"<{TYPE}>" not in line])


def fit_of(graph: LabelGraph, query: LabelQuery, likeness: np.ndarray | None = None) -> RelationFit:
    """How relations fit a question of which no word is near to any relation."""
    likeness = np.zeros(2 * graph.relations) if likeness is None else likeness
    nearness = np.full((2 * graph.relations, len(query.text.split())), -1.0)
    cover = WordCover(WordIndex(graph, [set() for _ in likeness]), query, nearness)
    return RelationFit(likeness, np.zeros(len(likeness)), np.zeros(len(likeness)), (), cover)


def all_candidates(
    graph: LabelGraph,
    query: LabelQuery,
    hops: int = 2,
    likeness: np.ndarray | None = None,
    kinds: Sequence[float] = (0.0,) * len(KINDS),
) -> list[Candidate]:
    """Candidates of all kinds, each as likely; all ways are as like the question unless `likeness` is given."""
    return FormSearch(graph, hops).make(query, fit_of(graph, query, likeness), kinds)


def ids_of(graph: LabelGraph, *names: str) -> list[int]:
    """Ids of entities by the last part of their keys."""
    return list(graph.memory.know([X + name for name in names]).values())


def way_of(graph: LabelGraph, name: str, back: bool = False) -> int:
    """A relation by the last part of its key, from head to tail or back."""
    return graph.memory.relation_ids[X + name] + graph.relations * back


def slot_of(graph: LabelGraph, word: str, *keys: str) -> Slot:
    """A mention that may mean the entities with these keys, the first one surest."""
    ids = graph.memory.know(keys)
    return Slot(word, tuple((ids[key], key, 1.0 / (1 + place)) for place, key in enumerate(keys)))


def question_about(graph: LabelGraph, name: str, text: str, *keys: str) -> Question:
    """A question with its topics linked."""
    ids = graph.memory.know(keys)
    return Question(name, text, topic_keys=tuple(ids), topic_entities=tuple(ids.values()))


class Preferring(LabelParser):
    """A label parser that scores by rule: candidates that `wanted` accepts 10, others -10, and `none` as given."""

    wanted: Callable[[Candidate], bool] = staticmethod(lambda one: False)
    none = 0.0
    forms: tuple[str, ...] = ()
    """Texts of forms that are candidates of every question; keys without their beginning."""

    def prepare(
        self, queries: Sequence[tuple[str, LabelQuery]], most: int = SCORED, proposed: Any = None
    ) -> list[Prepared]:
        parsed = [parse(_KEY.sub(lambda found: X + found[0], text)) for text in self.forms]
        made = [
            [(one, "labels") for form in parsed if (one := candidate_of(form, query, self.graph)) is not None]
            for _, query in queries
        ]
        given = proposed or [[] for _ in queries]
        return super().prepare(queries, most, [[*own, *more] for own, more in zip(given, made, strict=True)])

    def rank(self, prepared: Sequence[Prepared]) -> list[Ranked]:
        found = []
        for one in prepared:
            scores = np.array([10.0 if self.wanted(made) else -10.0 for made in one.candidates])
            order = np.argsort(-scores, kind="stable")
            likeness = np.zeros((len(scores), LIKENESS), dtype=np.float32)
            left = {place: self.unread(one, one.candidates[n]) for place, n in enumerate(order[:1])}
            found.append(Ranked(one, order.tolist(), scores[order].tolist(), self.none, likeness, left))
        return found


_KEY = re.compile(r"(?<=[ (])(?!(?:gt|lt|ge|le) )[a-z]\w*(?=[ )])")


def same_weights(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    """Whether two sets of weights are equal bit for bit."""
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


__all__ = ["RDFS", "TYPE", "XSD", "Preferring", "X", "all_candidates", "label_graph", "slot_of"]
