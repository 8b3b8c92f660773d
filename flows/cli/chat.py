"""`kgqa chat`: questions one after the other, of which each may refer back to those before."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from flows.cli._graph import GraphChoice, graph_or_run
from flows.cli._options import SystemChoice
from flows.cli._session import Session, err, out, print_json
from kgqa_core.errors import InputError, KgqaError
from kgqa_core.report.terminal import VisibleText
from kgqa_core.store.artifacts import Home

if TYPE_CHECKING:
    from kgqa_core.answering.reply import Answer
    from kgqa_core.kg.store import KgStore

HELP = """\
Ask in words; `/new` forgets what was asked, TAB completes names of the graph, a number takes the reading of that \
number, `/quit` or Ctrl-D ends."""
HISTORY, KEPT = "chat_history", 1_000
"""Lines of earlier chats in the home, and how many."""
COMPLETED, LONGEST = 20, 5
"""Names that TAB offers at most, and words of the line that may begin one."""


def chat(session: Session, choice: SystemChoice, graph: GraphChoice) -> None:
    """Ask one question after the other on a terminal or a pipe; each may refer back: `and of Spain?`."""
    from flows.cli.ask import open_system
    from kgqa_core.question_limits import TURNS
    from kgqa_core.report.console import confidence_text
    from kgqa_core.serving.chat import answer_text

    home, run = graph_or_run(session, graph, choice.run_id)
    with err.status("loading the graph and what answers from it …"):
        system = open_system(home, run, choice)
    person = sys.stdin.isatty()
    dialogue: list[tuple[str, str]] = []
    answer: Answer | None = None
    refused = 0
    if person and not session.as_json:
        out.print(HELP, highlight=False, soft_wrap=True)
    with _line_editor(home, system.store) if person else contextlib.nullcontext():
        for text in _lines(_prompt if person else sys.stdin.readline):
            if text in ("/quit", "/exit"):
                break
            if text == "/new":
                dialogue, answer = [], None
                continue
            if text.startswith("/"):
                err.print(HELP, highlight=False, soft_wrap=True)
                continue
            started, asked = time.monotonic(), system
            if (
                answer is not None
                and text.rstrip(".)").isdigit()
                and 0 < int(text.rstrip(".)")) <= len(answer.readings)
            ):
                asked, text = system.at_reading(int(text.rstrip(".)"))), answer.question
                del dialogue[-2:]
            try:
                answer = asked.ask(text, dialogue=dialogue[-TURNS:])
            except KgqaError as fault:
                refused += 1
                _show(
                    session, text, {"question": text, "answer": None, "reject": str(fault)}, f"refused: {fault}", person
                )
                continue
            record = answer.to_dict() | {"seconds": round(time.monotonic() - started, 3)}
            _show(
                session, text, record, "\n".join(filter(None, (answer_text(answer), confidence_text(record)))), person
            )
            dialogue += [("user", text), ("agent", answer.answer or "")]
    if refused and not person:
        raise InputError(f"{refused:,} questions were refused")


def _show(session: Session, question: str, record: dict[str, Any], text: str, person: bool) -> None:
    if session.as_json:
        print_json(record)
        return
    if not person:
        out.print(VisibleText(f"> {question}", style="bold"), soft_wrap=True)
    out.print(VisibleText(f"{text}\n"), soft_wrap=True)


def _prompt() -> str:
    return f"{input('> ')}\n"


def _lines(read: Callable[[], str]) -> Iterator[str]:
    """Lines that are not empty, to the end or Ctrl-C.  Raises InputError for what is not UTF-8."""
    while True:
        try:
            line = read()
        except (EOFError, KeyboardInterrupt):
            return
        except UnicodeDecodeError as fault:
            raise InputError(f"stdin is not UTF-8 (byte {fault.object[fault.start]:#x})") from None
        if not line:
            return
        if line.strip():
            yield line.strip()


@contextlib.contextmanager
def _line_editor(home: Home, store: KgStore) -> Iterator[None]:
    """A history that the home keeps, and completion of names, where Python has readline."""
    try:
        import readline
    except ImportError:
        yield
        return
    path = home.root / HISTORY
    with contextlib.suppress(OSError):
        readline.read_history_file(path)
    offered: list[str] = []

    def complete(text: str, number: int) -> str | None:
        if number == 0:
            offered[:] = completions(store, text)
        return offered[number] if number < len(offered) else None

    readline.set_completer_delims("")
    readline.set_completer(complete)
    readline.parse_and_bind("bind ^I rl_complete" if "libedit" in (readline.__doc__ or "") else "tab: complete")
    readline.set_history_length(KEPT)
    try:
        yield
    finally:
        readline.set_completer(None)
        with contextlib.suppress(OSError):
            readline.write_history_file(path)


def completions(store: KgStore, line: str) -> list[str]:
    """A line with names of the graph for its last words, those for the most words first."""
    from kgqa_core.kg.look.search import search

    words = line.split(" ")
    for count in range(min(LONGEST, len(words)), 0, -1):
        start, begun = " ".join(words[:-count]), " ".join(words[-count:])
        if len(begun) < 2 or not words[-count]:
            continue
        names = [str(row["name"]) for row in search(store, begun, limit=COMPLETED)]
        if names := [name for name in dict.fromkeys(names) if name.casefold().startswith(begun.casefold())]:
            return [f"{start} {name}".lstrip() for name in names]
    return []
