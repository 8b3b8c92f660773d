"""How fast Wikidata's JSON dump becomes tables, against loops in Python that extract the same.

    python -m benchmarks.graph.wikidata_json [--data ../shared/data] [--size 200] [--rounds 5] [--threads 2]
        [--json OUT]

The dump is made from the 49 real entities of `wikidata_samples/wikidata-filter`: each entity of the dump is one of them
under another id, with a random part of its labels, aliases, claims and sitelinks, names made different, so that its
size is about that of Wikidata's mean (13 KB).  It is written as Wikidata writes it (ASCII with escapes, `\\/`, an array
with an entity a line), plain and as gzip.

- json:    `json.loads` on each line and a plain loop over the dictionaries; ends with tuples in lists
- msgspec: the same loop over what `msgspec.json.decode` gives
- structs: `msgspec` decoding into typed structs, which skip other fields, and the same loop
- simdjson: the loop over what `pysimdjson` gives; left out where that package is not installed
- duckdb:  `read_json` with the types of the dump named, unnested into two tables; the values stay JSON texts, so that
           it does less than the others
- plain:   our own plain road on one thread, which the fast one falls back to; ends with frames
- ours:    the reader, ends with frames; `ours 1` on one thread, `ours gz` from gzip

All roads must find the same numbers of statements and qualifiers, and `json` and ours the same rows, before anything is
timed.  Roads run in turn within each round; figures are medians, in MB of plain text a second.  Processor time stands
beside wall time: on a machine that others use, wall time says as much about them.  Peak memory is that of a fresh
process that does nothing but read.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import importlib.util
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import polars as pl

from benchmarks import results_file
from benchmarks.conditions import conditions
from benchmarks.results_file import CONDITIONS
from kgqa_core.config import KgOptions
from kgqa_core.kg.formats.source import Source
from kgqa_core.kg.formats.wikidata.json import WikidataJson, read_plainly
from kgqa_core.kg.formats.wikidata.json_entity import ALIAS, DESCRIPTION, LABEL, RANKS
from kgqa_core.kg.formats.wikidata.json_values import (
    DECIMAL,
    STRING,
    STRINGS,
    WIKIBASE,
    WKT,
    point,
    time_term,
    unit_key,
)

FIELDS = (
    *CONDITIONS, "entities", "megabytes", "gzip_megabytes", "statements", "qualifiers", "roads/...",
    "gzip_against_plain", "peak_megabytes/*", "rounds", "threads", "machine", "load/*",
)  # fmt: skip
"""What the result file holds (benchmarks/results_file.py)."""

Rows = tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]


def write_dump(samples: Path, out: Path, megabytes: int, seed: int) -> int:
    """Writes a dump of about that size; gives its number of entities."""
    draw = random.Random(seed)
    lines = samples.read_text(encoding="utf-8").split("\n")
    originals = [json.loads(line.strip().rstrip(",")) for line in lines if len(line) > 3]
    count = size = 0
    with out.open("w", encoding="ascii", newline="\n") as file:
        file.write("[\n")
        while size < megabytes * 1_000_000:
            entity = dict(draw.choice(originals))
            share = min(1.0, draw.lognormvariate(-2.0, 0.8))
            entity["id"] = f"Q{1_000_000 + count}"
            for part in ("labels", "descriptions", "aliases", "claims", "sitelinks"):
                entity[part] = {k: v for k, v in entity[part].items() if draw.random() < share} or {}
            entity["labels"] = {
                language: {"language": language, "value": f"{text['value']} {count}"}
                for language, text in entity["labels"].items()
            }
            text = json.dumps(entity, separators=(",", ":")).replace("/", "\\/")
            file.write(text if not count else ",\n" + text)
            size += len(text) + 2
            count += 1
        file.write("\n]\n")
    return count


def _term(snak: dict[str, Any]) -> tuple[str, int, str | None, str | None]:
    if snak["snaktype"] != "value":
        return snak["snaktype"], 1, WIKIBASE + snak["snaktype"], None
    value, form = snak["datavalue"]["value"], snak["datavalue"]["type"]
    if form == "wikibase-entityid":
        key = value.get("id")
        return key or ("Q" if value["entity-type"] == "item" else "P") + str(value["numeric-id"]), 0, None, None
    if form == "string":
        return value, 1, STRINGS.get(snak["datatype"], STRING), None
    if form == "time":
        text, datatype, detail = time_term(value["time"], value["precision"], value["calendarmodel"])
        return text, 1, datatype, detail
    if form == "quantity":
        return value["amount"], 1, DECIMAL, unit_key(value["unit"])
    if form == "monolingualtext":
        return value["text"], 1, "@" + value["language"].lower(), None
    return point(value["longitude"], value["latitude"], value["globe"]), 1, WKT, None


def loop(entities: Iterable[dict[str, Any]]) -> Rows:
    """What anyone would write: statements and qualifiers as tuples."""
    statements: list[tuple[Any, ...]] = []
    qualifiers: list[tuple[Any, ...]] = []
    for entity in entities:
        key = entity["id"]
        for label in entity["labels"].values():
            statements.append((key, LABEL, label["value"], 1, "@" + label["language"].lower(), None, 0))
        for text in entity["descriptions"].values():
            statements.append((key, DESCRIPTION, text["value"], 1, "@" + text["language"].lower(), None, 0))
        for aliases in entity["aliases"].values():
            for alias in aliases:
                statements.append((key, ALIAS, alias["value"], 1, "@" + alias["language"].lower(), None, 0))
        for relation, claims in entity["claims"].items():
            for claim in claims:
                for name, snaks in claim.get("qualifiers", {}).items():
                    for snak in snaks:
                        qualifiers.append((len(statements), name, *_term(snak)))
                statements.append((key, relation, *_term(claim["mainsnak"]), RANKS[claim["rank"]]))
    return statements, qualifiers


class _Text(msgspec.Struct):
    language: str
    value: str


class _Data(msgspec.Struct):
    value: Any
    type: str


class _Snak(msgspec.Struct):
    snaktype: str
    datatype: str = ""
    datavalue: _Data | None = None


class _Claim(msgspec.Struct):
    mainsnak: _Snak
    rank: str
    qualifiers: dict[str, list[_Snak]] = {}


class _Entity(msgspec.Struct):
    id: str
    labels: dict[str, _Text]
    descriptions: dict[str, _Text]
    aliases: dict[str, list[_Text]]
    claims: dict[str, list[_Claim]]


def structs(lines: Iterator[bytes]) -> Rows:
    """The loop over typed structs."""
    decode = msgspec.json.Decoder(_Entity).decode
    statements: list[tuple[Any, ...]] = []
    qualifiers: list[tuple[Any, ...]] = []

    def term(snak: _Snak) -> tuple[str, int, str | None, str | None]:
        data = snak.datavalue
        given = {"value": data.value, "type": data.type} if data else None
        return _term({"snaktype": snak.snaktype, "datatype": snak.datatype, "datavalue": given})

    for line in lines:
        entity = decode(line)
        key = entity.id
        for label in entity.labels.values():
            statements.append((key, LABEL, label.value, 1, "@" + label.language.lower(), None, 0))
        for text in entity.descriptions.values():
            statements.append((key, DESCRIPTION, text.value, 1, "@" + text.language.lower(), None, 0))
        for aliases in entity.aliases.values():
            for alias in aliases:
                statements.append((key, ALIAS, alias.value, 1, "@" + alias.language.lower(), None, 0))
        for relation, claims in entity.claims.items():
            for claim in claims:
                for name, snaks in claim.qualifiers.items():
                    for snak in snaks:
                        qualifiers.append((len(statements), name, *term(snak)))
                statements.append((key, relation, *term(claim.mainsnak), RANKS[claim.rank]))
    return statements, qualifiers


TEXT = 'STRUCT("language" VARCHAR, "value" VARCHAR)'
SNAK = "STRUCT(snaktype VARCHAR, datatype VARCHAR, datavalue JSON)"
COLUMNS = {
    "id": "VARCHAR", "labels": f"MAP(VARCHAR, {TEXT})", "descriptions": f"MAP(VARCHAR, {TEXT})",
    "aliases": f"MAP(VARCHAR, {TEXT}[])",
    "claims": f"MAP(VARCHAR, STRUCT(mainsnak {SNAK}, \"rank\" VARCHAR, qualifiers MAP(VARCHAR, {SNAK}[]))[])",
}  # fmt: skip
UNNEST = """
CREATE TEMP TABLE claims AS
SELECT id, relation, unnest(own) AS claim
FROM (SELECT id, unnest(map_keys(claims)) AS relation, unnest(map_values(claims)) AS own FROM dump);
CREATE TEMP TABLE statements AS
SELECT id, 'label' AS relation, text.value AS value, text.language AS detail, NULL AS "rank"
FROM (SELECT id, unnest(map_values(labels)) AS text FROM dump)
UNION ALL SELECT id, 'description', text.value, text.language, NULL
FROM (SELECT id, unnest(map_values(descriptions)) AS text FROM dump)
UNION ALL SELECT id, 'alias', text.value, text.language, NULL
FROM (SELECT id, unnest(own) AS text FROM (SELECT id, unnest(map_values(aliases)) AS own FROM dump))
UNION ALL SELECT id, relation, claim.mainsnak.datavalue::VARCHAR, claim.mainsnak.datatype, claim.rank FROM claims;
CREATE TEMP TABLE qualifiers AS
SELECT id, relation, name, unnest(own) AS snak
FROM (
    SELECT id, relation, unnest(map_keys(claim.qualifiers)) AS name, unnest(map_values(claim.qualifiers)) AS own
    FROM claims
);
"""


def by_duckdb(path: Path, threads: int) -> tuple[int, int]:
    """DuckDB's reader of JSON and its SQL."""
    with duckdb.connect(config={"threads": threads}) as connection:
        connection.execute(
            f"CREATE TEMP TABLE dump AS SELECT * FROM read_json(?, format='array', columns={COLUMNS})", [str(path)]
        )
        connection.execute(UNNEST)
        found = [connection.execute(f"SELECT count(*) FROM {name}").fetchone() for name in ("statements", "qualifiers")]
    return int(found[0][0]), int(found[1][0])  # type: ignore[index]


