"""What OWL's class expressions say of the classes that have names: `hasTopping some X` is a fact about a class."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

PREDICATES = (
    "subClassOf", "equivalentClass", "onProperty", "someValuesFrom", "allValuesFrom", "hasValue", "onClass",
    "minCardinality", "minQualifiedCardinality", "cardinality", "qualifiedCardinality", "unionOf", "intersectionOf",
    "complementOf", "disjointWith",
)  # fmt: skip
"""Predicates of which `facts` takes the pairs, by their names in OWL and RDFS."""

DEPTH = 20
"""Levels of expressions in expressions."""

Pairs = Mapping[str, Sequence[tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class Lists:
    """RDF lists, by their nodes."""

    first: Mapping[int, int]
    rest: Mapping[int, int]
    nil: int

    def members(self, node: int, depth: int = 0) -> list[int]:
        """The members in order, those of lists in lists too; a list that leads back to itself ends there."""
        members: list[int] = []
        seen = set()
        while node in self.first and node not in seen:
            seen.add(node)
            member = self.first[node]
            nested = member in self.first and depth < DEPTH
            members += self.members(member, depth + 1) if nested else [member]
            node = self.rest.get(node, self.nil)
        return members


def facts(
    pairs: Pairs, lists: Lists, anonymous: set[int], subclass: int, kind: int
) -> Iterator[tuple[int, int, int, str, str]]:
    """(class, relation, class or thing, "about classes", reason) of every named class.

    `some`, a value, and a cardinality of a class make a fact; `only` makes none by itself.  Where classes have such
    facts, each is also an instance of those that it is stated to be under, as they are what one asks for.
    subclass, kind: the relations of a class with those above it and of an instance with its type, -1 for none.
    """
    classes = _Classes(pairs, lists, anonymous)
    results = []
    for subject, expressions in sorted(classes.above.items()):
        for expression in expressions:
            for relation, object_, reason in classes.stated(expression):
                results.append((subject, subclass if relation is None else relation, object_, reason))
    described = any(relation != subclass for _, relation, _, _ in results)
    for first, second in pairs["equivalentClass"]:
        if second not in anonymous and first not in anonymous:
            results += [(first, subclass, second, "equivalent class"), (second, subclass, first, "equivalent class")]
    results += [(subject, subclass, definition, "meets the definition") for subject, definition in classes.defined()]
    if described:
        results += [(subject, kind, above, "a kind of") for subject in sorted(classes.named)
                    for above in sorted(classes.named[subject])]  # fmt: skip
    for subject, relation, object_, reason in results:
        if relation >= 0 and subject != object_:
            yield subject, relation, object_, "about classes", reason


class _Classes:
    """The hierarchy and the expressions of classes."""

    def __init__(self, pairs: Pairs, lists: Lists, anonymous: set[int]) -> None:
        self.lists, self.anonymous = lists, anonymous
        self.part = {name: dict(pairs[name]) for name in PREDICATES}
        self.above: dict[int, list[int]] = defaultdict(list)
        self.named: dict[int, set[int]] = defaultdict(set)
        for name in ("subClassOf", "equivalentClass"):
            for subject, object_ in pairs[name]:
                if subject not in anonymous:
                    self.above[subject].append(object_)
        for subject, expressions in self.above.items():
            for expression in expressions:
                self.named[subject] |= {o for r, o, _ in self.stated(expression) if r is None}
                if expression not in anonymous:
                    self.named[subject].add(expression)
        self.disjoint: dict[int, set[int]] = defaultdict(set)
        for first, second in pairs["disjointWith"]:
            self.disjoint[first].add(second)
            self.disjoint[second].add(first)
        self.definitions = [
            (subject, self._conditions(node))
            for subject, node in pairs["equivalentClass"]
            if node in anonymous and subject not in anonymous
        ]
        self._closures: dict[int, frozenset[int]] = {}

    def stated(self, node: int, depth: int = 0) -> Iterator[tuple[int | None, int, str]]:
        """(relation, class or thing, reason) that an expression states of what it holds."""
        if node not in self.anonymous or depth > DEPTH:
            return
        for member in self._members("intersectionOf", node):
            if member in self.anonymous:
                yield from self.stated(member, depth + 1)
            else:
                yield None, member, "part of a definition"
        relation = self.part["onProperty"].get(node)
        if relation is None or relation in self.anonymous:
            return
        counted = any(node in self.part[name] for name in PREDICATES if name.endswith("ardinality"))
        for name, reason in (("someValuesFrom", "some"), ("hasValue", "value"), ("onClass", "number of")):
            value = self.part[name].get(node)
            if value is not None and (name != "onClass" or counted):
                for member in self._conjuncts(value):
                    yield relation, member, f"restriction: {reason}"

    def defined(self) -> Iterator[tuple[int, int]]:
        """(class, defined class) where the restrictions of a class meet every condition of a definition."""
        for subject in sorted(self.above):
            for definition, conditions in self.definitions:
                if definition not in self.closure(subject) and all(self._meets(subject, node) for node in conditions):
                    yield subject, definition

    def closure(self, node: int) -> frozenset[int]:
        """A class and the named classes above it."""
        if node not in self._closures:
            seen, waiting = {node}, [node]
            while waiting:
                for other in self.named.get(waiting.pop(), ()):
                    if other not in seen:
                        seen.add(other)
                        waiting.append(other)
            self._closures[node] = frozenset(seen)
        return self._closures[node]

    def _members(self, name: str, node: int) -> list[int]:
        head = self.part[name].get(node)
        return [] if head is None else self.lists.members(head)

    def _conjuncts(self, node: int) -> list[int]:
        """The named classes or things that a filler surely is."""
        return [n for n in self._members("intersectionOf", node) if n not in self.anonymous] or (
            [] if node in self.anonymous else [node]
        )

    def _conditions(self, node: int) -> list[int]:
        return self._members("intersectionOf", node) or [node]

    def _alternatives(self, node: int) -> list[int] | None:
        """The named classes of a union or of a single class; None where an expression is among them."""
        members = self._members("unionOf", node) or [node]
        return None if any(member in self.anonymous for member in members) else members

    def _restrictions(self, subject: int) -> Iterator[tuple[int, str, int]]:
        """(relation, some or only, filler) of a class and of those above it."""
        for node in self.closure(subject):
            for expression in self.above.get(node, ()):
                for part in self._conditions(expression):
                    relation = self.part["onProperty"].get(part)
                    for name in ("someValuesFrom", "allValuesFrom"):
                        if relation is not None and part in self.part[name]:
                            yield relation, name, self.part[name][part]

    def _meets(self, subject: int, condition: int) -> bool:
        """Whether a class surely falls under an expression; False where that cannot be told."""
        if condition not in self.anonymous:
            return condition in self.closure(subject)
        negated = self.part["complementOf"].get(condition)
        some = self.part["someValuesFrom"].get(condition if negated is None else negated)
        relation = self.part["onProperty"].get(condition if negated is None else negated)
        if relation is None:
            return False
        own = [(name, filler) for r, name, filler in self._restrictions(subject) if r == relation]
        if negated is not None and some is not None:
            refused = self._alternatives(some)
            return refused is not None and any(
                all(self._apart(member, other) for member in members for other in refused)
                for name, filler in own
                if name == "allValuesFrom" and (members := self._alternatives(filler)) is not None
            )
        wanted = self._alternatives(some if some is not None else self.part["allValuesFrom"].get(condition, condition))
        if wanted is None or negated is not None:
            return False
        kind = "someValuesFrom" if some is not None else "allValuesFrom"
        return any(
            all(not self.closure(member).isdisjoint(wanted) for member in members)
            for name, filler in own
            if name == kind and (members := self._alternatives(filler)) is not None
        )

    def _apart(self, first: int, second: int) -> bool:
        """Whether nothing is of both classes."""
        return any(not self.disjoint[above].isdisjoint(self.closure(second)) for above in self.closure(first))
