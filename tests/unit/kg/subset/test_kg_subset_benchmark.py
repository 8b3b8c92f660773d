"""The benchmark of subsets: its loop keeps the same edges."""

from __future__ import annotations

from pathlib import Path

from benchmarks.graph import ingest_files, kg_subset


def test_the_loop_keeps_the_edges_that_a_subset_keeps(tmp_path: Path) -> None:
    dump = tmp_path / "dump.nt"
    ingest_files.write(dump, 4000, 3)
    seeds = kg_subset.seeds_of_dump(4000, 3)[:5]
    result, _ = kg_subset.subset([dump], seeds, tmp_path, hops=2, max_degree=0)
    assert kg_subset.loop(dump, seeds, 2) == result.counts["kept"]["edges"] > 20
