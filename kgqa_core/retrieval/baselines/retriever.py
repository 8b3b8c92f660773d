"""The baselines: random facts, facts of the relation most frequent in training, and facts of the annotated paths.

Random Facts (Sen et al. 2023) draws uniformly from the triples one hop from the topic entities.  The most frequent
relation does not read the question either; where the two score high a question set is easy.  The oracle grounds the
gold relation paths: an upper bound for what a retriever can hand to a reader.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.retrieval.api import Retriever, ranked
from kgqa_core.types import Fact, Question, Retrieved

if TYPE_CHECKING:
    from kgqa_core.dkg.csr import Dkg


def _each(
    questions: Sequence[Question], retrieve: Callable[[Question], Retrieved], monitor: Monitor
) -> list[Retrieved]:
    """The results of a retriever that treats one question at a time."""
    retrieved = []
    for number, question in enumerate(questions, start=1):
        retrieved.append(retrieve(question))
        if number % 1000 == 1 or number == len(questions):
            monitor.progress(number, len(questions), "questions")
    return retrieved


class RandomFacts(Retriever):
    """Draws k facts per question; the draw depends on seed and question id, not on the other questions."""

    name = "random"

    def __init__(self, dkg: Dkg, k: int, seed: int) -> None:
        self.dkg, self.k, self.seed = dkg, k, seed

    def retrieve(self, questions: Sequence[Question], monitor: Monitor = QUIET) -> list[Retrieved]:
        """k facts per question, each with score 1, or all where there are fewer; entities are their other ends."""
        return _each(questions, self._draw, monitor)

    def _draw(self, question: Question) -> Retrieved:
        topics = np.array(sorted(set(question.topic_entities)), dtype=np.int64)
        starts, stops = self.dkg.row_bounds(topics)
        degrees = stops - starts
        total = int(degrees.sum())
        if not total:
            return Retrieved(question.id)
        digest = hashlib.sha256(f"{self.seed}\n{question.id}".encode()).digest()
        draw = np.random.default_rng(int.from_bytes(digest[:8], "little"))
        size = min(total, 4 * self.k + 8)
        edges = self._distinct(draw.choice(total, size=size, replace=False), topics, starts, degrees)
        if len(edges) < self.k and size < total:
            edges = self._distinct(draw.permutation(total), topics, starts, degrees)
        edges = edges[: self.k]
        triples, directions = self.dkg.triple_of(edges).tolist(), self.dkg.direction_of(edges).tolist()
        facts = [Fact(0, 1.0, 1, triple, direction) for triple, direction in zip(triples, directions, strict=True)]
        ends = sorted({int(entity) for entity in self.dkg.tail[edges]})
        return Retrieved(question.id, ranked(facts), tuple((entity, 1.0) for entity in ends))

    def _distinct(self, indices: np.ndarray, topics: np.ndarray, starts: np.ndarray, degrees: np.ndarray) -> np.ndarray:
        """Edges at some indices of the topics' joined rows; a triple between two topics counts from its head only."""
        owner = np.searchsorted(np.cumsum(degrees), indices, side="right")
        edges = starts[owner] + indices - (np.cumsum(degrees) - degrees)[owner]
        doubled = np.isin(self.dkg.tail[edges], topics) & (self.dkg.direction_of(edges) < 0)
        return np.asarray(edges[~doubled], dtype=np.int64)


FRONTIER = 50_000
"""Edges of a gold path that are looked at per hop; beyond that the rest is counted as truncated."""


