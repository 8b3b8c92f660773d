"""A question as the search reads it, the candidate forms that it finds, and what a form is and has."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgqa_core.logic.forms import (
    Aggregate,
    Arg,
    Class,
    Compare,
    CompareTo,
    Entity,
    Form,
    Greater,
    Holds,
    Join,
    Literal,
    Minus,
    Nth,
    Qualifier,
    Share,
    children,
    elements,
    span_of,
    with_children,
)
from kgqa_core.logic.measures import measure
from kgqa_core.logic.memory import Ints, outside
from kgqa_core.logic.normalise import normalise
from kgqa_core.logic.result import Row
from kgqa_core.search.graph import LabelGraph
from kgqa_core.search.operations import KINDS as OPERATIONS
from kgqa_core.search.operations import operation_of

KINDS = (*OPERATIONS, "value")
"""Those of the classifier of operations, and `value`: what has a number or date that compares with one of the text."""

LEAST_KIND = math.log(0.004)
MOST_FORMS = 16_384
"""Forms whose parts are held."""
_nodes: dict[int, tuple[Form, ...]] = {}
OR = re.compile(r"\bor\b|或", re.IGNORECASE)
"""What a question says that wants what either of two conditions holds of."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A mention of a question.  entities: (id, key, rho) of each entity that it may mean, best first.

    mention: its words, where it was linked.  names: of the entities.
    """

    word: str
    entities: tuple[tuple[int, str, float], ...]
    mention: str = ""
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LabelQuery:
    """A question as candidates are made for it.

    text: with a slot's word for each mention and `n` for each value.  slots: in order of the text.  types: (place of
    the type in the graph, confidence).  place: of a ranking.  values: numbers and dates of the text.  strange: how many
    of its words are no usual English and in no label.  cut: whether a mention stands beside a word that looks like a
    part of its name, as in `Lake Victoria` where *Victoria* was linked.  dropped: sum of the linker's confidences in
    mentions that this reading takes for plain words; dropped_words: these words.
    """

    text: str
    slots: tuple[Slot, ...] = ()
    types: tuple[tuple[int, float], ...] = ()
    place: int | None = None
    values: tuple[Literal, ...] = ()
    strange: int = 0
    cut: bool = False
    dropped: float = 0.0
    dropped_words: frozenset[str] = frozenset()


@dataclass(slots=True)
class Candidate:
    """A form with what it finds.

    kind: place in KINDS.  nodes: what it denotes, None for a value.  value: of a count, or of a yes/no.  ways: that it
    uses.  slots: numbers of the mentions that it uses.  types: places of the types that it names or that all of its
    members have.  score: mean likeness of its ways, for the order in which candidates are cut.  missing: it states what
    the graph has no fact of.  road: which part of the system proposed it.
    table: rows of one that is no set.
    """

    form: Form
    kind: int
    nodes: Ints | None
    value: float | bool | None
    ways: tuple[int, ...]
    slots: tuple[int, ...]
    types: tuple[int, ...]
    rho: float
    score: float
    missing: bool = False
    road: str = "labels"
    table: tuple[Row, ...] = ()

    @property
    def finds_nothing(self) -> bool:
        """Whether it is an empty set, or counts none."""
        if self.nodes is not None:
            return not len(self.nodes)
        return self.value == 0 and not isinstance(self.value, bool)


def kind_of(form: Form) -> str:
    """The operation of a form, one of KINDS; that a path does not lead back to where it starts is none."""
    if isinstance(form, Minus) and isinstance(form.without, Entity) and form.without.key in elements(form.of).entities:
        return kind_of(form.of)
    if isinstance(form, (Aggregate, Share)):
        return "best" if isinstance(form, Aggregate) and form.pick else "count"
    if isinstance(form, Join) and isinstance(form.of, (Join, Minus)):
        return kind_of(form.of)
    return "value" if _compares(form) and not isinstance(form, Holds) else operation_of(form, ()).kind


def computations(form: Form) -> frozenset[str]:
    """What a form computes of a set, as `search.words.AGGREGATES` names it."""
    if isinstance(form, Share):
        return frozenset(("share",))
    if not isinstance(form, Aggregate):
        bounds = (node.one for node in nodes_of(form) if isinstance(node, CompareTo))
        return frozenset(one.how for one in bounds if isinstance(one, Aggregate))
    return frozenset((form.how, "group") if (form.by and not form.pick) or form.how == "values" else (form.how,))


def lacks(form: Form) -> bool:
    """Whether a form leaves out what has a relation at all."""
    without = form.without if isinstance(form, Minus) else None
    return isinstance(without, Compare) and without.counted and without.op == "ge"


def _compares(form: Form) -> bool:
    """Whether a form compares with a number or a date."""
    own = isinstance(form, (Compare, CompareTo)) or (
        isinstance(form, Join) and isinstance(form.of, Literal) and measure(form.of) is not None
    )
    parts = (form.of,) if isinstance(form, Minus) and lacks(form) else children(form)
    return own or any(_compares(part) for part in parts)


def nodes_of(form: Form) -> tuple[Form, ...]:
    """A form and every form in it, each before those in it; those of forms that were asked for lately from memory."""
    known = _nodes.get(id(form))
    if known is None or known[0] is not form:
        found = [form]
        for part in children(form):
            found += nodes_of(part)
        if len(_nodes) >= MOST_FORMS:
            _nodes.clear()
        known = _nodes[id(form)] = tuple(found)
    return known


def classes_of(nodes: Iterable[Form], graph: LabelGraph) -> set[int]:
    """Places of the types among nodes of forms; -1 for one that the graph does not have."""
    return {graph.type_of_key.get(node.key, -1) for node in nodes if isinstance(node, Class)}


def has_value(node: Form) -> bool:
    """Whether a node of a form is a value, or compares with one, also on qualifiers."""
    own = isinstance(getattr(node, "value", node), Literal)
    return own or any(where.op not in ("current", "first", "last") for where in getattr(node, "where", ()))


def numbers_of(values: Sequence[Literal]) -> list[int]:
    """Of each value of a text the number of the word for it: one word may be a number with a unit, without, or a year.

    >>> numbers_of([Literal("2019", f"{XSD}decimal"), Literal("2019", f"{XSD}gYear"), Literal("5", f"{XSD}decimal")])
    [0, 0, 1]
    """
    found: list[int] = []
    for n, value in enumerate(values):
        before = values[n - 1] if n else None
        same = before is not None and (value.datatype.endswith("gYear") or (before.unit and not value.unit))
        found.append(found[-1] + (not same) if found else 0)
    return found


def has_span(form: Form) -> bool:
    """Whether a form measures by the time from one date to another."""
    return any(span_of(getattr(node, "path", ())) for node in nodes_of(form))


def texts_of_values(form: Form) -> frozenset[str]:
    """The texts of the values that a form compares with, also on qualifiers."""
    nodes = nodes_of(form)
    own = (getattr(node, "value", node) for node in (*nodes, *(w for n in nodes for w in getattr(n, "where", ()))))
    return frozenset(one.text for one in own if isinstance(one, Literal))


def is_false(node: Form) -> bool:
    """Whether a node of a form is the boolean false, or *no*."""
    text = node.text if isinstance(node, Literal) else node.key if isinstance(node, Entity) else ""
    return text.lower() in ("false", "no")


def best_of(form: Form) -> str | None:
    """Whether a form wants the largest or the smallest, None where it ranks nothing."""
    if isinstance(form, Aggregate) and form.pick:
        return form.pick
    return next((node.best for node in nodes_of(form) if isinstance(node, (Arg, Nth, Greater))), None)


def among(some: Ints, members: Ints) -> NDArray[np.bool_]:
    """Of some nodes whether each is among members, which are ascending."""
    if not len(members):
        return np.zeros(len(some), dtype=np.bool_)
    places = members.searchsorted(some)
    found: NDArray[np.bool_] = members[np.minimum(places, len(members) - 1)] == some
    return found


def inside(some: Ints, members: Ints) -> bool:
    """Whether all of some nodes are among members, which are ascending."""
    return bool(len(members) and among(some, members).all())


def contains(node: int, members: Ints) -> bool:
    """Whether a node is among members, which are ascending."""
    place = int(members.searchsorted(node))
    return place < len(members) and int(members[place]) == node


def types_in_form(form: Form, nodes: Ints | None, query: LabelQuery, graph: LabelGraph) -> tuple[int, ...]:
    """Places of the types that a form names or passes, and of those of the question whose members it finds, ascending.

    nodes: what the form denotes, None for a value.
    """
    found = _types_named(form, graph)
    if nodes is not None and len(nodes):
        found |= {place for place, _ in query.types if inside(nodes[:20], graph.members(place))}
    return tuple(sorted(found))


def _types_named(form: Form, graph: LabelGraph) -> set[int]:
    """Places of the types that a form names, those above them, and those that its relations lead from and to."""
    found: set[int] = set()
    for node in nodes_of(form):
        if isinstance(node, Class) and node.key in graph.type_of_key:
            place = graph.type_of_key[node.key]
            found |= {place, *graph.supers.get(place, ())}
        for step in (*getattr(node, "path", ()), *getattr(node, "by", ())):
            relation = graph.memory.relation_ids[step.relation]
            found |= {int(graph.head_type[relation]), int(graph.tail_type[relation])}
    return found - {-1}


def ways_of(form: Form, graph: LabelGraph) -> tuple[int, ...]:
    """The ways of a form, of each path those first that are nearest to its mention."""
    found = [way for part in children(form) for way in ways_of(part, graph)]
    own = [graph.directed_relation(step) for step in getattr(form, "path", ())]
    return (*found, *(reversed([graph.inverse(way) for way in own]) if isinstance(form, Join) else own))


def stated_form(best: Candidate, graph: LabelGraph) -> Form:
    """The form of a candidate, which says what its paths leave out: *who has the boss of x* does not ask for x."""
    if outside(best.form):
        return best.form
    plain = graph.memory.execute(best.form)
    same = best.nodes is not None and list(plain.nodes) == best.nodes.tolist()
    same |= best.value is not None and plain.value == best.value
    return best.form if same or best.table else _stated(normalise(best.form), graph)


def _stated(form: Form, graph: LabelGraph) -> Form:
    """A form that finds by itself what `PathGraph` finds."""
    if not isinstance(form, Join) or not isinstance(form.of, (Entity, Literal)) or form.where:
        return with_children(form, lambda part: _stated(part, graph))
    found: Form = form.of
    start = graph.memory.nodes(form.of)
    for index, step in enumerate(reversed(form.path)):
        found = Join((step, *found.path), found.of) if isinstance(found, Join) else Join((step,), found)
        if index and among(start, graph.memory.nodes(found)).any():
            found = Minus(found, form.of)
    return found


def slots_of(form: Form, query: LabelQuery) -> tuple[int, ...]:
    """Numbers of the mentions that a form names an entity or a text of."""
    nodes = nodes_of(form)
    keys = {
        node.key if isinstance(node, Entity) else node.text for node in nodes if isinstance(node, (Entity, Literal))
    }
    return tuple(n for n, slot in enumerate(query.slots) if any(key in keys for _, key, _ in slot.entities))


def labels_of(form: Form, graph: LabelGraph) -> list[str]:
    """The labels of the relations and types of a form."""
    found = []
    for node in nodes_of(form):
        if isinstance(node, Class) and node.key in graph.type_of_key:
            found.append(graph.type_labels[graph.type_of_key[node.key]])
        keys = [step.relation for step in getattr(node, "path", ())]
        keys += [where.relation for where in getattr(node, "where", ())]
        keys += [node.relation] if isinstance(node, Qualifier) else []
        found += [graph.labels[graph.memory.relation_ids[key]] for key in keys]
    return found


def by_key(slots: Sequence[Slot]) -> Mapping[str, str]:
    """The word of each entity's slot, by key; an entity that two slots may mean has the first one's."""
    found: dict[str, str] = {}
    for slot in slots:
        for _, key, _ in slot.entities:
            found.setdefault(key, slot.word)
    return found
