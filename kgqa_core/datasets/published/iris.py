"""Keys of the IRIs that question sets write, and the entities that their SPARQL queries name."""

from __future__ import annotations

import re

from kgqa_core.kg.vocabulary import FREEBASE, WIKIDATA, WIKIDATA_ENTITY

DBPEDIA = "http://dbpedia.org/resource/"

PREFIXES = {"wd": WIKIDATA_ENTITY, "dbr": DBPEDIA, "res": DBPEDIA, "ns": FREEBASE}
"""Prefixes that data sets use, often without a declaration."""

_PREFIX = re.compile(r"\bPREFIX\s+([\w-]*)\s*:\s*<([^<>\s]*)>", re.IGNORECASE)
_QUOTED = re.compile(r'"(?:[^"\\\n]|\\.)*"|' + r"'(?:[^'\\\n]|\\.)*'(?![\w])")
_NAME = re.compile(r"<([^<>\s]+)>|(?<![\w?$:/])([A-Za-z][\w-]*)?:([\w.%()',!-]*[\w)])")
_ENTITY = re.compile(rf"{re.escape(WIKIDATA_ENTITY)}Q\d+|{re.escape(DBPEDIA)}\S+|{re.escape(FREEBASE)}[mg]\.[0-9a-z_]+")


def key_of_iri(iri: str) -> str:
    """The key that a graph has for an IRI: `Q42`, `m.02mjmr`, and others whole.

    >>> key_of_iri("http://www.wikidata.org/entity/Q42")
    'Q42'
    """
    for space in (WIKIDATA_ENTITY, WIKIDATA + "prop/direct/", WIKIDATA + "wiki/", FREEBASE):
        for start in (space, space.replace("http://", "https://", 1)):
            if iri.startswith(start) and re.fullmatch(r"[\w.]+", iri[len(start) :]):
                return iri[len(start) :]
    return iri


def entities_of_sparql(text: str) -> list[str]:
    """Keys of the Wikidata items, DBpedia resources and Freebase entities that a query names, in order, each once.

    >>> entities_of_sparql("SELECT ?a WHERE { wd:Q142 wdt:P36 ?a }")
    ['Q142']
    """
    prefixes = PREFIXES | {name: iri for name, iri in _PREFIX.findall(text)}
    body = _QUOTED.sub(" ", _PREFIX.sub(" ", text))
    results: dict[str, None] = {}
    for whole, prefix, local in _NAME.findall(body):
        iri = whole or (prefixes[prefix] + local if prefix in prefixes else "")
        if _ENTITY.fullmatch(iri):
            results[key_of_iri(iri)] = None
    return list(results)
