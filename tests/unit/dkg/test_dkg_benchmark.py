"""The benchmark of `follow` runs, checks its roads against each other and writes its figures."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
import torch

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "dkg_follow.py"


def test_benchmark_compares_all_roads_on_a_small_graph(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = importlib.util.spec_from_file_location("dkg_follow", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    graph, out = tmp_path / "kb.txt", tmp_path / "figures.json"
    graph.write_text("".join(f"film {i}|{'directed_by' if i % 2 else 'genre'}|thing {i % 7}\n" for i in range(60)))
    threads = torch.get_num_threads()
    try:
        assert (
            module.main(["--kg", str(graph), "--batch", "3", "--rounds", "5", "--threads", "1", "--json", str(out)])
            == 0
        )
    finally:
        torch.set_num_threads(threads)
    figures = json.loads(out.read_text())
    assert figures["graph"]["triples"] == 60
    assert [result["seeds"] for result in figures["results"]] == ["uniform", "degree"]
    assert set(figures["results"][0]["ratio_to_kernel"]) == {"sparse", "matrices", "torch"}
    assert "degree" in capsys.readouterr().out
