"""Archives and workbooks: what is read of them, what is passed over, and what is refused."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile

import pytest

from kgqa_core.errors import KgInputError
from kgqa_core.kg.formats import members
from kgqa_core.kg.ingest.sources import find_sources
from tests.unit.kg.test_triple_tables import triples

CSV = b"head,relation,tail\nLia,lives in,Porto\n"
TTL = b"@prefix x: <http://x/> .\nx:Rui x:lives x:Porto .\n"


def zipped(files, mode=0) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = mode << 16
            archive.writestr(info, data)
    return stream.getvalue()


def tarred(files, kind=tarfile.REGTYPE, mode="w:gz") -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.type, info.linkname = len(data) if kind == tarfile.REGTYPE else 0, kind, "/etc/passwd"
            archive.addfile(info, io.BytesIO(data))
    return stream.getvalue()


_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def workbook(sheets: dict[str, tuple[str, str]]) -> bytes:
    """An .xlsx of sheets by name: their state, and the XML of their rows; style 1 is a date, 2 a date with its time."""
    listed = "".join(f'<sheet name="{name}" sheetId="{number}" state="{state}" r:id="r{number}"/>'
                     for number, (name, (state, _)) in enumerate(sheets.items(), 1))  # fmt: skip
    targets = "".join(f'<Relationship Id="r{number}" Type="{_OFFICE}/worksheet" Target="worksheets/s{number}.xml"/>'
                      for number in range(1, len(sheets) + 1))  # fmt: skip
    files = {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types"/>',
        "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r1" '
        f'Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>{listed}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">{targets}'
        f'<Relationship Id="st" Type="{_OFFICE}/styles" Target="styles.xml"/></Relationships>',
        "xl/styles.xml": f'<styleSheet xmlns="{_MAIN}"><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/>'
        '<xf numFmtId="22"/></cellXfs></styleSheet>',
    }
    for number, (_, rows) in enumerate(sheets.values(), 1):
        sheet = f'<worksheet xmlns="{_MAIN}"><sheetData>{rows}</sheetData></worksheet>'
        files[f"xl/worksheets/s{number}.xml"] = sheet
    return zipped({name: f'<?xml version="1.0"?>{text}'.encode() for name, text in files.items()})


def row(number: int, *cells: str) -> str:
    """A row of texts; what begins with `<` stands as it is, its place put in."""
    parts = []
    for column, cell in zip("ABCDEFG", cells, strict=False):
        at = f'r="{column}{number}"'
        text = f'<c {at} t="inlineStr"><is><t>{cell}</t></is></c>'
        parts.append(cell.replace("<c", f"<c {at}", 1) if cell.startswith("<") else text)
    return f'<row r="{number}">{"".join(parts)}</row>'


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_an_archive_is_read_as_the_files_in_it_each_in_its_format(make, pack):
    beside = {"__MACOSX/._g.csv": b"\0\x05\x16", ".DS_Store": b"x", "README.txt": b"Words.", "none.csv": b""}
    data = pack(
        {"data/people.csv": CSV, "more.ttl": TTL, "old.tsv": "José\tlives in\tFaro\n".encode("latin-1"), **beside}
    )
    store, counts = make(data, "tables.bin")
    assert triples(store) == [
        ("José", "lives in", "Faro"), ("Lia", "lives in", "Porto"), ("http://x/Rui", "http://x/lives", "http://x/Porto"),
    ]  # fmt: skip
    assert counts["rejects"] == 0
    found = store.meta["read_as"]
    assert found["tables.bin/old.tsv"] == {"encoding": "Windows-1252 (Latin-1)"}
    assert found["tables.bin/data/people.csv"]["left out of the archive"] == ", ".join(beside)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (zipped({"../g.csv": CSV}), "a name that leads out of the archive"),
        (zipped({"/etc/g.csv": CSV}), "a name that leads out of the archive"),
        (zipped({"a/" * 2000 + "g.csv": CSV}), "has a name of 4,005 characters"),
        (zipped({"a\\..\\..\\g.csv": CSV}), "a name that leads out of the archive"),
        (tarred({"a/../../g.csv": CSV}), "a name that leads out of the archive"),
        (zipped({"g.csv": b"/etc/passwd"}, stat.S_IFLNK | 0o777), "'g.csv' is a link"),
        (tarred({"g.csv": b""}, tarfile.SYMTYPE), "'g.csv' is a link"),
        (tarred({"g.csv": b""}, tarfile.LNKTYPE), "'g.csv' is a link"),
        (tarred({"g.csv": b""}, tarfile.FIFOTYPE), "'g.csv' is a link, a device"),
        (zipped({"in.zip": zipped({"g.csv": CSV})}), "in.zip is an archive within an archive"),
        (tarred({"in.tgz": tarred({"g.csv": CSV})}), "in.tgz is an archive within an archive"),
        (zipped({"g.csv": CSV})[:-30], "packed with zip and cannot be read"),
        (tarred({"g.csv": CSV * 99}, mode="w")[:900], "archive that cannot be read"),
        (zipped({}), "archive without a file"),
        (zipped({f"{number}.csv": CSV for number in range(6)}), "has more than 5 files"),
        (zipped({f"{number}.csv": bytes(1 << 20) for number in range(4)}), "and expands to [0-9,]+ and more"),
        (tarred({"g.csv": bytes(3 << 20)}), "and expands to [0-9,]+ and more"),
        (tarred({".hidden": bytes(3 << 20), "g.csv": CSV}), "and expands to [0-9,]+ and more"),
    ],
    ids=lambda one: one if isinstance(one, str) else "archive",  # whose bytes have the time
)
def test_a_hostile_or_broken_archive_is_refused_by_name_with_the_way_out(tmp_path, monkeypatch, data, words):
    monkeypatch.setattr(members, "MAX_MEMBERS", 5)
    monkeypatch.setattr(members, "FREELY", 1 << 20)
    (tmp_path / "g.bin").write_bytes(data)
    with pytest.raises(KgInputError, match=rf"g\.bin.*{words}.*[;,] (?:unpack|fetch|check)"):
        find_sources([str(tmp_path / "g.bin")])
    assert [path.name for path in tmp_path.iterdir()] == ["g.bin"]


def test_the_contents_are_gone_when_the_sources_are(tmp_path):
    (tmp_path / "g.zip").write_bytes(zipped({"g.csv": CSV}))
    [source] = find_sources([str(tmp_path / "g.zip")])
    assert source.label == "g.zip/g.csv" and source.size == len(CSV)
    del source
    with pytest.raises(KgInputError, match="no graph file"):
        find_sources([str(tmp_path / "g.zip/g.csv")])


def test_a_workbook_is_read_sheet_by_sheet_as_csv_of_the_same_content(make):
    facts = row(1, "subject", "predicate", "object", "since", "seen") + row(
        3, "Lia", "lives in", "Porto, &quot;Foz&quot;", '<c s="1"><v>44000</v></c>', '<c s="2"><v>44000.5</v></c>'
    ) + row(4, "Lia", "age", "<c><f>40+2</f><v>42</v></c>") + row(5, "=1+1", "is", "a text")  # fmt: skip
    sheets = {
        "Facts": ("visible", facts),
        "More": ("visible", row(1, "Mint", "grows in", "Shade") + row(2, "Basil", "grows in", "Sun")),
        "Lists": ("hidden", row(1, "x")),
        "Sheet4": ("visible", ""),
    }
    store, counts = make(workbook(sheets), "facts.xlsx")
    assert triples(store) == [
        ("=1+1", "is", "a text"), ("Basil", "grows in", "Sun"), ("Lia", "age", "42"),
        ("Lia", "lives in", 'Porto, "Foz"'), ("Mint", "grows in", "Shade"),
    ]  # fmt: skip
    rows = (
        "SELECT r.key, v.key FROM qualifiers q JOIN relations r ON r.id = q.relation JOIN entities v ON v.id = q.value"
    )
    assert sorted(store.connection.execute(rows).fetchall()) == [
        ("seen", "2020-06-18T12:00:00"),
        ("since", "2020-06-18"),
    ]
    found = store.meta["read_as"]["facts.xlsx/Facts.csv"]
    assert found["hidden sheets left out"] == "'Lists'" and found["empty sheets"] == "'Sheet4'"
    assert counts["rejects"] == 0


def test_cells_of_errors_are_missing_and_counted(make):
    rows = row(1, "subject", "predicate", "object", "share") + row(
        2, "Lia", "age", '<c t="e"><f>1/0</f><v>#DIV/0!</v></c>', "2"
    ) + row(3, "Lia", "lives in", "Porto", "#N/A") + row(4, "Lia", "likes", "#1", "3")  # fmt: skip
    store, counts = make(workbook({"S": ("visible", rows)}), "g.xlsx")
    assert triples(store) == [("Lia", "likes", "#1"), ("Lia", "lives in", "Porto")]
    assert store.meta["read_as"]["g.xlsx/S.csv"]["cells with errors left out"] == "'2 in S'"


_ODF = "urn:oasis:names:tc:opendocument:xmlns"


def test_times_of_an_ods_are_read(make):
    cells = [
        'office:value-type="time" office:time-value="PT14H30M00S"',
        'office:value-type="time" office:time-value="PT9M"',
    ]
    plain = 'office:value-type="string"'
    lines = [[(plain, "subject"), (plain, "predicate"), (plain, "object")]]
    lines += [
        [(plain, "A1"), (plain, name), (cell, "x")] for name, cell in zip(("departs", "lasts"), cells, strict=True)
    ]
    table = "".join(
        "<table:table-row>" + "".join(f"<table:table-cell {kind}><text:p>{text}</text:p></table:table-cell>"
                                      for kind, text in line) + "</table:table-row>" for line in lines
    )  # fmt: skip
    content = (
        f'<office:document-content xmlns:office="{_ODF}:office:1.0" xmlns:table="{_ODF}:table:1.0" '
        f'xmlns:text="{_ODF}:text:1.0"><office:body><office:spreadsheet>'
        f'<table:table table:name="S">{table}</table:table>'
        "</office:spreadsheet></office:body></office:document-content>"
    )
    manifest = f'<manifest:manifest xmlns:manifest="{_ODF}:manifest:1.0"/>'
    kind = b"application/vnd.oasis.opendocument.spreadsheet"
    files = {"mimetype": kind, "content.xml": content.encode(), "META-INF/manifest.xml": manifest.encode()}
    store, _ = make(zipped(files), "g.ods")
    assert triples(store) == [("A1", "departs", "14:30:00"), ("A1", "lasts", "PT9M")]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (workbook({"S": ("visible", "")}), "workbook without a value in its visible sheets.*'S'"),
        (workbook({"S": ("visible", '<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>1</v>'
                         "</c></row>")}), "needs more than 4 GiB of memory"),
        (workbook({"S": ("visible", row(1, "a"))})[:900], "cannot be read"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600) + "EncryptedPackage".encode("utf-16-le"), "encrypted"),
    ],
)  # fmt: skip
def test_a_workbook_that_is_empty_huge_broken_or_encrypted_is_refused_by_name(tmp_path, data, words):
    (tmp_path / "g.xlsx").write_bytes(data)
    with pytest.raises(KgInputError, match=rf"g\.xlsx is .*{words}"):
        find_sources([str(tmp_path / "g.xlsx")])
