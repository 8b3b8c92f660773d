"""Passages: the index of the 1,000 REBEL abstracts, and how often the right abstract is found; dense, BM25, hybrid.

    python -m benchmarks.answers.passages [--data ../shared/data] [--json OUT] [--labels N]

Questions are made by rule from the triples that are annotated in an abstract (seeded; at most one of each kind for
each abstract; relations and entities in the words of the annotation):

  subject named   `What is the RELATION of SUBJECT?`, the subject being the entity that the abstract is about: the
                  question holds its title, or another name of it that the abstract uses
  subject hidden  `Which one has RELATION OBJECT, … and …?` from one to three triples about the abstract's entity: its
                  objects are named, its title is not in the question
  others          `What is the RELATION of SUBJECT?` for a triple between other things that the abstract speaks of; its
                  title is not in the question

The right abstracts are those in which all triples of the question are annotated, so mostly one.  An abstract is found
at the rank of its first passage among ten.  hit_at_1, hit_at_10: share of questions; mrr: mean of 1 / rank, 0 beyond
ten.  Intervals draw questions (2,000 times).  `--labels N` also compares the index `ivf` with `flat` on N labels of
Wikidata: the share of flat's ten that it finds.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import results_file
from benchmarks.conditions import DATA, conditions
from benchmarks.results_file import CONDITIONS
from kgqa_core.config import PassagesOptions
from kgqa_core.passages import dense
from kgqa_core.passages.index import build
from kgqa_core.passages.search import PassageSearch
from kgqa_core.workspace import Workspace

FIELDS = (
    *CONDITIONS, "cores", "python", "seed", "rebel/...", "?cells/...",
)  # fmt: skip
"""What the result file holds (benchmarks/results_file.py)."""

CORPUS = "passages/rebel_sample.jsonl"
LABELS = "wikidata_samples/derived/labels_en_pool.tsv"
SEED = 7
RETRIEVERS = ("dense", "bm25", "hybrid")
SAMPLES = 2_000


@dataclass(frozen=True)
class BenchmarkQuestion:
    """A question with the ids of the abstracts that it is right to find."""

    text: str
    right: frozenset[str]


Key = tuple[str, str, str]


def questions(rows: Sequence[dict[str, Any]]) -> dict[str, list[BenchmarkQuestion]]:
    """Kind → questions."""
    where: dict[Key, set[str]] = defaultdict(set)
    for row in rows:
        for triple in row["triples"]:
            where[_key(triple)].add(row["docid"])
    found: dict[str, list[BenchmarkQuestion]] = {"subject named": [], "subject hidden": [], "others": []}
    for row in rows:
        draw = random.Random(f"{SEED}/{row['docid']}")
        title = row["title"].casefold()
        own = [triple for triple in row["triples"] if triple["subject"]["uri"] == row["uri"]]
        rest = [triple for triple in row["triples"] if triple["subject"]["uri"] != row["uri"]]
        if own:
            triple = draw.choice(own)
            found["subject named"].append(BenchmarkQuestion(_forward(triple), frozenset(where[_key(triple)])))
            some = draw.sample(own, min(3, len(own)))
            parts = [f"{triple['predicate']['surfaceform']} {_name(triple['object'])}" for triple in some]
            wanted = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
            right = frozenset.intersection(*(frozenset(where[_key(triple)]) for triple in some))
            if title not in wanted.casefold():
                found["subject hidden"].append(BenchmarkQuestion(f"Which one has {wanted}?", right))
        rest = [triple for triple in rest if title not in _forward(triple).casefold()]
        if rest:
            triple = draw.choice(rest)
            found["others"].append(BenchmarkQuestion(_forward(triple), frozenset(where[_key(triple)])))
    return found


def _key(triple: dict[str, Any]) -> Key:
    return triple["subject"]["uri"], triple["predicate"]["uri"], triple["object"]["uri"]


def _forward(triple: dict[str, Any]) -> str:
    return f"What is the {triple['predicate']['surfaceform']} of {_name(triple['subject'])}?"


def _name(entity: dict[str, Any]) -> str:
    return " ".join(entity["surfaceform"].split())


def ranks(search: PassageSearch, queries: Sequence[BenchmarkQuestion]) -> np.ndarray:
    """Rank of the first right abstract of each question, from 1; 0 where it is not among ten."""
    found = []
    for each, ranked in zip(queries, search.search([each.text for each in queries]), strict=True):
        there = [passage.document in each.right for passage in search.read(ranked)]
        found.append(there.index(True) + 1 if True in there else 0)
    return np.array(found)


def scores(found: np.ndarray) -> dict[str, Any]:
    """Means with 95 % intervals."""
    values = {
        "hit_at_1": (found == 1).astype(float),
        "hit_at_10": (found > 0).astype(float),
        "mrr": np.divide(1.0, found, out=np.zeros(len(found)), where=found > 0),
    }
    resampled = np.random.default_rng(SEED).integers(0, len(found), (SAMPLES, len(found)))
    summary: dict[str, Any] = {"n": len(found)}
    for name, value in values.items():
        low, high = np.percentile(value[resampled].mean(axis=1), [2.5, 97.5])
        summary[name] = {
            "value": round(float(value.mean()), 4),
            "low": round(float(low), 4),
            "high": round(float(high), 4),
        }
    return summary


def size(path: Path) -> int:
    """Bytes of a file, or of a folder's files."""
    return sum(file.stat().st_size for file in ([path] if path.is_file() else path.rglob("*")) if file.is_file())


