"""What a mention dictionary of many synthetic names costs: build, size, memory, opening, mentions a second.

    python -m benchmarks.answers.linking_scale --work DIR [--names 10000000] [--json OUT]

Names are one to four words of a vocabulary of 300,000 synthetic words by a power law, one in twenty is a name of
Han characters; one in ten is an alias, and an entity has two triples.  Texts are made of words of the same
vocabulary with a name in each.  build: in a process of its own, with its peak memory.  open: `Mentions`, in a fresh
process, pages in the cache or not (posix_fadvise).  Times are wall times with processor time beside them.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import resource
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks import results_file
from benchmarks.answers.linking import FIELDS as LINKING_FIELDS
from benchmarks.conditions import conditions
from kgqa_core.config import LinkingOptions
from kgqa_core.kg.store import SCHEMA_VERSION, create_tables, write_meta
from kgqa_core.linking import kernels
from kgqa_core.linking.dictionary import build
from kgqa_core.linking.fold import fold_text
from kgqa_core.linking.mentions import MentionDictionary
from kgqa_core.linking.tagger import Tagger

VOCABULARY = 300_000
CHUNK = 500_000


def vocabulary(rng: np.random.Generator) -> list[str]:
    """Synthetic words, shortest first."""
    syllables = [a + b for a in "bcdfghjklmnprstvwz" for b in ("a", "e", "i", "o", "u", "an", "er", "in", "ol", "um")]
    lengths = np.sort(rng.integers(2, 5, VOCABULARY))
    return ["".join(syllables[n] for n in rng.integers(0, len(syllables), length)).capitalize() for length in lengths]


def names(rng: np.random.Generator, words: list[str], number: int) -> list[str]:
    """Names of one to four words, or of two to eight Han characters."""
    picked = (len(words) * rng.random((number, 4)) ** 2).astype(np.int64)
    lengths, han = rng.integers(1, 5, number), rng.random(number) < 0.05
    signs = rng.integers(0x4E00, 0x6000, (number, 8))
    return [
        "".join(map(chr, signs[n, : 2 * lengths[n]])) if han[n] else " ".join(words[w] for w in picked[n, : lengths[n]])
        for n in range(number)
    ]


def make_graph(path: Path, number: int, seed: int) -> None:
    """A graph file with `number` labels and aliases."""
    rng = np.random.default_rng(seed)
    words, entities = vocabulary(rng), number * 9 // 10
    path.parent.mkdir(parents=True, exist_ok=True)
    with duckdb.connect(":memory:", config={"threads": 2}) as connection:
        connection.execute(f"ATTACH '{path}' AS kg")
        create_tables(connection, "kg")
        for start in range(0, number, CHUNK):
            size = min(CHUNK, number - start)
            table = pa.table({"n": np.arange(start, start + size), "form": names(rng, words, size)})
            connection.register("forms", table)
            connection.execute(
                f"INSERT INTO kg.labels(id, lang, label) SELECT n, 'en', form FROM forms WHERE n < {entities};"
                f"INSERT INTO kg.aliases SELECT n % {entities}, 'en', form FROM forms WHERE n >= {entities}"
            )
            connection.unregister("forms")
        connection.execute(
            f"""
            INSERT INTO kg.entities(id, key, kind, popularity)
            SELECT range, 'Q' || range, 'entity', 2 + (10000 / (1 + range % 10000))::INT FROM range({entities});
            INSERT INTO kg.relations SELECT range, 'P' || range, 'entity' FROM range(500);
            INSERT INTO kg.triples SELECT row_number() OVER () - 1, range // 2, range % 500,
                (hash(range) % {entities})::INT, 0 FROM range({2 * entities})"""
        )
        counts = {"entities": entities, "triples": 2 * entities}
        write_meta(connection, "kg", {"schema_version": SCHEMA_VERSION, "languages": ["en"], "counts": counts})


def build_here(kg: Path, out: Path) -> dict[str, Any]:
    """Seconds and peak memory of a build."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    begin, busy = time.perf_counter(), time.process_time()
    counts = build(out, kg=kg)
    return {
        "wall_s": time.perf_counter() - begin,
        "cpu_s": time.process_time() - busy,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "bytes": sum(path.stat().st_size for path in out.iterdir()),
        "counts": {name: counts[name] for name in ("names", "candidates", "ambiguous", "neighbours")},
    }


