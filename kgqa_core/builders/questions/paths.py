"""Paths through a graph that a question can follow: from an entity with a name, over relations that words can say."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgqa_core.config.generated_questions import GeneratedQuestionsOptions
from kgqa_core.logic.forms import Entity, Form, Join, Step
from kgqa_core.logic.memory import MemoryGraph
from kgqa_core.search.schema_profile import GraphProfile, RelationProfile

Ints = NDArray[np.int64]

_TRIES = 6
"""Relations that are drawn, of which the one that is used least is taken."""
_WIDEST = 10
"""How many times the most answers a set on the way may have."""


@dataclass(frozen=True, slots=True)
class PathHop:
    """One relation of a path, from the topic outward.  backward: from its tails to its heads."""

    relation: RelationProfile
    backward: bool

    @property
    def step(self) -> Step:
        """The step of the answer's side, as `Join` has it."""
        return Step(self.relation.key, inverse=not self.backward)

    @property
    def single(self) -> bool:
        """Whether it leads to one thing, but for one in ten."""
        return self.relation.inverse_functional if self.backward else self.relation.functional


@dataclass(frozen=True, slots=True)
class WalkedPath:
    """What hops lead to from a topic.  sets: what each hop reaches, ascending; the last is the answer."""

    topic: int
    hops: tuple[PathHop, ...]
    sets: tuple[Ints, ...]

    @property
    def nodes(self) -> Ints:
        """What it leads to."""
        return self.sets[-1]


