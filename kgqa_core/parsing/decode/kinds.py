"""What a node of a form may be, as `logic.typed` infers it, in bits: types and dimensions of a schema are one bit each.

`typed` says why a form cannot have an answer; a decoder asks the same thousands of times a second, and wants no words.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

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
        self._types = {key: 1 << place for place, key in enumerate(sorted(types))}
        self._dimensions = {key: 1 << len(types) + place for place, key in enumerate(sorted(dimensions))}
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
        found = measure(literal)
        return Kind(self.dimension(TEXT if found is None else found.dim))

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
