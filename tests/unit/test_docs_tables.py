"""The figures of the docs: pages hold what the result files say, and the files what their scripts declare."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks import docs_tables as docs
from benchmarks.results_file import declared, problems, write

ROOT = docs.ROOT
NUMBER = r"[-+−]?[\d.,]*\d[\d.,]*( ?%| ?s| ms|×)?"
FIGURE = re.compile(rf"{NUMBER}( / {NUMBER})*( [\[(].*[\])])?")


@pytest.mark.parametrize("page", docs.pages())
def test_writing_the_tables_of_a_page_leaves_no_difference(page: str) -> None:
    assert docs.rendered(page) == (ROOT / page).read_text(encoding="utf-8"), "run make bench-docs"


def test_every_result_file_holds_what_its_script_declares() -> None:
    assert docs.faults() == []


def test_every_result_file_is_registered_and_its_script_is_there() -> None:
    assert {one.name for one in docs.RESULTS} == {path.stem for path in (ROOT / docs.RESULTS_FOLDER).glob("*.json")}
    for one in docs.RESULTS:
        assert declared(ROOT / one.script)
    assert {table.result for table in docs.TABLES} <= {one.name for one in docs.RESULTS}


def test_a_table_of_figures_is_generated_or_its_page_is_listed_with_the_reason() -> None:
    pages = {
        str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").rglob("*.md"))
        if any(_has_figures(table) for table in _tables(docs.BLOCK.sub("", path.read_text(encoding="utf-8"))))
    }  # fmt: skip
    assert pages == set(docs.WITHOUT_RESULT)


def _tables(text: str) -> list[list[list[str]]]:
    """Rows of cells of each table, without head and first column."""
    found = re.findall(r"(?:^\|.*\n)+", text + "\n", re.MULTILINE)
    return [[row.strip("|").split("|")[1:] for row in table.splitlines()[2:]] for table in found]


def _has_figures(rows: list[list[str]]) -> bool:
    cells = [cell.strip() for row in rows for cell in row if cell.strip() not in ("", "–")]
    return sum(bool(FIGURE.fullmatch(cell)) for cell in cells) > len(cells) / 2


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"seed": 7, "sets": {"a": {"n": 1}, "b": {"n": 2, "more": {"x": [1, 2]}}}}, []),
        ({"seed": 7, "sets": {"a": {"n": 1, "note": "by hand"}}}, ["no script declares 'sets/a/note'"]),
        ({"sets": {"a": {"n": 1}}}, ["lacks 'seed'"]),
        ({"seed": 7, "sets": {"a/b": {"n": 1}}}, []),
    ],
)
def test_fields_that_nobody_declares_and_fields_that_lack_are_named(document: Any, expected: list[str]) -> None:
    assert problems(document, ("seed", "sets/*/n", "?sets/*/more/...")) == expected


def test_what_was_not_declared_is_written_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "new" / "found.json", {"seed": 7, "odd": 1}, ("seed",))
    assert json.loads((tmp_path / "new" / "found.json").read_text()) == {"seed": 7, "odd": 1}
    assert "found.json: no script declares 'odd'" in capsys.readouterr().err


def test_an_entry_is_dropped_whole(tmp_path: Path) -> None:
    path = tmp_path / "found.json"
    path.write_text(json.dumps({"sets": {"rng/A": {"n": 1}, "b": {"n": 2}}, "cells": [{"n": 1, "note": "x"}]}))
    assert docs.main(["--drop", str(path), "sets > rng/A", "cells > 0 > note"]) == 0
    assert json.loads(path.read_text()) == {"sets": {"b": {"n": 2}}, "cells": [{"n": 1}]}


def test_markers_that_no_table_has_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "page.md").write_text("<!-- table: odd -->\n<!-- end -->\n")
    monkeypatch.setattr(docs, "ROOT", tmp_path)
    with pytest.raises(ValueError, match="markers of \\['odd'\\]"):
        docs.rendered("page.md")