class Walker:
    """Draws paths; relations that were used least go first, so that all are covered about evenly."""

    def __init__(
        self, graph: MemoryGraph, profile: GraphProfile, options: GeneratedQuestionsOptions, rng: random.Random
    ) -> None:
        self.graph, self.profile, self.options, self.rng = graph, profile, options, rng
        self.relations = tuple(profile.relations.values())
        rows = graph.store.connection.execute(
            "SELECT relation FROM triples JOIN entities e ON e.id = tail GROUP BY relation "
            "HAVING bool_and(lower(e.key) IN ('true', 'false'))"
        ).fetchall()
        self.by_id = {relation.id: relation for relation in self.relations}
        self._flags = {relation for (relation,) in rows}
        self.used: Counter[tuple[str, bool]] = Counter()
        self.keys = _keys(graph)
        order = np.argsort(graph.relation, kind="stable")
        bounds = np.searchsorted(graph.relation[order], np.arange(graph.relations + 1))
        self._triples = [order[bounds[i] : bounds[i + 1]] for i in range(graph.relations)]
        self._first_hops: dict[tuple[bool, bool], list[PathHop]] = {}
        self._starts: dict[tuple[int, bool], tuple[Ints, Ints]] = {}

    def hops(self, wanted: Callable[[PathHop], bool] = lambda hop: True) -> list[PathHop]:
        """Every hop that a path may begin with; what has a type is asked for by the type."""
        both = [PathHop(relation, backward) for relation in self.relations for backward in (False, True)]
        fitting = [hop for hop in both if not hop.backward or hop.relation.entities and not hop.relation.is_type]
        fitting = [hop for hop in fitting if hop.relation.id not in self._flags]  # which no noun asks for
        return [hop for hop in fitting if wanted(hop)]

    def pick(self, hops: Sequence[PathHop]) -> PathHop | None:
        """Of some hops drawn from these the one that was used least."""
        if not hops:
            return None
        drawn = [self.rng.choice(hops) for _ in range(_TRIES)]
        return min(drawn, key=lambda hop: self.used[hop.relation.key, hop.backward])

    def use(self, path: WalkedPath) -> None:
        """Counts the hops of a path that becomes a question."""
        self.used.update((hop.relation.key, hop.backward) for hop in path.hops)

    def topic(self, hop: PathHop) -> int | None:
        """An entity at which a hop can start: drawn over entities or, as often, over triples."""
        key = (hop.relation.id, hop.backward)
        if key not in self._starts:
            triples = self._triples[hop.relation.id]
            ends = (self.graph.tail if hop.backward else self.graph.head)[triples]
            ends = ends[self.profile.askable[ends]]
            self._starts[key] = (ends, np.unique(ends))
        pool = self._starts[key][self.rng.random() < 0.5]
        return int(pool[self.rng.randrange(len(pool))]) if len(pool) else None

    def start(self, hop: PathHop | None) -> WalkedPath | None:
        """A path of one hop; None where it reaches nothing that can be named, or too much."""
        topic = None if hop is None else self.topic(hop)
        if hop is None or topic is None:
            return None
        return self.follow(WalkedPath(topic, (), ()), hop)

    def follow(self, path: WalkedPath, hop: PathHop) -> WalkedPath | None:
        """The path with one more hop; None where it goes nowhere new, or to too much."""
        before = path.sets[-1] if path.sets else np.array([path.topic], dtype=np.int64)
        reached = np.unique(self.graph.hop(before, hop.relation.id, backward=hop.backward)[1])
        if not len(reached) or len(reached) > _WIDEST * self.options.max_answers:
            return None
        if len(reached) == 1 and reached[0] == path.topic:
            return None
        if any(np.array_equal(reached, earlier) for earlier in path.sets):
            return None
        return WalkedPath(path.topic, (*path.hops, hop), (*path.sets, reached))

    def extend(self, path: WalkedPath) -> WalkedPath | None:
        """A path with one more hop, never straight back, from what the path leads to."""
        last = path.hops[-1]
        if last.relation.is_type or not last.relation.entities:
            return None
        member = int(path.nodes[self.rng.randrange(len(path.nodes))])
        hop = self.pick([hop for hop in self.around(member) if hop != PathHop(last.relation, not last.backward)])
        return None if hop is None or hop.relation.is_type else self.follow(path, hop)

    def around(self, node: int) -> list[PathHop]:
        """The hops that leave a node, by relation."""
        out, into = self.graph.around(node)
        hops = [PathHop(self.by_id[int(i)], False) for i in out if int(i) in self.by_id and int(i) not in self._flags]
        back = [PathHop(self.by_id[int(i)], True) for i in into if int(i) in self.by_id]
        return hops + [hop for hop in back if not hop.relation.is_type]

    def walk(self, length: int, least: int = 1) -> WalkedPath | None:
        """A path of so many hops whose answers, `least` or more of them, can be a question's."""
        path = self.start(self.pick(self._first(length > 1, least > 1 and length == 1)))
        for _ in range(length - 1):
            path = None if path is None else self.extend(path)
        return path if path is not None and len(path.nodes) >= least and self.usable(path.nodes) else None

    def _first(self, entities: bool, several: bool) -> list[PathHop]:
        """Hops that a path may begin with: to entities where it goes on, to several things where those are wanted."""
        if (entities, several) not in self._first_hops:
            self._first_hops[entities, several] = self.hops(
                lambda hop: (
                    not (entities and not (hop.backward or hop.relation.entities))
                    and not ((entities or several) and hop.relation.is_type)
                    and not (several and hop.single)
                )
            )
        return self._first_hops[entities, several]

    def usable(self, nodes: Ints) -> bool:
        """Whether a set can be the answer: not too large, and something in it has a name."""
        names = self.profile.names
        return 0 < len(nodes) <= self.options.max_answers and any(names[int(node)] is not None for node in nodes)

    def form(self, path: WalkedPath) -> Form:
        """The form of a path."""
        return Join(tuple(hop.step for hop in reversed(path.hops)), self.entity(path.topic))

    def entity(self, node: int) -> Entity:
        """An entity by its id."""
        return Entity(self.keys[node])


def _keys(graph: MemoryGraph) -> dict[int, str]:
    rows = graph.store.connection.execute("SELECT id, key FROM entities WHERE kind = 'entity'").fetchall()
    return dict(rows)
