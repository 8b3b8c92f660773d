"""The terminal: everything that a command prints goes through the console of this module.

Labels, keys, questions, model outputs, file names and messages are somebody else's text.  In a terminal their control
characters could move the cursor, change the title or hide a line, and rich would read `[bold]` and `:smile:` in them.
Here control characters are shown as `\\x1b`, nothing is read as markup, and only styles that the code sets have an
effect.  `TerminalConsole` does so whatever it is given; `VisibleText` also keeps tables aligned.
"""

from __future__ import annotations

import csv
import logging
import os
import re
from collections.abc import Container, Iterable, Sequence
from typing import Any

from rich.console import Console, ConsoleDimensions, ConsoleOptions, RenderableType
from rich.logging import RichHandler
from rich.segment import Segment
from rich.status import Status
from rich.table import Table
from rich.text import Text

from kgqa_core.errors import without_passwords

HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
"""C0 controls but tab and newline, DEL and C1 controls, line separators, direction controls, lone surrogates."""
FILE_WIDTH = 1_000_000
"""Columns of stdout where it is no terminal: nothing is wrapped or cut there."""


def visible(text: str) -> str:
    """The text with control characters, direction controls and lone surrogates as `\\x1b` or `\\u202e`."""
    return HIDDEN.sub(_escape, text)


def visible_json(text: str) -> str:
    """JSON with the same characters as JSON escapes, so that it means the same and can be shown on a terminal."""
    return HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class VisibleText(Text):
    """A `rich.text.Text` of somebody else's text, whose control characters are visible and counted in its width.

    value: what stands for it in CSV, where that is not the text.
    """

    def __init__(self, text: str = "", *args: Any, value: Any = None, **kwargs: Any) -> None:
        super().__init__(visible(text), *args, **kwargs)
        self.value = value

    def append(self, text: Text | str, style: Any = None) -> VisibleText:
        """Add text with an optional style."""
        super().append(visible(text) if isinstance(text, str) else text, style)
        return self


def titled_table(
    title: str, heads: Sequence[str] = (), rows: Iterable[Iterable[RenderableType]] = (), *,
    right: Container[str] = (), **columns: Any,
) -> Table:  # fmt: skip
    """A table under a bold title; texts are shown as they are.  right: heads of numbers.  columns: their options."""
    table = Table(title=title, title_justify="left", title_style="bold", show_header=bool(heads))
    for head in heads:
        table.add_column(head, justify="right" if head in right else "left", **columns)
    for row in rows:
        table.add_row(*(VisibleText(cell) if isinstance(cell, str) else cell for cell in row))
    return table


class TerminalConsole(Console):
    """A console that reads no markup and no emoji codes, and shows control characters of what it prints.

    With a NO_COLOR that is not empty it sets no style at all.  csv: tables are written as CSV, with an empty line
    between two, and what else is printed goes to stderr.
    """

    csv = False
    _tables = 0

    def __init__(self, *, stderr: bool = False, **kwargs: Any) -> None:
        if os.environ.get("NO_COLOR"):
            kwargs["color_system"] = None
        super().__init__(stderr=stderr, markup=False, emoji=False, **kwargs)
        self._wide = not stderr and "width" not in kwargs

    @property  # type: ignore[misc]
    def size(self) -> ConsoleDimensions:
        """Of the terminal; where stdout is none, so wide that nothing is wrapped or cut."""
        return ConsoleDimensions(FILE_WIDTH, 25) if self._wide and not self.file.isatty() else super().size

    def start_csv(self, wanted: bool) -> None:
        """Say whether tables are written as CSV from now on."""
        self.csv, self._tables = wanted, 0

    def print(self, *objects: Any, **kwargs: Any) -> None:
        """As rich does; see `csv`."""
        tables = [each for each in objects if isinstance(each, Table)] if self.csv else []
        if tables:
            for table in tables:
                self._write_csv(table)
        elif self.csv:
            TerminalConsole(stderr=True).print(*objects, **kwargs)
        else:
            super().print(*objects, **kwargs)

    def _write_csv(self, table: Table) -> None:
        rows = [list(row) for row in zip(*(column.cells for column in table.columns), strict=True)]
        if table.show_header:
            rows.insert(0, [column.header for column in table.columns])
        self.file.write("\n" * bool(self._tables))
        self._tables += 1
        csv.writer(self.file, lineterminator="\n").writerows([_plain(cell) for cell in row] for row in rows)

    def render_str(self, text: str, **kwargs: Any) -> Text:  # type: ignore[override]
        """A string as text; control characters are made visible before rich drops some of them."""
        return super().render_str(visible(text), **kwargs)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Any:
        """Segments of anything that can be printed; the control codes of rich itself stay as they are."""
        for segment in super().render(renderable, options):
            if segment.control or not HIDDEN.search(segment.text):
                yield segment
            else:
                yield Segment(visible(segment.text), segment.style)

    def out(self, *objects: Any, **kwargs: Any) -> None:
        """Print without wrapping."""
        super().out(*(visible(str(each)) for each in objects), **kwargs)

    def status(self, status: RenderableType, **kwargs: Any) -> Status:
        """A spinner with a text beside it."""
        return super().status(VisibleText(status) if isinstance(status, str) else status, **kwargs)


class VisibleRecord(logging.LogRecord):
    """A log record whose message shows control characters, whichever handler prints it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.exc_info and self.exc_info[1] is not None:
            self.exc_text = without_passwords(visible(logging.Formatter().formatException(self.exc_info)))

    def getMessage(self) -> str:
        """The message with its arguments, without passwords."""
        return without_passwords(visible(super().getMessage()))


def _plain(cell: Any) -> Any:
    value = getattr(cell, "value", None)
    return visible(str(cell)) if value is None else value


def log_handler(console: TerminalConsole, *, show_level: bool) -> RichHandler:
    """A handler that writes the library's log to a console."""
    return RichHandler(
        console=console, show_path=False, show_level=show_level, markup=False, log_time_format="%H:%M:%S"
    )


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
