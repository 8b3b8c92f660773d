"""An update at the cost of the change: a copy of the old graph's file, changed where statements came and went.

The part of the old graph on which the change depends is a small graph of its own (`patch_region`).  It restates its
statements, the pair is taken out and added, and the build makes a graph of them; where its tables differ from those of
the part, the copy is changed (`patch_apply`).  Triples are written anew, since ids number them in order; everything
else costs what the change touches.  Where the outcome depends on more than the part, `patch` says so, and
`delta.update` makes the whole graph anew.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

from kgqa_core.config import KgOptions, OwnNames
from kgqa_core.errors import KgInputError
from kgqa_core.input_files import unchanged
from kgqa_core.kg.attach import shut_out
from kgqa_core.kg.build import (
    Part,
    fill_tables,
    limits,
    no_triples,
    reasons_of,
    resource_faults,
    what_was_read,
    whole_or_none,
    write_reading,
)
from kgqa_core.kg.filters import NOT_PREFERRED
from kgqa_core.kg.formats.base import LITERAL, STATEMENTS, TEXT, StatementBatch, empty
from kgqa_core.kg.formats.rdf_quads import REIFIES
from kgqa_core.kg.formats.spans import SpanBatch
from kgqa_core.kg.formats.wikidata.rdf_terms import STATEMENT_NODE
from kgqa_core.kg.ingest import infer, interpret, restate
from kgqa_core.kg.ingest.encode import assign_ids
from kgqa_core.kg.ingest.made_types import MAX_STATEMENTS
from kgqa_core.kg.ingest.restate import Stated
from kgqa_core.kg.sql import drop, number, quoted
from kgqa_core.kg.store import BLANK_NODES_NAMED, KgStore, create_tables
from kgqa_core.kg.update.patch_apply import apply
from kgqa_core.kg.update.patch_region import Region, text_predicates
from kgqa_core.kg.vocabulary import HIDDEN_ALIAS, OWL, RDF, RDFS, SKOS
from kgqa_core.monitor import Monitor
from kgqa_core.workspace import Workspace

CAME, WENT = "\0came", "\0went"
"""Names that statements of a pair bear while they are staged."""

MOST = 0.1
"""Statements that came and went, as a share of the old triples, above which the graph is built anew."""

FLOOR, CEILING = 1_000, 2_000_000
"""So many statements are always few; more are always many, as they are held in memory."""


class NotPatchable(Exception):
    """The change decides more than a part of the graph; the message says what."""


@dataclass(slots=True)
class Pair:
    """Statements that came and went, which are staged after the old graph's: how many of them have no effect."""

    not_found: int = 0
    already_there: int = 0

    def take_out(self, connection: duckdb.DuckDBPyConnection) -> int:
        """Takes the removed statements out of `raw`; how many staged statements are no longer there."""
        run = connection.execute
        node = run("SELECT key FROM terms WHERE tag = 0 AND starts_with(key, $1) LIMIT 1", [STATEMENT_NODE]).fetchone()
        if node:
            raise KgInputError(
                f"added and removed files of full Wikidata RDF, with statement nodes such as {node[0]}, are not "
                "understood; give files of truthy statements, or the new dump"
            )
        ends = "subject, predicate, object"
        run(f"CREATE TABLE marked AS SELECT n, {ends}, name FROM raw JOIN statement_names USING (n)")
        run("CREATE TABLE unmarked AS SELECT * FROM raw ANTI JOIN statement_names USING (n)")
        self.not_found, self.already_there = (
            number(
                connection,
                f"SELECT count(*) FROM (SELECT DISTINCT {ends} FROM marked WHERE name = $1) "
                f"{join} JOIN unmarked USING ({ends})",
                [mark],
            )
            for mark, join in ((WENT, "ANTI"), (CAME, "SEMI"))
        )
        before = number(connection, "SELECT count(*) FROM raw")
        run(
            f"""
            CREATE TABLE updated AS
            SELECT * FROM unmarked ANTI JOIN (SELECT {ends} FROM marked WHERE name = $1) USING ({ends})
            UNION ALL BY NAME SELECT r.* FROM raw r SEMI JOIN (SELECT n FROM marked WHERE name = $2) USING (n)""",
            [WENT, CAME],
        )
        drop(connection, "raw")
        run("ALTER TABLE updated RENAME TO raw")
        run("DELETE FROM statement_names; DROP TABLE marked; DROP TABLE unmarked")
        return before - number(connection, "SELECT count(*) FROM raw")


