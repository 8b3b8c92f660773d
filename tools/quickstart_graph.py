"""The graph of docs/quickstart.ipynb: the countries of Europe, cut out of the bundled graph Atlas.

    python -m tools.quickstart_graph docs/quickstart/europe.ttl

The same Atlas gives the same bytes.  Borders that lead out of Europe are left out, and so are cities of fewer than
300,000 people that are no capital.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from tools.atlas.graph import AtlasGraph

EUROPE = "urn:atlas:continent:EU"
LEAST_PEOPLE = 300_000
LINKS, NUMBERS = ("capital", "country", "currency", "language", "borders"), ("population", "area")
HEAD = """\
# The countries of Europe.  Data of GeoNames (CC BY 4.0) and iso-codes, by tools/quickstart_graph.py.
@prefix : <https://example.org/europe/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .

:area rdfs:label "area in square kilometres"@en .
:language rdfs:label "language spoken"@en .
"""


def turtle(graph: AtlasGraph) -> str:
    """The countries of Europe with their capitals, large cities, languages and currencies."""
    countries = graph.follow([EUROPE], ["<inv>-urn:atlas:continent"])
    capitals = {capital for key in countries for capital in graph.tails(key, "capital")}
    cities = [
        key for key in graph.follow(countries, ["<inv>-urn:atlas:country"])
        if key.startswith("urn:atlas:city:")
        and (key in capitals or (graph.number(key, "population") or 0) >= LEAST_PEOPLE)
    ]  # fmt: skip
    things = {
        "Country": countries, "City": cities,
        **{kind: graph.follow(countries, [f"urn:atlas:{kind.lower()}"]) for kind in ("Currency", "Language")},
    }  # fmt: skip
    keys = [key for own in things.values() for key in own]
    plain = {key: re.sub(r"\W+", "_", graph.labels[key]).strip("_") for key in keys}
    uses = Counter(plain.values())
    local = {
        key: name if uses[name] == 1 or key in countries else f"{name}_{key.split(':')[2]}_{key.split(':')[3]}"
        for key, name in plain.items()
    }
    blocks = []
    for kind, own in things.items():
        for key in sorted(own, key=local.__getitem__):
            rows = [f":{local[key]} a :{kind}", f'rdfs:label "{graph.labels[key]}"@en', *_facts(graph, key, local)]
            blocks.append(" ;\n    ".join(rows) + " .\n")
    return "\n".join([HEAD, *blocks])


def _facts(graph: AtlasGraph, key: str, local: Mapping[str, str]) -> Iterator[str]:
    for relation in LINKS:
        if ends := sorted(local[end] for end in graph.tails(key, relation) if end in local):
            yield f":{relation} " + ", ".join(f":{end}" for end in ends)
    for relation in NUMBERS:
        for value in graph.tails(key, relation):
            yield f":{relation} {value}"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(turtle(AtlasGraph.read()), encoding="utf-8")
