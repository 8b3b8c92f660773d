"""Killed at any moment, a build, update or export leaves whole folders only; the next run ends as if undisturbed."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.store.artifacts import read_manifest, verify
from tests.support.kills import beside, finish, kill_after
from tests.support.toy import write_graph

pytestmark = pytest.mark.slow

MOMENTS = 10
FORMAT = {"format": "delimited"}
Job = tuple[str, tuple[Any, ...], dict[str, Any]]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two states of a dump, and the graph and the DKG of the first."""
    folder = tmp_path_factory.mktemp("inputs")
    rows = write_graph(folder / "all.tsv", 4500)
    for name, kept in (("old", rows[300:]), ("new", rows[:-300])):
        (folder / f"{name}.tsv").write_text("".join("\t".join(row) + "\n" for row in kept), encoding="utf-8")
    for name, kept in (("came", rows[:300]), ("went", rows[-300:])):
        (folder / f"{name}.tsv").write_text("".join("\t".join(row) + "\n" for row in kept), encoding="utf-8")
    finish("build_folder", [str(folder / "old.tsv")], folder / "kg", FORMAT)
    finish("export_folder", folder / "kg", folder / "dkg")
    return folder


def digest(folder: Path) -> str:
    verify(folder)
    return str(read_manifest(folder)["digest"])


def torture(out: Path, job: Job, before: str | None, watch: Callable[[], None], seed: int) -> None:
    """Runs a job undisturbed, then kills it at ten random moments, each followed by a run to the end.

    before: digest of what is in `out` when the job starts, if anything; a killed job leaves that or its own result.
    """
    name, words, options = job
    reset = [(path, path.read_bytes()) for path in sorted(out.rglob("*")) if path.is_file()]
    seconds = finish(name, *words, **options)
    wanted = digest(out)
    draw = random.Random(seed)
    killed = 0
    for moment in range(MOMENTS):
        for path in sorted(out.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        for path, data in reset:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        if not reset:
            out.rmdir()
        killed += kill_after((moment + draw.random()) / MOMENTS * seconds, name, *words, **options)
        assert not out.exists() or digest(out) in (before, wanted)
        watch()
        finish(name, *words, **options)
        assert digest(out) == wanted
        assert beside(out) == [], "what the killed job left is cleared"
        watch()
    assert killed >= MOMENTS // 3, "the job was too quick to be killed"


def test_build_killed_at_random_moments(inputs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    torture(out, ("build_folder", ([str(inputs / "old.tsv")], out, FORMAT), {}), None, lambda: None, 1)


def test_update_killed_at_random_moments_leaves_the_old_graph_alone(inputs: Path, tmp_path: Path) -> None:
    old = digest(inputs / "kg")

    def watch() -> None:
        assert digest(inputs / "kg") == old

    out = tmp_path / "out"
    torture(
        out,
        ("update_folder", (inputs / "kg", out), {"files": [str(inputs / "new.tsv")], "settings": FORMAT}),
        None,
        watch,
        2,
    )


def test_update_in_place_killed_at_random_moments_leaves_the_old_or_the_new_graph(inputs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    finish("build_folder", [str(inputs / "old.tsv")], out, FORMAT)
    pair = {"added": [str(inputs / "came.tsv")], "removed": [str(inputs / "went.tsv")], "settings": FORMAT}
    torture(out, ("update_folder", (out, out), pair), digest(out), lambda: verify(out) and None, 3)


def test_export_killed_at_random_moments(inputs: Path, tmp_path: Path) -> None:
    torture(tmp_path / "out", ("export_folder", (inputs / "kg", tmp_path / "out"), {}), None, lambda: None, 4)
    assert digest(tmp_path / "out") == digest(inputs / "dkg")
