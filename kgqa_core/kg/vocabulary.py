"""IRIs that readers, stores and exports share."""

from __future__ import annotations

LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
ALIAS = "http://www.w3.org/2004/02/skos/core#altLabel"
DESCRIPTION = "http://schema.org/description"
RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"

XSD = "http://www.w3.org/2001/XMLSchema#"
STRING = XSD + "string"
ANY_URI = XSD + "anyURI"

WIKIBASE = "http://wikiba.se/ontology#"
WIKIDATA_ENTITY = "http://www.wikidata.org/entity/"
