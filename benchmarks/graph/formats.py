"""How fast formats are read: against the bare library, and `kg build` against another checkout.

    python -m benchmarks.graph.formats [--lines 300k] [--rounds 5] [--root CHECKOUT] [--only NAME …] [--json OUT]

Readers: our reader of RDF/XML, JSON-LD, xlsx, ods and CSV, and the library beneath it alone (pyoxigraph, fastexcel,
Polars), on the same statements.  Builds: the command with this code and with that of --root, on N-Triples, TSV and
Turtle.  Each run is a process of its own; both sides take turns, and a ratio is the median of those of the rounds, of
processor seconds (of children too): above 1 ours is the faster one.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from benchmarks import results_file
from benchmarks.conditions import ROOT, conditions
from benchmarks.graph import ingest_files
from benchmarks.graph.ingest import SEED, lines_of
from benchmarks.results_file import CONDITIONS

FIELDS = (*CONDITIONS, "benchmark", "lines", "rounds", "?base", "readers/...", "?builds/...")
"""What the result file holds (benchmarks/results_file.py)."""

READERS = {"rdf-xml": "g.rdf", "json-ld": "g.jsonld", "xlsx": "g.xlsx", "ods": "g.ods", "csv": "g.csv"}
BUILDS = {"ntriples": "g.nt", "tsv": "g.tsv", "turtle": "g.ttl"}
XLSX = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
ODS = "urn:oasis:names:tc:opendocument:xmlns"
HEADER = ("subject", "predicate", "object")


def make_files(folder: Path, lines: int) -> None:
    """Writes the same statements in every format."""
    import pyoxigraph as ox

    ingest_files.write(folder / "g.nt", lines, SEED)
    quads = list(ox.parse(path=str(folder / "g.nt"), format=ox.RdfFormat.N_TRIPLES))
    triples = [quad.triple for quad in quads]
    prefixes = {"r": "http://example.org/resource/", "o": "http://example.org/ontology/"}
    for name, form in (("g.ttl", ox.RdfFormat.TURTLE), ("g.rdf", ox.RdfFormat.RDF_XML)):
        ox.serialize(triples, str(folder / name), form, prefixes=prefixes)
    ox.serialize(quads, str(folder / "g.jsonld"), ox.RdfFormat.JSON_LD)
    rows = [[term.value.rsplit("/", 1)[-1] for term in triple] for triple in triples]
    (folder / "g.tsv").write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    quoted = [[f'"{cell.replace(chr(34), chr(34) * 2)}"' for cell in row] for row in (HEADER, *rows)]
    (folder / "g.csv").write_text("".join(",".join(row) + "\n" for row in quoted), encoding="utf-8")
    write_workbooks(folder, [list(HEADER), *rows])


def write_workbooks(folder: Path, rows: Sequence[Sequence[str]]) -> None:
    """Writes an .xlsx and an .ods of one sheet each."""

    def cells(row: str, begin: str, end: str) -> Iterator[str]:
        for number, values in enumerate(rows, start=1):
            texts = (begin.replace("@", f"{'ABC'[k]}{number}") + escape(v) + end for k, v in enumerate(values))
            yield f"<{row}>{''.join(texts)}</{row}>"

    sheet = "".join(cells("row", '<c r="@" t="inlineStr"><is><t>', "</t></is></c>"))
    types = '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>'
    package = "http://schemas.openxmlformats.org/package/2006/relationships"
    link = f'<Relationships xmlns="{package}"><Relationship Id="r1" Type="{OFFICE}/%s" Target="%s"/></Relationships>'
    book = f'<workbook xmlns="{XLSX}" xmlns:r="{OFFICE}"><sheets><sheet name="s" sheetId="1" r:id="r1"/></sheets>'
    table = "".join(cells("table:table-row", '<table:table-cell office:value-type="string"><text:p>',
                          "</text:p></table:table-cell>"))  # fmt: skip
    names = " ".join(f'xmlns:{name}="{ODS}:{name}:1.0"' for name in ("office", "table", "text"))
    content = f'<office:document-content {names} office:version="1.2"><office:body><office:spreadsheet><table:table '
    content += f'table:name="s">{table}</table:table></office:spreadsheet></office:body></office:document-content>'
    parts = {
        "g.xlsx": {"[Content_Types].xml": types, "_rels/.rels": link % ("officeDocument", "xl/workbook.xml"),
                   "xl/workbook.xml": book + "</workbook>",
                   "xl/_rels/workbook.xml.rels": link % ("worksheet", "worksheets/s.xml"),
                   "xl/worksheets/s.xml": f'<worksheet xmlns="{XLSX}"><sheetData>{sheet}</sheetData></worksheet>'},
        "g.ods": {"mimetype": "application/vnd.oasis.opendocument.spreadsheet", "content.xml": content,
                  "META-INF/manifest.xml": f'<m:manifest xmlns:m="{ODS}:manifest:1.0"/>'},
    }  # fmt: skip
    for name, members in parts.items():
        with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED) as archive:
            for member, text in members.items():
                archive.writestr(member, text)


def read_ours(path: Path) -> int:
    """Reads a file with our reader; how many statements it has."""
    from kgqa_core.config import KgOptions
    from kgqa_core.kg.formats.detect import reader_of
    from kgqa_core.kg.formats.members import expand
    from kgqa_core.kg.formats.source import Source

    options = KgOptions()
    return sum(
        batch.height
        for source in expand(Source(path, path.name))
        for batch in reader_of(source, options).read(source, options)
    )


def read_bare(path: Path) -> int:
    """Reads a file with the library alone; how many statements it has."""
    import fastexcel
    import polars as pl
    import pyoxigraph as ox

    if path.suffix == ".csv":
        return pl.read_csv(path, infer_schema=False).height
    if path.suffix in (".xlsx", ".ods"):
        return fastexcel.read_excel(path).load_sheet(0, dtypes="string").to_polars().height
    form = ox.RdfFormat.RDF_XML if path.suffix == ".rdf" else ox.RdfFormat.JSON_LD
    return sum(1 for _ in ox.parse(path=str(path), format=form, base_iri="http://e/"))


def processor_seconds() -> float:
    """Seconds of this process and of its finished children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def run_here(side: str, path: Path) -> dict[str, float]:
    """One reading in this process, after a small one of the same format that warms it."""
    read = read_ours if side == "ours" else read_bare
    read(path.parent / "small" / path.name)
    wall, began = time.perf_counter(), processor_seconds()
    statements = read(path)
    return {"cpu": processor_seconds() - began, "wall": time.perf_counter() - wall, "statements": statements}


