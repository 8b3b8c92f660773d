"""Files as numbered lines: compression, encodings, over-long lines, and the thread that reads ahead."""

from __future__ import annotations

import bz2
import functools
import gc
import gzip
import logging
import lzma
import random
import re
import threading
import time

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from kgqa_core.errors import KgInputError
from kgqa_core.kg.formats import decompress
from kgqa_core.kg.formats import source as source_module
from kgqa_core.kg.formats.ahead import read_ahead
from kgqa_core.kg.formats.source import Source
from tests.support.examples import examples

LINES = 50_000
TEXT = "".join(f"entity{i * 7919 % 10007}\tr\te{i} é漢\n" for i in range(LINES)).encode()

PACK = {
    kind: functools.cache(pack)  # to pack the text takes longer than to read it
    for kind, pack in {"gz": gzip.compress, "bz2": bz2.compress, "zst": zstandard.compress, "xz": lzma.compress}.items()
}


def zstd_unsized(data: bytes) -> bytes:
    """A frame whose header does not say how long its content is, as `zstd` makes it from a pipe."""
    packer = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    return packer.compress(data) + packer.flush()


def source(tmp_path, data: bytes, name: str = "g.txt") -> Source:
    path = tmp_path / name
    path.write_bytes(data)
    return Source(path, name)


def whole(one: Source, size: int = 1 << 16) -> bytes:
    return b"".join(chunk.data for chunk in one.chunks(size))


def rows(one: Source, size: int = 1 << 16) -> list[tuple[int, str]]:
    return [row for block in one.blocks(size) for row in block.lines.rows()]


def rejects(one: Source, size: int = 1 << 16) -> list[tuple[int, str, str]]:
    return [row for block in one.blocks(size) for row in block.rejects.rows()]


@pytest.fixture(params=["several cores", "one core"])
def cores(request, monkeypatch):
    if request.param == "several cores":
        monkeypatch.setattr(decompress, "_PARALLEL_BZIP2", 0)
        monkeypatch.setattr(decompress, "own_cores", lambda: frozenset(range(2)))
    else:
        monkeypatch.setattr(decompress, "own_cores", lambda: frozenset(range(1)))


@pytest.mark.parametrize("kind", PACK)
@pytest.mark.parametrize("name", ["g.nt", "g.nt.gz", "g.nt.bz2"])
def test_what_a_file_is_packed_with_is_told_from_its_bytes_not_its_name(tmp_path, kind, name, cores):
    one = source(tmp_path, PACK[kind](TEXT), name)
    assert whole(one) == TEXT
    assert one.head(2) == TEXT.decode().split("\n")[:2]


@pytest.mark.parametrize("kind", PACK)
def test_members_one_after_another_are_one_file(tmp_path, kind, cores):
    pack = PACK[kind]
    cut = 77_777  # within a line
    data = pack(TEXT[:cut]) + pack(b"") + pack(TEXT[cut:]) + pack(b"\n\nlast")
    assert whole(source(tmp_path, data)) == TEXT + b"\n\nlast\n"


def test_a_blocked_gzip_of_thousands_of_members_is_read_whole(tmp_path):
    data = b"".join(gzip.compress(TEXT[i : i + 500]) for i in range(0, len(TEXT), 500))
    assert whole(source(tmp_path, data)) == TEXT


def test_zstandard_frames_of_unknown_length_skippable_frames_and_long_windows_are_read(tmp_path):
    skippable = b"\x50\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"hello"
    data = skippable + zstd_unsized(TEXT) + skippable + zstandard.compress(TEXT)
    assert whole(source(tmp_path, data)) == TEXT + TEXT
    noise = random.Random(1).randbytes(1000)
    far = noise + b"\n" * 200 + bytes(1 << 20) * 130 + noise + b"\n"
    long_window = zstandard.ZstdCompressionParameters.from_level(
        1, window_log=28, enable_ldm=True, write_content_size=False
    )
    packer = zstandard.ZstdCompressor(compression_params=long_window).compressobj()
    long = packer.compress(far) + packer.flush()
    stream = decompress.open_stream(source(tmp_path, long).path)
    assert stream.read(1 << 28) == far
    stream.close()


