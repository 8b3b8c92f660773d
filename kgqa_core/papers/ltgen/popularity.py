"""How well known the candidates of a benchmark are, from the best source there is, and which source that was.

Page views come from the monthly files that Wikimedia publishes, from tables of one's own, or from its API
(`page_views`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from kgqa_core.config import PopularityOptions
from kgqa_core.errors import InputError, KgInputError
from kgqa_core.kg.formats.source import Source
from kgqa_core.kg.names import key_name
from kgqa_core.kg.store import KgStore
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.papers.ltgen.eligible import EligibleEntity
from kgqa_core.papers.ltgen.page_views import PageViews
from kgqa_core.spool import regular_file
from kgqa_core.workspace import Workspace

_ENTITY = r'^\s*[\[,]?\s*\{[^{}]*?"id"\s*:\s*"([QL][1-9][0-9]*)"'
"""The beginning of an entity of Wikidata's JSON, up to its id; what stands before it holds no objects."""

_MONTH = re.compile(r"(?:^|\D)((?:19|20)\d\d)-?(0[1-9]|1[0-2])(?!\d{3})")


def sources_of(files: Sequence[str]) -> list[Source]:
    """The files, in the order of their names.  Raises KgInputError for one that is not there, and for none."""
    if not files:
        raise KgInputError("ltgen.popularity.files names no file of page views; name one, or choose another source")
    paths = [Path(file).expanduser() for file in files]
    for path in paths:
        if not regular_file(path, KgInputError).is_file():
            raise KgInputError(f"there is no file of page views {path}; check ltgen.popularity.files")
    return [Source(path, path.name) for path in sorted(paths, key=lambda path: (path.name, str(path)))]


def is_table(source: Source) -> bool:
    """Whether a file is a table `key<TAB>views`; a published file has blanks only."""
    return any("\t" in line for line in source.head(1))


def months_of(sources: Sequence[Source]) -> int:
    """Months that published files are of: distinct ones by their names; a name without a month is one of its own."""
    named = {match.groups() if (match := _MONTH.search(source.label)) else source.label for source in sources}
    return len(named)


def read_dumps(
    sources: Sequence[Source], project: str, titles: Collection[str], monitor: Monitor = QUIET
) -> dict[str, float]:
    """Mean monthly views of those of some titles (with underscores) that the files have.

    Raises KgInputError when a file is damaged or none of its lines is understood.
    """
    wanted = pl.Series("title", sorted(set(titles)), dtype=pl.String)
    sites = {project, project.removesuffix(".org")}
    total: dict[str, int] = {}
    for number, source in enumerate(sources):
        lines = unread = 0
        for block in source.blocks():
            fields = block.lines.select(parts=pl.col("text").str.strip_chars_end(" ").str.split(" ")).select(
                site=pl.col("parts").list.first(),
                title=pl.col("parts").list.get(1, null_on_oob=True),
                views=pl.when(pl.col("parts").list.len() >= 5)
                .then(pl.col("parts").list.get(-2, null_on_oob=True))
                .cast(pl.Int64, strict=False),
            )
            lines += fields.height + block.rejects.height
            known = fields.drop_nulls()
            unread += fields.height + block.rejects.height - known.height
            counted = known.filter(pl.col("site").is_in(sorted(sites)) & pl.col("title").is_in(wanted.implode()))
            for title, views in counted.group_by("title").agg(pl.col("views").sum()).iter_rows():
                total[title] = total.get(title, 0) + views
            monitor.progress(number + block.fraction, len(sources), "files of page views")
        if lines and unread == lines:
            raise KgInputError(
                f"{source.path}: none of {lines:,} lines is `{project} Title page_id device views hours`; check "
                "ltgen.popularity.files and ltgen.popularity.project"
            )
        if unread:
            monitor.note(f"{source.label}: {unread:,} of {lines:,} lines are no page views")
    months = months_of(sources)
    return {title: views / months for title, views in total.items()}


def read_table(sources: Sequence[Source], what: str = "views", monitor: Monitor = QUIET) -> dict[str, str]:
    """Second column by first of tables with two columns; a later line wins, a header is read like any line.

    Raises KgInputError when no line has two columns.
    """
    table: dict[str, str] = {}
    for source in sources:
        lines = bad = 0
        for block in source.blocks():
            for text in block.lines["text"]:
                key, tab, value = text.partition("\t")
                lines += 1
                if tab and key.strip() and value.strip():
                    table[key.strip().removeprefix("<").removesuffix(">")] = value.strip()
                else:
                    bad += bool(text.strip())
            bad += block.rejects.height
        if lines and bad == lines:
            raise KgInputError(f"{source.path}: none of {lines:,} lines is `key<TAB>{what}`; check ltgen.popularity")
        if bad:
            monitor.note(f"{source.label}: {bad:,} of {lines:,} lines are not `key<TAB>{what}`")
    return table


