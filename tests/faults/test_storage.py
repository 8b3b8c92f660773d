"""A full or read-only disk and damaged files: said clearly, nothing half-published, finished work kept."""

from __future__ import annotations

import errno
import gc
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import duckdb
import polars as pl
import pytest
import torch
from prefect.settings import PREFECT_API_URL, temporary_settings
from typer.testing import CliRunner

from flows.cli import _session as session
from flows.cli import faults
from flows.cli.app import app
from flows.cli.graph_folders import build_folder
from kgqa_core.errors import ConfigError, StorageError
from kgqa_core.llm.cache import FILE as RESPONSES
from kgqa_core.llm.cache import Identity, Request, ResponseCache
from kgqa_core.llm.protocol import Completion, GenerationParams
from kgqa_core.nn.checkpoint import TrainingState, restore, store
from kgqa_core.store.artifacts import Home, verify
from kgqa_core.store.files import MIN_FREE_MB, check_room, is_full, storage_faults, watch_room
from kgqa_core.store.gc import plan, sweep
from kgqa_core.store.inventory import survey
from kgqa_core.store.publish import publish_folder
from tasks.engine import server_lost
from tests.support.command import ROOT, kgqa
from tests.support.finished import finished_run, questions
from tests.support.toy import write_graph, write_questions

