"""Dump files read as columns of codes: what both passes see of the statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import polars as pl

from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError
from kgqa_core.kg.bridges import canonical
from kgqa_core.kg.formats.ahead import read_ahead
from kgqa_core.kg.formats.base import ENTITY, LITERAL, TEXT, StatementBatch
from kgqa_core.kg.formats.detect import reader_of
from kgqa_core.kg.formats.ntriples import NTriples, read_chunk
from kgqa_core.kg.formats.ntriples_columns import KIND, OBJECT, PREDICATE, SUBJECT
from kgqa_core.kg.formats.source import Chunk, Source
from kgqa_core.kg.formats.spans import SpanBatch
from kgqa_core.kg.formats.wikidata.rdf_terms import STATEMENT_NODE
from kgqa_core.kg.subset.codes import Array, codes_of, key_codes, span_codes, spans_without_colons
from kgqa_core.kg.subset.roles import INSTANCES, NAME, SYNTAXES, LineSyntax, Relations, role_of

JSON = "wikidata-json"
"""The format whose subset is JSON again; that of all others is N-Triples."""


@dataclass(frozen=True, slots=True)
class StatementColumns:
    """Statements of a batch.  subject: codes.  object: codes, 0 for a literal.  relation: numbers of `Relations`.

    stated: which of them count by their rank.  chunk: the lines that the batch was cut from, where lines are kept as
    they stand.
    """

    subject: Array
    object: Array
    relation: Array
    stated: Array
    batch: StatementBatch | SpanBatch
    chunk: Chunk | None = None


class DumpFile:
    """A dump file with the reader that understands it.  Raises KgInputError when none does.

    wanted: relations to follow and keep; all when empty.
    """

    def __init__(self, source: Source, options: KgOptions, wanted: tuple[str, ...] = ()) -> None:
        self.source, self.options, self.wanted = source, options, wanted
        self._reader = reader_of(source, options)
        self.format = self._reader.name
        head = [line for line in source.head() if not line.lstrip().startswith("#")]
        plain = self.format == "ntriples" or NTriples().sniff(head, options) > 0.5
        self.syntax: LineSyntax | None = SYNTAXES.get(self.format) if plain else None

    def relations(self) -> Relations:
        """No relations yet, with the roles that they have in this file."""
        role = self.syntax.role if self.syntax is not None else role_of
        return Relations(lambda key: role(key, self.options), self.wanted)

    def columns(self, relations: Relations) -> Iterator[StatementColumns]:
        """The statements of the file in pieces; relations that are new are added to `relations`."""
        if self.syntax is not None:
            for chunk, spans in read_ahead(lambda: map(partial(_cut, self.syntax), self.source.chunks())):
                yield _of_spans(spans, chunk, self.syntax, relations)
            return
        for batch in self._reader.read(self.source, self.options):
            yield _of_frame(batch, relations, self.options)

    def bridges(self, columns: StatementColumns, relations: Relations) -> tuple[Array, Array]:
        """Codes of ids in other graphs, in their canonical form, and of the entities that have them."""
        known = [number for number, key in enumerate(relations.keys) if key in self.options.bridges]
        rows = np.flatnonzero(np.isin(columns.relation, known) & columns.stated & (columns.object == 0))
        if not len(rows):
            return rows.astype(np.uint64), rows.astype(np.uint64)
        batch = columns.batch
        if isinstance(batch, SpanBatch):
            texts = SpanBatch(batch.data, batch.rows[rows]).strings(OBJECT)
        else:
            texts = batch.statements["object"].gather(rows)
        return codes_of(canonical(text) for text in texts), columns.subject[rows]


def _cut(syntax: LineSyntax | None, chunk: Chunk) -> tuple[Chunk, SpanBatch]:
    assert syntax is not None
    return chunk, read_chunk(chunk, syntax.terms, syntax.predicates)


def _of_spans(batch: SpanBatch, chunk: Chunk, syntax: LineSyntax, relations: Relations) -> StatementColumns:
    data, rows = batch.data, batch.rows
    subject = span_codes(data, rows[:, SUBJECT], rows[:, SUBJECT + 1])
    thing = span_codes(data, rows[:, OBJECT], rows[:, OBJECT + 1])
    thing[rows[:, KIND] == LITERAL] = 0
    if syntax.entities_only:
        thing[~spans_without_colons(data, rows[:, OBJECT], rows[:, OBJECT + 1])] = 0

    def text(row: int) -> str:
        begin, length = rows[row, PREDICATE], rows[row, PREDICATE + 1]
        return bytes(data[begin : begin + length]).decode()

    return _columns(subject, thing, _numbers(span_codes(data, rows[:, 2], rows[:, 3]), text, relations), relations,
                    batch, chunk)  # fmt: skip


def _of_frame(batch: StatementBatch | SpanBatch, relations: Relations, options: KgOptions) -> StatementColumns:
    rows = batch.statements
    qualifiers = batch.qualifiers
    if (qualifiers is not None and "statement" in qualifiers.columns and qualifiers["statement"].count()) or rows[
        "subject"
    ].str.starts_with(STATEMENT_NODE).any():
        raise KgInputError(
            "the dump has statement nodes, which stand between two entities; take the truthy N-Triples or the JSON "
            "dump, which has qualifiers and ranks too"
        )
    predicates = rows["predicate"]
    relation = _numbers(key_codes(predicates), lambda row: str(predicates[row]), relations)
    thing = key_codes(rows["object"])
    kind = rows["kind"].to_numpy()
    named = np.isin(relation, [n for n, role in enumerate(relations.roles) if role == NAME])
    thing[(kind != ENTITY) & ((kind != TEXT) | named)] = 0
    return _columns(key_codes(rows["subject"]), thing, relation, relations, batch, None, _stated(rows, options.ranks))


def _numbers(codes: Array, text: Callable[[int], str], relations: Relations) -> Array:
    return relations.numbers(codes, text)


def _columns(
    subject: Array, thing: Array, relation: Array, relations: Relations, batch: StatementBatch | SpanBatch,
    chunk: Chunk | None, stated: Array | None = None,
) -> StatementColumns:  # fmt: skip
    turned = [number for number, role in enumerate(relations.roles) if role == INSTANCES]
    swapped = np.isin(relation, turned) & (thing != 0) if turned else np.zeros(len(subject), dtype=np.bool_)
    if swapped.any():
        subject, thing = np.where(swapped, thing, subject), np.where(swapped, subject, thing)
    if stated is None:
        stated = np.ones(len(subject), dtype=np.bool_)
    return StatementColumns(subject, thing, relation, stated, batch, chunk)


def _stated(rows: pl.DataFrame, ranks: str) -> Array | None:
    """Which statements count by their rank; all when None.  A subject's statements are in one batch."""
    if "rank" not in rows.columns or ranks == "all" or not (rows["rank"] != 0).any():
        return None
    rank = pl.col("rank").fill_null(0)
    if ranks == "normal" or not (rows["rank"] > 0).any():
        return rows.select(rank >= 0).to_series().to_numpy()
    preferred = rows.lazy().filter(rank > 0).select("subject", "predicate", best=pl.lit(True)).unique()
    joined = rows.lazy().join(preferred, on=["subject", "predicate"], how="left", maintain_order="left")
    return joined.select((rank >= 0) & ((rank > 0) | pl.col("best").is_null())).collect().to_series().to_numpy()


def literal_pairs(file: DumpFile, predicates: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Relation, subject and value of the statements of some relations whose objects are no entities."""
    relations = file.relations()
    for columns in file.columns(relations):
        wanted = [number for number, key in enumerate(relations.keys) if key in predicates]
        rows = np.flatnonzero(np.isin(columns.relation, wanted) & columns.stated & (columns.object == 0))
        if not len(rows):
            continue
        batch = columns.batch
        if isinstance(batch, SpanBatch):
            part = SpanBatch(batch.data, batch.rows[rows])
            subjects, values = part.strings(SUBJECT), part.strings(OBJECT)
        else:
            subjects, values = (batch.statements[name].gather(rows) for name in ("subject", "object"))
        keys = (relations.keys[number] for number in columns.relation[rows].tolist())
        yield from zip(keys, subjects, values, strict=True)
