"""Artifacts are whole or absent, digested by content, and rebuilt when damaged."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import time
from pathlib import Path

import duckdb
import polars as pl
import pytest

from kgqa_core.artifacts import Home, content_digest, publish_folder, read_manifest, verify
from kgqa_core.errors import ArtifactError, StorageError


def write_numbers(out: Path, work: Path) -> dict[str, int]:
    pl.DataFrame({"n": [1, 2, 3]}).write_parquet(out / "rows.parquet")
    return {"rows": 3}


def test_second_call_finds_what_the_first_published(tmp_path: Path) -> None:
    home = Home(tmp_path).prepare()
    first, made = home.compute("rows", "a" * 64, write_numbers, {})
    second, again = home.compute("rows", "a" * 64, write_numbers, {})
    assert made and not again
    assert first == second
    assert read_manifest(first.folder)["counts"] == {"rows": 3}


def test_damaged_artifact_is_noticed_and_rebuilt(tmp_path: Path) -> None:
    home = Home(tmp_path).prepare()
    ref, _ = home.compute("rows", "a" * 64, write_numbers, {})
    file = ref.folder / "rows.parquet"
    damaged = bytearray(file.read_bytes())
    damaged[len(damaged) // 2] ^= 0xFF
    file.write_bytes(bytes(damaged))
    assert home.find("rows", "a" * 64) is None
    with pytest.raises(ArtifactError, match=r"rows\.parquet is missing or damaged"):
        verify(ref.folder)
    rebuilt, made = home.compute("rows", "a" * 64, write_numbers, {})
    assert made and rebuilt.digest == ref.digest
    assert home.find("rows", "a" * 64) == rebuilt


def test_missing_file_or_manifest_counts_as_missing_artifact(tmp_path: Path) -> None:
    home = Home(tmp_path).prepare()
    ref, _ = home.compute("rows", "a" * 64, write_numbers, {})
    (ref.folder / "rows.parquet").unlink()
    assert home.find("rows", "a" * 64) is None
    ref, _ = home.compute("rows", "a" * 64, write_numbers, {})
    (ref.folder / "manifest.json").write_text("{")
    assert home.find("rows", "a" * 64) is None


def test_failed_fill_publishes_nothing_and_keeps_its_work(tmp_path: Path) -> None:
    home = Home(tmp_path).prepare()

    def fail(out: Path, work: Path) -> dict[str, int]:
        (out / "half").write_text("half")
        (work / "checkpoint").write_text("7")
        raise ValueError("boom")

    with pytest.raises(ValueError, match="boom"):
        home.compute("rows", "b" * 64, fail, {})
    assert home.find("rows", "b" * 64) is None
    assert not list((tmp_path / "tmp").iterdir())

    def resume(out: Path, work: Path) -> dict[str, int]:
        return {"from": int((work / "checkpoint").read_text())}

    ref, _ = home.compute("rows", "b" * 64, resume, {})
    assert read_manifest(ref.folder)["counts"] == {"from": 7}
    assert not list((tmp_path / "work").iterdir())


def test_digest_ignores_containers_and_volatile_files(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder, compression in ((one, "zstd"), (two, "uncompressed")):
        (folder / "volatile").mkdir(parents=True)
        pl.DataFrame({"n": [1.5, None], "t": [["a"], []]}).write_parquet(
            folder / "rows.parquet", compression=compression
        )
        (folder / "volatile" / "seconds").write_text(folder.name)
    (one / "meta.json").write_text('{"a": 1, "b": 2}')
    (two / "meta.json").write_text('{"b":2,\n"a":1}')
    assert content_digest(one) == content_digest(two)
    pl.DataFrame({"n": [1.5, 0.0], "t": [["a"], []]}).write_parquet(two / "rows.parquet")
    assert content_digest(one) != content_digest(two)


def test_digest_of_a_database_does_not_depend_on_row_order(tmp_path: Path) -> None:
    digests = []
    for name, values in (("one", "(1, 'a'), (2, 'b')"), ("two", "(2, 'b'), (1, 'a')"), ("three", "(1, 'a'), (2, 'c')")):
        folder = tmp_path / name
        folder.mkdir()
        with duckdb.connect(str(folder / "kg.duckdb")) as base:
            base.execute("CREATE TABLE t(n INTEGER, s VARCHAR)")
            base.execute(f"INSERT INTO t VALUES {values}")
        digests.append(content_digest(folder))
    assert digests[0] == digests[1] != digests[2]


def _slow(root: str, started: str, log: str) -> None:
    def fill(out: Path, work: Path) -> dict[str, int]:
        with Path(log).open("a") as stream:
            stream.write(f"{os.getpid()}\n")
        Path(started).touch()
        time.sleep(1.0)
        (out / "x").write_text("x")
        return {}

    Home(Path(root)).compute("slow", "c" * 64, fill, {})


def test_two_processes_compute_a_stage_once(tmp_path: Path) -> None:
    Home(tmp_path).prepare()
    spawn = multiprocessing.get_context("spawn")
    arguments = (str(tmp_path), str(tmp_path / "started"), str(tmp_path / "log"))
    both = [spawn.Process(target=_slow, args=arguments) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join(60)
        assert process.exitcode == 0
    assert len((tmp_path / "log").read_text().split()) == 1


def test_killed_holder_blocks_nobody(tmp_path: Path) -> None:
    Home(tmp_path).prepare()
    spawn = multiprocessing.get_context("spawn")
    arguments = (str(tmp_path), str(tmp_path / "started"), str(tmp_path / "log"))
    victim = spawn.Process(target=_slow, args=arguments)
    victim.start()
    deadline = time.monotonic() + 60
    while not (tmp_path / "started").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(victim.pid or 0, signal.SIGKILL)
    victim.join(10)
    _slow(*arguments)
    assert Home(tmp_path).find("slow", "c" * 64) is not None
    assert not list((tmp_path / "tmp").iterdir())


def test_home_that_is_a_file_is_refused_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(StorageError, match="is not a folder; choose another with --home"):
        Home(tmp_path / "home").prepare()


def test_publish_folder_replaces_only_artifacts_of_its_kind(tmp_path: Path) -> None:
    target = tmp_path / "graph"
    publish_folder("rows", target, write_numbers)
    publish_folder("rows", target, write_numbers)
    assert verify(target).kind == "rows"
    other = tmp_path / "mine"
    other.mkdir()
    (other / "thesis.txt").write_text("years of work")
    with pytest.raises(StorageError, match="is not a rows folder"):
        publish_folder("rows", other, write_numbers)
    assert json.dumps((other / "thesis.txt").read_text()) == '"years of work"'
    assert sorted(path.name for path in tmp_path.iterdir()) == ["graph", "mine"]