def measure_rebel(data: Path, work: Path) -> dict[str, Any]:
    """Build, sizes and scores on the abstracts."""
    corpus = data / CORPUS
    with corpus.open(encoding="utf-8") as stream:
        rows = [json.loads(line) for line in stream]
    options = PassagesOptions(corpus=str(corpus), fields={"id": "docid"}, retriever="hybrid", device="cpu")
    builds: dict[str, Any] = {}
    for name in ("bm25", "dense", "hybrid"):  # the last finds the vectors of the one before
        out = work / name
        out.mkdir()
        wall, cpu = time.monotonic(), time.process_time()
        counts = build(
            Workspace(out, work / "scratch", cache=work / "cache"),
            options=options.model_copy(update={"retriever": name}),
            seed=SEED,
        )
        builds[name] = counts | {
            "seconds": round(time.monotonic() - wall, 1), "cpu": round(time.process_time() - cpu, 1),
            "bytes": size(out),
        }  # fmt: skip
    out = work / "hybrid"
    parts = {name: size(out / name) for name in ("dense.faiss", "bm25", "passages")}
    queries = questions(rows)
    table: dict[str, Any] = {}
    for retriever in RETRIEVERS:
        search = PassageSearch(out, options.model_copy(update={"retriever": retriever}), work / "cache")
        for kind, own in queries.items():
            table.setdefault(kind, {})[retriever] = scores(ranks(search, own))
    search = PassageSearch(out, options, None)
    texts = [each.text for each in queries["subject named"][:200]]
    started = time.process_time()
    search.search(texts)
    return {
        "builds": builds,
        "bytes": parts,
        "scores": table,
        "examples": {kind: own[0].text for kind, own in queries.items()},
        "right_abstracts": {
            kind: round(float(np.mean([len(each.right) for each in own])), 3) for kind, own in queries.items()
        },
        "cpu_ms_a_question": round((time.process_time() - started) / len(texts) * 1000, 1),
    }


def measure_cells(data: Path, number: int, work: Path) -> dict[str, Any]:
    """How many of the ten nearest labels an index of cells finds."""
    texts = labels(data, number + 200)
    queries, documents = texts[:200], texts[200:]
    (work / "labels.txt").write_text("\n\n".join(documents), encoding="utf-8")
    options = PassagesOptions(corpus=str(work / "labels.txt"), format="text", words=1000, device="cpu")
    found: dict[str, Any] = {"passages": len(documents), "cells": dense.cells(len(documents))}
    best: list[set[int]] = []
    for kind, shares in (("flat", (1,)), ("ivf", (16, 8, 4))):
        out = work / kind
        out.mkdir()
        own = options.model_copy(update={"index": kind})
        build(Workspace(out, work / "scratch", cache=work / "cache"), options=own, seed=SEED)
        search = PassageSearch(out, own, work / "cache")
        search.search(queries)
        for share in shares:
            if kind == "ivf":
                search.parts[0].index.nprobe = found["cells"] // share
            started = time.process_time()
            ids = [{number for number, _ in ranked} for ranked in search.search(queries)]
            spent = round((time.process_time() - started) / len(queries) * 1000, 2)
            best = best or ids
            recall = float(np.mean([len(a & b) / len(b) for a, b in zip(ids, best, strict=True)]))
            found[f"{kind}, 1/{share} of the cells" if kind == "ivf" else kind] = {
                "bytes": size(out / dense.FILE), "cpu_ms_a_question": spent, "recall_of_flat": round(recall, 4),
            }  # fmt: skip
    return found


def labels(data: Path, number: int) -> list[str]:
    """So many different labels of Wikidata of three words or more, sampled with the seed."""
    found: set[str] = set()
    with (data / LABELS).open(encoding="utf-8") as stream:
        for line in stream:
            text = line.rstrip("\n").split("\t")[-1].strip().strip('"')
            if len(text.split()) >= 3:
                found.add(text)
    return random.Random(SEED).sample(sorted(found), min(number, len(found)))


def main() -> None:
    """Measures and prints, or writes JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--labels", type=int, default=0)
    given = parser.parse_args()
    if not (given.data / CORPUS).is_file():
        parser.exit(2, f"no abstracts at {given.data / CORPUS}; give --data\n")
    result: dict[str, Any] = {"cores": os.cpu_count(), "python": platform.python_version(), "seed": SEED}
    with tempfile.TemporaryDirectory() as folder:
        result["rebel"] = measure_rebel(given.data, Path(folder))
    if given.labels:
        with tempfile.TemporaryDirectory() as folder:
            result["cells"] = measure_cells(given.data, given.labels, Path(folder))
    text = json.dumps(result, indent=1, ensure_ascii=False, sort_keys=True)
    if given.json:
        results_file.write(given.json, {"conditions": conditions(SEED), **result}, FIELDS, sort_keys=True)
    print(text)


if __name__ == "__main__":
    main()