def check_pair(store: KgStore, options: KgOptions) -> None:
    """Raises KgInputError where statements that came and went do not determine the new graph."""
    advice = "update it with the new dump instead"
    changed = [
        name
        for name, value in restate.meaning_options(options).items()
        if store.meta["options"].get(name, value) != value
    ]
    changed += ["literal"] if store.meta["options"].get("literal", False) != options.literal else []
    if changed:
        raise KgInputError(
            f"kg.{changed[0]} differs from what {store.path} was built with, and added and removed statements cannot "
            f"bring back what it left out; keep the option, or {advice}"
        )
    typed = [key for key, row in store.meta.get("inferred", {}).items() if row["datatype"] is not None]
    if typed:
        raise KgInputError(
            f"what {typed[0]!r} means in {store.path} was inferred from all of its values, and added and removed "
            f"statements are not all of them; {advice}"
        )
    if options.informative_only:
        raise KgInputError(
            f"{store.path} was built with kg.informative_only, which judges relations by names that the graph may have "
            f"left out; {advice}"
        )
    hidden = number(store.connection, "SELECT sum(statements) FROM filtered WHERE rule = ?", [NOT_PREFERRED])
    if hidden:
        raise KgInputError(
            f"{store.path} left out {hidden:,} statements because preferred ones were there, and no longer "
            f"knows them; {advice}"
        )
    ranked = store.meta["counts"].get(interpret.RANKS_DROPPED, 0) if options.ranks == "truthy" else 0
    if ranked:
        raise KgInputError(
            f"{store.path} has {ranked:,} names and types that were preferred, and does not keep which; {advice}"
        )
    qualified = number(store.connection, "SELECT count(*) FROM qualifiers")
    if qualified:
        raise KgInputError(
            f"{store.path} has {qualified:,} qualifiers, and files of statements do not name their triples; " + advice
        )


def marked(part: Part, mark: str) -> Iterator[StatementBatch]:
    """The batches of a part of a pair, their statements marked.  Raises KgInputError for qualifiers."""
    for batch in part.batches:
        if batch.qualifiers is not None and batch.qualifiers.height:
            raise KgInputError(
                f"{part.path} has qualifiers, and an added or removed statement has no place for them; "
                "give files of plain statements, or the new dump"
            )
        frame = batch.statements
        if frame.height:
            frame = frame.with_columns(pl.lit(mark).alias("statement"))
        yield StatementBatch(frame, batch.rejects, batch.ignored, batch.fraction, None, batch.filtered, batch.unread)


def patch(
    workspace: Workspace, *, old: Path, options: KgOptions, parts: Sequence[Part], repeated: int | None = None
) -> dict[str, Any]:
    """Writes the graph `old`, without and with the marked statements of `parts`; what `delta.update` counts.

    repeated: where the parts are what a dump has and has not, how many of its other statements were repetitions.
    Raises NotPatchable, before there is a new graph, and KgInputError as an update does.
    """
    with KgStore.open(old) as store:
        path, meta = store.path, store.meta
        if store.base is not None:
            raise NotPatchable("the old graph is an overlay")
    if options.page_views:
        raise NotPatchable("page views are given")
    if options.names != OwnNames():
        raise NotPatchable("the graph has names of its owner's")
    if "stated" not in meta:
        raise NotPatchable("the old graph was built by an earlier version")
    if meta["counts"].keys() & {"derived", BLANK_NODES_NAMED}:
        raise NotPatchable("statements of the old graph follow from its vocabulary, or blank nodes are named")
    if "inferred" in meta:
        raise NotPatchable("what the old graph's values mean was inferred from all of them")
    read, changes = _read(parts, options, meta["counts"]["triples"])
    untyped = not meta["counts"]["types"] and meta["counts"]["triples"] <= MAX_STATEMENTS and options.infer_types
    if untyped and changes.height and not options.literal:
        raise NotPatchable("no types are stated, and what things are called may give them")
    texts = [HIDDEN_ALIAS, *text_predicates(options)]
    terms = pl.col("subject", "predicate", "object").str.contains(rf"^(_:|{OWL}|{RDFS}|{RDF}(first|rest)$|{SKOS})")
    declares = pl.any_horizontal(terms) & ~pl.col("predicate").is_in([*texts, *options.subtype_predicates])
    if not options.literal and changes.filter(declares).height:
        raise NotPatchable("the change has terms of a vocabulary, or blank nodes")
    with whole_or_none(workspace) as (staging, target):
        with resource_faults(workspace.out, options):
            shutil.copyfile(path, target)
        with (
            resource_faults(workspace.out, options),
            duckdb.connect(":memory:", config=limits(options, staging)) as connection,
        ):
            run = connection.execute
            run(f"ATTACH {quoted(path)} AS old (READ_ONLY); ATTACH {quoted(target)} AS new; ATTACH ':memory:' AS kg")
            shut_out(connection, staging)
            create_tables(connection, "kg")
            workspace.monitor.progress(5, 100, "% · looking up what changed")
            region = Region.of(connection, changes, options)
            if repeated is not None:  # what the dump has and a filter leaves out is in the parts
                run("DELETE FROM part.filtered")
            record, counts, pair = _build(connection, staging, region, meta, read, options, workspace.monitor)
            counts["duplicates"] += repeated or 0
            workspace.monitor.progress(30, 100, "% · changing the graph")
            new_meta, summary = apply(workspace, connection, meta, record, counts, options, staging)
            if not new_meta["counts"]["triples"]:
                raise no_triples(parts, counts["statements"])
            reading = what_was_read(connection, counts | new_meta["reading"])
            run("CHECKPOINT new; DETACH new")
        write_reading(workspace.out, reading, options)
    total = dict(sorted((new_meta["counts"] | new_meta["reading"]).items()))
    workspace.monitor.progress(100, 100, "% · changing the graph")
    workspace.monitor.note(", ".join(f"{value:,} {name}" for name, value in total.items()))
    without_effect = {"not_found": pair.not_found, "already_there": pair.already_there} if repeated is None else {}
    return total | reasons_of(reading) | {"changes": summary} | without_effect


