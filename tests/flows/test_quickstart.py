"""docs/quickstart.ipynb runs, and what its cells show is what the file shows."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

from tests.support.command import ROOT
from tools.atlas.graph import AtlasGraph
from tools.notebook import executed, shown
from tools.quickstart_graph import turtle

NOTEBOOK = ROOT / "docs" / "quickstart.ipynb"
FRACTION = re.compile(r"\d+\.\d+")
SCORES = ("kgqa run", "by_complexity")
"""Cells that show scores, which differ in the last digits between machines; their lines are compared by their words."""


@pytest.mark.slow
def test_the_cells_run_and_show_what_the_file_shows(tmp_path: Path) -> None:
    before = [cell for cell in nbformat.read(NOTEBOOK, as_version=4).cells if cell.cell_type == "code"]
    after = [cell for cell in executed(NOTEBOOK, tmp_path).cells if cell.cell_type == "code"]
    for old, new in zip(before, after, strict=True):
        assert _what_matters(new) == _what_matters(old), old.source
        if "by_complexity" in new.source:
            scores = [float(line.split()[-4]) for line in shown(new).splitlines()]
            assert sum(scores) / len(scores) > 0.5, "the small system answers most kinds of questions"


def test_the_file_shows_the_outputs_of_a_run_and_no_path_of_a_machine() -> None:
    cells = [cell for cell in nbformat.read(NOTEBOOK, as_version=4).cells if cell.cell_type == "code"]
    silent = [cell.source for cell in cells if not shown(cell)]
    assert all("kgqa answer" in source for source in silent) and len(silent) == 1
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert not re.search(r"(?<![\w:./])/(home|root|tmp|work|usr|Users)/", "".join(map(shown, cells)))


@pytest.mark.slow
def test_the_graph_is_cut_out_of_the_bundled_one() -> None:
    assert turtle(AtlasGraph.read()) == (NOTEBOOK.parent / "quickstart" / "europe.ttl").read_text(encoding="utf-8")


def _what_matters(cell: nbformat.NotebookNode) -> str:
    text = FRACTION.sub("#", shown(cell))
    if any(word in cell.source for word in SCORES):
        return " ".join(sorted(set(re.findall(r"[^\W\d_][\w/+-]*", text))))
    return text
