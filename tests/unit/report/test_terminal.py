"""The console that everything is printed through: control characters are shown, nothing is markup."""

from __future__ import annotations

import ast
import io
import json
import logging
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.progress import Progress, TextColumn
from rich.table import Table
from rich.text import Text

from kgqa_core.report.console import ask_tables, result_table, rows_table
from kgqa_core.report.terminal import HIDDEN, TerminalConsole, VisibleRecord, VisibleText, visible, visible_json
from tests.support.hostile import CONTROLS, FORBIDDEN, MARKUP, SHOWN, STYLES

HOUSE = Path(__file__).resolve().parents[3]


def printed(*things: object, terminal: bool = True, width: int = 300, **options: object) -> str:
    console = TerminalConsole(
        file=io.StringIO(), width=width, force_terminal=terminal, color_system="truecolor" if terminal else None
    )
    for thing in things:
        console.print(thing, **options)  # type: ignore[arg-type]
    return console.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize("terminal", [True, False])
def test_strings_texts_and_cells_show_control_characters_and_no_markup(terminal: bool) -> None:
    table = Table(title=f"{CONTROLS}{MARKUP}", caption=MARKUP)
    table.add_column(MARKUP)
    table.add_row(CONTROLS)
    for thing in (f"{CONTROLS} {MARKUP}", VisibleText(f"{CONTROLS} {MARKUP}"), table):
        text = STYLES.sub("", printed(thing, terminal=terminal))
        assert SHOWN in text and MARKUP in text
        assert not FORBIDDEN.search(text)


def test_what_does_not_come_through_our_text_class_is_escaped_too() -> None:
    console = TerminalConsole(file=io.StringIO(), width=300, force_terminal=True, color_system="truecolor")
    console.print(Text(f"{CONTROLS} {MARKUP}", style="red"))
    console.out(CONTROLS)
    with console.status(f"{CONTROLS} {MARKUP}"):
        pass
    with Progress(TextColumn("{task.description}", markup=False), console=console) as progress:
        progress.add_task(f"{CONTROLS} {MARKUP}")
    text = STYLES.sub("", console.file.getvalue()).replace("\r", "")  # type: ignore[attr-defined]
    assert not FORBIDDEN.search(text) and r"\x1b]0;pwned" in text
    assert "[link=http://evil]" in text and ":smile:" in text


def test_our_own_styles_stay() -> None:
    assert printed(VisibleText.assemble(("bold", "bold"), " plain")) == "\x1b[1mbold\x1b[0m plain\n"


@given(st.text())
def test_any_text_is_shown_without_controls_and_plain_text_as_it_is(text: str) -> None:
    shown = visible(text)
    assert not HIDDEN.search(shown) and (shown == text or HIDDEN.search(text))
    assert not FORBIDDEN.search(printed(text, terminal=False))
    assert printed(text, terminal=False).encode("utf-8")


@given(st.text())
def test_json_means_the_same_and_brings_no_controls(text: str) -> None:
    shown = visible_json(json.dumps({text: [text]}, ensure_ascii=False))
    assert json.loads(shown) == {text: [text]} and not HIDDEN.search(shown)
    assert shown.encode("utf-8")


def test_tables_stay_aligned() -> None:
    lines = printed(rows_table(MARKUP, [{"a": CONTROLS, "[b]": 1}, {"a": "plain", "[b]": 2}]), terminal=False)
    widths = {len(line) for line in lines.splitlines()[1:]}
    assert len(widths) == 1 and SHOWN in lines and "[b]" in lines


def test_a_result_of_sql_can_be_copied_and_keeps_columns_of_one_name() -> None:
    lines = printed(result_table(["year_of", "a", "a"], [[2020, 1234567.5, None], [1999, True, "x"]]), terminal=False)
    rows = [line.replace("│", " ").replace("┃", " ").split() for line in lines.splitlines()]
    assert ["year_of", "a", "a"] in rows and ["2020", "1234567.5", "NULL"] in rows and ["1999", "true", "x"] in rows