def statements_allowed(triples: int) -> int:
    """So many statements may come and go in a graph of so many triples."""
    return min(max(int(MOST * triples), FLOOR), CEILING)


def _read(parts: Sequence[Part], options: KgOptions, triples: int) -> tuple[list[Part], pl.DataFrame]:
    """The parts with their batches in memory, and the statements as the table that `Region.of` takes."""
    most = statements_allowed(triples)
    texts, frames, read, count = text_predicates(options), [], [], 0
    with unchanged([part.path for part in parts if part.path is not None], KgInputError):
        for part in parts:
            batches: list[StatementBatch | SpanBatch] = []
            for batch in part.batches:
                count += batch.height
                if count > most:
                    raise NotPatchable(f"more than {most:,} statements came and went")
                batches.append(batch)
                if batch.height:
                    if infer.undecided(batch.statements, options, texts):
                        raise NotPatchable("what values mean is inferred from all of their relation")
                    frames.append(_went(batch.statements, texts))
                    check_reification(frames[-1])
            read.append(replace(part, batches=batches))
    return read, pl.concat([_went(empty(STATEMENTS), texts), *frames])


def check_reification(frame: pl.DataFrame) -> None:
    """Raises NotPatchable for statements about statements, which may be about any of the graph."""
    if frame.height and frame["predicate"].is_in([REIFIES, RDF + "subject"]).any():
        raise NotPatchable("there are statements about statements")


def _went(frame: pl.DataFrame, texts: Sequence[str]) -> pl.DataFrame:
    """`terms_of` marked statements, and whether they went."""
    return terms_of(frame, texts).with_columns((frame["statement"] == WENT).alias("went"))


def terms_of(frame: pl.DataFrame, texts: Sequence[str]) -> pl.DataFrame:
    """Statements with their objects as `Staging` identifies them: `literal`, `datatype`, `detail`; and `rank`."""
    text = (pl.col("kind") == TEXT) & pl.col("predicate").is_in(texts)
    literal = text | (pl.col("kind") == LITERAL)
    absent = [
        pl.lit(None, dtype).alias(name)
        for name, dtype in (("datatype", pl.String()), ("detail", pl.String()), ("rank", pl.Int8()))
        if name not in frame.columns
    ]
    return frame.with_columns(absent).select(
        "subject",
        "predicate",
        "object",
        literal.alias("literal"),
        pl.when(text).then(pl.lit("")).when(literal).then(pl.col("datatype").fill_null("")).alias("datatype"),
        pl.when(literal & ~text).then("detail").alias("detail"),
        pl.col("rank").fill_null(0),
    )


def _build(
    connection: duckdb.DuckDBPyConnection,
    staging: Path,
    region: Region,
    meta: dict[str, Any],
    pair_parts: Sequence[Part],
    options: KgOptions,
    monitor: Monitor,
) -> tuple[dict[str, Any], dict[str, int], Pair]:
    """Fills `kg` with the graph of the part; what the new meta keeps, what its build counts, and the pair."""
    pair = Pair()
    with connection.cursor() as reader:
        reader.execute("USE part")
        batches = list(restate.statements_of(reader, meta))
    before = Stated()

    def adjust(connection: duckdb.DuckDBPyConnection) -> int:
        nonlocal before
        before = region.stated(connection)
        return pair.take_out(connection)

    def assign(connection: duckdb.DuckDBPyConnection) -> None:
        region.add_relations(connection)
        assign_ids(connection)
        region.add_entities(connection)

    counts = fill_tables(
        connection, staging, [Part("the old graph", "graph", batches), *pair_parts],
        options.model_copy(update={"infer_values": False, "infer_types": False}), monitor,
        adjust=adjust, assign=assign, relations=frozenset((*options.relations, *options.drop_relations)),
    )  # fmt: skip
    others = Stated.of(meta["stated"]) - before
    now = restate.record(connection, options, others)
    for role in sorted(meta["usual"].keys() | now["usual"].keys()):
        known, key = meta["usual"].get(role), now["usual"].get(role)
        elsewhere = {"text": others.texts.total(), "alias": 1}.get(role, others.of_role(role))
        if known != key and elsewhere:
            raise NotPatchable(f"the usual statement of a {role} is another one: {known} before, {key} now")
    return now, counts, pair
