"""`kgqa questions …`: make questions from a graph alone."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli import _session as common
from flows.cli._options import ForceOption, SetOption
from flows.cli._session import Session, err, print_json
from flows.cli.usage import CommandApp
from kgqa_core.errors import InputError

if TYPE_CHECKING:
    from kgqa_core.config import Profile

questions_app = CommandApp(no_args_is_help=True, help="Make questions from a graph alone, to train and to measure by.")


@questions_app.callback()
def _group() -> None:
    """Make questions from a graph alone, to train and to measure by."""


@questions_app.command("generate")
def generate(
    session: Session,
    kg: Annotated[list[Path], typer.Option("--kg", help="Graph file (give it again for more), or a graph folder.")],
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
    graph = _graph_folder(kg)
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


def _profile(
    files: list[Path], graph: str | None, size: int | None, writer: str | None, seed: int | None, settings: list[str]
) -> Profile:
    from kgqa_core.config import make_profile, parse_settings

    name = (Path(graph) if graph else files[0]).name.removeprefix("bundled:").split(".")[0] or "graph"
    given = {"size": size, "writer": writer}
    own: dict[str, Any] = {
        "name": "questions",
        "kg": {"name": name, "files": [str(path) for path in files]},
        "questions": {
            "name": "generated", "source": "generated",
            "generated": {key: value for key, value in given.items() if value is not None},
        },
    }  # fmt: skip
    if seed is not None:
        own["seed"] = seed
    return make_profile(own, parse_settings(settings), origin="the options")


def _graph_folder(paths: list[Path]) -> str | None:
    """The graph folder among the options, if it is one."""
    folders = [path for path in paths if os.path.isdir(path)]
    if folders and len(paths) > 1:
        raise InputError(f"--kg {folders[0]} is a folder; give one graph folder, or files only")
    return str(folders[0]) if folders else None


def _show(counts: dict[str, Any], *, to_stderr: bool) -> None:
    from kgqa_core.report.console import rows_table

    rows = [{"kind": name.replace("_", " "), "questions": number} for name, number in counts["by_kind"].items()]
    splits = ", ".join(f"{number:,} {split}" for split, number in counts["by_split"].items())
    title = f"{counts['questions']:,} questions ({splits})"
    console = err if to_stderr else common.out
    console.print(rows_table(title, rows))
