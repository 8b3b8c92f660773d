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
    QUALIFIERS,
    STATEMENTS,
    StatementBatch,
    divided,
    filled,
    odd_text,
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
_WIKIDATA_ID = re.compile(rf"{_EDGE}|-(?:label|alias|description)-")


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
        index, width = header(head[0], str(source.path))
        qualifiers = "qualifiers" in re.split(r"[._-]", source.path.name.lower())
        edges = None if qualifiers or "id" not in index else _edge_hashes(source, index["id"], head)
        headed = False
        for block in source.blocks():
            lines, ignored = block.lines, block.lines.height
            text = pl.col("text")
            lines = lines.filter((text.str.strip_chars(" \t") != "") & ~text.str.starts_with("#"))
            if not headed and lines.height:
                headed, lines = True, lines.slice(1)
            ignored -= lines.height
            yield _read(block, lines, ignored, index, width, qualifiers, edges, options)


def header(line: str, path: str) -> tuple[dict[str, int], int]:
    """Indexes of the columns that are used, and the number of columns.  Raises KgInputError when one is missing."""
    columns = line.split("\t")
    index: dict[str, int] = {}
    for role, names in ALIASES.items():
        indexes = [columns.index(name) for name in names if name in columns]
        if indexes:
            index[role] = indexes[0]
    lacking = [role for role in ("node1", "label", "node2") if role not in index]
    if lacking:
        shown = ", ".join(repr(column) for column in columns[:20])
        raise KgInputError(
            f"{path} is no KGTK edge file: its header has no column {' and no '.join(lacking)}, only {shown}"
        )
    return index, len(columns)


def _edge_hashes(source: Source, index: int, head: list[str]) -> pl.Series | None:
    """Hashes of a file's edge ids, which it may qualify in its own rows; None where ids are Wikidata's.

    index: of the column of ids.
    """
    ids = [fields[index] for line in head[1:] if len(fields := line.split("\t")) > index and fields[index]]
    if not ids or sum(bool(re.search(_WIKIDATA_ID, name)) for name in ids) * 2 > len(ids):
        return None
    hashes = []
    for block in source.blocks():
        names = block.lines.select(pl.col("text").str.split("\t").list.get(index, null_on_oob=True).alias("id"))
        hashes.append(names.filter(pl.col("id") != "")["id"].hash())
    return pl.concat(hashes).unique()


def _read(
    block: Block,
    lines: pl.DataFrame,
    ignored: int,
    index: dict[str, int],
    width: int,
    qualifiers: bool,
    edges: pl.Series | None,
    options: KgOptions,
) -> StatementBatch:
    fields = pl.col("fields")
    rows = lines.with_columns(fields=pl.col("text").str.split("\t")).select(
        "line",
        "text",
        n=fields.list.len(),
        **{role: fields.list.get(at, null_on_oob=True).str.strip_chars(CONTROL) for role, at in index.items()},
    )
    rows = rows.with_columns(pl.lit(None, dtype=pl.String).alias(role) for role in ALIASES if role not in index)
    wrong_width = pl.when(pl.col("n") != width).then(pl.format("{} column(s) instead of {}", "n", pl.lit(width)))
    rows, odd = divided(rows.with_columns(reason=pl.coalesce(wrong_width, odd_text("line"))))
    rows = rows.with_columns(rule=_rule(options), qualifier=_is_qualifier(qualifiers, edges))
    rows = rows.with_columns(qualifier=pl.col("qualifier") & (pl.col("rule") != "empty node").fill_null(True))
    by_rule = rows.filter(pl.col("rule").is_not_null()).group_by("rule").len().sort("rule")
    rows = rows.filter(pl.col("rule").is_null())
    subject, not_subject = symbols(rows["node1"])
    predicate, not_predicate = symbols(rows["label"])
    terms = parse(rows.select(text="node2", type="type"))
    rows = rows.select("line", "text", "id", "rank", "qualifier", "label", "node1").with_columns(
        subject=subject, predicate=predicate.replace(NAMES), not_subject=not_subject, not_predicate=not_predicate
    )
    rows = pl.concat([rows, terms], how="horizontal").with_columns(
        reason=pl.coalesce(
            pl.lit("subject: ") + pl.col("not_subject"),
            pl.lit("predicate: ") + pl.col("not_predicate"),
            pl.lit("object: ") + pl.col("reason"),
        )
    )
    rows, unreadable = divided(rows)
    statements = rows.filter(~pl.col("qualifier")).with_columns(
        rank=pl.col("rank").replace_strict(RANKS, default=0, return_dtype=pl.Int8),
        statement=pl.when((pl.col("id") != "") & ~pl.col("label").is_in(list(NAMES))).then("id"),
    )
    qualified = rows.filter("qualifier").with_columns(statement="node1")
    return StatementBatch(
        filled(statements, STATEMENTS),
        pl.concat([block.rejects, odd, unreadable]),
        ignored,
        block.fraction,
        filled(qualified, QUALIFIERS) if qualified.height else None,
        dict(by_rule.iter_rows()),
    )


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
