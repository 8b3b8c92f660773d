"""Which statements of a batch belong to a subset."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kgqa_core.kg.subset.codes import Array, CodeSet
from kgqa_core.kg.subset.edges import EdgeBlock
from kgqa_core.kg.subset.hops import Reach
from kgqa_core.kg.subset.read import StatementColumns
from kgqa_core.kg.subset.roles import ATTRIBUTE, EDGE, INSTANCES, NAME, TYPE, Relations


@dataclass(frozen=True)
class KeepRule:
    """What is kept of a dump.

    names: entities whose names are kept: those reached, their types, what qualifiers and units name.  relations: codes
    of the relations' keys.  numbers: relation key → number in the whole dump.  languages: of names; all when empty.
    """

    reach: Reach
    names: CodeSet
    relations: CodeSet
    numbers: dict[str, int]
    languages: frozenset[str] = frozenset()

    def speaks(self, language: str) -> bool:
        """Whether names of a language are kept; without one they are."""
        return not self.languages or not language or language.casefold() in self.languages


@dataclass
class PartCounts:
    """What a pass has kept of a file.

    hits: which of `KeepRule.names` are an end of a kept statement.  used: numbers of the relations of kept statements.
    """

    hits: Array
    used: set[int] = field(default_factory=set)
    counts: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("lines", "edges", "literals", "types", "names"), 0)
    )


@dataclass(frozen=True)
class Masks:
    """Rows of a batch that are kept.  facts: statements, types among them.  names: of entities and of relations."""

    facts: Array
    names: Array
    relation_names: Array


class Numbering:
    """Numbers of a file's relations in the whole dump."""

    def __init__(self, relations: Relations, wanted: KeepRule) -> None:
        self._relations, self._wanted = relations, wanted
        self._numbers = np.zeros(0, dtype=np.int64)

    def of(self, local: Array) -> Array:
        """The number in the whole dump of each relation."""
        if len(self._numbers) < len(self._relations.keys):
            self._numbers = np.array([self._wanted.numbers[key] for key in self._relations.keys], dtype=np.int64)
        numbers: Array = self._numbers[local]
        return numbers


def decide(
    columns: StatementColumns, relations: Relations, numbering: Numbering, wanted: KeepRule, part_counts: PartCounts
) -> Masks:
    """What of a batch is kept; it is counted in `part_counts`."""
    roles = np.array(relations.roles, dtype=np.int8)[columns.relation]
    allowed = np.array(relations.allowed, dtype=np.bool_)[columns.relation]
    typed = np.isin(roles, (TYPE, INSTANCES))
    block = EdgeBlock(
        columns.subject,
        columns.object,
        numbering.of(columns.relation),
        columns.stated & allowed & (typed | (roles == EDGE)),
    )
    facts = wanted.reach.keeps(block)
    types = typed & columns.stated & (columns.object != 0) & wanted.reach.reached.has(columns.subject) & ~facts
    facts |= types
    facts |= (roles == ATTRIBUTE) & wanted.reach.expanded.has(columns.subject)
    note_facts(columns.subject[facts], columns.object[facts], block.relation[facts], types[facts], wanted, part_counts)
    named = roles == NAME
    names = named & wanted.names.has(columns.subject)
    return Masks(facts, names, named & ~names & wanted.relations.has(columns.subject))


def note_facts(
    subject: Array, thing: Array, relation: Array, types: Array, wanted: KeepRule, part_counts: PartCounts
) -> None:
    """Counts kept statements, their ends and their relations.  types: those that are kept as types only."""
    literal = thing == 0
    part_counts.counts["types"] += int(types.sum())
    part_counts.counts["literals"] += int(literal.sum())
    part_counts.counts["edges"] += int((~literal & ~types).sum())
    for ends in (subject, thing[~literal]):
        indexes = wanted.names.find(ends)
        part_counts.hits[indexes[indexes >= 0]] = True
    part_counts.used.update(np.unique(relation).tolist())