Fill = Callable[[Path, Path], Mapping[str, int]]


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 6 MB."""
    folder = tmp_path / "small"
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(folder)], capture_output=True, text=True
    )
    if done.returncode != 0:
        pytest.skip(f"mount does not work here: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def little(out: Path, work: Path) -> Mapping[str, int]:
    (out / "little.json").write_text('{"n": 1}')
    return {}


def plain(out: Path, work: Path) -> Mapping[str, int]:
    (work / "checkpoint").write_text("step 7")
    (out / "big.bin").write_bytes(os.urandom(20_000_000))
    return {}


def parquet(out: Path, work: Path) -> Mapping[str, int]:
    pl.DataFrame({"n": [os.urandom(1000).hex() for _ in range(20_000)]}).write_parquet(out / "rows.parquet")
    return {}


def database(out: Path, work: Path) -> Mapping[str, int]:
    with duckdb.connect(str(out / "kg.duckdb")) as base:
        base.execute("CREATE TABLE t AS SELECT i, hash(i) AS h, hash(h)::VARCHAR AS s FROM range(2_000_000) r(i)")
    return {}


def choke(folder: Path) -> None:
    """Fill what is left of a file system."""
    with (folder / "ballast").open("wb", buffering=0) as stream:
        try:
            while stream.write(bytes(4096)):
                pass
        except OSError:
            pass


@pytest.mark.parametrize("fill", [plain, parquet, database])
def test_a_stage_that_fills_the_disk_leaves_finished_work_and_nothing_half(small: Path, fill: Fill) -> None:
    home = Home(small / "home").prepare()
    kept, _ = home.compute("facts", "a" * 64, little, {})
    with pytest.raises(StorageError, match="no space left for the home .*--home. Finished stages are kept"):
        home.compute("facts", "b" * 64, fill, {})
    assert not list((home.root / "tmp").iterdir())
    assert [path.name for path in (home.root / "artifacts" / "facts").iterdir()] == ["a" * 20]
    assert Home(home.root).prepare().compute("facts", "a" * 64, fill, {}) == (kept, False)
    made, fresh = home.compute("facts", "b" * 64, little, {})
    assert fresh and verify(made.folder) == made and not list((home.root / "work").iterdir())


def test_on_a_disk_that_is_full_to_the_last_byte_work_is_found_and_room_is_made(small: Path) -> None:
    home = Home(small / "home").prepare()
    kept, _ = home.compute("facts", "a" * 64, little, {})
    (home.root / "tmp" / "facts-dead").mkdir()
    (home.root / "tmp" / "facts-dead" / "half").write_bytes(bytes(2_000_000))
    (home.root / "locks" / "facts-dead.lock").touch()
    home.let_go()
    choke(small)
    with pytest.raises(StorageError, match="no space left"):
        Home(home.root).prepare()
    reader = Home(home.root)
    assert reader.find("facts", "a" * 64) == kept
    assert reader.compute("facts", "a" * 64, plain, {}) == (kept, False)
    with pytest.raises(StorageError, match="no space left"):
        reader.compute("facts", "b" * 64, little, {})
    assert survey(home.root)["places"]["artifacts"]["bytes"] > 0
    assert any(item.name == "facts-dead" for item in plan(home.root).items)
    told = CliRunner().invoke(app, ["gc", "--home", str(home.root), "--yes"])
    assert told.exit_code == 0, told.output
    assert not (home.root / "tmp" / "facts-dead").exists() and kept.folder.exists()
    assert Home(home.root).prepare().compute("facts", "b" * 64, little, {})[1]


def test_a_graph_beside_which_the_disk_fills_stays_as_it_was(small: Path) -> None:
    target = small / "graph"
    old = publish_folder("kg", target, little)
    with pytest.raises(StorageError, match="no space left"):
        publish_folder("kg", target, plain)
    assert verify(target) == old and [path.name for path in small.iterdir()] == ["graph"]


def test_a_read_only_home_is_said_and_can_still_be_read(small: Path) -> None:
    home = Home(small / "home").prepare()
    kept, _ = home.compute("facts", "a" * 64, little, {})
    home.let_go()
    subprocess.run(["mount", "-o", "remount,ro", str(small)], check=True)
    with pytest.raises(StorageError, match="cannot be written .*choose another with --home"):
        Home(home.root).prepare()
    reader = Home(home.root)
    assert reader.find("facts", "a" * 64) == kept
    with pytest.raises(StorageError, match="cannot be written"):
        reader.compute("facts", "b" * 64, little, {})
    shown = CliRunner().invoke(app, ["home", "--home", str(home.root)])
    assert shown.exit_code == 0 and "facts" in shown.output
    with pytest.raises(StorageError, match="cannot be written"):
        sweep(home.root)


def test_a_home_that_cannot_be_written_shows_its_runs_graph_and_paid_answers(small: Path, tmp_path: Path) -> None:
    home, graph = Home(small / "home").prepare(), tmp_path / "graph"
    dump = tmp_path / "dump.tsv"
    dump.write_text("Ann\tlives_in\tRome\nBen\tlives_in\tRome\n")
    build_folder([str(dump)], graph, {})
    asked = questions(["where?"])
    for run in ("20260101-000000-aaaa", "20260201-000000-bbbb"):
        rows = {"rigel/triples/builtin": {one.id: {"exact": 1.0} for one in asked}}
        finished_run(home, run, rows, asked, {"rigel/triples/builtin": {"q0000": "Rome"}})
    cache = ResponseCache(home.cache / RESPONSES)
    cache.put(
        Request(Identity("openai", "http://x", "m", ""), GenerationParams(), "where?"), Completion("Rome", "stop")
    )
    cache.flush()
    home.let_go()
    del cache
    end = time.monotonic() + 20
    while gc.collect() >= 0 and list(home.cache.glob("*-wal")):  # the writing thread lets go when it was idle
        assert time.monotonic() < end
        time.sleep(0.02)
    before = contents(home.root)
    subprocess.run(["mount", "-o", "remount,ro", str(small)], check=True)
    given = ["--home", str(home.root)]
    for words, wanted in (
        (["report", *given], "20260201"), (["home", *given], "20260101-000000-aaaa"),
        (["gc", *given], "nothing to remove"),
        (["compare", "20260101", "newest", *given], "no difference"), (["cache", "stats", *given], "openai:m"),
        (["kg", "stats", "--kg", str(graph), ], "lives_in"), (["kg", "search", "Ann", "--kg", str(graph)], "Ann"),
        (["link", "Where does Ann live?", "--kg", str(graph), *given], "linked: Ann"),
    ):  # fmt: skip
        shown = CliRunner().invoke(app, words, env={"COLUMNS": "200"})
        assert shown.exit_code == 0 and wanted in shown.output, (words, shown.output, shown.exception)
    refused = CliRunner().invoke(app, ["cache", "clear", "--yes", *given])
    assert isinstance(refused.exception, StorageError) and contents(home.root) == before


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_run_on_a_disk_without_room_is_refused_at_once(small: Path) -> None:
    began = time.monotonic()
    told = kgqa("demo", "--home", small / "home", served=False, timeout=100)
    assert told.code == 1 and time.monotonic() - began < 30
    assert len(told.err.strip().splitlines()) == 1 and f"no space left for the home {small / 'home'} (" in told.err
    assert "of 6.3 MB free): a run needs 50 MB to begin; free some" in told.err and MIN_FREE_MB in told.err
    assert not list((small / "home" / "prefect").iterdir()) and not list((small / "home" / "runs").iterdir())


def test_the_room_that_a_run_needs_can_be_set(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MIN_FREE_MB, "5")
    check_room(small / "home")
    choke(small)
    with pytest.raises(StorageError, match=r"\(0.0 of 6.3 MB free\): a run needs 5 MB"):
        check_room(small / "home")
    monkeypatch.setenv(MIN_FREE_MB, "few")
    with pytest.raises(ConfigError, match="KGQA_MIN_FREE_MB is 'few'"):
        check_room(small)


def test_a_disk_that_fills_is_reported_at_once_and_again(small: Path) -> None:
    said: list[str] = []
    watch_room(small, said.append, every=0.01)
    for number in (1, 2):
        choke(small)
        wait_until(lambda number=number: len(said) == number)
        (small / "ballast").unlink()
        time.sleep(1.0)  # so that the watch sees that there is room again, on a busy machine too
    assert len(said) == 2
    assert all(text.startswith(f"no space left for the home {small} (0.") for text in said)  # 0.1 while it fills
    assert all(" of 6.3 MB free); free some" in text for text in said)


def wait_until(done: Callable[[], bool], seconds: float = 20) -> None:
    until = time.monotonic() + seconds
    while not done() and time.monotonic() < until:
        time.sleep(0.01)
    assert done()


def test_prefects_client_stops_trying_where_the_disk_of_its_own_server_is_full(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KGQA_HOME", str(small / "home"))
    monkeypatch.setattr(logging, "raiseExceptions", logging.raiseExceptions)
    record = logging.makeLogRecord({"msg": "Received response with retryable status code 503. Another attempt will be "
                                    "made in 2s. This is attempt 1/5."})  # fmt: skip
    with temporary_settings({PREFECT_API_URL: ""}):
        server_lost.ServerLossHandler().emit(record)
        choke(small)
        with pytest.raises(StorageError, match="no space left for the home"):
            server_lost.ServerLossHandler().emit(record)


def test_a_full_disk_is_recognised_anywhere_in_a_chain_of_faults(tmp_path: Path) -> None:
    texts = ("(sqlite3.OperationalError) database or disk is full", "IO Error: No space left on device", "quota")
    chain = [RuntimeError(text) for text in texts[:2]]
    chain += [
        OSError(errno.ENOSPC, "x"),
        OSError(errno.EDQUOT, "x"),
        ExceptionGroup("g", [OSError(errno.ENOSPC, "x")]),
    ]
    for fault in chain:
        try:
            try:
                raise fault
            except Exception as cause:
                raise ValueError("while writing") from cause
        except ValueError as outer:
            assert is_full(outer) and is_full(fault)
            with pytest.raises(StorageError, match="no space left for the home"), storage_faults(tmp_path):
                raise outer
    assert not is_full(RuntimeError(texts[2])) and not is_full(None)


def test_the_folder_that_is_full_is_named_and_not_the_home(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KGQA_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("sys.argv", ["kgqa", "cache", "export", "--out", str(small / "out.jsonl")])
    fault = OSError(errno.ENOSPC, "No space left on device")
    assert str(faults._full(fault)).startswith("no space left where this command writes ([Errno 28]")
    choke(small)
    assert str(faults._full(fault)).startswith(f"no space left in {small} (0.0 of 6.3 MB free); free some")
    assert faults._full(ValueError("x")) is None


def test_compiled_code_goes_to_a_temporary_folder_where_no_other_can_be_written(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")  # so that it is as before when the test ends
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    Home(own_home).prepare()
    session.HomeSession(own_home).look()
    assert "NUMBA_CACHE_DIR" not in os.environ
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    session.HomeSession(own_home).look()
    folder = Path(os.environ["NUMBA_CACHE_DIR"])
    assert folder.is_dir() and folder.stat().st_mode & 0o077 == 0
    folder.rmdir()


@pytest.mark.slow
def test_a_run_whose_disk_fills_ends_within_a_minute_and_without_a_traceback(small: Path, tmp_path: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=24m", str(small)], check=True)
    write_questions(tmp_path / "questions.jsonl", write_graph(tmp_path / "graph.tsv", 1500), 60)
    words = [
        "run", "--kg", tmp_path / "graph.tsv", "--questions", tmp_path / "questions.jsonl", "--home", small / "home",
        "--answerer", "builtin",
        "--set", "retrieval.retrievers=[hop_path]", "--set", "answering.knowledge=[hop_path/triples]",
        "--set", "hop_path.encoder=scratch", "--set", "hop_path.epochs=500", "--set", "hop_path.patience=500",
    ]  # fmt: skip
    log = tmp_path / "log"
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PREFECT_", "MLFLOW_"))}
    with log.open("wb") as stream:
        running = subprocess.Popen(
            [sys.executable, "-m", "flows.cli", *map(str, words)], stdout=stream, stderr=stream, cwd=ROOT,
            env={**kept, "PYTHONPATH": str(ROOT), "COLUMNS": "300", MIN_FREE_MB: "5"},
        )  # fmt: skip
    wait_until(lambda: b"questions questions: computed" in log.read_bytes() or running.poll() is not None, 200)
    choke(small)
    began = time.monotonic()
    wait_until(lambda: b"no space left for the home" in log.read_bytes(), 20)
    assert running.wait(100) == 1 and time.monotonic() - began < 60
    text = log.read_text()
    assert "Traceback" not in text and len(text.splitlines()) < 40, text[-4000:]
    assert f"error: no space left for the home {small / 'home'} (0.0 of 25.2 MB free)" in text


class Notes:
    """A monitor that keeps what is said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def progress(self, done: float, total: float | None, what: str) -> None: ...

    def metric(self, name: str, value: float, step: int | None = None) -> None: ...

    def note(self, message: str) -> None:
        self.said.append(message)


