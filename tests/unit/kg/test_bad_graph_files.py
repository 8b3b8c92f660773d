"""Graph files that are missing, damaged or wrong: what is rejected, and what the errors say."""

from __future__ import annotations

import gzip
import io
import lzma
import re
import tarfile
import zipfile

import pytest

from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError
from kgqa_core.kg.build import build
from kgqa_core.kg.formats import source as source_module
from kgqa_core.kg.formats.ntriples import why
from kgqa_core.kg.ingest.sources import find_sources
from kgqa_core.workspace import Workspace
from tests.unit.kg.conftest import GRAPH


def rejects(store):
    return store.connection.execute("SELECT line, reason, text FROM rejects ORDER BY line").fetchall()


def fails(tmp_path, files, match, **options):
    out = tmp_path / "out"
    out.mkdir(exist_ok=True)
    names = [str(tmp_path / f) if not f.startswith("bundled:") else f for f in files]
    with pytest.raises(KgInputError, match=match) as caught:
        build(Workspace(out), options=KgOptions(files=tuple(names), **options))
    assert caught.value.exit_code == 2
    return str(caught.value)


def test_bad_lines_are_rejected_with_number_and_reason_and_good_ones_stay(make):
    good = "".join(f"e{i}\tr\te{i + 1}\n" for i in range(1000))
    store, counts = make("a\tr\n" + good + "a\tr\tb\tc\n\n" + "a\t\tb\n" + "a\tr\tb\0\n", "g.tsv")
    assert counts["triples"] == 1000 and counts["rejects"] == 4 and counts["ignored"] == 1
    assert rejects(store) == [
        (1, "2 field(s) instead of 3", "a\tr"),
        (1002, "4 field(s) instead of 3", "a\tr\tb\tc"),
        (1004, "an empty field", "a\t\tb"),
        (1005, "a NUL or a carriage return within the line", "a\tr\tb\0"),
    ]
    assert store.connection.execute("SELECT DISTINCT source FROM rejects").fetchall() == [("g.tsv",)]


def test_invalid_utf8_is_rejected_on_its_line(make):
    text = GRAPH.encode() + b'<http://x/a> <http://x/r> "caf\xe9" .\n<http://x/a> <http://x/r> "z" .'
    store, counts = make(text)
    assert counts["rejects"] == 1 and counts["triples"] == 10
    [(line, reason, shown)] = rejects(store)
    assert (line, reason) == (len(GRAPH.splitlines()) + 1, "byte 0xe9 at column 31 is not UTF-8")
    assert shown.startswith("<http://x/a>")


def test_an_over_long_line_is_rejected_and_the_next_ones_keep_their_numbers(make, monkeypatch):
    monkeypatch.setattr(source_module, "MAX_LINE", 1000)
    monkeypatch.setattr(source_module.Source.blocks, "__defaults__", (300,))
    lines = [f"a{i}\tr\tb" for i in range(300)]
    lines[100] = "x" * 5000
    lines[200] = "short"
    store, counts = make("\n".join(lines), "g.tsv")
    assert counts["triples"] == 298
    assert [(line, reason) for line, reason, _ in rejects(store)] == [
        (101, "line of 5,000 bytes, longer than 1,000"),
        (201, "1 field(s) instead of 3"),
    ]


@pytest.mark.parametrize("size", [7, 64, 1000])
def test_small_blocks_read_the_same(make, monkeypatch, size):
    whole, counts = make(GRAPH)
    monkeypatch.setattr(source_module.Source.chunks, "__defaults__", (size,))
    again, counts_again = make(GRAPH.replace("\n", "\r\n"), "g.nt.gz")
    assert counts == counts_again
    sql = "FROM triples ORDER BY id"
    assert whole.connection.execute(sql).fetchall() == again.connection.execute(sql).fetchall()


BAD = [
    ("<http://x/a> <http://x/b> <http://x/c>", "no final '.'"),
    ("<http://x/a> <http://x/b> .", "the object is missing"),
    ("<http://x/a>", "the predicate is missing"),
    ('"a" <http://x/b> <http://x/c> .', "the subject is neither an IRI in <> nor a blank node"),
    ("<http://x/a> _:b <http://x/c> .", "the predicate is not an IRI in <>"),
    ("<a> <http://x/b> <http://x/c> .", "the IRI of the subject is not absolute"),
    ("<http://x/a b> <http://x/b> <http://x/c> .", "' ' in the IRI of the subject"),
    ("<http://x/a> <http://x/b> <http://x/c .", "the IRI of the object has no '>'"),
    ('<http://x/a> <http://x/b> "c .', "unterminated literal"),
    ('<http://x/a> <http://x/b> "c\\x" .', "bad escape \\x in the literal"),
    ('<http://x/a> <http://x/b> "c"@1 .', "bad language tag"),
    ('<http://x/a> <http://x/b> "c"^^int .', "bad datatype"),
    ("<http://x/a> <http://x/b> <http://x/c> <http://x/g> .", "'<http://x/g> .' where the final '.' is due"),
    ("<http://x/a> <http://x/b> <http://x/c> . x", "text after the final '.'"),
    ('<http://x/a> <http://x/b> "\\uD800" .', "the escape \\uD800 is not a character"),
    ('<http://x/a> <http://x/b> "\\U00110000" .', "the escape \\U00110000 is not a character"),
    ("<http://x/\\u0020> <http://x/b> <http://x/c> .", "an escape puts ' ' into an IRI, where it may not stand"),
]
"""Bad statements, and why they are rejected."""


