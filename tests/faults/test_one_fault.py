"""One fault in the middle of ten thousand statements costs about one of them, in every format, and is counted."""

from __future__ import annotations

import gzip
import json
import tempfile
from functools import cache
from pathlib import Path

import pytest

from kgqa_core.kg.formats.source import MAX_LINE
from tests.support.reading import read

N = 10_000
FREEBASE, ENTITY, DIRECT = (
    "http://rdf.freebase.com/ns/",
    "http://www.wikidata.org/entity/",
    "http://www.wikidata.org/prop/direct/",
)


def entity(number: int) -> str:
    snak = {"snaktype": "value", "property": "P1", "datavalue": {"type": "string", "value": f'say "{number}"'}}
    claim = {"mainsnak": snak | {"datatype": "string"}, "type": "statement", "rank": "normal", "id": f"Q{number}$1"}
    return json.dumps({"type": "item", "id": f"Q{number}", "labels": {}, "claims": {"P1": [claim]}}) + ","


FORMATS = {
    "ntriples": ("g.nt", "", lambda n: f'<http://a/{n}> <http://a/p> "say \\"{n}\\"" .'),
    "nquads": ("g.nq", "", lambda n: f'<http://a/{n}> <http://a/p> "say \\"{n}\\"" <http://a/g> .'),
    "turtle": ("g.ttl", "@prefix a: <http://a/> .\n", lambda n: f'a:{n} a:p "say \\"{n}\\"", """x\ny""" . # c'),
    "trig": ("g.trig", "@prefix a: <http://a/> .\n", lambda n: f'a:g {{ a:{n} a:p "say \\"{n}\\"" . }} # c'),
    "wikidata-rdf": ("truthy.nt", "", lambda n: f'<{ENTITY}Q{n + 1}> <{DIRECT}P1> "say \\"{n}\\"" .'),
    "wikidata-rdf in turtle": (
        "truthy.ttl",
        f"@prefix wd: <{ENTITY}> .\n@prefix wdt: <{DIRECT}> .\n",
        lambda n: f'wd:Q{n + 1} wdt:P1 "say \\"{n}\\"" .',
    ),
    "freebase": ("fb", "", lambda n: f'<{FREEBASE}m.0{n}>\t<{FREEBASE}a.b.c>\t"say \\"{n}\\""\t.'),
    "freebase in turtle": (
        "fb.ttl",
        f"@prefix ns: <{FREEBASE}> .\n",
        lambda n: f'ns:m.0{n} ns:a.b.c "say \\"{n}\\"" .',
    ),
    "kgtk": ("claims.tsv", "node1\tlabel\tnode2\n", lambda n: f'Q{n + 1}\tP1\t"say {n}"'),
    "delimited": ("g.tsv", "", lambda n: f'k{n}\tr\t"say" {n}'),
    "names": ("labels.en.tsv", "", lambda n: f'k{n}\t"say" {n}'),
    "statements": ("s.txt", "", lambda n: f"Q{n + 1},P2,Q3,P4,Q5"),
    "columns": ("t.csv", "who,what,whom\n", lambda n: f'k{n},r,"say ""{n}"""'),
    "wikidata-json": ("dump.json", "[\n", lambda n: entity(n + 1)),
}
OPTIONS = {"columns": {"columns": {"subject": "who", "predicate": "what", "object": "whom"}}}

FAULTS = {
    "half a line": lambda line: line[: len(line) // 2],
    "a quote more": lambda line: line[: len(line) // 3] + b'"' + line[len(line) // 3 :],
    "three quotes more": lambda line: line[: len(line) // 3] + b'"""' + line[len(line) // 3 :],
    "no text": lambda line: line[: len(line) // 2] + b"\xff" + line[len(line) // 2 + 1 :],
    "a NUL": lambda line: line[: len(line) // 3] + b"\0" + line[len(line) // 3 :],
    "no end": lambda line: line[:-6],
    "brackets": lambda line: b"]})>" + line,
    "other lines": lambda line: b"<<<<<<< HEAD\n" + line,
}


@cache
def clean_subjects(format: str) -> tuple[str, ...]:
    """The subjects of the file without a fault, in the order of its lines."""
    name, head, line = FORMATS[format]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_text(head + "\n".join(map(line, range(N))) + "\n", encoding="utf-8", newline="")
        clean = read(path, **OPTIONS.get(format, {}))
    assert clean.format == format.split()[0] and not clean.rejects and clean.statements.height >= N
    return tuple(clean.statements["subject"])


@pytest.mark.parametrize(
    ("format", "fault"),
    [
        pytest.param(format, fault, marks=() if (row - column) % len(FAULTS) == 0 else pytest.mark.slow)
        for row, format in enumerate(FORMATS)
        for column, fault in enumerate(FAULTS)
    ],
)
def test_one_fault_among_ten_thousand_costs_about_one(format: str, fault: str, tmp_path: Path) -> None:
    clean = clean_subjects(format)
    name, head, line = FORMATS[format]
    lines = [line(number).encode() for number in range(N)]
    lines[N // 2] = FAULTS[fault](lines[N // 2])
    path = tmp_path / name
    path.write_bytes(head.encode() + b"\n".join(lines) + b"\n")
    found = read(path, **OPTIONS.get(format, {}))
    missing = set(clean) - {clean[len(clean) // 2]} - set(found.statements["subject"])
    assert found.format == format.split()[0]
    assert len(missing) <= 1, (found.rejects[:3], sorted(missing)[:5])
    assert len(found.rejects) <= 3 and found.unread <= 2
    assert found.rejects or len(clean) - found.statements.height <= 1


LINES = [name for name in FORMATS if "turtle" not in name and name not in ("trig", "columns")]
QUICK = ("ntriples", "delimited")


@pytest.mark.parametrize(
    "format", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in LINES]
)
def test_a_line_beyond_the_limit_is_one_reject_with_its_number(format: str, tmp_path: Path) -> None:
    name, head, line = FORMATS[format]
    lines = [line(number).encode() for number in range(100)]
    lines[50] = lines[50].replace(b"say", b"say " * (MAX_LINE // 4 + 1)).replace(b",P4", b",P4" * (MAX_LINE // 2))
    path = tmp_path / (name + ".gz")
    path.write_bytes(gzip.compress(head.encode() + b"\n".join(lines) + b"\n", 1))
    found = read(path)
    assert [number for number, _, _ in found.rejects] == [51 + head.count("\n")]
    assert "longer than 16,777,216" in found.rejects[0][1] and found.statements.height == 99
