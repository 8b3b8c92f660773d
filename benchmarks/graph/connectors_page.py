"""The table of connectors in docs/graphs.md, as `make bench-docs` writes it from benchmarks/results/connectors.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.conditions import commit_name
from benchmarks.tables import table

NAMES = {
    "atlas_file": "Atlas, N-Triples",
    "sparql": "Atlas, a SPARQL endpoint",
    "triples": "as a property graph: KGTK's triples and qualifiers",
    "neo4j_json": "APOC's JSON",
    "neo4j_csv": "CSV of neo4j-admin",
    "graphml": "GraphML",
    "csv": "CSV tables",
    "tsv": "TSV tables",
    "parquet": "Parquet tables",
    "bolt": "a server over Bolt",
}
COLUMNS = ("entities", "literals", "relations", "triples", "labels", "types", "qualifiers", "rejects")


def figures(found: Mapping[str, Any]) -> str:
    """The text between the marks."""
    rows = []
    for name, text in NAMES.items():
        one = found["rows"][name]
        same = {None: "–", True: "yes", False: "no"}[one["same_as_triples"]]
        rows.append((text, *(one[column] for column in COLUMNS), same))
    made = found["conditions"]
    text = (
        f"{made['date']}, commit {commit_name(made['commit'])}, seed {made['seed']}. *Same*: entities, triples, "
        "labels, types and qualifiers are, by key, those of the file of triples above.\n\n"
    )
    return text + table(("through", *COLUMNS, "same"), rows, right=True)
