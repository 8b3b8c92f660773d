"""Counts of the public graphs, against the README of the data and a plain count with Python sets."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kgqa_core.config import KgOptions
from kgqa_core.kg.build import build
from kgqa_core.kg.store import KgStore
from kgqa_core.workspace import Workspace

DATA = Path(os.environ.get("KGQA_SHARED_DATA") or Path(__file__).parents[4] / "shared" / "data")


def _needs(path: str) -> Path:
    if not (DATA / path).is_file():
        pytest.skip(f"{DATA / path} is absent; set KGQA_SHARED_DATA to the folder of the public data")
    return DATA / path


@pytest.mark.parametrize(
    ("file", "delimiter", "triples", "relations"),
    [
        ("metaqa/kb_reconstructed.txt", "|", 129_413, 9),
        ("zjqa/indexes/triple.txt", "\t", 11_256, 45),
        pytest.param("wikidata_mini/triples.tsv", "\t", 467_127, 501, marks=pytest.mark.slow),
    ],
)
def test_counts_equal_those_of_python_sets(tmp_path, file, delimiter, triples, relations):
    path = _needs(file)
    counts = build(Workspace(tmp_path), options=KgOptions(files=(str(path),), infer_values=False))
    expected = {tuple(field.strip() for field in line.split(delimiter))
                for line in path.read_text(encoding="utf-8").split("\n") if line}  # fmt: skip
    entities = sorted({t[0] for t in expected} | {t[2] for t in expected})
    assert (counts["triples"], counts["relations"]) == (triples, relations) == (len(expected), relations)
    assert counts["entities"] == len(entities) and counts["literals"] == counts["rejects"] == 0
    with KgStore.open(tmp_path) as store:
        assert list(store.entity_keys(range(len(entities))).values()) == entities
        keys, names = store.relation_keys(), entities
        sample = list(range(0, triples, 997))
        assert {(names[h], keys[r], names[t]) for h, r, t in store.triples(sample).values()} <= expected


def test_wikidata_rdf_samples_are_read_whole(tmp_path):
    folder = DATA / "wikidata_samples" / "entitybase" / "test_data" / "rdf" / "nt"
    if not folder.is_dir():
        pytest.skip(f"{folder} is absent; set KGQA_SHARED_DATA to the folder of the public data")
    files = sorted(str(p) for p in folder.rglob("*.nt") if p.stat().st_size)
    counts = build(Workspace(tmp_path), options=KgOptions(files=tuple(files), format="ntriples"))
    lines = [line for f in files for line in Path(f).read_text(encoding="utf-8").split("\n")]
    assert counts["statements"] == sum(1 for line in lines if line.strip() and not line.lstrip().startswith("#"))
    assert counts["rejects"] == 0 and counts["triples"] > 100