def run(words: Sequence[str], root: Path) -> tuple[str, dict[str, float]]:
    """What a Python process of a checkout printed, and its seconds.  Raises SystemExit where it failed."""
    wall, began = time.perf_counter(), processor_seconds()
    done = subprocess.run(
        [sys.executable, *words], env=os.environ | {"PYTHONPATH": str(root)}, cwd=root, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} failed:\n{done.stderr[-2000:]}")
    return done.stdout, {"cpu": processor_seconds() - began, "wall": time.perf_counter() - wall}


def compared(name: str, ours: list[dict[str, float]], other: list[dict[str, float]]) -> dict[str, Any]:
    """Medians of two sides that took turns, printed."""
    ratios = {kind: statistics.median(o[kind] / m[kind] for m, o in zip(ours, other, strict=True)) for kind in ours[0]}
    shown = {"ours": statistics.median(row["cpu"] for row in ours),
             "other": statistics.median(row["cpu"] for row in other), "ratio": ratios["cpu"],
             "wall_ratio": ratios["wall"]}  # fmt: skip
    print(name, {key: round(value, 3) for key, value in shown.items()}, flush=True)
    return {**shown, "rounds": [[m["cpu"], o["cpu"]] for m, o in zip(ours, other, strict=True)]}


def main() -> None:
    """Reads the command line, makes files, measures, prints and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=lines_of, default=300_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--root", type=Path, help="the checkout that builds are compared with")
    parser.add_argument("--only", nargs="+", default=(*READERS, *BUILDS))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--run", nargs=2, metavar=("SIDE", "FILE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run:
        print(json.dumps(run_here(given.run[0], Path(given.run[1]))))
        return
    whole: dict[str, Any] = {"benchmark": "formats", "conditions": conditions(SEED), "lines": given.lines,
                             "rounds": given.rounds, "readers": {}}  # fmt: skip
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "small").mkdir()
        make_files(folder, given.lines)
        make_files(folder / "small", 2_000)
        for name in (name for name in READERS if name in given.only):
            sides: dict[str, list[dict[str, float]]] = {"ours": [], "bare": []}
            for side in (*sides, *list(sides) * (given.rounds - 1)):
                words = ["-m", "benchmarks.graph.formats", "--run", side, str(folder / READERS[name])]
                sides[side].append(json.loads(run(words, ROOT)[0]))
            if len({row["statements"] for rows in sides.values() for row in rows}) > 1:
                raise SystemExit(f"{name}: the sides read different numbers of statements")
            whole["readers"][name] = compared(name, sides["ours"], sides["bare"])
        for name in (name for name in BUILDS if name in given.only and given.root):
            roots = {"ours": ROOT, "base": given.root.resolve()}
            sides = {"ours": [], "base": []}
            for number in range(given.rounds + 1):
                for side, root in roots.items():
                    out = str(folder / f"{name}-{side}-{number}")
                    seconds = run(["-m", "flows.cli", "kg", "build", str(folder / BUILDS[name]), "--out", out], root)[1]
                    sides[side] += [seconds] if number else []
            whole.setdefault("builds", {})[name] = compared(name, sides["ours"], sides["base"])
            whole["base"] = conditions(SEED, given.root)["commit"]
    if given.json:
        results_file.write(given.json, whole, FIELDS)


if __name__ == "__main__":
    main()
