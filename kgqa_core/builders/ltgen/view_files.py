"""Page views from files: the monthly files that Wikimedia publishes, and tables of one's own.

A published file (`pageviews-YYYYMM-user.bz2` of https://dumps.wikimedia.org/other/pageview_complete, plain or packed
with gzip, bzip2 or zstd) has lines `en.wikipedia Title page_id device views hours`; a title has a line for each device.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path

import polars as pl

from kgqa_core.errors import KgInputError
from kgqa_core.kg.formats.source import Source
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.spool import regular_file

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
            found = known.filter(pl.col("site").is_in(sorted(sites)) & pl.col("title").is_in(wanted.implode()))
            for title, views in found.group_by("title").agg(pl.col("views").sum()).iter_rows():
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
    found: dict[str, str] = {}
    for source in sources:
        lines = bad = 0
        for block in source.blocks():
            for text in block.lines["text"]:
                key, tab, value = text.partition("\t")
                lines += 1
                if tab and key.strip() and value.strip():
                    found[key.strip().removeprefix("<").removesuffix(">")] = value.strip()
                else:
                    bad += bool(text.strip())
            bad += block.rejects.height
        if lines and bad == lines:
            raise KgInputError(f"{source.path}: none of {lines:,} lines is `key<TAB>{what}`; check ltgen.popularity")
        if bad:
            monitor.note(f"{source.label}: {bad:,} of {lines:,} lines are not `key<TAB>{what}`")
    return found


def read_views(sources: Sequence[Source], months: int, monitor: Monitor = QUIET) -> dict[str, float]:
    """Mean monthly views by key from tables.  Raises KgInputError when no line has a number."""
    found: dict[str, float] = {}
    bad = []
    for key, text in read_table(sources, "views", monitor).items():
        try:
            value = float(text.replace(",", ""))
        except ValueError:
            bad.append(text)
            continue
        if value >= 0 and value != float("inf"):
            found[key] = value / months
        else:
            bad.append(text)
    if not found:
        raise KgInputError(
            f"{sources[0].path}: no line is `key<TAB>views` with a number (first: {bad[0] if bad else 'empty'!r}); "
            "check ltgen.popularity.files"
        )
    if len(bad) > 1:  # one may be the header
        monitor.note(f"{len(bad):,} lines of page views have no number, for example {bad[0]!r}")
    return found