def test_each_bad_statement_has_its_reason(make):
    good = [line for line in GRAPH.splitlines() if line][1:]
    lines = [each for n, (line, _) in enumerate(BAD) for each in (line, good[n % len(good)])]
    store, counts = make(GRAPH + "\n".join(lines) + "\n" + GRAPH, format="ntriples", max_reject_share=0.5)
    assert counts["rejects"] == len(BAD) and counts["statements"] == 2 * 16 + 2 * len(BAD)
    first = len(GRAPH.splitlines()) + 1
    assert rejects(store) == [(first + 2 * n, reason, line) for n, (line, reason) in enumerate(BAD)]


def test_lone_carriage_returns_end_statements(make):
    _, counts = make("<http://x/a> <http://x/r> <http://x/b> .\r<http://x/b> <http://x/r> <http://x/c> .\r\n")
    assert counts["triples"] == 2 and counts["statements"] == 2


def test_reason_of_an_empty_line_does_not_fail():
    assert why("") == "the subject is missing"


def test_a_missing_file_names_the_nearest(tmp_path):
    (tmp_path / "triples.tsv").write_text("a\tr\tb\n")
    assert "did you mean 'triples.tsv'?" in fails(tmp_path, ["triple.tsv"], "there is no graph file")
    fails(tmp_path, ["no/where.tsv"], "the folder .* does not exist")
    fails(tmp_path, ["*.nt"], "no file matches")
    fails(tmp_path, ["bundled:atlass"], "did you mean 'bundled:atlas'")
    fails(tmp_path, ["triples.tsv", "triples.tsv"], "named twice")
    with pytest.raises(KgInputError, match=r"kg\.files is empty"):
        find_sources(())


def test_empty_files_directories_and_unknown_formats(tmp_path):
    (tmp_path / "empty.nt").write_bytes(b"")
    fails(tmp_path, ["empty.nt"], "is empty")
    (tmp_path / "comments.nt").write_text("# nothing\n\n# here\n")
    fails(tmp_path, ["comments.nt"], "holds no statement")
    (tmp_path / "blank.nt").write_text("\n\n")
    fails(tmp_path, ["blank.nt"], "is empty")
    (tmp_path / "none.nt.gz").write_bytes(gzip.compress(b""))
    fails(tmp_path, ["none.nt.gz"], "is empty")
    fails(tmp_path, ["."], "is a directory")
    fails(tmp_path, ["comments.nt"], "did you mean 'ntriples'", format="ntriple")
    (tmp_path / "g.nt.lz").write_bytes(b"LZIP\x01" + bytes(20))
    fails(tmp_path, ["g.nt.lz"], "packed with lzip")
    (tmp_path / "g.nt.xz").write_bytes(lzma.compress(GRAPH.encode())[:-12])
    fails(tmp_path, ["g.nt.xz"], "is cut off")
    (tmp_path / "g.utf32.tsv").write_bytes("a\tr\tb\n".encode("utf-32"))
    fails(tmp_path, ["g.utf32.tsv"], "UTF-32")
    (tmp_path / "g.csv").write_text("a,r,b\nb,s,c\n")
    assert "kg.delimiter" in fails(tmp_path, ["g.csv"], "no delimiter cuts")
    (tmp_path / "g.tsv").write_text("a\tr\tb\n" * 50)
    fails(tmp_path, ["g.tsv"], r"50 of 50 statements .* rejected", delimiter="|")
    fails(tmp_path, ["g.tsv"], r"50 of 50 statements .* rejected", format="ntriples", max_reject_share=1.0)
    assert list((tmp_path / "out").iterdir()) == [] or [p.name for p in (tmp_path / "out").iterdir()] == ["kg.duckdb"]


def _archive(pack, *names):
    stream = io.BytesIO()
    with pack(stream) as archive:
        for name in names:
            if isinstance(archive, tarfile.TarFile):
                archive.addfile(tarfile.TarInfo(name))
            else:
                archive.writestr(name, "x")
    return stream.getvalue()


def _tar(stream):
    return tarfile.open(fileobj=stream, mode="w")


def _zip(stream):
    return zipfile.ZipFile(stream, "w")


