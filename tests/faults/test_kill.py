"""Killed in any stage, a run goes on from there and ends with what an undisturbed run makes."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.support.command import ROOT, Outcome, kgqa, run_python
from tests.support.prefect_server import shared_environment
from tests.support.toy import write_graph, write_questions

pytestmark = pytest.mark.slow

STAGES = (
    "kg", "dkg", "questions", "retriever", "hop_path", "facts", "corpus", "rewriter", "knowledge", "answers", "scores",
)  # fmt: skip
LONG = ("retriever", "hop_path", "rewriter", "answers")
"""Stages that are killed midway: they have something to take up."""


@pytest.fixture(scope="module")
def server() -> dict[str, str]:
    """A Prefect server on loopback, so that each of many runs starts quickly."""
    return shared_environment()


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Arguments of a run on a small graph."""
    folder = tmp_path_factory.mktemp("inputs")
    write_questions(folder / "questions.jsonl", write_graph(folder / "graph.tsv", 1500), 80)
    return [
        "run", "--json", "--answerer", "builtin",
        "--kg", str(folder / "graph.tsv"), "--questions", str(folder / "questions.jsonl"),
        "--set", "rigel.encoder=scratch", "--set", "rigel.min_steps=40",
        "--set", "rigel.checkpoint_seconds=0.01",
        "--set", "hop_path.encoder=scratch", "--set", "hop_path.epochs=3", "--set", "hop_path.checkpoint_seconds=0.01",
        "--set", "answering.knowledge=[none, rigel, hop_path/rewritten]", "--set", "corpus.size=12",
        "--set", "rewriter.epochs=1", "--set", "rewriter.global_batch_size=4", "--set", "rewriter.max_new_tokens=8",
        "--set", "rewriter.checkpoint_seconds=0.01", "--set", "retrieval.retrievers=[rigel, hop_path]",
        "--set", "answering.limit=8", "--set", "llm.batch_tokens=256", "--set", "answering.max_new_tokens=4",
    ]  # fmt: skip


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, server: dict[str, str], inputs: list[str]) -> dict[str, str]:
    """Digests of an undisturbed run."""
    home = tmp_path_factory.mktemp("undisturbed")
    return digests(succeed(kgqa(*inputs, "--home", home, env=server)), home)


def test_killed_in_each_stage_and_started_again_ends_with_the_same_digests(
    tmp_path: Path, server: dict[str, str], inputs: list[str], undisturbed: dict[str, str]
) -> None:
    done: set[str] = set()
    for number, stage in enumerate(STAGES):
        when = "midway" if number % 2 == 0 or stage in LONG else "publishing"
        killed = run_python(
            [ROOT / "tests/support/kills.py", stage, when, "--", *inputs, "--home", tmp_path], env=server
        )
        assert killed.code == -signal.SIGKILL, f"{stage} was not killed: {killed.err[-2000:]}"
        before = published(tmp_path)
        assert done <= set(before), f"finished stages were lost when {stage} was killed"
        done = set(before)
    last = succeed(kgqa(*inputs, "--home", tmp_path, env=server))
    stages = last.json["stages"]
    assert {name for name, stage in stages.items() if stage["status"] == "cached"} >= {
        "kg", "dkg", "questions", "retriever", "hop_path", "corpus", "rewriter"
    }  # fmt: skip
    assert digests(last, tmp_path) == undisturbed
    assert not list((tmp_path / "tmp").iterdir()) and not list((tmp_path / "work").iterdir())


def succeed(outcome: Outcome) -> Outcome:
    assert outcome.code == 0, outcome.err[-4000:]
    return outcome


def published(home: Path) -> list[str]:
    return sorted(str(path.parent.relative_to(home)) for path in (home / "artifacts").glob("*/*/manifest.json"))


def digests(outcome: Outcome, home: Path) -> dict[str, str]:
    record = json.loads((home / "runs" / outcome.json["run_id"] / "run.json").read_text())
    return {stage["name"]: stage["artifact"]["digest"] for stage in record["stages"]}
