"""Homes with a run of `auto` over a graph of films: a session computes one, whoever wants one gets a copy."""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path

import pytest

from tests.support.forked_command import forked_kgqa
from tests.support.question_graph import triples

SMALL = (
    "--set", "answering.answerers=[auto, builtin]", "--set", "label_parser.adapt=always",
    "--set", "questions.generated.size=60", "--set", "label_parser.generated=40", "--set", "label_parser.steps=10",
    "--set", "questions.generated.split_shares=[0.4, 0.3, 0.3]",  # enough dev questions for a calibration
    "--set", "hop_path.encoder=scratch", "--set", "hop_path.epochs=2",
    "--set", "answering.limit=12", "--set", "evaluation.bootstrap=100",
)  # fmt: skip


def films_home(folders: pytest.TempPathFactory, name: str) -> Path:
    """A home of the caller's own, with a run that needs no question file."""
    shared = folders.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # its own folder lies in that of all workers
        shared = shared.parent
    shared = shared / "films"
    shared.mkdir(exist_ok=True)
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / "computed").exists():
            (shared / "films.nt").write_text("\n".join(triples()) + "\n", encoding="utf-8")
            done = forked_kgqa("run", "--json", "--kg", shared / "films.nt", "--home", shared / "home", *SMALL)
            assert done.code == 0, done.err[-3000:]
            assert "label_parser" in done.json["stages"]
            (shared / "computed").touch()
    return Path(shutil.copytree(shared / "home", folders.mktemp(name) / "home"))