def is_entity_dump(source: Source) -> bool:
    """Whether a file is Wikidata's JSON with an entity a line."""
    return any(re.match(_ENTITY, line) for line in source.head(3))


def dump_of(files: Iterable[str]) -> str | None:
    """The first of a graph's files that is Wikidata's JSON, whose sitelinks name articles."""
    local = (path for file in files if (path := Path(file).expanduser()).is_file())
    return next((str(path) for path in local if is_entity_dump(Source(path, path.name))), None)


def read_sitelinks(source: Source, project: str, keys: Collection[str], monitor: Monitor = QUIET) -> dict[str, str]:
    """Title of the article in a project (`en.wikipedia`) by entity, of those of some entities that have one.

    source: Wikidata's JSON with an entity a line; lines of other entities are read no further than their id.
    """
    language, _, kind = project.removesuffix(".org").partition(".")
    site = language.replace("-", "_") + ("wiki" if kind == "wikipedia" else kind)
    wanted = pl.Series("key", sorted(set(keys)), dtype=pl.String).implode()
    name = f'"{re.escape(site)}"'
    title = rf'{name}\s*:\s*\{{\s*"site"\s*:\s*{name}\s*,\s*"title"\s*:\s*("(?:[^"\\]|\\.)*")'
    titles: dict[str, str] = {}
    for block in source.blocks():
        entities = block.lines.select("text", key=pl.col("text").str.extract(_ENTITY))
        linked = entities.filter(pl.col("key").is_in(wanted))
        for key, text in linked.select("key", pl.col("text").str.extract(title)).drop_nulls().iter_rows():
            titles[key] = json.loads(text)
        monitor.progress(block.fraction, 1, "sitelinks")
    return titles


def read_views(sources: Sequence[Source], months: int, monitor: Monitor = QUIET) -> dict[str, float]:
    """Mean monthly views by key from tables.  Raises KgInputError when no line has a number."""
    views: dict[str, float] = {}
    bad = []
    for key, text in read_table(sources, "views", monitor).items():
        try:
            value = float(text.replace(",", ""))
        except ValueError:
            bad.append(text)
            continue
        if value >= 0 and value != float("inf"):
            views[key] = value / months
        else:
            bad.append(text)
    if not views:
        raise KgInputError(
            f"{sources[0].path}: no line is `key<TAB>views` with a number (first: {bad[0] if bad else 'empty'!r}); "
            "check ltgen.popularity.files"
        )
    if len(bad) > 1:  # one may be the header
        monitor.note(f"{len(bad):,} lines of page views have no number, for example {bad[0]!r}")
    return views


CHUNK = 200
"""Candidates requested from the API before it is looked whether these are enough."""


@dataclass(frozen=True)
class Popularity:
    """What was found.  values: by entity; one without is unknown.  source, unit, about: what the numbers are.

    counts: candidates looked at, with and without a value, and what the source answered.
    """

    values: dict[int, float]
    source: str
    unit: str
    about: str
    counts: dict[str, int] = field(default_factory=dict)


def choose_source(options: PopularityOptions, has_views: bool) -> str:
    """The source that `auto` means.  has_views: whether the graph knows page views.

    Raises InputError when the graph is to give views that it has not.
    """
    source: str = options.source
    if source == "auto":
        if options.files:
            return "table" if is_table(sources_of(options.files)[0]) else "dump"
        return "graph" if has_views else "degree"
    if source == "graph" and not has_views:
        raise InputError(
            "ltgen.popularity.source is graph, but this graph has no page views; build it with kg.page_views, or "
            "choose another source"
        )
    return source


