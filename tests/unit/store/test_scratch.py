"""Temporary files beside a user's: gone with their block, and with the next one when their process was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kgqa_core.store.scratch import scratch_file, scratch_folder
from tests.support.command import ROOT

HOLD = """
import sys, time
from pathlib import Path
from kgqa_core.store.scratch import {kind}
with {kind}(Path(sys.argv[1]), "graph.nt") as path:
    (path / "part" if path.is_dir() else path).write_text("half")
    print(path.name, flush=True)
    time.sleep(600)
"""


def holder(kind: str, folder: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD.format(kind=kind), str(folder)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline().startswith(".graph.nt.")
    return process


@pytest.mark.parametrize("kind", ["scratch_file", "scratch_folder"])
def test_what_a_killed_process_left_goes_with_the_next_and_what_a_live_one_writes_stays(
    kind: str, tmp_path: Path
) -> None:
    scratch = {"scratch_file": scratch_file, "scratch_folder": scratch_folder}[kind]
    (tmp_path / ".graph.nt.mine").write_text("of the user")
    (tmp_path / ".other.nt.1234.tmp").write_text("of another file")
    first, second = (holder(kind, tmp_path) for _ in range(2))
    try:
        first.kill()
        assert first.wait() == -signal.SIGKILL
        assert len(list(tmp_path.glob(".graph.nt.*.tmp"))) == 2
        with scratch(tmp_path, "graph.nt") as path:
            names = {one.name for one in tmp_path.glob(".graph.nt.*.tmp")}
            assert len(names) == 2 and path.name in names, "that of the living process, and this one"
    finally:
        for process in (first, second):
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()
    with scratch(tmp_path, "graph.nt"):
        pass
    assert {one.name for one in tmp_path.iterdir()} == {".graph.nt.mine", ".other.nt.1234.tmp"}


def test_a_file_that_was_renamed_stays_where_it_is(tmp_path: Path) -> None:
    with scratch_file(tmp_path, "out.tsv") as path:
        path.write_text("whole")
        os.replace(path, tmp_path / "out.tsv")
    assert [one.name for one in tmp_path.iterdir()] == ["out.tsv"]
    assert (tmp_path / "out.tsv").read_text() == "whole"


def test_two_at_once_do_not_remove_each_other(tmp_path: Path) -> None:
    with scratch_folder(tmp_path, "diff") as one, scratch_folder(tmp_path, "diff") as other:
        assert one != other and one.is_dir() and other.is_dir()
    assert not list(tmp_path.iterdir())