@pytest.mark.parametrize("kind", [*PACK, "unsized zst"])
@pytest.mark.parametrize("kept", [0.0001, 0.3, 0.98, -1])
def test_a_file_cut_off_says_after_which_line(tmp_path, kind, kept, cores):
    data = zstd_unsized(TEXT) if kind == "unsized zst" else PACK[kind](TEXT)
    kept = len(data) - 1 if kept < 0 else max(12, int(len(data) * kept))
    one = source(tmp_path, data[:kept])
    read = []
    with pytest.raises(KgInputError, match=r"g\.txt is cut off: .* after line [\d,]+;") as caught:
        read.extend(chunk.data for chunk in one.chunks(10_000))
    lines = int(re.search(r"after line ([\d,]+);", str(caught.value))[1].replace(",", ""))
    given_out = b"".join(read)
    assert TEXT.startswith(given_out)
    assert given_out.count(b"\n") <= lines <= LINES
    assert lines > 20_000 or kept < 0.9 * len(data) or kind in ("zst", "xz")


@pytest.mark.parametrize("kind", PACK)
def test_a_second_member_cut_off_is_no_silent_end(tmp_path, kind, cores):
    pack = PACK[kind]
    with pytest.raises(KgInputError, match="cut off"):
        whole(source(tmp_path, pack(TEXT) + pack(TEXT)[:-3]))


@pytest.mark.parametrize("kind", PACK)
def test_damage_in_the_middle_is_an_error(tmp_path, kind, cores):
    checked = zstandard.ZstdCompressor(write_checksum=True).compress(TEXT)
    data = bytearray(checked if kind == "zst" else PACK[kind](TEXT))
    for place in range(len(data) // 2, len(data) // 2 + 20):
        data[place] ^= 0x5A
    with pytest.raises(KgInputError, match=r"is damaged .* after line|is cut off"):
        whole(source(tmp_path, bytes(data)))


def test_bzip2_on_several_cores_finds_the_same_data_and_faults_as_on_one(tmp_path, monkeypatch):
    monkeypatch.setattr(decompress, "own_cores", lambda: frozenset(range(2)))
    draw = random.Random(4)
    whole_file = bz2.compress(TEXT[:400_000], 1) + bz2.compress(TEXT[:1000])

    def read(stream: decompress.Stream) -> tuple[bytes, str]:
        parts, fault = [], ""
        try:
            while data := stream.read(50_000):
                parts.append(data)
        except decompress.Damaged as found:
            parts.append(found.data)
            fault = str(found)
        stream.close()
        return b"".join(parts), fault

    faults = set()
    for change in ["flip", "cut", "zeros", "lost", "none"] * 6:
        data = bytearray(whole_file)
        at = draw.randrange(20, len(data))
        if change == "flip":
            data[at] ^= 1 << draw.randrange(8)
        elif change == "cut":
            del data[at:]
        elif change == "zeros":
            data[at : at + 50] = bytes(50)
        elif change == "lost":
            del data[at : at + 3]
        path = source(tmp_path, bytes(data)).path
        one = read(decompress._Inflated(path, decompress._BZIP2))
        assert read(decompress._Bzip2(path)) == one
        faults.add(one[1][:9])
    assert faults == {"", "is cut of", "is damage"}


def test_a_wrong_checksum_or_length_of_gzip_is_an_error(tmp_path):
    data = gzip.compress(TEXT)
    for broken in (data[:-8] + b"\0\0\0\0" + data[-4:], data[:-4] + b"\0\0\0\0"):
        with pytest.raises(KgInputError, match="is damaged"):
            whole(source(tmp_path, broken))


def test_zeros_after_gzip_are_padding_and_other_bytes_are_left_out_with_a_warning(tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        assert whole(source(tmp_path, gzip.compress(TEXT) + bytes(1000))) == TEXT
        assert whole(source(tmp_path, gzip.compress(TEXT) + bytes(7) + gzip.compress(b"x\n"))) == TEXT + b"x\n"
    assert not caplog.records
    with caplog.at_level(logging.WARNING):
        assert whole(source(tmp_path, gzip.compress(TEXT) + b"garbage")) == TEXT
    assert "the bytes after them are left out" in caplog.text


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, zstandard.compress, lzma.compress])
@pytest.mark.parametrize("size", [1_000, 3_000_000])
def test_bytes_between_two_members_lose_no_member_in_silence(tmp_path, pack, size):
    member = pack(random.Random(17).randbytes(size))
    with pytest.raises(KgInputError, match="lie between two members"):
        whole(source(tmp_path, member + b"garbage" + member))


