"""Ids of an entity in other graphs: Freebase's mid of a Wikidata item, by P646.

The statements of `kg.bridges` relations are bridges even where a filter keeps them from being triples.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import duckdb

from kgqa_core.config import KgOptions
from kgqa_core.errors import InputError
from kgqa_core.input_files import read_document
from kgqa_core.kg.filters import UNKNOWN_DATATYPES
from kgqa_core.kg.names import bare_key
from kgqa_core.kg.vocabulary import OWL

_FREEBASE = r"^(?:http://rdf\.freebase\.com/ns/|https?://www\.freebase\.com)?/?([mg])[./]([0-9a-z_]+)$"

CANONICAL_SQL = f"regexp_replace({{text}}, '{_FREEBASE}', '\\1.\\2')"
"""`canonical` as a DuckDB expression of a column."""


def canonical(value: str) -> str:
    """An id as the other graph's key: Freebase's `/m/0abc` is `m.0abc`; any other value is itself.

    >>> canonical("/m/02mjmr"), canonical("http://rdf.freebase.com/ns/m.02mjmr"), canonical("n79-21164")
    ('m.02mjmr', 'm.02mjmr', 'n79-21164')
    """
    return re.sub(_FREEBASE, r"\1.\2", value)


def select(connection: duckdb.DuckDBPyConnection, options: KgOptions, literals: int) -> None:
    """Makes `bridge_terms(subject, predicate, object)` of staged statements, without deprecated and unknown ones."""
    run = connection.execute
    run("CREATE TABLE bridge_terms(subject INTEGER, predicate INTEGER, object INTEGER)")
    if run("SELECT 1 FROM duckdb_tables() WHERE table_name = 'same'").fetchone():
        run(
            "INSERT INTO bridge_terms SELECT representative, (SELECT tid FROM terms WHERE tag = 0 AND key = $1), tid "
            "FROM same",
            [OWL + "sameAs"],
        )
    keys = [bare_key(key) for key in options.bridges]
    tids = [tid for (tid,) in run("SELECT tid FROM terms WHERE tag = 0 AND list_contains($1, key)", [keys]).fetchall()]
    if not tids:
        return
    unknown = ", ".join(f"'{datatype}'" for datatype in UNKNOWN_DATATYPES)
    run(
        f"""
        INSERT INTO bridge_terms
        SELECT DISTINCT subject, predicate, object FROM raw
        WHERE list_contains($1, predicate) AND coalesce(rank, 0) >= 0 AND object NOT IN (
          SELECT tid FROM terms JOIN tags USING (tag) WHERE tid >= {literals} AND datatype IN ({unknown}))""",
        [tids],
    )


def finish(connection: duckdb.DuckDBPyConnection) -> None:
    """Fills kg.bridges for the entities of the graph; values are in canonical form."""
    connection.execute(
        f"""
        INSERT INTO kg.bridges
        SELECT DISTINCT i.id, p.key, {CANONICAL_SQL.format(text="o.key")} AS value FROM bridge_terms b
        JOIN ids i ON i.tid = b.subject JOIN terms p ON p.tid = b.predicate JOIN terms o ON o.tid = b.object
        ORDER BY ALL"""
    )


def read_map(path: Path) -> dict[str, str]:
    """Canonical foreign id → key, from a file of pairs.

    JSON `{"/m/0abc": "Q1"}` or `{"/m/0abc": {"wikidata_id": "Q1", …}}` (as FB15k-237's entity2wikidata.json), or lines
    `/m/0abc<TAB>Q1`.  Pairs without key are left out.  Raises InputError for anything else.
    """
    text = read_document(path, needs="lines `/m/0abc<TAB>Q1`, or JSON")
    if not text.lstrip().startswith("{"):
        rows = [line.split("\t") for line in text.splitlines() if line.strip()]
        if any(len(row) < 2 for row in rows):
            raise InputError(f"{path} holds a line without a tab; a map of ids has lines `/m/0abc<TAB>Q1`")
        return {canonical(row[0]): row[1] for row in rows if row[1]}
    try:
        pairs = json.loads(text)
    except ValueError as fault:
        raise InputError(f"{path} is no JSON ({fault})") from None
    keys = {value: about.get("wikidata_id") if isinstance(about, dict) else about for value, about in pairs.items()}
    return {canonical(value): str(key) for value, key in keys.items() if key}
