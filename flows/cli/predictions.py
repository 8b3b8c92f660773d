"""`kgqa questions predictions`: answers in the form that a benchmark's own evaluation reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from flows.cli._options import ForceOption
from flows.cli._session import JsonSession, print_json
from kgqa_core.errors import InputError


def predictions(
    session: JsonSession,
    answers: Annotated[
        Path, typer.Option("--answers", help="File of `kgqa answer`, or JSON lines with id and answers or prediction.")
    ],
    format: Annotated[str, typer.Option("--format", help="webqsp, grailqa (also of GrailQAbility) or cwq.")],
    out: Annotated[Path, typer.Option("--out", help="File to write.")],
    kg: Annotated[
        Path | None,
        typer.Option(
            "--kg", help="Graph folder: answers that it knows by name are written as keys.", show_default=False
        ),
    ] = None,
    force: ForceOption = False,
) -> None:
    """Write answers in the form that a benchmark's own evaluation reads."""
    session.start_logging()
    from kgqa_core.datasets.files.prediction_files import format_of, read_predicted, with_keys
    from kgqa_core.kg.store import KgStore
    from kgqa_core.store.outputs import claim_file

    chosen = format_of(format)
    if kg is not None and not chosen.keyed:
        raise InputError(f"the format {format} compares names; leave --kg out")
    claim = claim_file(out, inputs=[path for path in (answers, kg) if path is not None], force=force)
    given = read_predicted(answers)
    counts = {"questions": len(given), "answered": sum(bool(row.answers) for row in given)}
    if kg is not None:
        with KgStore.open(kg) as store:
            keyed = with_keys(given, store)
        given = keyed.predictions
        counts |= {"unknown": keyed.unknown, "ambiguous": keyed.ambiguous}
    with claim.writing() as scratch:
        scratch.write_text(json.dumps(chosen.document(given), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    names = (
        f"; {counts['unknown']:,} answers are not in the graph, {counts['ambiguous']:,} name several of its entities"
        if kg is not None
        else ""
    )
    session.console.print(
        f"{counts['questions']:,} questions, {counts['answered']:,} answered, in {out}{names}",
        soft_wrap=True,
        markup=False,
        highlight=False,
    )
    if session.as_json:
        print_json({"out": str(out), **counts})
