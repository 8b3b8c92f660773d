"""A file that changes while it is read is refused, and so is one of zero bytes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kgqa_core.errors import InputError, KgInputError
from kgqa_core.input_files import read_document, unchanged
from tests.support.file_changes import cut, grow, overwrite, swap

TEXT = "line\n" * 1000


def remove(path: Path) -> None:
    path.unlink()


CHANGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "growing": (grow, r"grew from 5,000 to 5,017 bytes"),
    "truncated": (cut, r"shrank from 5,000 to 2,500 bytes"),
    "swapped": (swap, "was replaced by another file"),
    "overwritten": (overwrite, "was changed at"),
    "removed": (remove, "is gone"),
}


@pytest.mark.parametrize("how", CHANGES)
def test_a_file_that_changes_is_named_with_what_changed(tmp_path: Path, how: str) -> None:
    path = tmp_path / "graph.nt"
    path.write_text(TEXT)
    change, words = CHANGES[how]
    with pytest.raises(KgInputError, match=rf"graph\.nt {words}.* while it was read"), unchanged([path], KgInputError):
        change(path)


def test_a_change_explains_the_error_that_it_caused(tmp_path: Path) -> None:
    path = tmp_path / "graph.nt"
    path.write_text(TEXT)
    with pytest.raises(InputError, match="shrank"), unchanged([path]):
        cut(path)
        raise InputError("the file is damaged")
    with pytest.raises(InputError, match="damaged"), unchanged([path]):
        raise InputError("the file is damaged")


def test_what_is_only_read_stays(tmp_path: Path) -> None:
    path = tmp_path / "graph.nt"
    path.write_text(TEXT)
    before = path.stat()
    with unchanged([path, tmp_path / "missing"]):
        text = path.read_text()
        path.open().close()
    after = path.stat()
    assert text == TEXT and (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty; it needs text"),
        (b" \n\t\n", "is empty: it holds only white space; it needs text"),
        (bytes(300), "holds only zero bytes"),
        (b"\xff\xfea\0", r"is not UTF-8 \(byte 1\)"),
        (b"x" * 101, "has more than 100 bytes"),
    ],
)
def test_a_document_without_text_is_named_as_what_it_is(tmp_path: Path, data: bytes, words: str) -> None:
    (tmp_path / "map.json").write_bytes(data)
    with pytest.raises(InputError, match=rf"map\.json {words}"):
        read_document(tmp_path / "map.json", most=max(100, len(data) - 1) if len(data) == 101 else 1000)