def test_bytes_after_zstandard_are_an_error_as_for_zstd_itself(tmp_path):
    with pytest.raises(KgInputError, match="frame 1 are no frame"):
        whole(source(tmp_path, zstandard.compress(TEXT) + b"garbage"))


def test_zeros_after_xz_are_padding_and_other_bytes_an_error_as_for_xz_itself(tmp_path):
    assert whole(source(tmp_path, lzma.compress(TEXT) + bytes(8) + lzma.compress(b"x\n") + bytes(4))) == TEXT + b"x\n"
    with pytest.raises(KgInputError, match="bytes after xz frame 1 are no frame"):
        whole(source(tmp_path, lzma.compress(TEXT) + b"garbage"))


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_carriage_returns_end_lines_in_a_file_without_line_feeds(tmp_path, pack):
    data = b"a\tr\tb\rb\tr\tc\r"
    file = source(tmp_path, pack(data))
    assert file.head() == ["a\tr\tb", "b\tr\tc"]
    assert whole(file) == data.replace(b"\r", b"\n")
    assert whole(source(tmp_path, pack(data + b"x\n"))) == data + b"x\n"


def test_text_that_begins_like_a_magic_number_is_text(tmp_path):
    for text in (b"BZhang\tr\to\n", b"BZh9 x\n", b"LZIP\n", b"7z\n", b"PK\n"):
        assert whole(source(tmp_path, text)) == text


@pytest.mark.parametrize(
    ("data", "name"),
    [(b"LZIP\x01rest of it", "lzip"), (b"PK\x03\x04rest of it", "zip"), (b"7z\xbc\xaf\x27\x1crest", "7-Zip")],
)
def test_other_compressions_are_named(tmp_path, data, name):
    with pytest.raises(KgInputError, match=f"packed with {name}, which we do not read; unpack it"):
        whole(source(tmp_path, data))
    with pytest.raises(KgInputError, match=f"packed with {name}"):
        source(tmp_path, data).head()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le"])
@pytest.mark.parametrize("packed", [False, True])
def test_wide_encodings_are_named(tmp_path, encoding, packed):
    data = ("a\tr\tb\n" * 50).encode(encoding)
    one = source(tmp_path, gzip.compress(data) if packed else data)

    def by_stream() -> bytes:
        with one.stream() as stream:
            return stream.read()

    for read in (one.head, lambda: whole(one), by_stream):
        with pytest.raises(KgInputError, match=f"is {encoding[:6].upper()}; convert it to UTF-8, with `iconv"):
            read()


@pytest.mark.parametrize("size", [1, 2, 5, 100])
def test_a_byte_order_mark_and_crlf_are_taken_off_and_a_missing_last_line_end_is_none(tmp_path, size):
    one = source(tmp_path, b"\xef\xbb\xbfa\r\n\r\nb\rc\n\n d ")
    if size >= 5:
        assert rows(one, size) == [(1, "a"), (2, ""), (3, "b\rc"), (4, ""), (5, " d ")]
        assert whole(one, size) == b"a\r\n\r\nb\rc\n\n d \n"
        with one.stream() as stream:
            assert stream.read(3) + stream.read() == b"a\r\n\r\nb\rc\n\n d "
    assert rows(source(tmp_path, b"x\ny"), size) == [(1, "x"), (2, "y")]


def test_invalid_utf8_is_rejected_on_its_line_and_nothing_else_changes(tmp_path):
    lines = [f"line {i} é".encode() for i in range(1, 1001)]
    for i, junk in ((0, b"\xff"), (3, b"ab\xe9"), (4, b"\xed\xa0\x80"), (500, b"x\xc0\xaf\r"), (999, b"caf\xc3")):
        lines[i] = junk
    one = source(tmp_path, b"\n".join(lines))
    assert rejects(one) == [
        (1, "byte 0xff at column 1 is not UTF-8", "�"),
        (4, "byte 0xe9 at column 3 is not UTF-8", "ab�"),
        (5, "byte 0xed at column 1 is not UTF-8", "���"),
        (501, "byte 0xc0 at column 2 is not UTF-8", "x��"),
        (1000, "byte 0xc3 at column 4 is not UTF-8", "caf�"),
    ]
    assert rows(one) == [(i, f"line {i} é") for i in range(1, 1001) if i not in {1, 4, 5, 501, 1000}]
    for size in (7, 100):
        assert rejects(one, size) == rejects(one) and rows(one, size) == rows(one)


