"""The benchmark of ingest runs, checks its roads against each other and writes its figures."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest


@pytest.fixture
def ingest(monkeypatch: pytest.MonkeyPatch):
    module = importlib.import_module("benchmarks.graph.ingest")
    monkeypatch.setattr(module, "run_apart", module.run_here)  # processes are slow to start
    return module


@pytest.mark.slow
def test_roads_agree_and_figures_are_written(ingest, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    roads = "kgqa,kgqa build,duckdb,polars,pyoxigraph"
    arguments = ["--sizes", "2k", "--rounds", "1", "--packed", ".gz", "--roads", roads]
    assert ingest.main([*arguments, "--folder", str(tmp_path), "--json", str(tmp_path / "figures.json")]) == 0
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert figures["seed"] == ingest.SEED and figures["machine"]["packages"]["duckdb"] != "absent"
    [size] = figures["sizes"]
    assert size["lines"] == 2_000 and list(size["roads"]) == [*roads.split(","), "kgqa .gz"]
    assert all(road["peak_mb"] > 0 and len(road["rounds"]) == 1 for road in size["roads"].values())
    assert size["roads"]["kgqa"]["ours_is_faster_by"] == 1
    assert "duckdb" in capsys.readouterr().out and not list(tmp_path.glob("tmp*"))


def test_roads_that_disagree_are_not_timed(ingest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = ingest.ingest_roads.polars

    def wrong(*given):
        terms, *columns = right(*given)()
        return lambda: (terms + 1, *columns)

    monkeypatch.setitem(ingest.ingest_roads.ROADS, "polars", wrong)
    with pytest.raises(SystemExit, match="the roads disagree"):
        ingest.check(tmp_path, ["kgqa", "polars"], "1GB")


def test_equal_seeds_write_equal_files_of_so_many_lines(ingest, tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        ingest.ingest_files.write(tmp_path / name, 1_000, seed)
    one, two, other = ((tmp_path / name).read_bytes() for name in "abc")
    assert one == two != other and one.count(b"\n") == 1_000
    assert b"@pt-br" in one and b"\\u00E9" in one and b"#date" in one
