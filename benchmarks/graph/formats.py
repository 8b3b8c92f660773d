"""Every format on real samples: what each build reads and keeps.

    python -m benchmarks.graph.formats [--data ../shared/data] [--only WORD] [--json OUT]

Each row is one build of the files named, from nothing to `kg.duckdb`, in a folder that is deleted again.  `statements`
= triples + duplicates + labels + aliases + descriptions + types + filtered + rejects; `seconds` is wall time, `cpu` the
time of all threads.  The first builds also compile kernels.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

from benchmarks import results_file
from benchmarks.conditions import conditions
from benchmarks.results_file import CONDITIONS
from kgqa_core.config import KgOptions
from kgqa_core.errors import KgqaError
from kgqa_core.kg.build import build
from kgqa_core.kg.formats.detect import reader_of
from kgqa_core.kg.ingest.sources import find_sources

FIELDS = (
    *CONDITIONS, "about/machine", "about/processors", "about/python", "rows/*/*", "rows/*/*/...",
)  # fmt: skip
"""What the result file holds (benchmarks/results_file.py)."""

W = "wikidata_samples"
E = f"{W}/entitybase/test_data"
KGTK = f"{W}/kgtk/wikidata-dwd-v2"
KINDS = ("claims", "qualifiers", "labels", "aliases", "descriptions")
QUERY = f"{W}/wdqs/**"


@dataclass(frozen=True)
class Sample:
    """Files that make one graph.  options: beyond the defaults."""

    name: str
    files: tuple[str, ...]
    options: dict[str, Any] = field(default_factory=dict)


SAMPLES = (
    Sample("Wikidata JSON dump, 49 entities", (f"{W}/wikidata-filter/entities",)),
    Sample("Wikidata JSON, single entities", (f"{E}/json/entities/Q*.json", f"{E}/json/entities/properties/*.json")),
    Sample("Wikidata JSON, lexemes", (f"{E}/json/entities/L*.json",)),
    Sample("Wikidata JSON, mock dump", (f"{W}/wdtk/**/mock-dump-for-long-testing.json",)),
    Sample("Wikidata JSON, mock dump with bugs", (f"{W}/wdtk/**/mock-dump-with-bugs.json",)),
    Sample("Wikidata JSON, answer of the API", (f"{W}/wdtk/**/wbgetentities-Q6-Q42-P31.json",)),
    Sample("Wikidata RDF (Turtle), single items", (f"{E}/rdf/ttl/Q*.ttl",)),
    Sample("Wikidata RDF (Turtle), lexemes", (f"{E}/rdf/ttl/L*.ttl",)),
    Sample("Wikidata RDF, dumps of the query service", (f"{QUERY}/dumps/*.ttl",)),
    Sample("Wikidata RDF, munged", (f"{QUERY}/*-munged.ttl",)),
    Sample("N-Triples of Wikibase's tests", (f"{E}/rdf/nt/**/*.nt",)),
    Sample("RDF of Wikidata Toolkit's tests", (f"{W}/wdtk/wdtk-rdf/**/[!N]*.rdf",), {"max_reject_share": 0.2}),
    Sample("KGTK claims", (f"{KGTK}/claims.*",)),
    Sample("KGTK claims, qualifiers and names", tuple(f"{KGTK}/{kind}.*" for kind in KINDS)),
    Sample("KGTK, all 92 files", (f"{KGTK}/*.tsv.gz",)),
    Sample("WD50K", ("wd50k/statements/*.txt",)),
    Sample("wikidata_mini, triples", ("wikidata_mini/triples.tsv",)),
    Sample("wikidata_mini, whole", ("wikidata_mini/*.tsv",)),
    Sample("FB15k-237", ("fb15k237/*.tsv", "fb15k237/relation2text.txt")),
    Sample("CoDEx-S", tuple(f"codex/triples/codex-s/{part}.txt" for part in ("train", "valid", "test"))),
    Sample("CoDEx-M", tuple(f"codex/triples/codex-m/{part}.txt" for part in ("train", "valid", "test"))),
    Sample("CoDEx-L, valid and test", ("codex/triples/codex-l/*.txt",)),
    Sample("MetaQA's graph", ("metaqa/kb_reconstructed.txt",)),
    Sample("ZJQA's graph", ("zjqa/indexes/triple.txt",)),
)  # fmt: skip

SHOWN = ("statements", "triples", "labels", "qualifiers", "filtered", "rejects", "seconds")


def measure(sample: Sample, data: Path) -> dict[str, Any]:
    """One build of a sample: its formats and counts, or why it could not be built."""
    row: dict[str, Any] = {"sample": sample.name}
    names = tuple(str(data / name) for name in sample.files)
    try:
        files = [str(source.path) for source in find_sources(names) if source.path.stat().st_size]
        options = KgOptions(files=tuple(files), **sample.options)
        formats = sorted({reader_of(source, options).name for source in find_sources(files)})
        row |= {
            "format": ", ".join(formats),
            "files": len(files),
            "bytes": sum(os.path.getsize(name) for name in files),
        }
        with tempfile.TemporaryDirectory() as folder:
            wall, cpu = time.perf_counter(), time.process_time()
            counts = build(Path(folder), options=options)
            row |= {"seconds": round(time.perf_counter() - wall, 3), "cpu": round(time.process_time() - cpu, 3)}
            row |= counts
            with duckdb.connect(str(Path(folder) / "kg.duckdb"), read_only=True) as connection:
                reasons = "SELECT reason, count(*) FROM rejects GROUP BY reason ORDER BY count(*) DESC, reason LIMIT 5"
                row["reasons"] = dict(connection.execute(reasons).fetchall())
                filtered = "SELECT rule, sum(statements)::BIGINT FROM filtered GROUP BY rule ORDER BY rule"
                row["rules"] = dict(connection.execute(filtered).fetchall())
    except KgqaError as fault:
        row["error"] = str(fault)
    return row


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as Markdown."""

    def shown(row: dict[str, Any], name: str) -> str:
        value = row.get(name, "")
        return f"{value:,}" if isinstance(value, int) else f"{value:.2f}" if isinstance(value, float) else str(value)

    head = ["sample", "format", "files", *SHOWN]
    lines = ["| " + " | ".join(head) + " |", "|---|---|" + "---:|" * (len(head) - 2)]
    for row in rows:
        lines.append("| " + " | ".join(shown(row, name) for name in head) + " |")
        if "error" in row:
            lines.append(f"| | {row['error'][:200]} |" + " |" * (len(head) - 2))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("KGQA_SHARED_DATA", "../shared/data")))
    parser.add_argument("--only", default="", help="samples whose name holds this word")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if not given.data.is_dir():
        raise SystemExit(f"there is no folder {given.data}; name the public data with --data")
    rows = [measure(sample, given.data) for sample in SAMPLES if given.only.lower() in sample.name.lower()]
    print(table(rows))
    if given.json is not None:
        about = {"machine": platform.platform(), "processors": os.cpu_count(), "python": platform.python_version()}
        results_file.write(given.json, {"conditions": conditions(0), "about": about, "rows": rows}, FIELDS)


if __name__ == "__main__":
    main()
