"""What a node of a form may be, as `logic.typed` infers it, in bits: types and dimensions of a schema are one bit each.

`typed` says why a form cannot have an answer; a decoder checks the same thousands of times a second, without messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

from kgqa_core.logic.forms import Literal, Step
from kgqa_core.logic.measures import TIME, measure
from kgqa_core.logic.schema import TEXT, UNTYPED, Schema


@dataclass(frozen=True, slots=True)
class Kind:
    """may: bits of everything that a node can be.  must: of each of these a node has one bit."""

    may: int
    must: tuple[int, ...] = ()

    def meets(self, other: Kind) -> Kind:
        """What is both."""
        return Kind(self.may & other.may, tuple(dict.fromkeys(self.must + other.must)))

    def fits(self, other: Kind) -> bool:
        """Whether something can be both."""
        may = self.may & other.may
        return may != 0 and all(may & wanted for wanted in self.must) and all(may & wanted for wanted in other.must)

    def either(self, other: Kind) -> Kind:
        """What is one of the two."""
        return Kind(self.may | other.may)


class Kinds:
    """The kinds of what a schema has.  anything: of what nothing is known of."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        types = {
            UNTYPED,
            *schema.types,
            *schema.supers,
            *(above for all_of in schema.supers.values() for above in all_of),
        }
        dimensions = {TEXT, ""}
        for relation in schema.relations.values():
            types |= relation.domain | relation.range
            dimensions |= relation.dimensions
        self._types = {key: 1 << index for index, key in enumerate(sorted(types))}
        self._dimensions = {key: 1 << len(types) + index for index, key in enumerate(sorted(dimensions))}
        self.anything = Kind((1 << len(types) + len(dimensions)) - 1)
        self.number, self.time = self._dimensions[""], self.dimension(TIME)
        self.measured = sum(bit for key, bit in self._dimensions.items() if key != TEXT)
        self._ends: dict[Step, tuple[Kind, Kind]] = {}

    def entity(self, types: Iterable[str] | None) -> Kind:
        """Of an entity with these types; None where they are not known."""
        return self.anything if types is None else Kind(self._bits(types))

    def of_class(self, key: str) -> Kind | None:
        """Of what has a type; None for one that nothing has."""
        if not self.schema.has_type(key):
            return None
        return Kind(self.anything.may, (self._bits(self.schema.below(key)),))

    def literal(self, literal: Literal) -> Kind:
        """Of a literal; one of a dimension that no relation has fits nothing."""
        measured = measure(literal)
        return Kind(self.dimension(TEXT if measured is None else measured.dim))

    def dimension(self, key: str) -> int:
        """The bit of a dimension; 0 where no relation has values of it."""
        return self._dimensions.get(key, 0)

    def ends(self, step: Step) -> tuple[Kind, Kind]:
        """What a step of the schema comes from and what it leads to."""
        if step not in self._ends:
            relation = self.schema.relations[step.relation]
            head = Kind(self._bits(relation.domain))
            tail = Kind(self._bits(relation.range) | sum(self._dimensions[key] for key in relation.dimensions))
            self._ends[step] = (tail, head) if step.inverse else (head, tail)
        return self._ends[step]

    def _bits(self, types: Iterable[str]) -> int:
        bits = 0
        for key in types:
            bits |= self._types.get(key, 0)
        return bits


Alternatives = tuple[Kind, ...]
"""Kinds of which something fits one."""


class Hole(NamedTuple):
    """What is expected next.

    what: `form` (the whole), `set`, `place`, `measure` (a path that may be counted), `path`, `step` (one after which
    the path goes on), `literal` or `end`.  fits: kinds of which the node, or what the next step is of, fits one; also:
    one that it fits besides.  wanted: dimensions of a path's values, or of a literal.  steps: that a path may still
    have.  ranked: whether a rank may stand here.  leaf: whether a topic, type or literal may.
    """

    what: str
    fits: Alternatives = ()
    also: Kind | None = None
    wanted: int = 0
    steps: int = 0
    ranked: bool = True
    leaf: bool = True


class Frame(NamedTuple):
    """What goes on when a part is read: of which operator, with the kinds that are known by then.

    ranked: whether a rank may stand in the second part.
    """

    what: str
    fits: Alternatives = ()
    kind: Kind = Kind(0)
    ranked: bool = False


Stack = tuple[Frame, Any] | tuple[()]
"""The innermost frame, and the stack below it."""


class State(NamedTuple):
    """After some actions.  reserved: actions that are left for what waits in the stack.  used: actions so far."""

    hole: Hole
    stack: Stack
    reserved: int
    used: int


def top(stack: Stack) -> tuple[Frame, Stack]:
    """The innermost frame, and the stack below it."""
    assert stack, "a part ends that none began"
    return stack[0], stack[1]


def stepped(stack: Stack, near: Kind) -> Stack:
    """The stack after the first step of a path: what is measured must have it."""
    frame, rest = top(stack)
    if frame.what == "ranked":
        return (Frame("measured", kind=frame.kind.meets(near)), rest)
    return (Frame("compared", kind=near), rest) if frame.what == "compare" else stack


def fits_one(kind: Kind, fits: Alternatives) -> bool:
    """Whether a kind fits one of these."""
    return any(kind.fits(alternative) for alternative in fits)


def narrowed(fits: Alternatives, kind: Kind) -> Alternatives:
    """What is left of alternatives for something that is of this kind too."""
    return tuple(dict.fromkeys(alternative.meets(kind) for alternative in fits if alternative.fits(kind)))


NEVER = 10**6
"""Cost of what cannot be filled."""

COUNTED = -1
"""Kind of the ends of a counted path: anything."""


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
            costs = {a: 1 if wanted == COUNTED or far.may & wanted else NEVER for a, (_, far) in self.ends.items()}
            if steps > 1:
                longer = self.path(wanted, steps - 1)
                costs = {a: min([cost, *[2 + longer[b] for b in self._next[a]], NEVER]) for a, cost in costs.items()}
            self._paths[wanted, steps] = costs
        return self._paths[wanted, steps]

    def continuation(self, action: int, wanted: int, steps: int) -> int:
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
