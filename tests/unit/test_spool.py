"""A pipe is read as if it were a file, any number of times; what has no end is refused."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kgqa_core import spool
from kgqa_core.errors import InputError, KgInputError, StorageError
from kgqa_core.spool import is_spooled, regular_file, spool_in, spooling
from tests.support.command import written_pipes

BIG = b"0123456789abcdef" * 40_000
"""More than a pipe holds."""


@pytest.fixture
def pipe() -> Iterator[Callable[[bytes], Path]]:
    """Makes a pipe that something is written to, and names it."""
    with written_pipes() as make:
        yield make


def test_a_pipe_is_read_as_often_as_wanted(pipe: Callable[[bytes], Path], tmp_path: Path) -> None:
    path = pipe(BIG)
    assert is_spooled(path)
    with spooling(tmp_path):
        assert [regular_file(path).read_bytes() for _ in range(3)] == [BIG] * 3
        assert regular_file(path).stat().st_size == len(BIG)


def test_two_names_of_one_pipe_are_one_copy(pipe: Callable[[bytes], Path]) -> None:
    path = pipe(BIG)
    with spooling():
        assert regular_file(path) == regular_file(Path(f"/proc/self/fd/{path.name}"))


def test_nothing_of_a_copy_is_left_in_the_folder_nor_open(pipe: Callable[[bytes], Path], tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), spooling():
        spool_in(tmp_path)
        copy = regular_file(pipe(BIG))
        assert copy.is_file() and list(tmp_path.iterdir()) == []
        assert Path(os.readlink(copy)).is_relative_to(tmp_path)
        raise RuntimeError
    assert not copy.exists() or not Path(os.readlink(copy)).is_relative_to(tmp_path)


def test_a_named_pipe_waits_for_its_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "dump.nt"
    os.mkfifo(path)

    def write() -> None:
        time.sleep(0.6)
        path.write_bytes(BIG)

    threading.Thread(target=write, daemon=True).start()
    with spooling():
        assert regular_file(path).read_bytes() == BIG
    monkeypatch.setattr(spool, "PATIENCE", 0.3)
    with spooling(), pytest.raises(KgInputError, match=r"nothing is written to the pipe .*dump.nt"):
        regular_file(path, KgInputError)


def test_a_writer_that_is_slow_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "PATIENCE", 0.2)
    path = tmp_path / "dump.nt"
    os.mkfifo(path)

    def write() -> None:
        with path.open("wb", buffering=0) as stream:
            for part in (b"", b"one", b"two"):
                stream.write(part)
                time.sleep(0.6)

    threading.Thread(target=write, daemon=True).start()
    with spooling():
        assert regular_file(path).read_bytes() == b"onetwo"


@pytest.mark.parametrize("name", ["/dev/zero", "/dev/null", "/dev/random"])
def test_a_device_is_refused(name: str) -> None:
    with spooling(), pytest.raises(InputError, match=f"{name} is a device"):
        regular_file(Path(name))


def test_a_pipe_outside_of_a_command_is_refused(pipe: Callable[[bytes], Path]) -> None:
    with pytest.raises(InputError, match=r"is a pipe, which can be read once only; write it to a file"):
        regular_file(pipe(b"x"))


def test_a_socket_is_read_by_its_descriptor_and_refused_by_its_name(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    with ours, spooling():
        with theirs:
            theirs.sendall(b"<a> <b> <c> .\n")
        assert regular_file(Path(f"/dev/fd/{ours.fileno()}")).read_bytes() == b"<a> <b> <c> .\n"
    with socket.socket(socket.AF_UNIX) as server, spooling():
        server.bind(str(tmp_path / "s"))
        with pytest.raises(InputError, match="is a socket"):
            regular_file(tmp_path / "s")


def test_a_pipe_that_only_takes_is_refused() -> None:
    reading, writing = os.pipe()
    try:
        with spooling(), pytest.raises(InputError, match="open for writing only"):
            regular_file(Path(f"/dev/fd/{writing}"))
    finally:
        os.close(reading)
        os.close(writing)


def test_an_endless_pipe_ends_where_the_disk_does(
    pipe: Callable[[bytes], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool, "RESERVE", 1 << 60)
    monkeypatch.setattr(spool, "_CHUNK", 1 << 12)
    with spooling(), pytest.raises(StorageError, match=r"without an end, and the disk of .* has less than"):
        regular_file(pipe(BIG))


def test_a_pipe_may_have_a_limit(pipe: Callable[[bytes], Path]) -> None:
    with spooling(), pytest.raises(InputError, match="holds more than 1,000 bytes"):
        regular_file(pipe(BIG), most=1000)


def test_files_and_folders_are_themselves(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path in (tmp_path, tmp_path / "file", tmp_path / "missing"):
        assert regular_file(path) == path
