"""KGTK's edge files: TSV whose header names node1, label and node2, in any order, perhaps id, rank, node2;wikidatatype.

Other columns are left out.  The labels `label`, `alias` and `description` become the usual predicates of names.

A row is a qualifier, not a statement, when its node1 is an edge: in a file whose name has the word `qualifiers`
(`qualifiers.time.tsv.gz`), where node1 looks like the id of an edge of Wikidata (`Q42-P31-…`), or where it is an id in
the same file.  Its statement may lie in any file; edges with an id are named by it, names of entities are not.

What KGTK computes from Wikidata is no knowledge of its own and is filtered, unless kg.relations names it: closures and
unions (`P279star`, `P31P279star`, `isa`, `isa_star`) between Wikidata's entities as `derived edge`; degrees, page
ranks, datatypes of properties and kinds of entities as `metadata`.  A row with an empty node1 or node2 is ignored, as
the specification has it: `empty node`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError
from kgqa_core.kg.formats.api import FormatSpec
from kgqa_core.kg.formats.base import (
    CONTROL,
    MAX_REJECT_TEXT,
    QUALIFIERS,
    REJECTS,
    STATEMENTS,
    StatementBatch,
)
from kgqa_core.kg.formats.kgtk_values import parse, symbols
from kgqa_core.kg.formats.names import ALIAS, DESCRIPTION, LABEL
from kgqa_core.kg.formats.source import Block, Source

ALIASES = {
    "node1": ("node1", "from", "subject"),
    "label": ("label", "predicate", "relation", "relationship"),
    "node2": ("node2", "to", "object"),
    "id": ("id", "ID"),
    "rank": ("rank",),
    "type": ("node2;wikidatatype",),
}
"""Columns by what the specification lets them be called."""

NAMES = {"label": LABEL, "alias": ALIAS, "description": DESCRIPTION}
RANKS = {"deprecated": -1, "normal": 0, "preferred": 1}

DERIVED = ("P279star", "P31P279star", "isa", "isa_star")
METADATA = (
    "in_degree",
    "out_degree",
    "vertex_in_degree",
    "vertex_out_degree",
    "directed_pagerank",
    "undirected_pagerank",
    "data_type",
)

_ENTITY = r"^[QPL][1-9][0-9]*(?:-[FS][1-9][0-9]*)?$"
_EDGE = r"^[QPL][1-9][0-9]*(?:-[FS][1-9][0-9]*)?-P[1-9][0-9]*-."


class Kgtk:
    """Reader of KGTK's edge files."""

    name = "kgtk"

    def sniff(self, lines: list[str], options: KgOptions) -> float:
        """1 when the first line is a header with node1, label and node2, else 0."""
        return float(bool(lines) and {"node1", "label", "node2"} <= set(lines[0].split("\t")))

    def read(self, source: Source, options: KgOptions) -> Iterator[StatementBatch]:
        """The edges of a file.  Raises KgInputError when the header lacks a column."""
        head = [line for line in source.head() if not line.startswith("#")]
        if not head:
            return
        place, width = header(head[0], str(source.path))
        qualifiers = "qualifiers" in re.split(r"[._-]", source.path.name.lower())
        edges = None if qualifiers or "id" not in place else _own_edges(source, place["id"], head)
        headed = False
        for block in source.blocks():
            lines, ignored = block.lines, block.lines.height
            text = pl.col("text")
            lines = lines.filter((text.str.strip_chars(" \t") != "") & ~text.str.starts_with("#"))
            if not headed and lines.height:
                headed, lines = True, lines.slice(1)
            ignored -= lines.height
            yield _read(block, lines, ignored, place, width, qualifiers, edges, options)


def header(line: str, path: str) -> tuple[dict[str, int], int]:
    """Places of the columns that are used, and the number of columns.  Raises KgInputError when one is missing."""
    columns = line.split("\t")
    place: dict[str, int] = {}
    for role, names in ALIASES.items():
        results = [columns.index(name) for name in names if name in columns]
        if results:
            place[role] = results[0]
    lacking = [role for role in ("node1", "label", "node2") if role not in place]
    if lacking:
        there = ", ".join(repr(column) for column in columns[:20])
        raise KgInputError(
            f"{path} is no KGTK edge file: its header has no column {' and no '.join(lacking)}, only {there}"
        )
    return place, len(columns)


def _own_edges(source: Source, place: int, head: list[str]) -> pl.Series | None:
    """Hashes of a file's edge ids, which it may qualify in its own rows; None where ids are Wikidata's."""
    ids = [fields[place] for line in head[1:] if len(fields := line.split("\t")) > place and fields[place]]
    if not ids or sum(bool(re.match(_EDGE, one)) or "-label-" in one or "-alias-" in one or "-description-" in one
                      for one in ids) * 2 > len(ids):  # fmt: skip
        return None
    results = []
    for block in source.blocks():
        one = block.lines.select(pl.col("text").str.split("\t").list.get(place, null_on_oob=True).alias("id"))
        results.append(one.filter(pl.col("id") != "")["id"].hash())
    return pl.concat(results).unique()