def test_an_answer_of_a_model_is_shown_as_text() -> None:
    reply = {
        "answer": f"{CONTROLS}{MARKUP}", "topics": [{"name": MARKUP, "mention": CONTROLS, "rho": 0.5}], "seconds": 1.0,
        "facts": [{"hop": 1, "score": 0.5, "text": CONTROLS}], "entities": [{"name": MARKUP, "score": 0.1}],
    }  # fmt: skip
    text = printed(*ask_tables(reply), terminal=False)
    assert text.count(SHOWN) == 3 and text.count(MARKUP) == 4 and not FORBIDDEN.search(text)


def test_log_records_show_controls_and_hide_passwords_in_any_handler() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    try:
        raise ValueError(CONTROLS)
    except ValueError:
        fault = sys.exc_info()
    record = VisibleRecord("x", logging.ERROR, "f", 1, "read %s of %s", (CONTROLS, "pg://me:secret@h/d"), fault)
    handler.emit(record)
    assert stream.getvalue().count(SHOWN) == 2 and not FORBIDDEN.search(stream.getvalue())
    assert "secret" not in stream.getvalue() and "pg://me:…@h/d" in stream.getvalue()


def nodes(*words: str) -> Iterator[tuple[Path, ast.AST]]:
    """Every node of our code, with its file; files that hold none of the words are not parsed."""
    for path in (path for root in ("kgqa_core", "tasks", "flows") for path in (HOUSE / root).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if any(word in text for word in words):
            yield from ((path, node) for node in ast.walk(ast.parse(text)))


def test_no_module_prints_past_the_console() -> None:
    wrong = []
    for path, node in nodes("rich", "markup", "emoji", "TextColumn"):
        if path == HOUSE / "kgqa_core" / "report" / "terminal.py":
            continue
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "rich":
            names = {alias.name for alias in node.names}
            bad = names & {"print", "Text", "Console", "get_console", "Status", "Markdown", "Panel"}
            bad |= {node.module} & {"rich.markup", "rich.prompt", "rich.live"}
            wrong += [f"{path}:{node.lineno} imports {name}" for name in sorted(bad)]
        if isinstance(node, ast.Attribute) and node.attr == "from_markup":
            wrong.append(f"{path}:{node.lineno} reads markup")
        if isinstance(node, ast.keyword) and node.arg in ("markup", "emoji") and ast.unparse(node.value) != "False":
            wrong.append(f"{path}:{node.value.lineno} turns {node.arg} on")
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "TextColumn":
            named = [word.arg for word in node.keywords]
            wrong += [] if "markup" in named else [f"{path}:{node.lineno}: a TextColumn reads markup by default"]
    assert not wrong


def test_parquet_files_are_read_by_name_and_never_by_pattern() -> None:
    """A home whose path has brackets holds no file that a pattern finds."""
    readers = ("read_parquet", "scan_parquet", "read_parquet_schema")
    for path, node in nodes(*readers):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in readers:
            words = {word.arg: ast.unparse(word.value) for word in node.keywords}
            assert words.get("glob") == "False", f"{path}:{node.lineno}"


def test_what_goes_to_a_pipe_is_neither_wrapped_nor_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    key = "http://example.org/a/long/key/of/some/entity"
    table = rows_table("", [{"key": key, "popularity": 1234567}])
    console = TerminalConsole(file=io.StringIO())
    console.print(table)
    console.print(f"a line with {key}")
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert f"│ {key} │  1,234,567 │" in lines and lines[-1] == f"a line with {key}"


def test_tables_as_csv_have_plain_numbers_and_nothing_else_beside_them(capsys: pytest.CaptureFixture[str]) -> None:
    console = TerminalConsole()
    console.start_csv(True)
    console.print("Facts", style="bold")
    console.print(rows_table("Title", [{"a key": 'x, "y"\x1b', "count": 1234567}]))
    console.print(result_table(["n", "d", "l"], [[None, Decimal("1.50"), [Decimal("2.5"), True]]]))
    captured = capsys.readouterr()
    assert captured.out == 'a key,count\n"x, ""y""\\x1b",1234567\n\nn,d,l\n,1.50,"[2.5, true]"\n'
    assert captured.err == "Facts\n"


@pytest.mark.parametrize(("value", "styled"), [("1", False), ("", True), (None, True)])
def test_no_color_that_is_not_empty_takes_every_style(
    value: str | None, styled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    if value is not None:
        monkeypatch.setenv("NO_COLOR", value)
    text = printed(VisibleText("red", style="bold red"))
    assert (("\x1b[" in text), "red" in text) == (styled, True)
