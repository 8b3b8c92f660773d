"""The benchmark of subsets: its loop keeps the same edges, and the page's tables are those of the record."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks import ingest_files, kg_subset, kg_subset_page

ROOT = Path(__file__).resolve().parents[3]


def test_the_loop_keeps_the_edges_that_a_subset_keeps(tmp_path: Path) -> None:
    dump = tmp_path / "dump.nt"
    ingest_files.write(dump, 4000, 3)
    seeds = kg_subset.seeds_of_dump(4000, 3)[:5]
    result, _ = kg_subset.subset([dump], seeds, tmp_path, hops=2, max_degree=0)
    assert kg_subset.loop(dump, seeds, 2) == result.counts["kept"]["edges"] > 20


def test_the_tables_of_the_page_are_those_of_the_record() -> None:
    record = json.loads((ROOT / "benchmarks" / "results" / "kg_subset.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "kg_subset.md").read_text(encoding="utf-8")
    between = page.partition(kg_subset_page.BEGIN)[2].partition(kg_subset_page.END)[0]
    assert between.strip() == kg_subset_page.figures(record).strip()
