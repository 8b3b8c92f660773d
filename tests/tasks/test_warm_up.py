"""What the installation compiles is what a first run needs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import ROOT
from tests.support.question_graph import triples


def _compiled(folder: Path) -> set[str]:
    """One name for each kernel and signature."""
    return {path.name for path in folder.rglob("*.nbc")}


@pytest.mark.slow
def test_a_run_after_it_compiles_nothing(tmp_path: Path) -> None:
    compiled = tmp_path / "compiled"
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(compiled)}

    def python(*words: str | Path) -> None:
        done = subprocess.run([sys.executable, "-m", *words], cwd=ROOT, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]

    python("kgqa_core.warm_up")
    before = _compiled(compiled)
    assert len(before) >= 50
    (tmp_path / "films.nt").write_text("\n".join(triples()) + "\n", encoding="utf-8")
    python(
        "flows.cli", "run", "--kg", tmp_path / "films.nt", "--home", tmp_path / "home", "--answerer", "builtin",
        "--set", "questions.generated.size=80", "--set", "hop_path.encoder=scratch", "--set", "hop_path.epochs=1",
        "--set", "retrieval.retrievers=[random,hop_path]", "--set", "answering.knowledge=[hop_path/triples]",
        "--set", "answering.limit=2", "--set", "evaluation.bootstrap=100",
    )  # fmt: skip
    assert _compiled(compiled) == before
