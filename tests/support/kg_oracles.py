"""Slow, plain implementations that compiled code must equal: staging by joins in DuckDB, N-Triples by polars."""

from __future__ import annotations

import re
from collections.abc import Sequence

import duckdb
import polars as pl

from kgqa_core.kg.formats.base import (
    ENTITY,
    LITERAL,
    MAX_REJECT_TEXT,
    PLAIN,
    REJECTS,
    STATEMENTS,
    TEXT,
    StatementBatch,
    empty,
)
from kgqa_core.kg.formats.source import Block


def stage(
    connection: duckdb.DuckDBPyConnection, batches: Sequence[StatementBatch], text_predicates: Sequence[str]
) -> None:
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


XSD_STRING = "http://www.w3.org/2001/XMLSchema#string"

_HEX4, _HEX8 = r"\\u[0-9A-Fa-f]{4}", r"\\U[0-9A-Fa-f]{8}"
_ESC = rf"(?:{_HEX4}|{_HEX8})"
_REST = rf'(?:[^\x00-\x20<>"{{}}|^`\\]|{_ESC})*'
_IRI_BODY = rf"(?:[A-Za-z][A-Za-z0-9+.\-]*:{_REST}|[A-Za-z0-9+.\-]*{_ESC}{_REST})"
_BASE = (
    r"A-Za-z\u{C0}-\u{D6}\u{D8}-\u{F6}\u{F8}-\u{2FF}\u{370}-\u{37D}\u{37F}-\u{1FFF}\u{200C}-\u{200D}"
    r"\u{2070}-\u{218F}\u{2C00}-\u{2FEF}\u{3001}-\u{D7FF}\u{F900}-\u{FDCF}\u{FDF0}-\u{FFFD}\u{10000}-\u{EFFFF}"
)
_PN_U = rf"{_BASE}_"
_PN = rf"{_PN_U}\-0-9\u{{B7}}\u{{300}}-\u{{36F}}\u{{203F}}-\u{{2040}}"
_BLANK = rf"_:[{_PN_U}0-9](?:[{_PN}.]*[{_PN}])?"
_STRING = rf"(?:[^\x22\\\n\r]|\\[tbnrf\x22'\\]|{_HEX4}|{_HEX8})*"
_LANG = r"[A-Za-z]+(?:-[A-Za-z0-9]+)*"
_W = r"[ \t]*"

STATEMENT = (
    rf"^{_W}(?:<(?P<si>{_IRI_BODY})>|(?P<sb>{_BLANK})){_W}<(?P<p>{_IRI_BODY})>{_W}"
    rf'(?:<(?P<oi>{_IRI_BODY})>|(?P<ob>{_BLANK})|"(?P<ol>{_STRING})"'
    rf"(?:{_W}@(?P<lang>{_LANG})|{_W}\^\^{_W}<(?P<dt>{_IRI_BODY})>)?)"
    rf"{_W}\.{_W}(?:#.*)?$"
)
"""A statement in the syntax of Rust's regular expressions, which polars uses."""

IGNORED = r"^[ \t]*(?:#.*)?$"

_ECHARS = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}
_SHORT = {"\\" + name: character for name, character in _ECHARS.items()}
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))")
_IRI_FORBIDDEN = re.compile(r'[\x00-\x20<>"{}|^`\\]')
_RAW = ("si", "sb", "p", "oi", "ob", "ol", "lang", "dt")


def read_block(block: Block) -> StatementBatch:
    """The statements of some lines; a line with lone carriage returns is several lines, as the grammar says."""
    lines = block.lines
    if lines["text"].str.contains("\r", literal=True).any():
        lines = lines.with_columns(pl.col("text").str.split("\r")).explode("text")
    parsed = lines.with_columns(pl.col("text").str.extract_groups(STATEMENT).alias("g")).unnest("g")
    matched = pl.col("p").is_not_null()
    other = parsed.filter(~matched).select("line", "text")
    blank = other["text"].str.contains(IGNORED)
    bad = other.filter(~blank)
    good = parsed.filter(matched)
    plain, bad_escapes = good.select("line", *_RAW), empty(REJECTS)
    if good["text"].str.contains("\\", literal=True).any():
        coded = good["text"].str.contains(r"\\[uU]")
        plain = plain.filter(~coded).with_columns(pl.col("ol").str.replace_many(_SHORT))
        if coded.any():
            decoded, bad_escapes = _decode(good.filter(coded))
            plain = pl.concat([plain, decoded])
    rejects = pl.DataFrame(
        {
            "line": bad["line"],
            "reason": ["no statement"] * bad.height,
            "text": bad["text"].str.slice(0, MAX_REJECT_TEXT),
        },
        schema=REJECTS,
    )
    literal = pl.col("ol").is_not_null()
    statements = plain.select(
        subject=pl.coalesce("si", "sb"),
        predicate="p",
        object=pl.coalesce("oi", "ob", "ol"),
        kind=pl.when(literal).then(LITERAL).otherwise(ENTITY).cast(pl.Int8),
        datatype=pl.when(literal).then(
            pl.coalesce(pl.lit("@") + pl.col("lang").str.to_lowercase(), "dt", pl.lit(XSD_STRING))
        ),
    ).select(pl.col(name).cast(kind) for name, kind in STATEMENTS.items() if name in PLAIN)
    return StatementBatch(
        statements, pl.concat([block.rejects, rejects, bad_escapes]), int(blank.sum()), block.fraction
    )


def _decode(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows with their escapes decoded, and rejects for those that cannot be."""
    good: list[tuple[object, ...]] = []
    bad: list[tuple[int, str, str]] = []
    for line, text, *values in rows.select("line", "text", *_RAW).iter_rows():
        try:
            good.append(
                (
                    line,
                    *(v if v is None or "\\" not in v else unescape(v, n) for n, v in zip(_RAW, values, strict=True)),
                )
            )
        except ValueError as fault:
            bad.append((line, str(fault), text[:MAX_REJECT_TEXT]))
    schema = {"line": pl.Int64(), **dict.fromkeys(_RAW, pl.String())}
    return pl.DataFrame(good, schema=schema, orient="row"), pl.DataFrame(bad, schema=REJECTS, orient="row")


def unescape(text: str, where: str = "ol") -> str:
    """A value with its escapes decoded; `where` other than `ol` is an IRI.  Raises ValueError with the reason."""

    def one(match: re.Match[str]) -> str:
        code = match[1] or match[2]
        if code is None:
            return _ECHARS[match[3]]
        point = int(code, 16)
        if point > 0x10FFFF or 0xD800 <= point <= 0xDFFF:
            raise ValueError(f"the escape {match[0]} is not a character")
        return chr(point)

    decoded = _ESCAPE.sub(one, text)
    if where != "ol" and (found := _IRI_FORBIDDEN.search(decoded)):
        raise ValueError(f"an escape puts {found[0]!r} into an IRI, where it may not stand")
    if where in ("si", "p", "oi", "dt") and not re.match(r"[A-Za-z][A-Za-z0-9+.\-]*:", decoded):
        raise ValueError("not absolute")
    return decoded