def by_simdjson(path: Path) -> tuple[int, int]:
    """The loop over what simdjson parses."""
    parse = importlib.import_module("simdjson").Parser().parse
    return _counted(loop(parse(line, True) for line in lines_of(path)))


def lines_of(path: Path) -> Iterator[bytes]:
    """The entities' texts."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        for line in file:
            if len(line) > 3:
                yield line.rstrip(b",\r\n")


def _counted(rows: Rows) -> tuple[int, int]:
    return len(rows[0]), len(rows[1])


def ours(path: Path, threads: int) -> tuple[int, int]:
    """The reader; batches are let go of as a build does."""
    statements = qualifiers = 0
    for batch in WikidataJson().read(Source(path, path.name), KgOptions(threads=threads)):
        statements += batch.statements.height
        qualifiers += 0 if batch.qualifiers is None else batch.qualifiers.height
    return statements, qualifiers


def plain(path: Path) -> tuple[int, int]:
    """Our plain road alone."""
    statements = qualifiers = 0
    for chunk in Source(path, path.name).chunks():
        batch = read_plainly(chunk, None)
        statements += batch.statements.height
        qualifiers += 0 if batch.qualifiers is None else batch.qualifiers.height
    return statements, qualifiers


def check(path: Path) -> tuple[int, int]:
    """Raises unless `json` and ours give the same rows; gives their numbers."""
    statements, qualifiers = loop(json.loads(line) for line in lines_of(path))
    found = [batch.statements for batch in WikidataJson().read(Source(path, path.name), KgOptions(threads=1))]
    mine = pl.concat(found)
    theirs = pl.DataFrame(statements, schema=mine.schema, orient="row")
    if not mine.sort(mine.columns).equals(theirs.sort(mine.columns)):
        raise SystemExit("the loop and the reader disagree")
    return len(statements), len(qualifiers)


def peak(path: Path, road: str, threads: int) -> int:
    """Peak memory in MB of a process that only reads."""
    script = [sys.executable, "-m", "benchmarks.graph.wikidata_json"]
    command = [*script, "--peak", road, "--file", str(path), "--threads", str(threads)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _peak_here() -> int:
    """Peak memory of this process in MB; what the parent used is not in it, as it would be in getrusage's figure."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) // 1024


