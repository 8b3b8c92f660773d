"""How few actions fill what is open, with the slots of one question: what an automaton needs to end in time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import or_

from kgqa_core.parsing.decode.kinds import Kind, Kinds

NEVER = 10**6
"""Cost of what cannot be filled."""

COUNTED = -1
"""What a counted path is wanted to lead to: anything."""


class Costs:
    """Fewest actions of sets and paths.

    ends: of each relation's action what it comes from and leads to.  leaves: kinds of topics, types and literals.
    values: dimensions that literals have.  steps: of a measured path at most.
    fill[a]: of a set that the relation leads to.  compare[a]: of a comparison whose path begins with it.  most: of a
    set that a leaf, a join or a comparison fits, at most.
    """

    def __init__(
        self,
        kinds: Kinds,
        ends: Mapping[int, tuple[Kind, Kind]],
        leaves: Sequence[Kind],
        values: Iterable[int],
        steps: int,
    ) -> None:
        self.ends = ends
        self.leaves = tuple(dict.fromkeys(leaves))
        self.values = reduce(or_, values, 0)
        self.time = self.values & kinds.time
        self._paths: dict[tuple[int, int], dict[int, int]] = {}
        self._best: dict[Kind, int] = {}
        self._next: dict[int, list[int]] = {
            a: [b for b, (near, _) in ends.items() if near.fits(far)] for a, (_, far) in ends.items()
        }
        counted = 2 if self.values & kinds.number else NEVER
        plain = self.path(self.values, steps) if self.values else dict.fromkeys(ends, NEVER)
        self.compare = {a: min(NEVER, 2 + min(plain[a], counted)) for a in ends}
        dated = self.path(self.time, steps) if self.time else {}
        self.dated = tuple(a for a, cost in dated.items() if cost < NEVER)
        self.longest_dated = max((dated[a] for a in self.dated), default=0)
        self.fill = self._filled()
        ending = [cost + 1 for cost in self.fill.values() if cost < NEVER]
        self.most = max([1, *ending, *[cost for cost in self.compare.values() if cost < NEVER]])

    def path(self, wanted: int, steps: int) -> dict[int, int]:
        """Fewest actions of a path of at most so many steps that begins with each relation and leads to `wanted`."""
        if (wanted, steps) not in self._paths:
            found = {a: 1 if wanted == COUNTED or far.may & wanted else NEVER for a, (_, far) in self.ends.items()}
            if steps > 1:
                longer = self.path(wanted, steps - 1)
                found = {a: min([cost, *[2 + longer[b] for b in self._next[a]], NEVER]) for a, cost in found.items()}
            self._paths[wanted, steps] = found
        return self._paths[wanted, steps]

    def going_on(self, action: int, wanted: int, steps: int) -> int:
        """Fewest actions of what comes after a first step when a path goes on, of so many more steps."""
        longer = self.path(wanted, steps) if steps > 0 else {}
        return min((longer[b] for b in self._next[action] if steps > 0), default=NEVER)

    def set(self, fits: Iterable[Kind]) -> int:
        """Fewest actions of a set that fits one of these kinds."""
        return min((self._set(kind) for kind in fits), default=NEVER)

    def _set(self, kind: Kind) -> int:
        if kind not in self._best:
            self._best[kind] = self._cheapest(kind, self.fill)
        return self._best[kind]

    def _cheapest(self, kind: Kind, fill: Mapping[int, int]) -> int:
        if any(leaf.fits(kind) for leaf in self.leaves):
            return 1
        fitting = [a for a, (near, _) in self.ends.items() if near.fits(kind)]
        return min((min(fill[a] + 1, self.compare[a]) for a in fitting), default=NEVER)

    def _filled(self) -> dict[int, int]:
        """The least fixed point: what a relation leads to is filled by a leaf, or by a join of what is filled."""
        leaf = {far: any(leaf.fits(far) for leaf in self.leaves) for _, far in self.ends.values()}
        fill = {a: 1 if leaf[far] else NEVER for a, (_, far) in self.ends.items()}
        changed = True
        while changed:
            changed = False
            for a in self.ends:
                cost = min([fill[a], *[min(fill[b] + 1, self.compare[b]) for b in self._next[a]]])
                if cost < fill[a]:
                    fill[a], changed = cost, True
        return fill
