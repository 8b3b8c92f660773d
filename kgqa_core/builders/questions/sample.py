"""Draws logical forms of every kind until each has its share, runs each on the graph and keeps those that differ."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from kgqa_core.builders.questions.draft import Draft
from kgqa_core.builders.questions.easiness import Easiness
from kgqa_core.builders.questions.grailqa_forms import GrailqaForms
from kgqa_core.builders.questions.operations import Operations
from kgqa_core.builders.questions.paths import WalkedPath, Walker
from kgqa_core.builders.questions.qualified import Qualified
from kgqa_core.config.generated_questions import GRAILQA_KINDS, GeneratedQuestionsOptions
from kgqa_core.errors import FormError
from kgqa_core.logic.forms import And, Class, Count, Form, Join, Minus, Or
from kgqa_core.logic.memory import Ints, MemoryGraph
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.search.schema_profile import GraphProfile

_LEAN = 3
"""How many more questions may have one of the answers yes and no than the other."""


class Sampler:
    """Draws drafts of one graph; everything follows from the seed."""

    def __init__(
        self, graph: MemoryGraph, profile: GraphProfile, options: GeneratedQuestionsOptions, seed: int
    ) -> None:
        self.graph, self.profile, self.options = graph, profile, options
        self.seed, self.rng = seed, random.Random(f"questions/{seed}")
        self._drafts: dict[str, Draft] = {}
        self._truths: Counter[bool] = Counter()
        self._easiness = Easiness(graph, options)
        self.walker = Walker(graph, profile, options, self.rng)
        self.operations = Operations(self.walker, self.base, self.condition)
        self.qualified = Qualified(self.walker)
        self.typed = GrailqaForms(graph, profile, self.rng) if options.forms == "grailqa" else None
        self.makers: Mapping[str, Callable[[], Draft | None]] = {
            "one_hop": lambda: self._path("one_hop", 1),
            "two_hops": lambda: self._path("two_hops", 2),
            "three_hops": lambda: self._path("three_hops", 3),
            "siblings": self._siblings,
            "typed": self._typed,
            "members": self._members,
            "intersection": self._intersection,
            "union": self._union,
            "difference": self._difference,
            "qualified": self.qualified.draw,
            "empty": self._empty,
            **self.operations.makers,
        }

    def draw(self, size: int, monitor: Monitor = QUIET) -> list[Draft]:
        """Drafts of all kinds by their shares, `size` more of them where the graph has as many that differ."""
        shares = {name: share for name, share in self.options.shares.model_dump().items() if share > 0}
        if self.typed is not None:
            shares = {name: share for name, share in shares.items() if name in GRAILQA_KINDS}
        results, before = self._drafts, len(self._drafts)
        if "one_hop" in shares and not before:
            self._cover(results, size // 4)
        counts = Counter(draft.kind for draft in list(results.values())[before:])
        size += before
        open_kinds = dict(shares)
        while len(results) < size and open_kinds:
            total = sum(open_kinds.values())
            room = size - len(results)
            for kind, share in list(open_kinds.items()):
                goal = max(1, round(room * share / total))
                if kind == "one_hop":
                    goal = max(1, goal - counts[kind])
                    counts[kind] = 0
                if not self._fill(results, kind, min(goal, size - len(results))):
                    del open_kinds[kind]
                monitor.progress(len(results), size, "questions")
                if len(results) >= size:
                    break
        return list(results.values())[before:]

    def _cover(self, drafts: dict[str, Draft], most: int) -> None:
        """Some questions of one hop for every relation and direction, in a seeded order."""
        hops = self.walker.hops()
        self.rng.shuffle(hops)
        for _ in range(self.options.min_per_relation):
            for hop in hops:
                path = self.walker.start(hop)
                if len(drafts) < most and path is not None and self.walker.usable(path.nodes):
                    self._keep(drafts, self._draft("one_hop", path))

    def _fill(self, drafts: dict[str, Draft], kind: str, goal: int) -> bool:
        """Draws `goal` more of a kind; whether the kind may have still more."""
        misses = 0
        while goal > 0 and misses < self.options.patience:
            draft = self.makers[kind]()
            if draft is not None and self._keep(drafts, draft):
                goal, misses = goal - 1, 0
            else:
                misses += 1
        return misses < self.options.patience

    def _keep(self, drafts: dict[str, Draft], draft: Draft) -> bool:
        """Runs a form and keeps it where it is new and has what it was drawn for; whether it did."""
        if self.typed is not None:
            form = self.typed.write(draft.form)
            if form is None:
                return False
            draft = replace(draft, form=form)
        key = draft.key
        if key in drafts:
            return False
        try:
            result = self.graph.execute(draft.form)
        except FormError:
            return False
        if result.value is None and len(result.nodes) > self.options.max_answers:
            return False
        none = not result.nodes if result.value is None else result.value == 0 and not isinstance(result.value, bool)
        if none != (draft.kind == "empty"):
            return False
        if isinstance(result.value, bool):
            if self._truths[result.value] > self._truths[not result.value] + _LEAN:
                return False
            self._truths[result.value] += 1
        made = Draft(draft.kind, draft.form, result.nodes, result.value)
        if self._easiness.refuses(made):
            return False
        drafts[key] = made
        return True

    # -- sets ----------------------------------------------------------------------------------------------------

    def base(self, least: int = 2) -> tuple[Form, Ints] | None:
        """A set that an operation can be made over: a path of one or two hops, a typed one or an intersection."""
        kind = self.rng.choices(("one_hop", "two_hops", "typed", "intersection"), (5, 3, 3, 1))[0]
        if kind in ("one_hop", "two_hops"):
            draft = self._path(kind, 1 if kind == "one_hop" else 2, least)
        else:
            draft = self._typed(least) if kind == "typed" else self._intersection()
        if draft is None or len(draft.nodes) < least:
            return None
        return draft.form, np.array(draft.nodes, dtype=np.int64)

    def _draft(self, kind: str, path: WalkedPath) -> Draft:
        self.walker.use(path)
        return Draft(kind, self.walker.form(path), tuple(path.nodes.tolist()))

    def _path(self, kind: str, length: int, least: int = 1) -> Draft | None:
        path = self.walker.walk(length, least)
        return None if path is None else self._draft(kind, path)

    def _siblings(self) -> Draft | None:
        """Other works of an author, without the one that is named; or what these lead to."""
        path = self.walker.walk(1)
        if path is None or not path.hops[0].relation.entities or path.hops[0].relation.is_type:
            return None
        back = self.walker.follow(path, type(path.hops[0])(path.hops[0].relation, not path.hops[0].backward))
        if back is None or not self.walker.usable(back.nodes):
            return None
        self.walker.use(path)
        topic = self.walker.entity(path.topic)
        others = Minus(self.walker.form(back), topic)
        if self.rng.random() < 0.6:
            return Draft("siblings", others)
        further = self.walker.extend(back)
        return None if further is None else Draft("siblings", Join((further.hops[-1].step,), others))

    def _typed(self, least: int = 1) -> Draft | None:
        """Members of a type that a path leads to: cities of a country."""
        path = self.walker.walk(1 if self.rng.random() < 0.7 else 2, least)
        chosen = None if path is None or path.hops[-1].single else self.type_of(path.nodes)
        if path is None or chosen is None:
            return None
        both = np.intersect1d(path.nodes, self.graph.members(chosen))
        draft = self._draft("typed", path)
        return Draft("typed", And((Class(chosen), draft.form)), tuple(both.tolist()))

    def _members(self) -> Draft | None:
        """All members of a type."""
        keys = sorted(self.profile.types)
        if not keys:
            return None
        key = self.rng.choice(keys)
        return Draft("members", Class(key), tuple(self.graph.members(key).tolist()))

    def type_of(self, nodes: Ints) -> str | None:
        """A type that some member has, its label in words; None where no member has one."""
        member = int(nodes[self.rng.randrange(len(nodes))])
        return self.operations.type_of(member)

    def _two(self) -> tuple[Form, Form, Ints, Ints] | None:
        """Two conditions that hold of one thing, each from an entity with a name; the sets of both."""
        first = self.walker.walk(1, 2)
        if first is None or first.hops[0].relation.is_type:
            return None
        member = int(first.nodes[self.rng.randrange(len(first.nodes))])
        second = self.condition(member, first)
        if second is None:
            return None
        self.walker.use(first)
        self.walker.use(second)
        return self.walker.form(first), self.walker.form(second), first.nodes, second.nodes

    def condition(self, member: int, other: WalkedPath) -> WalkedPath | None:
        """Another path of one hop, or of two, that leads to a node."""
        if self.graph.literal[member]:
            return None
        ways = [hop for hop in self.walker.around(member) if hop.backward or hop.relation.entities]
        away = self.walker.pick([hop for hop in ways if not hop.relation.is_type])
        if away is None:
            return None
        near = np.unique(
            self.graph.hop(np.array([member], dtype=np.int64), away.relation.id, backward=away.backward)[1]
        )
        near = near[self.profile.askable[near]]
        if not len(near):
            return None
        topic = int(near[self.rng.randrange(len(near))])
        hop = type(away)(away.relation, not away.backward)
        if topic == other.topic:
            return None
        return self.walker.follow(WalkedPath(topic, (), ()), hop)

    def _intersection(self) -> Draft | None:
        """What two conditions hold of, or a third as well; neither alone gives the same."""
        two = self._two()
        if two is None:
            return None
        one, other, first, second = two
        both = np.intersect1d(first, second)
        if len(both) in (0, len(first), len(second)) or one == other:
            return None
        parts = [one, other]
        if self.rng.random() < 0.15:
            member = int(both[self.rng.randrange(len(both))])
            third = self.condition(member, WalkedPath(-1, (), ()))
            if third is not None and 0 < len(np.intersect1d(both, third.nodes)) < len(both):
                parts.append(self.walker.form(third))
                both = np.intersect1d(both, third.nodes)
        if self.rng.random() < 0.2:
            chosen = self.type_of(both)
            if chosen is not None:
                parts.insert(0, Class(chosen))
                both = np.intersect1d(both, self.graph.members(chosen))
        if not self.walker.usable(both) or len(dict.fromkeys(parts)) < len(parts):
            return None
        return Draft("intersection", And(tuple(parts)), tuple(both.tolist()))

    def _empty(self) -> Draft | None:
        """A question whose answer is that there is none: of kinds that have answers elsewhere in the graph."""
        maker = self.rng.choice((self._disjoint, self._disjoint, *self.operations.empty))
        draft = maker()
        if draft is None:
            return None
        counted = not isinstance(draft.form, Count) and self.rng.random() < 0.15
        return Draft("empty", Count(draft.form) if counted else draft.form)

    def _disjoint(self) -> Draft | None:
        """Two conditions that hold of things of one kind, and of no thing together."""
        first = self.walker.walk(1, 2)
        if first is None or first.hops[0].relation.is_type:
            return None
        like = self.condition(int(first.nodes[self.rng.randrange(len(first.nodes))]), first)
        second = None if like is None else self.walker.start(like.hops[0])
        if second is None or second.topic == first.topic or len(np.intersect1d(first.nodes, second.nodes)):
            return None
        chosen = self.type_of(first.nodes) if self.rng.random() < 0.5 else None
        parts = (self.walker.form(first), self.walker.form(second))
        return Draft("empty", And((Class(chosen), *parts) if chosen is not None else parts))

    def _same_relation(self) -> tuple[Form, Form, Ints, Ints] | None:
        """Two sets along one relation, from two entities: borders of Spain, borders of France."""
        first = self.walker.walk(1)
        if first is None or not (first.hops[0].backward or first.hops[0].relation.entities):
            return None
        if first.hops[0].relation.is_type:
            return None
        second = self.walker.start(first.hops[0])
        if second is None or second.topic == first.topic or not self.walker.usable(second.nodes):
            return None
        self.walker.use(first)
        return self.walker.form(first), self.walker.form(second), first.nodes, second.nodes

    def _union(self) -> Draft | None:
        two = self._same_relation()
        if two is None:
            return None
        both = np.union1d(two[2], two[3])
        return Draft("union", Or((two[0], two[1])), tuple(both.tolist())) if self.walker.usable(both) else None

    def _difference(self) -> Draft | None:
        """What one condition holds of and another, which holds of some of them, does not."""
        two = self._two()
        if two is None:
            return None
        one, other, first, second = two
        left = np.setdiff1d(first, second)
        if not 0 < len(left) < len(first) or not self.walker.usable(left):
            return None
        return Draft("difference", Minus(one, other), tuple(left.tolist()))