@examples(150)
@given(
    st.lists(st.binary(max_size=14).map(lambda b: b.translate(bytes.maketrans(b"\n\r\0", b"  0"))), max_size=30),
    st.integers(3, 40),
    st.booleans(),
)
def test_chunks_of_any_size_hold_every_line_once_and_long_ones_are_rejected(tmp_path_factory, lines, size, ended):
    lines = [b"." + lines[0], *lines[1:]] if lines else []  # no magic number, no byte-order mark
    data = b"\n".join(lines) + (b"\n" if ended and lines else b"")
    expected = (data[:-1] if data.endswith(b"\n") else data).split(b"\n") if data else []
    one = source(tmp_path_factory.getbasetemp(), data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source_module, "MAX_LINE", 10)
        chunks = list(one.chunks(size))
    found: dict[int, bytes | None] = {}
    for chunk in chunks:
        assert not (chunk.data and chunk.rejects.height)
        for number, line in enumerate(chunk.data.split(b"\n")[:-1], start=chunk.first_line):
            assert found.setdefault(number, line) is line
        for line, reason, _ in chunk.rejects.rows():
            assert line == chunk.first_line and f"{len(expected[line - 1]):,} bytes" in reason
            assert found.setdefault(line, None) is None
    assert list(found) == list(range(1, len(expected) + 1))
    assert [found[i] for i in found] == [None if len(line) > 10 else line for line in expected]
    assert [c.fraction for c in chunks] == sorted(c.fraction for c in chunks) and all(c.fraction <= 1 for c in chunks)


def test_a_line_without_end_is_rejected_without_being_held(tmp_path, monkeypatch):
    monkeypatch.setattr(source_module, "MAX_LINE", 1 << 20)
    one = source(tmp_path, b"a\n" + b"x" * (40 << 20) + b"\nb\n" + b"y" * (3 << 20))
    assert [(line, reason) for line, reason, _ in rejects(one, 1 << 18)] == [
        (2, "line of 41,943,040 bytes, longer than 1,048,576"),
        (4, "line of 3,145,728 bytes, longer than 1,048,576"),
    ]
    assert rows(one, 1 << 18) == [(1, "a"), (3, "b")]
    assert max(len(chunk.data) for chunk in one.chunks(1 << 18)) < 1 << 20


def test_the_head_leaves_out_blank_lines_and_a_line_cut_by_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr(source_module, "HEAD", 20)
    one = source(tmp_path, b"\xef\xbb\xbf\n \nab\r\n\ncd\xff\nefghijklmnop\n")
    assert one.head() == ["ab", "cd�"]
    assert one.head(1) == ["ab"]
    assert source(tmp_path, b"one line that is longer").head() == ["one line that is lon"]


def readers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "read-ahead"]


def test_no_thread_stays_when_the_consumer_stops_or_the_source_fails(tmp_path):
    one = source(tmp_path, gzip.compress(TEXT * 4))
    chunks = one.chunks(1000)
    next(chunks)
    assert readers()
    chunks.close()
    assert not readers()
    for block in one.blocks(1000):
        assert block.lines.height
        break
    del block
    gc.collect()
    assert not readers()
    with pytest.raises(KgInputError):
        list(source(tmp_path, gzip.compress(TEXT)[:-9], "cut.txt").chunks(1000))
    assert not readers()
    assert len(list(one.chunks(100_000))) > 1
    assert not readers()


def test_reading_ahead_is_bounded_and_errors_come_after_the_items_before_them():
    made = []

    def items():
        for i in range(50):
            made.append(i)
            yield i
        raise ValueError("the end")

    ahead = read_ahead(items, depth=3)
    assert not made
    assert next(ahead) == 0
    for _ in range(200):
        time.sleep(0.001)
    assert len(made) <= 1 + 3 + 1
    rest = []
    with pytest.raises(ValueError, match="the end"):
        rest.extend(ahead)
    got = list(range(1, 50))
    assert made == [0, *got] and not readers()
