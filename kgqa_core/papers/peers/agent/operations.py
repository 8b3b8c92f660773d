"""The four operations of an agent on the graph, and the names that it knows entities and relations by.

They are those of KG-R1 (Song et al. 2025, section 3): relations out of and into an entity, and the entities that a
relation leads to in either direction.  Every path of a graph is a sequence of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kgqa_core.dkg.csr import Dkg
from kgqa_core.kg.store import REMOVED, KgStore


class OperationRefused(Exception):
    """An operation names an entity or a relation that is not there; the text says so to the model."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What an operation returned: names in order of id, at most `shown`, and how many more there are."""

    names: tuple[str, ...]
    more: int = 0


class NamedGraph:
    """The graph as all sessions see it: directed relations by their labels, entities by their names.

    shown: names in one observation.
    """

    def __init__(self, dkg: Dkg, store: KgStore, shown: int) -> None:
        self.dkg, self.store, self.shown = dkg, store, shown
        self._names: dict[int, str] = {}

    @cached_property
    def relation_names(self) -> list[str]:
        """What each forward relation is called: its label where no other has it, else label and key."""
        names = self.dkg.relation_names[: self.dkg.relations]
        count = Counter(names)
        keys = self.dkg.relation_keys
        return [name if count[name] == 1 else f"{name} [{keys[number]}]" for number, name in enumerate(names)]

    @cached_property
    def relation_ids(self) -> dict[str, int]:
        """Forward relation by its name here, and by its key where that is no name."""
        ids = {key: number for number, key in enumerate(self.dkg.relation_keys[: self.dkg.relations])}
        return ids | {name: number for number, name in enumerate(self.relation_names)}

    def entity_names(self, entities: Iterable[int]) -> dict[int, str]:
        """The name of each entity, looked up once."""
        wanted = list(entities)
        missing = [entity for entity in wanted if entity not in self._names]
        if missing:
            self._names |= self.store.names(missing)
        return {entity: self._names[entity] for entity in wanted}

    def relations(self, entity: int, *, out: bool) -> list[int]:
        """Forward ids of the relations out of an entity, or into it, ascending."""
        start, stop = (int(bound) for bound in self.dkg.row_bounds(entity))
        relations = np.unique(self.dkg.rel[start:stop]).astype(np.int64)
        chosen = (
            relations[relations < self.dkg.relations]
            if out
            else relations[relations >= self.dkg.relations] - self.dkg.relations
        )
        return [number for number in chosen.tolist() if not self.relation_names[number].startswith(REMOVED)]

    def follow(self, entity: int, relation: int, *, out: bool) -> np.ndarray:
        """Edges from an entity along a forward relation, or against it, in order of the entity at their other end."""
        directed = relation if out else relation + self.dkg.relations
        start, stop = (int(bound) for bound in self.dkg.row_bounds(entity))
        first, last = np.searchsorted(self.dkg.rel[start:stop], (directed, directed + 1))
        return np.arange(start + first, start + last, dtype=np.int64)


class ExplorationSession:
    """One question's view of the graph: the entities that were shown, by the names that they were shown by, and the
    triples that were visited, by the entity that they led to."""

    def __init__(self, view: NamedGraph, topics: Sequence[int]) -> None:
        self.view = view
        self.names: dict[int, str] = {}
        self.ids: dict[str, int] = {}
        self.visited: dict[int, int] = {}
        self.topics = tuple(dict.fromkeys(topics))
        self.operations = 0
        self.topic_names = self.show(self.topics)

    def show(self, entities: Sequence[int]) -> tuple[str, ...]:
        """The names of some entities here; one whose name another entity has already gets its key beside it."""
        new = [entity for entity in entities if entity not in self.names]
        names = self.view.entity_names(new)
        clashing = [entity for entity in new if names[entity] in self.ids]
        seen = Counter(names[entity] for entity in new)
        clashing += [entity for entity in new if entity not in clashing and seen[names[entity]] > 1]
        keys = self.view.store.entity_keys(clashing) if clashing else {}
        for entity in new:
            name = f"{names[entity]} [{keys[entity]}]" if entity in keys else names[entity]
            self.names[entity] = name
            self.ids.setdefault(name, entity)
        return tuple(self.names[entity] for entity in entities)

    def entity(self, name: str) -> int:
        """The entity of a name that was shown; also in other case.  Raises OperationRefused."""
        entity = self.find(name)
        if entity is None:
            raise OperationRefused(f"no entity {name!r} was shown; name one that was")
        return entity

    def find(self, name: str) -> int | None:
        """The entity of a name that was shown, in any case where only one has it so; None without one."""
        if name in self.ids:
            return self.ids[name]
        folded = " ".join(name.split()).casefold()
        matches = {entity for shown, entity in self.ids.items() if shown.casefold() == folded}
        return matches.pop() if len(matches) == 1 else None

    def relation(self, name: str) -> int:
        """The forward relation of a name.  Raises OperationRefused."""
        relation = self.view.relation_ids.get(name)
        if relation is None:
            raise OperationRefused(f"no relation is called {name!r}; name one that was shown")
        return relation

    def relations(self, entity: int, *, out: bool) -> Observation:
        """Relations out of an entity or into it."""
        self.operations += 1
        relations = self.view.relations(entity, out=out)
        names = self.view.relation_names
        shown = relations[: self.view.shown]
        return Observation(tuple(names[number] for number in shown), len(relations) - len(shown))

    def follow(self, entity: int, relation: int, *, out: bool, without: Iterable[int] = ()) -> tuple[list[int], int]:
        """Entities that a relation leads to, in order of id, at most `shown`, and how many more there are.

        without: entities that are left out.  Raises OperationRefused where it leads nowhere.
        """
        self.operations += 1
        edges = self.view.follow(entity, relation, out=out)
        tails = self.view.dkg.tail[edges]
        left = ~np.isin(tails, list(without))
        edges, tails = edges[left], tails[left]
        if not len(edges):
            way = "out of" if out else "into"
            raise OperationRefused(f"{self.view.relation_names[relation]!r} does not lead {way} {self.names[entity]!r}")
        shown = [int(tail) for tail in tails[: self.view.shown]]
        return shown, len(tails) - len(shown)

    def visit(self, entity: int, relation: int, targets: Sequence[int], *, out: bool) -> None:
        """Counts the triples from an entity to targets among those that were visited."""
        directed = relation if out else relation + self.view.dkg.relations
        edges = self.view.dkg.find_edge([entity] * len(targets), [directed] * len(targets), list(targets))
        for triple, target in zip(self.view.dkg.triple_of(edges).tolist(), targets, strict=True):
            self.visited.setdefault(triple, target)

    def facts(self, answers: Iterable[int]) -> tuple[int, ...]:
        """The visited triples, those that led to an answer first, else in the order of the visit."""
        reached = set(answers)
        ends = [triple for triple, target in self.visited.items() if target in reached]
        return tuple(dict.fromkeys([*ends, *self.visited]))
