"""A graph written out again: RDF that a rebuild reads back, TSV for other tools, Parquet for data frames.

N-Quads hold names of graphs, and qualifiers as annotations of RDF 1.2: `_:q rdf:reifies <<( s p o )>> . _:q p v .`
Turtle and JSON-LD are written from them by pyoxigraph; Turtle has no graphs, JSON-LD no annotations.

Keys and literals are escaped so that no value can end its term and begin another statement.  A key that is an IRI or
the label of a blank node is written as such.  Any other key is written percent-encoded after a base,
`urn:kgqa:New%20York`; so is a datatype that is no IRI, a language that is no language tag, and the blank node of a
predicate, for which N-Triples have no place.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pyoxigraph as ox

from kgqa_core.errors import InputError
from kgqa_core.kg.formats.ntriples import BLANK_NODE, LANGUAGE_TAG
from kgqa_core.kg.formats.rdf_quads import GRAPH_RELATION, REIFIES
from kgqa_core.kg.sql import quoted
from kgqa_core.kg.store import SCHEMA, KgStore
from kgqa_core.kg.vocabulary import ALIAS, DESCRIPTION, LABEL, RDF, RDFS, SKOS, STRING, XSD
from kgqa_core.store.outputs import claim_file, claim_files

_FORBIDDEN = [*map(chr, range(0x21)), *'<>"{}|^`\\']
_IRI = r"^[A-Za-z][A-Za-z0-9+.\-]*:[^\x00-\x20<>\"{}|^`\\]*$"
_ESCAPED = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"}


def check_base(store: KgStore, base: str) -> None:
    """Raises InputError when `base` is no IRI, or when under it two keys of the graph would be written alike."""
    if not re.search(_IRI.replace("$", r"\Z"), base):
        raise InputError(f"--base is {base!r}, which is no absolute IRI; give one such as 'http://example.org/'")
    pairs = store.connection.execute(
        f"""
        WITH keys AS (SELECT key FROM entities WHERE kind = 'entity' UNION SELECT key FROM relations)
        SELECT a.key, b.key FROM keys a JOIN keys b ON b.key = url_decode(substr(a.key, {len(base) + 1}))
        WHERE starts_with(a.key, {quoted(base)})"""
    ).fetchall()
    written = pl.DataFrame(pairs, schema={"a": pl.String, "b": pl.String}, orient="row").select(
        pl.all(), same=resource(pl.col("a"), base) == resource(pl.col("b"), base)
    )
    for key, other in written.filter("same").select("a", "b").head(1).iter_rows():
        raise InputError(f"the keys {key!r} and {other!r} are both written as <{key}>; choose another --base")


def resource(key: pl.Expr, base: str, *, predicate: bool = False) -> pl.Expr:
    """The IRI or, unless it is a `predicate`, the blank node of a key."""
    iri = pl.when(key.str.contains(_IRI)).then(key).otherwise(pl.concat_str(pl.lit(base), encoded(key)))
    iri = pl.concat_str(pl.lit("<"), iri, pl.lit(">"))
    return iri if predicate else pl.when(key.str.contains(f"^{BLANK_NODE}$")).then(key).otherwise(iri)


def literal(text: pl.Expr, datatype: pl.Expr, base: str) -> pl.Expr:
    """A literal with its language, or its datatype unless that is a string's."""
    datatype = datatype.fill_null("")
    suffix = (
        pl.when(datatype.is_in(["", "@", STRING]))
        .then(pl.lit(""))
        .when(datatype.str.contains(f"^@{LANGUAGE_TAG}$"))
        .then(datatype)
        .otherwise(pl.concat_str(pl.lit("^^"), resource(datatype, base, predicate=True)))
    )
    escaped = text.str.replace_many(list(_ESCAPED), list(_ESCAPED.values()))
    return pl.concat_str(pl.lit('"'), escaped, pl.lit('"'), suffix)


def encoded(key: pl.Expr) -> pl.Expr:
    """The key, percent-encoded where an IRI may not hold a character."""
    return _percent(key, ["%", *_FORBIDDEN])


def field(key: pl.Expr) -> pl.Expr:
    """The key as a field of TSV: percent-encoded where a tab, a line end or a NUL would begin another field or row."""
    breaks = ["\t", "\n", "\r", "\0"]
    return pl.when(key.str.contains("[\t\n\r\0]")).then(_percent(key, ["%", *breaks])).otherwise(key)


def _percent(key: pl.Expr, characters: list[str]) -> pl.Expr:
    return key.str.replace_many(characters, [f"%{ord(character):02X}" for character in characters])


