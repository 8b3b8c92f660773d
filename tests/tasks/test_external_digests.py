"""Files outside the artifacts are read again when they changed, and only then."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from kgqa_core.store.artifacts import hash_path
from tasks.engine import external_digests as outside
from tasks.engine.external_digests import UNREADABLE, file_digest

LONG_AGO = 1_000_000_000_000_000_000
HOUR = 3_600_000_000_000


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """What is read, in order."""
    found: list[Path] = []

    def hashed(path: Path) -> str:
        found.append(path)
        return hash_path(path)

    monkeypatch.setattr(outside, "hash_path", hashed)
    return found


def write(path: Path, text: str, changed: int = LONG_AGO) -> None:
    path.write_text(text)
    os.utime(path, ns=(changed, changed))


def test_a_folder_that_has_not_changed_is_read_once(tmp_path: Path, read: list[Path]) -> None:
    (tmp_path / "model").mkdir()
    write(tmp_path / "model" / "weights", "one")
    write(tmp_path / "config.json", "{}")
    for path in (tmp_path / "model", tmp_path / "config.json"):
        assert [file_digest(path) for _ in range(3)] == [hash_path(path)] * 3
    assert read == [tmp_path / "model", tmp_path / "config.json"]


def test_a_changed_file_gets_a_new_digest(tmp_path: Path) -> None:
    file = tmp_path / "weights"
    digests = []
    for text, changed in (("one", LONG_AGO), ("two", LONG_AGO + 1), ("four", LONG_AGO + 1)):
        write(file, text, changed)
        digests += [file_digest(file), file_digest(tmp_path)]
    write(tmp_path / "another", "five")
    os.replace(tmp_path / "another", file)
    digests.append(file_digest(file))
    write(tmp_path / "new", "")
    digests.append(file_digest(tmp_path))
    assert len(set(digests)) == 8
    file.unlink()
    assert file_digest(file) == UNREADABLE


def test_a_file_that_changed_just_now_is_read_again(tmp_path: Path) -> None:
    file, soon = tmp_path / "weights", time.time_ns() + HOUR
    write(file, "one", soon)
    before = file_digest(file)
    write(file, "two", soon)
    assert file_digest(file) != before
