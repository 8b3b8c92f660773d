"""`kgqa feedback`: verdicts on answers, which of them train, and the questions that come of them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.table import Table

from flows.cli._options import ForceOption
from flows.cli._session import HomeTableSession, Session, print_json
from flows.cli.usage import CommandApp
from kgqa_core.errors import InputError, KgqaError
from kgqa_core.kg.store import KgStore
from kgqa_core.report.terminal import VisibleText
from kgqa_core.runs.records import answering_run, stage_artifact
from kgqa_core.serving.feedback import FILE, FeedbackStore
from kgqa_core.serving.feedback_examples import read_examples, reviewed, training_examples
from kgqa_core.serving.limits import SERVE_FOLDER
from kgqa_core.store.artifacts import Home
from kgqa_core.store.outputs import claim_file

feedback_app = CommandApp(
    no_args_is_help=True, help="Verdicts on answers: list, confirm, quarantine, remove, import, export."
)
NumberArgument = Annotated[int, typer.Argument(help="Number of the entry, as `kgqa feedback list` shows it.")]
NumbersArgument = Annotated[
    list[int] | None, typer.Argument(help="Numbers of entries, as `kgqa feedback list` shows them.", show_default=False)
]
ClientOption = Annotated[str | None, typer.Option("--client", help="Those of this client.", show_default=False)]
SinceOption = Annotated[
    datetime | None, typer.Option("--since", formats=["%Y-%m-%d"], help="Those from this day on.", show_default=False)
]
UntilOption = Annotated[
    datetime | None, typer.Option("--until", formats=["%Y-%m-%d"], help="Those up to this day.", show_default=False)
]


@contextlib.contextmanager
def _opened(home: Home) -> Iterator[FeedbackStore]:
    folder = home.root / SERVE_FOLDER
    if not (folder / FILE).is_file():
        raise InputError(f"the home {home.root} has no feedback yet; people give it on the page of `kgqa serve`")
    with contextlib.closing(FeedbackStore(folder)) as store:
        yield store


@feedback_app.command("list")
def list_entries(session: HomeTableSession) -> None:
    """Show the verdicts on answers, and how many questions with answers come of them."""
    home = session.look()
    with _opened(home) as store:
        rows = store.rows()
    examples = training_examples(rows)
    table = Table("no.", "question, and what was said of its answer", "state", title="Feedback", title_justify="left")
    for row, (about, warnings) in zip(rows, _reviewed(home, rows), strict=True):
        right = f"{row['verdict']}; right: {', '.join(row['correction'])}" if row["correction"] else row["verdict"]
        named, answered = (", ".join(texts) or "nothing" for texts in (about, row["answers"]))
        lines = [
            row["question"],
            f"about: {named}",
            f"answered: {answered}",
            right,
            *(f"! {text}" for text in warnings),
        ]
        state = "unusable" if row["fault"] else row["state"]
        cells = (VisibleText("\n").join(map(VisibleText, some)) for some in (lines, (state, row["at"], row["client"])))
        table.add_row(str(row["id"]), *cells)
    session.console.print(table)
    held = sum(example.held_out for example in examples)
    session.console.print(
        f"{len(examples)} questions are confirmed: the next `kgqa refresh` trains on {len(examples) - held} and tests "
        f"on {held} what they teach; `kgqa feedback confirm NUMBER` adds one"
    )
    if session.as_json:
        print_json({"feedback": rows, "examples": [example.to_row() for example in examples]})


@feedback_app.command()
def confirm(session: Session, number: NumberArgument) -> None:
    """Let one entry train, and answer questions in its words at once; nothing does unconfirmed."""
    home = session.look()
    with _opened(home) as store:
        example = store.confirm(number)
        rows = [row for row in store.rows() if row["id"] == number]
    for about, warnings in _reviewed(home, rows):
        message = f"feedback {number} is confirmed: {example.question} → {', '.join(example.answers)}"
        session.console.print(VisibleText(f"{message}; it is about {', '.join(about) or 'nothing'}"))
        for warning in warnings:
            session.console.print(VisibleText(f"! {warning}; `kgqa feedback quarantine {number}` takes it back"))


def _reviewed(home: Home, rows: list[dict[str, Any]]) -> list[tuple[list[str], list[str]]]:
    """As of `reviewed`, over the graph of the run that answers where there is one."""
    with contextlib.suppress(KgqaError), KgStore.open(stage_artifact(answering_run(home), "kg").folder) as store:
        return reviewed(rows, store)
    return reviewed(rows, None)


def _add_change(verb: Literal["quarantine", "remove"], help: str, result: str) -> None:
    """Adds the command that calls this method of the store with the entries that are named."""

    @feedback_app.command(verb, help=f"{help}; all that is given must hold.")
    def change(
        session: Session,
        numbers: NumbersArgument = None,
        client: ClientOption = None,
        since: SinceOption = None,
        until: UntilOption = None,
    ) -> None:
        first, last = (None if day is None else day.strftime("%Y-%m-%d") for day in (since, until))
        with _opened(session.look()) as store:
            count = getattr(store, verb)(numbers or (), client=client, since=first, until=last)
        session.console.print(f"{count} {result}")


_add_change("quarantine", "Take entries out of training until they are confirmed again", "in quarantine")
_add_change("remove", "Forget entries, whose answers take no feedback any more", "removed")


@feedback_app.command("import")
def import_file(
    session: Session,
    file: Annotated[Path, typer.Argument(help="Question file: with answers, or with s_expression, as of `export`.")],
) -> None:
    """Confirm the questions of a file: they answer questions in their words at once, and train."""
    examples = read_examples(file)
    home = session.prepare()
    with contextlib.closing(FeedbackStore(home.root / SERVE_FOLDER)) as store:
        store.confirm_examples(examples)
    session.console.print(f"{len(examples)} questions of {file} are confirmed; `kgqa feedback list` shows them")


@feedback_app.command()
def export(
    session: Session,
    out: Annotated[Path, typer.Option("--out", help="Question file to write, JSON lines.")],
    force: ForceOption = False,
) -> None:
    """Write the confirmed questions with answers as a question file."""
    with _opened(session.look()) as store:
        examples = training_examples(store.rows())
    if not examples:
        raise InputError("nothing is confirmed yet: `kgqa feedback list`, then `kgqa feedback confirm NUMBER`")
    with claim_file(out, force=force).writing() as target:
        text = "".join(json.dumps(example.to_row(), ensure_ascii=False) + "\n" for example in examples)
        target.write_text(text, encoding="utf-8")
    session.console.print(f"{len(examples)} questions in {out}")
