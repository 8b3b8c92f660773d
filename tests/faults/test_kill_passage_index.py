"""Killed while it indexes a corpus, a build goes on from the vectors that it has and ends as if undisturbed."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from kgqa_core.config import PassagesOptions
from kgqa_core.passages.dense import BLOCK
from kgqa_core.passages.index import build
from kgqa_core.store.artifacts import Home, read_manifest
from kgqa_core.workspace import Workspace
from tests.support.device import DEVICE
from tests.support.passages import documents, tiny_encoder, write_jsonl

BLOCKS = 5
PASSAGES = BLOCKS * BLOCK - 100
KEY = "0" * 64


class Killer:
    """A monitor that kills its process at one report of progress."""

    def __init__(self, what: str, report: int) -> None:
        self.what, self.left = what, report

    def progress(self, done: float, total: float | None, what: str) -> None:
        if what == self.what:
            self.left -= 1
            if not self.left:
                os.kill(os.getpid(), signal.SIGKILL)

    def metric(self, name: str, value: float, step: int | None = None) -> None: ...

    def note(self, message: str) -> None: ...


def work(home: str, options: PassagesOptions, what: str, report: int) -> None:
    store = Home(Path(home)).prepare()
    monitor = Killer(what, report)

    def fill(out: Path, scratch: Path) -> Any:
        counts = build(Workspace(out, scratch, cache=store.cache, monitor=monitor), options=options, seed=3)
        monitor.progress(1, 1, "publishing")
        return counts

    store.compute("passage_index", KEY, fill, {}, monitor)


def run(home: Path, options: PassagesOptions, what: str = "", report: int = 0) -> int | None:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["kgqa_core.passages.index", "transformers.models.bert.modeling_bert"])
    process = context.Process(target=work, args=(str(home), options, what, report))
    process.start()
    process.join(300)
    return process.exitcode


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> PassagesOptions:
    folder = tmp_path_factory.mktemp("corpus")
    corpus = write_jsonl(folder / "c.jsonl", documents(PASSAGES, words=3))
    encoder = tiny_encoder(folder / "encoder")
    return PassagesOptions(corpus=str(corpus), encoder=encoder, retriever="hybrid", max_tokens=32, device=DEVICE)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, options: PassagesOptions) -> str:
    home = tmp_path_factory.mktemp("undisturbed")
    assert run(home, options) == 0
    made = Home(home).find("passage_index", KEY)
    assert made is not None
    return made.digest


@pytest.mark.parametrize(
    ("what", "report", "kept"),
    [
        ("passages encoded", 1, BLOCK),
        ("passages encoded", 4, 4 * BLOCK),
        ("passages split into words", 2, PASSAGES),
        ("publishing", 1, PASSAGES),
    ],
)
def test_a_killed_index_goes_on_from_the_blocks_that_were_finished(
    tmp_path: Path, options: PassagesOptions, undisturbed: str, what: str, report: int, kept: int
) -> None:
    assert run(tmp_path, options, what, report) == -signal.SIGKILL
    assert Home(tmp_path).find("passage_index", KEY) is None, "no half index is found"
    assert run(tmp_path, options) == 0
    made = Home(tmp_path).find("passage_index", KEY)
    assert made is not None and made.digest == undisturbed
    assert read_manifest(made.folder)["counts"]["encoded"] == PASSAGES - kept
    assert json.loads((made.folder / "index.json").read_text())["passages"] == PASSAGES


def test_killed_again_and_again_it_still_ends(tmp_path: Path, options: PassagesOptions, undisturbed: str) -> None:
    for _ in range(BLOCKS):
        assert run(tmp_path, options, "passages encoded", 2) == -signal.SIGKILL
    assert run(tmp_path, options) == 0
    made = Home(tmp_path).find("passage_index", KEY)
    assert made is not None and made.digest == undisturbed
