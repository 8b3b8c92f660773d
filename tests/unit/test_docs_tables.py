"""The figures of the docs: pages hold what the result files say, and the files what their scripts declare."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks import docs_tables as docs
from benchmarks import results_file
from benchmarks.conditions import changes, conditions
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
    assert {table.result for table in docs.TABLES} - {""} <= {one.name for one in docs.RESULTS}


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


def test_a_tree_with_changes_writes_no_result_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results_file, "RESULTS", tmp_path)
    monkeypatch.setattr(results_file, "changes", lambda: ["a.py", "b.py", "c.py", "d.py"])
    with pytest.raises(
        SystemExit, match=r"found\.json is not written.*commit a\.py, b\.py, c\.py … and run"
    ) as refused:
        write(tmp_path / "found.json", {"seed": 7}, ("seed",))
    assert not [*tmp_path.iterdir()]
    kept = Path(str(refused.value).rpartition(" is in ")[2])
    assert kept.name == "found.json" and json.loads(kept.read_text()) == {"seed": 7}
    write(tmp_path / "elsewhere" / "found.json", {"seed": 7}, ("seed",))
    monkeypatch.setattr(results_file, "changes", list)
    write(tmp_path / "found.json", {"seed": 7}, ("seed",))
    assert json.loads((tmp_path / "found.json").read_text()) == {"seed": 7}


def test_changes_are_those_of_what_is_measured(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True, capture_output=True)

    for name in ("kgqa_core/a.py", "benchmarks/results/a.json", "docs/a.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1\n")
    assert changes(tmp_path) == [], "no history, nothing to compare with"
    git("init", "-q")
    git("add", ".")
    git("-c", "user.name=a", "-c", "user.email=a@localhost", "commit", "-qm", "a")
    (tmp_path / "benchmarks/results/a.json").write_text("2\n")
    (tmp_path / "docs/a.md").write_text("2\n")
    assert changes(tmp_path) == [] and not str(conditions(7, tmp_path)["commit"]).endswith("with changes")
    (tmp_path / "kgqa_core/a.py").write_text("2\n")
    (tmp_path / "benchmarks/new.py").write_text("1\n")
    assert sorted(changes(tmp_path)) == ["benchmarks/new.py", "kgqa_core/a.py"]
    assert str(conditions(7, tmp_path)["commit"]).endswith(" with changes")


def test_tables_say_of_what_commit_their_figures_cannot_be_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        docs, "RESULTS", (docs.ResultFile("old", "x.py", "abc1234, 2026-11-20"), docs.ResultFile("new", "x.py"))
    )
    commits = {"old": "", "new": "f" * 40 + " with changes"}
    monkeypatch.setattr(docs, "load", lambda name: {"conditions": {"commit": commits[name]}} if commits[name] else {})
    assert docs.marks("old") == ["*Of an unknown commit, at or before abc1234, 2026-11-20.*"]
    assert docs.marks("new") == ["*In part of a tree with changes that were not kept: fffffff with changes.*"]
    assert docs.marks("") == []


def test_commits_of_result_files_are_in_the_history() -> None:
    listed = subprocess.run(["git", "rev-list", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    shallow = subprocess.run(
        ["git", "rev-parse", "--is-shallow-repository"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()
    if shallow != "false":
        pytest.skip("no whole history is here to look commits up in")
    history = {commit[:7] for commit in listed.split()}
    recorded = {commit[:7] for one in docs.RESULTS for commit in docs._commits(docs.load(one.name))}
    assert recorded - history <= docs.REBASED, "land the code first, then measure: a rebase makes another commit of it"


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
