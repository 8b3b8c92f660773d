"""`kgqa kg …`: build a graph, bring it up to date, and look inside.  Rules of output are those of `flows.cli.app`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli import _session as common
from flows.cli._graph import built_folder
from flows.cli._options import (
    ContextOption,
    ForceOption,
    KeysOption,
    KgOption,
    MapOption,
    NamesOption,
    RunOption,
    SetOption,
    reading_section,
)
from flows.cli._pandas import without_pandas
from flows.cli._session import HomeSession, HomeTableSession, JsonSession, TableSession, print_json
from flows.cli.subset import subset
from flows.cli.usage import CommandApp
from kgqa_core.runs.records import newest_run, stage_artifact

if TYPE_CHECKING:
    from kgqa_core.kg.store import KgStore

ALWAYS = ("statements", "triples", "rejects", "entities", "literals", "relations")
"""Counts that are shown first, even when they are 0."""
MOST_ROWS = 1_000_000_000
"""Most rows of any kind that a command shows."""

kg_app = CommandApp(help="Build, update and look into knowledge graphs.", no_args_is_help=True)

EmitOption = Annotated[
    bool,
    typer.Option("--emit", help="Tell the Prefect server of PREFECT_API_URL: event kgqa.kg.updated, for refreshes."),
]


@dataclass(frozen=True)
class KgSection:
    """Options that make the section `kg` of a graph that is read from files."""

    format: Annotated[str, typer.Option("--format", help="auto, or the name of a reader: see `kgqa kg formats`.")] = (
        "auto"
    )
    max_reject_share: Annotated[
        float | None,
        typer.Option(
            "--max-reject-share", min=0, max=1, help="Largest share of bad statements [0.01].", show_default=False
        ),
    ] = None
    map: MapOption = None
    context: ContextOption = None
    names: NamesOption = None
    settings: SetOption = None

    def read(self) -> dict[str, Any]:
        """The keys of the section that are set."""
        from kgqa_core.config import parse_settings

        prefixed = [text if text.startswith("kg.") else f"kg.{text}" for text in self.settings or ()]
        section: dict[str, Any] = dict(parse_settings(prefixed).get("kg", {}))
        if self.format != "auto":
            section["format"] = self.format
        if self.max_reject_share is not None:
            section["max_reject_share"] = self.max_reject_share
        return section | reading_section(self.map, self.context, self.names)


@dataclass(frozen=True)
class ChangedStatements:
    """Options that name files of statements that came and went."""

    added: Annotated[
        list[str] | None, typer.Option("--added", help="File with statements that came.", show_default=False)
    ] = None
    removed: Annotated[
        list[str] | None, typer.Option("--removed", help="File with statements that went.", show_default=False)
    ] = None


@kg_app.command("build")
def build(
    session: JsonSession,
    files: Annotated[list[str], typer.Argument(help="Graph files or patterns; several make one graph.")],
    out: Annotated[Path, typer.Option("--out", help="Folder to write the graph to.")],
    section: KgSection,
    emit: EmitOption = False,
    force: ForceOption = False,
) -> None:
    """Build a graph folder (DuckDB) from dump files, and account for every statement."""
    session.start_logging()
    without_pandas()
    from flows.cli.events import check_server, tell
    from flows.cli.graph_folders import build_folder

    if emit:
        check_server(files)
    counts = build_folder(files, out, section.read(), force=force)
    if emit:
        counts["event"] = tell(out, counts, files)
    _show_built(counts, out, session.as_json)


@kg_app.command("map")
def map_tables(
    session: JsonSession,
    files: Annotated[list[str], typer.Argument(help="Tables (CSV, TSV, Parquet), patterns, or a folder of them.")],
    settings: SetOption = None,
) -> None:
    """Guess how tables of one database make a graph, as YAML to edit and give to `kgqa kg build FILES --map`."""
    session.start_logging()
    without_pandas()
    from kgqa_core.config import make_profile
    from kgqa_core.errors import KgInputError
    from kgqa_core.kg.ingest.sources import find_sources
    from kgqa_core.kg.mapping.choose import guess_of, tables_among
    from kgqa_core.kg.mapping.model import write_mapping

    options = make_profile({"kg": KgSection(settings=settings).read()}).kg
    sources = find_sources(files, options)
    tables = tables_among(sources, options)
    if not tables:
        raise KgInputError(f"no table with a header of its own is in {', '.join(files)}; `kgqa kg build` reads triples")
    others = [source for source in sources if source not in tables]
    mapping, notes = guess_of(tables, options, sources)
    notes += [f"{source.label} is no table; it is read without a mapping" for source in others]
    if session.as_json:
        print_json({"mapping": mapping.model_dump(mode="json", exclude_defaults=True), "notes": notes})
        return
    common.out.print(write_mapping(mapping, notes), end="", markup=False, highlight=False, soft_wrap=True)


@kg_app.command("update")
def update(
    session: JsonSession,
    old: Annotated[Path, typer.Argument(help="Graph folder to bring up to date.")],
    out: Annotated[Path, typer.Option("--out", help="Folder of the new graph; may be OLD itself.")],
    changed: ChangedStatements,
    section: KgSection,
    files: Annotated[
        list[str] | None, typer.Argument(help="The new dump, whole; leave out with --added/--removed.")
    ] = None,
    emit: EmitOption = False,
    force: ForceOption = False,
) -> None:
    """Take a newer dump, or what was added and removed: ids stay, and what changed is reported."""
    session.start_logging()
    without_pandas()
    from flows.cli.events import check_server, tell
    from flows.cli.graph_folders import update_folder

    if emit:
        check_server(files or ())
    counts = update_folder(
        old,
        out,
        files=files or (),
        added=changed.added or (),
        removed=changed.removed or (),
        settings=section.read(),
        force=force,
    )
    if emit:
        counts["event"] = tell(out, counts, files or ())
    _show_built(counts, out, session.as_json)


@kg_app.command("diff")
def diff(
    session: TableSession,
    old: Annotated[Path, typer.Argument(help="Graph folder.")],
    new: Annotated[Path, typer.Argument(help="Graph folder to compare it with.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for the lists of what differs.", show_default=False)
    ] = None,
    force: ForceOption = False,
) -> None:
    """Compare two graphs by key: entities, relations and triples added, removed, changed."""
    session.start_logging()
    without_pandas()
    from flows.cli.graph_folders import diff_folders

    _show_counts(diff_folders(old, new, out, force=force), f"{old} → {new}", session.as_json)


@kg_app.command("dkg")
def dkg(
    session: JsonSession,
    kg: Annotated[Path, typer.Argument(help="Graph folder.")],
    out: Annotated[Path, typer.Option("--out", help="Folder to write the arrays to.")],
    old_dkg: Annotated[
        Path | None,
        typer.Option(
            "--old-dkg", help="That of an earlier state of the graph; equal arrays share its files.", show_default=False
        ),
    ] = None,
    force: ForceOption = False,
) -> None:
    """Export a graph folder as the sparse arrays that training reads (DKG), sharing equal files of an older export."""
    session.start_logging()
    without_pandas()
    from flows.cli.graph_folders import export_folder

    _show_counts(export_folder(kg, out, old_dkg=old_dkg, force=force), str(out), session.as_json)


@kg_app.command("formats")
def formats(
    session: TableSession,
) -> None:
    """List the formats that are read, and how to name them."""
    from kgqa_core.kg.formats.registry import FORMATS
    from kgqa_core.kg.remote.registry import REMOTES

    rows = [{"format": name, "about": spec.label} for name, spec in FORMATS.items()]
    servers = [{"server": name, "about": spec.label} for name, spec in REMOTES.items()]
    if session.as_json:
        print_json({"formats": rows, "servers": servers})
        return
    _table("Formats, found by content and name; .gz, .bz2, .zst and .xz are read as they are", rows)
    _table("Servers, named in the place of a file", servers)


@kg_app.command("show")
def show(
    session: HomeTableSession,
    key: Annotated[str, typer.Argument(help="Entity key, label, alias, or an id in a bridged graph.")],
    kg: KgOption = None,
    run_id: RunOption = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=MOST_ROWS, help="Facts shown each way.")] = 50,
) -> None:
    """Show what the graph says about an entity: names, types, facts both ways, qualifiers."""
    from kgqa_core.kg.look.show import describe
    from kgqa_core.report.console import entity_tables

    with _graph(session, kg, run_id) as store:
        description = describe(store, key, limit=limit)
    if session.as_json:
        print_json(description)
        return
    for part in entity_tables(description):
        common.out.print(part)


@kg_app.command("search")
def search(
    session: HomeTableSession,
    text: Annotated[str, typer.Argument(help="Part of a label or alias.")],
    kg: KgOption = None,
    run_id: RunOption = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=MOST_ROWS, help="Entities shown.")] = 20,
) -> None:
    """Find entities by label or alias, the best match and most connected first."""
    from kgqa_core.kg.look.search import search as find

    with _graph(session, kg, run_id) as store:
        rows = find(store, text, limit=limit)
    if session.as_json:
        print_json({"text": text, "matches": rows})
    elif rows:
        columns = ("key", "name", "matched", "how", "popularity", "description")
        _table(f"{len(rows)} entities for {text!r}", [{name: row[name] for name in columns} for row in rows])
    else:
        common.out.print(f"nothing in this graph is called anything like {text!r}", markup=False)


@kg_app.command("path")
def path(
    session: HomeTableSession,
    start: Annotated[str, typer.Argument(help="Entity key or label.")],
    end: Annotated[str, typer.Argument(help="Entity key or label.")],
    kg: KgOption = None,
    run_id: RunOption = None,
    max_hops: Annotated[int, typer.Option("--max-hops", min=1, max=8, help="Longest path looked for.")] = 4,
    limit: Annotated[int, typer.Option("--limit", min=1, max=MOST_ROWS, help="Relation paths shown.")] = 20,
    show_keys: KeysOption = False,
) -> None:
    """Show the shortest relation paths between two entities; over types only where there is no other."""
    from kgqa_core.kg.look.paths import shortest_paths
    from kgqa_core.kg.look.search import resolve_one

    with _graph(session, kg, run_id) as store:
        ends = [resolve_one(store, text) for text in (start, end)]
        result = shortest_paths(store, ends[0], ends[1], max_hops=max_hops, limit=limit)
        keys = store.entity_keys(ends)
    if session.as_json:
        print_json(
            {
                "from": keys[ends[0]],
                "to": keys[ends[1]],
                "hops": result.length,
                "paths": result.paths,
                "cut": result.cut,
            }
        )
    elif result.paths:
        rows = [
            {
                "relation path": " → ".join(p["keys" if show_keys else "relations"]),
                "chains": p["count"],
                "for example": " – ".join(p["example_keys" if show_keys else "example"]),
            }
            for p in result.paths
        ]
        more = " (there are more)" if result.cut else ""
        _table(f"{result.length} hop(s) from {start!r} to {end!r}{more}", rows)
    else:
        common.out.print(f"no path of at most {max_hops} hops joins {start!r} and {end!r}", markup=False)


@kg_app.command("stats")
def stats(
    session: HomeTableSession,
    kg: KgOption = None,
    run_id: RunOption = None,
    top: Annotated[int, typer.Option("--top", min=1, max=MOST_ROWS, help="Rows of each table.")] = 15,
) -> None:
    """Count what the graph holds: degrees, relations, types, label coverage, literals, filters, rejects."""
    from kgqa_core.kg.look.stats import statistics
    from kgqa_core.kg.look.summary import summary
    from kgqa_core.report.console import statistics_tables

    with _graph(session, kg, run_id) as store:
        result = statistics(store, top=top)
        if session.as_json:
            print_json(result | {"summary": summary(store)})
            return
        for part in statistics_tables(result):
            common.out.print(part)
        _show_summary(store)


@kg_app.command("words")
def words(session: HomeSession, kg: KgOption = None, run_id: RunOption = None) -> None:
    """List relations, types and values, as a file of your own words to fill in for `--names`."""
    from flows.cli.words import words_of_graph

    with _graph(session, kg, run_id) as store:
        text = words_of_graph(store)
    if session.as_json:
        print_json({"words": text})
    else:
        common.out.print(text, end="", markup=False, highlight=False, soft_wrap=True)


@kg_app.command("export")
def export(
    session: HomeSession,
    out: Annotated[
        Path, typer.Argument(help="File to write: .nt, .nq, .ttl, .jsonld, .tsv, .csv, or a folder .parquet.")
    ],
    kg: KgOption = None,
    run_id: RunOption = None,
    format: Annotated[
        str | None,
        typer.Option(
            "--format", help="nt, nq, ttl, jsonld, tsv, csv or parquet; else by the name.", show_default=False
        ),
    ] = None,
    base: Annotated[str, typer.Option("--base", help="IRI put before keys that are none (RDF).")] = "urn:kgqa:",
    force: ForceOption = False,
) -> None:
    """Write the graph as N-Triples, N-Quads, Turtle, JSON-LD, TSV, CSV or Parquet."""
    session.start_logging()
    from kgqa_core.kg.look.dump import dump

    with _graph(session, kg, run_id) as store:
        counts = dump(store, out, format=format, base=base, force=force)
    _show_counts({**counts, "out": str(out)}, f"written to {out}", session.as_json)


def _finite(seconds: float) -> float:
    if not math.isfinite(seconds):
        raise typer.BadParameter(f"{seconds} is no number of seconds; give one such as 3600")
    return seconds


@kg_app.command("query")
def query(
    session: HomeTableSession,
    form: Annotated[str, typer.Argument(help="A logical form, such as '(COUNT (JOIN capital <France>))'.")],
    kg: KgOption = None,
    run_id: RunOption = None,
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=MOST_ROWS, help="Answers, and facts of proof, shown.")
    ] = 50,
    seconds: Annotated[
        float, typer.Option("--seconds", min=0, callback=_finite, help="Most time that the query may take.")
    ] = 10.0,
    sql: Annotated[
        bool, typer.Option("--sql", help="Show the query and its parameters instead of running it.")
    ] = False,
) -> None:
    """Ask the graph in a logical form: the answers by name, and the facts that prove them."""
    from kgqa_core.logic.look import look, sql_of

    with _graph(session, kg, run_id) as store:
        result = sql_of(store, form, limit=limit) if sql else look(store, form, limit=limit, seconds=seconds)
    if session.as_json:
        print_json(result)
        return
    if sql:
        common.out.print(result["sql"], markup=False, highlight=False, soft_wrap=True)
        for number, value in enumerate(result["parameters"], start=1):
            common.out.print(f"${number} = {value!r}", markup=False, highlight=False, soft_wrap=True)
        return
    _show_result(result, limit)


@kg_app.command("sql")
def sql(
    session: HomeTableSession,
    statement: Annotated[str, typer.Argument(help="A SELECT over the tables that `kgqa kg sql 'SHOW TABLES'` lists.")],
    kg: KgOption = None,
    run_id: RunOption = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=MOST_ROWS, help="Rows shown.")] = 1000,
) -> None:
    """Ask the graph in SQL; nothing can be changed, and no other file read or written."""
    from kgqa_core.kg.look.query import query
    from kgqa_core.report.console import result_table

    result = query(_folder(session, kg, run_id), statement, limit=limit)
    if session.as_json:
        print_json(result)
        return
    common.out.print(result_table(result["columns"], result["rows"]))
    if result["more"]:
        common.err.print(f"only the first {limit:,} rows; raise --limit")


def _show_result(result: dict[str, Any], limit: int) -> None:
    """The answers of a logical form, then the facts that prove them."""
    from kgqa_core.logic.result import value_text

    def line(text: str) -> None:
        common.out.print(text, markup=False, highlight=False, soft_wrap=True)

    value = result["value"]
    if value is not None:
        line(f"{value_text(value)} {result['unit'] or ''}".rstrip())
    elif result["answers"]:
        _table("", [{"answer": row["text"], "key": row["entity_key"]} for row in result["answers"]])
    else:
        line(f"no answer: {result['why'] or 'nothing in this graph is so'}")
    if result["proof"]:
        line("proof:")
    for text in result["proof"]:
        line(f"  {text}")
    if result["more"]:
        common.err.print(f"only the first {limit:,} answers and facts; raise --limit")


def _folder(session: JsonSession, kg: Path | None, run_id: str | None) -> Path:
    if kg is not None:
        return built_folder(session, kg)
    return stage_artifact(newest_run(session.look(), run_id), "kg").folder


def _graph(session: JsonSession, kg: Path | None, run_id: str | None) -> KgStore:
    from kgqa_core.kg.store import KgStore

    return KgStore.open(_folder(session, kg, run_id))


def _show_built(counts: dict[str, Any], out: Path, as_json: bool) -> None:
    """The counts of a graph folder, and what it is in five lines."""
    _show_counts(counts, str(out), as_json)
    if not as_json:
        from kgqa_core.kg.store import KgStore

        with KgStore.open(out) as store:
            _show_summary(store)


def _show_summary(store: KgStore) -> None:
    from kgqa_core.kg.look.summary import summary

    for line in summary(store):
        common.out.print(line, markup=False, highlight=False, soft_wrap=True)


def _show_counts(counts: dict[str, Any], title: str, as_json: bool) -> None:
    if as_json:
        print_json(counts)
        return
    rows = [(name, value) for name, value in _flat(counts) if value != 0 or name in ALWAYS]
    rows.sort(key=lambda row: ALWAYS.index(row[0]) if row[0] in ALWAYS else len(ALWAYS))
    _table(title, [{"what": name.replace("_", " "), "count": value} for name, value in rows])


def _flat(counts: dict[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in counts.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}: ")
        elif not isinstance(value, list):
            yield before + name, value


def _table(title: str, rows: list[dict[str, Any]]) -> None:
    from kgqa_core.report.console import rows_table

    common.out.print(rows_table(title, rows))


kg_app.command()(subset)
