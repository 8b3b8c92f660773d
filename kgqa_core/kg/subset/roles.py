"""What the statements of a relation are for in a subset, and the syntaxes whose lines are kept as they stand.

NAME: labels, aliases, descriptions, and what Wikidata's RDF says of a property: kept for every entity and relation of
the subset.  TYPE: kept for every entity, and an edge too.  INSTANCES: Freebase's `type.type.instance`, a type of its
object.  EDGE: all others.  ATTRIBUTE: of Wikidata's RDF what is no property (sameAs): kept with its subject, never
followed.  DROP: what the reader leaves out anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError
from kgqa_core.kg.formats.freebase import INSTANCE, PREDICATES
from kgqa_core.kg.formats.wikidata.rdf_terms import ANY as WIKIDATA_ANY
from kgqa_core.kg.formats.wikidata.rdf_terms import NAME as WIKIDATA_NAME
from kgqa_core.kg.formats.wikidata.rdf_terms import PART, PROPERTY_TYPE, VALUE, WD
from kgqa_core.kg.formats.wikidata.rdf_terms import TYPE as WIKIDATA_TYPE
from kgqa_core.kg.formats.wikidata.rdf_terms import predicate as wikidata_predicate
from kgqa_core.kg.subset.codes import Array, CodeSet, distinct
from kgqa_core.kg.vocabulary import FREEBASE

NAME, TYPE, INSTANCES, EDGE, ATTRIBUTE, DROP = range(6)

Role = tuple[int, str]
"""What a relation is for, and its key."""


def role_of(key: str, options: KgOptions) -> Role:
    """The role of a relation by its key, as `kg.*_predicates` have it."""
    names = (*options.label_predicates, *options.alias_predicates, *options.description_predicates)
    return (NAME if key in names else TYPE if key in options.type_predicates else EDGE), key


def _freebase_role(key: str, options: KgOptions) -> Role:
    if key == INSTANCE:
        return INSTANCES, key
    return role_of(PREDICATES.get(key, key), options)[0], key


def _wikidata_role(iri: str, options: KgOptions) -> Role:
    what, key = wikidata_predicate(iri)
    if what == VALUE and "/prop/direct/" in iri:
        return role_of(key, options)
    if what == WIKIDATA_NAME or iri == PROPERTY_TYPE:
        return NAME, key
    if what in (WIKIDATA_ANY, WIKIDATA_TYPE):
        return (NAME if role_of(key, options)[0] == NAME else ATTRIBUTE), key
    if what in (VALUE, PART) or "/prop/P" in iri:
        raise KgInputError(
            f"the dump has statement nodes (<{iri}>), which stand between two entities; take the truthy N-Triples or "
            "the JSON dump, which has qualifiers and ranks too"
        )
    return DROP, key


@dataclass(frozen=True, slots=True)
class LineSyntax:
    """N-Triples whose lines are kept as they stand.

    terms, predicates: prefixes removed from keys.  role: of a predicate, its prefix removed.  entities_only: an object
    with a colon is a literal (Wikidata's media files and URLs).
    """

    terms: tuple[str, ...]
    predicates: tuple[str, ...]
    role: Callable[[str, KgOptions], Role]
    entities_only: bool = False


SYNTAXES = {
    "ntriples": LineSyntax((), (), role_of),
    "freebase": LineSyntax((FREEBASE,), (FREEBASE,), _freebase_role),
    "wikidata-rdf": LineSyntax((WD,), (), _wikidata_role, entities_only=True),
}
"""By the name of the reader, where the file is N-Triples."""


class Relations:
    """Relations by number, in the order in which they were met.

    role: of a key of the source.  wanted: keys that are followed and kept; all when empty.
    """

    def __init__(self, role: Callable[[str], Role], wanted: Iterable[str] = ()) -> None:
        self._role, self._wanted = role, frozenset(wanted)
        self._numbers: dict[int, int] = {}
        self._set = CodeSet(distinct([]))
        self._by_index = np.zeros(0, dtype=np.int64)
        self.keys: list[str] = []
        self.roles: list[int] = []
        self.allowed: list[bool] = []

    def add(self, source_key: str) -> int:
        """The number of a relation of the source."""
        role, key = self._role(source_key)
        self.keys.append(key)
        self.roles.append(role)
        self.allowed.append(not self._wanted or key in self._wanted or source_key in self._wanted)
        return len(self.keys) - 1

    def numbers(self, codes: np.ndarray, text: Callable[[int], str]) -> Array:
        """The number of each relation, by the codes of their source's keys.  text: the key of a row."""
        indexes = self._set.find(codes)
        absent = np.flatnonzero(indexes < 0)
        if len(absent):
            new, first = np.unique(codes[absent], return_index=True)
            for code, row in zip(new.tolist(), absent[first].tolist(), strict=True):
                self._numbers[code] = self.add(text(row))
            self._set = CodeSet(distinct([np.array(list(self._numbers), dtype=np.uint64)]))
            self._by_index = np.array([self._numbers[code] for code in self._set.codes.tolist()], dtype=np.int64)
            indexes = self._set.find(codes)
        return self._by_index[indexes]