FORMATS = {
    "nt": "N-Triples",
    "nq": "N-Quads",
    "ttl": "Turtle",
    "jsonld": "JSON-LD",
    "tsv": "head, relation, tail by key",
    "csv": "the same with quotes and a header",
    "parquet": "every table, in a folder",
}
BASE = "urn:kgqa:"
"""What is put before keys that are no IRIs, percent-encoded, where a format wants IRIs."""

PREFIXES = {"rdf": RDF, "rdfs": RDFS, "skos": SKOS, "xsd": XSD, "schema": "http://schema.org/"}

ROWS = 200_000
"""Rows written at once."""

_TRIPLES = (
    "triples x JOIN entities h ON h.id = x.head JOIN relations r ON r.id = x.relation JOIN entities t ON t.id = x.tail"
)
_QUALIFIERS = (
    f"{_TRIPLES} JOIN qualifiers q ON q.triple = x.id JOIN relations p ON p.id = q.relation "
    "JOIN entities v ON v.id = q.value"
)
_KEYS = "h.key AS head, r.key AS relation, t.key AS tail"


def dump(
    store: KgStore,
    out: Path,
    *,
    format: str | None = None,
    base: str = BASE,
    force: bool = False,
) -> dict[str, int]:
    """Writes the graph to a new file (or a folder, for Parquet) and returns rows by what they are.

    format: one of FORMATS; from the file's name when absent.  RDF holds triples, labels, aliases, descriptions;
    what is no IRI is written under `base`, see `terms`.  RDF has no place for units and ranks, N-Triples and
    JSON-LD have none for qualifiers, but for the graphs of JSON-LD; TSV and CSV
    put qualifiers into a second file, `NAME.qualifiers.tsv`; TSV encodes a tab or a line end in a key.
    force: earlier files of these names are replaced.  Raises InputError for an unknown format, or a `base` that is no
    IRI or makes one key of two, OutputError when the place is occupied, StorageError when the disk is full; nothing
    half-written stays.
    """
    kind = _format(out, format)
    inputs = [store.path.parent]
    if kind == "parquet":
        names = [f"{table}.parquet" for table in SCHEMA]
        with claim_files(out, names, inputs=inputs, force=force).writing() as folder:
            return _parquet(store, folder)
    claim = claim_file(out, inputs=inputs, force=force)
    if kind in ("nt", "nq", "ttl", "jsonld"):
        quads, annotations = kind in ("nq", "jsonld"), kind in ("nq", "ttl")
        with claim.writing() as scratch, tempfile.TemporaryDirectory(dir=scratch.parent) as folder:
            flat = scratch if kind in ("nt", "nq") else Path(folder) / "graph.nq"
            counts = _rdf(store, flat, base, quads=quads, annotations=annotations)
            if flat != scratch:
                statements = ox.parse(path=str(flat), format=ox.RdfFormat.N_QUADS, lenient=True)
                if quads:
                    ox.serialize(statements, str(scratch), ox.RdfFormat.JSON_LD)
                else:
                    triples = (quad.triple for quad in statements)
                    ox.serialize(triples, str(scratch), ox.RdfFormat.TURTLE, prefixes=PREFIXES)
        return counts
    if not _any(store, "qualifiers"):
        with claim.writing() as scratch:
            return _table(store, scratch, None, kind)
    qualifiers = claim_file(out.with_name(f"{out.stem}.qualifiers.{kind}"), inputs=inputs, force=force)
    with claim.writing() as scratch, qualifiers.writing() as beside:
        return _table(store, scratch, beside, kind)


def _format(out: Path, format: str | None) -> str:
    kind = format or {f".{name}": name for name in FORMATS}.get(out.suffix, "")
    if kind not in FORMATS:
        known = ", ".join(f"{name} ({what})" for name, what in FORMATS.items())
        raise InputError(f"{out}: export format {kind or out.suffix!r} is unknown; --format takes {known}")
    return kind


def _parquet(store: KgStore, folder: Path) -> dict[str, int]:
    counts = dict.fromkeys(SCHEMA, 0)
    for table in SCHEMA:
        reader = _batches(store, f"SELECT * FROM {table}")
        with pq.ParquetWriter(folder / f"{table}.parquet", reader.schema, compression="zstd") as writer:
            for batch in reader:
                writer.write_batch(batch)
                counts[table] += batch.num_rows
    return counts


