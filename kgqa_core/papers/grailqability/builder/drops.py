"""Drops elements of the ideal graph until enough questions have no answer (Patidar et al. 2023).

Types first, then relations, entities and facts, each until its quota of questions is unanswerable.  An element is drawn
with a weight of its importance over its popularity.  Importance is the number of still answerable questions that it
would touch, counted anew after every drop.  A question with many ways to its answers uses many facts and needs none of
them, so it shares its one count out among its facts, and likewise among the entities that it does not name; otherwise
a few such questions would decide the draw, and the graph be emptied for nothing.  Popularity is, of a relation, its
facts; of a type, the facts of its entities and of those below it; entities and facts are equal.

A drop that would leave more questions without answer than its quota has room for is not made.  What a kind leaves of
its quota, because a graph has no types or its relations are too large, goes to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.papers.grailqability.builder.graph_with_drops import NONE, Ints
from kgqa_core.papers.grailqability.builder.ideal import Ideal
from kgqa_core.papers.grailqability.builder.records import ENTITY, FACT, KINDS, RELATION, TYPE
from kgqa_core.papers.grailqability.builder.trace import Tracer
from kgqa_core.papers.grailqability.builder.uses import ElementIndexes, TypeInfo, Weights


@dataclass(frozen=True, slots=True)
class DropStep:
    """One drop, by ids.  element: of the type, relation, entity or triple.  lost: questions that it made unanswerable.

    relations, entities: what it hides, the element among them; triples: what it took, ascending.
    """

    number: int
    kind: str
    element: int
    popularity: float
    affected: float
    weight: float
    relations: tuple[int, ...]
    entities: tuple[int, ...]
    triples: Ints
    lost: tuple[int, ...]


@dataclass(slots=True)
class Dropped:
    """What was dropped.  step_of[i]: number of the step that made question i unanswerable, or -1.

    quotas: kind → questions that it was to make unanswerable, with what earlier kinds left.  removed_at: [triples] the
    step that removed each, or -1; relations, entities: id → step that hid it.
    """

    steps: list[DropStep] = field(default_factory=list)
    step_of: Ints = field(default_factory=lambda: NONE)
    quotas: dict[str, int] = field(default_factory=dict)
    removed_at: Ints = field(default_factory=lambda: NONE)
    relations: dict[int, int] = field(default_factory=dict)
    entities: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Effect:
    relations: tuple[int, ...]
    entities: tuple[int, ...]
    triples: Ints
    lost: Ints
    witnesses: dict[int, Ints]


class Dropper:
    """The state of a graph from which things are dropped; `graph` is changed in place.

    largest: largest share of its kind's quota that one type or relation may take.
    """

    def __init__(
        self, ideals: Sequence[Ideal], uses: ElementIndexes, tracer: Tracer, types: Sequence[TypeInfo], *,
        largest: float, seed: int,
    ) -> None:  # fmt: skip
        self.ideals, self.uses, self.tracer, self.graph = ideals, uses, tracer, tracer.graph
        self.types = {info.id: info for info in types}
        self._classes = {each for ideal in ideals for each in ideal.classes}
        self.largest = largest
        self.answerable: NDArray[np.bool_] = np.ones(len(ideals), dtype=np.bool_)
        self.dropped = Dropped(
            step_of=np.full(len(ideals), -1, dtype=np.int64),
            removed_at=np.full(len(self.graph.head), -1, dtype=np.int64),
        )
        self._witness: dict[int, Ints] = {}
        self._random = np.random.default_rng(seed)

    def drop(self, share: float, parts: Sequence[float], monitor: Monitor = QUIET) -> Dropped:
        """Drops until `share` of the questions is unanswerable; parts: of types, relations, entities and facts."""
        total, goal = round(share * len(self.ideals)), 0.0
        for kind, part in zip(KINDS, parts, strict=True):
            goal += share * len(self.ideals) * part / sum(parts)
            quota = max(0, min(total, round(goal)) - self._lost())
            self.dropped.quotas[kind] = quota
            if part > 0:
                self._fill(kind, quota, monitor, total)
        return self.dropped

    def _fill(self, kind: str, quota: int, monitor: Monitor, total: int) -> None:
        """Draws elements of a kind until the quota is full or nothing fits."""
        end = self._lost() + quota
        popularity, barred = self._popularity(kind), np.zeros(0, dtype=np.bool_)
        most = self.largest * quota if kind in (TYPE, RELATION) else float(quota)
        while self._lost() < end:
            affected = self._importance(kind)
            barred = barred if len(barred) else np.zeros(len(affected), dtype=np.bool_)
            weights = np.where(barred, 0.0, affected / popularity)
            element = self._draw(weights)
            if element is None:
                break
            barred[element] = True
            effect = self._try(kind, element)
            if len(effect.lost) > min(end - self._lost(), max(most, 1)):
                self._undo(effect)
                continue
            self._keep(kind, element, effect, float(popularity[element]), float(affected[element]), weights)
            monitor.progress(self._lost(), total, f"questions without answer, by {kind}")

    def _lost(self) -> int:
        return int((~self.answerable).sum())

    def _draw(self, weights: Weights) -> int | None:
        sums = np.cumsum(weights)
        if not len(sums) or sums[-1] <= 0:
            return None
        index = int(np.searchsorted(sums, self._random.random() * sums[-1], "right"))
        return min(index, int(np.flatnonzero(weights)[-1]))

    def _popularity(self, kind: str) -> Weights:
        if kind == TYPE:
            popularity = np.ones(self.graph.entities)
            for info in self.types.values():
                popularity[info.id] = max(1, info.popularity)
            return popularity
        if kind == RELATION:
            return np.maximum(1, np.bincount(self.graph.relation, minlength=self.graph.relations)).astype(np.float64)
        return np.ones(self.graph.entities if kind == ENTITY else len(self.graph.head))

    def _importance(self, kind: str) -> Weights:
        """[elements]: still answerable questions that use each."""
        if kind == FACT:
            return np.where(self.graph.alive, self.uses.facts.spread(self.answerable, even=True), 0.0)
        if kind == RELATION:
            importance = self.uses.relations.spread(self.answerable, even=False)
            importance[list(self.dropped.relations)] = 0.0
            return importance
        if kind == ENTITY:
            importance = self.uses.names.spread(self.answerable, even=False)
            importance += self.uses.entities.spread(self.answerable, even=True)
            importance[list(self.types)] = 0.0
            return np.where(self.graph.there & ~self.graph.literal, importance, 0.0)
        importance = np.zeros(self.graph.entities)
        alone = self.tracer.members.alone()
        for info in self.types.values():
            if self.graph.there[info.id]:
                importance[info.id] = len(self._naming(info.relations, (info.id, *alone.get(info.id, ()))))
        return importance

    def _naming(self, relations: Sequence[int], entities: Sequence[int]) -> Ints:
        """Answerable questions whose forms name any of these."""
        both = (self.uses.relations.questions(relations), self.uses.names.questions(entities))
        questions = np.unique(np.concatenate(both))
        return questions[self.answerable[questions]]

    def _try(self, kind: str, element: int) -> _Effect:
        """Takes an element out of the graph, and finds the questions that are lost with it."""
        relations: tuple[int, ...] = (element,) if kind == RELATION else ()
        entities: tuple[int, ...] = (element,) if kind == ENTITY else ()
        if kind == TYPE:
            info = self.types[element]
            relations = tuple(r for r in info.relations if r not in self.dropped.relations)
            alone = self.tracer.members.alone().get(element, NONE).tolist()
            entities = tuple(e for e in dict.fromkeys((element, *alone)) if self.graph.there[e])
        graph = self.graph
        pieces = [graph.of_relations(relations)] if relations else []
        pieces += [graph.touching(np.array(sorted(entities), dtype=np.int64))] if entities else []
        triples = np.unique(np.concatenate(pieces)) if pieces else np.array([element], dtype=np.int64)
        graph.alive[triples] = False
        graph.there[list(entities)] = False
        named = self._naming(relations, entities)
        fewer = sorted(self.tracer.members.classes_of(entities) & self._classes) if self._classes else []
        of_classes = set(self.uses.names.questions(fewer).tolist())
        users = np.union1d(self.uses.facts.questions(triples), np.array(sorted(of_classes), dtype=np.int64))
        users = np.setdiff1d(users[self.answerable[users]], named, assume_unique=True)
        lost, witnesses = [], {}
        for question in users.tolist():
            known = self._witness.get(question, NONE)
            if len(known) and question not in of_classes and not np.isin(known, triples).any():
                continue
            witness = self.tracer.stands(self.ideals[question].asks)
            if witness is None:
                lost.append(question)
            else:
                witnesses[question] = witness
        both = np.union1d(named, np.array(lost, dtype=np.int64))
        return _Effect(relations, entities, triples, both, witnesses)

    def _undo(self, effect: _Effect) -> None:
        self.graph.alive[effect.triples] = True
        self.graph.there[list(effect.entities)] = True

    def _keep(
        self, kind: str, element: int, effect: _Effect, popularity: float, affected: float, weights: Weights
    ) -> None:
        number = len(self.dropped.steps)
        self._witness.update(effect.witnesses)
        self.answerable[effect.lost] = False
        self.dropped.step_of[effect.lost] = number
        self.dropped.removed_at[effect.triples] = number
        self.dropped.relations.update(dict.fromkeys(effect.relations, number))
        self.dropped.entities.update(dict.fromkeys(effect.entities, number))
        self.dropped.steps.append(
            DropStep(
                number, kind, element, popularity, affected, float(weights[element] / weights.sum()),
                effect.relations, effect.entities, effect.triples, tuple(effect.lost.tolist()),
            )
        )  # fmt: skip
