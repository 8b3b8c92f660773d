"""Artifacts are whole or absent, digested by content, and rebuilt when damaged."""

from __future__ import annotations

import errno
import fcntl
import json
import multiprocessing
import os
import signal
import time
from pathlib import Path

import duckdb
import polars as pl
import pytest

from kgqa_core.errors import ArtifactError, OutputError, StorageError
from kgqa_core.store import publish
from kgqa_core.store.artifacts import Home, content_digest, read_manifest, verify
from kgqa_core.store.publish import publish_folder


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


def _digest_of(folder: Path, *statements: str) -> str:
    folder.mkdir()
    with duckdb.connect(str(folder / "kg.duckdb")) as base:
        for statement in statements:
            base.execute(statement)
    return content_digest(folder)


def test_a_sorted_and_a_shuffled_large_table_have_one_digest(tmp_path: Path) -> None:
    columns = "i::INTEGER AS id, CASE WHEN i % 7 = 0 THEN NULL ELSE 'text ' || i END AS t, i / 3 AS x, "
    columns += "CASE WHEN i % 2 = 0 THEN make_timestamp(i * 1000) END AS w, [i] AS l, i % 3 = 0 AS b"
    rows = f"SELECT {columns} FROM range(250000) r(i)"
    digests = [
        _digest_of(tmp_path / "sorted", f"CREATE TABLE t AS {rows} ORDER BY i"),
        _digest_of(tmp_path / "shuffled", f"CREATE TABLE t AS {rows} ORDER BY hash(i)"),
        _digest_of(
            tmp_path / "pieces",
            f"CREATE TABLE t AS {rows} WHERE i < 100 ORDER BY i",
            f"INSERT INTO t {rows} WHERE i >= 100 ORDER BY i",
        ),
        _digest_of(tmp_path / "other", f"CREATE TABLE t AS {rows} ORDER BY i", "UPDATE t SET x = 0 WHERE id = 249999"),
    ]
    assert digests[0] == digests[1] == digests[2] != digests[3]


def test_null_empty_and_moved_text_are_told_apart_in_a_digest(tmp_path: Path) -> None:
    values = (
        "(1, NULL), (2, 'ab')",
        "(1, ''), (2, 'ab')",
        "(1, 'a'), (2, 'b')",
        "(1, 'ab'), (2, '')",
        "(1, 'ab'), (2, NULL)",
    )
    digests = {
        _digest_of(tmp_path / str(n), "CREATE TABLE t(n INTEGER, s VARCHAR)", f"INSERT INTO t VALUES {some}")
        for n, some in enumerate(values)
    }
    assert len(digests) == len(values)


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
    deadline = time.monotonic() + 600
    while not (tmp_path / "started").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(victim.pid or 0, signal.SIGKILL)
    victim.join(120)
    _slow(*arguments)
    assert Home(tmp_path).find("slow", "c" * 64) is not None
    assert not list((tmp_path / "tmp").iterdir())


def test_home_that_is_a_file_is_refused_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(StorageError, match="is not a folder; choose another with --home"):
        Home(tmp_path / "home").prepare()


@pytest.mark.parametrize("number", [errno.EACCES, errno.ENOSPC, errno.ENOTDIR])
def test_a_fault_of_another_place_names_that_place_and_not_the_home(tmp_path: Path, number: int) -> None:
    home = Home(tmp_path / "home").prepare()

    def fails_at(path: object) -> None:
        def fill(out: Path, work: Path) -> dict[str, int]:
            raise OSError(number, os.strerror(number), path)

        home.compute("rows", "b" * 64, fill, {})

    for elsewhere in ("/data/passages.jsonl", b"/data/passages.jsonl", tmp_path / "homes"):
        with pytest.raises(StorageError, match=r"(passages\.jsonl|homes) (cannot|\(No space)") as caught:
            fails_at(elsewhere)
        assert str(home.root) not in str(caught.value).replace(f"{home.root}s", "")
    for ours in (None, 7, home.root / "tmp" / "x", str(tmp_path)):
        with pytest.raises(StorageError, match=f"the home {home.root}"):
            fails_at(ours)


def test_publish_folder_replaces_only_artifacts_of_its_kind(tmp_path: Path) -> None:
    target = tmp_path / "graph"
    publish_folder("rows", target, write_numbers)
    publish_folder("rows", target, write_numbers)
    assert verify(target).kind == "rows"
    other = tmp_path / "mine"
    other.mkdir()
    (other / "thesis.txt").write_text("years of work")
    with pytest.raises(OutputError, match="is not a rows folder"):
        publish_folder("rows", other, write_numbers)
    assert json.dumps((other / "thesis.txt").read_text()) == '"years of work"'
    assert sorted(path.name for path in tmp_path.iterdir()) == ["graph", "mine"]


@pytest.mark.parametrize("in_one_step", [True, False])
def test_publish_folder_has_whole_folders_at_every_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_one_step: bool
) -> None:
    target = tmp_path / "graph"
    publish_folder("rows", target, write_numbers)
    exchange = publish.exchange
    seen: list[bool] = []

    def watched(first: Path, second: Path) -> bool:
        seen.append(verify(first).digest != verify(second).digest)
        return in_one_step and exchange(first, second)

    def write_letters(out: Path, work: Path) -> dict[str, int]:
        pl.DataFrame({"letter": ["a"]}).write_parquet(out / "rows.parquet")
        return {"rows": 1}

    monkeypatch.setattr(publish, "exchange", watched)
    new = publish_folder("rows", target, write_letters)
    assert seen == [True], "the old folder was in its place until the new one was complete"
    assert verify(target) == new and [path.name for path in tmp_path.iterdir()] == ["graph"]


def test_publish_folder_clears_what_was_killed_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "graph"
    for name in ("killed", "running", "foreign"):
        (tmp_path / f".graph.{name}" / "out").mkdir(parents=True)
    (tmp_path / ".graph.killed" / "lock").touch()
    with (tmp_path / ".graph.running" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        publish_folder("rows", target, write_numbers)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".graph.foreign", ".graph.running", "graph"]


def test_a_folder_that_was_moved_aside_when_its_process_was_killed_comes_back(tmp_path: Path) -> None:
    target = tmp_path / "graph"
    old = publish_folder("rows", target, write_numbers)
    aside = tmp_path / ".graph.killed"
    aside.mkdir()
    (aside / "lock").touch()
    target.rename(aside / "old")

    def fail(out: Path, work: Path) -> dict[str, int]:
        raise StorageError("full")

    with pytest.raises(StorageError, match="full"):
        publish_folder("rows", target, fail)
    assert verify(target).digest == old.digest
