"""The actions that write a form: its operators in the order in which they are read, and what stands in the slots.

A form is written from its outside in, without brackets, since every action takes a known number of operands:

    (ARGMAX (JOIN in fr) population)        ARGMAX  in  [E0]  population
    (COUNT (AND X (JOIN (R r) [E1])))       COUNT  AND  X…  r⁻¹  [E1]
    (ge (COUNT (JOIN r (R s))) 2)           ge  COUNTED  THEN r  s⁻¹  [L0]

A relation where a set is expected is the join along it, and in a path it is a step, `THEN` saying that another step
comes.  NK is the whole of the form of a question that this graph has no form for.  Conditions on qualifiers, and
places beyond the ninth, have no actions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kgqa_core.errors import FormError
from kgqa_core.logic import forms
from kgqa_core.logic.forms import OPS, Form, Step, Steps
from kgqa_core.logic.measures import measure

PAD, START, END, NK = "PAD", "START", "END", "NK"
PLACES = tuple(str(place) for place in range(1, 10))
FIXED = (
    PAD, START, END, NK, "COUNT", "HOLDS", "AND", "OR", "MINUS", "ARGMAX", "ARGMIN", "NTHMAX", "NTHMIN", "GREATER",
    "LESS", *OPS, "TC", "COUNTED", "THEN", *PLACES,
)  # fmt: skip
"""Actions that every question has, by number."""

NUMBER = {name: number for number, name in enumerate(FIXED)}


@dataclass(frozen=True, slots=True)
class Slots:
    """What a question's forms can be made of: keys of topics, types and relations of the graph, and literals.

    Actions beyond `FIXED` are numbered through: topics, types, literals, relations, and relations inverted.
    """

    topics: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    literals: tuple[forms.Literal, ...] = ()
    relations: tuple[str, ...] = ()

    @property
    def items(self) -> int:
        """How many there are; a relation is one item with two actions."""
        return len(self.topics) + len(self.classes) + len(self.literals) + len(self.relations)

    @property
    def first_class(self) -> int:
        """Number of the first action of a type."""
        return len(FIXED) + len(self.topics)

    @property
    def first_literal(self) -> int:
        """Number of the first action of a literal."""
        return self.first_class + len(self.classes)

    @property
    def first_relation(self) -> int:
        """Number of the first action of a relation."""
        return self.first_literal + len(self.literals)

    @property
    def actions(self) -> int:
        """How many actions a question has."""
        return self.first_relation + 2 * len(self.relations)

    def step(self, action: int) -> Step:
        """The step of a relation's action."""
        index = action - self.first_relation
        inverse = index >= len(self.relations)
        return Step(self.relations[index - inverse * len(self.relations)], inverse)

    def name(self, action: int) -> str:
        """How an action is shown."""
        if action < len(FIXED):
            return FIXED[action]
        return str(self.step(action) if action >= self.first_relation else self.leaf(action))

    def leaf(self, action: int) -> forms.Entity | forms.Class | forms.Literal:
        """What the action of a topic, type or literal stands for."""
        if action < self.first_class:
            return forms.Entity(self.topics[action - len(FIXED)])
        if action < self.first_literal:
            return forms.Class(self.classes[action - self.first_class])
        return self.literals[action - self.first_literal]


def written(form: Form | None, slots: Slots) -> list[int]:
    """The actions that write a form, parts whose order means nothing in order of their topics; NK for None.

    Raises FormError for a form with something that is in no slot, or that no actions write.
    """
    return [NUMBER[NK]] if form is None else _ActionWriter(slots).form(form)


