"""What question sets write that is no standard SPARQL: prefixes that an endpoint declares itself, and Virtuoso's ways.

WebQSP, CWQ and GrailQA were made with Virtuoso over Freebase, QALD and LC-QuAD 1 with Virtuoso over DBpedia, LC-QuAD 2
and QALD-10 with Wikidata's query service (Blazegraph).  `standard` writes a query so that an engine of SPARQL 1.1
understands it as these did.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from kgqa_core.kg.vocabulary import FREEBASE, RDF, RDFS, SKOS, WIKIBASE, WIKIDATA, XSD

_COMMON = {
    "xsd": XSD,
    "rdf": RDF,
    "rdfs": RDFS,
    "skos": SKOS,
    "owl": "http://www.w3.org/2002/07/owl#",
    "schema": "http://schema.org/",
}

ENDPOINTS: Mapping[str, Mapping[str, str]] = {
    "wikidata": _COMMON
    | {
        "wd": WIKIDATA + "entity/",
        "wdt": WIKIDATA + "prop/direct/",
        "p": WIKIDATA + "prop/",
        "ps": WIKIDATA + "prop/statement/",
        "psv": WIKIDATA + "prop/statement/value/",
        "pq": WIKIDATA + "prop/qualifier/",
        "pqv": WIKIDATA + "prop/qualifier/value/",
        "wikibase": WIKIBASE,
        "bd": "http://www.bigdata.com/rdf#",
    },
    "freebase": _COMMON | {"ns": FREEBASE},
    "dbpedia": _COMMON
    | {
        "dbo": "http://dbpedia.org/ontology/",
        "dbp": "http://dbpedia.org/property/",
        "dbr": "http://dbpedia.org/resource/",
        "res": "http://dbpedia.org/resource/",
        "dbc": "http://dbpedia.org/resource/Category:",
        "yago": "http://dbpedia.org/class/yago/",
        "foaf": "http://xmlns.com/foaf/0.1/",
        "dct": "http://purl.org/dc/terms/",
        "dc": "http://purl.org/dc/elements/1.1/",
        "geo": "http://www.w3.org/2003/01/geo/wgs84_pos#",
        "onto": "http://dbpedia.org/ontology/",
    },
}
"""Prefixes that an endpoint's queries need not declare."""

PREFIXES: dict[str, str] = {name: iri for prefixes in ENDPOINTS.values() for name, iri in prefixes.items()}
"""Those of all endpoints, which agree on the ones that they share."""

DATE_TIME, YEAR, CONTAINS = (f"urn:kgqa:sparql:{name}" for name in ("dateTime", "year", "contains"))
"""Functions in place of `xsd:dateTime`, `YEAR` and `CONTAINS`, which take dates and numbers of every type as Virtuoso
and Blazegraph do: a year becomes its first moment, and `CONTAINS(YEAR(?x), '2009')` compares texts."""

_QUOTED = r""""(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'"""
_TOKEN = re.compile(
    rf"(?P<quoted>{_QUOTED})(?P<type>\s*\^\^\s*(?:xsd:date[tT]ime|<{re.escape(XSD)}date[tT]ime>))?"
    r"|(?P<iri><[^<>\s]*>)|(?P<comment>\#[^\n]*)"
    r"|(?<![?$:\w])(?P<word>OR|AND)\b(?!:)"
    rf"|(?:(?<![?$:\w])xsd:date[tT]ime|<{re.escape(XSD)}date[tT]ime>)(?P<cast>\s*\()"
    r"|(?<![?$:\w])(?:(?P<year>year)|(?P<contains>contains))(?P<open>\s*\()",
    re.IGNORECASE,
)
_BARE_COUNT = re.compile(
    r"\bSELECT\s+(?:DISTINCT\s+)?COUNT\s*\(\s*(?:DISTINCT\s+)?(\?\w+)(?:\s+AS\s+\?\w+)?\s*\)", re.IGNORECASE
)
_SELECTED = re.compile(r"\bSELECT\s+(?:DISTINCT\s+|REDUCED\s+)?((?:[?$]\w+\s+)+)(?:WHERE\b|\{)", re.IGNORECASE)
_BY_AGGREGATE = re.compile(r"\bORDER\s+BY\b.*\b(?:COUNT|SUM|AVG|MIN|MAX)\s*\(", re.IGNORECASE | re.DOTALL)
_LABELS = re.compile(r"\bSERVICE\s+wikibase:label\s*\{[^{}]*\}\s*\.?", re.IGNORECASE)
_DECLARED = re.compile(r"\bPREFIX\s+([\w-]*)\s*:\s*<([^<>\s]*)>", re.IGNORECASE)
_NAME = re.compile(
    rf"{_QUOTED}|<[^<>\s]*>|[?$]\w+|_:\S+"
    r"|(?P<prefix>[A-Za-z][\w-]*|(?<![\w>?*+)/|^]))?:(?P<local>(?:[\w:%.-]|\\.)*(?:[\w:%-]|\\.))"
)
_DAY = re.compile(r"(-?\d{4,})(?:-(\d\d))?(?:-(\d\d))?(?:Z|[+-]\d\d:\d\d)?")
_OPERATORS = {"OR": "||", "AND": "&&"}