def _table(store: KgStore, scratch: Path, beside: Path | None, kind: str) -> dict[str, int]:
    counts = {"triples": 0, "qualifiers": 0}
    triples = f"SELECT {_KEYS} FROM {_TRIPLES} ORDER BY x.id"
    qualifiers = (
        f"SELECT {_KEYS}, p.key AS qualifier, v.key AS value FROM {_QUALIFIERS} "
        "ORDER BY q.triple, q.statement, q.relation, q.value"
    )
    for name, sql, path in (("triples", triples, scratch), ("qualifiers", qualifiers, beside)):
        if path is None:
            continue
        with path.open("wb") as stream:
            for frame in _frames(store, sql):
                if kind == "csv":
                    keys = pl.all().str.replace_many(["\r", "\0"], ["%0D", "%00"])
                    frame.select(keys).write_csv(stream, include_header=not counts[name])
                else:
                    fields = [field(pl.col(column)) for column in frame.columns]
                    stream.write(_lines(frame, pl.concat_str(fields, separator="\t")))
                counts[name] += frame.height
    return counts


def _rdf(store: KgStore, scratch: Path, base: str, *, quads: bool, annotations: bool) -> dict[str, int]:
    check_base(store, base)
    graph = (
        "(SELECT q.triple, q.statement, any_value(v.key) AS graph FROM qualifiers q JOIN entities v ON v.id = q.value "
    )
    graph += f"JOIN relations p ON p.id = q.relation WHERE p.key = '{GRAPH_RELATION}' GROUP BY ALL)"
    named = f"LEFT JOIN (SELECT DISTINCT triple, graph FROM {graph}) g ON g.triple = x.id" if quads else ""
    parts = {
        "triples": f"SELECT {_KEYS}, t.kind, t.datatype{', graph' * quads} FROM {_TRIPLES} {named} "
        f"ORDER BY x.id{', graph' * quads}",
        "labels": _names("label", "labels", LABEL)
        + f" UNION ALL SELECT r.key, '{LABEL}', l.label, 'literal', '@' || l.lang FROM relation_labels l "
        "JOIN relations r USING (id) WHERE r.key NOT IN (SELECT key FROM entities WHERE kind = 'entity') ORDER BY ALL",
        "aliases": _names("alias", "aliases", ALIAS) + " ORDER BY ALL",
        "descriptions": _names("description", "labels", DESCRIPTION) + " ORDER BY ALL",
    }
    if annotations and _any(store, "qualifiers"):
        joined = (
            f"FROM {_QUALIFIERS} LEFT JOIN {graph} g ON g.triple = q.triple AND g.statement = q.statement "
            f"WHERE p.key <> '{GRAPH_RELATION}' "
        )
        node = "'_:q' || q.triple || 's' || q.statement AS node"
        parts["statements"] = f"SELECT DISTINCT {_KEYS}, t.kind, t.datatype, graph, {node} {joined}ORDER BY node"
        parts["qualifiers"] = (
            f"SELECT {node.removesuffix('node')}head, p.key AS relation, v.key AS tail, v.kind, v.datatype, graph "
            f"{joined}ORDER BY ALL"
        )
    counts = dict.fromkeys(parts, 0)
    space = pl.lit(" ")
    with scratch.open("wb") as stream:
        for name, sql in parts.items():
            for frame in _frames(store, sql):
                terms = [
                    resource(pl.col("head"), base),
                    space,
                    resource(pl.col("relation"), base, predicate=True),
                    space,
                    pl.when(pl.col("kind") == "literal")
                    .then(literal(pl.col("tail"), pl.col("datatype"), base))
                    .otherwise(resource(pl.col("tail"), base)),
                ]
                if "node" in frame.columns:
                    terms = [pl.col("node"), pl.lit(f" <{REIFIES}> <<( "), *terms, pl.lit(" )>>")]
                if quads and "graph" in frame.columns:
                    written = pl.concat_str(space, resource(pl.col("graph"), base))
                    terms.append(pl.when(pl.col("graph").is_null()).then(pl.lit("")).otherwise(written))
                stream.write(_lines(frame, pl.concat_str(*terms, pl.lit(" ."))))
                counts[name] += frame.height
    return counts


def _names(column: str, table: str, predicate: str) -> str:
    return (
        f"SELECT e.key AS head, '{predicate}' AS relation, n.{column} AS tail, 'literal' AS kind, "
        f"'@' || n.lang AS datatype FROM {table} n JOIN entities e USING (id) WHERE n.{column} IS NOT NULL"
    )


def _batches(store: KgStore, sql: str) -> Any:
    return store.connection.execute(sql).to_arrow_reader(ROWS)


def _frames(store: KgStore, sql: str) -> Iterator[pl.DataFrame]:
    for batch in _batches(store, sql):
        frame = pl.from_arrow(batch)
        if isinstance(frame, pl.DataFrame) and frame.height:
            yield frame


def _lines(frame: pl.DataFrame, line: pl.Expr) -> bytes:
    return ("\n".join(frame.select(line.alias("line"))["line"]) + "\n").encode("utf-8")


def _any(store: KgStore, table: str) -> bool:
    return store.connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is not None