class _ActionWriter:
    def __init__(self, slots: Slots) -> None:
        self.slots = slots
        self.leaves: dict[Form, int] = {
            slots.leaf(action): action for action in reversed(range(len(FIXED), slots.first_relation))
        }
        self.steps = {slots.step(action): action for action in range(slots.first_relation, slots.actions)}

    def form(self, form: Form) -> list[int]:
        match form:
            case forms.Entity() | forms.Class() | forms.Literal():
                return [self.leaf(form)]
            case forms.Join(path=path, of=of, where=where):
                if where:
                    raise FormError(f"{form} has conditions on qualifiers, which are not decoded")
                return [*map(self.step, path), *self.form(of)]
            case forms.And(parts=parts):
                return _nested("AND", self.ordered(parts))
            case forms.Or(parts=parts):
                return _nested("OR", self.ordered(parts))
            case forms.Minus(of=of, without=without):
                return [NUMBER["MINUS"], *self.form(of), *self.form(without)]
            case forms.Count(of=of):
                return [NUMBER["COUNT"], *self.form(of)]
            case forms.Holds(of=of, one=one):
                return [NUMBER["HOLDS"], *self.form(of), *self.form(one)]
            case forms.Arg(best=best, of=of, path=path, counted=counted):
                return [NUMBER["ARG" + best.upper()], *self.form(of), *self.measure(path, counted)]
            case forms.Nth(n=n, best=best, of=of, path=path, counted=counted):
                if str(n) not in PLACES:
                    raise FormError(f"place {n} in {form} is beyond {PLACES[-1]}, and is not decoded")
                return [NUMBER["NTH" + best.upper()], NUMBER[str(n)], *self.form(of), *self.measure(path, counted)]
            case forms.Greater(one=one, other=other, path=path, best=best, counted=counted):
                sides = [action for side in self.ordered((one, other)) for action in side]
                name = "GREATER" if best == "max" else "LESS"
                return [NUMBER[name], *sides, *self.measure(path, counted)]
            case forms.Compare(op=op, path=path, value=value, counted=counted):
                return [NUMBER[op], *self.measure(path, counted), self.leaf(value)]
            case forms.TimeConstraint(of=of, path=path, value=value):
                return [NUMBER["TC"], *self.form(of), *self.measure(path, False), self.leaf(value)]
        raise FormError(f"{form} is not decoded")

    def ordered(self, parts: Sequence[Form]) -> list[list[int]]:
        lines = [self.form(part) for part in parts]
        return sorted(lines, key=lambda line: ([action for action in line if self.is_leaf(action)], line))

    def is_leaf(self, action: int) -> bool:
        return len(FIXED) <= action < self.slots.first_relation

    def leaf(self, form: Form) -> int:
        if form not in self.leaves and isinstance(form, forms.Literal) and measure(form) is not None:
            same = [slot for slot in self.slots.literals if measure(slot) == measure(form)]
            form = same[0] if same else form
        if form not in self.leaves:
            raise FormError(f"{form} is neither a linked topic nor a retrieved type nor a literal of the question")
        return self.leaves[form]

    def step(self, step: Step) -> int:
        if step not in self.steps:
            raise FormError(f"relation {step.relation!r} is not among those that were retrieved")
        return self.steps[step]

    def measure(self, path: Steps, counted: bool) -> list[int]:
        steps = [action for step in path[:-1] for action in (NUMBER["THEN"], self.step(step))]
        return [NUMBER["COUNTED"]] * counted + [*steps, self.step(path[-1])]


def read(actions: Sequence[int], slots: Slots) -> Form | None:
    """The form that actions write, None for NK; without END.  Raises FormError for what is no whole form."""
    if list(actions) == [NUMBER[NK]]:
        return None
    rest = iter(actions)
    try:
        form = _ActionReader(rest, slots).form()
    except StopIteration:
        raise FormError(f"{' '.join(map(slots.name, actions))} ends too early") from None
    if next(rest, None) is not None:
        raise FormError(f"{' '.join(map(slots.name, actions))} goes on after its form")
    return form


class _ActionReader:
    def __init__(self, rest: Iterator[int], slots: Slots) -> None:
        self.rest, self.slots = rest, slots

    def form(self) -> Form:
        action = next(self.rest)
        if action >= self.slots.first_relation:
            return forms.Join((self.slots.step(action),), self.form())
        if action >= len(FIXED):
            return self.slots.leaf(action)
        name = FIXED[action]
        match name:
            case "AND":
                return forms.And((self.form(), self.form()))
            case "OR":
                return forms.Or((self.form(), self.form()))
            case "MINUS":
                return forms.Minus(self.form(), self.form())
            case "COUNT":
                return forms.Count(self.form())
            case "HOLDS":
                return forms.Holds(self.form(), self.form())
            case "ARGMAX" | "ARGMIN":
                return forms.Arg(name[3:].lower(), self.form(), *self.measure())
            case "NTHMAX" | "NTHMIN":
                return forms.Nth(int(FIXED[next(self.rest)]), name[3:].lower(), self.form(), *self.measure())
            case "GREATER" | "LESS":
                one, other, (path, counted) = self.form(), self.form(), self.measure()
                return forms.Greater(one, other, path, "max" if name == "GREATER" else "min", counted)
            case "TC":
                return forms.TimeConstraint(self.form(), self.measure()[0], self.value())
        if name in OPS:
            path, counted = self.measure()
            return forms.Compare(name, path, self.value(), counted)
        raise FormError(f"{name} begins no form")

    def measure(self) -> tuple[Steps, bool]:
        action, steps, counted = next(self.rest), list[Step](), False
        if action == NUMBER["COUNTED"]:
            action, counted = next(self.rest), True
        while action == NUMBER["THEN"]:
            steps.append(self.step(next(self.rest)))
            action = next(self.rest)
        return (*steps, self.step(action)), counted

    def step(self, action: int) -> Step:
        if action < self.slots.first_relation:
            raise FormError(f"{self.slots.name(action)} is no step of a path")
        return self.slots.step(action)

    def value(self) -> forms.Literal:
        action = next(self.rest)
        if not self.slots.first_literal <= action < self.slots.first_relation:
            raise FormError(f"{self.slots.name(action)} is no literal")
        return self.slots.literals[action - self.slots.first_literal]


def _nested(name: str, lines: list[list[int]]) -> list[int]:
    actions = lines[-1]
    for line in reversed(lines[:-1]):
        actions = [NUMBER[name], *line, *actions]
    return actions
