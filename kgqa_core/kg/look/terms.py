"""Keys and literals as terms of N-Triples, so that no value can end its term and begin another statement.

A key that is an IRI or the label of a blank node is written as such.  Any other key is written percent-encoded after a
base, `urn:kgqa:New%20York`; so is a datatype that is no IRI, a language that is no language tag, and the blank node of
a predicate, for which N-Triples have no place.
"""

from __future__ import annotations

import re

import polars as pl

from kgqa_core.errors import InputError
from kgqa_core.kg.formats.ntriples import BLANK_NODE, LANGUAGE_TAG
from kgqa_core.kg.sql import quoted
from kgqa_core.kg.store import KgStore
from kgqa_core.kg.vocabulary import STRING

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
    for one, other in written.filter("same").select("a", "b").head(1).iter_rows():
        raise InputError(f"the keys {one!r} and {other!r} are both written as <{one}>; choose another --base")


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