OTHER_FILES = {
    "spreadsheet of Excel .*export each sheet as CSV": _archive(_zip, "[Content_Types].xml", "xl/workbook.xml"),
    "document of Word": _archive(_zip, "[Content_Types].xml", "word/document.xml"),
    "document of OpenDocument .*export each sheet": _archive(_zip, "mimetype", "content.xml"),
    "triples.nt, read as ntriples": _archive(_zip, "triples.nt"),
    "old document of Microsoft Office .*export": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600),
    "archive without a file that could be read .*triples.nt": _archive(_tar, "triples.nt"),
    "packed with RAR, .*unpack it": b"Rar!\x1a\x07\x01\x00" + b"x" * 100,
    "PDF document": b"%PDF-1.7\n%\xe2\xe3\n1 0 obj\n",
    "page of HTML, .*fetch it again": b"\n<!DOCTYPE html>\n<html><body>404</body></html>\n",
    "SQLite database, .*export its tables": b"SQLite format 3\0" + bytes(100),
    "binary data": b"\x80\x04\x95\x10" + bytes(60) + b"q",
}


@pytest.mark.parametrize("what", OTHER_FILES)
@pytest.mark.parametrize("ending", ["csv", "nt", "csv.gz"])
def test_a_file_that_is_no_text_is_named_with_the_way_out_whatever_it_is_called(tmp_path, what, ending):
    data = OTHER_FILES[what]
    (tmp_path / f"g.{ending}").write_bytes(gzip.compress(data) if ending == "csv.gz" else data)
    match = what if ending != "csv.gz" or not data.startswith(b"PK") else "packed with zip"
    fails(tmp_path, [f"g.{ending}"], match)


def test_a_file_of_an_unknown_encoding_and_a_web_address_are_told_the_command_that_helps(tmp_path):
    (tmp_path / "g.tsv").write_bytes("Иван\tживёт в\tМоскве\n".encode("koi8-r"))
    fails(tmp_path, ["g.tsv"], r"byte 1 is 0xe9.*iconv -f ENCODING -t UTF-8")
    lines = b"<http://x/a> <http://x/r> 'Jos\xe9' .\n" * 9
    (tmp_path / "g.ttl").write_bytes(lines)
    fails(tmp_path, ["g.ttl"], "UTF-8")
    with pytest.raises(KgInputError, match="is an address, no file; fetch it first, with `curl"):
        find_sources(["https://example.org/g.nt"])


def test_names_in_messages_are_cut(tmp_path):
    wide = [f"{number}{'x' * 300}" for number in range(200)]
    (tmp_path / "g.csv").write_text(",".join(wide) + "\n")
    assert len(fails(tmp_path, ["g.csv"], "xxx…'", table={"id": "id"})) < 1200
    assert len(fails(tmp_path, ["g.csv"], "xxx…'", table={"id": "y" * 5000})) < 1200
    assert (
        len(fails(tmp_path, ["g.csv"], "xxx…'", columns={"subject": "y" * 999, "predicate": "=r", "object": "o"}))
        < 1200
    )
    assert len(fails(tmp_path, ["g.csv"], "yyy…'", format="y" * 999)) < 1200
    quotes = KgInputError("the user's file has neo4j-admin's header; " + "it's long; " * 40 + "it's 'short'")
    assert str(quotes).count("it's long") == 40


@pytest.mark.parametrize("kept", [0.5, 0.98])
def test_a_truncated_gzip_says_after_which_line(tmp_path, kept):
    data = gzip.compress("".join(f"entity{i * 7919 % 10007}\tr\te{i}\n" for i in range(50_000)).encode())
    (tmp_path / "g.tsv.gz").write_bytes(data[: int(len(data) * kept)])
    message = fails(tmp_path, ["g.tsv.gz"], r"g\.tsv\.gz is cut off")
    line = int(re.search(r"after line ([\d,]+)", message)[1].replace(",", ""))
    assert 0 <= line < 50_000
    (tmp_path / "g.tsv.gz").write_bytes(data[:-8] + b"\0\0\0\0" + data[-4:])
    fails(tmp_path, ["g.tsv.gz"], r"g\.tsv\.gz is damaged")


def test_reject_share_tolerates_slips_but_not_the_wrong_file(make):
    good = "".join(f"e{i}\tr\te{i + 1}\n" for i in range(5000))
    assert make(good + "x\ty\n" * 3, "g.tsv")[1]["rejects"] == 3
    assert make(good + "x\ty\n" * 50, "g.tsv")[1]["rejects"] == 50
    assert make("a\tr\tb\nb\tr\tc\nx\ty\n", "g.tsv")[1]["rejects"] == 1
    for bad, share in ((51, 0.01), (1, 0.0)):
        with pytest.raises(KgInputError, match=rf"{bad} of {5000 + bad:,} statements in all .* line 5001: 2 field"):
            make(good + "x\ty\n" * bad, "g.tsv", max_reject_share=share)
    with pytest.raises(KgInputError, match="rejected"):
        make("a\tr\tb\nb\tr\tc\nx\ty\nx\ty\n", "g.tsv")


def test_a_wrong_file_is_given_up_early(make, monkeypatch):
    monkeypatch.setattr(source_module.Source.blocks, "__defaults__", (100_000,))
    lines = "".join(f"e{i}\tr\te{i + 1}\n" for i in range(300)) + "x\ty\n" * 300_000
    with pytest.raises(KgInputError, match="so far are rejected") as caught:
        make(lines, "g.tsv")
    assert int(re.search(r"of ([\d,]+) statements", str(caught.value))[1].replace(",", "")) < 40_000
