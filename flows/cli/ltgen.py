"""`kgqa ltgen …`: build a long-tail benchmark from a graph, draw annotation sheets, compare them, show the tables."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli import _session as common
from flows.cli._options import BuildSourceOption, ForceOption, ProfileOption, SetOption, graph_folder
from flows.cli._session import JsonSession, Session, TableSession, err, print_json, print_rows
from flows.cli.usage import CommandApp
from kgqa_core.errors import ConfigError, InputError

if TYPE_CHECKING:
    from kgqa_core.config import Profile
    from kgqa_core.store.publish import FolderClaim

ltgen_app = CommandApp(no_args_is_help=True, help="Build a benchmark about little known entities from any graph.")

BenchmarkArgument = Annotated[Path, typer.Argument(help="Folder of a benchmark: with questions.jsonl, or qa and conv.")]


@ltgen_app.command("build")
def build(
    session: Session,
    kg: BuildSourceOption = None,
    profile: ProfileOption = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder to copy the benchmark to as well.", show_default=False)
    ] = None,
    writer: Annotated[
        str | None,
        typer.Option("--writer", help="template, builtin, hf:FOLDER_OR_ID or openai:MODEL.", show_default=False),
    ] = None,
    settings: SetOption = None,
    force: ForceOption = False,
) -> None:
    """Draw entities by popularity, have questions and dialogues written about them, keep what passes the checks."""
    graph = graph_folder(kg or [])
    chosen = _profile(profile, [] if graph else kg or [], writer, settings or [], built=graph is not None)
    session.prepare()
    session.start_logging()
    with err.status("checking the inputs …"):
        from flows.ltgen import build_ltgen, check

        check(chosen, graph)
        claims = _claims(out, chosen, graph, force) if out is not None else {}
    started = time.monotonic()
    data = build_ltgen(chosen, graph)
    folders = {kind: ref.folder for kind, ref in data["made"].items()}
    sheets = {kind: ref.folder for kind, ref in data["sheets"].items()}
    if out is not None:
        folders, sheets = (
            {kind: claims[part][kind].publish_copy(ref.folder) for kind, ref in data[part].items()}
            for part in ("made", "sheets")
        )
    _show([_statistics(folder) for folder in folders.values()], to_stderr=session.as_json)
    if session.as_json:
        counts = {kind: _manifest(ref.folder) for kind, ref in data["made"].items()}
        print_json(
            {
                "run_id": data["run_id"], "seconds": round(time.monotonic() - started, 2), "counts": counts,
                "digests": {kind: ref.digest for kind, ref in data["made"].items()},
                "sample": _manifest(data["sample"].folder),
                "questions": {kind: str(folder / "questions.jsonl") for kind, folder in folders.items()},
                "sheets": {kind: str(folder / "sheet.html") for kind, folder in sheets.items()},
            }
        )  # fmt: skip
        return
    for kind, folder in folders.items():
        common.out.print(f"{kind:<6} {folder / 'questions.jsonl'}", soft_wrap=True, markup=False, highlight=False)
    for kind, folder in sheets.items():
        common.out.print(f"sheet  {kind}: {(folder / 'sheet.html').as_uri()}", soft_wrap=True, markup=False)


@ltgen_app.command("sheet")
def sheet(
    session: JsonSession,
    benchmark: BenchmarkArgument,
    kg: Annotated[Path, typer.Option("--kg", help="Folder of the graph that the benchmark was built from.")],
    out: Annotated[Path, typer.Option("--out", help="Folder to write sheet.csv and sheet.html to.")],
    share: Annotated[float, typer.Option("--share", help="Share of the questions.")] = 0.03,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the draw.")] = 7,
    force: ForceOption = False,
) -> None:
    """Draw a sample for two annotators: a CSV file, and a page with radio buttons that saves one."""
    from kgqa_core.papers.ltgen.sheet import write_sheet
    from kgqa_core.store.publish import claim_folder, source_of

    session.start_logging()
    counts: dict[str, Any] = {}
    source = source_of("ltgen sheet", benchmark=benchmark, kg=kg)
    claim = claim_folder("ltgen_sheet", out, source=source, inputs=(benchmark, kg), force=force, set_aside=True)

    def fill(folder: Path, work: Path) -> dict[str, Any]:
        kind = str(_statistics(benchmark)["kind"])
        counts.update(write_sheet(folder, benchmark=benchmark, kg=kg, share=share, seed=seed, kind=kind))
        return counts

    claim.publish(fill)
    if session.as_json:
        print_json({**counts, "out": str(out)})
    else:
        page = (out.resolve() / "sheet.html").as_uri()
        common.out.print(f"{counts['items']:,} of {counts['of']:,} items in {out}; open {page}", soft_wrap=True)


@ltgen_app.command("agreement")
def agreement(
    session: JsonSession,
    first: Annotated[Path, typer.Argument(help="Sheet of one annotator (CSV).")],
    second: Annotated[Path, typer.Argument(help="Sheet of the other.")],
) -> None:
    """Compare two filled sheets: raw agreement, Cohen's κ, and the error rate where both concur."""
    from kgqa_core.papers.ltgen.sheet import compare, read_sheet

    compared = compare(read_sheet(first), read_sheet(second))
    if session.as_json:
        print_json(asdict(compared))
        return
    rows = [
        ("items annotated by both", f"{compared.items:,}"),
        ("annotated by one only", f"{compared.only_one:,}"),
        ("both correct / both incorrect", f"{compared.both_correct:,} / {compared.both_incorrect:,}"),
        ("only first correct / only second", f"{compared.first_only:,} / {compared.second_only:,}"),
        ("raw agreement", f"{compared.raw:.1%}"),
        ("Cohen's κ", "–" if compared.kappa is None else f"{compared.kappa:.3f}"),
        ("error rate where both concur", "–" if compared.error_rate is None else f"{compared.error_rate:.1%}"),
    ]
    print_rows("Agreement", [{"what": what, "value": value} for what, value in rows])
    for key in compared.disagreed[:20]:
        common.out.print(f"  disagreed: {key}", markup=False)


