"""`kgqa feedback`: verdicts on answers, which of them train, and the questions that come of them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from flows.cli._options import ForceOption
from flows.cli._session import HomeSession, Session, print_json
from flows.cli.usage import CommandApp
from kgqa_core.errors import InputError
from kgqa_core.report.terminal import VisibleText
from kgqa_core.serving.feedback import FILE, FeedbackStore
from kgqa_core.serving.feedback_examples import training_examples
from kgqa_core.serving.limits import SERVE_FOLDER
from kgqa_core.store.artifacts import Home
from kgqa_core.store.outputs import claim_file

feedback_app = CommandApp(no_args_is_help=True, help="Verdicts on answers: list, confirm, quarantine, remove, export.")
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
def list_entries(session: HomeSession) -> None:
    """Show the verdicts on answers, and how many questions with answers come of them."""
    with _opened(session.look()) as store:
        rows = store.rows()
    examples = training_examples(rows)
    table = Table(
        "no.", "day", "client", "question", "about", "answered", "verdict", "right", "state", title="Feedback",
        title_justify="left",
    )  # fmt: skip
    for row in rows:
        cells = (
            row["client"], row["question"], ", ".join(row["topics"]), ", ".join(row["answers"]), row["verdict"],
            ", ".join(row["correction"] or ()), row["state"] if not row["fault"] else f"unusable: {row['fault']}",
        )  # fmt: skip
        table.add_row(str(row["id"]), row["at"], *(VisibleText(text) for text in cells))
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
    """Let one entry train; nothing does unconfirmed."""
    with _opened(session.look()) as store:
        example = store.confirm(number)
    message = f"feedback {number} is confirmed: {example.question} → {', '.join(example.answers)}"
    session.console.print(VisibleText(message))


@feedback_app.command()
def quarantine(
    session: Session,
    numbers: NumbersArgument = None,
    client: ClientOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
) -> None:
    """Take entries out of training until they are confirmed again; all that is given must hold."""
    with _opened(session.look()) as store:
        count = store.quarantine(numbers or (), client=client, since=_day(since), until=_day(until))
    session.console.print(f"{count} in quarantine")


@feedback_app.command()
def remove(
    session: Session,
    numbers: NumbersArgument = None,
    client: ClientOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
) -> None:
    """Forget entries, whose answers take no feedback any more; all that is given must hold."""
    with _opened(session.look()) as store:
        count = store.remove(numbers or (), client=client, since=_day(since), until=_day(until))
    session.console.print(f"{count} removed")


def _day(day: datetime | None) -> str | None:
    return None if day is None else day.strftime("%Y-%m-%d")


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