def roads_of(path: Path, packed: Path, threads: int) -> dict[str, Callable[[], tuple[int, int]]]:
    """Every road by name."""
    return {
        "json": lambda: _counted(loop(json.loads(line) for line in lines_of(path))),
        "msgspec": lambda: _counted(loop(msgspec.json.decode(line) for line in lines_of(path))),
        "structs": lambda: _counted(structs(lines_of(path))),
        **({"simdjson": lambda: by_simdjson(path)} if importlib.util.find_spec("simdjson") else {}),
        "duckdb": lambda: by_duckdb(path, threads),
        "plain": lambda: plain(path),
        "ours 1": lambda: ours(path, 1),
        "ours": lambda: ours(path, threads),
        "ours gz": lambda: ours(packed, threads),
    }


def measure(path: Path, packed: Path, rounds: int, threads: int) -> dict[str, Any]:
    """Medians of every road, and ratios to `json`."""
    roads = roads_of(path, packed, threads)
    expected = check(path)
    times: dict[str, list[float]] = {name: [] for name in roads}
    busy: dict[str, list[float]] = {name: [] for name in roads}
    for _ in range(rounds):
        for name, road in roads.items():
            begin, begin_busy = time.perf_counter(), time.process_time()
            if road() != expected:
                raise SystemExit(f"{name} does not find {expected} statements and qualifiers")
            times[name].append(time.perf_counter() - begin)
            busy[name].append(time.process_time() - begin_busy)
    megabytes = path.stat().st_size / 1e6
    ratios = {
        name: statistics.median(slow / fast for slow, fast in zip(times["json"], times[name], strict=True))
        for name in roads
    }
    return {
        "megabytes": round(megabytes, 1),
        "gzip_megabytes": round(packed.stat().st_size / 1e6, 1),
        "statements": expected[0],
        "qualifiers": expected[1],
        "roads": {
            name: {
                "seconds": round(statistics.median(times[name]), 3),
                "processor_seconds": round(statistics.median(busy[name]), 3),
                "megabytes_a_second": round(megabytes / statistics.median(times[name]), 1),
                "times_json": round(ratios[name], 2),
                "times_json_processor": round(
                    statistics.median(a / b for a, b in zip(busy["json"], busy[name], strict=True)), 2
                ),
            }
            for name in roads
        },
        "gzip_against_plain": round(
            statistics.median(a / b for a, b in zip(times["ours gz"], times["ours"], strict=True)), 3
        ),
        "peak_megabytes": {name: peak(path, name, threads) for name in ("json", "ours 1", "ours")},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("KGQA_SHARED_DATA", "../shared/data")))
    parser.add_argument("--size", type=int, default=200, help="megabytes of the dump, plain")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--peak", help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peak:
        roads_of(args.file, args.file, args.threads)[args.peak]()
        print(_peak_here())
        return
    samples = args.data / "wikidata_samples" / "wikidata-filter" / "entities"
    if not samples.is_file():
        raise SystemExit(f"no real entities at {samples}; name the folder of shared data with --data")
    with tempfile.TemporaryDirectory() as folder:
        path, packed = Path(folder, "dump.json"), Path(folder, "dump.json.gz")
        entities = write_dump(samples, path, args.size, args.seed)
        with path.open("rb") as file, gzip.open(packed, "wb", compresslevel=6) as out:
            while data := file.read(1 << 20):
                out.write(data)
        found = {"entities": entities, **measure(path, packed, args.rounds, args.threads)}
    found |= {
        "rounds": args.rounds,
        "threads": args.threads,
        "machine": f"{platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}",
        "load": [round(value, 1) for value in os.getloadavg()],
    }
    print(f"{found['entities']:,} entities, {found['megabytes']:,} MB, {found['statements']:,} statements")
    print(f"{'road':10}{'s':>9}{'cpu s':>9}{'MB/s':>9}{'× json':>9}{'× (cpu)':>9}")
    for name, figures in found["roads"].items():
        print(
            f"{name:10}{figures['seconds']:9.2f}{figures['processor_seconds']:9.2f}"
            f"{figures['megabytes_a_second']:9.1f}{figures['times_json']:9.2f}{figures['times_json_processor']:9.2f}"
        )
    print(f"gzip against plain {found['gzip_against_plain']}, peak MB {found['peak_megabytes']}")
    if args.json:
        results_file.write(args.json, {"conditions": conditions(0), **found}, FIELDS)


if __name__ == "__main__":
    main()
