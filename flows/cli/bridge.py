"""`kgqa questions bridge`: questions over Freebase as questions over Wikidata."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from flows.cli import _session as common
from flows.cli._options import ForceOption
from flows.cli._session import JsonSession, print_json
from kgqa_core.errors import InputError
from kgqa_core.types import SPLITS


@dataclass(frozen=True)
class BridgeMaps:
    """Options that name where Wikidata's ids and relation paths come from."""

    kg: Annotated[
        list[str] | None,
        typer.Option("--kg", help="Graph folder or dump files whose P646 and P1628 are read.", show_default=False),
    ] = None
    map: Annotated[
        Path | None, typer.Option("--map", help="File of ids: /m/0abc<TAB>Q1, or JSON.", show_default=False)
    ] = None
    relation_map: Annotated[
        Path | None,
        typer.Option("--relation-map", help="File of relation paths: a|b<TAB>P1|<inv>-P2.", show_default=False),
    ] = None
    learn_relations: Annotated[
        Path | None,
        typer.Option(
            "--learn-relations",
            help="Training questions that relation paths are learnt from, over the graph folder of --kg; the map is "
            "written to FILE.paths.tsv.",
            show_default=False,
        ),
    ] = None


def bridge(
    session: JsonSession,
    questions: Annotated[
        list[str],
        typer.Option("--questions", help="Question file, or SPLIT=FILE; give it again for more."),
    ],
    out: Annotated[
        Path, typer.Option("--out", help="Question file to write; FILE.rejects.jsonl and FILE.counts.json come too.")
    ],
    maps: BridgeMaps,
    answers: Annotated[
        Literal["any", "all"], typer.Option("--answers", help="A question needs one, or every one of its answers.")
    ] = "any",
    force: ForceOption = False,
) -> None:
    """Replace the Freebase ids of questions by Wikidata's, and count which topics, answers and relations survive."""
    session.start_logging()
    from kgqa_core.datasets.derived.bridge import Bridge, bridge, ids_of_file, ids_of_graph
    from kgqa_core.datasets.derived.bridge_paths import learn_paths, read_paths, write_paths
    from kgqa_core.kg.store import KgStore
    from kgqa_core.store.outputs import claim_file, is_stream

    if not maps.kg and maps.map is None:
        raise InputError("name the ids with --kg (a graph with P646) or --map (a file of pairs)")
    graph_files = maps.kg or []
    folder = Path(graph_files[0]) if len(graph_files) == 1 and Path(graph_files[0]).is_dir() else None
    if maps.learn_relations is not None and folder is None:
        raise InputError(
            f"--learn-relations {maps.learn_relations} needs --kg to be one graph folder; `kgqa kg build` makes it"
        )
    named = [_split_and_file(text) for text in questions]
    files = [path for path in (maps.map, maps.relation_map, maps.learn_relations) if path is not None]
    inputs: list[Path | str] = [*(path for _, path in named), *files, *graph_files]
    endings = ["", ".rejects.jsonl", ".counts.json", *([".paths.tsv"] if maps.learn_relations is not None else [])]
    endings = endings[:1] if is_stream(out) else endings
    claims = {ending: claim_file(out.with_name(out.name + ending), inputs=inputs, force=force) for ending in endings}
    known = ids_of_graph(graph_files) if graph_files else Bridge({}, {})
    ids = dict(known.ids) | (ids_of_file(maps.map) if maps.map is not None else {})
    paths = dict(known.paths)
    learnt: dict[str, int] = {}
    if maps.learn_relations is not None and folder is not None:
        with KgStore.open(folder) as store:
            learnt_paths, learnt = learn_paths(_read([(None, maps.learn_relations)]), ids, store)
        paths |= learnt_paths
    if maps.relation_map is not None:
        paths |= read_paths(maps.relation_map)
    result = bridge(_read(named), Bridge(ids, paths), answers=answers)
    counts = result.counts | {"ids": len(ids)} | ({"paths_learnt": learnt} if learnt else {})
    texts = {"": _lines(result.rows), ".rejects.jsonl": _lines(result.rejects), ".counts.json": _document(counts)}
    for ending, claim in claims.items():
        with claim.writing() as scratch:
            if ending == ".paths.tsv":
                write_paths(scratch, learnt_paths)
            else:
                scratch.write_text(texts[ending], encoding="utf-8")
    if session.as_json:
        print_json({"out": str(out), **counts})
        return
    _show(counts, out)


def _split_and_file(text: str) -> tuple[str | None, Path]:
    """`train=FILE` as split and path; a file alone keeps the splits that it has."""
    split, equals, name = text.partition("=")
    return (split, Path(name)) if equals and split in SPLITS else (None, Path(text))


def _read(named: list[tuple[str | None, Path]]) -> list[dict[str, Any]]:
    from kgqa_core.config import QuestionSource
    from kgqa_core.datasets.load import read_source

    rows: list[dict[str, Any]] = []
    seen: dict[str, Path] = {}
    for split, path in named:
        for row in read_source(QuestionSource(path=str(path)), seed=7)[0]:
            if row["id"] in seen:
                raise InputError(f"id '{row['id']}' is in {seen[row['id']]} and in {path}; bridge each file alone")
            seen[row["id"]] = path
            rows.append({**row, "split": split} if split is not None else row)
    return rows


def _lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _document(counts: dict[str, Any]) -> str:
    return json.dumps(counts, ensure_ascii=False, indent=1) + "\n"


def _show(counts: dict[str, Any], out: Path) -> None:
    from kgqa_core.report.console import rows_table

    rows = [{"what": "questions", "all": counts["questions"], "surviving": counts["questions_surviving"]}]
    rows += [{"what": name, **{column: counts[name][column] for column in ("all", "surviving")}}
             for name in ("topics", "answers", "relations", "paths")]  # fmt: skip
    rows += [{"what": f"questions of {name}", **split} for name, split in counts["by_split"].items() if name != "None"]
    common.out.print(rows_table(f"{out}: what survives", rows))
    reasons = [
        {"rejected because": reason, "questions": count} for reason, count in counts["rejected_by_reason"].items()
    ]
    if reasons:
        common.out.print(rows_table("rejects", reasons))
