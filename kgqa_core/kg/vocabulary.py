"""IRIs that readers, stores and exports share."""

from __future__ import annotations

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