def standard(text: str, *, functions: bool = True) -> str:
    """A query as SPARQL 1.1 writes it; what stands in quotation marks stays.

    `OR` and `AND` become operators, a date that is written as `xsd:dateTime` gets its time, a count without name gets
    one, a query that is ordered by an aggregate is grouped by what it selects, and the label service of Wikidata goes.
    functions: casts to `xsd:dateTime` and the functions YEAR and CONTAINS become those of this module.

    >>> standard("FILTER (?a < 1 OR ?b > \\"2012-12-31\\"^^xsd:dateTime)")
    'FILTER (?a < 1 || ?b > "2012-12-31T00:00:00"^^xsd:dateTime)'
    """

    def one(match: re.Match[str]) -> str:
        if match["comment"] is not None:
            return ""
        if match["word"]:
            return _OPERATORS[match["word"]] if match["word"] in _OPERATORS else match[0]
        if match["type"]:
            kind = re.sub("datetime", "dateTime", match["type"], flags=re.IGNORECASE)
            return match["quoted"][0] + date_time(match["quoted"][1:-1]) + match["quoted"][0] + kind
        if match["cast"] and functions:
            return f"<{DATE_TIME}>("
        if match["open"] and functions:
            return f"<{YEAR if match['year'] else CONTAINS}>("
        return match[0]

    return _grouped(standard_count(_LABELS.sub(" ", _TOKEN.sub(one, text))))


def standard_count(text: str) -> str:
    """The query with a count as SPARQL 1.1 writes it, distinct: LC-QuAD 1 and QALD have `SELECT DISTINCT COUNT(?uri)`.

    >>> standard_count("SELECT DISTINCT COUNT(?uri) WHERE { ?uri ?p ?o }")
    'SELECT (COUNT(DISTINCT ?uri) AS ?number) WHERE { ?uri ?p ?o }'
    """
    return _BARE_COUNT.sub(r"SELECT (COUNT(DISTINCT \1) AS ?number)", text)


def _grouped(text: str) -> str:
    """`ORDER BY DESC(COUNT(?x))` without GROUP BY is grouped by the selected variables, as Virtuoso does."""
    start, brace, end = text.rpartition("}")
    selected = _SELECTED.search(start)
    if selected is None or not _BY_AGGREGATE.search(end) or re.search(r"\bGROUP\s+BY\b", end, re.IGNORECASE):
        return text
    return f"{start}{brace} GROUP BY {selected[1].strip()}{end}"


def expanded(text: str) -> str:
    """A query with whole IRIs in the place of prefixed names: pyoxigraph 0.5 reads `ns:m.0abc`, but not `ns:a.b.c`.

    >>> expanded("?x ns:people.person.parents 'ns:a.b'")
    "?x <http://rdf.freebase.com/ns/people.person.parents> 'ns:a.b'"
    """
    prefixes = PREFIXES | {match[1]: match[2] for match in _DECLARED.finditer(text)}

    def one(match: re.Match[str]) -> str:
        if match["local"] is None or match["prefix"] not in prefixes:
            return match[0]
        local = re.sub(r"\\(.)", r"\1", match["local"])
        return f"<{prefixes[match['prefix']]}{local}>"

    return _NAME.sub(one, text)


def date_time(text: str) -> str:
    """A day, month or year as its first moment; other texts as they are.

    >>> date_time("1999"), date_time("1999-05-01")
    ('1999-01-01T00:00:00', '1999-05-01T00:00:00')
    """
    match = _DAY.fullmatch(text.strip())
    return f"{match[1]}-{match[2] or '01'}-{match[3] or '01'}T00:00:00" if match else text