class Oracle(Retriever):
    """Grounds the gold relation paths of each question, k triples per hop and path.

    Triples that lead to a gold answer come first, so that the cut at k leaves an answer where the path reaches one;
    then those that do not lead back to the topic; then in order of triple id.
    """

    name = "oracle"

    def __init__(self, dkg: Dkg, k: int) -> None:
        self.dkg, self.k = dkg, k

    def retrieve(self, questions: Sequence[Question], monitor: Monitor = QUIET) -> list[Retrieved]:
        """Facts of the gold paths, score 1; empty where no path is annotated or its relation is not in the graph."""
        return _each(questions, self.ground, monitor)

    def ground(self, question: Question) -> Retrieved:
        """Facts and ends of the relation paths of one question."""
        paired = len(question.relation_paths) == len(question.topic_entities) > 1
        facts: list[Fact] = []
        ends: dict[int, float] = {}
        cut = 0
        for number, path in enumerate(question.relation_paths):
            relations = [self.dkg.relation_ids.get(key) for key in path]
            if not path or None in relations:
                continue
            topics = question.topic_entities[number : number + 1] if paired else question.topic_entities
            hops, truncated = self._hops(topics, [relation for relation in relations if relation is not None])
            cut += truncated
            facts += self._choose(hops, question, number)
            for entity in self.dkg.tail[hops[-1]].tolist():
                ends[entity] = 1.0
        return Retrieved(question.id, ranked(facts), tuple(sorted(ends.items())), cut)

    def _hops(self, topics: Sequence[int], relations: Sequence[int]) -> tuple[list[np.ndarray], int]:
        """Edges of each hop along the relations, ascending, and how many were left out."""
        frontier = np.array(sorted(set(topics)), dtype=np.int64)
        hops: list[np.ndarray] = []
        cut = 0
        for relation in relations:
            runs = []
            for entity in frontier.tolist():
                start, stop = (int(bound) for bound in self.dkg.row_bounds(entity))
                first, last = np.searchsorted(self.dkg.rel[start:stop], (relation, relation + 1))
                runs.append(np.arange(start + first, start + last, dtype=np.int64))
            edges = np.concatenate(runs) if runs else np.empty(0, dtype=np.int64)
            cut += max(0, len(edges) - FRONTIER)
            hops.append(edges[:FRONTIER])
            frontier = np.unique(self.dkg.tail[hops[-1]]).astype(np.int64)
        return hops, cut

    def _choose(self, hops: list[np.ndarray], question: Question, path: int) -> list[Fact]:
        """The k best edges of each hop, chosen backwards so that those of one hop lead to those of the next."""
        gold = set(question.answers)
        topics = set(question.topic_entities)
        facts: list[Fact] = []
        # Backwards: which edges lead to a gold answer.
        useful: list[np.ndarray] = []
        goal = np.array(sorted(gold), dtype=np.int64)
        for edges in reversed(hops):
            leads = np.isin(self.dkg.tail[edges], goal)
            useful.append(leads)
            goal = np.unique(self.dkg.source_of(edges[leads]))
        # Forwards: keep k, those that go on from the ones before first.
        reach: set[int] = topics
        for hop, (edges, leads) in enumerate(zip(hops, reversed(useful), strict=True), start=1):
            sources, targets = self.dkg.source_of(edges).tolist(), self.dkg.tail[edges].tolist()
            triples, directions = self.dkg.triple_of(edges).tolist(), self.dkg.direction_of(edges).tolist()
            chosen = sorted(
                range(len(edges)),
                key=lambda index: (
                    not (leads[index] and sources[index] in reach),
                    sources[index] not in reach,
                    targets[index] in topics,
                    triples[index],
                ),
            )[: self.k]
            facts += [Fact(0, 1.0, hop, triples[index], directions[index], path) for index in chosen]
            reach = {targets[index] for index in chosen}
        return facts


class FrequentRelation(Retriever):
    """Follows the relation path most frequent in training that leads anywhere from the topic; the text is not read.

    Where a question states its number of hops, and training has paths of as many, only these count.  The path of a
    training question is its annotated one; without, each relation that leads from a topic to an answer.
    training: the questions that are counted; those of other splits are left out.
    """

    name = "frequent"

    def __init__(self, dkg: Dkg, k: int, training: Iterable[Question]) -> None:
        self.dkg, self.oracle = dkg, Oracle(dkg, k)
        counts: Counter[tuple[str, ...]] = Counter()
        for question in training:
            if question.split == "train":
                counts.update(set(question.relation_paths or self._direct(question)))
        known = (path for path in counts if path and all(key in dkg.relation_ids for key in path))
        self.paths = sorted(known, key=lambda path: (-counts[path], path))
        """Relation paths of the training questions that the graph has, the most frequent first, ties by key."""

    def retrieve(self, questions: Sequence[Question], monitor: Monitor = QUIET) -> list[Retrieved]:
        """Facts of the path, score 1, k a hop; empty where no path of training leads anywhere from the topic."""
        return _each(questions, self._follow, monitor)

    def _follow(self, question: Question) -> Retrieved:
        alike = [path for path in self.paths if len(path) == question.hops]
        for path in alike or self.paths:
            retrieved = self.oracle.ground(replace(question, answers=(), relation_paths=(path,)))
            if retrieved.entities:
                return retrieved
        return Retrieved(question.id)

    def _direct(self, question: Question) -> set[tuple[str, ...]]:
        """Relations, with their direction, of the edges from a topic to an answer."""
        paths: set[tuple[str, ...]] = set()
        gold = np.array(sorted(question.answers), dtype=np.int64)
        for topic in set(question.topic_entities):
            start, stop = (int(bound) for bound in self.dkg.row_bounds(topic))
            there = np.isin(self.dkg.tail[start:stop], gold)
            paths |= {(self.dkg.relation_keys[relation],) for relation in self.dkg.rel[start:stop][there].tolist()}
        return paths