@ltgen_app.command("stats")
def stats(session: TableSession, benchmark: BenchmarkArgument) -> None:
    """Show a benchmark's tables: questions, dialogues and turns by level and reference triples, rejects by reason."""
    tables = [_statistics(folder) for folder in _parts(benchmark)]
    if session.as_json:
        print_json({"benchmarks": tables})
    else:
        _show(tables)


def _profile(name: str | None, files: list[str], writer: str | None, settings: list[str], *, built: bool) -> Profile:
    """The profile of a build; the questions of a profile, one set or several, do not count."""
    from kgqa_core.config import make_profile, parse_settings

    more = [*settings, *([f"ltgen.writing.writer={writer}"] if writer else [])]
    if name:
        chosen = common.choose_profile(name, files, None, None, more)
    elif files or built:
        from kgqa_core.kg.remote.registry import graph_name

        kg = {"name": graph_name(files[0]), "files": files} if files else {}
        chosen = make_profile({"name": "ltgen", "kg": kg}, parse_settings(more), origin="the options")
    else:
        raise ConfigError("give --kg FILE or FOLDER, or --profile NAME")
    questions = chosen.questions.model_copy(update={"name": "ltgen"})
    return chosen.model_copy(update={"questions": questions, "further_questions": (), "sets": ()})


def _claims(out: Path, profile: Profile, graph: str | None, force: bool) -> dict[str, dict[str, FolderClaim]]:
    """The folders of a copy, `OUT/qa`, `OUT/qa-sheet`, …; sheets that were filled in are never deleted."""
    from kgqa_core.store.publish import claim_folder, source_of

    files = [graph] if graph else list(profile.kg.files)
    rules: dict[str, Any] = {"source": source_of("ltgen build", kg=files), "inputs": files, "force": force}
    kinds = dict.fromkeys(profile.ltgen.writing.kinds)
    return {
        "made": {kind: claim_folder("ltgen", out / kind, **rules) for kind in kinds},
        "sheets": {kind: claim_folder("ltgen_sheet", out / f"{kind}-sheet", set_aside=True, **rules) for kind in kinds},
    }


def _manifest(folder: Path) -> dict[str, Any]:
    from kgqa_core.store.artifacts import read_manifest

    counts: dict[str, Any] = read_manifest(folder)["counts"]
    return counts


def _parts(benchmark: Path) -> list[Path]:
    """The folders of a benchmark that have statistics."""
    folders = [folder for folder in (benchmark, benchmark / "qa", benchmark / "conv") if _has(folder)]
    if not folders:
        raise InputError(f"{benchmark} is no benchmark: it has no statistics.json; `kgqa ltgen build` makes one")
    return folders


def _has(folder: Path) -> bool:
    return (folder / "statistics.json").is_file()


def _statistics(folder: Path) -> dict[str, Any]:
    if not _has(folder):
        raise InputError(f"{folder} is no benchmark: it has no statistics.json; `kgqa ltgen build` makes one")
    from kgqa_core.papers.ltgen.card import TITLES, rows

    path = folder / "statistics.json"
    try:
        table: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as fault:
        raise InputError(f"{path} cannot be read: {fault}") from None
    try:
        whole = table["kind"] in TITLES and bool(rows(table)) and isinstance(table["rejects"], dict)
    except (KeyError, TypeError):
        whole = False
    if not whole:
        raise InputError(f"{path} is not that of a benchmark; `kgqa ltgen build` makes one")
    return table


def _show(tables: list[dict[str, Any]], *, to_stderr: bool = False) -> None:
    from kgqa_core.papers.ltgen.card import TITLES, rows

    for table in tables:
        title = TITLES[table["kind"]]
        print_rows(title, rows(table), to_stderr)
        if table["rejects"]:
            rejected = [{"reason": reason, "rejected": number} for reason, number in table["rejects"].items()]
            print_rows(f"{title}, rejected", rejected, to_stderr)