def measure(
    workspace: Workspace,
    store: KgStore,
    candidates: Sequence[EligibleEntity],
    options: PopularityOptions,
    *,
    enough: Callable[[Mapping[int, float]], bool] = lambda values: False,
) -> Popularity:
    """The popularity of the candidates, in their order.

    enough: says of what was found so far whether more is needed; only the API, which costs time, stops for it.
    Raises what the sources raise.
    """
    source = choose_source(options, any(candidate.views is not None for candidate in candidates))
    if source == "degree":
        values = {candidate.entity: float(candidate.degree) for candidate in candidates}
        return _result(values, candidates, source, "triples", "the entity's triples in the graph (no page views)")
    if source == "graph":
        values = {
            candidate.entity: candidate.views / options.months
            for candidate in candidates
            if candidate.views is not None
        }
        return _result(values, candidates, source, "views a month", "page views that the graph was built with")
    if source == "table":
        table = read_views(sources_of(options.files), options.months, workspace.monitor)
        values = {candidate.entity: table[candidate.key] for candidate in candidates if candidate.key in table}
        return _result(values, candidates, source, "views a month", "a table of page views by entity")
    titles, shared = _titles(store, candidates, options, workspace.monitor)
    if source == "dump":
        files = sources_of(options.files)
        views = read_dumps(files, options.project, titles.values(), workspace.monitor)
        values = {entity: views[title] for entity, title in titles.items() if title in views}
        about = f"published page views of {options.project} in {months_of(files)} months"
        return _result(values, candidates, source, "views a month", about, shared_titles=shared)
    values = {}
    looked = 0
    with PageViews(options, workspace.cache) as api:
        for start in range(0, len(candidates), CHUNK):
            part = candidates[start : start + CHUNK]
            titles_of_part = [titles[each.entity] for each in part if each.entity in titles]
            views = api.mean(titles_of_part, workspace.monitor)
            values |= {each.entity: views[titles[each.entity]] for each in part if each.entity in titles}
            looked += len(part)
            if enough(values):
                break
        about = (
            f"page views of {options.project} by the Wikimedia REST API, {options.access}, {options.agent}, "
            f"{options.first_month} to {options.last_month}, {api.months} months"
        )
    return _result(values, candidates[:looked], source, "views a month", about, shared_titles=shared)


def _result(
    values: dict[int, float], looked: Sequence[EligibleEntity], source: str, unit: str, about: str, **more: int
) -> Popularity:
    if not values:
        raise InputError(
            f"none of {len(looked):,} entities has a popularity by the source '{source}'; do the keys or labels belong "
            "to this graph?"
        )
    counts = {"looked_at": len(looked), "with_value": len(values), "unknown": len(looked) - len(values), **more}
    return Popularity(values, source, unit, about, counts)


def _titles(
    store: KgStore, candidates: Sequence[EligibleEntity], options: PopularityOptions, monitor: Monitor
) -> tuple[dict[int, str], int]:
    """Article titles by entity, and how many entities lost theirs to a better connected one of the same label."""
    if options.titles:
        [source] = sources_of((options.titles,))
        if is_entity_dump(source):
            table = read_sitelinks(source, options.project, {candidate.key for candidate in candidates}, monitor)
        else:
            table = read_table([source], "title", monitor)
        own = {each.entity: _as_title(table[each.key]) for each in candidates if each.key in table}
        if own:
            return own, 0
        monitor.note(f"{source.label} names no article of {options.project}; entities' labels serve as titles")
    language = options.project.partition(".")[0]
    names = store.names([candidate.entity for candidate in candidates], [language])
    wanted = {candidate.entity: _as_title(names[candidate.entity]) for candidate in candidates}
    owners = _owners(store, wanted.values(), language)
    own_titles = {each: title for each, title in wanted.items() if owners.get(title, each) == each}
    return own_titles, len(wanted) - len(own_titles)


def _owners(store: KgStore, titles: Iterable[str], language: str) -> dict[str, int]:
    """The most connected entity of the graph that bears each title as a label, or as its key's name without label."""
    rows = store.connection.execute(
        """
        WITH titles AS (SELECT DISTINCT unnest($1::VARCHAR[]) AS title)
        SELECT t.title, arg_min(e.id, (-e.popularity, e.id))
        FROM titles t JOIN labels l ON replace(upper(left(l.label, 1)) || substr(l.label, 2), ' ', '_') = t.title
        JOIN entities e ON e.id = l.id WHERE e.kind = 'entity' AND lower(l.lang) IN ($2, 'mul', '')
        GROUP BY 1""",
        [list(titles), language],
    ).fetchall()
    return {str(text): int(entity) for text, entity in rows}


def _as_title(name: str) -> str:
    text = "_".join(key_name(name).split())
    return text[:1].upper() + text[1:]
