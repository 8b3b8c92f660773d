"""The benchmark of `follow` runs, checks its roads against each other and writes its figures."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.graph import dkg_follow
from kgqa_core.dkg.csr import Dkg


def test_benchmark_compares_all_roads_on_a_small_graph(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph, out = tmp_path / "kb.txt", tmp_path / "figures.json"
    graph.write_text("".join(f"film {i}|{'directed_by' if i % 2 else 'genre'}|thing {i % 7}\n" for i in range(60)))
    threads = torch.get_num_threads()
    try:
        assert (
            dkg_follow.main(["--kg", str(graph), "--batch", "3", "--rounds", "5", "--threads", "1", "--json", str(out)])
            == 0
        )
    finally:
        torch.set_num_threads(threads)
    figures = json.loads(out.read_text())
    graph = figures["graphs"][0]
    assert graph["triples"] == 60
    assert [result["seeds"] for result in graph["results"]] == ["uniform", "degree"]
    assert set(graph["results"][0]["ratio_to_kernel"]) == {"sparse", "coo", "gather", "matrices", "torch"}
    assert graph["results"][0]["best_dense"] in ("sparse", "coo", "gather", "matrices")
    assert "best dense" in capsys.readouterr().out


@pytest.mark.slow
def test_benchmark_of_sizes_generates_measures_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from benchmarks.graph import dkg_scale

    out = tmp_path / "figures.json"
    options = ["--edges", "2000", "20000", "--questions", "5", "--budget", "50", "--triples", "0", "--hub", "3000"]
    threads = torch.get_num_threads()
    try:
        assert dkg_scale.main(["--work", str(tmp_path), *options, "--rounds", "5", "--json", str(out)]) == 0
    finally:
        torch.set_num_threads(threads)
    figures = json.loads(out.read_text())
    assert [graph["edges"] > 0 for graph in figures["graphs"]] == [True, True]
    assert len(figures["latency"]) == 8 and any(row["cut"] for row in figures["latency"] if row["budget"])
    assert figures["last_hop"][0]["hub_edges"] >= 3000 and "last hop" in capsys.readouterr().out
    dkg = Dkg.open(tmp_path / "dkg-20000")
    edges = np.arange(dkg.edges_stored)
    ordered = np.lexsort((dkg.tail, dkg.rel, dkg.source_of(edges)))
    assert np.array_equal(dkg.rel[ordered], dkg.rel) and np.array_equal(dkg.tail[ordered], dkg.tail)