def _read(
    block: Block,
    lines: pl.DataFrame,
    ignored: int,
    place: dict[str, int],
    width: int,
    qualifiers: bool,
    edges: pl.Series | None,
    options: KgOptions,
) -> StatementBatch:
    fields = pl.col("fields")
    rows = lines.with_columns(fields=pl.col("text").str.split("\t")).select(
        "line",
        pl.col("text").alias("whole"),
        n=fields.list.len(),
        **{role: fields.list.get(at, null_on_oob=True).str.strip_chars(CONTROL) for role, at in place.items()},
    )
    missing = [pl.lit(None, dtype=pl.String).alias(role) for role in ALIASES if role not in place]
    rows = rows.with_columns(*missing)
    wrong = (
        pl.when(pl.col("n") != width)
        .then(pl.format("{} column(s) instead of {}", "n", pl.lit(width)))
        .when(pl.col("whole").str.contains("[\0\r]"))
        .then(pl.lit("a NUL or a carriage return within the line"))
    )
    rows = rows.with_columns(reason=wrong)
    rejects = [block.rejects, _rejected(rows)]
    rows = rows.filter(pl.col("reason").is_null())
    filtered: dict[str, int] = {}
    rows = rows.with_columns(rule=_rule(options), qualifier=_is_qualifier(qualifiers, edges))
    rows = rows.with_columns(qualifier=pl.col("qualifier") & (pl.col("rule") != "empty node").fill_null(True))
    for rule, count in rows.filter(pl.col("rule").is_not_null()).group_by("rule").len().sort("rule").iter_rows():
        filtered[rule] = count
    rows = rows.filter(pl.col("rule").is_null())
    subject, not_subject = symbols(rows["node1"])
    predicate, not_predicate = symbols(rows["label"])
    terms = parse(rows.select(text="node2", type="type"))
    rows = rows.select("line", "whole", "id", "rank", "qualifier", label="label", node1="node1").with_columns(
        subject=subject, predicate=predicate.replace(NAMES), not_subject=not_subject, not_predicate=not_predicate
    )
    rows = pl.concat([rows, terms], how="horizontal").with_columns(
        reason=pl.coalesce(
            pl.lit("subject: ") + pl.col("not_subject"),
            pl.lit("predicate: ") + pl.col("not_predicate"),
            pl.lit("object: ") + pl.col("reason"),
        )
    )
    rejects.append(_rejected(rows))
    rows = rows.filter(pl.col("reason").is_null())
    statements = (
        rows.filter(~pl.col("qualifier"))
        .with_columns(
            rank=pl.col("rank").replace_strict(RANKS, default=0, return_dtype=pl.Int8),
            statement=pl.when((pl.col("id") != "") & ~pl.col("label").is_in(list(NAMES))).then("id"),
        )
        .select(pl.col(name).cast(kind) for name, kind in STATEMENTS.items())
    )
    qualified = (
        rows.filter("qualifier")
        .with_columns(row=pl.lit(None, dtype=pl.Int64), statement="node1")
        .select(pl.col(name).cast(kind) for name, kind in QUALIFIERS.items())
    )
    return StatementBatch(
        statements,
        pl.concat(rejects),
        ignored,
        block.fraction,
        qualified if qualified.height else None,
        filtered,
    )


def _rejected(rows: pl.DataFrame) -> pl.DataFrame:
    bad = rows.filter(pl.col("reason").is_not_null())
    return bad.select("line", "reason", text=pl.col("whole").str.slice(0, MAX_REJECT_TEXT)).cast(pl.Schema(REJECTS))


def _is_qualifier(by_name: bool, edges: pl.Series | None) -> pl.Expr:
    if by_name:
        return pl.lit(True)
    result = pl.col("node1").str.contains(_EDGE)
    return result if edges is None else result | pl.col("node1").hash().is_in(edges.implode())


def _rule(options: KgOptions) -> pl.Expr:
    """The rule by which a row is left out, or null."""
    label, node1, node2 = pl.col("label"), pl.col("node1"), pl.col("node2")
    requested = label.is_in(list(options.relations))
    entities = node1.str.contains(_ENTITY)
    both = entities & node2.str.contains(_ENTITY)
    kinds = entities & (label == "type") & node2.is_in(["property", "item", "lexeme", "form", "sense"])
    datatypes = node1.str.contains("^P[1-9][0-9]*$") & (label == "datatype")
    return (
        pl.when((node1 == "") | (node2 == ""))
        .then(pl.lit("empty node"))
        .when(label.is_in(list(DERIVED)) & both & ~requested)
        .then(pl.lit("derived edge"))
        .when((label.is_in(list(METADATA)) | kinds | datatypes) & ~requested)
        .then(pl.lit("metadata"))
    )


FORMAT = FormatSpec(
    Kgtk, "KGTK's TSV with node1, label, node2: edges, names, aliases, qualifiers", specific=True, words=("kgtk",)
)
