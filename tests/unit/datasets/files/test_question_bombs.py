"""Question and prediction files that unpack to far more than they are are read within bounds."""

from __future__ import annotations

import bz2
import gzip
import json
import tracemalloc
from collections.abc import Iterable
from pathlib import Path

import pytest
import zstandard

from kgqa_core.datasets.files import jsonl
from kgqa_core.datasets.files.jsonl import max_bytes, read_predictions, read_question_file
from kgqa_core.errors import QuestionFileError

MB = 1 << 20


def packed(path: Path, parts: Iterable[bytes]) -> Path:
    with gzip.open(path, "wb", compresslevel=1) as stream:
        for part in parts:
            stream.write(part)
    return path


def row(number: int | str, **more: object) -> bytes:
    value = {"id": number, "question": "What?", "topic_entities": ["a"], "answers": ["b"], **more}
    return json.dumps(value).encode() + b"\n"


def refused_within(path: Path, most: int) -> str:
    """The error of a file, for which Python may use so many bytes."""
    tracemalloc.start()
    try:
        with pytest.raises(QuestionFileError) as caught:
            read_question_file(path)
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()
    return str(caught.value)


def test_an_endless_line_is_refused_when_it_is_longer_than_a_line_may_be(tmp_path: Path) -> None:
    path = packed(tmp_path / "q.jsonl.gz", [row("q1"), *[b"x" * MB] * 200])
    assert "q.jsonl.gz line 2 has more than 16,777,216 bytes" in refused_within(path, 100 * MB)
    plain = tmp_path / "q.jsonl"
    plain.write_bytes(row("q1") + b"y" * (17 * MB) + b"\n" + row("q2"))
    assert "q.jsonl line 2 has more than" in refused_within(plain, 100 * MB)


def test_a_file_that_expands_beyond_measure_is_refused_and_can_be_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl, "SMALL", MB)
    path = packed(tmp_path / "q.jsonl.gz", (row(number, note=" " * MB) for number in range(150)))
    assert path.stat().st_size < MB
    message = refused_within(path, 60 * MB)
    assert f"expands to more than {max_bytes(path.stat().st_size):,}" in message and "unpack it" in message
    plain = tmp_path / "q.jsonl"
    plain.write_bytes(gzip.decompress(path.read_bytes()))
    assert len(read_question_file(plain)) == 150


def test_faults_without_end_are_not_collected(tmp_path: Path) -> None:
    path = packed(tmp_path / "q.jsonl.gz", [row("q1") * 1000] * 40)
    assert "has at least 10,000 faults:\n  line 2: id 'q1' is already used on line 1" in refused_within(path, 60 * MB)


def test_predictions_are_bounded_too(tmp_path: Path) -> None:
    path = packed(tmp_path / "p.jsonl.gz", [b"x" * MB] * 20)
    with pytest.raises(QuestionFileError, match=r"p\.jsonl\.gz line 1 has more than"):
        read_predictions(path)


@pytest.mark.parametrize("name", ["q.jsonl.bz2", "q.jsonl.zst", "q.jsonl.gz", "q.jsonl", "q"])
def test_packed_questions_are_read_by_what_they_are(tmp_path: Path, name: str) -> None:
    data = b"".join(row(number) for number in range(3000))
    pack = {".bz2": bz2.compress, ".zst": zstandard.compress, ".gz": gzip.compress, "": gzip.compress}
    (tmp_path / name).write_bytes(pack.get(Path(name).suffix, bytes)(data))
    assert [one["id"] for one in read_question_file(tmp_path / name)] == [str(number) for number in range(3000)]


@pytest.mark.parametrize(
    ("data", "words"),
    [(b"", "is empty;"), (b"\n \r\n", "is empty: it holds only white space;"), (bytes(500), "holds only zero bytes;")],
)
def test_a_file_without_questions_is_named_as_what_it_is(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "q.jsonl"
    path.write_bytes(data)
    for read in (read_question_file, read_predictions):
        with pytest.raises(QuestionFileError, match=rf"q\.jsonl {words}"):
            read(path)


def test_a_file_that_grows_while_it_is_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_bytes(row("q1") * 2)
    lines = jsonl.read_lines(path)
    next(lines)
    with path.open("ab") as stream:
        stream.write(row("q3"))
    with pytest.raises(QuestionFileError, match=r"q\.jsonl grew from"):
        list(lines)
