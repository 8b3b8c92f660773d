"""Which actions may come next, so that every decode ends in a well-formed form that `logic.typed` passes.

The automaton reads a form from its outside in and knows at each place what may stand there: `kinds` of which the node
must fit one.  Before it offers an action it makes sure that what the action opens can be closed again with the slots
of the question, and within the actions that are left:

- for each relation the fewest actions that fill what it leads to are found once a question (`Costs`);
- where a second part depends on a first that is still open (AND, OR, GREATER), what the first is made of (a leaf, a
  join or a comparison) fits there as well, so that the largest of those numbers is reserved for it;
- a path that is measured can always be one counted step.

So from every state that is reached, END is reached.  It requires a little more than `typed`: parts of OR and both sides
of GREATER must each fit where they stand, relations that nothing has are not offered, no rank stands directly in a
rank, and a leaf alone is no form.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kgqa_core.logic.forms import OPS
from kgqa_core.papers.grailqability.parsing.decode.actions import END, FIXED, NK, NUMBER, PLACES, Slots
from kgqa_core.papers.grailqability.parsing.decode.grammar import (
    COUNTED,
    NEVER,
    Alternatives,
    Costs,
    Frame,
    Hole,
    Kind,
    Kinds,
    Stack,
    State,
    fits_one,
    narrowed,
    stepped,
    top,
)  # fmt: skip

_COUNTED, _THEN, _NK, _END = NUMBER["COUNTED"], NUMBER["THEN"], NUMBER[NK], NUMBER[END]
_SECOND = {NUMBER["AND"]: "and", NUMBER["OR"]: "or", NUMBER["MINUS"]: "minus"}
_BESTS = {NUMBER[name] for name in ("ARGMAX", "ARGMIN")}
_NTHS = {NUMBER[name] for name in ("NTHMAX", "NTHMIN")}
_SIDES = {NUMBER[name] for name in ("GREATER", "LESS")}
_COMPARES = {NUMBER[name] for name in OPS}
_TC, _COUNT, _HOLDS = NUMBER["TC"], NUMBER["COUNT"], NUMBER["HOLDS"]
_PLACES = tuple(NUMBER[place] for place in PLACES)


@dataclass(frozen=True, slots=True)
class Limits:
    """actions: of a form at most, END aside.  steps: of a path that is measured at most."""

    actions: int = 24
    steps: int = 2


class Automaton:
    """The forms of one question.

    entities: types of its topics, from `schema.types_of`.  no_form: whether NK may be predicted; where the slots make
    no form at all it is all that can be.
    """

    def __init__(
        self,
        kinds: Kinds,
        slots: Slots,
        entities: Mapping[str, frozenset[str]],
        *,
        no_form: bool = True,
        limits: Limits | None = None,
    ) -> None:
        self.kinds, self.slots, self.limits = kinds, slots, limits or Limits()
        self.leaves = _leaves(kinds, slots, entities)
        relations = kinds.schema.relations
        known = [a for a in range(slots.first_relation, slots.actions) if slots.step(a).relation in relations]
        ends = {action: kinds.ends(slots.step(action)) for action in known}
        self.ends = {action: pair for action, pair in ends.items() if pair[0].may and pair[1].may}
        values = [kind.may & kinds.measured for a, kind in self.leaves.items() if a >= slots.first_literal]
        self.costs = Costs(kinds, self.ends, tuple(self.leaves.values()), values, self.limits.steps)
        self.start = State(Hole("form", (kinds.anything,)), (), 0, 0)
        self.no_form = no_form or not any(self._set(self._inner(leaf=False), self.limits.actions))
        self._allowed_actions: dict[tuple[Hole, int], tuple[int, ...]] = {}

    def allowed(self, state: State) -> tuple[int, ...]:
        """The actions that may come next, ascending; at the end it is END alone."""
        key = (state.hole, self.limits.actions - state.used - state.reserved)
        if key not in self._allowed_actions:
            self._allowed_actions[key] = tuple(sorted(self._allowed(*key)))
        return self._allowed_actions[key]

    def after(self, state: State, action: int) -> State:
        """The state after one of the allowed actions."""
        hole, stack, reserved, used = state
        used += 1
        match hole.what:
            case "form" if action == _NK:
                return State(Hole("end"), (), 0, used)
            case "form" if action == _COUNT:
                return State(self._inner(leaf=False), (Frame("whole"), ()), 0, used)
            case "form" if action == _HOLDS:
                return State(self._inner(), (Frame("holds"), ()), self.costs.most, used)
            case "form":
                return self._open(hole, action, (Frame("whole"), ()), 0, used)
            case "set":
                return self._open(hole, action, stack, reserved, used)
            case "place":
                return State(Hole("set", hole.fits, ranked=False), stack, reserved, used)
            case "literal":
                frame, rest = top(stack)
                return self._closed(frame.kind, rest, reserved, used)
            case "measure" if action == _COUNTED:
                return State(hole._replace(what="path", wanted=COUNTED), stack, reserved, used)
            case "measure" | "path" if action == _THEN:
                return State(hole._replace(what="step"), stack, reserved, used)
            case "step":
                near, far = self.ends[action]
                inner = Hole("path", (far,), wanted=hole.wanted, steps=hole.steps - 1)
                return State(inner, stepped(stack, near), reserved, used)
            case "measure" | "path":
                return self._measured(hole, action, stack, reserved, used)
        return State(Hole("end"), (), 0, used)

    def _allowed(self, hole: Hole, room: int) -> Iterator[int]:
        match hole.what:
            case "form":
                if self.no_form:
                    yield _NK
                if any(self._set(self._inner(leaf=False), room - 1)):
                    yield _COUNT
                if self.costs.set((self.kinds.anything,)) + self.costs.most < room:
                    yield _HOLDS
                yield from self._set(hole._replace(leaf=False), room)
            case "set":
                yield from self._set(hole, room)
            case "place":
                yield from _PLACES
            case "literal":
                yield from (a for a, kind in self._literals() if kind.may & hole.wanted)
            case "end":
                yield _END
            case _:
                yield from self._path(hole, room)

    def _set(self, hole: Hole, room: int) -> Iterator[int]:
        """Actions that begin a set of at most `room` actions."""
        fits, costs = hole.fits, self.costs
        if hole.leaf and room >= 1:
            yield from (a for a, kind in self.leaves.items() if fits_one(kind, fits))
        joined = [a for a, (near, _) in self.ends.items() if fits_one(near, fits)]
        yield from (a for a in joined if costs.fill[a] < room)
        if costs.set(fits) + costs.most < room:
            yield from _SECOND
        if min((costs.compare[a] for a in joined), default=NEVER) <= room:
            yield from _COMPARES
        if not hole.ranked:
            return
        having = costs.set(self._having(fits, self.ends))
        if having + 2 < room:
            yield from _BESTS
        if having + 3 < room:
            yield from _NTHS
        if having + costs.most + 2 < room:
            yield from _SIDES
        if costs.set(self._having(fits, costs.dated)) + costs.longest_dated + 1 < room:
            yield _TC

    def _path(self, hole: Hole, room: int) -> Iterator[int]:
        """Actions that begin a path, or go on with it, of at most `room` actions."""
        first = [a for a, (near, _) in self.ends.items() if fits_one(near, hole.fits)]
        first = [a for a in first if hole.also is None or self.ends[a][0].fits(hole.also)]
        on = {a: self.costs.continuation(a, hole.wanted, hole.steps - 1) for a in first}
        if hole.what == "step":
            yield from (a for a in first if on[a] < room)
            return
        if hole.what == "measure" and hole.wanted & self.kinds.number and first and room >= 2:
            yield _COUNTED
        if min(on.values(), default=NEVER) + 1 < room:
            yield _THEN
        if room >= 1:
            last = self.costs.path(hole.wanted, 1)
            yield from (a for a in first if last[a] == 1)

    def _open(self, hole: Hole, action: int, stack: Stack, reserved: int, used: int) -> State:
        """After the first action of a set."""
        if action in self.leaves:
            return self._closed(self.leaves[action], stack, reserved, used)
        if action in self.ends:
            near, far = self.ends[action]
            return State(Hole("set", (far,)), (Frame("join", kind=near), stack), reserved, used)
        costs = self.costs
        if action in _SECOND:
            frame = Frame(_SECOND[action], hole.fits, ranked=hole.ranked)
            return State(Hole("set", hole.fits, ranked=hole.ranked), (frame, stack), reserved + costs.most, used)
        if action in _COMPARES:
            measured = Hole("measure", hole.fits, wanted=costs.values, steps=self.limits.steps)
            return State(measured, (Frame("compare"), stack), reserved + 1, used)
        if action == _TC:
            of = Hole("set", self._having(hole.fits, costs.dated), ranked=False)
            return State(of, (Frame("tc", hole.fits), stack), reserved + costs.longest_dated + 1, used)
        of = Hole("place" if action in _NTHS else "set", self._having(hole.fits, self.ends), ranked=False)
        if action in _SIDES:
            return State(of, (Frame("one", hole.fits), stack), reserved + costs.most + 2, used)
        return State(of, (Frame("rank", hole.fits), stack), reserved + 2, used)

    def _closed(self, kind: Kind, stack: Stack, reserved: int, used: int) -> State:
        """After the last action of a set of this kind."""
        frame, rest = top(stack)
        most, steps = self.costs.most, self.limits.steps
        match frame.what:
            case "whole":
                return State(Hole("end"), (), 0, used)
            case "join" | "minus from":
                return self._closed(frame.kind, rest, reserved, used)
            case "holds":
                return State(self._inner(), (Frame("whole"), rest), reserved - most, used)
            case "minus":
                return State(self._inner(), (Frame("minus from", kind=kind), rest), reserved - most, used)
            case "and":
                fits = narrowed(frame.fits, kind)
                second = Hole("set", fits, ranked=frame.ranked)
                return State(second, (Frame("both", kind=kind), rest), reserved - most, used)
            case "both":
                return self._closed(frame.kind.meets(kind), rest, reserved, used)
            case "or":
                fits = tuple(alternative for alternative in frame.fits if alternative.fits(kind))
                second = Hole("set", fits, ranked=frame.ranked)
                return State(second, (Frame("any", kind=kind), rest), reserved - most, used)
            case "any":
                return self._closed(frame.kind.either(kind), rest, reserved, used)
            case "rank":
                measured = Hole("measure", narrowed(frame.fits, kind), wanted=self.kinds.measured, steps=steps)
                return State(measured, (Frame("ranked", kind=kind), rest), reserved - 2, used)
            case "one":
                fits = tuple(
                    alternative for alternative in self._having(frame.fits, self.ends) if alternative.fits(kind)
                )
                other = Frame("other", frame.fits, kind)
                return State(Hole("set", fits, ranked=False), (other, rest), reserved - most, used)
            case "other":
                fits = narrowed(frame.fits, frame.kind)
                measured = Hole("measure", fits, also=kind, wanted=self.kinds.measured, steps=steps)
                return State(measured, (Frame("ranked", kind=frame.kind.either(kind)), rest), reserved - 2, used)
        assert frame.what == "tc", frame
        measured = Hole("path", narrowed(frame.fits, kind), wanted=self.costs.time, steps=steps)
        return State(measured, (Frame("dated", kind=kind), rest), reserved - self.costs.longest_dated, used)

    def _measured(self, hole: Hole, action: int, stack: Stack, reserved: int, used: int) -> State:
        """After the last step of a path."""
        near, far = self.ends[action]
        frame, rest = top(stepped(stack, near))
        if frame.what == "measured":
            return self._closed(frame.kind, rest, reserved, used)
        wanted = self.kinds.number if hole.wanted == COUNTED else far.may & hole.wanted
        return State(Hole("literal", wanted=wanted), (frame, rest), reserved - 1, used)

    def _having(self, fits: Alternatives, steps: Iterable[int]) -> Alternatives:
        """Kinds of what fits and has one of these relations."""
        nears = tuple(dict.fromkeys(self.ends[a][0] for a in steps))
        return tuple(
            dict.fromkeys(alternative.meets(near) for alternative in fits for near in nears if alternative.fits(near))
        )

    def _inner(self, leaf: bool = True) -> Hole:
        return Hole("set", (self.kinds.anything,), leaf=leaf)

    def _literals(self) -> Iterator[tuple[int, Kind]]:
        return ((a, kind) for a, kind in self.leaves.items() if a >= self.slots.first_literal)


def walk(automaton: Automaton, actions: Sequence[int]) -> State | None:
    """The state after these actions, None when one of them is not allowed."""
    state = automaton.start
    for action in actions:
        if action not in automaton.allowed(state):
            return None
        state = automaton.after(state, action)
    return state


def _leaves(kinds: Kinds, slots: Slots, entities: Mapping[str, frozenset[str]]) -> dict[int, Kind]:
    """Kinds of topics, types and literals by their action; what fits nothing is left out."""
    topics = [kinds.entity(entities.get(key)) for key in slots.topics]
    classes = [kinds.of_class(key) for key in slots.classes]
    literals = [kinds.literal(literal) for literal in slots.literals]
    leaves = enumerate([*topics, *classes, *literals], start=len(FIXED))
    return {action: kind for action, kind in leaves if kind is not None and kind.may}
