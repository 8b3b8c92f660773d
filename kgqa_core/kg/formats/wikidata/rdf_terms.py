"""What the predicates and types of Wikidata's RDF are for, and its keys in short.

Source: https://www.mediawiki.org/wiki/Wikibase/Indexing/RDF_Dump_Format
"""

from __future__ import annotations

import re

from kgqa_core.kg.vocabulary import LABEL, RDF_TYPE, SKOS, WIKIBASE, WIKIDATA
from kgqa_core.kg.vocabulary import WIKIDATA_ENTITY as WD

STATEMENT_NODE = "statement/"
"""Beginning of the keys of statement nodes, which are shortened as those of entities."""

VALUE_NODE = WIKIDATA + "value/"
PROP = WIKIDATA + "prop/"
NO_VALUE = PROP + "novalue/"
FULL_VALUE = PROP + "statement/value/"
FULL_QUALIFIER = PROP + "qualifier/value/"
SCHEMA = "http://schema.org/"
ONTOLEX = "http://www.w3.org/ns/lemon/ontolex#"
OWL = "http://www.w3.org/2002/07/owl#"

RANK = WIKIBASE + "rank"
PROPERTY_TYPE = WIKIBASE + "propertyType"
TIME, PRECISION, CALENDAR = WIKIBASE + "timeValue", WIKIBASE + "timePrecision", WIKIBASE + "timeCalendarModel"
AMOUNT, UNIT = WIKIBASE + "quantityAmount", WIKIBASE + "quantityUnit"

REFERENCES = "references"
SITELINKS = "sitelinks"
METADATA = "page metadata"
DECLARATIONS = "property declarations"
ENTITY_TYPES = "entity types"
VALUE_NODES = "value nodes"
NORMALISED = "normalised values"
STATEMENT_NODES = "parts of statement nodes"
"""Rules of what is left out, or was put together into statements."""

# What a predicate is for.
ANY, VALUE, LINK, QUALIFIER, PART, TYPE, NAME, RANKED, PAGE = range(9)
"""KEEP: a triple as it is.  VALUE: of a property (`wdt:`, `ps:`).  LINK: to a statement node.  QUALIFIER: `pq:`.  PART:
of statement and value nodes, for the assembly.  From TYPE on subject or object decide.  TYPE: rdf:type.  NAME: a label,
if its subject is an entity.  RANKED: a rank.  PAGE: about an article or a page.  From DROP on: a rule of RULES.
"""

DROP = 9
RULES = (REFERENCES, SITELINKS, METADATA, DECLARATIONS, ENTITY_TYPES, VALUE_NODES, NORMALISED, STATEMENT_NODES)

_SPACES = {
    "direct": VALUE,
    "": LINK,
    "statement": VALUE,
    "qualifier": QUALIFIER,
    "statement/value": PART,
    "qualifier/value": PART,
    "direct-normalized": DROP + RULES.index(NORMALISED),
    "statement/value-normalized": DROP + RULES.index(NORMALISED),
    "qualifier/value-normalized": DROP + RULES.index(NORMALISED),
    "reference": DROP + RULES.index(REFERENCES),
    "reference/value": DROP + RULES.index(REFERENCES),
    "reference/value-normalized": DROP + RULES.index(REFERENCES),
}
_PROPERTY = re.compile(re.escape(PROP) + r"(?:([a-z/-]+)/)?(P[1-9][0-9]*)\Z")

_NAMES = (
    LABEL,
    SKOS + "prefLabel",
    SCHEMA + "name",
    WIKIBASE + "lemma",
    ONTOLEX + "representation",
    SKOS + "definition",
)
_PARTS = (PROPERTY_TYPE, TIME, PRECISION, CALENDAR, AMOUNT, UNIT)
_PAGE = ("about", "inLanguage", "isPartOf")
_DROPPED = {
    REFERENCES: ("http://www.w3.org/ns/prov#wasDerivedFrom",),
    SITELINKS: (WIKIBASE + "badge", WIKIBASE + "wikiGroup"),
    METADATA: (
        *(SCHEMA + name for name in ("version", "dateModified", "softwareVersion")),
        *(WIKIBASE + name for name in ("statements", "sitelinks", "identifiers", "timestamp")),
        "http://creativecommons.org/ns#license",
        OWL + "imports",
    ),
    DECLARATIONS: (
        *(
            WIKIBASE + name
            for name in (
                *("claim", "directClaim", "directClaimNormalized", "statementProperty", "statementValue"),
                *("statementValueNormalized", "qualifier", "qualifierValue", "qualifierValueNormalized"),
                *("reference", "referenceValue", "referenceValueNormalized", "novalue"),
            )
        ),
        *(OWL + name for name in ("complementOf", "onProperty", "someValuesFrom")),
    ),
    VALUE_NODES: (
        *(WIKIBASE + name for name in ("timeTimezone", "quantityUpperBound", "quantityLowerBound")),
        *(
            WIKIBASE + name
            for name in ("quantityNormalized", "geoLatitude", "geoLongitude", "geoPrecision", "geoGlobe")
        ),
    ),
}
_PREDICATES = (
    dict.fromkeys(_NAMES, NAME)
    | dict.fromkeys(_PARTS, PART)
    | {SCHEMA + name: PAGE for name in _PAGE}
    | {RDF_TYPE: TYPE, RANK: RANKED}
    | {name: DROP + RULES.index(rule) for rule, names in _DROPPED.items() for name in names}
)

_TYPES = {
    **dict.fromkeys((WIKIBASE + "Statement", WIKIBASE + "BestRank"), STATEMENT_NODES),
    WIKIBASE + "Reference": REFERENCES,
    **{WIKIBASE + name + "Value": VALUE_NODES for name in ("Time", "Quantity", "Globecoordinate")},
    **{WIKIBASE + name: ENTITY_TYPES for name in ("Item", "Property", "Lexeme", "Form", "Sense", "MediaInfo")},
    **{ONTOLEX + name: ENTITY_TYPES for name in ("LexicalEntry", "Form", "LexicalSense")},
    SCHEMA + "Article": SITELINKS,
    **dict.fromkeys((SCHEMA + "Dataset", OWL + "Ontology"), METADATA),
    **{OWL + n: DECLARATIONS for n in ("ObjectProperty", "DatatypeProperty", "Class", "Restriction")},
}
TYPES = {name: DROP + RULES.index(rule) for name, rule in _TYPES.items()}
"""rdf:type's objects that are left out."""


def predicate(iri: str) -> tuple[int, str]:
    """What a predicate is for, and its key: `P31` for `wdt:P31`, `p:P31`, `ps:P31` and `pq:P31`; others stay whole."""
    match = _PROPERTY.match(iri)
    if match is not None and (match[1] or "") in _SPACES:
        what = _SPACES[match[1] or ""]
        return what, match[2] if what in (VALUE, LINK, QUALIFIER) else iri
    what = _PREDICATES.get(iri, ANY)
    return what, LABEL if what == NAME else iri


def looks_like_wikidata(text: str) -> bool:
    """Whether a text has predicates of Wikidata's RDF."""
    return PROP + "direct/" in text or PROP + "statement/" in text or "<" + WD in text