@pytest.mark.parametrize("name", ["little.json", "manifest.json"])
def test_a_flipped_bit_is_found_said_and_mended(tmp_path: Path, name: str) -> None:
    home = Home(tmp_path / "home").prepare()
    ref, _ = home.compute("facts", "a" * 64, little, {})
    file = ref.folder / name
    content = bytearray(file.read_bytes())
    content[0] ^= 1
    file.write_bytes(bytes(content))
    notes = Notes()
    assert home.compute("facts", "a" * 64, little, {}, notes) == (ref, True)
    assert notes.said == [f"the facts artifact {'a' * 20} is damaged; it is built again"]
    assert not list((home.root / "tmp").iterdir())


@pytest.mark.parametrize("kept", [0.0, 0.1, 0.5, 0.99])
def test_a_half_written_checkpoint_is_ignored_and_said(
    tmp_path: Path, kept: float, caplog: pytest.LogCaptureFixture
) -> None:
    torch.manual_seed(0)
    network = torch.nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(network.parameters())
    path = tmp_path / "checkpoint.safetensors"
    store(path, TrainingState("key"), network, optimizer, {})
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * kept)])
    before = {name: value.clone() for name, value in network.state_dict().items()}
    with caplog.at_level(logging.WARNING, "kgqa"):
        assert restore(path, "key", network, optimizer) is None
    assert "is damaged and not used" in caplog.text and "begins anew" in caplog.text
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())
