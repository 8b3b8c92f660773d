"""`kgqa questions …`: make questions from a graph alone, and write question sets in the form of others."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli import _session as common
from flows.cli._options import ForceOption, SetOption, graph_folder
from flows.cli._session import JsonSession, Session, err, print_json
from flows.cli.bridge import bridge
from flows.cli.predictions import predictions
from flows.cli.usage import CommandApp
from kgqa_core.errors import InputError

if TYPE_CHECKING:
    from kgqa_core.config import Profile

questions_app = CommandApp(no_args_is_help=True, help="Make questions from a graph, and export question sets.")


@questions_app.callback()
def _group() -> None:
    """Make questions from a graph, and export question sets."""


@questions_app.command("generate")
def generate(
    session: Session,
    kg: Annotated[
        list[str],
        typer.Option("--kg", metavar="FILE", help="Graph file or server (give it again for more), or a graph folder."),
    ],
    out: Annotated[Path, typer.Option("--out", help="Question file to write (JSON lines).")],
    size: Annotated[
        int | None, typer.Option("--size", min=10, help="Questions to make [5000].", show_default=False)
    ] = None,
    writer: Annotated[
        str | None,
        typer.Option("--writer", help="template, hf:FOLDER_OR_ID or openai:MODEL [template].", show_default=False),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="Seed of all that is drawn [7].", show_default=False)
    ] = None,
    settings: SetOption = None,
    force: ForceOption = False,
) -> None:
    """Draw forms that cover a graph's relations and types, run them, word them, and add noise and unanswerable ones."""
    graph = graph_folder(kg)
    chosen = _profile([] if graph else kg, graph, size, writer, seed, settings or [])
    session.prepare()
    session.start_logging()
    with err.status("checking the inputs …"):
        from flows.questions import check, make_questions
        from kgqa_core.store.outputs import claim_file

        check(chosen, graph)
        claim = claim_file(out, inputs=kg, force=force)
    started = time.monotonic()
    data = make_questions(chosen, graph)
    from kgqa_core.builders.questions.generate import FILE
    from kgqa_core.store.artifacts import read_manifest

    with claim.writing() as scratch:
        shutil.copyfile(data["made"].folder / FILE, scratch)
    counts = read_manifest(data["made"].folder)["counts"]
    _show(counts, to_stderr=session.as_json)
    if session.as_json:
        print_json(
            {"run_id": data["run_id"], "seconds": round(time.monotonic() - started, 2), "out": str(out),
             "digest": data["made"].digest, "counts": counts}
        )  # fmt: skip
        return
    common.out.print(f"questions {out}", soft_wrap=True, markup=False, highlight=False)


@questions_app.command("export")
def export(
    session: JsonSession,
    questions: Annotated[
        Path, typer.Option("--questions", help="Question file: ours, or one of a benchmark, which is recognised.")
    ],
    out: Annotated[Path, typer.Option("--out", help="File to write, as QALD JSON.")],
    predictions: Annotated[
        Path | None,
        typer.Option(
            "--predictions",
            help="File of `kgqa answer`; its answers are written in the place of the gold ones.",
            show_default=False,
        ),
    ] = None,
    kg: Annotated[
        Path | None,
        typer.Option("--kg", help="Graph folder: entities that answers name get their IRI.", show_default=False),
    ] = None,
    language: Annotated[str, typer.Option("--language", help="Language to take from a file that has several.")] = "en",
    force: ForceOption = False,
) -> None:
    """Write a question set as QALD JSON, or predicted answers to it in the form that QALD's evaluation reads."""
    session.start_logging()
    from kgqa_core.config import QuestionSource
    from kgqa_core.datasets.files.qald_export import keys_of_names, qald_document, read_answer_lists
    from kgqa_core.datasets.load import read_source
    from kgqa_core.kg.store import KgStore
    from kgqa_core.store.outputs import claim_file

    inputs = [path for path in (questions, predictions, kg) if path is not None]
    claim = claim_file(out, inputs=inputs, force=force)
    unscored = predictions is not None
    rows, rejects = read_source(QuestionSource(path=str(questions), language=language, unscored=unscored), seed=7)
    answers = read_answer_lists(predictions) if predictions is not None else None
    unknown = sorted(set(answers or ()) - {row["id"] for row in rows})
    if answers and len(unknown) == len(answers):
        raise InputError(
            f"{predictions}: none of its {len(answers)} ids is among the {len(rows)} questions (the first is "
            f"'{unknown[0]}'); give the question file that the answers were made for"
        )
    keys: dict[str, str] = {}
    if kg is not None:
        lists = answers.values() if answers is not None else [row["answers"] for row in rows]
        with KgStore.open(kg) as store:
            keys = keys_of_names([text for texts in lists for text in texts], store)
    document = qald_document(rows, name=questions.stem, language=language, answers=answers, keys=keys)
    with claim.writing() as scratch:
        scratch.write_text(json.dumps(document, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    counts = {
        "questions": len(rows),
        "answered": sum(1 for row in rows if (row["answers"] if answers is None else answers.get(row["id"]))),
        "rejects": len(rejects),
        "unknown_ids": len(unknown),
    }
    session.console.print(
        f"{counts['questions']:,} questions, {counts['answered']:,} with answers, in {out}; {counts['rejects']:,} rows "
        f"of the file cannot be read, {counts['unknown_ids']:,} answers are for other questions",
        soft_wrap=True,
        markup=False,
        highlight=False,
    )
    for reject in rejects[:10]:
        session.console.print(f"  {reject}", soft_wrap=True, markup=False, highlight=False)
    if session.as_json:
        print_json({"out": str(out), **counts, "rejected": [str(reject) for reject in rejects]})


def _profile(
    files: list[str], graph: str | None, size: int | None, writer: str | None, seed: int | None, settings: list[str]
) -> Profile:
    from kgqa_core.config import make_profile, parse_settings
    from kgqa_core.kg.remote.registry import graph_name

    name = graph_name(graph or files[0]) or "graph"
    given = {"size": size, "writer": writer}
    layer: dict[str, Any] = {
        "name": "questions",
        "kg": {"name": name, "files": [str(path) for path in files]},
        "questions": {
            "name": "generated", "source": "generated",
            "generated": {key: value for key, value in given.items() if value is not None},
        },
    }  # fmt: skip
    if seed is not None:
        layer["seed"] = seed
    return make_profile(layer, parse_settings(settings), origin="the options")


def _show(counts: dict[str, Any], *, to_stderr: bool) -> None:
    from kgqa_core.report.console import rows_table

    rows = [{"kind": name.replace("_", " "), "questions": number} for name, number in counts["by_kind"].items()]
    splits = ", ".join(f"{number:,} {split}" for split, number in counts["by_split"].items())
    title = f"{counts['questions']:,} questions ({splits})"
    console = err if to_stderr else common.out
    console.print(rows_table(title, rows))


questions_app.command()(predictions)
questions_app.command()(bridge)
