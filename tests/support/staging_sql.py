"""The tables that staging leaves, made by joins over strings in DuckDB: the oracle of the compiled staging."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import polars as pl

from kgqa_core.kg.formats.base import ENTITY, LITERAL, TEXT, Batch


def stage(connection: duckdb.DuckDBPyConnection, batches: Sequence[Batch], text_predicates: Sequence[str]) -> None:
    """Makes terms, tags, raw and raw_qualifiers of batches; predicates that name things turn TEXT into literals."""
    run = connection.execute
    run(
        """
        CREATE TABLE raw_text(n BIGINT, subject VARCHAR, predicate VARCHAR, object VARCHAR, kind TINYINT,
                              datatype VARCHAR, detail VARCHAR, rank TINYINT);
        CREATE TABLE qualifier_text(n BIGINT, name VARCHAR, predicate VARCHAR, object VARCHAR, kind TINYINT,
                                    datatype VARCHAR, detail VARCHAR)"""
    )
    n = 0
    for batch in batches:
        statements, qualifiers = batch.statements, batch.qualifiers
        number = pl.int_range(n, n + pl.len(), dtype=pl.Int64)
        plain = statements.select(
            number.alias("n"), "subject", "predicate", *_term(text_predicates), pl.col("rank").fill_null(0)
        )
        _insert(connection, "raw_text", plain)
        if qualifiers is not None:
            term = _term(text_predicates)
            _insert(
                connection,
                "qualifier_text",
                qualifiers.select((pl.col("row") + n).alias("n"), "statement", "predicate", *term),
            )
        n += statements.height
    run(
        f"""
        CREATE TABLE tags AS SELECT 0 AS tag, NULL::VARCHAR AS datatype, NULL::VARCHAR AS detail UNION ALL
        SELECT row_number() OVER (ORDER BY datatype, detail NULLS FIRST)::INTEGER, datatype, detail FROM (
          SELECT datatype, detail FROM raw_text WHERE kind = {LITERAL}
          UNION SELECT datatype, detail FROM qualifier_text WHERE kind = {LITERAL})"""
    )
    objects = " UNION ".join(
        f"SELECT object, tag FROM {table} t JOIN tags ON tags.datatype = t.datatype "
        f"AND t.detail IS NOT DISTINCT FROM tags.detail WHERE kind = {LITERAL} "
        f"UNION SELECT object, 0 FROM {table} WHERE kind = {ENTITY}"
        for table in ("raw_text", "qualifier_text")
    )
    run(
        f"""
        CREATE TABLE terms AS
        SELECT (row_number() OVER (ORDER BY tag > 0, key, tag) - 1)::INTEGER AS tid, key, tag::INTEGER AS tag FROM (
          SELECT subject AS key, 0 AS tag FROM raw_text UNION SELECT predicate, 0 FROM raw_text
          UNION SELECT predicate, 0 FROM qualifier_text UNION {objects})"""
    )
    run("CREATE VIEW nodes AS SELECT tid, key FROM terms WHERE tag = 0")
    value = (
        "JOIN tags w ON w.datatype IS NOT DISTINCT FROM t.datatype AND w.detail IS NOT DISTINCT FROM t.detail "
        "JOIN terms v ON v.tag = w.tag AND v.key = t.object"
    )
    run(
        f"""
        CREATE TABLE raw AS
        SELECT n, s.tid AS subject, p.tid AS predicate, v.tid AS object, rank FROM raw_text t
        JOIN nodes s ON s.key = t.subject JOIN nodes p ON p.key = t.predicate {value}"""
    )
    run(
        f"""
        CREATE TABLE raw_qualifiers AS
        SELECT n, name, p.tid AS predicate, v.tid AS object FROM qualifier_text t
        JOIN nodes p ON p.key = t.predicate {value}"""
    )


def _term(text_predicates: Sequence[str]) -> list[pl.Expr]:
    """object, kind, datatype and detail as staging understands them."""
    text = (pl.col("kind") == TEXT) & pl.col("predicate").is_in(list(text_predicates))
    literal = text | (pl.col("kind") == LITERAL)
    return [
        pl.col("object"),
        pl.when(literal).then(LITERAL).otherwise(ENTITY).cast(pl.Int8).alias("kind"),
        pl.when(text).then(pl.lit("")).when(literal).then(pl.col("datatype").fill_null("")).alias("datatype"),
        pl.when(literal & ~text).then(pl.col("detail")).alias("detail"),
    ]


def _insert(connection: duckdb.DuckDBPyConnection, table: str, frame: pl.DataFrame) -> None:
    connection.register("batch", frame.to_arrow())
    connection.execute(f"INSERT INTO {table} SELECT * FROM batch")
    connection.unregister("batch")
