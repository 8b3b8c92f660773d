"""How much an entity is looked at: page views of Wikipedia, from a published dump or a table of ours.

A table has lines `key<TAB>views`.  A dump has lines `en.wikipedia Title page_id agent count hours` (daily, monthly;
https://dumps.wikimedia.org/other/pageview_complete) or `en Title count bytes` (hourly), plain or as .gz, .bz2, .zst;
its titles are matched with names: underscores are spaces, and the first letter counts as a capital.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import polars as pl

from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError
from kgqa_core.kg.formats.source import Source
from kgqa_core.kg.names import END_SQL
from kgqa_core.kg.sql import execute_with, quoted
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.spool import regular_file

_SITES = ("{}", "{}.m", "{}.zero", "{}.z", "{}.wikipedia")
"""Names of one language's Wikipedia in the dumps: hourly (desktop, mobile, zero), and the complete ones."""

_TITLE = "upper(left({text}, 1)) || substr({text}, 2)"


def views_source(options: KgOptions) -> Source | None:
    """The file of page views, where one is named.  Raises KgInputError when it is not there."""
    if not options.page_views:
        return None
    path = Path(options.page_views).expanduser()
    if not regular_file(path, KgInputError).is_file():
        raise KgInputError(f"there is no file of page views {path}; check kg.page_views")
    return Source(path, path.name)


def add_views(connection: duckdb.DuckDBPyConnection, options: KgOptions, monitor: Monitor = QUIET) -> dict[str, int]:
    """Fills the views of kg.entities; returns `views` (entities that have some) and `views_unmatched` (keys or titles).

    A title means the entity that bears it as its label in the first of `options.languages`, without language, or as
    its key's name where it has no label; of several the one of the highest degree, then of the lowest id.  Raises
    KgInputError when no line of the file is understood.
    """
    source = views_source(options)
    if source is None:
        return {}
    run = connection.execute
    language = next((language.casefold() for language in options.languages if language), "en")
    run("CREATE TABLE page_views(name VARCHAR, views BIGINT)")
    head = source.head(1)
    keyed = bool(head) and "\t" in head[0]
    lines = unread = 0
    for frame, count, bad in _read(source, None if keyed else language):
        lines, unread = lines + count, unread + bad
        if frame.height:
            execute_with(connection, "INSERT INTO page_views FROM batch", frame)
    if unread == lines:
        raise KgInputError(
            f"{source.path}: none of {lines:,} lines is `key<TAB>views`, `en.wikipedia Title page_id agent count "
            "hours` or `en Title count bytes`; check kg.page_views"
        )
    if unread:
        monitor.note(f"{source.label}: {unread:,} of {lines:,} lines are no page views")
    if keyed:
        forms = "SELECT id, key AS form, popularity FROM kg.entities WHERE kind = 'entity'"
        name = "name"
    else:
        forms = f"""
            SELECT e.id, {_TITLE.format(text="l.label")} AS form, e.popularity
            FROM kg.labels l JOIN kg.entities e USING (id) WHERE l.lang IN ({quoted(language)}, 'mul', '')
            UNION ALL SELECT id, {_TITLE.format(text=END_SQL.format(key="key"))}, popularity FROM kg.entities
            WHERE kind = 'entity' AND id NOT IN (SELECT id FROM kg.labels WHERE label IS NOT NULL)"""
        name = _TITLE.format(text="replace(name, '_', ' ')")
    run(
        f"""
        CREATE TABLE viewed AS
        SELECT v.form, v.views, arg_min(f.id, (-f.popularity, f.id)) AS id
        FROM (SELECT {name} AS form, sum(views)::BIGINT AS views FROM page_views GROUP BY 1) v
        LEFT JOIN ({forms}) f USING (form) GROUP BY ALL"""
    )
    run(
        "UPDATE kg.entities SET views = v.views FROM (SELECT id, sum(views)::BIGINT AS views FROM viewed "
        "WHERE id IS NOT NULL GROUP BY id) v WHERE kg.entities.id = v.id"
    )
    row = run("SELECT count(DISTINCT id), count(*) FILTER (id IS NULL) FROM viewed").fetchone() or (0, 0)
    run("DROP TABLE page_views; DROP TABLE viewed")
    return {"views": int(row[0]), "views_unmatched": int(row[1])}


def _read(source: Source, language: str | None) -> Iterator[tuple[pl.DataFrame, int, int]]:
    """(name, views) of each block, its lines and how many of them are no page views; language None reads a table."""
    first = True
    for block in source.blocks():
        text = block.lines.select(text=pl.col("text"))
        lines = text.height + block.rejects.height
        if language is None:
            fields = text.select(pl.col("text").str.splitn("\t", 2).struct.rename_fields(["name", "views"])).unnest(
                "text"
            )
            views = fields["views"].str.strip_chars().str.replace_all(",", "")
            fields = fields.with_columns(views=views.cast(pl.Int64, strict=False))
            header = first and fields.height > 0 and fields["views"][0] is None
            result = fields.drop_nulls()
            yield result.with_columns(pl.col("name").str.strip_chars("<> ")), lines, lines - result.height - header
        else:
            sites = [site.format(language) for site in _SITES]
            fields = text.select(parts=pl.col("text").str.strip_chars_end(" ").str.split(" "))
            fields = fields.select(
                site=pl.col("parts").list.first(),
                name=pl.col("parts").list.get(1, null_on_oob=True),
                views=pl.when(pl.col("parts").list.len() >= 5)
                .then(pl.col("parts").list.get(-2, null_on_oob=True))
                .otherwise(pl.col("parts").list.get(2, null_on_oob=True))
                .cast(pl.Int64, strict=False),
            )
            known = fields.drop_nulls()
            yield known.filter(pl.col("site").is_in(sites)).select("name", "views"), lines, lines - known.height
        first = False
