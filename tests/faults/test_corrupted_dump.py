"""A real dump of which every hundredth line is harmed: the rest is the graph it would be without those lines."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest

from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError
from kgqa_core.kg.build import build
from kgqa_core.kg.ingest.sources import BUNDLED
from kgqa_core.kg.store import KgStore
from kgqa_core.kg.update.diff import differences
from kgqa_core.workspace import Workspace

PACKAGE = Path(__file__).resolve().parents[2] / "kgqa_core"
LINES = 12_000
HARM = {
    "no final '.'": lambda line: line[: line.rindex(b" .")],
    "not UTF-8": lambda line: line.replace(b"<", b"<\xff", 1),
    "the IRI of the subject has no '>'": lambda line: line.replace(b">", b"", 1).split(b">")[0],
    "unterminated literal": lambda line: b'<urn:a> <urn:b> "never closed .',
    "bad escape": lambda line: b'<urn:a> <urn:b> "a \\x b" .',
    "the subject is neither": lambda line: b"\x00" + line,
}


def test_a_hundredth_of_corrupted_lines_costs_only_those_lines(tmp_path: Path) -> None:
    with gzip.open(PACKAGE / BUNDLED["bundled:atlas"]) as stream:
        lines = [next(stream).rstrip(b"\n") for _ in range(LINES)]
    draw = random.Random(7)
    harmed = sorted(draw.sample(range(LINES), LINES // 100))
    kinds = {number: draw.choice(sorted(HARM)) for number in harmed}
    (tmp_path / "bad.nt").write_bytes(
        b"".join((HARM[kinds[n]](line) if n in kinds else line) + b"\n" for n, line in enumerate(lines))
    )
    (tmp_path / "clean.nt").write_bytes(b"".join(line + b"\n" for n, line in enumerate(lines) if n not in kinds))
    counts = {}
    for name in ("bad", "clean"):
        (tmp_path / name).mkdir()
        options = KgOptions(files=(str(tmp_path / f"{name}.nt"),), max_reject_share=0.02)
        counts[name] = build(Workspace(tmp_path / name), options=options)

    bad, clean = counts["bad"], counts["clean"]
    assert bad["statements"] == LINES and bad["rejects"] == len(harmed) and clean["rejects"] == 0
    parts = ("triples", "duplicates", "labels", "aliases", "descriptions", "type_statements", "filtered", "rejects")
    assert bad["statements"] == sum(bad[part] for part in parts)
    assert differences(tmp_path / "bad", tmp_path / "clean") == {}
    with KgStore.open(tmp_path / "bad") as store:
        rejects = store.connection.execute("SELECT line, reason, text FROM rejects ORDER BY line").fetchall()
    assert [line for line, _, _ in rejects] == [number + 1 for number in harmed]
    for line, reason, _ in rejects:
        wanted = kinds[line - 1]
        assert wanted.split("'")[0] in reason, (wanted, reason)

    with pytest.raises(KgInputError, match=r"bad\.nt, read as ntriples: .* are rejected .*line \d+: "):
        (tmp_path / "strict").mkdir()
        strict = KgOptions(files=(str(tmp_path / "bad.nt"),), max_reject_share=0.005)
        build(Workspace(tmp_path / "strict"), options=strict)
    assert not (tmp_path / "strict" / "kg.duckdb").exists()
