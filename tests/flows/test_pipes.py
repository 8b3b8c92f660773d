"""Every command that reads a file reads a pipe as well, whole, or refuses it; a device is refused."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from flows import answerability, preflight
from flows import ltgen as benchmarks
from flows.cli._session import choose_profile
from flows.cli.app import app
from kgqa_core.config import KgOptions, PassagesOptions, QuestionsOptions, read_profile
from kgqa_core.datasets.load import read_raw
from kgqa_core.errors import InputError, KgqaError
from kgqa_core.kg.build import build
from kgqa_core.passages.corpus import find_corpus, read_corpus
from kgqa_core.spool import spooling
from kgqa_core.store.artifacts import hash_path
from kgqa_core.workspace import Workspace
from tasks.engine.external_digests import file_digest
from tasks.kg import dump_digests
from tasks.questions import question_digests
from tests.support.command import ROOT, written_pipes
from tests.support.toy import write_graph, write_questions

TRIPLES = 6000
LINE = b"<http://x/e%d> <http://x/p%d> <http://x/e%d> .\n"
DUMP = b"".join(LINE % (number, number % 7, number * 7 % TRIPLES) for number in range(TRIPLES))
GOOD = "bundled:atlas"


@pytest.fixture
def pipe() -> Iterator[Callable[[bytes], str]]:
    """Makes a pipe that something is written to, and names it."""
    with written_pipes() as make:
        yield lambda data: str(make(data))


def fifo(path: Path, data: bytes) -> Path:
    """A named pipe that something is written to when it is opened."""
    os.mkfifo(path)

    def write() -> None:
        with contextlib.suppress(BrokenPipeError):
            path.write_bytes(data)

    threading.Thread(target=write, daemon=True).start()
    return path


def kgqa(*words: str | Path) -> dict[str, object]:
    """What a command prints as JSON, run in this process."""
    result = CliRunner().invoke(app, [*map(str, words), "--json"])
    assert result.exit_code == 0, (result.output, result.exception)
    found: dict[str, object] = json.loads(result.stdout.strip().splitlines()[-1])
    return found


def refused(*words: str | Path) -> str:
    """The error of a command, run in this process."""
    result = CliRunner().invoke(app, [*map(str, words)])
    assert isinstance(result.exception, KgqaError), result.output
    assert result.exception.exit_code == 2
    return str(result.exception)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_all_of_a_dump_in_a_pipe_is_read(
    tmp_path: Path, pipe: Callable[[bytes], str], pack: Callable[[bytes], bytes]
) -> None:
    built = kgqa("kg", "build", pipe(pack(DUMP)), "--out", tmp_path / "graph")
    assert (built["triples"], built["rejects"], built["entities"]) == (TRIPLES, 0, TRIPLES)
    assert [path.name for path in tmp_path.iterdir()] == ["graph"]


def test_several_pipes_and_a_file_make_one_graph(tmp_path: Path, pipe: Callable[[bytes], str]) -> None:
    lines = DUMP.splitlines(keepends=True)
    (tmp_path / "last.nt").write_bytes(b"".join(lines[4500:]))
    pipes = [pipe(b"".join(lines[:2000])), pipe(gzip.compress(b"".join(lines[2000:4500])))]
    built = kgqa("kg", "build", *pipes, tmp_path / "last.nt", "--out", tmp_path / "graph")
    assert (built["triples"], built["rejects"]) == (TRIPLES, 0)


@pytest.mark.slow
def test_an_update_reads_pipes(tmp_path: Path, pipe: Callable[[bytes], str]) -> None:
    lines = DUMP.splitlines(keepends=True)
    (tmp_path / "old.nt").write_bytes(b"".join(lines[:-100]))
    kgqa("kg", "build", tmp_path / "old.nt", "--out", tmp_path / "graph")
    updated = kgqa(
        "kg", "update", tmp_path / "graph", "--out", tmp_path / "graph",
        "--added", pipe(b"".join(lines[-100:])), "--removed", pipe(b"".join(lines[:50])),
    )  # fmt: skip
    assert (updated["triples"], updated["not_found"], updated["already_there"]) == (TRIPLES - 50, 0, 0)
    whole = kgqa("kg", "update", tmp_path / "graph", fifo(tmp_path / "new.nt", DUMP), "--out", tmp_path / "new")
    assert whole["triples"] == TRIPLES


def test_predictions_and_questions_are_read_from_pipes(tmp_path: Path, pipe: Callable[[bytes], str]) -> None:
    questions, predictions = tmp_path / "q.jsonl", tmp_path / "p.jsonl"
    write_questions(questions, write_graph(tmp_path / "g.tsv", 400), 60)
    rows = [json.loads(line) for line in questions.read_text().splitlines()]
    predictions.write_text("".join(json.dumps({"id": row["id"], "prediction": "x"}) + "\n" for row in rows))
    files = kgqa("evaluate", "--predictions", predictions, "--questions", questions)
    pipes = kgqa(
        "evaluate", "--predictions", pipe(predictions.read_bytes()),
        "--questions", pipe(gzip.compress(questions.read_bytes())),
    )  # fmt: skip
    assert pipes == files


def test_preflight_key_and_reading_see_the_same_of_a_pipe(tmp_path: Path, pipe: Callable[[bytes], str]) -> None:
    write_questions(tmp_path / "q.jsonl", write_graph(tmp_path / "g.tsv", 400), 60)
    (tmp_path / "g.nt").write_bytes(DUMP)
    corpus = b"".join(b"Document %d.\n\n" % number for number in range(20_000))
    (tmp_path / "out").mkdir()
    with spooling():
        questions = QuestionsOptions(name="q", source="jsonl", path=pipe((tmp_path / "q.jsonl").read_bytes()))
        preflight._read_questions(questions, 7)
        assert question_digests(questions) == {"questions": hash_path(tmp_path / "q.jsonl")}
        assert len(read_raw(questions, 7)) == 60
        options = KgOptions(files=(pipe(DUMP),))
        assert list(dump_digests(options).values()) == [hash_path(tmp_path / "g.nt")]
        assert build(Workspace(tmp_path / "out"), options=options)["triples"] == TRIPLES
        passages = PassagesOptions(corpus=pipe(corpus))
        file_digest(Path(passages.corpus or ""))
        assert sum(1 for _ in read_corpus(find_corpus(passages.corpus), passages)) == 20_000
        assert read_profile(fifo(tmp_path / "p.yaml", b"name: piped\n")) == {"name": "piped"}


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null"])
def test_a_device_is_refused_by_every_command(tmp_path: Path, device: str) -> None:
    (tmp_path / "q.jsonl").write_text("{}\n")
    (tmp_path / "p.yaml").symlink_to(device)
    commands: Sequence[tuple[str | Path, ...]] = (
        ("kg", "build", device, "--out", tmp_path / "graph"),
        ("kg", "build", GOOD, "--out", tmp_path / "graph", "--set", f"page_views={device}"),
        ("ltgen", "agreement", device, device),
        ("evaluate", "--predictions", device, "--questions", tmp_path / "q.jsonl"),
    )
    for command in commands:
        assert f"{device} is a device" in refused(*command), command
    assert not (tmp_path / "graph").exists()
    for check in (preflight.check, answerability.check, benchmarks.check):
        with pytest.raises(InputError, match=f"{device} is a device"):
            check(choose_profile(None, [Path(device)], tmp_path / "q.jsonl"))
    for check in (preflight.check, answerability.check):
        with pytest.raises(InputError, match=f"{device} is a device"):
            check(choose_profile(None, [Path(GOOD)], Path(device)))
    with pytest.raises(InputError, match=r"p\.yaml is a device"):
        choose_profile(str(tmp_path / "p.yaml"))


def test_a_name_that_is_too_long_is_refused_by_every_command(tmp_path: Path) -> None:
    name = "a" * 5000
    (tmp_path / "q.jsonl").write_text("{}\n")
    commands: Sequence[tuple[str | Path, ...]] = (
        ("kg", "build", name, "--out", tmp_path / "graph"),
        ("kg", "build", f"{name}*", "--out", tmp_path / "graph"),
        ("kg", "build", GOOD, "--out", tmp_path / "graph", "--set", f"page_views={name}"),
        ("ltgen", "agreement", name, name),
        ("evaluate", "--predictions", name, "--questions", tmp_path / "q.jsonl"),
        ("run", "--profile", f"{name}.yaml"),
        ("answerability", "build", "--kg", name),
    )
    for command in commands:
        message = refused(*command)
        assert len(message) < 300, command
    for check in (preflight.check, answerability.check):
        with pytest.raises(InputError, match=r"the name 'a+…' of 5,000 characters is too long for a file"):
            check(choose_profile(None, [Path(GOOD)], Path(name)))
    with pytest.raises(InputError, match="is too long for a file"):
        find_corpus(name)


@pytest.mark.slow
def test_a_shell_may_substitute_a_process(tmp_path: Path) -> None:
    (tmp_path / "ok.nt").write_bytes(DUMP)
    line = f'"{sys.executable}" -m flows.cli kg build <(cat ok.nt) --out graph --json'
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)}
    done = subprocess.run(["bash", "-c", line], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["triples"] == TRIPLES
    assert "is a pipe: it is copied" in done.stderr
