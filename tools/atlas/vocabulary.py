"""Names of the Atlas graph: its keys, relations and types.

Every key is a URN, so that no address is promised: `urn:atlas:country:FR`, `urn:atlas:capital`.
"""

from __future__ import annotations

from kgqa_core.types import INVERSE

NAMESPACE = "urn:atlas:"
RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
RDFS_LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
RDFS_SUBCLASS = "http://www.w3.org/2000/01/rdf-schema#subClassOf"
ALT_LABEL = "http://www.w3.org/2004/02/skos/core#altLabel"
XSD = "http://www.w3.org/2001/XMLSchema#"
INTEGER, DOUBLE = f"{XSD}integer", f"{XSD}double"

RELATIONS: dict[str, str] = {
    "capital": "capital",
    "continent": "continent",
    "language": "language spoken",
    "currency": "currency",
    "borders": "borders",
    "population": "population",
    "area": "area in square kilometres",
    "callingCode": "calling code",
    "internetDomain": "internet domain",
    "isoAlpha2": "two-letter country code",
    "isoAlpha3": "three-letter country code",
    "officialName": "official name",
    "country": "country",
    "subdivision": "located in subdivision",
    "timeZone": "time zone",
    "latitude": "latitude",
    "longitude": "longitude",
    "subdivisionOf": "subdivision of",
    "subdivisionCode": "subdivision code",
    "languageCode": "language code",
    "currencyCode": "currency code",
}
"""Local name and English label of every relation of our own."""

STANDARD_RELATIONS = {RDF_TYPE: "type", RDFS_SUBCLASS: "subclass of"}
"""English labels of the relations that we borrow."""

TYPES: dict[str, tuple[str, str | None]] = {
    "Thing": ("thing", None),
    "Place": ("place", "Thing"),
    "Continent": ("continent", "Place"),
    "Country": ("country", "Place"),
    "Subdivision": ("subdivision", "Place"),
    "PopulatedPlace": ("populated place", "Place"),
    "City": ("city", "PopulatedPlace"),
    "Capital": ("capital city", "City"),
    "Language": ("language", "Thing"),
    "Currency": ("currency", "Thing"),
    "TimeZone": ("time zone", "Thing"),
}
"""Local name of each type: its label and the type above it.  Kinds of subdivision are added by the build."""


def relation(name: str) -> str:
    """Key of a relation from its local name; `type` is rdf:type, and a leading `<inv>-` stays in front."""
    if name.startswith(INVERSE):
        return INVERSE + relation(name[len(INVERSE) :])
    if name == "type":
        return RDF_TYPE
    return NAMESPACE + name


def entity(kind: str, name: str) -> str:
    """Key of an entity, `urn:atlas:country:FR` for `("country", "FR")`."""
    return f"{NAMESPACE}{kind}:{name}"


def kind_of(key: str) -> str:
    """The kind in an entity's key, `country` for `urn:atlas:country:FR`; empty for other keys."""
    parts = key.split(":", 3)
    return parts[2] if len(parts) == 4 and key.startswith(NAMESPACE) else ""
