"""IRIs that readers, stores and exports share, and which keys are no names."""

from __future__ import annotations

import re

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
SKOS = "http://www.w3.org/2004/02/skos/core#"
XSD = "http://www.w3.org/2001/XMLSchema#"
WIKIBASE = "http://wikiba.se/ontology#"
WIKIDATA = "http://www.wikidata.org/"
FREEBASE = "http://rdf.freebase.com/ns/"

LABEL = RDFS + "label"
ALIAS = SKOS + "altLabel"
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
