"""Bad input gets one clear message that names the value and the way out, the right exit code, and harms nothing."""

from __future__ import annotations

import gzip
import json
import os
import socket
from pathlib import Path

import pytest

from kgqa_core.store.artifacts import verify
from tests.support.command import Outcome
from tests.support.forked_command import forked_kgqa
from tests.support.toy import write_graph, write_questions


@pytest.fixture
def good(tmp_path: Path) -> tuple[Path, Path]:
    """A graph file and a question file that are fine."""
    graph, questions = tmp_path / "graph.tsv", tmp_path / "questions.jsonl"
    write_questions(questions, write_graph(graph, 400), 30)
    return graph, questions


def run(graph: Path, questions: Path, *more: str) -> Outcome:
    return forked_kgqa(
        "run", "--answerer", "builtin", "--kg", graph, "--questions", questions, "--home", graph.parent / "home", *more
    )


def refused(outcome: Outcome, *words: str, code: int = 2) -> None:
    assert outcome.code == code, (outcome.code, outcome.err[-2000:])
    assert "Traceback" not in outcome.err
    for word in words:
        assert word in outcome.err.replace("\n", " "), (word, outcome.err[-2000:])


@pytest.mark.parametrize("harm", ["missing", "empty", "folder", "truncated", "wrong"])
def test_unusable_graph_file(good: tuple[Path, Path], harm: str) -> None:
    graph, questions = good
    bad = graph.parent / "bad.tsv"
    if harm == "empty":
        bad.write_text("")
    elif harm == "folder":
        bad.mkdir()
    elif harm == "truncated":
        bad = graph.parent / "bad.tsv.gz"
        bad.write_bytes(gzip.compress(graph.read_bytes())[:-500])
    elif harm == "wrong":
        bad.write_text("one field\n" * 50)
    refused(run(bad, questions), bad.name)
    if harm == "missing":
        refused(run(graph.parent / "grap.tsv", questions), "grap.tsv", "graph.tsv")


def test_bad_lines_are_listed_and_good_ones_kept(good: tuple[Path, Path]) -> None:
    graph, _ = good
    with graph.open("a") as stream:
        stream.write("only\ttwo\n")
    built = forked_kgqa("kg", "build", graph, "--out", graph.parent / "kg", "--json")
    assert built.code == 0, built.err
    assert {key: built.json[key] for key in ("triples", "rejects")} == {"triples": 540, "rejects": 1}, "with types"
    shown = forked_kgqa("kg", "build", graph, "--out", graph.parent / "kg")
    last = shown.out.splitlines()[-1]
    assert last.startswith("1 of 541 statements are rejected and left out") and "SELECT * FROM rejects" in last
    strict = forked_kgqa("kg", "build", graph, "--out", graph.parent / "kg", "--max-reject-share", "0")
    refused(strict, "401", "only")
    assert verify(graph.parent / "kg").digest == built.json["digest"], "the earlier graph must stay"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{not json", ("line 31",)),
        ('{"id": "q0000", "question": "Again?", "topic_entities": ["x"], "answers": ["y"]}', ("q0000", "line 31")),
        ('{"id": "new", "topic_entities": ["x"], "answers": ["y"]}', ("line 31", "question")),
    ],
)
def test_bad_question_line_is_named(good: tuple[Path, Path], line: str, words: tuple[str, ...]) -> None:
    graph, questions = good
    with questions.open("a") as stream:
        stream.write(line + "\n")
    refused(run(graph, questions), "questions.jsonl", *words)


def test_no_topic_in_the_graph_is_refused_with_a_near_name(good: tuple[Path, Path]) -> None:
    graph, questions = good
    rows = [json.loads(line) for line in questions.read_text().splitlines()]
    for row in rows:
        row["topic_entities"] = [row["topic_entities"][0] + "x"]
    questions.write_text("".join(json.dumps(row) + "\n" for row in rows))
    refused(run(graph, questions), rows[0]["topic_entities"][0], "did you mean")


def test_unknown_names_get_the_nearest(good: tuple[Path, Path]) -> None:
    graph, questions = good
    refused(forked_kgqa("run", "--profile", "atls"), "atls", "did you mean 'atlas'")
    refused(run(graph, questions, "--set", "retriver.hops=2"), "retriver.hops", "did you mean 'rigel.hops'")
    refused(run(graph, questions, "--set", "rigel.hops=9"), "rigel.hops", "9")
    refused(run(graph, questions, "--answerer", "builtn"), "builtn", "did you mean 'builtin'")
    assert forked_kgqa("rnu").code == 2
    refused(forked_kgqa("run"), "--profile")


def test_model_folder_that_is_none(good: tuple[Path, Path]) -> None:
    graph, questions = good
    refused(run(graph, questions, "--answerer", f"hf:{graph.parent}"), str(graph.parent), "config.json")
    refused(run(graph, questions, "--set", f"rigel.encoder={graph.parent}"), str(graph.parent), "config.json")


def test_endpoint_that_is_down_is_noticed_before_training(good: tuple[Path, Path]) -> None:
    graph, questions = good
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{probe.getsockname()[1]}/v1"
    outcome = run(graph, questions, "--answerer", "openai:m", "--set", f"llm.base_url={address}")
    refused(outcome, address, code=1)
    assert not list((graph.parent / "home" / "artifacts").glob("*/*"))


@pytest.mark.skipif(os.geteuid() != 0, reason="a small file system can only be mounted by root")
def test_full_disk_says_so_and_publishes_nothing(good: tuple[Path, Path], tmp_path: Path) -> None:
    import subprocess

    graph, _ = good
    write_graph(graph, 400)
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(small)], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        refused(forked_kgqa("kg", "build", graph, "--out", small / "kg"), "no space", code=1)
        assert not list(small.iterdir())
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_home_without_a_run_says_how_to_start_one(tmp_path: Path) -> None:
    for words in (("ask", "Who?"), ("report",), ("kg", "show", "x")):
        refused(forked_kgqa(*words, "--home", tmp_path / "home"), "kgqa demo")
