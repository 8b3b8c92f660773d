"""Encodings and line ends of tables: what is found, what is noted, and what is refused."""

from __future__ import annotations

import codecs
import gzip

import pytest

from kgqa_core.errors import KgInputError
from kgqa_core.kg.formats import source as source_module
from kgqa_core.kg.formats.source import Source
from kgqa_core.kg.ingest.sources import find_sources

TEXT = "José\tlives in\tMálaga\nZoë\tlives in\tPraça “Nova”\n"


def read(tmp_path, data: bytes, name: str = "g.tsv") -> tuple[Source, str]:
    path = tmp_path / name
    path.write_bytes(data)
    [source] = find_sources([str(path)])
    lines = [text for block in source.blocks(1 << 16) for text in block.lines["text"]]
    return source, "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (TEXT.encode(), None),
        (TEXT.encode("utf-8-sig"), None),
        (TEXT.encode("cp1252"), "Windows-1252"),
        (TEXT.encode("utf-16"), "UTF-16 (little"),
        (TEXT.encode("utf-16-le"), "UTF-16 (little"),
        (codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"), "UTF-16 (big"),
    ],
)
@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_text_reads_the_same_in_every_encoding_and_with_every_line_end(tmp_path, data, encoding, ends):
    for known in ("utf-16-be", "utf-16", "utf-16-le", "utf-8", "cp1252"):
        if data in (TEXT.encode(known), codecs.BOM_UTF16_BE + TEXT.encode(known)):
            data = data.replace("\n".encode(known.removesuffix("-sig")).removeprefix(codecs.BOM_UTF16_LE),
                                ends.encode(known).removeprefix(codecs.BOM_UTF16_LE))  # fmt: skip
            break
    source, text = read(tmp_path, data)
    assert text == TEXT
    assert source.found.get("encoding", "").startswith(encoding or "") and (encoding or "encoding" not in source.found)
    assert ("line ends" in source.found) == (ends == "\r" and not data.startswith(codecs.BOM_UTF8))


def test_a_packed_file_in_another_encoding_is_read_and_text_that_comes_late_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(source_module, "HEAD", 1000)
    late = "a\tr\tb\n" * 500 + TEXT
    source, text = read(tmp_path, gzip.compress(late.encode("cp1252")), "g.tsv.gz")
    assert text == late and source.found["encoding"].startswith("Windows-1252")


def test_utf_8_with_a_fault_stays_utf_8_and_its_line_is_a_reject(tmp_path):
    source, text = read(tmp_path, TEXT.encode() * 10 + b"Andr\xe9\tlives in\tParis\n")
    assert source.encoding is None and text == TEXT * 10


@pytest.mark.parametrize("encoding", ["koi8-r", "shift-jis", "gb18030"])
def test_another_alphabet_is_refused_with_the_byte_and_the_command(tmp_path, encoding):
    text = {"koi8-r": "Иван\tживёт в\tМоскве\n"}.get(encoding, "東京都\t首都\t日本国\n") * 5
    with pytest.raises(KgInputError, match=r"neither UTF-8 nor Windows-1252 \(byte 1 is 0x.*iconv -f ENCODING"):
        read(tmp_path, text.encode(encoding))


def test_bytes_that_the_encoding_has_not_are_refused_with_their_place(tmp_path, monkeypatch):
    with pytest.raises(KgInputError, match=r"UTF-16 .little-endian., which it is not at byte 201 .*iconv"):
        read(tmp_path, ("a\tr\tb\n" * 20).encode("utf-16-le")[:200] + b"\x00\xdc" + b"a\0")
    monkeypatch.setattr(source_module, "HEAD", 1000)
    data = "a\tr\té\n".encode("cp1252") * 300 + b"x\tr\t\x81\n"
    with pytest.raises(KgInputError, match=rf"was read as Windows-1252 .* not at byte {len(data) - 1:,} .0x81"):
        read(tmp_path, data)


def test_rdf_and_json_are_utf_8_whatever_they_hold(tmp_path):
    path = tmp_path / "g.nt"
    path.write_bytes(b'# Jos\xe9\n<http://x/a> <http://x/r> "Jos\xe9" .\n')
    assert Source(path, "g.nt").find_encoding() is None
