"""Keys as IRIs of a SPARQL endpoint, and its terms as keys and as N-Triples."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kgqa_core.config import KgOptions
from kgqa_core.kg.formats.freebase import INSTANCE, PREDICATES
from kgqa_core.kg.formats.wikidata.rdf_terms import PROPERTY_TYPE
from kgqa_core.kg.vocabulary import FREEBASE, STRING, WIKIDATA, WIKIDATA_ENTITY

_ITEM = re.compile(r"[QPL][1-9][0-9]*(?:-[FS][0-9]+)?")
_MID = re.compile(r"[mg]\.[0-9a-z_]+")
_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:[^\x00-\x20<>\"{}|^`\\]*")
_FORBIDDEN = re.compile(r"[\x00-\x20<>\"{}|^`\\]")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"}


@dataclass(frozen=True)
class Dialect:
    """How an endpoint writes keys.

    entities, relations: what their IRIs begin with; empty where keys are whole IRIs.  key: what a key of an entity is.
    names, types: predicates, as IRIs.
    """

    name: str
    entities: str
    relations: str
    key: re.Pattern[str]
    names: tuple[str, ...]
    types: tuple[str, ...]
    not_followed: tuple[str, ...] = ()

    def entity_iri(self, key: str) -> str | None:
        """The IRI of an entity; None for a key that can be none here."""
        return self.entities + key if self.key.fullmatch(key) else None

    def relation_iri(self, key: str) -> str:
        """The IRI of a relation as predicate."""
        return key if "://" in key else self.relations + key

    def relation_key(self, iri: str) -> str:
        """The key of a predicate."""
        return iri.removeprefix(self.relations) if self.relations else iri

    def entity_key(self, term: dict[str, str]) -> str | None:
        """The key of a term that is an entity; None for literals, blank nodes and what Wikidata counts as literals."""
        if term["type"] != "uri" or not term["value"].startswith(self.entities):
            return None
        key = term["value"][len(self.entities) :]
        return key if self.name != "wikidata" or ":" not in key else None

    def is_entity(self, variable: str) -> str:
        """A condition in SPARQL: whether a variable is an entity."""
        if self.name != "wikidata":
            return f"isIRI({variable})"
        return f'STRSTARTS(STR({variable}), "{self.entities}")'

    def followed(self, variable: str) -> str:
        """A condition in SPARQL: whether a variable is a relation that may be followed."""
        if self.name == "wikidata":
            return f'STRSTARTS(STR({variable}), "{self.relations}")'
        return f"{variable} NOT IN ({', '.join(f'<{iri}>' for iri in (*self.names, *self.not_followed))})"


def dialect(name: str, options: KgOptions) -> Dialect:
    """The dialect `wikidata`, `freebase` or `iris`."""
    names = (*options.label_predicates, *options.alias_predicates, *options.description_predicates)
    names = tuple(iri for iri in names if "://" in iri)
    types = options.type_predicates
    if name == "wikidata":
        direct = WIKIDATA + "prop/direct/"
        properties = tuple(direct + key for key in types if _ITEM.fullmatch(key))
        return Dialect(name, WIKIDATA_ENTITY, direct, _ITEM, (*names, PROPERTY_TYPE), properties)
    if name == "freebase":
        freebase_keys = [FREEBASE + key for key, iri in PREDICATES.items() if iri in names]
        freebase_types = [FREEBASE + key for key, iri in PREDICATES.items() if iri in types]
        key = re.compile(r"[^\s<>\"{}|^`\\]+")
        return Dialect(
            name, FREEBASE, FREEBASE, key, (*names, *freebase_keys), tuple(freebase_types), (FREEBASE + INSTANCE,)
        )
    return Dialect(name, "", "", _IRI, names, tuple(iri for iri in types if "://" in iri))


def dialect_of_seeds(seeds: Sequence[str]) -> str:
    """The dialect that most keys are written in."""
    items = sum(bool(_ITEM.fullmatch(seed)) for seed in seeds)
    mids = sum(map(is_mid, seeds))
    return "wikidata" if items * 2 > len(seeds) else "freebase" if mids * 2 > len(seeds) else "iris"


def is_mid(key: str) -> bool:
    """Whether a key is an id of Freebase."""
    return _MID.fullmatch(key) is not None


def ntriples_term(term: dict[str, str], blank: str) -> str:
    """A term as N-Triples writes it.  blank: what the label of a blank node begins with."""
    value = term["value"]
    if term["type"] == "uri":
        return f"<{_FORBIDDEN.sub(lambda match: f'%{ord(match[0]):02X}', value)}>"
    if term["type"] == "bnode":
        return f"_:{blank}{re.sub('[^0-9A-Za-z]', 'x', value)}"
    text = "".join(_ESCAPES.get(character, character) for character in value)
    if language := term.get("xml:lang"):
        return f'"{text}"@{language}'
    datatype = term.get("datatype", STRING)
    return f'"{text}"' if datatype == STRING else f'"{text}"^^<{datatype}>'
