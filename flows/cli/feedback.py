"""`kgqa feedback`: what people said of answers, which of it counts, and the questions that come of it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
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
from kgqa_core.serving.limits import SERVE_FOLDER
from kgqa_core.store.artifacts import Home
from kgqa_core.store.outputs import claim_file

feedback_app = CommandApp(no_args_is_help=True, help="What people said of answers: list, confirm, export.")
NumberArgument = Annotated[int, typer.Argument(help="Number of the entry, as `kgqa feedback list` shows it.")]


@contextlib.contextmanager
def _opened(home: Home) -> Iterator[FeedbackStore]:
    folder = home.root / SERVE_FOLDER
    if not (folder / FILE).is_file():
        raise InputError(f"the home {home.root} has no feedback yet; people give it on the page of `kgqa serve`")
    with contextlib.closing(FeedbackStore(folder)) as store:
        yield store


@feedback_app.command("list")
def list_entries(session: HomeSession) -> None:
    """Show what people said, and which questions with answers come of it."""
    with _opened(session.look()) as store:
        rows, lessons = store.rows(), store.lessons()
    table = Table("no.", "day", "question", "answered", "verdict", "right", title="Feedback", title_justify="left")
    for row in rows:
        right = ", ".join(row["correction"] or ()) + (" (confirmed)" if row["confirmed"] else "")
        texts = (row["question"], ", ".join(row["answers"]), row["verdict"], right)
        table.add_row(str(row["id"]), row["at"], *(VisibleText(text) for text in texts))
    session.console.print(table)
    session.console.print(f"{len(lessons)} questions with answers count; the next `kgqa refresh` trains with them")
    if session.as_json:
        print_json({"feedback": rows, "lessons": [lesson.to_row() for lesson in lessons]})


@feedback_app.command()
def confirm(session: Session, number: NumberArgument) -> None:
    """Let one entry count by itself, without a second person."""
    with _opened(session.look()) as store:
        store.confirm(number)
    session.console.print(f"feedback {number} is confirmed")


@feedback_app.command()
def remove(session: Session, number: NumberArgument) -> None:
    """Forget one entry."""
    with _opened(session.look()) as store:
        store.remove(number)
    session.console.print(f"feedback {number} is removed")


@feedback_app.command()
def export(
    session: Session,
    out: Annotated[Path, typer.Option("--out", help="Question file to write, JSON lines.")],
    force: ForceOption = False,
) -> None:
    """Write the questions with answers that count as a question file."""
    with _opened(session.look()) as store:
        lessons = store.lessons()
    if not lessons:
        raise InputError("nothing counts yet: two people must say the same, or `kgqa feedback confirm NUMBER`")
    with claim_file(out, force=force).writing() as target:
        text = "".join(json.dumps(lesson.to_row(), ensure_ascii=False) + "\n" for lesson in lessons)
        target.write_text(text, encoding="utf-8")
    session.console.print(f"{len(lessons)} questions in {out}")
