"""Which question uses which relation, entity and fact, and how much each of them matters while questions are lost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from kgqa_core.builders.answerability.arrays import NONE, Graph, Ints
from kgqa_core.builders.answerability.ideal import Ideal

Weights = NDArray[np.float64]


class Index:
    """Element → the questions that use it, ascending, and question → its elements."""

    def __init__(self, elements: Ints, questions: Ints, size: int) -> None:
        order = np.lexsort((questions, elements))
        self._elements, self._questions = elements[order], questions[order]
        self.size = size
        counts = np.bincount(self._questions)
        self._shares = 1.0 / counts[self._questions] if len(counts) else np.empty(0)

    @classmethod
    def of(cls, uses: Iterable[Iterable[int]], size: int) -> Index:
        """From the elements of each question, in the order of the questions."""
        lists = [np.unique(np.fromiter(used, dtype=np.int64)) for used in uses]
        places = np.repeat(np.arange(len(lists)), [len(used) for used in lists])
        return cls(np.concatenate(lists) if lists else NONE, places.astype(np.int64), size)

    def questions(self, elements: Sequence[int] | Ints) -> Ints:
        """Questions that use any of the elements, ascending and once."""
        wanted = np.asarray(elements, dtype=np.int64)
        if len(wanted) > len(self._elements) // 8:
            return np.unique(self._questions[np.isin(self._elements, wanted)])
        starts = np.searchsorted(self._elements, wanted, "left")
        stops = np.searchsorted(self._elements, wanted, "right")
        runs = [self._questions[start:stop] for start, stop in zip(starts, stops, strict=True) if start < stop]
        return np.unique(np.concatenate(runs)) if runs else NONE

    def spread(self, answerable: NDArray[np.bool_], *, even: bool) -> Weights:
        """[size]: how many answerable questions use each element; even: each question shares 1 out among its own."""
        left = answerable[self._questions]
        weights = np.where(left, self._shares, 0.0) if even else left.astype(np.float64)
        return np.bincount(self._elements, weights=weights, minlength=self.size).astype(np.float64)


class Uses:
    """The indexes of a question set over a graph.

    relations, names: what forms name; names are entities and classes.  facts: triples on the ways to answers, entities:
    those at their ends, literals apart.
    """

    def __init__(self, ideals: Sequence[Ideal], graph: Graph, literal: NDArray[np.bool_]) -> None:
        self.ideals = ideals
        self.relations = Index.of((ideal.relations for ideal in ideals), graph.relations)
        self.names = Index.of((ideal.names for ideal in ideals), graph.entities)
        self.facts = Index.of((ideal.support for ideal in ideals), len(graph.head))
        self.entities = Index.of((_ends(ideal, graph, literal) for ideal in ideals), graph.entities)


def _ends(ideal: Ideal, graph: Graph, literal: NDArray[np.bool_]) -> Ints:
    """Entities on the ways to the answers that the form does not name."""
    ends = np.unique(np.concatenate((graph.head[ideal.support], graph.tail[ideal.support])))
    return np.setdiff1d(ends[~literal[ends]], np.asarray(ideal.names, dtype=np.int64))