def open_here(folder: Path, cold: bool) -> dict[str, float]:
    """Milliseconds of opening, and of opening and the first look."""
    if cold:
        for path in folder.iterdir():
            handle = os.open(path, os.O_RDONLY)
            os.fsync(handle)
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(handle)
    begin = time.perf_counter()
    mentions = MentionDictionary(folder)
    opened = time.perf_counter()
    mentions.lookup("Bananer")
    return {"open_ms": (opened - begin) * 1e3, "first_ms": (time.perf_counter() - begin) * 1e3}


def speed(folder: Path, texts: int, seed: int) -> dict[str, Any]:
    """Texts and mentions a second on one thread: the walk alone, spotting with folding, and linking."""
    rng = np.random.default_rng(seed)
    mentions = MentionDictionary(folder)
    words = vocabulary(np.random.default_rng(seed))
    sentences = []
    for _ in range(texts):
        around = [words[int(len(words) * rng.random() ** 2)].lower() for _ in range(9)]
        entity = int(rng.integers(0, mentions.meta["entities"]))
        sentences.append(" ".join([*around[:4], mentions.labels[entity], *around[4:]]) + "?")
    strings = mentions.names
    folded = [fold_text(text) for text in sentences]
    tagger = Tagger(mentions, LinkingOptions(context="none"))
    result: dict[str, Any] = {"texts": texts, "words_a_text": sum(len(f.begin) for f in folded) / texts}

    def timed(name: str, work: Callable[[], int]) -> None:
        work()
        begin, busy = time.perf_counter(), time.process_time()
        found = work()
        wall, cpu = time.perf_counter() - begin, time.process_time() - busy
        result[name] = {"mentions": found, "mentions_per_s": found / wall, "mentions_per_cpu_s": found / cpu,
                        "us_a_text": wall / texts * 1e6, "cpu_us_a_text": cpu / texts * 1e6}  # fmt: skip

    def walk() -> int:
        return sum(len(kernels.spot(strings.blob, strings.offsets, f.data, f.begin, f.end)) for f in folded)

    def spot() -> int:
        total = 0
        for text in sentences:
            f = fold_text(text)
            total += len(kernels.spot(strings.blob, strings.offsets, f.data, f.begin, f.end))
        return total

    timed("walk", walk)
    timed("fold_and_walk", spot)
    timed("link", lambda: sum(len(tagger.link(text)) for text in sentences))
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--names", type=int, default=10_000_000)
    parser.add_argument("--texts", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    kg, folder = given.work / f"names{given.names}" / "kg", given.work / f"names{given.names}" / "mentions"
    if not (kg / "kg.duckdb").is_file():
        make_graph(kg / "kg.duckdb", given.names, given.seed)
    spawn = multiprocessing.get_context("spawn")
    with spawn.Pool(1) as pool:
        built = pool.apply(build_here, (kg, folder))
    opened = {}
    for name, cold in (("cold", True), ("warm", False), ("warm_again", False)):
        with spawn.Pool(1) as pool:
            opened[name] = pool.apply(open_here, (folder, cold))
    result = {
        "names": given.names,
        "build": built,
        "open": opened,
        "speed": speed(folder, given.texts, given.seed),
        "machine": {"cpus": os.cpu_count(), "load": os.getloadavg(), "python": platform.python_version()},
    }
    print(json.dumps(result, indent=1))
    if given.json:
        whole = json.loads(given.json.read_text()) if given.json.is_file() else {}
        result["conditions"] = conditions(given.seed)
        results_file.write(given.json, whole | {"scale": result}, LINKING_FIELDS)


if __name__ == "__main__":
    main()
