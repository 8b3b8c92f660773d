"""Every registered format with input that is cut, mixed, huge, deep or hostile: refused or counted, in bounded memory.

The files are read in one process without a network, whose memory is measured for each.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError
from kgqa_core.kg.build import parts_of
from kgqa_core.kg.formats.registry import FORMATS
from kgqa_core.kg.formats.source import Source
from kgqa_core.kg.ingest.sources import find_sources

ROOT = Path(__file__).resolve().parents[3]
ROWS, LONG, DEEP, MEGABYTES = 60, 17 << 20, 100_000, 600
"""Rows of a sample, characters of a huge value, levels of a deep one, and what reading may add to the memory."""

PREFIX = "@prefix : <http://e/> .\n"
RDF = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://e/">\n'
WIKIDATA = "<http://www.wikidata.org/entity/Q%i> <http://www.wikidata.org/prop/direct/P1> "
MID, PARENTS = "<http://rdf.freebase.com/ns/m.0%s>", "<http://rdf.freebase.com/ns/people.person.parents>"
QUESTION = {
    "QuestionId": "%i", "RawQuestion": "?",
    "Parses": [{"TopicEntityMid": "m.0a", "TopicEntityName": "%i", "InferentialChain": ["p.q"],
                "Answers": [{"AnswerType": "Entity", "AnswerArgument": "m.0b", "EntityName": "B"}]}],
}  # fmt: skip
SAMPLES: dict[str, tuple[str, str, str]] = {
    "columns": ("s,p,o\n", "s%i,p,o\n", ""),
    "table": ("from,to\n", "s%i,o\n", ""),
    "neo4j-csv": ("id:ID,name,:LABEL\n", "n%i,N,T\n", ""),
    "neo4j-json": ("", '{"type":"node","id":"%i","labels":["T"],"properties":{"name":"N"}}\n', ""),
    "graphml": (
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="directed">\n',
        '<node id="n%i"/><edge source="a" target="b"/>\n',
        "</graph></graphml>\n",
    ),
    "json-graph": ('{"directed":true,"nodes":[\n', '{"id":"n%i","name":"N"},\n',
                   '{"id":"b"}],"links":[{"source":"n0","target":"b"}]}\n'),
    "cypher": ("", 'CREATE (:T {name: "N%i"});\n', ""),
    "wikidata-json": ("[\n", '{"type":"item","id":"Q1","labels":{"en":{"language":"en","value":"N%i"}},"claims":{}},\n',
                      '{"type":"item","id":"Q2","labels":{},"claims":{}}\n]\n'),
    "kgtk": ("node1\tlabel\tnode2\n", "a%i\tp\tb\n", ""),
    "wikidata-rdf": ("", WIKIDATA + "<http://www.wikidata.org/entity/Q2> .\n", ""),
    "freebase": ("", f"{MID % '%i'}\t{PARENTS}\t{MID % 'b'}\t.\n", ""),
    "webqsp": ('{"Questions":[\n', json.dumps(QUESTION) + ",\n", json.dumps(QUESTION) + "]}\n"),
    "rdf-xml": (RDF, '<rdf:Description rdf:about="http://e/s"><p>v%i</p></rdf:Description>\n', "</rdf:RDF>\n"),
    "json-ld": ('{"@context":{"p":"http://e/p"},"@graph":[\n', '{"@id":"http://e/s","p":"v%i"},\n', "{}]}\n"),
    "ntriples": ("", '<http://e/s> <http://e/p> "v%i" .\n', ""),
    "nquads": ("", '<http://e/s> <http://e/p> "v%i" <http://e/g> .\n', ""),
    "turtle": (PREFIX, ':s :p :o, "v%i" .\n', ""),
    "trig": (PREFIX + ":g {\n", ':s :p "v%i" .\n', "}\n"),
    "n3": (PREFIX, ':s :p "v%i" .\n', ""),
    "statements": ("", "s%i,p,o,q,v\n", ""),
    "triples": ("subject,predicate,object\n", "s%i,p,o\n", ""),
    "delimited": ("", "s%i\tp\to\n", ""),
    "names": ("", "s\tName %i\ten\n", ""),
    "json": ("[\n", '{"id":"%i","name":"N%i","at":{"name":"P"}},\n', '{"id":"b","name":"B"}]\n'),
}  # fmt: skip
OPTIONS: dict[str, dict[str, Any]] = {
    "columns": {"columns": {"subject": "s", "predicate": "p", "object": "o"}},
    "table": {"table": {"source": "from", "target": "to", "relation": "=r"}},
}
WHOLE = ("graphml", "json", "json-graph", "webqsp", "rdf-xml", "json-ld")
"""Formats in which a file that is cut off is no document."""
OPENED = {"trig": "[ :p ", "turtle": "[ :p ", "n3": "[ :p ", "rdf-xml": "<a><p>", "graphml": '<node id="a"><graph>'}
"""What a deep document opens again and again; of others it is `{"a":[`."""


def text(name: str, rows: int = ROWS, value: str = "") -> str:
    """A sample; value: what stands in the middle row beside its number."""
    begin, row, end = SAMPLES[name]
    middle = rows // 2
    return begin + "".join(row.replace("%i", f"{i}{value if i == middle else ''}") for i in range(rows)) + end


def files(name: str) -> dict[str, tuple[bytes, int]]:
    """Inputs at fault, and the bytes of each that are as they should be."""
    whole = text(name).encode()
    other = text("json-graph" if name != "json-graph" else "turtle").encode()
    head = SAMPLES[name][0] + SAMPLES[name][1].replace("%i", "0")
    deep = head + OPENED.get(name, '{"a":[') * (DEEP if name != "rdf-xml" else DEEP // 50)
    cuts = {f"cut {share}": (whole[: len(whole) * share // 10], 0) for share in (3, 6, 9)}
    return cuts | {
        "whole": (whole, len(whole)),
        "empty": (b"", 0),
        "mixed": (whole + other, 0),
        "binary": (whole[: len(whole) // 2] + bytes(range(256)) * 16 + whole[len(whole) // 2 :], 0),
        "huge": (text(name, 3, "x" * (LONG if name not in ("trig", "n3") else 0)).encode(), 0),
        "deep": (deep.encode(), 0),
        "formula": (text(name, ROWS, "=HYPERLINK('http://e.invalid/')").encode(), len(whole)),
    }


def read_all(folder: Path) -> None:
    """Reads every input with every reader, and prints a line of JSON for each."""

    def refuse(*_: object) -> NoReturn:
        raise AssertionError("the network was used")

    socket.socket.connect = refuse  # type: ignore[assignment,method-assign]
    socket.getaddrinfo = refuse  # type: ignore[assignment]
    for name in FORMATS:
        for what, (data, _) in files(name).items():
            path = folder / "file"
            path.write_bytes(data)
            row: dict[str, Any] = {"name": name, "what": what, "statements": 0, "rejects": 0, "refused": None}
            before, began = _memory(reset=True), time.process_time()
            try:
                for batch in _batches(name, path):
                    row["statements"] += batch.height
                    row["rejects"] += batch.rejects.height + batch.unread + sum(batch.filtered.values())
            except KgInputError as fault:
                row["refused"] = str(fault)[:300]
            except BaseException as fault:
                row["fault"] = repr(fault)[:300]
            row |= {"megabytes": _memory() - before, "seconds": round(time.process_time() - began, 2)}
            print(json.dumps(row), flush=True)


def _batches(name: str, path: Path) -> Iterator[Any]:
    options = KgOptions(**OPTIONS.get(name, {}))
    if name != "json":
        return FORMATS[name].reader().read(Source(path, "file"), options)
    options = KgOptions(format=name)
    return (batch for part in parts_of(find_sources([str(path)], options), options)[0] for batch in part.batches)


def _memory(reset: bool = False) -> int:
    """Megabytes: resident at most since the last reset."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    words = Path("/proc/self/status").read_text().split()
    return int(words[words.index("VmHWM:") + 1]) >> 10


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], dict[str, Any]]:
    code = "import sys; from tests.unit.kg.test_format_faults import read_all, Path; read_all(Path(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", code, str(tmp_path_factory.mktemp("faults"))],
        cwd=ROOT, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, (rows[-1:], done.stderr[-2000:])
    return {(row["name"], row["what"]): row for row in rows}


@pytest.mark.parametrize("name", FORMATS)
def test_input_at_fault_is_refused_or_counted_in_bounded_memory(
    name: str, results: dict[tuple[str, str], dict[str, Any]]
) -> None:
    rows = {what: row for (form, what), row in results.items() if form == name}
    whole = rows["whole"]
    assert whole["refused"] is None and whole["rejects"] == 0, whole
    for what, row in rows.items():
        assert "fault" not in row, row
        assert row["megabytes"] < MEGABYTES, row
        if what.startswith("cut"):
            assert row["statements"] <= whole["statements"], row
            assert row["refused"] or name not in WHOLE, row
        elif what == "formula":
            assert row["statements"] == whole["statements"] and not row["refused"], row
        elif what in ("mixed", "binary", "deep"):
            assert row["refused"] or row["rejects"] > whole["rejects"], row
        elif what == "empty":
            assert row["statements"] == 0, row
