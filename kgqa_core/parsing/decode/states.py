"""Where an automaton is: what is expected next, and what goes on when a part is read."""

from __future__ import annotations

from typing import Any, NamedTuple

from kgqa_core.parsing.decode.kinds import Kind

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
    """After some actions.  kept: actions that are kept free for what waits in the stack.  used: actions so far."""

    hole: Hole
    stack: Stack
    kept: int
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
    return any(kind.fits(one) for one in fits)


def narrowed(fits: Alternatives, kind: Kind) -> Alternatives:
    """What is left of alternatives for something that is of this kind too."""
    return tuple(dict.fromkeys(one.meets(kind) for one in fits if one.fits(kind)))
