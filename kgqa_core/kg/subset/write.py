"""The second pass: the statements of a subset out of a dump file, lines as they stand or entities with fewer claims."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numba import njit

from kgqa_core.kg.formats.base import LITERAL
from kgqa_core.kg.formats.ntriples_columns import DATATYPE, SUBJECT
from kgqa_core.kg.formats.spans import SpanBatch
from kgqa_core.kg.look.dump import BASE, literal, resource
from kgqa_core.kg.subset.codes import Array
from kgqa_core.kg.subset.keep import KeepRule, Masks, Numbering, PartCounts, decide
from kgqa_core.kg.subset.part import HITS, PartWriter
from kgqa_core.kg.subset.read import JSON, DumpFile, StatementColumns
from kgqa_core.kg.subset.write_json import write_entities
from kgqa_core.kg.vocabulary import WIKIDATA, WIKIDATA_ENTITY
from kgqa_core.monitor import Monitor

_jit: Any = njit(nogil=True, cache=True, error_model="numpy", boundscheck=False)


def write_part(file: DumpFile, folder: Path, wanted: KeepRule, monitor: Monitor) -> dict[str, Any]:
    """Writes what is kept of a file to a folder, and returns its counts."""
    part_counts = PartCounts(np.zeros(len(wanted.names), dtype=np.bool_))
    out = PartWriter(folder)
    try:
        if file.format == JSON:
            write_entities(file, wanted, part_counts, out, monitor)
        else:
            _write_statements(file, wanted, part_counts, out, monitor)
    finally:
        out.close()
    np.save(folder / HITS, part_counts.hits, allow_pickle=False)
    return {**part_counts.counts, "used": sorted(part_counts.used)}


def _write_statements(
    file: DumpFile, wanted: KeepRule, part_counts: PartCounts, out: PartWriter, monitor: Monitor
) -> None:
    relations = file.relations()
    numbering = Numbering(relations, wanted)
    for columns in file.columns(relations):
        masks = decide(columns, relations, numbering, wanted, part_counts)
        batch = columns.batch
        part_counts.counts["lines"] += batch.height + batch.rejects.height + batch.ignored
        (_copy_lines if columns.chunk is not None else _convert)(columns, masks, wanted, part_counts, out)
        monitor.progress(round(100 * batch.fraction, 1), 100, f"% · statements of {file.source.label}")


def _copy_lines(
    columns: StatementColumns, masks: Masks, wanted: KeepRule, part_counts: PartCounts, out: PartWriter
) -> None:
    batch, chunk = columns.batch, columns.chunk
    assert isinstance(batch, SpanBatch) and chunk is not None
    data = np.frombuffer(chunk.data, dtype=np.uint8)

    def copied(rows: Array) -> bytes:
        begins = batch.rows[rows, SUBJECT].astype(np.int64)
        bounds = np.empty((len(begins), 2), dtype=np.int64)
        _bounds(data, begins, bounds)
        text = np.empty(int((bounds[:, 1] - bounds[:, 0] + 1).sum()), dtype=np.uint8)
        _copy(data, bounds, text)
        return text.tobytes()

    def in_languages(mask: Array) -> Array:
        rows = np.flatnonzero(mask)
        if not wanted.languages or not len(rows):
            return rows
        languages = SpanBatch(batch.data, batch.rows[rows]).strings(DATATYPE)
        return rows[_in_languages(languages, wanted)]

    names, relation_names = in_languages(masks.names), in_languages(masks.relation_names)
    part_counts.counts["names"] += len(names)
    rows = np.sort(np.concatenate([np.flatnonzero(masks.facts), names]))
    if len(rows):
        out.lines(copied(rows))
    if len(relation_names):
        out.relation_names(columns.subject[relation_names], copied(relation_names))


def _in_languages(datatypes: pl.Series, wanted: KeepRule) -> Array:
    """Which datatypes are languages that are kept, or no language."""
    known = {tag: wanted.speaks(tag.removeprefix("@") if tag.startswith("@") else "") for tag in datatypes.unique()}
    return np.array([known[tag] for tag in datatypes], dtype=np.bool_)


def _convert(
    columns: StatementColumns, masks: Masks, wanted: KeepRule, part_counts: PartCounts, out: PartWriter
) -> None:
    """Statements of other formats as N-Triples, with Wikidata's IRIs for its keys."""
    rows = columns.batch.statements
    names, relation_names = masks.names, masks.relation_names
    if wanted.languages:
        in_languages = _in_languages(rows["datatype"].fill_null(""), wanted)
        names, relation_names = names & in_languages, relation_names & in_languages
    part_counts.counts["names"] += int(names.sum())
    rows = rows.with_columns(named=pl.Series(names | relation_names))
    if (mask := masks.facts | names).any():
        out.lines(_ntriples(rows.filter(pl.Series(mask))))
    if relation_names.any():
        out.relation_names(columns.subject[relation_names], _ntriples(rows.filter(pl.Series(relation_names))))


_ITEM = r"^[QPL][1-9][0-9]*(?:-[FS][0-9]+)?$"
_PROPERTY = r"^P[1-9][0-9]*$"


def _ntriples(rows: pl.DataFrame) -> bytes:
    def node(column: str) -> pl.Expr:
        key = pl.col(column)
        item = pl.concat_str(pl.lit(f"<{WIKIDATA_ENTITY}"), key, pl.lit(">"))
        return pl.when(key.str.contains(_ITEM)).then(item).otherwise(resource(key, BASE))

    predicate = pl.col("predicate")
    direct = pl.concat_str(pl.lit(f"<{WIKIDATA}prop/direct/"), predicate, pl.lit(">"))
    whole = resource(predicate, BASE, predicate=True)
    relation = pl.when(predicate.str.contains(_PROPERTY)).then(direct).otherwise(whole)
    is_literal = (pl.col("kind") == LITERAL) | pl.col("named")
    written = pl.when(is_literal).then(literal(pl.col("object"), pl.col("datatype"), BASE))
    thing = written.otherwise(node("object"))
    line = pl.concat_str(node("subject"), pl.lit(" "), relation, pl.lit(" "), thing, pl.lit(" .\n"))
    return "".join(rows.select(line.alias("line"))["line"]).encode()


@_jit
def _bounds(data: Array, begins: Array, bounds: Array) -> None:
    for i in range(begins.shape[0]):
        at = begins[i]
        while at > 0 and data[at - 1] != 10 and data[at - 1] != 13:
            at -= 1
        bounds[i, 0] = at
        at = begins[i]
        while at < data.shape[0] and data[at] != 10 and data[at] != 13:
            at += 1
        bounds[i, 1] = at


@_jit
def _copy(data: Array, bounds: Array, text: Array) -> None:
    at = 0
    for i in range(bounds.shape[0]):
        for k in range(bounds[i, 0], bounds[i, 1]):
            text[at] = data[k]
            at += 1
        text[at] = 10
        at += 1
