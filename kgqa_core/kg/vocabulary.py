"""IRIs that readers, stores and exports share, and which keys are no names."""

from __future__ import annotations

import re

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
SKOS = "http://www.w3.org/2004/02/skos/core#"
OWL = "http://www.w3.org/2002/07/owl#"
XSD = "http://www.w3.org/2001/XMLSchema#"
WIKIBASE = "http://wikiba.se/ontology#"
WIKIDATA = "http://www.wikidata.org/"
FREEBASE = "http://rdf.freebase.com/ns/"

LABEL = RDFS + "label"
ALIAS = SKOS + "altLabel"
HIDDEN_ALIAS = SKOS + "hiddenLabel"
DESCRIPTION = "http://schema.org/description"
RDF_TYPE = RDF + "type"
STRING = XSD + "string"
ANY_URI = XSD + "anyURI"
WIKIDATA_ENTITY = WIKIDATA + "entity/"

OPAQUE = re.compile(
    r"^(_:.*|(.*[/#])?\.well-known/genid/.*|(https?://rdf\.freebase\.com/ns/)?/?[mg][./]0?[0-9a-z_]+"
    r"|(.*[/#:])?[QPL][1-9][0-9]*(-[FS][0-9]+)?|(.*[/#:])?[0-9]+"
    r"|(.*[/:])?[QPLqpl]?([1-9][0-9]*[-$])?[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})$"
)
"""Keys that name nothing in words: numbers, ids of Wikidata and Freebase, blank nodes, statements."""

_PROPERTIES = (
    *("ObjectProperty", "DatatypeProperty", "AnnotationProperty", "OntologyProperty", "FunctionalProperty"),
    *("InverseFunctionalProperty", "SymmetricProperty", "AsymmetricProperty", "TransitiveProperty"),
    *("ReflexiveProperty", "IrreflexiveProperty", "DeprecatedProperty"),
)
PROPERTY_TYPES = frozenset({RDF + "Property", *(OWL + name for name in _PROPERTIES)})
"""Types whose instances are relations."""

CONSTRUCT_TYPES = frozenset(
    {OWL + name for name in ("Ontology", "Restriction", "AllDifferent", "AllDisjointClasses", "AllDisjointProperties",
                             "Axiom", "Annotation", "NegativePropertyAssertion", "DataRange")}
    | {RDF + "List", RDFS + "ContainerMembershipProperty"}
)  # fmt: skip
"""Types whose instances state something about others and are no things."""

THING_TYPES = frozenset(
    {OWL + name for name in ("Class", "DeprecatedClass", "Thing", "NamedIndividual")}
    | {RDFS + name for name in ("Class", "Resource", "Datatype", "Literal")}
)
"""Types that tell nothing about a thing."""

PROPERTY_AXIOMS = (
    (SKOS + "broader", "inverse of", SKOS + "narrower"),
    (SKOS + "broadMatch", "inverse of", SKOS + "narrowMatch"),
    (SKOS + "hasTopConcept", "inverse of", SKOS + "topConceptOf"),
    *((SKOS + name, "symmetric", SKOS + name) for name in ("related", "relatedMatch", "closeMatch", "exactMatch")),
)
"""What SKOS says of its relations."""

RELATION_NAMES = {SKOS + "broader": "is narrower than", SKOS + "narrower": "is broader than",
                  "http://schema.org/addressLocality": "city"}  # fmt: skip
"""What relations are called whose keys say it the wrong way round, or in words that nobody uses."""

LANGUAGES = dict(pair.split("=") for pair in (
    "ar=Arabic bg=Bulgarian ca=Catalan cs=Czech da=Danish de=German el=Greek en=English es=Spanish et=Estonian "
    "eu=Basque fa=Persian fi=Finnish fr=French he=Hebrew hi=Hindi hr=Croatian hu=Hungarian id=Indonesian it=Italian "
    "ja=Japanese ko=Korean la=Latin lt=Lithuanian lv=Latvian nb=Norwegian nl=Dutch nn=Norwegian no=Norwegian "
    "pl=Polish pt=Portuguese ro=Romanian ru=Russian sk=Slovak sl=Slovene sr=Serbian sv=Swedish th=Thai tr=Turkish "
    "uk=Ukrainian ur=Urdu vi=Vietnamese zh=Chinese"
).split())  # fmt: skip
"""Languages by their tags."""
