"""The table of data sets: its figures, what it says of each set, and that the page has it as the script prints it."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.questions import data_sets
from benchmarks.questions.data_sets import LOCAL, Graphs, LocalSet, _f1, _figures, _shown, measure, table
from kgqa_core.datasets.published.registry import local_files

ROOT = Path(__file__).resolve().parents[3]
RESULTS = ROOT / "benchmarks" / "results" / "data_sets.json"


def test_f1_and_intervals_are_those_of_a_hand_computed_case() -> None:
    assert [_f1({1, 2}, {2, 3, 4}), _f1({1}, {1}), _f1({1}, {2}), _f1(set(), set())] == [0.4, 1.0, 0.0, 0.0]
    figures = _figures([True, False, True, False], [1.0, 0.5, 1.0, 0.5], 0.0)
    assert (figures["hits_at_1"]["share"], figures["f1"]["share"]) == (0.5, 0.75)
    assert figures["f1"]["high"] - figures["f1"]["low"] == pytest.approx(2 * 1.96 * 0.25 / 2, abs=2e-4)
    assert _figures([], [], 0.0)["f1"] == {"share": None, "n": 0}
    assert _shown({"share": 0.5, "low": 0.1, "high": 0.9, "n": 4}, n=True) == "0.500 [0.100, 0.900] (4)"
    assert _shown(None, n=False) == "–"


@pytest.mark.slow
def test_a_set_is_read_linked_and_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "data"
    (data / "zjqa" / "data").mkdir(parents=True)
    (data / "zjqa" / "indexes").mkdir()
    triples = [f"a{n}\tr\tb{n}" for n in range(8)] + [f"b{n}\ts\tc{n}" for n in range(8)]
    (data / "zjqa" / "indexes" / "triple.txt").write_text("\n".join(triples) + "\n", encoding="utf-8")
    for split, numbers in (("train", range(4)), ("valid", range(4, 6)), ("test", range(6, 9))):
        lines = [f"r of a{n}?\ta{n}\tr\tb{n}\t1" for n in numbers]
        (data / "zjqa" / "data" / f"{split}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    record = measure("ZJQA", Graphs(tmp_path / "work", data))
    assert {name: record[name] for name in ("files", "questions", "with_answers", "with_paths", "linkable")} == {
        "files": 3, "questions": 9, "with_answers": 9, "with_paths": 9, "linkable": 8,
    }  # fmt: skip
    assert (record["split"], record["sample"]) == ("test", 2), "the third test question is about nothing here"
    assert record["runs"]["oracle"]["hits_at_1"]["share"] == record["runs"]["oracle"]["f1"]["share"] == 1.0
    assert set(record["runs"]) == {"random", "oracle", "auto"}
    monkeypatch.setitem(data_sets.LOCAL, "ZJQA", LocalSet("zjqa", None, "no graph"))
    again = measure("ZJQA", Graphs(tmp_path / "work", data))
    assert again["reason"] == "no graph" and "linkable" not in again
    shown = table({"sets": {"ZJQA": record}})
    assert "| ZJQA | 3 | 9 | 9 | 0 | 9 | 8 | zjqa |" in shown and "| ZJQA, test, 2 | Hits@1 |" in shown


def test_every_set_with_files_here_has_a_row() -> None:
    if not data_sets.DATA.is_dir():
        pytest.skip("the shared data sets are not here")
    names = set(local_files(data_sets.DATA))
    assert names and names <= set(LOCAL)
